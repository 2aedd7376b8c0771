"""The page of a report: the evidence behind the mail, with links to all of it."""

from __future__ import annotations

from swingbot.core.model import documents
from swingbot.core.model.comparison_row import key_of
from swingbot.core.model.documents import Bisection, Incident, Table
from swingbot.core.model.lookup import NotFound
from swingbot.core.report.table.sheet import sheet_of_table
from swingbot.core.reproduce import Kit

from ..plots.drawing import PlotSubject, legend
from ..plots.metric_plot import History, HistoryMark, HistorySeries, metric_plot
from ..ports import Connection, ReadModels, Row
from .reproduction import Kits
from .shown_bisection import SERIES, bisection_history
from .shown_table import SeriesKey, TablePlots


def of_report(read: ReadModels, conn: Connection, report: Row) -> Row:
    """Return the context in addition to the report.

    The context is its incident, gates with their boots, and the headline's comparison and plots.
    """
    incident = read.incident(conn, report["incident"])
    comparison = read.table(conn, incident["comparison"]) if incident["comparison"] else None
    first = incident["bisection_list"][0] if incident["bisection_list"] else None
    headline = read.bisection(conn, first["id"]) if first else None
    context: Row = {
        "incident": incident,
        "comparison": comparison,
        "headline": headline,
        "gates": read.gates(conn, report["incident"]),
    }
    row = _row(comparison, headline)
    tips = _over_tips(read, conn, report, incident, headline) if headline else None
    return context | {
        "row": row,
        "runs": _of_runs(read, conn, comparison, row),
        "search": metric_plot(bisection_history(headline)) if headline else None,
        "tips": metric_plot(tips) if tips else None,
        "legend": legend(SERIES),
        "boots": _boots(comparison, headline),
    }


def _row(comparison: Table | None, headline: Bisection | None) -> documents.Row | None:
    """The headline's row as JSON; the page prints it as it is."""
    if not comparison or not headline:
        return None
    return next((row for row in comparison["rows"] if key_of(row) == key_of(headline)), None)


def _of_runs(
    read: ReadModels, conn: Connection, comparison: Table | None, row: documents.Row | None
) -> Row | None:
    """The plot of the headline's row, with its address as a picture."""
    if comparison is None or row is None:
        return None
    testbox, unit_job, metric = key = key_of(row)
    series = SeriesKey(testbox=testbox, unit_job=unit_job, metric=metric)
    own: Table = {**comparison, "rows": [one for one in comparison["rows"] if key_of(one) == key]}
    sheet = sheet_of_table(own)
    plots = TablePlots.read(read, conn, comparison, sheet, [series])
    drawing = plots.drawing(series, sheet.against[0])
    return {"href": series.plot(comparison["id"]), "drawing": drawing}


def _boots(
    comparison: Table | None, headline: Bisection | None
) -> dict[str, list[documents.BootOfAnArm]]:
    """Boots of parent and commit behind the headline."""
    boots = [
        boot
        for boot in (comparison["boot_list"] if comparison else [])
        if headline and boot["testbox"] == headline["testbox"]
    ]
    return (
        {
            word: [boot for boot in boots if boot["arm"] == arm]
            for arm, word in enumerate(("parent", "commit"))
        }
        if boots
        else {}
    )


def kit_of(kits: Kits | None, id: str) -> Kit | None:
    """Return the reproduction kit; None if there is nothing to reproduce."""
    try:
        return None if kits is None else kits.kit(id)
    except NotFound:
        return None


def tips_history(read: ReadModels, conn: Connection, report: Row) -> History:
    """The headline's metric over the tips of the branch, with culprit and parent before the first
    tip that has them.

    Raises NotFound.
    """
    incident = read.incident(conn, report["incident"])
    if not incident["bisection_list"]:
        raise NotFound(
            f"{report['id']} has no bisection, so there is no metric to show over the branch"
        )
    headline = read.bisection(conn, incident["bisection_list"][0]["id"])
    return _over_tips(read, conn, report, incident, headline)


def _over_tips(
    read: ReadModels, conn: Connection, report: Row, incident: Incident, headline: Bisection
) -> History:
    culprit = incident["culprit"]["commit"]
    also = [commit for commit in (_parent(headline, culprit), culprit) if commit]
    where = {key: headline[key] for key in ("tree", "testbox", "unit_job", "metric")}
    points = read.history(conn, **where, also=also)
    others = [point for point in points if point["place"] is None]
    tips = [point for point in points if point["place"] is not None]
    commits = [tip["commit"] for tip in tips]
    bad = commits.index(headline["bad"]) if headline["bad"] in commits else len(tips)
    columns = [*tips[:bad], *others, *tips[bad:]]
    places = {point["commit"]: place for place, point in enumerate(columns)}
    marks = []
    if culprit in places:
        column, words = places[culprit], f"culprit: {incident['culprit']['subject']}"
        id, mail = incident["id"], report["id"]
        marks = [
            HistoryMark(column=column, id=id, href=f"/incident/{id}", words=words, kind="incident"),
            HistoryMark(
                column=column, id=mail, href=f"/report/{mail}", words=words, kind="mail", of=id
            ),
        ]
    return History(
        subject=PlotSubject.of_bisection(headline),
        columns=[{**point, "release": None} for point in columns],
        series=[HistorySeries(name="", boots=[point["boots"] for point in columns])],
        marks=marks,
    )


def _parent(bisection: Bisection, culprit: str) -> str | None:
    commits = [point["commit"] for point in bisection["points"]]
    at = commits.index(culprit) if culprit in commits else 0
    return commits[at - 1] if at else None
