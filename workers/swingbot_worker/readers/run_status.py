"""The status of each run of a boot. Only the master judges the numbers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from swingbot_jobs.contract import memory
from swingbot_jobs.contract.fact_sheet import (
    not_as_asked,
    sysctls_read,
    value,
)
from swingbot_jobs.contract.facts import SET, Value
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.limits import FACT_CHARACTERS, REASON_CHARACTERS
from swingbot_jobs.printable import printable
from swingbot_jobs.reading.result import Results


def runs_of(
    unit_jobs: Iterable[UnitJob], results: Results, facts: Mapping[str, Value]
) -> list[dict[str, Any]]:
    """Return the `runs` of an outcome in the requested order; `facts` are those of the boot."""
    return [_run(job, number, results, facts) for job in unit_jobs for number in job.numbers]


def _run(job: UnitJob, number: int, results: Results, facts: Mapping[str, Value]) -> dict[str, Any]:
    said: dict[str, Any] = {"unit_job": job.name, "number": number}
    files = results.runs.get((job.name, number))
    if files is None:
        return said | {"status": "missing", "reason": "nothing came back from this run"}
    status, why = _status(job, number, files, facts)
    return said | {
        "status": status,
        **({"reason": why} if why is not None else {}),
        "seconds": _seconds(files),
    }


def _status(
    job: UnitJob, number: int, files: Mapping[str, str], facts: Mapping[str, Value]
) -> tuple[str, str | None]:
    rc = files.get("rc", "").strip()
    if failure := memory.memory_failure(files):
        return "failed", failure
    if rc != "0":
        last = next(
            (line for line in reversed(files.get("stderr", "").splitlines()) if line.strip()), ""
        )
        plain = printable(last[:FACT_CHARACTERS])
        return "failed", f"{job.program} exited with status {rc[:10] or 'unknown'}: {plain}".rstrip(
            ": "
        )
    if not files.get("stdout", "").strip():
        return "failed", f"{job.program} printed nothing"
    if why := not_as_asked(job, facts, files):
        return "invalid", why[:REASON_CHARACTERS]
    return "ok" if number >= job.warmup else "warmup", None


def settings_read(unit_jobs: Iterable[UnitJob], results: Results) -> dict[str, Value]:
    """Return the values of the unit jobs' sysctls, and the memory that they asked for, in their
    runs, as facts `set.<name>`.

    Different values, of several unit jobs or after a change by the kernel, are joined by commas.
    """
    found: dict[str, dict[str, None]] = {}
    for job in unit_jobs:
        for number in job.numbers if job.sysctl or memory.asked(job.params) else ():
            files = results.runs.get((job.name, number), {})
            read_back = sysctls_read(job.sysctl, files) | memory.in_force(
                files.get(memory.STATE, "")
            )
            for name, read in read_back.items():
                found.setdefault(name, {})[" ".join(read.split())] = None
    return {f"{SET}{name}": value(", ".join(values)) for name, values in found.items()}


def _seconds(files: Mapping[str, str]) -> float | None:
    text = files.get("seconds", "").strip()
    plain = len(text) < 20 and text.replace(".", "", 1).isdecimal() and text.isascii()
    return float(text) if plain else None
