"""What tables say of a posted series, as a result that `b4 review` shows.

Its keys and statuses are those of b4 (docs/maintainer/review.rst there, "CI check integration").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from swingbot.core.model.statuses import OVER
from swingbot.core.report.claim import Row, claims_of, jobs_of
from swingbot.core.report.progress import progress_of_table
from swingbot.core.text.numbers import count, duration
from swingbot.core.text.plain import clean
from swingbot_jobs.printable import printable

TOOL: Final = "swingbot"

Table = Mapping[str, Any]  # `Table` of core/model/documents.py


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """`summary` is one line; `details` may have several.

    b4 shows both on a terminal: what services and kernels say has no control characters there.
    """

    status: Literal["pass", "warn", "fail"]
    summary: str
    url: str = ""
    details: str = ""

    def doubted(self, doubt: str) -> CheckResult:
        """The result where `doubt`, if any, says why another series may have been measured."""
        if not doubt:
            return self
        return replace(self, status="warn", summary=f"{self.summary}; {doubt}")

    def to_json(self) -> dict[str, str]:
        lines = self.details.split("\n")
        shown = {"summary": clean(self.summary), "details": "\n".join(map(_shown, lines))}
        return {"tool": TOOL, **asdict(self), **shown}


def _shown(line: str) -> str:
    return printable(line, " ").rstrip()


def check_result(
    tables: Sequence[Table], places: Mapping[str, int], patches: int, page: str
) -> CheckResult:
    """Judge a series of `patches` by tables, the latest first, of which the first is at `page`.

    `places` are its measured commits with the number of their patch, from 1. The kernel with the
    most patches counts, against a kernel without them where there is one; of a metric measured
    twice the latest table does.
    """
    over = [table for table in tables if table["status"] == "done"]
    open_ = [_remaining(table) for table in tables if table["status"] not in OVER]
    failed = [f"{one['id']} failed: {one['reason']}" for one in tables if one["status"] == "failed"]
    broken = [line for table in tables for line in _broken(table, places)]
    rows = _latest((table, row) for table in over for row in _rows(table, places))
    reached = max((_top(table, places) for table in over), default=0)
    claims = list(claims_of([row for row in rows.values() if row["verdict"] != "invalid"], named=2))
    doubts = [row for row in rows.values() if row["verdict"] in ("unclear", "invalid")]
    if doubts:
        claims.append(f"{count(len(jobs_of(doubts)), 'test')} not clear")
    if rows and reached < patches:
        claims.append(f"with {reached} of {patches} patches")
    said = "; ".join([*broken, *claims, *(() if rows else failed), *open_])
    if broken:
        status: Literal["pass", "warn", "fail"] = "fail"
    elif not rows or doubts or reached < patches or _bad(rows.values()):
        status = "warn"
    else:
        status = "pass"
    return CheckResult(status=status, summary=said or "not measured", url=page)


def _top(table: Table, places: Mapping[str, int]) -> int:
    """The number of patches of the kernel with the most."""
    return max((places.get(arm["variant"]["commit"], 0) for arm in table["arms"]), default=0)


def _rows(table: Table, places: Mapping[str, int]) -> list[Row]:
    """The benchmark rows of a table that say what the series changes."""
    number = {arm["arm"]: places.get(arm["variant"]["commit"], 0) for arm in table["arms"]}
    own = [
        row
        for row in table["rows"]
        if number[row["arm"]] and not row["counter"] and not row["alias_of"]
    ]
    whole = [
        row
        for row in own
        if number[row["arm"]] == _top(table, places) and not number[row["reference"]]
    ]
    return whole or own


def _latest(found: Iterable[tuple[Table, Row]]) -> dict[tuple[str, ...], Row]:
    rows: dict[tuple[str, ...], Row] = {}
    first: dict[tuple[str, ...], str] = {}
    for table, row in found:
        where = (row["testbox"], row["unit_job"], row["metric"])
        if first.setdefault(where, table["id"]) == table["id"]:
            rows[*where, str(row["arm"]), row["against"]] = row
    return rows


def _bad(rows: Iterable[Row]) -> bool:
    return any(row["verdict"] in ("worse", "changed") for row in rows)


def _broken(table: Table, places: Mapping[str, int]) -> Iterator[str]:
    """Kernels of the series that were not built, or did not come up, where those without it did."""
    lost = {arm["arm"]: arm["boots"] - arm["up"] for arm in table["arms"]}
    others = [arm for arm in table["arms"] if arm["variant"]["commit"] not in places]
    base_fails = any(one["state"] == "failed" for one in others)
    for arm in table["arms"]:
        number = places.get(arm["variant"]["commit"])
        if number is None:
            continue
        if arm["state"] == "failed":
            if not base_fails:
                yield f"patch {number} does not build: {arm['reason']}"
        elif lost[arm["arm"]] and not any(lost[one["arm"]] for one in others):
            made = count(arm["boots"], "boot")
            yield f"patch {number}: {lost[arm['arm']]} of {made} did not come up"


def _remaining(table: Table) -> str:
    left = f", {duration(table['eta_seconds'])} left" if table["eta_seconds"] else ""
    why = f", {table['waits'][0]}" if table["waits"] else ""
    return f"{table['id']} is measuring: {progress_of_table(table)['words']}{left}{why}"
