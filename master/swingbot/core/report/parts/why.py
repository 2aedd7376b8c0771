"""The lines of `swingbot show` about what changed beside the headline numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from swingbot.core.model.why_documents import RankedClue, ShareOfTime, SizedFunction, Why
from swingbot.core.text.numbers import percent, readings, signed_percent
from swingbot.core.text.plain import clean

_FUNCTIONS = 3


def why_lines(whys: Sequence[Why], names: Sequence[str] = ()) -> list[str]:
    """`names`: of the arms, if the table has several. Empty where nothing is known."""
    lines = [line for one in whys for line in _of_pair(one, names)]
    return ["What changed with it", *lines] if lines else []


def _of_pair(why: Why, names: Sequence[str]) -> Iterator[str]:
    if len(names) > 2:
        yield f"  {names[why['reference']]} to {names[why['arm']]}:"
    for change in why["changes"]:
        if change["clues"] or change["shares"]:
            yield f"  {change['metric']} of {change['unit_job']} on {change['testbox']}:"
            yield from map(_clue, change["clues"])
            yield from (_share(one) for one in change["shares"] if one["changed"])
    if why["functions"]:
        more = (why["functions_total"] or 0) - _FUNCTIONS
        listed = ", ".join(map(_function, why["functions"][:_FUNCTIONS]))
        yield f"  code: {listed}" + (f" and {more} more" if more > 0 else "")
    if why["executed"]:
        yield f"  executed: {why['executed']['status']}, {clean(why['executed']['reason'])}"


def _clue(one: RankedClue) -> str:
    size = f"{one['points']:+.1f} points" if one["points"] is not None else _signed(one)
    return f"    {size:>12}  {one['metric']}  {' to '.join(readings(one['base'], one['head']))}"


def _signed(one: RankedClue) -> str:
    return "" if one["change_pct"] is None else signed_percent(one["change_pct"])


def _share(one: ShareOfTime) -> str:
    size = f"{one['head'] - one['base']:+.1f} points"
    return f"    {size:>12}  {one['metric']}  {percent(one['base'])} to {percent(one['head'])}"


def _function(one: SizedFunction) -> str:
    sizes = ["-" if one[side] is None else str(one[side]) for side in ("base", "head")]
    name = clean(one["name"])
    return (
        f"{name} {sizes[0]} bytes" if sizes[0] == sizes[1] else f"{name} {' to '.join(sizes)} bytes"
    )
