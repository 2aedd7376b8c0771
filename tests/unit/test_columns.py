"""Columns beside the numbers of a table, from samples as monitors give them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from swingbot.core.report.table.code_size import code_lines
from swingbot.core.report.table.columns import ColumnSources, column, columns_of
from swingbot_jobs.kernel_diff import (
    KernelRecord,
    SymbolRecord,
    object_row,
    read_record,
    write_record,
)

PROGRAMS = Path(__file__).parents[2] / "jobs" / "programs"
PLACE = ("vm-tcg", "page-fault-2")


def recorded(program: str, name: str) -> dict[str, list[float]]:
    """The samples of a shipped recording."""
    file = PROGRAMS / program / "samples" / f"{name}.expected.json"
    samples: dict[str, list[float]] = json.loads(file.read_text())["samples"]
    return samples


def samples_of(
    arm: int, values: Mapping[str, float | list[float]], *, boot: str = "x1", run: int = 1
) -> list[dict[str, Any]]:
    return [
        {
            "arm": arm,
            "boot": boot,
            "run": run,
            "testbox": PLACE[0],
            "unit_job": PLACE[1],
            "metric": metric,
            "seq": seq,
            "value": value,
        }
        for metric, given in values.items()
        for seq, value in enumerate(given if isinstance(given, list) else [given])
    ]


def sources(samples: Iterable[dict[str, Any]] = (), **more: Any) -> ColumnSources:
    return ColumnSources(names=["base", "head"], samples=list(samples), **more)


def loaded(wanted: str, samples: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The samples that `wanted` would load from the database."""
    globs = [pattern.replace("%", "*") for pattern in column(wanted).metrics]
    return [one for one in samples if any(fnmatch(one["metric"], glob) for glob in globs)]


def titles(wanted: str, known: ColumnSources) -> list[str]:
    return [numbers.title for numbers in columns_of([wanted], known).values]


def test_locks_are_shares_of_cpu_time_by_lock_without_a_profile() -> None:
    contention = recorded("lock-contention", "guest-page-fault")
    known = sources(loaded("locks", samples_of(0, contention)))
    extra = columns_of(["locks"], known)
    assert [numbers.title for numbers in extra.values] == ["spin %", "zone lock %", "LRU lock %"]
    total, zone, lru = (numbers.of(PLACE, 0) for numbers in extra.values)
    assert total is not None and zone is not None and lru is not None
    assert total == contention["lock-contention.spinning_pct"][0]
    assert zone == 0.0 and 8.0 < lru < total  # the recording has waits for the LRU lock alone
    (note,) = extra.texts
    assert "from perf lock contention" in note.heading and "samples" not in note.heading


def test_a_profile_adds_the_share_of_samples_and_says_what_it_is_worth() -> None:
    contention = recorded("lock-contention", "guest-page-fault")
    both = samples_of(0, {**contention, "perf-profile.lock_slowpath": 34.5})
    extra = columns_of(["locks"], sources(loaded("locks", both)))
    assert [numbers.title for numbers in extra.values] == [
        "spin % of samples",
        "spin %",
        "zone lock %",
        "LRU lock %",
    ]
    assert extra.values[0].of(PLACE, 0) == 34.5
    sampled, timed = (note.heading for note in extra.texts)
    assert "a share of cycles where there is a PMU" in sampled
    assert "from perf lock contention" in timed
    profile = columns_of(["locks"], sources(samples_of(0, {"perf-profile.lock_slowpath": 34.5})))
    assert len(profile.values) == len(profile.texts) == 1


def test_locks_that_no_run_recorded_are_said_to_be_missing() -> None:
    extra = columns_of(["locks"], sources())
    assert not extra.values and "not recorded by any run" in extra.texts[0].heading
    assert columns_of(["locks"], sources(measured=False)).texts == []  # no run exists yet


def test_a_column_is_the_mean_of_boot_means() -> None:
    metric = "perf-stat.instructions"
    samples = [
        *samples_of(0, {metric: 10.0}, boot="x1", run=0),
        *samples_of(0, {metric: 20.0}, boot="x1", run=1),
        *samples_of(0, {metric: 35.0}, boot="x2", run=0),
        *samples_of(1, {metric: 7.0}, boot="x3"),
    ]
    (numbers,) = columns_of([metric], sources(samples)).values
    assert numbers.title == "instructions"
    assert (numbers.of(PLACE, 0), numbers.of(PLACE, 1)) == (25.0, 7.0)
    assert numbers.of(("other", PLACE[1]), 0) is None


def a_zone(*blocks: float, zone: str = "Normal") -> dict[str, float]:
    return {
        f"buddyinfo.after.Node.0.zone.{zone}.{order}": count for order, count in enumerate(blocks)
    }


def test_buddyinfo_is_the_unusable_index_of_the_largest_zone_and_the_free_blocks() -> None:
    # 100 single pages and two blocks of 2^10: 2048 of 2148 pages are free for a huge page.
    large, small = a_zone(100, *[0] * 9, 2), a_zone(1, *[0] * 10, zone="DMA")
    extra = columns_of(["buddyinfo"], sources(samples_of(1, {**large, **small})))
    (numbers,) = extra.values
    assert numbers.title == "unusable 9"
    assert numbers.of(PLACE, 1) == pytest.approx(100 / 2148)
    assert numbers.of(PLACE, 0) is None
    (block,) = extra.texts
    assert block.heading == "Free blocks by order after the runs, on vm-tcg, page-fault-2:"
    assert block.lines == [
        "  head",
        "    Node 0, zone      DMA" + "     1" + "     0" * 10,
        "    Node 0, zone   Normal" + "   100" + "     0" * 9 + "     2",
    ]


def test_a_zone_without_orders_of_huge_pages_or_without_free_pages_is_no_error() -> None:
    assert titles("buddyinfo", sources(samples_of(0, a_zone(5, 5, 5)))) == []
    (numbers,) = columns_of(["buddyinfo"], sources(samples_of(0, a_zone(*[0] * 11)))).values
    assert numbers.of(PLACE, 0) == 1.0
    assert columns_of(["buddyinfo"], sources()).values == []


def test_buddyinfo_of_a_shipped_recording_has_an_index_between_0_and_1() -> None:
    samples = loaded("buddyinfo", samples_of(0, recorded("buddyinfo", "host")))
    (numbers,) = columns_of(["buddyinfo"], sources(samples)).values
    value = numbers.of(PLACE, 0)
    assert value is not None and 0 <= value <= 1


def test_the_profile_lists_symbols_that_move_by_a_point_largest_first() -> None:
    own = "perf-profile.self.cycles:P."
    samples = [
        *samples_of(0, {f"{own}clear_page": 20.0, f"{own}gone": 3.0, f"{own}flat": 5.0}),
        *samples_of(1, {f"{own}clear_page": 26.5, f"{own}new": 1.0, f"{own}flat": 5.9}),
    ]
    extra = columns_of(["profile"], sources(loaded("profile", samples), references=[(0, 1)]))
    (block,) = extra.texts
    assert block.heading == "Symbols of head against base on vm-tcg, points of samples:"
    assert [line.split() for line in block.lines] == [
        ["+6.50", "20.00", "26.50", "cycles:P.clear_page"],
        ["-3.00", "3.00", "0.00", "cycles:P.gone"],
        ["+1.00", "0.00", "1.00", "cycles:P.new"],
    ]
    assert extra.values == []


def a_record(size: int, *, objects: int = 1) -> KernelRecord:
    """A kernel whose functions have `size` bytes each, one in an object."""
    sizes = {"text": size, "data": 8, "bss": 4}
    return read_record(
        write_record(
            compiler="gcc 12",
            flags=[],
            sizes={"text": size * objects, "data": 8 * objects, "bss": 4 * objects},
            symbols={"t": {f"f{n}": size for n in range(objects)}},
            objects={
                f"mm/o{n:02}.o": object_row(
                    f"{size:064x}",
                    sizes,
                    [SymbolRecord(name=f"f{n}", size=size, shape=f"{size}", constants="", uses=())],
                    [],
                )
                for n in range(objects)
            },
        )
    )


def of_records(*records: KernelRecord) -> dict[str, Any]:
    """What the records of one or two kernels say for columns."""
    return {
        "sizes": {arm: record.sizes for arm, record in enumerate(records)},
        "growth": {(0, 1): code_lines(*records)} if len(records) == 2 else {},
    }


def test_size_is_the_sections_of_vmlinux_and_the_objects_that_changed() -> None:
    known = sources(**of_records(a_record(100), a_record(140)))
    extra = columns_of(["size"], known)
    assert [(numbers.title, numbers.of(PLACE, 1)) for numbers in extra.values] == [
        ("text", 140.0),
        ("data", 8.0),
        ("bss", 4.0),
    ]
    (block,) = extra.texts
    assert block.heading == "Code of head against base:"
    assert block.lines[1].split() == ["mm/o00.o", "100->140", "8", "4"]
    assert any("f0" in line and "+40" in line for line in block.lines)


def test_at_most_ten_objects_are_listed_and_the_total_of_bloat_stays() -> None:
    known = sources(**of_records(a_record(100, objects=30), a_record(101, objects=30)))
    (block,) = columns_of(["size"], known).texts
    assert sum(line.startswith("  mm/o") for line in block.lines) == 10
    assert block.lines[-1].startswith("  Total: Before=3000, After=3030")


def test_equal_code_is_said_to_be_unchanged_and_a_kernel_without_a_record_is_left_out() -> None:
    same = of_records(a_record(100), a_record(100))
    (block,) = columns_of(["size"], sources(**same)).texts
    assert block.heading == "Code of head against base: nothing changed"
    lone = columns_of(["size"], sources(**of_records(a_record(100)), references=[(0, 1)]))
    assert lone.texts == [] and lone.values[0].of(PLACE, 1) is None


def test_parts_stand_in_the_order_that_was_asked_for() -> None:
    samples = samples_of(0, {**a_zone(100, *[0] * 9, 2), "perf-profile.lock_slowpath": 1.0})
    known = sources(samples, **of_records(a_record(100)))
    assert [
        numbers.title for numbers in columns_of(["size", "buddyinfo", "locks"], known).values
    ] == [
        "text",
        "data",
        "bss",
        "unusable 9",
        "spin % of samples",
    ]
