"""Rows of an experiment and what each is compared with."""

from __future__ import annotations

import pytest

from swingbot.core.table.layout import Axis, BadLayout, lay_out
from swingbot.core.table.references import references

COMPILERS = Axis(name="compiler", values=(("gcc-11", "gcc-11"), ("gcc-12", "gcc-12")))
THP = Axis(
    name="cmdline",
    values=(("never", "transparent_hugepage=never"), ("always", "transparent_hugepage=always")),
)


def test_kernels_alone_keep_their_names_and_their_order() -> None:
    rows = lay_out(["v6.1", "1/2", "2/2"], [])
    assert [row.name for row in rows] == ["v6.1", "1/2", "2/2"]
    assert [row.axes for row in rows] == [{"kernel": name} for name in ("v6.1", "1/2", "2/2")]


def test_axes_multiply_and_kernels_stand_side_by_side() -> None:
    rows = lay_out(["base", "head"], [COMPILERS, THP])
    assert [row.name for row in rows] == [
        "gcc-11 never base",
        "gcc-11 never head",
        "gcc-11 always base",
        "gcc-11 always head",
        "gcc-12 never base",
        "gcc-12 never head",
        "gcc-12 always base",
        "gcc-12 always head",
    ]
    assert rows[3].values == {"compiler": "gcc-11", "cmdline": "transparent_hugepage=always"}


def test_an_axis_of_one_value_is_not_in_the_names() -> None:
    one = Axis(name="sysctl", values=(("high8", "vm.percpu_pagelist_high_fraction=8"),))
    rows = lay_out(["fix"], [COMPILERS, one])
    assert [row.name for row in rows] == ["gcc-11", "gcc-12"]
    assert rows[0].values["sysctl"] == "vm.percpu_pagelist_high_fraction=8"


def test_combinations_are_left_out() -> None:
    rows = lay_out(["base", "head"], [COMPILERS], [{"compiler": "gcc-12", "kernel": "head"}])
    assert [row.name for row in rows] == ["gcc-11 base", "gcc-11 head", "gcc-12 base"]


class Counted(str):
    """A label that counts how often it is compared."""

    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        type(self).times += 1
        return str(self) is str(other) or str.__eq__(self, other)


def test_many_exclusions_are_not_searched_for_each_combination() -> None:
    """Not more comparisons than combinations and exclusions, where all pairs would be 200 000."""
    labels = [Counted(f"v{n}") for n in range(200)]
    out = [{"sysctl": label} for label in labels[:-1]] * 5
    Counted.times = 0
    axis = Axis(name="sysctl", values=tuple((Counted(label), "") for label in labels))
    assert len(lay_out(["base", "head"], [axis], out)) == 2
    assert Counted.times < 10_000


def test_rows_are_counted_without_those_that_are_left_out() -> None:
    kernels = [str(n) for n in range(150)]
    out = [{"compiler": "gcc-12", "kernel": name} for name in kernels[1:]]
    assert len(lay_out(kernels, [COMPILERS], out)) == 151


@pytest.mark.parametrize(
    ("kernels", "axes", "exclude", "words"),
    [
        ([], [], [], "at least one kernel"),
        (["a"], [], [], "at least two rows, but this one has 1"),
        (["a", "b", "a"], [], [], "two variants are called 'a'"),
        (
            [str(n) for n in range(10_000)],
            [],
            [],
            "that makes 10000 rows; a table can have at most 200",
        ),
        ([str(n) for n in range(150)], [COMPILERS], [], "that makes 300 rows"),
        (
            [str(n) for n in range(150)],
            [COMPILERS],
            [{"compiler": "gcc-12", "kernel": "1"}],
            "that makes 299 rows",
        ),
        ([str(n) for n in range(60_000)], [COMPILERS], [], "that makes 120000 combinations"),
        ([f"{'x' * 200}{n}" for n in range(2)], [], [], "2 rows would be called 'xxx"),
        (
            ["a"],
            [Axis(name="compiler", values=(("x", "1"), ("x", "2")))],
            [],
            "two values of compiler are called 'x'",
        ),
        (["a", "b"], [], [{"compiler": "gcc"}], "no axis 'compiler'; the axes are kernel"),
        (["a", "b"], [COMPILERS], [{"compiler": "gcc-9"}], "compiler has no value 'gcc-9'"),
        (["a", "b"], [], [{"kernel": "a"}], "at least two rows, but this one has 1"),
    ],
)
def test_what_makes_no_table_is_refused(
    kernels: list[str], axes: list[Axis], exclude: list[dict[str, str]], words: str
) -> None:
    with pytest.raises(BadLayout, match=words):
        lay_out(kernels, axes, exclude)


def test_above_goes_from_kernel_to_kernel_under_the_same_conditions() -> None:
    rows = [row.axes for row in lay_out(["a", "b", "c"], [COMPILERS])]
    assert references("above", rows) == [(0, 1), (1, 2), (3, 4), (4, 5)]
    assert references("above", [row.axes for row in lay_out(["a"], [COMPILERS, THP])]) == [
        (0, 1),
        (1, 2),
        (2, 3),
    ]


def test_above_passes_over_a_row_that_was_not_measured() -> None:
    rows = [row.axes for row in lay_out(["a", "b", "c", "d"], [])]
    assert references("above", rows, {1, 2}) == [(0, 1), (0, 2), (0, 3)]
    assert references("above", rows, {0}) == [(0, 1), (1, 2), (2, 3)]


def test_first_and_base_are_common_to_all_rows() -> None:
    rows = [row.axes for row in lay_out(["a", "b", "c"], [])]
    assert references("first", rows) == references("base", rows) == [(0, 1), (0, 2)]


def test_pairs_are_base_and_head_of_each_combination() -> None:
    rows = [row.axes for row in lay_out(["base", "head"], [COMPILERS, THP])]
    assert references("pair", rows) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    left_out = lay_out(["base", "head"], [COMPILERS], [{"compiler": "gcc-12", "kernel": "base"}])
    assert references("pair", [row.axes for row in left_out]) == [(0, 1)]


def test_a_plain_comparison_is_head_against_base_by_every_rule_that_fits() -> None:
    assert references("first", [{}, {}]) == references("above", [{}, {}]) == [(0, 1)]
