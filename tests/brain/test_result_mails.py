"""The mail that a requester gets when a table or bisection is over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from swingbot.core.access.roles import Person, Role
from swingbot.core.access.tokens import digest
from swingbot.service.access import create_token
from swingbot.service.bisect.ask import prepared
from swingbot.service.bisect.cancel import cancel_bisection
from swingbot.service.bisect.request import BisectionRequest
from swingbot.service.ports import RequestError
from swingbot.service.ports.access import NewToken
from swingbot.service.table.cancel import cancel_table
from swingbot.service.tick import tick
from tests.fakelinux import FakeCommit
from tests.fakes.loop import METRIC
from tests.fakes.memory_brain import MemoryBrain, make_memory_brain
from tests.table_requests import comparing, request_table

ADDRESS = "ada@example.org"


@pytest.fixture
def brain(tmp_path: Path) -> MemoryBrain:
    commits = [FakeCommit(speed=80 if number > 2 else 100) for number in range(6)]
    made = make_memory_brain(tmp_path, commits, MAIL_DRY_RUN="true")
    made.watch(made.git("rev-parse", "HEAD~6"))
    made.run()
    made.letters.clear()
    return made


def a_person(brain: MemoryBrain, mail: str | None = ADDRESS) -> Person:
    with brain.store.transaction() as tx:
        secret = digest(f"Ada {len(brain.store.db.tokens)}")
        create_token(
            tx.access,
            NewToken(who="Ada", role=Role.SUBMITTER, digest=secret, mail=mail, by="root"),
        )
        person = tx.access.holder(secret)
    assert person is not None
    return person


def results(brain: MemoryBrain) -> list[tuple[str, str, str]]:
    """Recipients, subjects and texts of the mails that left."""
    return [
        (str(letter["To"]), str(letter["Subject"]), letter.get_content().replace("\r\n", "\n"))
        for letter in brain.letters
        if "requested this mail" in letter.get_content()
    ]


def test_a_table_says_what_it_found_once(brain: MemoryBrain) -> None:
    ada = a_person(brain)
    request = comparing("base", "tip", boots=3, asked_by=ada, mail=True)
    table, again = (request_table(brain.lab, request) for _ in range(2))
    assert table.id == again.id
    assert results(brain) == [], "it is not over"
    brain.run()
    brain.run()
    ((to, subject, text),) = results(brain)
    assert to == ADDRESS, "a dry run redirects unsolicited mail only"
    assert subject == f"[swingbot] {table.id}: {METRIC} 20.0% worse on vm-icount"
    assert f"{table.id} is over." in text and f"/comparison/{table.id}\n" in text
    assert brain.git("rev-parse", "HEAD")[:12] in text
    request_table(brain.lab, request)
    brain.run()
    assert len(results(brain)) == 1, "asked again, it is the same table"


def test_a_bisection_names_the_commit(brain: MemoryBrain) -> None:
    base, tip = brain.git("rev-parse", "HEAD~6", "HEAD").split()
    wanted = BisectionRequest(
        tree="fake", good=base, bad=tip, metric=METRIC, asked_by=a_person(brain), mail=True
    )
    with prepared(brain.lab, wanted) as search:
        id = search.queue(0.0).id
    brain.run()
    ((to, subject, text),) = results(brain)
    culprit = brain.git("rev-parse", "HEAD~2")[:12]
    assert to == ADDRESS and subject.startswith(f"[swingbot] {id}: {culprit} ")
    assert f"{id} found the commit." in text and METRIC in text and f"/bisection/{id}\n" in text


def search_of_a_merge(tmp_path: Path, *branch: FakeCommit) -> tuple[MemoryBrain, str, str]:
    """A brain with a bisection of which the operator wants a mail, the merge that it blames, and
    the slow commit of the merged branch.
    """
    brain = make_memory_brain(tmp_path, [])
    plain = [FakeCommit(speed=100) for _ in range(2)]
    base, merge, commits = brain.merge(plain, branch, plain)
    brain.watch(merge)  # the tree is known, and nothing in it is a change
    wanted = BisectionRequest(tree="fake", good=base, bad=merge, metric=METRIC, mail=True)
    with prepared(brain.lab, wanted) as search:
        assert search.queue(0.0).id == "b1"
    for _ in range(60):
        tick(brain.lab)
        if len(brain.store.db.bisections) == 2:
            break
        brain.fake.work()
    return brain, merge, commits[-1]


def test_a_bisection_is_mailed_when_its_merged_branch_was_searched_and_says_what_it_found(
    tmp_path: Path,
) -> None:
    brain, merge, slow = search_of_a_merge(
        tmp_path, FakeCommit(speed=100), FakeCommit(speed=80, title="slow in a branch")
    )
    assert brain.bisection(1).status == "culprit"
    tick(brain.lab)
    brain.send()
    assert results(brain) == [], "b2 still searches"
    brain.run()
    ((_, subject, text),) = results(brain)
    assert subject.startswith(f"[swingbot] b1: {slow[:12]} slow in a branch"), subject
    said = " ".join(text.split())
    assert f"in the branch merged by {merge[:12]} (b2): {slow[:12]} slow in a branch" in said


def test_a_merge_whose_search_was_cancelled_is_named_itself(tmp_path: Path) -> None:
    brain, merge, _ = search_of_a_merge(
        tmp_path, FakeCommit(speed=100), FakeCommit(speed=80), FakeCommit(speed=80)
    )
    cancel_bisection(brain.lab.transaction, brain.lab.tools.git, 2)
    brain.run()
    ((_, subject, text),) = results(brain)
    assert subject.startswith(f"[swingbot] b1: {merge[:12]} "), subject
    assert "no single commit in its branch (b2: cancelled by hand)" in " ".join(text.split())


def test_a_result_that_cannot_be_read_keeps_no_other_mail_back(brain: MemoryBrain) -> None:
    """And it is mailed when it can be read again."""
    base, tip = brain.git("rev-parse", "HEAD~6", "HEAD").split()
    wanted = BisectionRequest(tree="fake", good=base, bad=tip, metric=METRIC, mail=True)
    with prepared(brain.lab, wanted) as search:
        number = search.queue(0.0).number
    table = request_table(brain.lab, comparing("base", "tip", boots=30, mail=True))
    cancel_bisection(brain.lab.transaction, brain.lab.tools.git, number)
    cancel_table(brain.lab.transaction, table.id)
    ended = brain.store.db.bisections[number]
    damaged = replace(ended.bisection, status="culprit")
    brain.store.db.bisections[number] = replace(ended, bisection=damaged, conclusion={"boots": 1})
    with pytest.raises(ExceptionGroup, match=f"mail about b{number}: BadDocument"):
        tick(brain.lab)
    brain.send()
    assert [subject for _, subject, _ in results(brain)] == [f"[swingbot] {table.id} was cancelled"]
    brain.store.db.bisections[number] = ended
    tick(brain.lab)
    brain.send()
    assert len(results(brain)) == 2


def test_of_a_private_table_the_mail_says_only_where_to_look(brain: MemoryBrain) -> None:
    request = comparing(
        "base", "tip", boots=3, asked_by=a_person(brain), mail=True, private_to=["me"]
    )
    table = request_table(brain.lab, request)
    brain.run()
    ((_, subject, text),) = results(brain)
    assert subject == f"[swingbot] {table.id} is over"
    assert brain.git("rev-parse", "HEAD")[:12] not in text and METRIC not in text
    assert f"/comparison/{table.id}\n" in text


def test_a_cancelled_table_is_mailed_and_an_operator_gets_it_at_mail_to(
    brain: MemoryBrain,
) -> None:
    table = request_table(brain.lab, comparing("base", "tip", boots=30, mail=True))
    cancel_table(brain.lab.transaction, table.id)
    tick(brain.lab)
    brain.send()
    ((to, subject, _),) = results(brain)
    assert (to, subject) == (
        ", ".join(brain.lab.settings.recipients),
        f"[swingbot] {table.id} was cancelled",
    )


def test_a_token_without_an_address_is_refused_before_anything_is_queued(
    brain: MemoryBrain,
) -> None:
    request = comparing("base", "tip", boots=9, asked_by=a_person(brain, None), mail=True)
    before = len(brain.comparisons("asked"))
    with pytest.raises(RequestError, match="token has no mail address: ask an operator") as refused:
        request_table(brain.lab, request)
    assert refused.value.key == "mail"
    assert len(brain.comparisons("asked")) == before
