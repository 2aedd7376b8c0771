"""Runs that lkp-tests did instead of our own runner: the job file that it is given, and what its result root says.

LKP's names are ours, so its statistics are samples as they are. Its exit status is not: `lkp run` ends with 0 whatever its test did, a run
that died leaves `{}`, and its matrices hold 0 where nothing was measured. So `last_state` is looked at first, `stats.json` of this one run
is the only file that numbers come from, and the program's raw output is read once more by our own parser, which knows how many
instances there should be. What is missing is missing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Program
from swingbot_jobs.printable import printable
from swingbot_jobs.reading.result import ParseError

# Files of a run: the marker that says who ran it, and those of LKP's result root behind a prefix, because `stats.json` is a name of ours too.
MARKER: Final = "engine"
PREFIX: Final = "lkp."
STATS: Final = f"{PREFIX}stats.json"
LAST_STATE: Final = f"{PREFIX}last_state"
LEFT_OUT: Final = f"{PREFIX}left_out"

# Programs of ours that lkp-tests has too, with the same parameters.
PENDANTS: Final = ("hackbench", "netperf", "will-it-scale")
Parsed = Mapping[str, float | list[float]]

_MAX_KEYS: Final = 20_000
_EXIT: Final = re.compile(r"(setup|daemon|test)\.([A-Za-z0-9_.-]{1,80})\.exit_code\.([0-9]{1,3})")
# What LKP notes when a run did not go as it should, in words.
_STATES: Final = {
    "is_incomplete_run": "the run is incomplete",
    "soft_timeout": "it was stopped by LKP's soft time limit",
    "OOM": "the machine ran out of memory",
    "exit_fail": "a program failed",
}
_NOT_RUN: Final = "LKP wrote no stats.json"
# Relative difference between two readers of one output above which they do not agree; LKP's sums are rounded differently in the last digit.
_EQUAL: Final = 1e-9


class NoLkpEquivalent(ValueError):
    """lkp-tests has no such program or monitor; the message says which programs it shares with us."""


def job_file(job: UnitJob) -> str:
    """The job for `lkp run`, without axes and without LKP's monitors: YAML whose values are those that our own runner passes.

    Raises NoPendant.
    """
    refuse_unknown([job])
    head = f"suite: {job.program}\ntestcase: {job.program}\ncategory: benchmark\nneed_monitors: 'false'\n"
    if job.program != "netperf":
        return f"{head}{job.program}:\n{_settings(job.params, 2)}"
    server = _settings({"ip": job.params.get("ip", "ipv4")}, 0)
    cluster = job.params.get("cluster", "cs-localhost")
    roles = f"cluster: {json.dumps(cluster)}\nnode_roles: server client\n{server}if role server:\n  netserver:\nif role client:\n  netperf:\n"
    return (
        head
        + roles
        + _settings(
            {name: value for name, value in job.params.items() if name not in ("cluster", "ip")}, 4
        )
    )


def refuse_unknown(jobs: Iterable[UnitJob]) -> None:
    """Raise NoPendant for the first of `jobs` that LKP can't run."""
    for job in jobs:
        if job.program not in PENDANTS:
            raise NoLkpEquivalent(
                f"{job.name}: engine lkp can't run {job.program}: lkp-tests has no such program; it shares {', '.join(PENDANTS)} with us"
            )
        if job.monitors:
            raise NoLkpEquivalent(
                f"{job.name}: engine lkp has no runs for the monitor {job.monitors[0]}"
            )


def _settings(params: Mapping[str, str], indent: int) -> str:
    return "".join(
        f"{' ' * indent}{name}: {json.dumps(value)}\n" for name, value in sorted(params.items())
    )


def is_lkp(files: Mapping[str, str]) -> bool:
    """Whether LKP ran it."""
    return files.get(MARKER, "").strip() == "lkp"


def read_lkp(
    program: Program, files: Mapping[str, str], own: Callable[[], Parsed]
) -> tuple[Parsed, str | None]:
    """The benchmark's samples of one run by LKP, without the program's name before them, and a remark.

    `own` reads the program's output with our parser. Raises ParseError with what LKP says of a run that can't count.
    """
    if said := list(_states(files.get(LAST_STATE, ""))):
        raise ParseError(f"LKP's last_state: {'; '.join(dict.fromkeys(said))}")
    stats = _stats(files)
    if said := [
        state
        for name, value in stats.items()
        if name.startswith("last_state.") and value != 0
        for state in [_state(name.partition(".")[2])]
    ]:
        raise ParseError(f"LKP's last_state: {'; '.join(dict.fromkeys(said))}")
    found = dict(_benchmark(program, stats))
    if not found:
        raise ParseError(f"LKP's stats.json has no {program.name} statistic")
    other = own()  # a lost instance is told here: LKP takes the mean of the survivors
    for name, value in other.items():
        if name not in found and isinstance(value, float | int) and value != 0:
            raise ParseError(
                f"LKP's stats.json lacks {program.name}.{name}, which the program printed"
            )
    unlike = [
        name for name, value in other.items() if name in found and not _alike(value, found[name])
    ]
    remark = (
        f"LKP and swingbot read {', '.join(unlike[:3])} differently; LKP's is kept"
        if unlike
        else None
    )
    return found, remark


def _benchmark(
    program: Program, stats: Mapping[str, float]
) -> Iterator[tuple[str, float | list[float]]]:
    """The statistics that the program's meta.yaml knows. LKP writes no 0 for a benchmark: there it means that nothing was measured."""
    for full_name, value in stats.items():
        metric = program.metric(full_name)
        if metric is None:
            continue
        if value == 0 and metric.headline:
            raise ParseError(f"LKP's stats.json gives {full_name} as 0, which no run measures")
        yield full_name.removeprefix(f"{program.name}."), value


def _alike(own: float | list[float], theirs: float | list[float]) -> bool:
    return (
        isinstance(own, float | int)
        and isinstance(theirs, float | int)
        and math.isclose(own, theirs, rel_tol=_EQUAL)
    )


def exit_status(last_state: str) -> int:
    """The exit status of the test, which `lkp run` does not tell; 0 if `last_state` knows of none that failed."""
    codes = [
        int(match[3]) for line in last_state.splitlines() if (match := _EXIT.match(line.strip()))
    ]
    return next((code for code in codes if code), 0)


def _states(text: str) -> Iterator[str]:
    """What `last_state` says, in words: `name: 1` lines, and remarks behind `#`."""
    for line in text.splitlines()[:200]:
        name, _, value = line.strip()[:300].partition(":")
        if name and not name.startswith("#") and value.strip() != "0":
            yield _state(name)


def _state(name: str) -> str:
    if match := _EXIT.fullmatch(name):
        return f"{match[2]} ended with exit status {match[3]}"
    return _STATES.get(name) or printable(name[:80])


def _stats(files: Mapping[str, str]) -> dict[str, float]:
    """`stats.json`: finite numbers by name. Names too long for us and values that are no numbers make it unbelievable as a whole."""
    text = files.get(STATS, "")
    if not text.strip():
        raise ParseError(
            f"{_NOT_RUN} ({' '.join(files[LEFT_OUT].split())[:200]})"
            if files.get(LEFT_OUT)
            else _NOT_RUN
        )
    try:
        found: Any = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"LKP's stats.json is broken: {str(error)[:200]}") from error
    if not isinstance(found, dict):
        raise ParseError("LKP's stats.json is no table of names and numbers")
    if len(found) > _MAX_KEYS:
        raise ParseError(f"LKP's stats.json has {len(found)} statistics, more than {_MAX_KEYS}")
    return {
        name: float(value)
        for name, value in found.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and _sane(name, value)
    }


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is no finite number")


def _sane(name: str, value: float) -> bool:
    if len(name) > 1000:
        raise ParseError(f"LKP's stats.json has a name of {len(name)} characters: {name[:60]!r}...")
    if (isinstance(value, int) and abs(value) > 10**300) or not math.isfinite(value):
        raise ParseError(f"LKP's stats.json gives {name[:60]!r} as no finite number")
    return True
