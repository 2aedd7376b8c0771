"""Two kernels are one row, so a table of them prints what a comparison prints."""

from __future__ import annotations

import pytest

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.stats.compare import BootRuns, Rule, compare
from swingbot.core.stats.family import compare_family
from swingbot.core.stats.looks import Look
from tests.golden.compared import COMPARED, Boots, Judge, compared_text
from tests.golden.remake import text_of

DOCUMENT = COMPARED / "two_kernels.in.yaml"


def as_a_table(base: Boots, head: Boots, rule: Rule) -> ComparisonRow:
    look = Look()
    (row,) = compare_family([base, head], [(0, 1)], look.rule(rule))
    return look.admitted(row, ("", "", "", "first", 1))


@pytest.mark.parametrize("judge", [compare, as_a_table])
def test_a_comparison_prints_what_the_golden_has(judge: Judge) -> None:
    assert compared_text(DOCUMENT, judge) == text_of(DOCUMENT).read_text(encoding="utf-8")


def test_another_row_changes_what_is_printed() -> None:
    def beside_another(base: Boots, head: Boots, rule: Rule) -> ComparisonRow:
        third = [BootRuns(k=boot.k, values=boot.values) for boot in base]
        return compare_family([base, head, third], [(0, 1), (0, 2)], rule)[0]

    assert compared_text(DOCUMENT, beside_another) != compared_text(DOCUMENT)
