"""The mail's words: goldens, and what holds for whatever strangers write into a commit."""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from swingbot.core.mail.message import BODY_BYTES, PostedMail
from swingbot.core.model.comparison_row import ComparisonRow, Side, Tail
from swingbot.core.model.statuses import GateAnswer
from swingbot.core.proof.clues import Clue, ClueKind
from swingbot.core.report.mails.first import mail, subsystem
from swingbot.core.report.report_facts import (
    BisectionSummary,
    Commit,
    Gate,
    ReportFacts,
)
from swingbot.core.text import numbers, plain
from swingbot_jobs import codec
from swingbot_jobs.codec import BadDocument, typed
from tests.amount import examples
from tests.golden.remake import REPORTS, report_facts, report_text, text_of

DOCUMENTS = sorted(REPORTS.glob("*.in.yaml"))
# No shrinking: these facts are large, and a failure names the line that broke the rule.
QUICK = settings(
    max_examples=examples(60),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_mail_reads_as_its_golden(document: Path) -> None:
    assert report_text(document) == text_of(document).read_text(encoding="utf-8"), (
        "run `make golden` and read the diff"
    )


def test_there_is_no_golden_without_facts() -> None:
    assert {text_of(document) for document in DOCUMENTS} == set(REPORTS.glob("*.txt"))
    assert len(DOCUMENTS) >= 4


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_printed_percentage_can_be_recomputed_from_the_printed_levels(document: Path) -> None:
    shown = re.findall(
        r"^ .*?(\S+) \+- +\S+ +(\S+) \+- +\S+ +\d+\+\d+ +\d+\+\d+\n +in [^:]+: (?:([\d.]+)% )?",
        text_of(document).read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert shown
    for parent, commit, printed in shown:
        if printed:
            assert 100 * abs(float(commit) / float(parent) - 1) == pytest.approx(
                float(printed), abs=0.06
            )


A_SIDE = Side(boots=3, runs=9, mean=100.0, stddev=1.5)


def a_row(**changes: Any) -> ComparisonRow:
    row = ComparisonRow(
        testbox="box",
        label="",
        unit_job="job-1",
        metric="program.metric",
        unit="ops/s",
        sentence="What it is.",
        better="higher",
        base=A_SIDE,
        head=replace(A_SIDE, mean=90.0),
        change_pct=-10.0,
        interval_pct=(-11.0, -9.0),
        verdict="worse",
    )
    return replace(row, **changes)


def the_facts(**changes: Any) -> ReportFacts:
    facts = ReportFacts(
        report="r1",
        tree="tree",
        url="https://git.example.org/linux.git",
        branch="master",
        culprit=Commit(sha="a" * 40, subject="mm: break it", author="A <a@example.org>"),
        parent="b" * 40,
        base="c" * 40,
        head="d" * 40,
        headline=a_row(),
        bisection=BisectionSummary(
            id="b1", candidates=20, boots=9, kernels=6, builds=5, probability=0.992
        ),
        kconfig="vm-x86_64",
        compiler_version="gcc 12",
        links={"page": "https://bot.example.org/report/r1"},
        reporter="swingbot <bot@example.org>",
        contact="Otto <otto@example.org>",
    )
    return replace(facts, **changes)


def test_a_level_that_is_no_plain_mean_is_named() -> None:
    named = mail(the_facts(headline=a_row(level="mean of the middle 5 of 6 boot means"))).body
    assert "the levels are each the mean of the middle 5 of 6 boot means;" in " ".join(
        named.split()
    )
    assert "levels" not in mail(the_facts()).body
    of_before = codec.plain(the_facts())
    del of_before["headline"]["level"]  # as drafted by a version that had no such key
    assert typed(ReportFacts, of_before) == the_facts()


def test_a_lower_latency_is_better_and_a_lower_throughput_is_worse() -> None:
    assert numbers.change(-18.0, "higher") == "18.0% worse"
    assert numbers.change(-18.0, "lower") == "18.0% better"
    assert numbers.change(18.0, "higher") == "18.0% better"
    assert numbers.change(18.0, "lower") == "18.0% worse"
    assert numbers.change(-3.24, None) == "3.2% lower"


def test_an_interval_repeats_its_words_only_where_a_bound_goes_another_way() -> None:
    assert (
        numbers.change_with_interval(-18.0, (-18.8, -17.2), "higher")
        == "18.0% worse (95% interval 17.2% to 18.8%)"
    )
    assert (
        numbers.change_with_interval(-0.5, (-1.3, 0.4), "higher")
        == "0.5% worse (95% interval 0.4% better to 1.3% worse)"
    )
    assert numbers.change_with_interval(5.0, None, "higher") == "5.0% better (95% interval unknown)"
    assert (
        numbers.change_with_interval(-18.0, (-18.02, -17.98), "higher")
        == "18.0% worse (95% interval 17.98% to 18.02%)"
    )


@pytest.mark.parametrize("probability", [0.95, 0.98, 0.9899, 0.9968, 0.99949, 0.99999, 1.0])
def test_a_claim_never_grows_by_being_printed(probability: float) -> None:
    text = numbers.sure(probability)
    number = re.search(r"[\d.]+", text)
    assert number is not None
    assert float(number[0]) <= 100 * probability
    assert "100" not in text


def test_a_missing_number_is_called_missing_and_never_zero() -> None:
    row = a_row(
        base=Side(boots=0, runs=0, mean=None, stddev=None),
        change_pct=None,
        interval_pct=None,
        verdict="changed",
    )
    body = mail(the_facts(headline=row)).body
    assert re.search(r"missing \+- n/a +90\.000 \+- 1\.50 +0\+3 +0\+9", body)


def test_boots_runs_and_deviation_of_both_sides_stand_in_every_row() -> None:
    rows = tuple(
        a_row(metric=f"m.{n}", head=Side(boots=2, runs=5, mean=90.0, stddev=0.25)) for n in range(5)
    )
    body = mail(the_facts(rows=rows)).body
    assert len(re.findall(r"100\.000 \+- 1\.500 +90\.000 \+- 0\.250 +3\+2 +9\+5\n", body)) == 5


def test_the_label_of_an_emulated_testbox_stands_wherever_its_numbers_do() -> None:
    label = "emulated; path length only"
    rows = (
        a_row(testbox="vm", label=label, metric="m.1"),
        a_row(testbox="vm", label=label, metric="m.2", unit_job="job-2"),
    )
    body = mail(the_facts(rows=rows)).body
    assert body.count(f"On vm ({label}),") == 2
    assert f"Measured on vm ({label})" in mail(
        the_facts(headline=a_row(testbox="vm", label=label))
    ).body.replace("\n", " ")


def test_the_headline_is_not_repeated_among_the_other_rows() -> None:
    assert "Also changed" not in mail(the_facts(rows=(a_row(),))).body
    assert "Also changed" in mail(the_facts(rows=(a_row(), a_row(metric="other")))).body


def test_the_headlines_metric_on_other_testboxes_stands_beside_it() -> None:
    rows = (
        a_row(),
        a_row(
            testbox="other",
            change_pct=12.0,
            interval_pct=(11, 13),
            head=replace(A_SIDE, mean=112.0),
            verdict="better",
        ),
        a_row(testbox="third"),
    )
    body = mail(the_facts(rows=rows)).body
    assert "Also changed" not in body
    assert (
        body.index("  box    ")
        < body.index("  other  ")
        < body.index("  third  ")
        < body.index("Higher is better")
    )
    assert "in ops/s: 12.0% better" in body


def test_what_got_worse_stands_before_what_got_better() -> None:
    rows = (
        a_row(metric="m.better", change_pct=50.0, verdict="better"),
        a_row(metric="m.worse", change_pct=-2.0),
        a_row(metric="m.worst", change_pct=-20.0),
    )
    body = mail(the_facts(rows=rows)).body
    assert body.index("m.worst ") < body.index("m.worse ") < body.index("m.better ")


def test_rows_that_did_not_change_are_named_and_their_numbers_left_to_the_page() -> None:
    rows = (
        a_row(metric="m.same", verdict="same"),
        a_row(metric="m.unclear", verdict="unclear"),
        a_row(metric="m.invalid", verdict="invalid"),
    )
    body = mail(the_facts(rows=rows)).body
    assert "no change seen: m.same on box" in body
    assert "few boots): m.unclear on box" in body
    assert "Not comparable: m.invalid on box" in body


def test_a_change_that_fresh_boots_do_not_show_is_not_claimed() -> None:
    for verdict in ("same", "unclear", "invalid"):
        made = mail(
            the_facts(headline=a_row(change_pct=-0.2, interval_pct=(-0.6, 0.2), verdict=verdict))
        )
        assert made.subject.endswith("program.metric not confirmed")
        assert "NOT confirmed by 3+3 fresh boots" in made.body.replace("\n", " ")
        assert "is 0.2% worse" not in made.body
        assert "Reported-by" not in made.body


def test_a_reported_by_line_is_offered_for_a_regression_only() -> None:
    assert "Reported-by: swingbot <bot@example.org>" in mail(the_facts()).body
    assert (
        "Reported-by"
        not in mail(
            the_facts(headline=a_row(change_pct=10.0, interval_pct=(9, 11), verdict="better"))
        ).body
    )


def test_a_patch_that_is_not_merged_asks_for_no_tag() -> None:
    body = mail(the_facts(merged=False, regzbot=True)).body
    assert "no tag is needed" in " ".join(body.split())
    assert "Reported-by" not in body
    assert "#regzbot" not in body


def test_regzbot_is_informed_of_merged_regressions_only_and_only_where_it_is_asked_for() -> None:
    line = f"\n#regzbot introduced: {'a' * 40}\n"
    assert line in mail(the_facts(merged=True, regzbot=True)).body
    better = a_row(change_pct=10.0, interval_pct=(9, 11), verdict="better")
    for facts in (
        the_facts(merged=True),
        the_facts(regzbot=True),
        the_facts(merged=True, regzbot=True, headline=better),
    ):
        assert "#regzbot" not in mail(facts).body


def test_closes_names_where_this_mail_can_be_read() -> None:
    assert (
        "  Closes: https://lore.example.org/x\n"
        in mail(the_facts(closes="https://lore.example.org/x")).body
    )
    assert "  Closes: https://bot.example.org/report/r1\n" in mail(the_facts()).body


def test_a_gate_that_failed_stands_before_those_that_passed_and_those_not_run_say_why() -> None:
    gates = (
        Gate(name="tip", status="pass"),
        Gate(name="revert", status="not run", reason="conflict in a.c"),
        Gate(name="executed", status="fail", reason="no call"),
    )
    body = mail(the_facts(gates=gates)).body
    assert (
        body.index("Failed: executed (no call).")
        < body.index("Passed: tip.")
        < body.index("Not run: revert (conflict in a.c).")
    )
    assert "Layout or noise suspected" in body
    assert "suspected" not in mail(the_facts(gates=gates[:2])).body


def test_at_most_five_clues_are_given() -> None:
    body = mail(
        the_facts(clues=tuple(Clue(kind="counter", name=f"c{n}", words="more") for n in range(9)))
    ).body
    assert "counter c4: more" in body
    assert "counter c5" not in body


def test_the_patchs_own_thread_is_answered_where_it_is_known() -> None:
    posted = PostedMail(
        message_id="<p2@example.org>",
        subject="Re: [PATCH 2/2] mm: break it",
        references=tuple(f"<c{n}@example.org>" for n in range(9)),
    )
    made = mail(the_facts(posted=posted))
    assert made.subject == "Re: [PATCH 2/2] mm: break it"
    assert made.in_reply_to == "<p2@example.org>"
    assert made.references == ("<c0@example.org>", "<c8@example.org>", "<p2@example.org>")
    assert made.body.startswith("program.metric is 10.0% worse")
    assert mail(the_facts(posted=replace(posted, subject=""))).subject.startswith(
        "[tree:master] [mm] aaaaaaaaaaaa:"
    )
    assert (
        mail(
            the_facts(posted=replace(posted, message_id="<p2@example.org>\r\nBcc: x@y"))
        ).in_reply_to
        == ""
    )


def test_a_commit_without_author_says_so() -> None:
    assert (
        "  by an author without an address\n"
        in mail(the_facts(culprit=Commit(sha="a" * 40, subject="mm: x", author=" "))).body
    )


def test_missing_optional_keys_are_read_with_defaults() -> None:
    document = codec.plain(the_facts())
    for key in ("gates", "clues", "boots", "posted", "merged", "closes", "regzbot"):
        del document[key]
    assert not {"values"} & (document["headline"]["base"] | document["headline"]["head"]).keys()
    assert typed(ReportFacts, document) == the_facts()


@pytest.mark.parametrize(
    ("subject", "prefix"),
    [
        ("mm/page_alloc: drain", "mm/page_alloc"),
        ("mm: memcg: charge", "mm"),
        ("x86/mm, sched: both", "x86/mm, sched"),
        ('Revert "mm: x"', ""),
        ("no prefix", ""),
        ("\r\nBcc: x@y", "Bcc"),
        (":", ""),
        ("https://example.org", ""),
    ],
)
def test_the_subsystem_is_what_stands_before_the_first_colon(subject: str, prefix: str) -> None:
    assert subsystem(subject) == prefix


HOSTILE = st.one_of(
    st.text(max_size=200),
    st.text(alphabet="a漢\u0301\u202e\x1b\r\n\t :/-'\"\\#", max_size=200),
    st.sampled_from(["", "x" * 1500, "漢" * 700, "\u0301" * 700, "\U0001f600" * 700, "a " * 700]),
    st.sampled_from(
        ["\r\nBcc: a@b\r\n\r\n", "\ud800", "https://e.org/" + "x" * 700, "https://e.org/r1"]
    ),
)
NUMBER = st.one_of(
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(min_value=-100, max_value=1000),
)
COUNT = st.integers(0, 10**6)
VALUES = st.lists(
    st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.floats(90, 110)), max_size=5
).map(tuple)
SIDE = st.builds(Side, boots=COUNT, runs=COUNT, mean=NUMBER, stddev=NUMBER, values=VALUES)
ROW = st.builds(
    ComparisonRow,
    testbox=HOSTILE,
    label=HOSTILE,
    unit_job=HOSTILE,
    metric=HOSTILE,
    unit=HOSTILE,
    sentence=HOSTILE,
    better=st.sampled_from(["higher", "lower", None]),
    base=SIDE,
    head=SIDE,
    change_pct=st.one_of(st.none(), st.floats(-100, 1e6)),
    interval_pct=st.one_of(st.none(), st.tuples(st.floats(-100, 1e6), st.floats(-100, 1e6))),
    verdict=st.sampled_from(["worse", "better", "changed", "same", "unclear", "invalid"]),
)
GATE = st.builds(
    Gate,
    name=st.one_of(HOSTILE, st.just("executed")),
    status=st.sampled_from(get_args(GateAnswer)),
    reason=HOSTILE,
)
FACTS = st.builds(
    ReportFacts,
    report=HOSTILE,
    tree=HOSTILE,
    url=HOSTILE,
    branch=HOSTILE,
    culprit=st.builds(Commit, sha=HOSTILE, subject=HOSTILE, author=HOSTILE),
    parent=HOSTILE,
    base=HOSTILE,
    head=HOSTILE,
    headline=ROW,
    rows=st.one_of(
        st.lists(ROW, max_size=3).map(tuple),
        ROW.map(lambda row: tuple(replace(row, testbox=f"{n}{row.testbox}") for n in range(60))),
    ),
    bisection=st.builds(
        BisectionSummary,
        id=HOSTILE,
        candidates=COUNT,
        boots=COUNT,
        kernels=COUNT,
        builds=COUNT,
        probability=st.floats(0, 1),
    ),
    kconfig=HOSTILE,
    compiler_version=HOSTILE,
    facts=st.dictionaries(HOSTILE, HOSTILE, max_size=30),
    command=HOSTILE,
    reproduce=st.lists(HOSTILE, max_size=4).map(tuple),
    not_checked=st.lists(HOSTILE, max_size=30).map(tuple),
    links=st.dictionaries(st.one_of(st.just("page"), HOSTILE), HOSTILE, max_size=30),
    reporter=HOSTILE,
    contact=HOSTILE,
    gates=st.lists(GATE, max_size=12).map(tuple),
    clues=st.lists(
        st.builds(Clue, kind=st.sampled_from(get_args(ClueKind)), name=HOSTILE, words=HOSTILE),
        max_size=8,
    ).map(tuple),
    boots=st.dictionaries(HOSTILE, st.lists(HOSTILE, max_size=30).map(tuple), max_size=3),
    posted=st.one_of(
        st.none(),
        st.builds(
            PostedMail,
            message_id=st.one_of(HOSTILE, st.just("<a@b>")),
            subject=HOSTILE,
            references=st.lists(HOSTILE, max_size=5).map(tuple),
        ),
    ),
    merged=st.sampled_from([None, True, False]),
    closes=HOSTILE,
    regzbot=st.booleans(),
)


@QUICK
@given(FACTS)
def test_whatever_the_facts_hold_the_mail_is_narrow_short_and_of_printable_lines(
    facts: ReportFacts,
) -> None:
    made = mail(facts)
    assert len(made.body.encode()) <= BODY_BYTES
    assert made.body.endswith("\n")
    assert plain.clean(made.subject) == made.subject
    for line in made.body.split("\n")[:-1]:
        assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in line)
        assert (
            plain.columns(line) <= plain.WIDTH or "://" in line or _is_of_a_command(line, facts)
        ), line


def _is_of_a_command(line: str, facts: ReportFacts) -> bool:
    """A quoted word of a command cannot be broken without changing what it says."""
    return any(
        line.strip().removesuffix(" \\") in command for command in (facts.command, *facts.reproduce)
    )


@QUICK
@given(FACTS)
def test_facts_survive_json(facts: ReportFacts) -> None:
    assert typed(ReportFacts, json.loads(json.dumps(codec.plain(facts)))) == facts


def test_facts_with_an_unknown_missing_or_wrong_key_say_which() -> None:
    good = yaml.safe_load((REPORTS / "one_metric.in.yaml").read_text(encoding="utf-8"))
    assert typed(ReportFacts, good, "report") == report_facts(REPORTS / "one_metric.in.yaml")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"colour": "red"}, "report: key 'colour' is unknown here"),
        ({"kconfig": None}, "report.kconfig: None is not a string"),
        ({"headline": {**good["headline"], "better": "up"}}, "headline.better: 'up' is not one of"),
        (
            {"headline": {**good["headline"], "verdict": "bad"}},
            "headline.verdict: 'bad' is not one of",
        ),
        (
            {"headline": {**good["headline"], "change_pct": float("nan")}},
            "headline.change_pct: nan is not a finite number",
        ),
        ({"rows": [3]}, r"rows\[0\]: 3 is not a mapping"),
        (
            {"gates": [{"name": "tip", "status": "maybe", "reason": ""}]},
            r"gates\[0\].status: 'maybe' is not one of pass, fail, not run",
        ),
        ({"merged": "yes"}, "report.merged: 'yes' is not true or false"),
        ({"boots": {"parent": "x1"}}, "boots.parent: 'x1' is not a list"),
        ({"bisection": {**good["bisection"], "boots": -1}}, "bisection.boots: -1 is not a count"),
    ]
    for change, message in wrong:
        with pytest.raises(BadDocument, match=message):
            typed(ReportFacts, {**good, **change}, "report")
    del good["contact"]
    with pytest.raises(BadDocument, match=r"report.contact: is missing"):
        typed(ReportFacts, good, "report")


@QUICK
@given(
    st.lists(
        st.text(
            alphabet=st.characters(codec="ascii", exclude_categories=["Cc"]),
            min_size=1,
            max_size=60,
        ),
        min_size=1,
        max_size=12,
    )
)
def test_a_wrapped_command_means_the_same_to_a_shell(arguments: list[str]) -> None:
    command = shlex.join(arguments)
    lines = plain.shell(command)
    assert shlex.split("\n".join(lines).replace("\\\n", "")) == arguments
    assert all(
        plain.columns(line) <= plain.WIDTH or len(shlex.split(line.removesuffix(" \\"))) == 1
        for line in lines
    )


def test_commands_that_a_mail_would_change_are_left_to_the_page() -> None:
    body = mail(the_facts(reproduce=("printf 'two  blanks'",))).body
    assert "two" not in body
    assert "too long for a mail, see https://bot.example.org/report/r1" in body.replace("\n", " ")
    body = mail(the_facts(reproduce=("x" * 2000,))).body
    assert "xxx" not in body


@QUICK
@given(HOSTILE, st.integers(4, 80))
def test_a_cut_text_keeps_its_limit_in_columns_and_characters(text: str, limit: int) -> None:
    shown = plain.cut(text, limit)
    assert plain.columns(shown) <= limit
    assert len(shown) <= limit
    assert shown == plain.clean(text) or shown.endswith("...")


def test_a_change_of_the_spread_is_claimed_as_one_and_survives_the_draft() -> None:
    row = a_row(change_pct=-0.3, interval_pct=(-1.4, 0.8), verdict="unclear", spread_ratio=3.06)
    made = mail(the_facts(headline=row))
    assert made.subject.endswith(f"{row.metric} 3.1 times the spread between boots")
    assert "around the same mean as with its parent:" in " ".join(made.body.split())
    assert "NOT confirmed" not in made.body
    assert typed(ReportFacts, codec.plain(the_facts(headline=row))).headline.spread_ratio == 3.06
    assert "spread_ratio" not in codec.plain(the_facts())["headline"]


def test_a_tail_that_follows_the_change_is_named_with_its_percentile() -> None:
    tail = Tail(
        side="head",
        far=15,
        runs=100,
        other_far=0,
        other_runs=100,
        apart_pct=-50.2,
        rest_pct=0.04,
        percentile=1,
        base=99.1,
        head=49.3,
    )
    body = " ".join(mail(the_facts(headline=a_row(tail=tail))).body.split())
    assert (
        "The tail follows the change: 15 of 100 runs of the commit are far off the others by about"
        " -50 %, of its parent 0 of 100; the others change by +0.04 %. The p1 of the runs goes from"
        " 99.1 to 49.3."
    ) in body
    assert "The tail" not in mail(the_facts()).body
    assert (
        typed(ReportFacts, codec.plain(the_facts(headline=a_row(tail=tail)))).headline.tail == tail
    )


def test_the_command_line_of_the_kernel_is_below_and_whole() -> None:
    words = ["console=ttyS1,115200n8", *(f"option{number}=value" for number in range(60))]
    body = mail(the_facts(machine="a server", facts={"cmdline": " ".join(words)})).body
    assert "Machine: a server.\n" in body[: body.index("Facts:")]
    said = body[body.index("cmdline: ") :].split("\n\n")[0].split()
    assert said[1 : len(words) + 1] == words
