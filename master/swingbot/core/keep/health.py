"""Health of the machine and of the parts of the service: free disk space, heartbeats, rounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

MIB: Final = 1 << 20
# A round that judges many comparisons takes seconds, a git fetch of a large tree minutes; a longer
# silence is a fault.
SILENT_SECONDS: Final = 600.0
# During a round no testbox gets work, and a transaction keeps others waiting; each takes seconds.
LONG_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopHeartbeat:
    """The age of the loop's last round in seconds, and its problem (None: none)."""

    age_seconds: float
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartBeat:
    """The last heartbeat of a part, `age_seconds` ago.

    `pid` is None after a reboot of the host. `reporter` is the part that wrote it on its behalf.
    It was in `step` (None: in none) of a round that took `round_seconds` until then.
    """

    part: str
    age_seconds: float
    pid: int | None = None
    reporter: str | None = None
    step: str | None = None
    round_seconds: float = 0.0


def hung(beats: Iterable[PartBeat], seconds: float) -> list[PartBeat]:
    """Parts without a heartbeat for `seconds`, the longest silence first.

    While a reporter is silent itself, nothing is known about the parts that it reports on.
    """
    silent = [beat for beat in beats if beat.age_seconds >= seconds]
    names = {beat.part for beat in silent}
    known = (beat for beat in silent if beat.reporter not in names)
    return sorted(known, key=lambda beat: (-beat.age_seconds, beat.part))


def hung_problems(parts: Sequence[PartBeat], now: datetime) -> list[str]:
    """One sentence for each part that hangs."""
    return [
        f"{beat.part} has not responded for {beat.age_seconds:.0f} s"
        f" (since {now - timedelta(seconds=beat.age_seconds):%Y-%m-%d %H:%M:%S} UTC):"
        " it hangs or was killed; its supervisor restarts it, see its log"
        for beat in parts
    ]


def long_rounds(beats: Iterable[PartBeat], hanging: Iterable[PartBeat]) -> list[str]:
    """One sentence for each part that works on one round for long, but for those that hang."""
    silent = {beat.part for beat in hanging}
    return [
        f"{beat.part} has been in one round for {beat.round_seconds / 60:.0f} minutes, now in the"
        f" step `{beat.step}`; until the round ends, no testbox gets work: see its log"
        for beat in beats
        if beat.part not in silent and beat.step and beat.round_seconds >= LONG_SECONDS
    ]


def no_room(free: int, stop_below_mib: int, place: str, times: float = 1.0) -> str | None:
    """Why no order is handed out; None if `free` bytes are at least `times` the limit."""
    if free >= stop_below_mib * MIB * times:
        return None
    return (
        f"the disk that holds {place} has {free // MIB} MiB left, less than disk.stop_below_mib ="
        f" {stop_below_mib}: no order is handed out until there is more;"
        " `swingbot retention` shows what can be deleted"
    )


def problems(
    free: int, stop_below_mib: int, warn_below_mib: int, place: str, beat: LoopHeartbeat | None
) -> list[str]:
    """Problems of the machine and the loop, one sentence each, the worst first."""
    sentences = []
    if (why := no_room(free, stop_below_mib, place)) is not None:
        sentences.append(why)
    elif free < warn_below_mib * MIB:
        sentences.append(
            f"the disk that holds {place} has {free // MIB} MiB left; below {stop_below_mib} MiB no"
            " order is handed out; `swingbot retention` shows what can be deleted"
        )
    if beat is not None and beat.age_seconds > SILENT_SECONDS:
        sentences.append(
            f"the loop has not completed a round for {beat.age_seconds / 60:.0f} minutes;"
            " see its log, or restart it"
        )
    elif beat is not None and beat.problem:
        sentences.append(f"the loop's last round failed and is repeated: {beat.problem}")
    return sentences
