"""The command that measures "Difficult worlds": it resumes, tells how long it takes, and writes its
table and nothing else."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
import yaml

from tests.calibration import difficult, results
from tests.calibration.families import DIFFICULT, FAMILIES
from tests.calibration.score import Verdict

NAMES = ["slow", "quick"]


def verdict(seed: int, stated: float | None = 0.98, right: bool = True) -> Verdict:
    kind = "inconclusive" if stated is None else "culprit"
    claimed = right if stated is not None else None
    held = ((right, True),) if stated is not None else ()
    return Verdict(seed=seed, kind=kind, stated=stated, right=claimed, boots=40, intervals=held)


def test_what_was_kept_is_not_done_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    kept = [("slow", verdict(2000), 9.0), ("quick", verdict(2001, None), 1.0)]
    path.write_text("".join(difficult.line(*each) + "\n" for each in kept) + '{"family": "qu')
    done = difficult.load(path)
    assert done == {(name, v.seed): (v, seconds) for name, v, seconds in kept}
    assert difficult.jobs(NAMES, 2, done) == [("quick", 2000), ("slow", 2001)]
    assert difficult.load(tmp_path / "none.jsonl") == {}


def test_a_run_that_was_killed_within_a_line_goes_on(tmp_path: Path) -> None:
    path, job = tmp_path / "kept.jsonl", (DIFFICULT[0].name, difficult.FIRST_SEED)
    path.write_text('{"family": "qu')
    with difficult.kept(path) as lines:
        lines.write(difficult.line(job[0], verdict(job[1]), 1.0) + "\n")
    assert list(difficult.load(path)) == [job]


def test_the_time_that_is_left_counts_each_family_by_its_own_worlds() -> None:
    done = {
        ("slow", 2000): (verdict(2000), 50.0),
        ("slow", 2001): (verdict(2001), 30.0),
        ("quick", 2000): (verdict(2000), 2.0),
    }
    left = [("slow", 2002), ("quick", 2001), ("quick", 2002)]
    assert difficult.seconds_left(left, done, pace=2.0) == pytest.approx((40 + 2 + 2) / 2)
    assert difficult.seconds_left([("new", 2000)], done, 1.0) == pytest.approx(82 / 3)


def test_another_engine_begins_anew(tmp_path: Path) -> None:
    for name in difficult._SOURCES:
        path = tmp_path / name
        (path if not name.endswith(".py") else path.parent).mkdir(parents=True, exist_ok=True)
        (path if name.endswith(".py") else path / "x.py").write_text("a = 1\n")
    before = difficult.engine(tmp_path)
    assert before == difficult.engine(tmp_path)
    (tmp_path / difficult._SOURCES[0] / "x.py").write_text("a = 2\n")
    assert difficult.engine(tmp_path) != before


def test_the_table_is_replaced_and_all_else_stays() -> None:
    text = results.DATA.read_text()
    found = [verdict(2000), verdict(2001, 0.9, right=False), verdict(2002, None)]
    rows = [difficult.row("one", found), difficult.row("two", [verdict(2000, None)])]
    after = yaml.safe_load(difficult.rewritten(text, rows, date(2027, 1, 2), "python -m x"))
    before = yaml.safe_load(text)
    (at,) = [i for i, table in enumerate(before) if table["title"] == difficult.TITLE]
    assert [t for i, t in enumerate(after) if i != at] == [
        t for i, t in enumerate(before) if i != at
    ]
    table = after[at]
    assert table["rows"] == rows
    assert table["columns"] == list(difficult.COLUMNS)
    assert table["sample"] == "1 to 3 ranges a row, 4 in all"
    assert str(table["measured"]) == "2027-01-02"
    cells = dict(zip(table["columns"], table["rows"][0], strict=True))
    assert cells["claims"] == "2"
    assert cells["right, %"] == "50.0"
    assert cells["stated, %"] == "94.0"
    assert (cells["wrong"], cells["stated wrong"]) == ("1", "0.1")
    assert cells["intervals that hold"] == "1 of 2"


def test_every_difficult_family_is_one_of_all() -> None:
    assert {f.name for f in DIFFICULT} <= {f.name for f in FAMILIES}
