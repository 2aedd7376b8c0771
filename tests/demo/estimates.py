"""How good the displayed estimates of time left are: each against what it really took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

FACTOR: Final = 1.5  # an estimate within this factor is good
SHARE: Final = 0.8  # of all estimates, wanted
_LISTS: Final = ("tables", "bisections")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a page said at a moment, and what was done then."""

    id: str
    at: datetime
    seconds: float
    done: str  # such as "1/2 builds, 0/6 boots"

    def factor(self, ended: datetime) -> float:
        """Actual seconds over estimated ones; an estimate and an end within 10 s are the same."""
        actual = (ended - self.at).total_seconds()
        if abs(actual - self.seconds) <= 10.0:
            return 1.0
        return max(actual, 1.0) / max(self.seconds, 1.0)


@dataclass(kw_only=True)
class EstimateLog:
    """Notes the first estimate of each request, and another whenever a build or boot was made."""

    estimates: list[Estimate] = field(default_factory=list)
    _last: dict[str, str] = field(default_factory=dict)

    def note(self, status: Mapping[str, Any]) -> None:
        """`status`: the document of /status.json."""
        at = _time(status["now"])
        for name in _LISTS:
            for facts in status[name]:
                done = _done(facts)
                eta = None if facts.get("eta_note") else facts.get("eta_seconds")  # not if rough
                if eta is not None and self._last.get(facts["id"]) != done:
                    self._last[facts["id"]] = done
                    self.estimates.append(Estimate(id=facts["id"], at=at, seconds=eta, done=done))

    def table(self, ended_at: Callable[[str], str | None]) -> list[str]:
        """Lines for a person; `ended_at` returns the end of a request, None if it has none."""
        ends = {one.id: ended_at(one.id) for one in self.estimates}
        judged = [(one, _time(end)) for one in self.estimates if (end := ends[one.id])]
        if not judged:
            return ["no estimate was shown for anything that ended"]
        return [
            f"{'estimates of time left':32}{'said':>8}{'took':>8}  factor",
            *(_line(one, end) for one, end in judged),
            summary([one.factor(end) for one, end in judged]),
        ]


def summary(factors: Sequence[float]) -> str:
    good = sum(1 / FACTOR <= factor <= FACTOR for factor in factors)
    wanted = "as wanted" if good >= SHARE * len(factors) else f"wanted: {SHARE:.0%}"
    return f"{good} of {len(factors)} within a factor of {FACTOR} ({wanted})"


def _line(one: Estimate, end: datetime) -> str:
    took = (end - one.at).total_seconds()
    return f"{one.id + '  ' + one.done:32}{one.seconds:6.0f} s{took:6.0f} s {one.factor(end):7.2f}"


def _done(facts: Mapping[str, Any]) -> str:
    progress = facts.get("progress") or {}
    if "boots_total" in progress:
        return (
            f"{progress['builds']}/{progress['builds_total']} builds,"
            f" {progress['boots']}/{progress['boots_total']} boots"
        )
    return f"{facts['builds']} builds, {facts['boots']} boots"


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
