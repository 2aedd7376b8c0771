"""Incidents through the whole brain, on real git repositories, a real database and a real mail
server: copies, expected levels, fixes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes
from pathlib import Path

import pytest
import sqlalchemy as sa

from swingbot.adapters.maildir import letters
from swingbot.app.settings import load
from swingbot.service.incident.keep import say
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.loop import METRIC
from tests.fakes.mail import brain_environment, running_smtpd

AUTHOR = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[Brain]:
    settings = load(
        environ=brain_environment(tmp_path / "state", db_url)
        | {"SWINGBOT_PROOF_GATES": "", "SWINGBOT_PROOF_REQUIRE": ""}
    )
    repo = tmp_path / "linux"
    make_fakelinux(repo, [])
    with running_smtpd(settings):
        yield make_brain(settings, engine, repo)


def git(brain: Brain, *words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(brain.repo), *AUTHOR, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


def found(brain: Brain) -> list[str]:
    """A branch whose third commit of five costs 12 %, found; the commits."""
    base = git(brain, "rev-parse", "main")
    made = add_commits(
        brain.repo, [FakeCommit(), FakeCommit(), FakeCommit(speed=88), FakeCommit(), FakeCommit()]
    )
    brain.watch(base)
    brain.run()
    return made


def found_and_mailed(brain: Brain) -> list[str]:
    made = found(brain)
    assert len(brain.mails) == 1
    return made


def mails(brain: Brain) -> list[tuple[str, str | None, str]]:
    """(subject, In-Reply-To, body on one line) of what was delivered, oldest first."""
    found = []
    for path in sorted(
        (brain.settings.maildir / "new").iterdir(), key=lambda file: file.stat().st_mtime_ns
    ):
        message = message_from_bytes(path.read_bytes())
        body = message.get_payload(decode=True)
        assert isinstance(body, bytes)
        found.append(
            (
                " ".join(str(message["Subject"]).split()),
                message["In-Reply-To"],
                " ".join(body.decode().split()),
            )
        )
    return found


def rows(brain: Brain, sql: str) -> list[tuple[object, ...]]:
    with brain.engine.connect() as conn:
        return [tuple(row) for row in conn.execute(sa.text(sql))]


def rebased_copy(brain: Brain, made: list[str], *after: FakeCommit) -> str:
    """Branch `next`: the culprit once more with another committer date, on the same parent, and
    commits after it."""
    git(brain, "checkout", "-q", "-b", "next", made[2])
    git(brain, "commit", "-q", "--amend", "--no-edit", "--date", "2031-01-01T00:00:00Z")
    copy = git(brain, "rev-parse", "HEAD")
    add_commits(brain.repo, after)
    assert copy != made[2]
    return copy


def test_a_rebased_copy_in_another_branch_is_one_incident_and_an_update_in_the_same_thread(
    brain: Brain,
) -> None:
    made = found_and_mailed(brain)
    copy = rebased_copy(brain, made, FakeCommit(), FakeCommit())
    brain.watch(git(brain, "rev-parse", f"{made[0]}"), name="next", branch="next")
    brain.run()
    assert rows(brain, "SELECT count(*) FROM incident") == [(1,)]
    assert {
        commit
        for (commit,) in rows(
            brain, "SELECT v.commit FROM sighting s JOIN variant v ON v.id = s.culprit"
        )
    } == {made[2], copy}
    (first, _, _), (update, parent, body) = mails(brain)
    assert update == f"Re: {first}"
    assert parent == "<i1.first.1@swingbot.localdomain>"
    assert f"A copy of it, {copy[:12]} (the same patch), is now in next, branch next" in body
    brain.run()
    assert len(brain.mails) == 2, "nothing is sent twice"


def test_a_copy_found_while_the_first_mail_is_held_is_reported_in_the_mail_that_replaces_it(
    brain: Brain,
) -> None:
    settings = replace(brain.lab.settings, mail=replace(brain.lab.settings.mail, release="hold"))
    brain.lab = replace(brain.lab, settings=settings)
    made = found(brain)
    copy = rebased_copy(brain, made, FakeCommit())
    brain.watch(made[0], name="next", branch="next")
    brain.run()
    assert rows(brain, "SELECT kind, revision, state FROM report ORDER BY id") == [
        ("first", 1, "dropped"),
        ("first", 2, "held"),
    ]
    assert f"also in: next, branch next ({copy[:12]}: {METRIC} 12.0% worse)" in " ".join(
        brain.facts("r", 2)["body"].split()
    )
    assert brain.mails == []


def test_an_expected_change_is_not_opened_again_in_a_rebased_branch_and_a_second_loss_after_it_is(
    brain: Brain,
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
    rebased_copy(brain, made, FakeCommit(), FakeCommit())
    brain.watch(made[0], name="next", branch="next")
    brain.run()
    assert rows(brain, "SELECT count(*) FROM bisection") == [(1,)]
    assert rows(
        brain, f"SELECT state, source FROM swing WHERE metric = '{METRIC}' ORDER BY id DESC LIMIT 1"
    ) == [("noted", "expected")]
    git(brain, "checkout", "-q", "-b", "later", made[2])
    git(brain, "commit", "-q", "--amend", "--no-edit", "--date", "2032-01-01T00:00:00Z")
    more = add_commits(brain.repo, [FakeCommit(), FakeCommit(speed=80), FakeCommit()])
    brain.watch(made[0], name="later", branch="later")
    brain.run()
    assert rows(
        brain, "SELECT v.commit FROM incident i JOIN variant v ON v.id = i.culprit ORDER BY i.id"
    ) == [(made[2],), (more[1],)]
    assert brain.facts("b", 2)["change_pct"] == pytest.approx(100 * (80 / 88 - 1), abs=0.3), (
        "held against the new level, not against the old one"
    )
    assert len(brain.mails) == 2


def test_a_fix_is_checked_at_the_first_tip_that_has_it_and_reported_once(brain: Brain) -> None:
    found_and_mailed(brain)
    fix = add_commits(brain.repo, [FakeCommit(), FakeCommit(speed=100), FakeCommit()])[1]
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
    assert brain.facts("i")["fix_check"] is None, "no tip has it yet"
    brain.poll()
    brain.run()
    facts = brain.facts("i")
    assert facts["status"] == "fixed"
    checked = [event for event in facts["history"] if event["act"] == "checked"]
    assert [event["detail"]["answer"] for event in checked] == ["back"]
    (first, _, _), (subject, parent, body) = mails(brain)
    assert (subject, parent) == (f"Re: {first}", "<i1.first.1@swingbot.localdomain>")
    assert " ".join(body.split()).startswith(
        f"Fixed: the change that we reported as {METRIC} 12.0% worse is gone at fake, branch main ("
    )
    assert fix[:12] in body
    brain.run()
    assert len(brain.mails) == 2


def test_a_fix_that_fixes_nothing_leaves_the_incident_open_with_a_note(brain: Brain) -> None:
    found_and_mailed(brain)
    fix = add_commits(brain.repo, [FakeCommit()])[0]
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
    facts = brain.facts("i")
    assert facts["status"] == "open"
    (checked,) = [event for event in facts["history"] if event["act"] == "checked"]
    assert checked["detail"]["answer"] == "still"
    assert "-12.0 % at the tip" in checked["reason"]
    assert len(brain.mails) == 1


def test_what_is_still_there_after_a_while_is_said_once_at_a_tip_that_was_measured_anyway(
    brain: Brain,
) -> None:
    found_and_mailed(brain)
    with brain.engine.begin() as conn:
        conn.execute(
            sa.text(
                "UPDATE report SET sent_at = sent_at - interval '31 days', created_at = "
                "created_at - interval '31 days'"
            )
        )
    boots = len(brain.fake.done)
    brain.run()
    (first, _, _), (still, parent, body) = mails(brain)
    assert (still, parent) == (f"Re: {first}", "<i1.first.1@swingbot.localdomain>")
    assert " ".join(body.split()).startswith(
        f"Still present: the change that we reported as {METRIC} 12.0% worse still shows at fake, "
        "branch main ("
    )
    assert len(brain.fake.done) == boots, "nothing was booted for it"
    brain.run()
    assert len(brain.mails) == 2
    assert len(letters(brain.settings.maildir)) == 2
