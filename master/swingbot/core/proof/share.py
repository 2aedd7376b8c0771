"""Decide whether another pair of kernels shows the change of a commit.

Let d be the commit's own effect (log ratio of head to base, with the sign chosen so that d > 0), e
the effect of the other pair, and h their half intervals (95 %). The other pair shows the change if
e is at least a share s of d: u = e - s d > 0, with half interval hypot(h_e, s h_d). If the pairs
share boots, the true spread of u is smaller than that, never larger, for s > 0 and effects of one
sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.proof.gates import GateResult
from swingbot.core.text.numbers import change, change_with_interval, percent
from swingbot.core.thresholds import PRESENT_SHARE
from swingbot_jobs.language.better import Better

Answer = Literal["yes", "no", "unclear"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A log ratio with its 95 % interval.

    `low` and `high` are None if there are too few boots to estimate the spread.
    """

    log: float
    low: float | None
    high: float | None

    @property
    def half(self) -> float:
        return (
            math.inf
            if self.low is None or self.high is None
            else max(self.high - self.log, self.log - self.low, 0.0)
        )

    def to_json(self) -> dict[str, Any]:
        bounds = (
            None if self.low is None or self.high is None else [_pct(self.low), _pct(self.high)]
        )
        return {"change_pct": _pct(self.log), "interval_pct": bounds}


def effect_of(row: ComparisonRow | None) -> Effect | None:
    """Return the effect of a comparison row, or None if it has no number or not a valid ratio."""
    if row is None or row.change_pct is None or row.verdict == "invalid":
        return None
    log = _log(row.change_pct)
    bounds = [_log(bound) for bound in row.interval_pct or (None, None)]
    return None if log is None else Effect(log=log, low=bounds[0], high=bounds[1])


def _log(pct: float | None) -> float | None:
    return (
        math.log1p(pct / 100.0) if pct is not None and math.isfinite(pct) and pct > -100.0 else None
    )


def _pct(log: float) -> float:
    return 100.0 * math.expm1(log)


def keeps(
    own: Effect, other: Effect, *, turned: bool = False, share: float = PRESENT_SHARE
) -> Answer:
    """Return whether `other` has at least `share` of `own`, in the same direction.

    With `turned` the opposite direction is expected, as when the commit is reverted.
    """
    side = math.copysign(1.0, own.log)
    e = side * other.log * (-1.0 if turned else 1.0)
    u, half = e - share * abs(own.log), math.hypot(other.half, share * own.half)
    if u - half > 0.0:
        return "yes"
    return "no" if u + half < 0.0 else "unclear"


def gate_result(
    own: Effect, other: Effect, better: Better | None, *, turned: bool = False, what: str = ""
) -> GateResult:
    """Return the result of a gate with its figures, prefixed with `what`.

    An unclear answer counts as not run, never as passed.
    """
    answer = keeps(own, other, turned=turned)
    figures = (
        f"{what}{_words(other, better)}, {_share(own, other, turned):z.0f}% of the commit's own"
        f" {percent(_pct(own.log))}"
    )
    detail = {
        "own": own.to_json(),
        "other": other.to_json(),
        "share": _share(own, other, turned) / 100.0,
    }
    if answer == "unclear":
        return GateResult(status="not run", reason=f"unclear: {figures}", detail=detail)
    return GateResult(status="pass" if answer == "yes" else "fail", reason=figures, detail=detail)


def _share(own: Effect, other: Effect, turned: bool) -> float:
    """Return percent of the own log effect (0 if it is 0), negative in the wrong direction."""
    return 0.0 if own.log == 0.0 else 100.0 * (other.log / own.log) * (-1.0 if turned else 1.0)


def _words(effect: Effect, better: Better | None) -> str:
    if effect.low is None or effect.high is None:
        return f"{change(_pct(effect.log), better)} (interval unknown)"
    return change_with_interval(_pct(effect.log), (_pct(effect.low), _pct(effect.high)), better)
