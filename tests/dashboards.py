"""Run every query of every dashboard as Grafana would, with macros and variables expanded.

`ask(conn)` runs them all as the role that Grafana has; the end-to-end test calls it with the
database of its demo.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from swingbot_db import roles

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "dashboards" / "json").glob("*.json"))
HOUR = 3600


def dashboards() -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in FILES]


def queries(dashboard: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(location, SQL, format) of all variables, annotations and panels, in the order in which
    Grafana needs them. Queries of other data sources than PostgreSQL are left out.
    """
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query" and isinstance(variable["query"], str):
            yield f"variable {variable['name']}", variable["query"], "variable"
    for annotation in dashboard["annotations"]["list"]:
        if not annotation.get("builtIn"):
            yield f"annotation {annotation['name']}", annotation["target"]["rawSql"], "annotation"
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            if "rawSql" in target:
                yield f"panel {panel['title']}", target["rawSql"], target["format"]


def fixed_variables(dashboard: dict[str, Any]) -> dict[str, list[str]]:
    """Values of the variables without a query: chosen by hand, or the address of the pages."""
    return {
        variable["name"]: [variable["current"]["value"]]
        for variable in dashboard["templating"]["list"]
        if variable["type"] in ("custom", "textbox")
    }


def _seconds(interval: str) -> int:
    number, unit = re.fullmatch(r"'?(\d+)([smhd])'?", interval.strip()).groups()  # type: ignore[union-attr]
    return int(number) * {"s": 1, "m": 60, "h": HOUR, "d": 24 * HOUR}[unit]


def expand(
    sql: str, variables: dict[str, list[str]], start: datetime, end: datetime, interval: str = "1h"
) -> str:
    """Expand Grafana's macros and variables as its PostgreSQL data source does.

    Fails on an unknown one.
    """

    def quoted(match: re.Match[str]) -> str:
        return ",".join("'" + value.replace("'", "''") + "'" for value in variables[match[1]])

    def group(match: re.Match[str]) -> str:
        seconds = _seconds(match[2])
        bucket = f"floor(extract(epoch from {match[1]})/{seconds})*{seconds}"
        return f'{bucket} AS "time"' if match[0].startswith("$__timeGroupAlias") else bucket

    times = (f"'{start:%Y-%m-%dT%H:%M:%SZ}'", f"'{end:%Y-%m-%dT%H:%M:%SZ}'")
    sql = re.sub(r"\$__interval\b", interval, sql)
    sql = re.sub(
        r"\$__timeFilter\(([^)]*)\)",
        lambda match: f"{match[1]} BETWEEN {times[0]} AND {times[1]}",
        sql,
    )
    sql = sql.replace("$__timeFrom()", times[0]).replace("$__timeTo()", times[1])
    sql = re.sub(r"\$__timeGroup(?:Alias)?\(([^,)]*),([^,)]*)\)", group, sql)
    sql = re.sub(r"\$\{(\w+):sqlstring\}", quoted, sql)
    assert "$" not in sql, f"an unknown macro or variable: {sql[sql.index('$') :][:40]}"
    return sql


def run(conn: sa.Connection, sql: str) -> tuple[list[str], list[Any]]:
    conn.exec_driver_sql("SET ROLE swingbot_grafana")
    try:
        result = conn.exec_driver_sql(sql.replace("%", "%%"))
        return list(result.keys()), list(result)
    finally:
        conn.exec_driver_sql("RESET ROLE")


def make_reader(conn: sa.Connection) -> None:
    """Create Grafana's role and grant it the views of this database."""
    roles.grant_views(conn)


def asked_all(
    conn: sa.Connection,
    dashboard: dict[str, Any],
    start: datetime,
    end: datetime,
    chosen: dict[str, list[str]] | None = None,
) -> dict[str, tuple[str, list[str], list[Any]]]:
    """Location -> format, columns and rows of every query, run on `conn` as Grafana's role."""
    return answered(partial(run, conn), dashboard, start, end, chosen)


def answered(
    asking: Callable[[str], tuple[list[str], list[Any]]],
    dashboard: dict[str, Any],
    start: datetime,
    end: datetime,
    chosen: dict[str, list[str]] | None = None,
) -> dict[str, tuple[str, list[str], list[Any]]]:
    """The same by whatever takes SQL and gives columns and rows.

    Each variable has all values of its own query, as on a viewer's first visit; those in `chosen`
    are as given. A panel that is repeated for a variable asks once for each value; its rows are
    joined.
    """
    variables = fixed_variables(dashboard) | (chosen or {})
    repeated = {f"panel {panel['title']}": panel.get("repeat") for panel in dashboard["panels"]}
    multi = {
        variable["name"]: variable.get("multi", False)
        for variable in dashboard["templating"]["list"]
    }
    answers = {}
    for where, sql, form in queries(dashboard):
        by = repeated.get(where)
        columns: list[str] = []
        rows: list[Any] = []
        for value in variables[by] if by else [""]:
            once = variables | ({by: [value]} if by else {})
            columns, more = asking(expand(sql, once, start, end))
            rows += more
        if form == "variable" and (name := where.removeprefix("variable ")) not in (chosen or {}):
            values = [
                str(row[columns.index("__value") if "__value" in columns else 0]) for row in rows
            ]
            variables[name] = values if multi[name] else (values[:1] or [""])
        answers[where] = (form, columns, rows)
    return answers


def ask(conn: sa.Connection) -> dict[str, int]:
    """Run every query over the last 30 days on `conn` (autocommit); return their row counts.

    Raises the errors of PostgreSQL.
    """
    make_reader(conn)
    now = datetime.now(UTC)
    counts = {}
    for dashboard in dashboards():
        for where, (_, _, rows) in asked_all(
            conn, dashboard, now - timedelta(days=30), now + timedelta(minutes=1)
        ).items():
            counts[f"{dashboard['uid']}: {where}"] = len(rows)
    return counts
