"""Formats of numbers, times and names on pages: Jinja filters, all pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from markupsafe import Markup, escape

from swingbot.core.model.comparison_row import folded
from swingbot.core.model.conclusion import same_mean
from swingbot.core.plan.branch_patches import tally
from swingbot.core.report.parts.swings import outcome, reason
from swingbot.core.stats.findings_text import history_lines
from swingbot.core.table import verdict
from swingbot.core.text.numbers import duration, times_the_spread, typeset
from swingbot.core.text.plain import cut, person

from .sparkline import sparkline

MISSING = "–"  # a missing value is never shown as 0


def number(value: float | None) -> str:
    """Five significant digits with separators: enough to check a percentage with one decimal."""
    if value is None:
        return MISSING
    size = abs(value)
    if size >= 1e6 or 0 < size < 1e-3:
        mantissa, exponent = f"{value:.4e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    if size >= 10_000:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.5g}" if size >= 1 else f"{value:.4g}"


def grouped(text: str) -> str:
    """Add thousands separators to an integer as text; an empty text becomes MISSING."""
    return f"{int(text):,}".replace(",", "\u202f") if text.isdecimal() else text or MISSING


def spread(value: float | None) -> str:
    """A standard deviation with three significant digits; more would be noise."""
    if value is None or abs(value) < 1e6:
        return number(None if value is None else float(f"{value:.3g}"))
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def percent(value: float | None, signed: bool = True) -> str:
    """A change in percent: `-18.0 %`."""
    if value is None:
        return MISSING
    return typeset(f"{value:+.1f} %" if signed else f"{value:.1f} %")


def claim(row: verdict.Judged) -> str:
    """What a row claims in a word or two: a direction, an excluded change, or what is missing."""
    if missing := verdict.doubt(row):
        return missing
    own = row["verdict"] if isinstance(row, Mapping) else row.verdict
    return verdict.on_page(row) if own == "same" else str(own)


def interval(value: list[float | None] | None) -> str:
    if not value or None in value:
        return MISSING
    return f"{percent(value[0])} … {percent(value[1])}"


def swing_change(swing: Mapping[str, Any]) -> str:
    """What a swing changes: the level in percent, or the spread between boots."""
    if swing["source"] != "spread":
        return percent(swing["change_pct"])
    ratio = swing["spread_ratio"]
    return times_the_spread(ratio) if ratio is not None else "the spread between boots"


def of_spread(bisection: Mapping[str, Any]) -> str:
    """The factor of the spread between boots, if a bisection found no change of the mean."""
    ratio = bisection.get("spread_ratio")
    if ratio is None or not same_mean(ratio, bisection["interval_pct"]):
        return ""
    return times_the_spread(ratio)


def patch_counts(patches: Sequence[Mapping[str, Any]]) -> str:
    return tally([patch["state"] for patch in patches])


def probability(value: float | None) -> str:
    """A probability in percent that never rounds to certainty."""
    if value is None:
        return MISSING
    if value > 0.9995:
        return "> 99.9\u00a0%" if value < 1 else "100\u00a0%"
    return "< 0.1\u00a0%" if value < 0.0005 else f"{100 * value:.1f}\u00a0%"


def when(moment: str | None) -> str:
    """`2026-03-02T09:00:00Z` as `2026-03-02 09:00:00`; pages use UTC."""
    return moment.replace("T", " ").removesuffix("Z") if moment else MISSING


def ago(moment: str | None, now: datetime | None = None) -> str:
    if not moment:
        return MISSING
    then = datetime.strptime(moment, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    seconds = max(0.0, ((now or datetime.now(UTC)) - then).total_seconds())
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def size(bytes_: int | None) -> str:
    if bytes_ is None:
        return MISSING
    if bytes_ < 1000:
        return f"{bytes_} B"
    power = 1 if bytes_ < 999_500 else 2 if bytes_ < 999_500_000 else 3
    value = bytes_ / 1000**power
    return (
        f"{value:.1f} {'kMG'[power - 1]}B" if value < 99.5 else f"{value:.0f} {'kMG'[power - 1]}B"
    )


def short(commit: str | None) -> str:
    return commit[:12] if commit else MISSING


def fact(value: Any) -> str:
    """A value of a JSON document on one line."""
    if value is None:
        return MISSING
    if isinstance(value, dict):
        return ", ".join(f"{key}: {fact(inner)}" for key, inner in value.items())
    return ", ".join(map(fact, value)) if isinstance(value, list) else str(value)


def code(sentence: str) -> Markup:
    """Escape a sentence and set `words in backticks` as code."""
    parts = str(sentence).split("`")
    if len(parts) % 2 == 0:  # an unpaired backtick is literal
        return escape(sentence)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part)
        for index, part in enumerate(parts)
    )


FILTERS: dict[str, Callable[..., str | Sequence[Any]]] = {
    "number": number,
    "grouped": grouped,
    "spread": spread,
    "code": code,
    "percent": percent,
    "interval": interval,
    "brief": verdict.on_page,
    "sparkline": sparkline,
    "claim": claim,
    "in_words": verdict.in_words,
    "folded": folded,
    "patch_counts": patch_counts,
    "history_lines": history_lines,
    "swing_change": swing_change,
    "swing_outcome": outcome,
    "swing_reason": reason,
    "of_spread": of_spread,
    "probability": probability,
    "duration": partial(duration, none=MISSING),
    "when": when,
    "ago": ago,
    "bytes": size,
    "short": short,
    "fact": fact,
    "cut": cut,
    "person": person,
}
