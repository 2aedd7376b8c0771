"""Incidents: copies, expected levels, fixes, and what is mailed about them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from swingbot.service.incident.keep import say
from tests.fakelinux import FakeCommit
from tests.fakes.loop import METRIC, plain
from tests.fakes.memory_brain import MemoryBrain, letter_of, make_memory_brain

MONTH = timedelta(days=31)


@pytest.fixture
def brain(tmp_path: Path) -> MemoryBrain:
    return make_memory_brain(tmp_path, PROOF_GATES="", PROOF_REQUIRE="")


def found(brain: MemoryBrain) -> list[str]:
    """A branch whose third commit of five costs 12 %, found; the commits."""
    base = brain.git("rev-parse", "main")
    made = brain.commit(*plain(2), FakeCommit(speed=88), *plain(2))
    brain.watch(base)
    brain.run()
    return made


def found_and_mailed(brain: MemoryBrain) -> list[str]:
    made = found(brain)
    assert len(brain.mails) == 1
    return made


def mails(brain: MemoryBrain) -> list[tuple[str, str | None, str]]:
    """(subject, In-Reply-To, body on one line) of what was sent, oldest first."""
    return [
        (
            " ".join(str(letter["Subject"]).split()),
            letter["In-Reply-To"],
            " ".join(letter.get_content().split()),
        )
        for letter in brain.letters
    ]


def checks(brain: MemoryBrain) -> list[tuple[str, str]]:
    """Answer and words of each check of a fix."""
    events = brain.store.db.incident_events.values()
    return [(e.detail["answer"], e.reason or "") for e in events if e.act == "checked"]


def rebased_copy(brain: MemoryBrain, made: list[str], *after: FakeCommit) -> str:
    """Branch `next`: the culprit once more with another committer date, on the same parent, and
    commits after it."""
    return amended(brain, "next", made[2], "2031", *after)[0]


def amended(
    brain: MemoryBrain, branch: str, commit: str, year: str, *after: FakeCommit
) -> tuple[str, list[str]]:
    brain.git("checkout", "-q", "-b", branch, commit)
    brain.git("commit", "-q", "--amend", "--no-edit", "--date", f"{year}-01-01T00:00:00Z")
    copy = brain.git("rev-parse", "HEAD")
    assert copy != commit
    return copy, brain.commit(*after)


def test_a_rebased_copy_in_another_branch_is_one_incident_and_an_update_in_the_same_thread(
    brain: MemoryBrain,
) -> None:
    made = found_and_mailed(brain)
    copy = rebased_copy(brain, made, *plain(2))
    brain.watch(made[0], name="next", branch="next")
    brain.run()
    assert len(brain.incidents) == 1
    db = brain.store.db
    assert {db.variants[s.culprit].commit for s in db.sightings.values()} == {made[2], copy}
    (first, _, _), (update, parent, body) = mails(brain)
    assert update == f"Re: {first}"
    assert parent == "<i1.first.1@swingbot.localdomain>"
    assert f"A copy of it, {copy[:12]} (the same patch), is now in next, branch next" in body
    brain.run()
    assert len(brain.mails) == 2, "nothing is sent twice"


def test_the_mail_says_which_lines_of_the_configuration_the_commit_changed(
    brain: MemoryBrain,
) -> None:
    before = "CONFIG_SMP=y\nCONFIG_OTHER=250\n# CONFIG_GONE is not set\n"
    brain.fake.config = lambda state: "CONFIG_OTHER=9\n" if state["speed"] == 88 else before
    found_and_mailed(brain)
    ((_, _, body),) = mails(brain)
    assert (
        "kernel configuration: 2 symbols different from the parent's; kconfig sets CONFIG_SMP: y ->"
        " unknown compiler:" in body
    )


def test_equal_configurations_are_not_mentioned(brain: MemoryBrain) -> None:
    found_and_mailed(brain)
    assert "kernel configuration" not in mails(brain)[0][2]


def test_a_copy_found_while_the_first_mail_is_held_is_reported_in_the_mail_that_replaces_it(
    brain: MemoryBrain,
) -> None:
    brain.set(mail=replace(brain.lab.settings.mail, release="hold"))
    made = found(brain)
    copy = rebased_copy(brain, made, FakeCommit())
    brain.watch(made[0], name="next", branch="next")
    brain.run()
    first, second = brain.reports
    assert (first.kind, first.revision, first.state) == ("first", 1, "dropped")
    assert (second.kind, second.revision, second.state) == ("first", 2, "held")
    body = " ".join(letter_of(second).get_content().split())
    assert f"also in: next, branch next ({copy[:12]}: {METRIC} 12.0% worse)" in body
    assert brain.mails == []


def test_an_expected_change_is_not_opened_again_in_a_rebased_branch_and_a_second_loss_after_it_is(
    brain: MemoryBrain,
) -> None:
    made = found_and_mailed(brain)
    say(
        brain.lab.transaction,
        brain.lab.tools.git,
        1,
        "expected",
        who="otto@lab",
        reason="traded for latency",
    )
    rebased_copy(brain, made, *plain(2))
    brain.watch(made[0], name="next", branch="next")
    brain.run()
    assert len(brain.store.db.bisections) == 1
    (*_, last) = [swing for swing in brain.swings if swing.metric == METRIC]
    assert (last.state, last.source) == ("not_bisected", "expected")
    _, more = amended(
        brain, "later", made[2], "2032", FakeCommit(), FakeCommit(speed=80), FakeCommit()
    )
    brain.watch(made[0], name="later", branch="later")
    brain.run()
    assert [incident.commit for incident in brain.incidents] == [made[2], more[1]]
    assert brain.conclusion(2)["change_pct"] == pytest.approx(100 * (80 / 88 - 1), abs=0.3), (
        "held against the new level, not against the old one"
    )
    assert len(brain.mails) == 2


def test_a_fix_is_checked_at_the_first_tip_that_has_it_and_reported_once(
    brain: MemoryBrain,
) -> None:
    found_and_mailed(brain)
    fix = brain.commit(FakeCommit(), FakeCommit(speed=100), FakeCommit())[1]
    assert (
        say(
            brain.lab.transaction,
            brain.lab.tools.git,
            1,
            "fixed-by",
            who="otto@lab",
            reason=None,
            commit=fix,
        ).status
        == "open"
    )
    brain.run()
    assert brain.incidents[0].fix_check is None, "no tip has it yet"
    brain.poll()
    brain.run()
    assert brain.incidents[0].status == "fixed"
    assert [answer for answer, _ in checks(brain)] == ["back"]
    (first, _, _), (subject, parent, body) = mails(brain)
    assert (subject, parent) == (f"Re: {first}", "<i1.first.1@swingbot.localdomain>")
    assert body.startswith(
        f"Fixed: the change that we reported as {METRIC} 12.0% worse is gone at fake, branch main ("
    )
    assert fix[:12] in body
    brain.run()
    assert len(brain.mails) == 2


def test_a_fix_that_fixes_nothing_leaves_the_incident_open_with_a_note(brain: MemoryBrain) -> None:
    found_and_mailed(brain)
    (fix,) = brain.commit(FakeCommit())
    brain.poll()
    say(
        brain.lab.transaction,
        brain.lab.tools.git,
        1,
        "fixed-by",
        who="otto@lab",
        reason=None,
        commit=fix,
    )
    brain.run()
    assert brain.incidents[0].status == "open"
    ((answer, words),) = checks(brain)
    assert answer == "still"
    assert "-12.0 % at the tip" in words
    assert len(brain.mails) == 1


def test_what_is_still_there_after_a_while_is_said_once_at_a_tip_that_was_measured_anyway(
    brain: MemoryBrain,
) -> None:
    found_and_mailed(brain)
    reports = brain.store.db.reports
    for number, row in reports.items():  # the mail is old, the tip is not
        sent = row.sent_at - MONTH if row.sent_at else None
        reports[number] = replace(row, sent_at=sent, created_at=row.created_at - MONTH)
    boots = brain.booted
    brain.run()
    (first, _, _), (still, parent, body) = mails(brain)
    assert (still, parent) == (f"Re: {first}", "<i1.first.1@swingbot.localdomain>")
    assert body.startswith(
        f"Still present: the change that we reported as {METRIC} 12.0% worse still shows at fake, "
        "branch main ("
    )
    assert brain.booted == boots, "nothing was booted for it"
    brain.run()
    assert len(brain.mails) == 2
