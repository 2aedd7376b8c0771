"""Print the numbers of a comparison, bisection, incident, report or experiment in any format."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from swingbot.core.model import ids
from swingbot.core.report.experiment.experiment_formats import EXPERIMENT_FORMS
from swingbot.core.report.formats.sheet import Sheet, sheet_of_bisection, sheet_of_comparison
from swingbot.core.report.formats.sheet_formats import FORMS, NothingToShow
from swingbot.service.ports import RequestError
from swingbot.web.pages.experiment_sheet import sheet_with_beside
from swingbot.web.ports import OpenArtifact
from swingbot_db import read
from swingbot_db.engine import Connection

# Formats available for each kind.
TABLE_FORMS: Final[Mapping[str, Collection[str]]] = {
    **dict.fromkeys(("comparison", "bisection", "incident", "report"), FORMS),
    "experiment": EXPERIMENT_FORMS,
}


def printed(conn: Connection, id_: str, form: str, open_artifact: OpenArtifact) -> str:
    """Format the numbers of `id_` as `form`, one of FORMS or EXPERIMENT_FORMS.

    Raises RequestError.
    """
    kind = ids.read(id_)[0]
    experiment = kind == "experiment"
    forms = TABLE_FORMS.get(kind, FORMS)
    if form not in forms:
        raise RequestError(
            f"format {form} is not available for {id_}; use one of {', '.join(sorted(forms))}"
        )
    try:
        if experiment:
            facts = read.experiment(conn, id_)
            sheet = sheet_with_beside(read, open_artifact, conn, facts, every_run=form == "lkp")
            return EXPERIMENT_FORMS[form](sheet)
        return FORMS[form](sheet_of(conn, id_))
    except NothingToShow as error:
        raise RequestError(str(error)) from None


def sheet_of(conn: Connection, id_: str) -> Sheet:
    """Build the sheet of `id_`.

    Reports and incidents use the comparison of culprit and parent; a bisection uses its own boots
    until that comparison exists. Raises RequestError for a kind without numbers and for a bisection
    without a culprit.
    """
    kind, _ = ids.read(id_)
    if kind == "bisection":
        return _of_bisection(conn, id_)
    if kind in ("report", "incident"):
        incident = read.report(conn, id_)["incident"] if kind == "report" else id_
        comparison = read.incident(conn, incident)["comparison"]
        if comparison is None:
            raise RequestError(f"{id_}: the commit has not been compared with its parent yet")
        return _of_comparison(conn, id_, comparison)
    if kind != "comparison":
        raise RequestError(
            f"{id_} has no numbers; give a comparison (c5), bisection (b2), incident (i1) or report"
            " (r4)"
        )
    return _of_comparison(conn, id_, id_)


def _of_bisection(conn: Connection, id_: str) -> Sheet:
    bisection = read.bisection(conn, id_)
    incident = bisection["incident"]
    comparison = read.incident(conn, incident)["comparison"] if incident else None
    if comparison is not None:
        return _of_comparison(conn, id_, comparison)
    sheet = sheet_of_bisection(bisection)
    if sheet is None:
        raise RequestError(
            f"{id_} is {bisection['status']}: it has no culprit that was measured together with its"
            f" parent; see `swingbot show {id_}`"
        )
    return sheet


def _of_comparison(conn: Connection, id_: str, comparison: str) -> Sheet:
    return sheet_of_comparison(
        id_, read.comparison(conn, comparison), read.samples_of_comparison(conn, comparison)
    )
