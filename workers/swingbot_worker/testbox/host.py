"""The host that drives a testbox: its facts and the programs that it needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from swingbot_jobs.contract import fact_sheet as sheet
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_worker import InfraError, process
from swingbot_worker.testbox.driver import Fact

_CPU, _STAT = Path("/proc/cpuinfo"), Path("/proc/stat")


def stolen_ticks() -> int | None:
    """Return the steal time of this host since boot in units of 10 ms, or None if unknown."""
    return _number(_read(_STAT).get("steal_ticks"))


def facts(stolen_before: int | None) -> Mapping[str, Fact]:
    """Return the host's facts after a boot; `stolen_before` is `stolen_ticks()` before it."""
    now = stolen_ticks()
    return {
        "host_load1": os.getloadavg()[0],
        "host_kernel": os.uname().release,
        "host_cpu_model": _read(_CPU).get("cpu_model"),
        "host_stolen_ticks": now - stolen_before
        if now is not None and stolen_before is not None
        else None,
    }


def has_program(name: str) -> TuningFinding:
    """Check that a program that a driver starts is installed."""
    what = f"{name} is on this host"
    try:
        process.tied_to_us([name])
    except InfraError as error:
        return TuningFinding(what=what, ok=False, found="no", do=str(error))
    return TuningFinding(what=what, ok=True, found="yes")


def _read(path: Path) -> Mapping[str, Fact]:
    try:
        lines = path.read_text(errors="replace").splitlines()[:80]
    except OSError:
        return {}
    return sheet.read("\n".join(f"{path}:{line}" for line in lines))


def _number(fact: Fact) -> int | None:
    return fact if isinstance(fact, int) else None
