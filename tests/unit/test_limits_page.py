"""docs/limits.md gives every limit of input, with the value that the code has."""

from __future__ import annotations

import re

import pytest

from tests import limits_page
from tests.thresholds_page import ROOT, comments

WORDS = 1950
MODULES = sorted(limits_page.MODULES.values())


def test_the_page_has_every_limit_with_its_value_and_stays_short() -> None:
    page = limits_page.PAGE.read_text()
    assert limits_page.page() == page, "python -m tests.limits_page, into docs/limits.md"
    assert len(page.split()) <= WORDS


def test_every_module_of_limits_is_on_the_page() -> None:
    packages = (
        "jobs/swingbot_jobs",
        "master/swingbot",
        "db/swingbot_db",
        "workers/swingbot_worker",
    )
    found = [path for package in packages for path in (ROOT / package).rglob("limits.py")]
    of_packages = [path for path in found if path.with_name("__init__.py").exists()]
    named = [str(path.relative_to(ROOT)) for path in of_packages if path.parent.name not in PARTS]
    assert sorted(named) == MODULES


# What one build and one boot may take: computed from the limits of the worker.
PARTS = ("walls", "testbox")


@pytest.mark.parametrize("module", MODULES)
def test_every_limit_has_a_heading_a_unit_and_a_use(module: str) -> None:
    package = (ROOT / module).parent
    root = package if package.name.startswith("swingbot_") else package.parent
    others = [path for path in root.rglob("*.py") if path.name != "limits.py"]
    others += [path for path in root.rglob("*/limits.py") if path.parent != package]
    words = {word for path in others for word in re.findall(r"\w+", path.read_text())}
    groups = list(comments(ROOT / module))
    assert groups[0][0], "the first limit begins a heading"
    for _, numbers, about in groups:
        assert about, numbers
        for number in numbers:
            name = re.match(r"`(\w+)", number)
            assert name and name[1] in words, number
