"""The page of a report: the evidence behind the mail, with links to all of it."""

from __future__ import annotations

from swingbot.core.model import documents
from swingbot.core.model.comparison_row import key_of
from swingbot.core.model.documents import Bisection, Table
from swingbot.core.model.lookup import NotFound
from swingbot.core.reproduce import Kit

from ..plots import plot
from ..ports import Connection, ReadModels, Row
from .reproduction import Kits
from .table import SeriesKey


def of_report(read: ReadModels, conn: Connection, report: Row) -> Row:
    """Return the context in addition to the report.

    The context is its incident, gates with their boots, and the headline's comparison and plots.
    """
    incident = read.incident(conn, report["incident"])
    comparison = read.table(conn, incident["comparison"]) if incident["comparison"] else None
    headline = incident["bisection_list"][0] if incident["bisection_list"] else None
    context: Row = {
        "incident": incident,
        "comparison": comparison,
        "headline": headline,
        "gates": read.gates(conn, report["incident"]),
    }
    row = _row(comparison, headline)
    return context | {
        "row": row,
        "plot": _plot(comparison, row),
        "boots": _boots(comparison, headline),
    }


def _row(comparison: Table | None, headline: Row | None) -> documents.Row | None:
    """The headline's row as JSON; the page prints it as it is."""
    if not comparison or not headline:
        return None
    return next((row for row in comparison["rows"] if key_of(row) == key_of(headline)), None)


def _plot(comparison: Table | None, row: documents.Row | None) -> str | None:
    """Return the address of the plot of the headline's row."""
    if comparison is None or row is None:
        return None
    testbox, unit_job, metric = key_of(row)
    return SeriesKey(testbox=testbox, unit_job=unit_job, metric=metric).plot(comparison["id"])


def _boots(
    comparison: Table | None, headline: Row | None
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


def history_plot(read: ReadModels, conn: Connection, report: Row) -> str:
    """The headline's metric over the tips of the branch, with culprit and parent marked.

    Raises NotFound.
    """
    incident = read.incident(conn, report["incident"])
    if not incident["bisection_list"]:
        raise NotFound(
            f"{report['id']} has no bisection, so there is no metric to show over the branch"
        )
    headline = read.bisection(conn, incident["bisection_list"][0]["id"])
    culprit, parent = (
        incident["culprit"]["commit"],
        _parent(headline, incident["culprit"]["commit"]),
    )
    where = {key: headline[key] for key in ("tree", "testbox", "unit_job", "metric")}
    points = read.history(conn, **where, also=[commit for commit in (parent, culprit) if commit])
    before = next((point["place"] for point in points if point["commit"] == headline["bad"]), None)
    shown = plot.PlotSubject.of_bisection(headline)
    return plot.history_plot(
        shown, points, {culprit: "culprit"} | ({parent: "parent"} if parent else {}), before
    )


def _parent(bisection: Bisection, culprit: str) -> str | None:
    commits = [point["commit"] for point in bisection["points"]]
    at = commits.index(culprit) if culprit in commits else 0
    return commits[at - 1] if at else None
