"""The picture of a history: every point, each level, each step with its size."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from click.testing import CliRunner

from swingbot.app.commands.stats import stats
from swingbot.web.plots.drawing import PlotSubject
from swingbot.web.plots.metric_plot import History, HistorySeries, NoiseBand, metric_plot

SVG = "{http://www.w3.org/2000/svg}"


def history(path: Path, name: str = "v") -> None:
    values = np.concatenate([np.full(30, 100.0), np.full(30, 90.0)])
    values += np.random.default_rng(1).normal(0.0, 0.3, 60)
    rows = "".join(f"{name}{i},{value}\n" for i, value in enumerate(values))
    path.write_text("x,value\n" + rows)


def test_a_step_is_drawn_where_it_is_and_with_its_size(tmp_path: Path) -> None:
    history(tmp_path / "h.csv")
    done = CliRunner().invoke(
        stats, ["history", str(tmp_path / "h.csv"), "--svg", str(tmp_path / "h.svg")]
    )
    assert done.exit_code == 0, done.output
    picture = ElementTree.fromstring((tmp_path / "h.svg").read_text())
    assert len(picture.findall(f".//{SVG}circle")) == 60
    levels = [line for line in picture.iter(f"{SVG}line") if line.get("class") == "base level"]
    assert len(levels) == 2 and levels[0].get("y1") != levels[1].get("y1")
    titles = [title.text or "" for title in picture.iter(f"{SVG}title")]
    assert any(re.match(r"step at v30: -(9\.[89]|10)", text) for text in titles), titles


def test_names_from_a_file_are_escaped(tmp_path: Path) -> None:
    history(tmp_path / "h.csv", name="<script>")
    args = ["history", str(tmp_path / "h.csv"), "--svg", str(tmp_path / "h.svg"), "--no-picture"]
    assert CliRunner().invoke(stats, args).exit_code == 0
    assert "<script>" not in (tmp_path / "h.svg").read_text()


def test_a_picture_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    history(tmp_path / "h.csv")
    where = tmp_path / "none" / "h.svg"
    done = CliRunner().invoke(stats, ["history", str(tmp_path / "h.csv"), "--svg", str(where)])
    assert done.exit_code != 0 and "cannot write" in done.output


def test_the_band_of_a_ramp_rises_with_it() -> None:
    columns: list[dict[str, Any]] = [
        {"commit": str(n), "subject": "", "author": "", "release": None, "variant": None}
        for n in range(10)
    ]
    boots: list[list[dict[str, Any]]] = [[] for _ in columns]
    boots[5] = [{"boot": "x1", "mean": 100.0, "runs": 1}]
    series = [HistorySeries(name="", boots=boots)]
    subject = PlotSubject(
        testbox="box", unit_job="unit", metric="m", unit="", better="higher", label="box"
    )
    corners = {}
    for rise in (0.0, 4.0):
        band = NoiseBand(first=0, last=9, level=100.0, low=98.0, high=102.0, rise=rise)
        shown = History(subject=subject, columns=columns, series=series, bands=[band])
        picture = metric_plot(shown).inline()
        (points,) = re.findall(r'<polygon points="([^"]*)" class="base band"', picture)
        corners[rise] = [tuple(map(float, corner.split(","))) for corner in points.split()]
    (_, left), (_, right) = corners[0.0][:2]
    assert left == right
    (_, left), (_, right) = corners[4.0][:2]
    assert right < left  # higher in the picture
