"""LKP's table: cells worked out by hand from its rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.report.parts.lkp_table import LkpGroup, lkp_cells, lkp_table
from swingbot.core.text import plain
from tests.unit.test_report import A_SIDE, HOSTILE, QUICK, ROW, a_row

GROUP = LkpGroup(
    base="b" * 40,
    base_subject="mm: good",
    head="a" * 40,
    head_subject="mm: bad",
    axes=(("testcase", "netperf"), ("tbox_group", "lab-1")),
)


@pytest.mark.parametrize(
    ("name", "base", "head", "cells"),
    [
        # mean 100, population deviation 1.63 %: hidden; 90 +- 4.49 (4.98 %): cut to 4
        (
            "x.ops",
            (98.0, 100.0, 102.0),
            (84.5, 90.0, 95.5),
            "    100.00           -10.0%      90.00 ±  4%",
        ),
        # a mean is cut, not rounded
        (
            "x.ops",
            (12345.9, 12345.9),
            (12345.9, 12345.9),
            "     12345            +0.0%      12345      ",
        ),
        # above 1e8; one value has no deviation
        ("x.ops", (123456789.0,), (123456789.0,), " 1.235e+08            +0.0%  1.235e+08      "),
        ("x.ops", (0.0, 0.0), (1.0, 1.0), "      0.00         +1e+102%       1.00      "),
        # per cent are subtracted
        (
            "mpstat.cpu.all.idle%",
            (10.0, 10.0),
            (50.4, 50.4),
            "     10.00           +40.4       50.40      ",
        ),
        ("perf-profile.x", (1.0, 3.0), (2.5, 2.5), "      2.00 ± 50%      +0.5        2.50      "),
    ],
)
def test_cells_are_as_lkps_rules_have_them(
    name: str, base: tuple[float, ...], head: tuple[float, ...], cells: str
) -> None:
    assert lkp_cells(name, base, head) == cells


def test_a_whole_table_has_lkps_lines() -> None:
    rows = [
        replace(
            a_row(metric=name),
            base=replace(A_SIDE, values=(100.0, 100.0)),
            head=replace(A_SIDE, values=(90.0, 90.0)),
        )
        for name in ("b.x", "a.y")
    ]
    assert lkp_table(GROUP, rows) == [
        "=" * 89,
        "tbox_group/testcase:",
        "  lab-1/netperf",
        "",
        "commit: ",
        '  bbbbbbbbbb ("mm: good")',
        '  aaaaaaaaaa ("mm: bad")',
        "",
        "bbbbbbbbbbbbbbbb aaaaaaaaaaaaaaaaaaaaaaaaaaa ",
        "---------------- --------------------------- ",
        "         %stddev     %change         %stddev",
        "             \\          |                \\  ",
        "    100.00           -10.0%      90.00        a.y",
        "    100.00           -10.0%      90.00        b.x",
    ]


def test_rows_whose_runs_are_not_known_are_left_out_and_an_empty_table_is_no_table() -> None:
    assert lkp_table(GROUP, [a_row()]) == []
    with pytest.raises(ValueError, match="values on both sides"):
        lkp_cells("x", (), (1.0,))


@QUICK
@given(st.lists(ROW, max_size=4), HOSTILE, HOSTILE)
def test_a_table_for_a_mail_is_78_columns_wide_at_most(rows: list, subject: str, axis: str) -> None:  # type: ignore[type-arg]
    group = replace(GROUP, head_subject=subject, axes=((axis, subject), ("a", "b")))
    for line in lkp_table(group, rows, plain.WIDTH):
        assert plain.columns(line.rstrip()) <= plain.WIDTH, line
