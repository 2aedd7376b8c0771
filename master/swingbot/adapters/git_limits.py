"""What git may take: where it reads or writes what a stranger sent, and with whole repositories."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from swingbot.adapters import limits
from swingbot_jobs.process_limits import ProcessLimits

GIT: Final = ProcessLimits(memory_bytes=limits.GIT_BYTES, file_bytes=limits.GIT_FILE_BYTES)
PATCHING: Final = ProcessLimits(
    memory_bytes=limits.PATCHING_BYTES, file_bytes=limits.GIT_FILE_BYTES
)
QUESTION: Final = replace(PATCHING, seconds=limits.PLACES_SECONDS)
WRITING_A_PATCH: Final = replace(
    PATCHING, file_bytes=limits.PATCH_BYTES, seconds=limits.PATCH_SECONDS
)
UNBUNDLING: Final = replace(
    PATCHING, file_bytes=limits.PATCHED_FILE_BYTES, seconds=limits.UNBUNDLING_SECONDS
)
# A pack, or the log of a daemon, may be one file.
WHOLE_HISTORY: Final = ProcessLimits(memory_bytes=limits.FETCHING_BYTES, file_bytes=1 << 40)
