"""The command that measures "Difficult worlds": it resumes, tells how long it takes, and writes its
table and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.calibration import difficult, results
from tests.calibration.families import DIFFICULT, FAMILIES
from tests.calibration.score import Verdict
from tests.worlds import SimulatedBench

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
    (tmp_path / difficult._SOURCES[0] / "x.py").write_text('"""Words."""\na = 1  # a comment\n')
    assert before == difficult.engine(tmp_path)
    (tmp_path / difficult._SOURCES[0] / "x.py").write_text("a = 2\n")
    assert difficult.engine(tmp_path) != before


def test_the_table_is_replaced_and_all_else_stays() -> None:
    text = results.DATA.read_text()
    found = [verdict(2000), verdict(2001, 0.9, right=False), verdict(2002, None)]
    found[2] = replace(found[2], suspect=(0.91, True))
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
    assert cells["suspects"] == "1 of 1, stated 91 %"


def test_every_family_has_a_name_of_its_own() -> None:
    names = [f.name for f in DIFFICULT]
    assert len(names) == len(set(names))
    others = [f for f in FAMILIES if f not in DIFFICULT]
    assert not set(names) & {f.name for f in others}


@pytest.mark.parametrize(
    ("given", "lost"),
    [
        ({"sink": 0.01}, [0.0, 0.01, 0.02, 0.03, 0.04, 0.05]),
        ({"lost": 0.05, "lost_at": 3}, [0.0, 0.0, 0.0, 0.05, 0.05, 0.05]),
        ({"low_every": 2, "stuck_apart": 0.1}, [0.0, 0.1, 0.0, 0.1, 0.0, 0.1]),
    ],
)
def test_a_testbox_loses_by_the_order_of_its_boots(
    given: dict[str, float], lost: list[float]
) -> None:
    bench = SimulatedBench(culprit=None, **given)  # type: ignore[arg-type]
    boots = [bench.boot(0, k, order=k)[0] for k in range(6)]
    assert [-math.log(np.mean(b) / 1000.0) for b in boots] == pytest.approx(lost, abs=1e-12)


def test_modes_stick_for_blocks_of_boots() -> None:
    bench = SimulatedBench(stuck=0.5, stuck_boots=4, stuck_apart=0.1, seed=3)
    blocks = np.array([bench.by_order(order) for order in range(400)]).reshape(100, 4)
    assert (blocks == blocks[:, :1]).all()
    assert 30 < (blocks[:, 0] == -0.1).sum() < 70
