"""The table of an experiment: published tables come out as they were printed, nothing is wider
than 78 columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.model.statuses import Reference
from swingbot.core.report.experiment.experiment_formats import (
    as_changelog,
    as_csv,
    as_mail,
    as_text,
)
from swingbot.core.report.experiment.experiment_sheet import (
    SupplementColumn,
    Supplements,
    TextBlock,
    sheet_of_experiment,
)
from swingbot.core.stats.family import compare_family
from swingbot.core.stats.rows import BootRuns, Rule
from swingbot.core.table.references import references
from swingbot.core.text.numbers import readings, two_digits
from swingbot.core.text.plain import columns

UNIT_JOB = "will-it-scale-page_fault1-process-100%"
METRIC = "will-it-scale.processes"
RULE = Rule(better="higher", min_effect_pct=1.0)
# prefetch buddy (March 2018), each row against the row above, on two of its machines
PREFETCH = {
    "Broadwell-2S": [9034215, 9536374, 10180856],
    "Skylake-2S": [7971818, 8314710, 8506369],
}


def boots(level: float, number: int = 4) -> list[BootRuns]:
    """Boots around `level`, their mean exactly there."""
    spread = [0.999, 1.001, 0.9995, 1.0005][:number]
    return [BootRuns(k=k, values=(level * s,)) for k, s in enumerate(spread)]


def an_experiment(
    levels: Mapping[str, Sequence[float | None]],
    names: Sequence[str],
    against: Sequence[Reference] = ("above",),
    axes: Sequence[dict[str, str]] = (),
) -> dict[str, Any]:
    """The read model's JSON of an experiment that measured `levels` by testbox; None: no kernel."""
    missing = {i for one in levels.values() for i, level in enumerate(one) if level is None}
    rows = []
    for testbox, measured in levels.items():
        arms = [boots(level) if level else [] for level in measured]
        for rule in against:
            pairs = references(rule, axes or [{}] * len(names), missing)
            pairs = [pair for pair in pairs if not set(pair) & missing]
            for (reference, arm), row in zip(pairs, compare_family(arms, pairs, RULE), strict=True):
                place = {"testbox": testbox, "unit_job": UNIT_JOB, "metric": METRIC}
                more = {"arm": arm, "reference": reference, "against": rule, "headline": True}
                rows.append(row.to_json() | place | more | {"unit": "ops/s", "counter": False})
    return {
        "id": "e3",
        "tree": "linux",
        "status": "done",
        "reason": None,
        "boots": 4,
        "against": list(against),
        "beside": [],
        "rows": rows,
        "arms": [
            {
                "arm": number,
                "name": name,
                "axes": {},
                "settings": {},
                "state": "failed" if number in missing else "built",
                "reason": "mm/x.c:1: error" if number in missing else None,
                "variant": {
                    "commit": f"{number:040x}",
                    "subject": f"patch {number}",
                    "compiler": "gcc",
                    "kconfig": "vm-x86_64",
                },
            }
            for number, name in enumerate(names)
        ],
    }


def test_a_series_on_two_machines_is_the_published_grid() -> None:
    names = ["v4.16-rc2+", "patch2/3", "this patch"]
    lines = as_changelog(sheet_of_experiment(an_experiment(PREFETCH, names))).splitlines()
    grid = [line.split("  ") for line in lines if line.startswith("  ")]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in grid]
    assert cells[-4:] == [
        ["kernel", "Broadwell-2S", "Skylake-2S"],
        ["v4.16-rc2+", "9034215", "7971818"],
        ["patch2/3", "9536374", "+5.6 %", "8314710", "+4.3 %"],
        ["this patch", "10180856", "+6.8 %", "8506369", "+2.3 %"],
    ]


def test_one_machine_has_level_noise_change_and_interval() -> None:
    names = ["v4.16-rc2+", "patch2/3", "this patch"]
    one = {"Broadwell-2S": PREFETCH["Broadwell-2S"]}
    said = as_changelog(sheet_of_experiment(an_experiment(one, names, ("above", "first"))))
    assert re.search(r"kernel +ops/s +sd +vs above +95 % interval +vs first", said)
    assert re.search(r"this patch +10180856 +0.1 % +\+6.8 % +\+6.\d .. \+[67].\d +\+12.7 %", said)


def test_a_kernel_that_does_not_build_is_a_row_that_says_so() -> None:
    one = {"box": [100.0, None, 120.0]}
    said = as_text(sheet_of_experiment(an_experiment(one, ["base", "broken", "good"])))
    assert re.search(r"broken +no kernel$", said, re.MULTILINE)
    assert "no kernel: mm/x.c:1: error" in said
    assert re.search(r"good +120.00 +0.1 % +\+20.0 %", said)


def test_a_percentage_can_be_recomputed_where_a_level_differs_from_row_to_row() -> None:
    found = an_experiment({"box": [100.0, 110.0, 120.0]}, ["a", "b", "c"])
    last = next(row for row in found["rows"] if row["arm"] == 2)
    last["base"]["mean"] = 109.0
    said = as_changelog(sheet_of_experiment(found))
    assert "  c: b is 109.00 in this pair (outliers excluded)" in said
    assert said.count("in this pair") == 1


def test_two_rows_that_are_unclear_for_the_same_reason_each_say_all_of_it() -> None:
    found = an_experiment({"box": [100.0, 101.0, 102.0]}, ["a", "b", "c"])
    why = (
        "no change at all cannot be ruled out at 99.5 %; about 100 more boots a side would "
        "settle it"
    )
    for row in found["rows"]:
        row |= {"verdict": "unclear", "reason": why}
    said = " ".join(as_text(sheet_of_experiment(found)).split())
    assert said.count("more boots a side would settle it") == 2


def test_a_note_says_which_reference_it_is_about_where_two_differ() -> None:
    document = an_experiment({"box": [100.0, 110.0, 110.1]}, ["a", "b", "c"], ("above", "base"))
    reasons = {("above", 1): "odd", ("base", 1): "odd", ("above", 2): "one", ("base", 2): "other"}
    for row in document["rows"]:
        row |= {"verdict": "unclear", "reason": reasons[row["against"], row["arm"]]}
    said = as_changelog(sheet_of_experiment(document))
    for note in ("b: unclear, odd", "c vs above: unclear, one", "c vs base: unclear, other"):
        assert said.count(f"  {note}\n") == 1, said


def test_columns_and_blocks_beside_the_numbers_are_printed() -> None:
    one = {"box": [100.0, 120.0]}
    place = ("box", UNIT_JOB)
    beside = Supplements(
        columns=[
            SupplementColumn(title="spin %", values={(place, 0): 77.0, (place, 1): 54.5}),
            SupplementColumn(title="text", values={(None, 0): 37409.0, (None, 1): 38273.0}),
        ],
        below=[TextBlock(heading="Code of head against base:", lines=["  mm/page_alloc.o"])],
    )
    said = as_mail(sheet_of_experiment(an_experiment(one, ["base", "head"]), (), beside))
    assert re.search(r"head +120.00 .* 54.5 +38273", said)
    assert "Code of head against base:\n  mm/page_alloc.o" in said


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
    sheet = sheet_of_experiment(an_experiment(levels, names, ("above", "first")))
    for said in (as_text(sheet), as_mail(sheet), as_changelog(sheet)):
        for line in said.splitlines():
            assert columns(line) <= 78 and line.isprintable()
    assert len(as_csv(sheet).splitlines()) >= 1 + len(names)


@pytest.mark.parametrize("testboxes", [2, 6, 30])
def test_a_grid_that_is_too_wide_is_a_block_a_testbox(testboxes: int) -> None:
    levels = {f"testbox-{n}": [100.0, 110.0] for n in range(testboxes)}
    said = as_changelog(sheet_of_experiment(an_experiment(levels, ["base", "head"])))
    assert max(map(len, said.splitlines())) <= 78
    assert said.count("+10.0 %") == testboxes


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((9.5664, 12.8694, None), ["9.6", "12.9", ""]),
        ((1.18263, 0.11246), ["1.18", "0.11"]),
        ((37409.0, 8708962.0), ["37409", "8708962"]),
        ((2.5e-9, 1e-9), ["2.50e-09", "1.00e-09"]),
        ((0.0, 0.0), ["0", "0"]),
        ((None, None), ["", ""]),
    ],
)
def test_readings_show_three_digits_of_the_largest(
    values: tuple[float | None, ...], texts: list[str]
) -> None:
    assert readings(*values) == texts


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.5678, "0.57"), (2.04, "2"), (12.6, "13"), (382.0, "380"), (1e4, "10000")],
)
def test_a_percentage_of_two_digits_has_no_exponent(value: float, shown: str) -> None:
    assert two_digits(value) == shown
