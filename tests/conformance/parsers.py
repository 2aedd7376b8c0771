"""Parsers: lkp-tests' fixtures and recorded outputs, parsed by LKP and by swingbot.

Both sides are converted to {key: values}, with one value per snapshot or interval. LKP does not
store keys that are always 0, so the comparison drops them too; times are not results. Numbers are
equal to 12 digits, because LKP rounds sums differently in the last digit.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from swingbot_jobs.reading.perf_interval import read_intervals
from swingbot_jobs.reading.perf_profile import read_profile
from swingbot_jobs.reading.result import ParseError
from tests.conformance.row import Row
from tests.conformance.ruby import missing
from tests.demo.process import attempt

PROGRAMS: Final = Path(__file__).resolve().parents[2] / "jobs" / "programs"
Keyed = dict[str, list[float]]


@dataclass(frozen=True)
class Pair:
    """LKP's program, swingbot's, and swingbot's values under LKP's keys.

    `settle` removes intended differences and returns the reason.
    """

    lkp: str
    own: str
    read: Callable[[str], Keyed]
    settle: Callable[[Keyed, Keyed], str] = lambda ours, theirs: ""
    live: str = ""  # a file of this machine whose content is an output too


def check(lkp_src: Path) -> list[Row]:
    """A row for each program and monitor that both have."""
    return [_row(lkp_src, pair) for pair in PAIRS]


def _row(lkp_src: Path, pair: Pair) -> Row:
    compared, differences = 0, []
    notes: dict[str, list[str]] = {}
    for name, text, theirs in _outputs(lkp_src, pair):
        if theirs is None:
            notes.setdefault("LKP's parse fails", []).append(name)
            continue
        ours = _ours(pair, text)
        compared += bool(theirs)
        if note := pair.settle(ours, theirs):
            notes.setdefault(note, []).append(name)
        differences += [f"{name}: {difference}" for difference in _differences(ours, theirs)]
    if lacking := missing():
        notes[f"only fixtures were compared: {lacking}"] = []
    remarks = "; ".join(
        f"{note} ({', '.join(names)})" if names else note for note, names in notes.items()
    )
    return Row(
        what=f"parse {pair.own}", compared=compared, differences=tuple(differences), note=remarks
    )


def _outputs(lkp_src: Path, pair: Pair) -> Iterator[tuple[str, str, Keyed | None]]:
    """(name, raw output, LKP's values): fixtures with their expected values, other outputs through
    LKP's parser."""
    for expected in sorted((lkp_src / "spec" / "fixtures" / "stats" / pair.lkp).glob("*.yaml")):
        yield (
            f"fixture {expected.stem}",
            expected.with_suffix("").read_text(errors="replace"),
            _keyed(expected.read_text()),
        )
    if missing():
        return
    for raw in sorted((PROGRAMS / pair.own / "samples").glob("*.raw")):
        path = raw / "stdout" if raw.is_dir() else raw
        yield f"{raw.stem}", path.read_text(), _through_lkp(lkp_src, pair.lkp, path.read_text())
    if pair.live and Path(pair.live).is_file():
        text = "".join(f"time: {at}\n{Path(pair.live).read_text()}" for at in (1, 2))
        yield f"this machine's {pair.live}", text, _through_lkp(lkp_src, pair.lkp, text)


def _through_lkp(lkp_src: Path, program: str, text: str) -> Keyed | None:
    status, printed, _ = attempt(
        [lkp_src / "programs" / program / "parse"],
        stdin=text.encode(),
        env={**os.environ, "LKP_SRC": str(lkp_src)},
    )
    return _keyed(printed) if status == 0 else None


def _keyed(text: str) -> Keyed:
    """LKP's `key: value` lines; values that are not numbers are dropped, as LKP does."""
    found: Keyed = {}
    for line in text.splitlines():
        key, _, value = line.rpartition(": ")
        try:
            found.setdefault(key, []).append(float(value))
        except ValueError:
            continue
    return found


def _ours(pair: Pair, text: str) -> Keyed:
    try:
        return pair.read(text)
    except ParseError:
        return {}


def _differences(ours: Keyed, theirs: Keyed) -> Iterator[str]:
    left, right = _told(ours), _told(theirs)
    for key in sorted(left.keys() | right.keys()):
        a, b = left.get(key), right.get(key)
        if a is None or b is None:
            yield (
                f"{key}: "
                f"{f'only LKP has it: {b[:3]}' if b else f'only we have it: {(a or [])[:3]}'}"
            )
        elif len(a) != len(b) or not all(
            math.isclose(x, y, rel_tol=1e-12) for x, y in zip(a, b, strict=True)
        ):
            yield f"{key}: {a[:3]} here, {b[:3]} there"


def _told(found: Mapping[str, list[float]]) -> Keyed:
    return {key: values for key, values in found.items() if key != "time" and any(values)}


# --- ours under LKP's keys ------------------------------------------------------------------------


def _module(program: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f"conformance_{program.replace('-', '_')}", PROGRAMS / program / "parse.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their own module up there
    spec.loader.exec_module(module)
    return module


def _benchmark(program: str) -> Callable[[str], Keyed]:
    def read(text: str) -> Keyed:
        return {
            key: [float(value)]
            for key, value in _module(program).parse({"stdout": text}, {}).items()
        }

    return read


def _series(program: str) -> Callable[[str], Keyed]:
    def read(text: str) -> Keyed:
        found: Keyed = {}
        for snapshot in _module(program).series(text):
            for key, value in snapshot.items():
                found.setdefault(key, []).append(value)
        return found

    return read


def _intervals(text: str) -> Keyed:
    found = read_intervals(text)
    return {**found.series, **{key: [value] for key, value in found.whole.items()}}


def _profile(text: str) -> Keyed:
    return {key: [round(share, 2)] for key, share in read_profile(text).items() if share >= 0.05}


# --- differences that are meant -------------------------------------------------------------------


def _second_name(ours: Keyed, theirs: Keyed) -> str:
    """`throughput_best` is LKP's second name of `throughput`."""
    if "throughput_best" in theirs and theirs["throughput_best"] == theirs["throughput"]:
        del theirs["throughput_best"]
    return ""


def _no_table(ours: Keyed, theirs: Keyed) -> str:
    """LKP reads the table of runtest.py alone; of a run without a number it keeps the assertion
    as a stat, which is a failed run here."""
    if not theirs:
        ours.clear()
        return "without runtest.py's table there is nothing for LKP"
    if not ours and theirs and all(key.startswith("Assertion_") for key in theirs):
        theirs.clear()
        return "no operation was done: a failed run here, an assertion counter in LKP"
    return ""


def _unit_for_event(ours: Keyed, theirs: Keyed) -> str:
    """In blank-separated output LKP takes the unit for the event and sums both clocks under it."""
    settled = False
    for prefix in ("i.", "ps."):
        both = [ours.get(f"{prefix}{clock}", []) for clock in ("cpu-clock", "task-clock")]
        added = [sum(pair) for pair in zip(*both, strict=False)]
        if added and [round(x, 6) for x in added] == [
            round(x, 6) for x in theirs.get(f"{prefix}msec", [])
        ]:
            del theirs[f"{prefix}msec"], ours[f"{prefix}cpu-clock"], ours[f"{prefix}task-clock"]
            settled = True
    return "LKP's `msec` is the sum of cpu-clock and task-clock" if settled else ""


def _busybox(ours: Keyed, theirs: Keyed) -> str:
    """LKP supports only GNU time: it reads busybox's `0m 9.02s` as 0 and accepts its wrong resident
    set size."""
    if theirs.get("elapsed_time") == [0.0] and ours.get("elapsed_time", [0.0]) != [0.0]:
        for key in ("elapsed_time", "maximum_resident_set_size"):
            ours.pop(key, None)
            theirs.pop(key, None)
        return "busybox's elapsed time and resident set size are not known to LKP"
    return ""


PAIRS: Final = (
    Pair("will-it-scale", "will-it-scale", _benchmark("will-it-scale"), _no_table),
    Pair("netperf", "netperf", _benchmark("netperf")),
    Pair("hackbench", "hackbench", _benchmark("hackbench"), _second_name),
    Pair("perf-stat", "perf-stat-interval", _intervals, _unit_for_event),
    Pair("perf-profile", "perf-profile", _profile),
    Pair("vmstat", "vmstat", _series("vmstat")),
    Pair("time", "time", _series("time"), _busybox),
    Pair("proc-vmstat", "proc-vmstat", _series("proc-vmstat"), live="/proc/vmstat"),
    Pair("meminfo", "meminfo", _series("meminfo"), live="/proc/meminfo"),
    Pair("buddyinfo", "buddyinfo", _series("buddyinfo"), live="/proc/buddyinfo"),
    Pair("softirqs", "softirqs", _series("softirqs"), live="/proc/softirqs"),
    Pair("interrupts", "interrupts", _series("interrupts"), live="/proc/interrupts"),
    Pair("numa-vmstat", "numa-vmstat", _series("numa-vmstat")),
    Pair(
        "numa-meminfo",
        "numa-meminfo",
        _series("numa-meminfo"),
        live="/sys/devices/system/node/node0/meminfo",
    ),
    Pair("numa-numastat", "numa-numastat", _series("numa-numastat")),
)
