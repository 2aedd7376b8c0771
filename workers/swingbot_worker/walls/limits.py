"""Resource limits of one build. Pure except for the default, which depends on the host's memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from swingbot_worker import InfraError

MIB = 1 << 20
# A distribution kernel with debug information needs about 10 GB for objects, the configurations in
# workers/kconfig 0.2 GB.
DISK_MB = 16_384
# make -j64 with a shell, ccache, compiler and assembler per job needs fewer than 400.
PROCESSES = 2_048
# vmlinux with debug information is below 1 GB; a sparse file counts with its full length.
FILE_MB = 4_096
# Temporary files of compilers and scripts, which count as memory.
TMP_MB = 1_024
# The log of a full build with warnings is below 5 MB.
LOG_MB = 64
# Files of an object directory: a kernel with every driver has about 120 000.
FILES = 1_000_000
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
    disk = _number(env, "SWINGBOT_BUILD_DISK_MB", DISK_MB, 1)
    return BuildLimits(
        memory=memory * MIB,
        disk=disk * MIB,
        processes=_number(env, "SWINGBOT_BUILD_PROCESSES", PROCESSES, 16),
        file=min(disk, FILE_MB) * MIB,
        tmp=min(TMP_MB, memory // 2) * MIB,
        log=LOG_MB * MIB,
        files=FILES,
    )


def _number(env: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = env.get(name) or str(default)
    if not text.isdigit() or len(text) > 9 or int(text) < least:
        raise InfraError(f"{name} is {text[:40]!r}; set it to a whole number of at least {least}.")
    return int(text)


def _three_quarters_of_memory_mb() -> int:
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MIB
    return max(LEAST_MEMORY_MB, min(16_384, installed * 3 // 4))
