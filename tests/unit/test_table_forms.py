"""The same numbers as a mail, LKP's table, `perf stat` and a commit message."""

from __future__ import annotations

from typing import Any

import pytest

from swingbot.app import documents
from swingbot.core.report.table.formats import FORMS, NothingToShow
from swingbot.core.report.table.sheet import Sheet, sheet_of_table
from tests.table_documents import METRIC, UNIT_JOB, a_table

COMMAND = "test=x jobs/programs/will-it-scale/run"
Runs = list[tuple[int, int, int, float]]  # arm, k, run, value


def samples(metric: str, runs: Runs) -> list[dict[str, Any]]:
    place = {"testbox": "box", "unit_job": UNIT_JOB, "metric": metric}
    return [
        place | {"arm": arm, "boot": f"x{arm}{k}", "k": k, "run": run, "value": value}
        for arm, k, run, value in runs
    ]


def a_sheet(*more: dict[str, Any], **changed: Any) -> Sheet:
    document = a_table({"box": [2262.0, 2051.0, 2051.0]}, ["base", "head", "tip"], **changed)
    own = [(arm, k, 0, level) for arm, level in enumerate((2262.0, 2051.0, 2051.0)) for k in (0, 1)]
    return sheet_of_table(document, [*samples(METRIC, own), *more])


def test_lkps_table_of_each_row_against_its_reference() -> None:
    text = FORMS["lkp"](a_sheet())
    lines = [line.split()[:3] for line in text.splitlines() if line.endswith(METRIC)]
    assert lines == [["2262", "-9.3%", "2051"], ["2051", "+0.0%", "2051"]]
    assert text.count("tbox_group/testcase:") == 2


def test_perf_tables_are_headed_by_the_command_and_their_noise_is_that_of_boots() -> None:
    runs = [(arm, k, run, value) for arm in range(3) for k in range(3)
            for run, value in enumerate((2145.0, 1169.0))]  # fmt: skip
    text = FORMS["perf"](a_sheet(*samples("perf-stat.task-clock", runs)))
    assert text.count(f" Performance counter stats for '{COMMAND}' (6 runs in 3 boots):") == 3
    assert text.count("( +-  0.00% )") == 3
    assert text.index("base: 000000000000") < text.index("tip: 000000000000")


def test_commands_offer_each_form() -> None:
    assert tuple(sorted(FORMS)) == documents.FORMS


@pytest.mark.parametrize("form", sorted(set(FORMS) - {"text", "csv"}))
def test_no_numbers_are_one_sentence(form: str) -> None:
    with pytest.raises(NothingToShow, match="e3 "):
        FORMS[form](a_sheet(rows=[]))


@pytest.mark.parametrize("form", sorted(FORMS))
def test_subjects_from_strangers_break_no_line(form: str) -> None:
    counts = samples("perf-stat.task-clock", [(arm, 0, 0, 1.0) for arm in range(3)])
    document = a_table({"box": [2262.0, 2051.0]}, ["base", "head"])
    hostile = "x\n\nSigned-off-by: No One\x1b[31m" + "y" * 10_000
    document["arms"][0]["variant"]["subject"] = hostile
    values = samples(METRIC, [(arm, 0, 0, 1.0) for arm in range(2)])
    text = FORMS[form](sheet_of_table(document, [*values, *counts]))
    assert "\nSigned-off-by" not in text
    assert "\x1b" not in text
    assert len(text) < 4000
