"""From a culprit to its recipients: the whole way without the dry run, and each rule on a lab
that stands still."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.adapters import maildir
from swingbot.app.cli import main
from swingbot.app.settings import load
from swingbot.core.mail.message import PostedMail
from swingbot.core.mail.recipients import MaintainerEntry, NoMaintainers
from swingbot.core.model.comparison_row import ComparisonRow, Side
from swingbot.core.moderation.aa_record import AaRules
from swingbot.core.moderation.filing import MailRules
from swingbot.service.ports import Lab, RequestError
from swingbot.service.report.address import recipients_of, within
from swingbot.service.report.draft_digests import draft_digests
from swingbot.service.report.find_posting import posting_of
from swingbot.service.report.moderate import DraftedMail, file_report
from swingbot.service.report.readdress import readdress, readdressed
from swingbot_db import read
from swingbot_jobs.testbox.definition import CommandDriver
from tests import builders as make
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.loop import METRIC
from tests.fakes.mail import brain_environment, running_smtpd

AUTHOR, BASE = "Ada Author <ada@example.org>", "b" * 40
MAINTAINER, LIST = (
    MaintainerEntry(address="max@example.org", role="maintainer"),
    MaintainerEntry(address="mm@lists.example.org", role="list"),
)


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[Brain]:
    settings = load(
        environ=brain_environment(tmp_path / "state", db_url)
        | {"SWINGBOT_MAIL_DRY_RUN": "false", "SWINGBOT_MAIL_LIST_ID": "reports.example.org"}
        | {"SWINGBOT_MAIL_VIRTUAL_TESTBOXES": "vm-*"}
    )
    repo = tmp_path / "linux"
    make_fakelinux(repo, [])
    with running_smtpd(settings):
        yield make_brain(settings, engine, repo)


def a_lab(brain: Brain, *listed: MaintainerEntry, problem: str = "", **mail: Any) -> Lab:
    def maintainers(commit: str, base: str) -> tuple[MaintainerEntry, ...]:
        assert base != commit
        if problem:
            raise NoMaintainers(problem)
        return listed

    settings = dataclasses.replace(brain.lab.settings, mail=MailRules(**mail))
    tools = dataclasses.replace(brain.lab.tools, maintainers=maintainers)
    return dataclasses.replace(brain.lab, settings=settings, tools=tools)


def a_row(**more: Any) -> ComparisonRow:
    side = Side(boots=3, runs=9, mean=100.0, stddev=1.0)
    facts: dict[str, Any] = {
        "testbox": "vm-icount",
        "label": "",
        "unit_job": "page-fault-1",
        "metric": METRIC,
        "unit": "ops",
        "sentence": "",
        "better": "higher",
    }
    return ComparisonRow(
        **(
            facts
            | {
                "base": side,
                "head": side,
                "change_pct": -12.0,
                "interval_pct": None,
                "verdict": "worse",
            }
            | more
        )
    )


def test_without_the_dry_run_the_author_of_the_culprit_gets_the_mail(brain: Brain) -> None:
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    add_commits(brain.repo, [FakeCommit(), FakeCommit(speed=88), FakeCommit()])
    brain.watch(base)
    brain.run()
    (letter,) = maildir.letters(brain.settings.maildir)
    mail, report = message_from_bytes(letter.path.read_bytes(), policy=default), brain.facts("r")
    assert mail["To"] == report["to"][0] and report["to"] == report["would_to"] != list(
        brain.lab.settings.recipients
    )
    assert (
        not report["dry_run"]
        and mail["List-Id"] == "<reports.example.org>"
        and mail["Auto-Submitted"] == "auto-generated"
    )
    assert report["class"]["metric"] == METRIC
    # the same mail to the operator, as a dry run would have had it
    lab = a_lab(brain)
    with brain.lab.transaction("test") as tx:
        stored = tx.outbox.written(1)
    assert stored is not None
    # MAINTAINERS of the tree's base, and not of a commit of the range
    assert stored.base == base != stored.commit
    addressed, message = readdressed(lab.tools, lab.settings, lab.clock, "r1", stored)
    assert addressed.to == brain.lab.settings.recipients
    assert message.partition(b"\r\n\r\n")[2] == stored.message.partition(b"\r\n\r\n")[2]
    assert letter.message_id.encode() in message
    with pytest.raises(RequestError, match="cannot readdress r1, which is sent"):
        readdress(lab, 1, "ada")


def swingbot(brain: Brain, db_url: str, *words: str) -> str:
    env = brain_environment(Path(brain.settings.paths.state), db_url)
    result = CliRunner().invoke(main, words, env=env)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_report_about_a_virtual_testbox_that_no_setting_names_goes_to_the_operator(
    brain: Brain, db_url: str
) -> None:
    aa = AaRules(virtual=("vm-smp*",))
    strict = dataclasses.replace(
        brain.lab.settings, mail=dataclasses.replace(brain.lab.settings.mail, aa=aa, release="hold")
    )
    brain.lab = dataclasses.replace(brain.lab, settings=strict)
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    add_commits(brain.repo, [FakeCommit(), FakeCommit(speed=88), FakeCommit()])
    brain.watch(base)
    brain.run()
    report, operator = brain.facts("r"), list(strict.recipients)
    assert (report["to"], report["state"]) == (operator, "held")
    assert report["would_to"] not in ([], operator)
    assert "vm-icount is a virtual testbox" in report["restricted"]
    with brain.engine.connect() as conn:
        assert read.waiting(conn)["held"][0]["restricted"] == report["restricted"]
        (listed,) = read.incident(conn, 1)["report_list"]
        assert listed["restricted"] == report["restricted"]
    said = swingbot(brain, db_url, "report", "release", "r1")
    assert said.startswith("r1 is queued\nit goes to mail.to alone: vm-icount is a virtual")
    assert "\nto mail.to alone: vm-icount" in swingbot(brain, db_url, "report", "show", "r1")
    # The setting names it, and a person has the recipients computed again.
    swingbot(brain, db_url, "report", "hold", "r1", "--reason", "the setting is changed")
    named = dataclasses.replace(strict.mail, aa=AaRules(virtual=("vm-*",)))
    readdress(
        dataclasses.replace(brain.lab, settings=dataclasses.replace(strict, mail=named)), 1, "ada"
    )
    after = brain.facts("r")
    assert (after["to"], after["restricted"]) == (report["would_to"], None)


def held_for_the_author(brain: Brain) -> None:
    """r1, which waits for a person and is addressed to the author of the culprit."""
    rules = dataclasses.replace(brain.lab.settings.mail, release="hold")
    set_rules(brain, rules)
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    add_commits(brain.repo, [FakeCommit(), FakeCommit(speed=88), FakeCommit()])
    brain.watch(base)
    brain.run()
    report = brain.facts("r")
    assert (report["state"], report["restricted"]) == ("held", None)
    assert report["to"] != list(brain.lab.settings.recipients)


def set_rules(brain: Brain, rules: MailRules) -> None:
    settings = dataclasses.replace(brain.lab.settings, mail=rules)
    brain.lab = dataclasses.replace(brain.lab, settings=settings)


def test_a_report_about_a_testbox_quarantined_after_it_was_held_does_not_leave(
    brain: Brain, db_url: str
) -> None:
    held_for_the_author(brain)
    swingbot(brain, db_url, "testbox", "quarantine", "vm-icount", "--reason", "a fan is broken")
    swingbot(brain, db_url, "report", "release", "r1")
    brain.send()
    report = brain.facts("r")
    assert report["state"] == "held" and maildir.letters(brain.settings.maildir) == []
    assert "vm-icount is quarantined (a fan is broken)" in report["reason"]
    assert "release r1 again when that is over" in report["reason"]
    swingbot(brain, db_url, "testbox", "resume", "vm-icount")
    swingbot(brain, db_url, "report", "release", "r1")
    brain.send()
    (letter,) = maildir.letters(brain.settings.maildir)
    assert brain.facts("r")["state"] == "sent" and report["to"][0].encode() in (
        letter.path.read_bytes()
    )


def an_anchor(brain: Brain) -> int:
    """Two boots of the base on vm-icount that claim no change."""
    with brain.engine.begin() as conn:
        of = conn.execute(
            sa.text(
                "SELECT v.tree, v.id, v.commit, v.build_key, x.image_sha256, x.spec FROM boot x"
                " JOIN variant v ON v.build_key = x.build_key ORDER BY x.id LIMIT 1"
            )
        ).one()
        kernel = make.Kernel(
            variant=of.id, commit=of.commit, build_key=of.build_key, image=of.image_sha256
        )
        testbox = make.Testbox(name="vm-icount", spec=of.spec)
        number = make.a_comparison(conn, of.tree, kernel, kernel, [testbox], kind="anchor")
        for k in range(2):
            make.a_boot(conn, testbox, kernel, k=k, series=f"c{number}")
    return number


def test_a_report_leaves_by_the_record_that_its_testbox_has_when_it_is_sent(
    brain: Brain, db_url: str
) -> None:
    held_for_the_author(brain)
    present = brain.lab.catalogue.testboxes.present
    rack = dataclasses.replace(present["vm-icount"], driver=CommandDriver(argv=("/bin/false",)))
    known = dataclasses.replace(
        brain.lab.catalogue.testboxes, present={**present, "vm-icount": rack}
    )
    catalogue = dataclasses.replace(brain.lab.catalogue, testboxes=known)
    brain.lab = dataclasses.replace(brain.lab, catalogue=catalogue)
    record = AaRules(pairs=1, days=1)
    set_rules(brain, dataclasses.replace(brain.lab.settings.mail, aa=record))
    first = an_anchor(brain)
    with brain.lab.transaction("test") as tx:
        tx.anchors.mark(first, "its level moved")
    swingbot(brain, db_url, "report", "release", "r1")
    brain.send()
    report = brain.facts("r")
    assert report["state"] == "held" and maildir.letters(brain.settings.maildir) == []
    assert (
        f"the A/A record of vm-icount has 0 of 1 pairs of boots of one kernel, on 0 of 1 days since"
        f" anchor c{first} (its level moved)" in report["reason"]
    )
    an_anchor(brain)
    swingbot(brain, db_url, "report", "release", "r1")
    brain.send()
    assert brain.facts("r")["state"] == "sent"
    assert len(maildir.letters(brain.settings.maildir)) == 1


def test_each_rule_of_who_gets_a_mail(brain: Brain) -> None:
    operator = brain.lab.settings.recipients
    dry = recipients_of(
        a_lab(brain, MAINTAINER, LIST).tools,
        a_lab(brain, MAINTAINER, LIST).settings,
        "mm",
        "c" * 40,
        AUTHOR,
        BASE,
    )
    assert (dry.to, dry.cc, dry.would_to, dry.would_cc) == (
        operator,
        (),
        ("ada@example.org",),
        ("max@example.org", "mm@lists.example.org"),
    )
    real = recipients_of(
        a_lab(brain, MAINTAINER, LIST, dry_run=False).tools,
        a_lab(brain, MAINTAINER, LIST, dry_run=False).settings,
        "mm",
        "c" * 40,
        AUTHOR,
        BASE,
    )
    assert (real.to, real.cc, real.lists) == (
        ("ada@example.org",),
        ("max@example.org", "mm@lists.example.org"),
        ("mm@lists.example.org",),
    )
    assert real.commit_only == ("ada@example.org",)
    private = recipients_of(
        a_lab(brain, MAINTAINER, LIST, dry_run=False, private_trees=("dev-*",)).tools,
        a_lab(brain, MAINTAINER, LIST, dry_run=False, private_trees=("dev-*",)).settings,
        "dev-ada",
        "c" * 40,
        AUTHOR,
        BASE,
    )
    assert (private.to, private.cc) == (("ada@example.org",), ())
    hung = recipients_of(
        a_lab(brain, problem="it hung", dry_run=False).tools,
        a_lab(brain, problem="it hung", dry_run=False).settings,
        "mm",
        "c" * 40,
        AUTHOR,
        BASE,
    )
    assert (hung.to, hung.cc, hung.problem) == (
        ("ada@example.org",),
        (),
        "maintainers and lists are unknown: it hung",
    )
    no_address = recipients_of(
        a_lab(brain, LIST, dry_run=False).tools,
        a_lab(brain, LIST, dry_run=False).settings,
        "mm",
        "c" * 40,
        "No One",
        BASE,
    )
    assert (no_address.to, no_address.would_to) == (operator, ())


def test_people_whom_only_the_commit_names_are_shown_to_the_moderator(brain: Brain) -> None:
    message = "mm: x\n\nSigned-off-by: E <eve@example.org>\nReviewed-by: M <max@example.org>\n"
    git = brain.lab.tools.git
    lab = a_lab(brain, MAINTAINER, LIST, dry_run=False)
    with mock.patch.object(type(git), "message", return_value=message):
        found = recipients_of(lab.tools, lab.settings, "mm", "c" * 40, AUTHOR, BASE)
    assert (found.to, found.cc) == (
        ("ada@example.org",),
        ("max@example.org", "mm@lists.example.org"),
    )
    assert found.commit_only == ("ada@example.org",)
    assert found.left_out == (
        ("eve@example.org", "only the commit's own trailers name this address"),
    )


def test_what_a_person_must_look_at_is_held_whatever_the_setting(brain: Brain) -> None:
    whom: dict[str, Any] = {"tree": "mm", "commit": "c" * 40, "author": AUTHOR, "base": BASE}
    with brain.lab.transaction("read") as tx:
        lab = a_lab(brain, MAINTAINER, release="release")
        assert (
            file_report(
                lab.tools, lab.settings, tx.reports, DraftedMail(**whom, headline=a_row())
            ).state
            == "queued"
        )
        assert (
            file_report(
                lab.tools,
                lab.settings,
                tx.reports,
                DraftedMail(**whom, headline=a_row(), shown=False),
            ).state
            == "held"
        )
        assert (
            file_report(
                lab.tools,
                lab.settings,
                tx.reports,
                DraftedMail(**whom, headline=a_row(), unproven="layout failed"),
            ).reason
            == "layout failed"
        )
        assert (
            "it has no recipient (No One: the commit has no author"
            in file_report(
                a_lab(brain, release="release").tools,
                a_lab(brain, release="release").settings,
                tx.reports,
                DraftedMail(
                    **whom | {"author": "No One"},
                    headline=a_row(),
                ),
            ).reason
        )
        faster = a_row(change_pct=30.0, verdict="better")
        assert (
            file_report(
                lab.tools, lab.settings, tx.reports, DraftedMail(**whom, headline=faster)
            ).state
            == "draft"
        )
        assert (
            file_report(
                lab.tools,
                lab.settings,
                tx.reports,
                DraftedMail(**whom, headline=faster, alone=True),
            ).state
            == "queued"
        )
        assert (
            file_report(
                a_lab(brain, MAINTAINER, release="release", digest=False).tools,
                a_lab(brain, MAINTAINER, release="release", digest=False).settings,
                tx.reports,
                DraftedMail(
                    **whom,
                    headline=faster,
                ),
            ).state
            == "queued"
        )
        synced = file_report(
            lab.tools,
            lab.settings,
            tx.reports,
            DraftedMail(
                **whom,
                headline=a_row(change_pct=30.0, verdict="better", unit_job="fio-fsync"),
            ),
        )
        assert synced.state == "held" and "skipped?" in synced.reason


def test_nobody_gets_an_answer_to_a_mail_that_he_did_not_get(brain: Brain) -> None:
    operator = brain.lab.settings.recipients
    real = recipients_of(
        a_lab(brain, MAINTAINER, LIST, dry_run=False).tools,
        a_lab(brain, MAINTAINER, LIST, dry_run=False).settings,
        "mm",
        "c" * 40,
        AUTHOR,
        BASE,
    )
    after_dry_run = within(real, operator, operator)
    assert (after_dry_run.to, after_dry_run.cc, after_dry_run.dry_run, after_dry_run.would_to) == (
        operator,
        (),
        True,
        ("ada@example.org",),
    )
    after_some = within(real, ("Ada@example.org", "mm@lists.example.org"), operator)
    assert (after_some.to, after_some.cc, after_some.dry_run) == (
        ("ada@example.org",),
        ("mm@lists.example.org",),
        False,
    )
    assert ("max@example.org", "did not get the first mail of this thread") in after_some.left_out
    dry = recipients_of(
        a_lab(brain, MAINTAINER).tools,
        a_lab(brain, MAINTAINER).settings,
        "mm",
        "c" * 40,
        AUTHOR,
        BASE,
    )
    assert within(dry, ("ada@example.org",), operator).to == operator


def test_a_report_answers_the_posting_that_the_archive_has(brain: Brain) -> None:
    asked: list[tuple[str, str, str]] = []

    def archive(message_id: str, subject: str, author: str) -> PostedMail | None:
        asked.append((message_id, subject, author))
        return (
            None
            if subject == "unknown"
            else PostedMail(
                message_id="<1@example.org>", subject="[PATCH] x", references=("<0@example.org>",)
            )
        )

    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    tools = dataclasses.replace(brain.lab.tools, list_archive=archive)
    lab = dataclasses.replace(brain.lab, tools=tools)
    assert posting_of(lab.tools, base, "x", AUTHOR) == PostedMail(
        message_id="<1@example.org>", subject="[PATCH] x", references=("<0@example.org>",)
    )
    assert posting_of(lab.tools, base, "unknown", AUTHOR) is None
    assert posting_of(brain.lab.tools, base, "x", AUTHOR) is None
    assert asked == [("", "x", AUTHOR), ("", "unknown", AUTHOR)]


def test_a_week_with_improvements_gets_one_digest_and_one_without_gets_none(
    brain: Brain, conn: sa.Connection
) -> None:
    monday = datetime(2026, 11, 16, tzinfo=UTC)
    tree = make.a_tree(conn)
    testbox = make.a_testbox(conn, "vm-tcg")
    kernels = [make.a_kernel(conn, tree, n) for n in range(2)]
    comparison = make.a_comparison(
        conn,
        tree,
        kernels[0],
        kernels[1],
        [testbox],
        kind="watch",
        status="done",
        ended_at=monday + timedelta(days=2),
    )
    make.a_row(conn, comparison, testbox)
    make.a_swing(
        conn, comparison, testbox, change_pct=9.0, direction="better", state="not_bisected"
    )

    def drafted(lab: Lab, at: datetime) -> list[tuple[Any, ...]]:
        with lab.transaction("draft digests") as tx:
            draft_digests(lab.catalogue.testboxes, lab.settings, lambda: at, tx.reports, tx.anchors)
        return [
            tuple(row)
            for row in conn.execute(
                sa.text(
                    "SELECT kind, state, week::text, to_addrs, would_to FROM report ORDER BY id"
                )
            )
        ]

    lab = a_lab(brain, release="release", digest_to=("readers@example.org",))
    over = monday + timedelta(weeks=1, hours=6)
    assert drafted(lab, over - timedelta(minutes=1)) == []
    assert drafted(a_lab(brain, digest=False), over) == []
    expected = [
        (
            "digest",
            "queued",
            "2026-11-16",
            list(brain.lab.settings.recipients),
            ["readers@example.org"],
        )
    ]
    assert (
        drafted(lab, over)
        == drafted(lab, over)
        == drafted(lab, over + timedelta(weeks=2))
        == expected
    )
    with brain.engine.connect() as connection:
        (mail,) = connection.execute(sa.text("SELECT message FROM outbox")).scalars()
    assert (
        b"9.0% better" in bytes(mail)
        and b"Message-ID: <2026-W47.digest.1@" in bytes(mail)
        and len(mail) < 10_000
    )
