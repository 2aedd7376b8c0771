"""Is there room to work, does the loop go round: what is judged of the machine itself, and how it is said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MIB: Final = 1 << 20
# A round with many comparisons to judge takes seconds, a git fetch of a large tree minutes; longer than this nobody waits in silence.
SILENT_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopHeartbeat:
    """What the loop said last: seconds ago, and what went wrong in its last round (None: nothing)."""

    age_seconds: float
    problem: str | None


def no_room(free: int, stop_below_mib: int, place: str, times: float = 1.0) -> str | None:
    """Why no order is handed out, in one sentence; None if there is room, `times` the limit that is. `free` in bytes."""
    if free >= stop_below_mib * MIB * times:
        return None
    return (
        f"the disk that holds {place} has {free // MIB} MiB left, less than disk.stop_below_mib = {stop_below_mib}: no order is handed out until there is"
        " more; `swingbot retention` shows what may go"
    )


def problems(
    free: int, stop_below_mib: int, warn_below_mib: int, place: str, beat: LoopHeartbeat | None
) -> list[str]:
    """What is wrong with the machine and the loop, one sentence each, the worst first."""
    found = []
    if (why := no_room(free, stop_below_mib, place)) is not None:
        found.append(why)
    elif free < warn_below_mib * MIB:
        found.append(
            f"the disk that holds {place} has {free // MIB} MiB left; below {stop_below_mib} MiB no order is handed out; `swingbot retention` shows what may go"
        )
    if beat is not None and beat.age_seconds > SILENT_SECONDS:
        found.append(
            f"the loop has not gone round for {beat.age_seconds / 60:.0f} minutes; see its log, or start it again"
        )
    elif beat is not None and beat.problem:
        found.append(f"the loop's last round failed and is tried again: {beat.problem}")
    return found
