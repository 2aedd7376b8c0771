"""Expected changes, and whether a change is gone: arithmetic of log ratios (docs/incidents.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.text.numbers import times_the_spread
from swingbot.core.thresholds import GONE_SHARE, STILL_SHARE

Answer = Literal["back", "still", "unclear"]


def log_ratio(change_pct: float) -> float:
    """-18.0 (per cent) is log(0.82); -100 and below is minus infinity."""
    return math.log1p(change_pct / 100.0) if change_pct > -100.0 else -math.inf


def percent(effect: float) -> float:
    """The change in percent of a log ratio, capped at e^50."""
    return 100.0 * math.expm1(min(effect, 50.0))


def in_percent(effect: float) -> str:
    """A log ratio for a person: `-18.00 %`."""
    return f"{percent(effect):+.2f} %"


def beyond(effect: float, expected: Iterable[float]) -> float:
    """`effect` less the `expected` ones: the tip against the new level. All are log ratios."""
    return effect - math.fsum(expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelCheck:
    """The state of a known change at a tip. `share` is the part that is left; None if unknown."""

    answer: Answer
    share: float | None
    words: str


AT_THE_TIP: Final = "at the tip, both against the culprit's parent"
IN_ITS_NEW_VERSION: Final = "in its new version, each against its own parent"


def check_spread(found: float, row: ComparisonRow | None, where: str = AT_THE_TIP) -> LevelCheck:
    """Check for a known change of the spread between boots, by the factor `found`.

    `still` needs a significant change in the same direction. That a spread is as it was cannot be
    shown by as many boots, so nothing else is ever more than `unclear`.
    """
    if row is None or row.change_pct is None or row.verdict == "invalid":
        return check(0.0, row, where)
    ratio = row.spread_ratio
    seen = "no difference of the spread between boots" if ratio is None else times_the_spread(ratio)
    words = f"{row.metric} had {times_the_spread(found)} with the culprit and has {seen} {where}"
    if ratio is not None and (ratio > 1.0) == (found > 1.0):
        return LevelCheck(answer="still", share=None, words=words)
    return LevelCheck(
        answer="unclear", share=None, words=f"{words}; this does not prove that it is gone"
    )


def check(found_pct: float, row: ComparisonRow | None, where: str = AT_THE_TIP) -> LevelCheck:
    """Check for the change of `found_pct` between the culprit's parent and a tip (`row`).

    `back` needs a valid row with at most `GONE_SHARE` of the change left (or a change in the other
    direction), and no significant change larger than that. `still` needs a significant change in
    the same direction, of at least `STILL_SHARE`.
    """
    if row is None or row.change_pct is None or row.verdict == "invalid":
        why = (row.reason if row is not None else None) or "no run of it has a result"
        return LevelCheck(
            answer="unclear", share=None, words=f"the tip could not be measured: {why}"
        )
    was, now = log_ratio(found_pct), log_ratio(row.change_pct)
    share = now / was if was and math.isfinite(was) and math.isfinite(now) else None
    words = (
        f"{row.metric} was {found_pct:+.1f} % with the culprit"
        f" and is {row.change_pct:+.1f} % {where}"
    )
    if share is None:
        return LevelCheck(answer="unclear", share=None, words=words)
    if row.changed and share >= STILL_SHARE:
        return LevelCheck(answer="still", share=share, words=words)
    if row.verdict != "unclear" and share <= GONE_SHARE:
        return LevelCheck(answer="back", share=share, words=words)
    reason = f"; {row.reason}" if row.reason else ""
    return LevelCheck(
        answer="unclear", share=share, words=f"{words}: neither gone nor clearly present{reason}"
    )


def recovered(found_pct: float | None, later: Sequence[float]) -> int | None:
    """Return which of the `later` steps, in percent and in order, brought a history back to the
    level from before a change of `found_pct`; None if it is not back behind the last one.

    Back is what `check` calls so: at most `GONE_SHARE` of the change is left.
    """
    was = log_ratio(found_pct) if found_pct is not None else 0.0
    if not was or not math.isfinite(was):
        return None
    left, since = was, None
    for at, step in enumerate(later):
        left += log_ratio(step)
        back = left / was <= GONE_SHARE
        since = (at if since is None else since) if back else None
    return since
