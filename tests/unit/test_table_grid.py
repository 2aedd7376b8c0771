"""The tables of a sheet: published tables come out as they were printed, nothing is wider than 78
columns, and every format explains its notation."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.report.table.formats import as_changelog, as_csv, as_mail, as_text
from swingbot.core.report.table.sheet import Columns, ColumnText, ColumnValues, sheet_of_table
from swingbot.core.text.numbers import readings, two_digits
from swingbot.core.text.plain import columns
from tests.table_documents import UNIT_JOB, a_table

# prefetch buddy (March 2018), each row against the row above, on its machines
PREFETCH = {
    "Broadwell-2S": [9034215, 9536374, 10180856],
    "Skylake-2S": [7971818, 8314710, 8506369],
    "Broadwell-4S": [13667135, 14070408, 14756865],
    "Skylake-4S": [15677465, 16675866, 17325324],
}


NAMES = ["v4.16-rc2+", "patch2/3", "this patch"]


def test_a_series_on_four_machines_is_the_published_grid() -> None:
    lines = as_changelog(sheet_of_table(a_table(PREFETCH, NAMES))).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("  kernel"))
    cells = [re.split(r" {2,}", line.strip()) for line in lines[at : at + 4]]
    assert cells == [
        ["kernel", "Broadwell-2S", "Broadwell-4S", "Skylake-2S", "Skylake-4S"],
        ["v4.16-rc2+", "9034215", "13667135", "7971818", "15677465"],
        ["patch2/3", "9536374 +5.6%", "14070408 +3.0%", "8314710 +4.3%", "16675866 +6.4%"],
        ["this patch", "10180856 +6.8%", "14756865 +4.9%", "8506369 +2.3%", "17325324 +3.9%"],
    ]


def test_one_machine_has_level_noise_change_and_interval() -> None:
    one = {"Broadwell-2S": PREFETCH["Broadwell-2S"]}
    said = as_changelog(sheet_of_table(a_table(one, NAMES)))
    assert re.search(r"kernel +ops/s +sd +change +95 % interval", said)
    assert re.search(r"this patch +10180856 +0.09% +\+6.8% +\+6.\d .. \+[67].\d$", said, re.M)


def test_two_references_are_one_table_with_a_line_each() -> None:
    two = {name: PREFETCH[name] for name in ("Broadwell-2S", "Skylake-2S")}
    said = as_changelog(sheet_of_table(a_table(two, NAMES, ("above", "first"))))
    assert said.count("kernel ") == 1
    assert re.search(r"this patch +10180856 +0.09% +\+6.8% +.* above$", said, re.M)
    assert re.search(r"^ +\+12.7% +.* first$", said, re.M)
    assert said.index("  Broadwell-2S\n") < said.index("  Skylake-2S\n")


def test_a_kernel_that_does_not_build_is_a_row_that_says_so() -> None:
    one = {"box": [100.0, None, 120.0]}
    said = as_text(sheet_of_table(a_table(one, ["base", "broken", "good"])))
    assert re.search(r"broken +not built$", said, re.MULTILINE)
    assert "not built: mm/x.c:1: error" in said
    assert re.search(r"good +120.00 +0.09% +\+20.0%", said)


def test_a_percentage_can_be_recomputed_where_a_level_differs_from_row_to_row() -> None:
    found = a_table({"box": [100.0, 110.0, 120.0]}, ["a", "b", "c"])
    last = next(row for row in found["rows"] if row["arm"] == 2)
    last["base"]["mean"] = 109.0
    said = as_changelog(sheet_of_table(found))
    assert "  c: b is 109.00 in this pair (outliers excluded)" in said
    assert said.count("in this pair") == 1


def test_counters_that_were_not_judged_are_counted_below_the_table() -> None:
    document = a_table({"box": [100.0, 110.0]}, ["a", "b"])
    words = "left out: 70 counters; the evidence of others was stronger"
    assert words not in as_text(sheet_of_table(document))
    assert words in as_text(sheet_of_table(document | {"unjudged": 70}))


def test_rows_that_are_unclear_for_the_same_reason_share_one_note() -> None:
    found = a_table({"box": [100.0 + n for n in range(91)]}, [f"p{n}" for n in range(91)])
    why = "about 100 more boots a side would settle it"
    for row in found["rows"]:
        row |= {"verdict": "unclear", "reason": why}
    said = " ".join(as_text(sheet_of_table(found)).split())
    assert said.count(why) == 1
    assert f"p1, p2, p3, p4 and 86 more: unclear, {why}" in said


def test_a_note_says_which_reference_it_is_about_where_two_differ() -> None:
    document = a_table({"box": [100.0, 110.0, 110.1]}, ["a", "b", "c"], ("above", "base"))
    reasons = {("above", 1): "odd", ("base", 1): "odd", ("above", 2): "one", ("base", 2): "other"}
    for row in document["rows"]:
        row |= {"verdict": "unclear", "reason": reasons[row["against"], row["arm"]]}
    said = as_mail(sheet_of_table(document))
    notes = ("b: unclear, odd", "c against above: unclear, one", "c against base: unclear, other")
    for note in notes:
        assert said.count(f"  {note}\n") == 1, said


@pytest.mark.parametrize("testboxes", [1, 2])
def test_columns_and_their_texts_are_printed_whatever_the_number_of_testboxes(
    testboxes: int,
) -> None:
    levels = {f"box{n}": [100.0, 120.0] for n in range(testboxes)}
    places = [(testbox, UNIT_JOB) for testbox in levels]
    beside = Columns(
        values=[
            ColumnValues(
                title="spin %",
                values={(p, arm): (77.0, 54.5)[arm] for p in places for arm in (0, 1)},
            ),
            ColumnValues(title="text", values={(None, 0): 37409.0, (None, 1): 38273.0}),
        ],
        texts=[ColumnText(heading="Code of head against base:", lines=["  mm/page_alloc.o"])],
    )
    said = as_mail(sheet_of_table(a_table(levels, ["base", "head"]), (), beside))
    assert len(re.findall(r"head +120.00 .* 54.50 +38273", said)) == testboxes
    assert said.count("kernel ") == 1, "one table"
    assert "Code of head against base:\n  mm/page_alloc.o" in said


def test_a_changelog_has_kernels_machine_command_and_notation() -> None:
    document = a_table({"box": [100.0, 100.01, 120.0]}, ["base", "same", "head"])
    for row in document["rows"]:
        row["label"] = "2 sockets"
    said = " ".join(as_changelog(sheet_of_table(document)).split())
    for words in (
        f"head {2:040x}"[:17] + " patch 2",
        "box: 2 sockets",
        f"{UNIT_JOB} runs test=x jobs/programs/will-it-scale/run",
        "'< N %' means no change of N % or more",
        "Changes are relative to the row above",
    ):
        assert words in said, words
    assert re.search(r"same 100.01 0.09% < \d", said)


def test_what_did_not_change_is_left_out_of_a_changelog_and_stays_in_a_mail() -> None:
    document = a_table({"box": [100.0, 120.0]}, ["base", "head"])
    (row,) = document["rows"]
    document["rows"].append(row | {"metric": "will-it-scale.idle", "verdict": "same"})
    sheet = sheet_of_table(document)
    assert "will-it-scale.idle" not in as_changelog(sheet) and "will-it-scale.idle" in as_mail(
        sheet
    )


def test_one_number_is_printed_under_one_name() -> None:
    document = a_table({"box": [100.0, 120.0]}, ["base", "head"])
    (row,) = document["rows"]
    alias = row | {"metric": "will-it-scale.total", "alias_of": row["metric"], "headline": False}
    document["rows"].append(alias)
    said = as_text(sheet_of_table(document), counters=True)
    assert said.count("will-it-scale.total") == 1 and "(also will-it-scale.total)" in said
    document["rows"] = [alias]
    assert "will-it-scale.total [ops/s" in as_text(sheet_of_table(document), counters=True)


@given(
    names=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200),
        min_size=2,
        max_size=5,
        unique=True,
    ),
    level=st.floats(1e-6, 1e15),
)
def test_no_name_or_number_breaks_the_table(names: list[str], level: float) -> None:
    levels = {"box": [level * (1 + 0.1 * n) for n in range(len(names))]}
    sheet = sheet_of_table(a_table(levels, names, ("above", "first")))
    for said in (as_text(sheet), as_mail(sheet), as_changelog(sheet)):
        for line in said.splitlines():
            assert columns(line) <= 78 and line.isprintable()
    assert len(as_csv(sheet).splitlines()) >= 1 + len(names)


def test_what_a_spreadsheet_would_calculate_stays_text() -> None:
    document = a_table({"box": [100.0, 80.0]}, ["base", "@head"])
    for arm in document["arms"]:
        arm["variant"]["subject"] = "=HYPERLINK(CHAR(64))"
    _, *rows = csv.DictReader(io.StringIO(as_csv(sheet_of_table(document))))
    (head,) = rows
    assert (head["kernel"], head["subject"]) == ("'@head", "'=HYPERLINK(CHAR(64))")
    assert float(head["change_pct"]) < 0


@pytest.mark.parametrize("testboxes", [2, 6, 30])
def test_any_number_of_testboxes_is_one_table(testboxes: int) -> None:
    levels = {f"testbox-{n}": [100.0, 110.0] for n in range(testboxes)}
    said = as_changelog(sheet_of_table(a_table(levels, ["base", "head"])))
    assert max(map(len, said.splitlines())) <= 78
    assert said.count("+10.0%") == testboxes and said.count("kernel ") == 1


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((9.5664, 12.8694, None), ["9.57", "12.87", ""]),
        ((1.18263, 0.11246), ["1.18", "0.11"]),
        ((37409.0, 8708962.0), ["37409", "8708962"]),
        ((2.5e-9, 1e-9), ["2.50e-09", "1.00e-09"]),
        ((0.0, 0.0), ["0", "0"]),
        ((None, None), ["", ""]),
    ],
)
def test_readings_show_three_digits_of_the_largest_and_two_decimals(
    values: tuple[float | None, ...], texts: list[str]
) -> None:
    assert readings(*values) == texts


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.5678, "0.57"), (2.04, "2"), (12.6, "13"), (382.0, "380"), (1e4, "10000")],
)
def test_a_percentage_of_two_digits_has_no_exponent(value: float, shown: str) -> None:
    assert two_digits(value) == shown


@pytest.mark.parametrize(
    ("df", "share", "said"), [(None, 0.9, True), (None, 0.4, False), (5.0, 0.9, False)]
)
def test_an_interval_that_is_mostly_an_assumed_layout_spread_says_so_once(
    df: float | None, share: float, said: bool
) -> None:
    table = a_table({"box": [100.0, 101.0, 102.0]}, NAMES)
    for row in table["rows"]:
        row["layout"] = {"sd_pct": 0.1, "df": df, "share": share}
    note = "intervals: the spread between layouts, 0.1 %, is assumed on box, not measured"
    for shown in (as_text, as_mail):
        assert " ".join(shown(sheet_of_table(table)).split()).count(note) == said
