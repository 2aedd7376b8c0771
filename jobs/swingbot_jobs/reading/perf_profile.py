"""Reader of a `perf report`: shares by symbol, with LKP's names.

`self.<event>.<symbol>` and `children.<event>.<symbol>` are summed over the objects with a symbol of
that name, and over the copies that the compiler made of it (.isra, .constprop, .part);
`calltrace.<event>.<frame>.<frame>...` has the five innermost frames, the innermost first.
"""

from __future__ import annotations

import re
from typing import Final

from swingbot_jobs import limits
from swingbot_jobs.reading.result import ParseError

FRAMES: Final = 5
# Functions in which waiting for a contended spinlock happens: native, paravirtual,
# and before the native_ names of 4.2.
SLOWPATHS: Final = (
    "native_queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "queued_spin_lock_slowpath",
)

_EVENT: Final = re.compile(
    r"# (?:Samples|Events): \d{1,9}[KMG ]? ?(?:of event )?'?(?P<event>[^']{0,199}[^'\s])'?\s*"
)
_ROW: Final = re.compile(
    r"\s{0,20}(?P<children>\d{1,3}\.\d{1,4})%\s+(?P<self>\d{1,3}\.\d{1,4})%\s+\S+\s+\S+\s+(?P<symbol>\S+)(?:\s+\S+\s+\S+)?\s*"
)
_CHAIN: Final = re.compile(r"(?P<share>\d{1,3}\.\d{1,4})%\s+(?P<frames>\S+)")
_COPY: Final = re.compile(r"\.(?:isra|constprop|part)\.\d+")


def read_profile(text: str) -> dict[str, float]:
    """Return shares in percent by name, sorted. Raises ParseError without an event or a symbol."""
    if len(text) > limits.PERF_CHARACTERS:
        raise ParseError(
            f"the profile has {len(text)} characters, more than {limits.PERF_CHARACTERS}"
        )
    event = ""
    shares: dict[str, float] = {}
    for line in text.splitlines():
        if len(line) > limits.PROFILE_LINE_CHARACTERS:
            continue
        if line.startswith("#"):
            header = (
                _EVENT.fullmatch(line) if len(line) <= limits.PROFILE_HEADER_CHARACTERS else None
            )
            event = header["event"].replace(":", "-") if header else event
        elif event:
            for name, share in _shares(line, event):
                shares[name] = shares.get(name, 0.0) + share
    if not shares:
        raise ParseError(
            "the profile has no sample"
            if event
            else "not a perf report with a header: it names no event"
        )
    if len(shares) > limits.PROFILE_SHARES:
        raise ParseError(f"the profile has {len(shares)} shares, more than {limits.PROFILE_SHARES}")
    return dict(sorted(shares.items()))


def _shares(line: str, event: str) -> list[tuple[str, float]]:
    if row := _ROW.fullmatch(line):
        symbol = _COPY.sub("", row["symbol"])
        return [
            (f"children.{event}.{symbol}", float(row["children"])),
            (f"self.{event}.{symbol}", float(row["self"])),
        ]
    if chain := _CHAIN.fullmatch(line):
        frames = [_COPY.sub("", frame) for frame in chain["frames"].split(";")[:FRAMES]]
        return [(f"calltrace.{event}.{'.'.join(frames)}", float(chain["share"]))]
    return []


def lock_slowpath(shares: dict[str, float]) -> float:
    """Return the share of samples that wait in a queued spinlock, in percent; 0 if none do."""
    return sum(
        share
        for name, share in shares.items()
        if name.startswith("self.") and name.rpartition(".")[2] in SLOWPATHS
    )
