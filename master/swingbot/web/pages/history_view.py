"""Which part of a metric's history a page shows, and beside what, as parameters of its address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from swingbot.core.text.numbers import count
from swingbot.core.text.plain import cut
from swingbot.service.ports import RequestError
from swingbot.service.report.metric_document import PLOTTED
from swingbot.service.report.results_query import checked

from ..plots.metric_plot import MOST_SERIES
from ..ports import Row

RANGES: Final = {
    "latest": f"latest {PLOTTED} commits",
    "release": "since the last release",
    "30d": "last 30 days",
    "90d": "last 90 days",
    "all": "all",
}
AXES: Final = {"order": "commits in order", "time": "boots by time"}
BESIDE: Final = ("testbox", "unit_job", "metric", "compiler", "tree")
LINES: Final = 50  # commits on a page of the table
_SHORTEST: Final = 4  # digits of a commit
_KNOWN: Final = ("range", "from", "to", "by", "with", "of", "page", "on", "kconfig", "compiler")


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryView:
    """`span` is a key of RANGES; `first` and `last` are commits or releases that bound it instead.
    `beside`: (field, name) of further series, which are drawn in per cent of the level at `ref`.
    """

    span: str = "latest"
    first: str = ""
    last: str = ""
    by: str = "order"
    beside: tuple[tuple[str, str], ...] = ()
    ref: str = ""
    page: int = 1
    on: str = ""
    kconfig: str = ""
    compiler: str = ""

    def query(self, **changes: Any) -> str:
        """Return the parameters of an address, with `?` before them; pages count from 1 again."""
        own = replace(self, **{"page": 1, **changes})
        pairs = [("kconfig", own.kconfig), ("compiler", own.compiler), ("on", own.on)]
        if own.first or own.last:
            pairs += [("from", own.first), ("to", own.last)]
        else:
            pairs.append(("range", own.span if own.span != "latest" else ""))
        pairs.append(("by", own.by if own.by != "order" else ""))
        pairs += [("with", f"{field}:{name}") for field, name in own.beside]
        pairs += [("of", own.ref), ("page", str(own.page) if own.page > 1 else "")]
        text = urlencode([(name, value) for name, value in pairs if value])
        return f"?{text}" if text else ""


def view_of(params: QueryParams) -> HistoryView:
    """Return what an address asks for. Raises RequestError."""
    for name, value in params.multi_items():
        if name not in _KNOWN:
            raise RequestError(
                f"{name[:40]!r} is not a parameter of a history; use {', '.join(_KNOWN)}"
            )
        checked(name, value)
    view = HistoryView(
        span=_one_of("range", params.get("range") or "latest", RANGES),
        first=params.get("from", "").strip(),
        last=params.get("to", "").strip(),
        by=_one_of("by", params.get("by") or "order", AXES),
        beside=tuple(dict.fromkeys(_series(one) for one in params.getlist("with") if one.strip())),
        ref=params.get("of", "").strip(),
        page=_page(params.get("page") or "1"),
        **{name: params.get(name, "") for name in ("on", "kconfig", "compiler")},
    )
    if len(view.beside) >= MOST_SERIES:
        raise RequestError(f"a plot has at most {MOST_SERIES} series; {len(view.beside) + 1} asked")
    return view


def _one_of(name: str, value: str, known: Mapping[str, str]) -> str:
    if value not in known:
        raise RequestError(f"{name} must be one of {', '.join(known)}, not {value[:40]!r}")
    return value


def _series(text: str) -> tuple[str, str]:
    field, _, name = text.strip().partition(":")
    if field not in BESIDE or not name.strip():
        raise RequestError(
            f"with must be one of {', '.join(BESIDE)} with a name, such as testbox:NAME, not"
            f" {text[:60]!r}"
        )
    return field, name.strip()


def _page(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) <= 10**5):
        raise RequestError(f"page must be a number from 1, not {text[:40]!r}")
    return int(text[:6])


def selected(points: Sequence[Row], view: HistoryView, now: datetime) -> tuple[Sequence[Row], str]:
    """Return the points that a view shows, and which those are in words. Raises RequestError."""
    if view.first or view.last:
        first = _place(points, view.first, 0) if view.first else 0
        last = _place(points, view.last, -1) if view.last else len(points) - 1
        first, last = sorted((first, last))
        return points[first : last + 1], _words("from the chosen commits", points, first, last + 1)
    if view.span == "all":
        return points, _words("all", points, 0, len(points))
    if view.span == "release":
        places = [at for at, one in enumerate(points[:-1]) if one["release"]]
        first = places[-1] if places else 0
        what = f"since {points[first]['release']}" if places else "no release is known; all"
        return points[first:], _words(what, points, first, len(points))
    if view.span == "latest":
        first = max(0, len(points) - PLOTTED)
        return points[first:], _words("the latest", points, first, len(points))
    since = (now.astimezone(UTC) - timedelta(days=int(view.span[:-1]))).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )
    young = [
        one for one in points if one["boots"] and min(b["booted_at"] for b in one["boots"]) >= since
    ]
    return (
        young,
        f"first booted in the {RANGES[view.span]}: {count(len(young), 'commit')} of {len(points)}",
    )


def _words(what: str, points: Sequence[Any], first: int, end: int) -> str:
    return f"{what}: {count(end - first, 'commit')} of {len(points)}"


def _place(points: Sequence[Row], name: str, which: int) -> int:
    digits = name.lower()
    prefix = len(digits) >= _SHORTEST and set(digits) <= set("0123456789abcdef")
    found = [
        at
        for at, one in enumerate(points)
        if one["release"] == name or (prefix and one["commit"].startswith(digits))
    ]
    if not found:
        raise RequestError(
            f"no commit of this history is {cut(name, 60)!r}: give a release of it, or a commit"
            f" with at least {_SHORTEST} digits"
        )
    return found[which]
