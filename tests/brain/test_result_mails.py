"""The mail that a requester gets when a table or bisection is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot.core.access.roles import Person, Role
from swingbot.core.access.tokens import digest
from swingbot.service.access import create_token
from swingbot.service.bisect.ask import prepared
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
