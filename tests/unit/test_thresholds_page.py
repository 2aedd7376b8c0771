"""docs/thresholds.md gives every number that decides, with the value that the code has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from swingbot.app.settings import load
from swingbot_jobs.language.program import load_programs
from tests import thresholds_page

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "thresholds.md").read_text()
ROW = re.compile(r"^\| `([\w./*-]+)` \| (.+?) \|", re.MULTILINE)


def section(title: str) -> dict[str, str]:
    """The first two cells of each row below a heading of level 2."""
    _, _, rest = PAGE.partition(f"\n## {title}")
    assert rest, f"docs/thresholds.md has no section {title!r}"
    return dict(ROW.findall(re.split(r"\n## ", rest)[0]))


def written(cell: str) -> object:
    """A cell of the page as a value."""
    return ast.literal_eval(cell.strip("`"))


def test_the_page_has_every_threshold_with_its_value() -> None:
    assert thresholds_page.page() == PAGE, (
        "python -m tests.thresholds_page, into docs/thresholds.md"
    )


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


@pytest.mark.parametrize("module", thresholds_page.MODULES.values())
def test_every_threshold_says_what_happens_when_it_moves(module: str) -> None:
    for _, numbers, about in thresholds_page.comments(ROOT / module):
        assert len(thresholds_page.sentences(about)) > 1, numbers
