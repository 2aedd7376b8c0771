"""Resource limits of one build. Pure except for the default, which depends on the host's memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from swingbot_worker import InfraError, limits

MIB = 1 << 20
LEAST_MEMORY_MB = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLimits:
    """Limits of one build; sizes are in bytes. The order's deadline limits the time."""

    memory: int  # total of all processes
    disk: int  # of the object directory
    processes: int
    file: int  # the largest single file
    tmp: int
    log: int
    files: int  # entries of the object directory


def limits_of(environ: Mapping[str, str] | None = None) -> BuildLimits:
    """Read limits from SWINGBOT_BUILD_MEMORY_MB, _DISK_MB and _PROCESSES.

    An unset or empty variable means the default. Raises InfraError for an invalid value.
    """
    env = os.environ if environ is None else environ
    memory = _number(
        env, "SWINGBOT_BUILD_MEMORY_MB", _three_quarters_of_memory_mb(), LEAST_MEMORY_MB
    )
    disk = _number(env, "SWINGBOT_BUILD_DISK_MB", limits.BUILD_DISK_MIB, 1)
    return BuildLimits(
        memory=memory * MIB,
        disk=disk * MIB,
        processes=_number(env, "SWINGBOT_BUILD_PROCESSES", limits.BUILD_PROCESSES, 16),
        file=min(disk, limits.BUILD_FILE_MIB) * MIB,
        tmp=min(limits.BUILD_TMP_MIB, memory // 2) * MIB,
        log=limits.BUILD_LOG_MIB * MIB,
        files=limits.BUILD_FILES,
    )


def _number(env: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = env.get(name) or str(default)
    if not text.isdigit() or len(text) > 9 or int(text) < least:
        raise InfraError(f"{name} is {text[:40]!r}; set it to a whole number of at least {least}.")
    return int(text)


def _three_quarters_of_memory_mb() -> int:
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MIB
    return max(LEAST_MEMORY_MB, min(16_384, installed * 3 // 4))
