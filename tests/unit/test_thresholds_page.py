"""docs/thresholds.md gives every number that decides, with the value that the code has."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import pytest

from swingbot.app.settings import load
from swingbot.core import thresholds
from swingbot.core.bisect import thresholds as bisect_thresholds
from swingbot.core.bisect.thresholds import Policy
from swingbot_jobs.language.program import load_programs

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "thresholds.md").read_text()
ROW = re.compile(r"^\| `([\w.-]+)` \| (.+?) \|", re.MULTILINE)


def section(title: str) -> dict[str, str]:
    """The first two cells of each row below a heading of level 2."""
    _, _, rest = PAGE.partition(f"\n## {title}")
    assert rest, f"docs/thresholds.md has no section {title!r}"
    return dict(ROW.findall(re.split(r"\n## ", rest)[0]))


def shown(value: object) -> object:
    """A value as the page can write it: durations as text, everything else as a literal."""
    if isinstance(value, timedelta):
        return str(value)
    return dict(value) if isinstance(value, Mapping) else value


def written(cell: str) -> object:
    """A cell of the page as a value."""
    text = cell.strip("`")
    return text if re.fullmatch(r"\d+:\d\d:\d\d", text) else ast.literal_eval(text)


def numbers(module: ModuleType) -> dict[str, object]:
    """The constants that a module itself defines."""
    text = Path(str(module.__file__)).read_text()
    defined = {
        target.id
        for node in ast.parse(text).body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for where in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for target in ast.walk(where)
        if isinstance(target, ast.Name)
    }
    return {name: shown(getattr(module, name)) for name in sorted(defined)}


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Deciding and reporting", numbers(thresholds)),
        (
            "Bisecting",
            numbers(bisect_thresholds)
            | {field.name: getattr(Policy(), field.name) for field in dataclasses.fields(Policy)},
        ),
    ],
)
def test_the_page_has_every_threshold_with_its_value(
    title: str, expected: dict[str, object]
) -> None:
    assert {name: written(cell) for name, cell in section(title).items()} == expected


def test_the_page_has_the_defaults_of_the_settings_that_decide() -> None:
    settings = load(environ={})
    rows = section("Settings of the operator")
    assert rows
    for name, cell in rows.items():
        group, key = name.split(".")
        assert getattr(getattr(settings, group), key) == written(cell), name


def test_the_page_has_the_minimum_effect_of_every_headline_metric() -> None:
    expected = {
        metric.name: "; ".join(
            [f"`{metric.min_effect_pct:g}`"]
            + [f"`{key}={glob}` `{pct:g}`" for key, glob, pct in metric.min_effect_when]
        )
        for program in load_programs(ROOT / "jobs" / "programs").values()
        for metric in program.metrics.values()
        if metric.headline
    }
    assert expected
    assert section("The minimum effect of a metric") == expected


def test_every_threshold_says_what_happens_when_it_moves() -> None:
    for line in PAGE.splitlines():
        cells = line.replace("\\|", "").strip("| ").split(" | ")
        if re.match(r"\| `[A-Za-z_]+` \|", line):
            assert len(cells) == 4 and all(cell.strip() for cell in cells), line
