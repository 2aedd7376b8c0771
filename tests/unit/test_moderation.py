"""Who may leave by himself: earned classes, doubts, improvements, the last look before a mail
leaves, the week's digest."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.mail.addresses import wants_none
from swingbot.core.mail.message import BODY_BYTES
from swingbot.core.model.statuses import GateStatus
from swingbot.core.moderation.improvements import Plausible, too_good, write_kind
from swingbot.core.moderation.ruling import ClassRecord, ReportClass, class_of, first_state
from swingbot.core.moderation.send_check import SendRules, why_not
from swingbot.core.report.mails.digest import Improvement, digest, span, week_name, weeks_due
from swingbot.core.text.plain import columns

KIND = ReportClass(
    metric="netperf.Throughput_Mbps", testbox="vm-icount", gates=("code", "reproduced")
)
EARNED, YOUNG = ClassRecord(released=20, dropped=1), ClassRecord(released=19)


@pytest.mark.parametrize(
    ("released", "dropped", "earned"),
    [
        (19, 0, False),
        (20, 0, True),
        (20, 1, True),
        (20, 2, False),
        (37, 2, False),
        (38, 2, True),
        (0, 0, False),
        (0, 50, False),
        (1000, 53, False),
    ],
)
def test_a_class_earns_its_release_by_twenty_released_and_one_in_twenty_dropped(
    released: int, dropped: int, earned: bool
) -> None:
    assert ClassRecord(released=released, dropped=dropped).earned is earned


@given(st.integers(0, 500), st.integers(0, 500))
def test_one_more_release_never_takes_an_earned_class_away_and_one_more_drop_never_gives_it(
    released: int, dropped: int
) -> None:
    record = ClassRecord(released=released, dropped=dropped)
    assert not record.earned or ClassRecord(released=released + 1, dropped=dropped).earned
    assert record.earned or not ClassRecord(released=released, dropped=dropped + 1).earned


def test_gates_that_passed_are_the_class_whatever_their_order() -> None:
    gates: list[tuple[str, GateStatus]] = [
        ("reproduced", "pass"),
        ("code", "pass"),
        ("layout", "fail"),
        ("tip", "not run"),
    ]
    assert (
        class_of(KIND.metric, KIND.testbox, gates)
        == class_of(KIND.metric, KIND.testbox, gates[::-1])
        == KIND
    )


@pytest.mark.parametrize(
    ("release", "record", "state"),
    [
        ("hold", EARNED, "held"),
        ("earned", EARNED, "queued"),
        ("earned", YOUNG, "held"),
        ("release", YOUNG, "queued"),
    ],
)
def test_a_report_begins_as_the_setting_and_the_record_say(
    release: str, record: ClassRecord, state: str
) -> None:
    assert first_state(release, KIND, record).state == state  # type: ignore[arg-type]  # a parameter of the test


@pytest.mark.parametrize("release", ["hold", "earned", "release"])
def test_a_doubt_goes_to_a_person_whatever_the_setting(release: str) -> None:
    ruling = first_state(release, KIND, EARNED, doubts=["layout or noise suspected"])  # type: ignore[arg-type]  # a parameter of the test
    assert (ruling.state, ruling.reason) == ("held", "layout or noise suspected")


def test_an_improvement_waits_for_its_digest() -> None:
    assert first_state("release", KIND, EARNED, told_in_digest=True).state == "draft"


def test_a_list_gets_so_many_mails_a_day() -> None:
    rules, recipients = SendRules(per_list=2), ["ada@example.org", "MM@lists.example.org"]
    assert why_not(recipients, ["mm@lists.example.org"], {"mm@lists.example.org": 1}, rules) is None
    full = why_not(recipients, ["mm@lists.example.org"], {"mm@lists.example.org": 2}, rules)
    assert full is not None and "MM@lists.example.org had 2 of 2" in full
    assert "raise mail.per_list" in full and "ada" not in full


def test_anyone_else_gets_so_many_mails_a_day_but_not_the_operator() -> None:
    rules = SendRules(per_recipient=10, operator=("Ops@example.org",))
    people = ["Ada@example.org", "bob@example.org"]
    assert why_not(people, [], {"ada@example.org": 9}, rules) is None
    full = why_not(people, [], {"ada@example.org": 10, "bob@example.org": 3}, rules)
    assert full == (
        "Ada@example.org had 10 of 10 mails in the last 24 hours: release it again later, or raise"
        " mail.per_recipient"
    )
    assert why_not(["ops@example.org"], [], {"ops@example.org": 500}, rules) is None
    both = why_not(
        [*people, "mm@lists.example.org"],
        ["mm@lists.example.org"],
        {"ada@example.org": 10, "mm@lists.example.org": 5},
        rules,
    )
    assert both is not None and "raise mail.per_recipient and mail.per_list" in both


def test_who_asked_for_no_mail_after_it_was_written_gets_none() -> None:
    for entry in ("Ada@Example.org", "@example.org"):
        why = why_not(["ada@example.org"], [], {}, SendRules(opt_outs=(entry,)))
        assert why is not None and "opted out of mail" in why
    assert not wants_none("ada@example.org.uk", ["@example.org"])


@pytest.mark.parametrize(
    ("job", "kind"),
    [
        ("will-it-scale-write1-process", "buffered"),
        ("fio-fsync-4k", "synced"),
        ("aim7-sync_disk_rw", "synced"),
        ("will-it-scale-pread1-process", None),
        ("netperf-TCP_STREAM", None),
        ("will-it-scale-unlink2-thread", "buffered"),
        ("rwsem-reader", None),
    ],
)
def test_what_writes_is_known_by_its_name(job: str, kind: str | None) -> None:
    assert write_kind(job, "x.ops") == kind


@pytest.mark.parametrize(
    ("job", "better", "change", "suspicious"),
    [
        ("fio-fsync", "higher", 20.0, False),
        ("fio-fsync", "higher", 22.6, True),
        ("will-it-scale-write1", "higher", 49.0, False),
        ("will-it-scale-write1", "higher", 51.0, True),
        ("fio-fsync", "lower", -16.0, False),  # latency: 100/84 is 19 % faster
        ("fio-fsync", "lower", -17.0, True),  # 100/83 is 20.5 % faster
        ("fio-fsync", "higher", -90.0, False),
        ("netperf-TCP_STREAM", "higher", 500.0, False),
        ("fio-fsync", None, 500.0, False),
        ("fio-fsync", "lower", -100.0, False),
        ("fio-fsync", "higher", None, False),
    ],
)
def test_a_write_that_gets_faster_than_it_plausibly_can_is_reported_alone(
    job: str, better: str | None, change: float | None, suspicious: bool
) -> None:
    found = too_good(job, "x", better, change, Plausible())
    assert (found is not None) is suspicious
    assert found is None or "skipped?" in found


MONDAY = date(2026, 11, 16)


def test_a_week_is_due_when_it_is_over_and_once() -> None:
    early, late = (
        datetime(2026, 11, 23, 5, 59, tzinfo=UTC),
        datetime(2026, 11, 23, 6, 0, tzinfo=UTC),
    )
    assert MONDAY not in weeks_due(early, ())
    assert weeks_due(late, ())[-1] == MONDAY
    assert len(weeks_due(late, ())) == 4
    assert weeks_due(late, weeks_due(late, ())) == []


def test_weeks_follow_each_other_without_a_gap() -> None:
    assert span(MONDAY)[1] == span(MONDAY + timedelta(weeks=1))[0]
    assert week_name(MONDAY) == "2026-W47"
    assert week_name(date(2024, 12, 30)) == "2025-W01"


def an_improvement(n: int = 1, **more: str) -> Improvement:
    facts = {
        "tree": "mm",
        "branch": "master",
        "testbox": "vm-icount",
        "label": "emulated",
        "unit_job": "page-fault-1",
        "metric": f"page-fault.ops_{n}",
    }
    return Improvement(
        change_pct=5.0 + n,
        base="a" * 40,
        head="b" * 40,
        page=f"/comparison/c{n}",
        **{**facts, **more},
    )


def test_a_digest_tells_the_largest_first_and_whose_commit_it_was() -> None:
    mail = digest(
        MONDAY,
        [an_improvement(1), an_improvement(2, commit="c" * 40, subject="mm: faster")],
        url="http://lab.example.org",
        contact="Ada",
    )
    assert mail.subject == "[swingbot] 2026-W47: 2 improvements in 1 tree"
    assert mail.body.index("ops_2 7.0% better") < mail.body.index("ops_1 6.0% better")
    assert (
        'by cccccccccccc ("mm: faster")' in mail.body
        and "between aaaaaaaaaaaa and bbbbbbbbbbbb" in mail.body
    )
    assert "http://lab.example.org/comparison/c1" in mail.body


def test_a_digest_stays_small_and_its_lines_short_whatever_it_tells() -> None:
    hostile = "\u202e" + "漢\n" * 1000 + "<script>"
    many = [
        an_improvement(
            n,
            tree=f"{n}{hostile}",
            subject=hostile,
            commit="c" * 40,
            unit_job=hostile,
            label=hostile,
        )
        for n in range(300)
    ]
    mail = digest(MONDAY, many, url="http://lab.example.org", contact=hostile)
    assert len(mail.body.encode()) <= BODY_BYTES
    assert all(columns(line) <= 78 for line in mail.body.split("\n"))
    assert "more. All comparisons" in mail.body and "\u202e" not in mail.body
