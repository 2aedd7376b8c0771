"""Runs of lkp-tests instead of swingbot's own runner: the job file that it gets,
and its result root.

swingbot uses LKP's names, so LKP's statistics are samples as they are.
Its exit status is unusable: `lkp run` always exits with 0, a run that died leaves `{}`,
and its matrices hold 0 where nothing was measured. So `last_state` is checked first,
`stats.json` of this one run is the only source of numbers, and swingbot's own parser reads the
program's raw output again, because it knows how many instances to expect.
A missing value stays missing.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from swingbot_jobs import limits
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Program
from swingbot_jobs.printable import printable
from swingbot_jobs.reading.result import ParseError

# Files of a run: the marker that names the engine, and those of LKP's result root with a prefix,
# because swingbot has a `stats.json` too.
MARKER: Final = "engine"
PREFIX: Final = "lkp."
STATS: Final = f"{PREFIX}stats.json"
LAST_STATE: Final = f"{PREFIX}last_state"
LEFT_OUT: Final = f"{PREFIX}left_out"

Parsed = Mapping[str, float | list[float]]

_EXIT: Final = re.compile(r"(setup|daemon|test)\.([A-Za-z0-9_.-]{1,80})\.exit_code\.([0-9]{1,3})")
# LKP's notes about a failed run, in words.
_STATES: Final = {
    "is_incomplete_run": "the run is incomplete",
    "soft_timeout": "it was stopped by LKP's soft time limit",
    "OOM": "the machine ran out of memory",
    "exit_fail": "a program failed",
}
_NOT_RUN: Final = "LKP wrote no stats.json"
# Largest relative difference between two readers of one output that agree;
# LKP's sums are rounded differently in the last digit.
_EQUAL: Final = 1e-9


class NoLkpEquivalent(ValueError):
    """lkp-tests lacks this program or monitor; the message lists the programs that both have."""


def job_file(job: UnitJob, programs: Mapping[str, Program]) -> str:
    """Return the job for `lkp run` as YAML, without axes and LKP's monitors,
    with the values that swingbot's own runner passes.

    Raises NoLkpEquivalent.
    """
    refuse_unknown([job], programs)
    head = (
        f"suite: {job.program}\ntestcase: {job.program}\ncategory: benchmark\n"
        "need_monitors: 'false'\n"
    )
    daemons = programs[job.program].daemons
    if not daemons:
        return f"{head}{job.program}:\n{_settings(job.params, 2)}"
    server = _settings({"ip": job.params.get("ip", "ipv4")}, 0)
    cluster = job.params.get("cluster", "cs-localhost")
    roles = (
        f"cluster: {json.dumps(cluster)}\nnode_roles: server client\n{server}"
        f"if role server:\n  {daemons[0]}:\nif role client:\n  {job.program}:\n"
    )
    return (
        head
        + roles
        + _settings(
            {name: value for name, value in job.params.items() if name not in ("cluster", "ip")}, 4
        )
    )


def job_file_by_hand(job: UnitJob, programs: Mapping[str, Program]) -> str:
    """Return the job for `lkp run job.yaml` by a person, with what else its boots had as comments;
    only a comment if LKP can't run it.
    """
    try:
        written = job_file(replace(job, monitors=()), programs)
    except NoLkpEquivalent as error:
        return f"# {error}; reproduce.sh runs it\n"
    boot = [f"kernel command line: {job.cmdline}"] if job.cmdline else []
    settings = [shlex.quote(f"{name}={value}") for name, value in job.sysctl.items()]
    notes = [*boot, *(f"set before the run: sysctl -w {setting}" for setting in settings)]
    return "".join(f"# {note}\n" for note in notes) + written


def refuse_unknown(jobs: Iterable[UnitJob], programs: Mapping[str, Program]) -> None:
    """Raise NoLkpEquivalent for the first of `jobs` that LKP can't run."""
    both = sorted(program.name for program in programs.values() if program.in_lkp)
    for job in jobs:
        if job.program not in both:
            raise NoLkpEquivalent(
                f"{job.name}: engine lkp can't run {job.program}: lkp-tests does not have it;"
                f" both have {', '.join(both)}"
            )
        if job.monitors:
            raise NoLkpEquivalent(
                f"{job.name}: engine lkp does not support the monitor {job.monitors[0]}"
            )


def _settings(params: Mapping[str, str], indent: int) -> str:
    return "".join(
        f"{' ' * indent}{name}: {json.dumps(value)}\n" for name, value in sorted(params.items())
    )


def is_lkp(files: Mapping[str, str]) -> bool:
    """Return whether LKP did this run."""
    return files.get(MARKER, "").strip() == "lkp"


def read_lkp(
    program: Program, files: Mapping[str, str], own: Callable[[], Parsed]
) -> tuple[Parsed, str | None]:
    """Return the benchmark's samples of one run by LKP, without the program's name as prefix,
    and a remark.

    `own` reads the program's output with swingbot's parser.
    Raises ParseError with LKP's notes about a run that does not count.
    """
    if notes := list(_states(files.get(LAST_STATE, ""))):
        raise ParseError(f"LKP's last_state: {'; '.join(dict.fromkeys(notes))}")
    stats = _stats(files)
    if notes := [
        state
        for name, value in stats.items()
        if name.startswith("last_state.") and value != 0
        for state in [_state(name.partition(".")[2])]
    ]:
        raise ParseError(f"LKP's last_state: {'; '.join(dict.fromkeys(notes))}")
    samples = dict(_benchmark(program, stats))
    if not samples:
        raise ParseError(f"LKP's stats.json has no {program.name} statistic")
    other = own()  # detects a lost instance: LKP takes the mean of the others
    for name, value in other.items():
        if name not in samples and isinstance(value, float | int) and value != 0:
            raise ParseError(
                f"LKP's stats.json lacks {program.name}.{name}, which the program printed"
            )
    unlike = [
        name
        for name, value in other.items()
        if name in samples and not _alike(value, samples[name])
    ]
    remark = (
        f"LKP and swingbot read {', '.join(unlike[:3])} differently; LKP's is kept"
        if unlike
        else None
    )
    return samples, remark


def _benchmark(
    program: Program, stats: Mapping[str, float]
) -> Iterator[tuple[str, float | list[float]]]:
    """Return the statistics that the program's meta.yaml knows.

    Raises ParseError for a benchmark's 0, which means that nothing was measured.
    """
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
    """Return the exit status of the test, which `lkp run` does not report.

    0 if `last_state` records no failure.
    """
    codes = [
        int(match[3]) for line in last_state.splitlines() if (match := _EXIT.match(line.strip()))
    ]
    return next((code for code in codes if code), 0)


def _states(text: str) -> Iterator[str]:
    """Return the notes of `last_state`: `name: 1` lines, and remarks after `#`."""
    for line in text.splitlines()[:200]:
        name, _, value = line.strip()[:300].partition(":")
        if name and not name.startswith("#") and value.strip() != "0":
            yield _state(name)


def _state(name: str) -> str:
    if match := _EXIT.fullmatch(name):
        return f"{match[2]} ended with exit status {match[3]}"
    return _STATES.get(name) or printable(name[:80])


def _stats(files: Mapping[str, str]) -> dict[str, float]:
    """Read `stats.json`: finite numbers by name.

    An overlong name or an invalid number invalidates the whole file.
    """
    text = files.get(STATS, "")
    if not text.strip():
        raise ParseError(
            f"{_NOT_RUN} ({' '.join(files[LEFT_OUT].split())[:200]})"
            if files.get(LEFT_OUT)
            else _NOT_RUN
        )
    try:
        stats: Any = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"LKP's stats.json is broken: {str(error)[:200]}") from error
    if not isinstance(stats, dict):
        raise ParseError("LKP's stats.json is not a table of names and numbers")
    if len(stats) > limits.LKP_STATISTICS:
        raise ParseError(
            f"LKP's stats.json has {len(stats)} statistics, more than {limits.LKP_STATISTICS}"
        )
    return {
        name: float(value)
        for name, value in stats.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and _sane(name, value)
    }


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is not a finite number")


def _sane(name: str, value: float) -> bool:
    if len(name) > 1000:
        raise ParseError(f"LKP's stats.json has a name of {len(name)} characters: {name[:60]!r}...")
    if not abs(value) < limits.SAMPLE_VALUE:  # also NaN
        raise ParseError(
            f"LKP's stats.json gives {name[:60]!r} with a value that is not a number below"
            f" {limits.SAMPLE_VALUE:g}"
        )
    return True
