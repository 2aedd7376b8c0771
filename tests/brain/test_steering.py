"""Steering a bisection: a testbox that goes away, more boots, merges."""

from __future__ import annotations

import pytest

from swingbot.app.wiring import sync_testboxes
from swingbot.core.access.roles import Person, Role
from swingbot.core.bisect.tell import journal
from swingbot.core.bisect.tell.explain_text import of_merge
from swingbot.service.access import create_token
from swingbot.service.bisect import enter_merges
from swingbot.service.bisect.ask import prepared
from swingbot.service.bisect.cancel import cancel_bisection
from swingbot.service.bisect.request import BisectionRequest
from swingbot.service.bisect.resume import ResumeRequest, resume
from swingbot.service.bisect.steer import logbook, skip
from swingbot.service.ports import RequestError
from swingbot.service.ports.access import NewToken
from swingbot.service.tick import tick
from tests.fakelinux import FakeCommit
from tests.fakes.loop import METRIC, plain
from tests.fakes.memory_brain import MemoryBrain


def asked(brain: MemoryBrain, *commits: FakeCommit) -> tuple[int, list[str]]:
    """A bisection by hand over these commits, and their ids (base first)."""
    base = brain.base
    brain.watch(base)
    brain.run()
    made = brain.commit(*commits)
    return brain.bisect(base, made[-1]), [base, *made]


def test_a_bisection_whose_testbox_has_no_file_any_more_waits_and_keeps_nobody_else_from_working(
    brain: MemoryBrain,
) -> None:
    number, ids = asked(brain, *plain(4), FakeCommit(speed=88), *plain(4))
    brain.rounds(2)
    name = brain.bisection(number).testbox
    without = brain.without(name)
    sync_testboxes(without)
    tick(without)
    tick(without)
    assert brain.bisection(number).status == "running"
    assert name not in without.catalogue.testboxes.present
    assert without.catalogue.testboxes.known(name).name == name
    with pytest.raises(KeyError):
        without.catalogue.testboxes.known("never")
    sync_testboxes(brain.lab)
    brain.run()
    assert brain.culprit(number) == ids[5]


def test_a_bisection_that_is_over_takes_no_advice_but_goes_on_with_more_boots(
    brain: MemoryBrain,
) -> None:
    number, ids = asked(brain, *plain(6), FakeCommit(speed=88), *plain(5))
    brain.set(max_boots=5)
    brain.run()
    assert brain.bisection(number).status == "inconclusive"
    with pytest.raises(RequestError, match=f"resume b{number}"):
        skip(brain.lab.transaction, brain.lab.tools.git, number, [ids[2]], who="ada", why=None)
    with brain.store.transaction() as tx:
        before = len(tx.bisections.observations(number))
    assert (
        resume(
            brain.lab.transaction,
            brain.lab.catalogue,
            ResumeRequest(id=f"b{number}", boots=40, by="ada", why="worth it"),
        ).limit
        == before + 40
    )
    brain.run()
    assert brain.culprit(number) == ids[7]
    with brain.store.transaction() as tx:
        assert [steer.act for steer in tx.steering.all(number)] == ["resume"]
        assert len(tx.bisections.observations(number)) > before
    steps = logbook(brain.lab.transaction, number).steps
    assert journal.replay(steps) == journal.Replay(steps=len(steps), difference=None)
    with pytest.raises(RequestError, match="there is nothing left to search"):
        resume(
            brain.lab.transaction,
            brain.lab.catalogue,
            ResumeRequest(id=f"b{number}", boots=3, by="ada"),
        )


# --- merges ---------------------------------------------------------------------------------------


def of_branch(brain: MemoryBrain, merge: str) -> str:
    """What is said of the merge while bisection 2 searches its branch, and after that."""
    conclusion = brain.store.db.bisections[2].conclusion or {}
    (culprit,) = conclusion.get("culprits") or [None]
    reason = conclusion.get("reason")
    return of_merge(merge, "b2", brain.bisection(2).status, culprit, reason)


def test_a_blamed_merge_leads_into_its_branch_and_the_mail_names_the_commit_there(
    brain: MemoryBrain,
) -> None:
    base, merge, branch = brain.merge(
        plain(3, "main"),
        [*plain(3), FakeCommit(speed=86, title="slow in a branch"), *plain(2)],
        plain(3),
    )
    brain.watch(base)
    brain.run()
    assert (brain.culprit(1), brain.culprit(2)) == (merge, branch[3])
    with brain.store.transaction() as tx:
        assert [(b.id, of) for b, of in tx.bisections.branches_of(1)] == [(2, merge)]
        assert tx.swings.in_state("bisecting", "open") == []
        assert {s.id for s in tx.swings.of_bisection(2)} <= {s.id for s in brain.swings}
    assert of_branch(brain, merge) == (
        f"in the branch merged by {merge[:12]}: commit {branch[3][:12]} (slow in a branch)"
    )
    assert [incident.commit for incident in brain.incidents] == [branch[3]]
    (subject,) = brain.mails
    assert branch[3][:12] in subject


def until_the_branch_is_searched(brain: MemoryBrain) -> None:
    for _ in range(60):
        tick(brain.lab)
        if len(brain.store.db.bisections) == 2:
            break
        brain.fake.work()


def test_while_the_branch_is_searched_nobody_is_named(brain: MemoryBrain) -> None:
    base, merge, _ = brain.merge(
        plain(1, "main"), [*plain(2), FakeCommit(speed=86), *plain(2)], plain(1)
    )
    brain.watch(base)
    until_the_branch_is_searched(brain)
    assert (brain.bisection(1).status, brain.culprit(1)) == ("culprit", merge)
    assert "b2 searches the merged branch" in of_branch(brain, merge)
    assert brain.incidents == []


def test_a_merge_that_is_slow_by_itself_is_named_itself(brain: MemoryBrain) -> None:
    base, merge, _ = brain.merge(plain(2, "main"), plain(3), plain(2), clean=False)
    brain.watch(base)
    brain.run()
    assert (brain.culprit(1), brain.bisection(2).status) == (merge, "not_reproduced")
    assert of_branch(brain, merge).endswith("itself: neither side alone shows the change")
    assert [incident.commit for incident in brain.incidents] == [merge]
    assert len(brain.mails) == 1


def test_calling_off_the_search_of_a_branch_leaves_the_merge_as_the_culprit(
    brain: MemoryBrain,
) -> None:
    base, merge, _ = brain.merge(
        plain(1, "main"), [*plain(2), FakeCommit(speed=86), *plain(2)], plain(1)
    )
    brain.watch(base)
    until_the_branch_is_searched(brain)
    assert cancel_bisection(brain.lab.transaction, brain.lab.tools.git, 2) == "running"
    brain.run()
    assert [incident.commit for incident in brain.incidents] == [merge]
    assert brain.bisection(2).status == "cancelled"


@pytest.mark.parametrize(
    ("limit", "most"), [("WEB_BISECTED_COMMITS", 4), ("DAILY_REQUESTS", 1), ("", 0)]
)
def test_a_merge_asked_for_over_the_web_is_entered_within_the_limits_of_a_request(
    brain: MemoryBrain, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    """Who sends a merge chooses how many branches it has, and how long they are."""
    base, merge, branch = brain.merge(
        plain(1, "main"), [*plain(2), FakeCommit(speed=86), *plain(1)], plain(1)
    )
    brain.watch(base)
    with brain.store.transaction() as tx:
        new = NewToken(who="Ada", role=Role.SUBMITTER, digest="0" * 64, by="test")
        ada = Person(who="Ada", role=Role.SUBMITTER, token=create_token(tx.access, new))
    wanted = BisectionRequest(tree="fake", good=base, bad=f"{merge}~0", metric=METRIC, asked_by=ada)
    with prepared(brain.lab, wanted) as bisection:
        number = bisection.queue(60.0).number
    if limit:
        monkeypatch.setattr(enter_merges, limit, most)
    brain.run()
    assert brain.culprit(number) == merge
    with brain.store.transaction() as tx:
        below = [child.id for child, _ in tx.bisections.branches_of(number)]
        asked = tx.access.used("Ada").daily_requests
    assert (len(below), asked) == ((0, 1) if limit else (1, 2))
    assert [brain.culprit(child) for child in below] == branch[2:3] * len(below)
