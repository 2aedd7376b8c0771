"""The numbers of a comparison, bisection, incident or report, ready to be printed in any form."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from swingbot.core.model import ids
from swingbot.core.report.experiment.experiment_formats import EXPERIMENT_FORMS
from swingbot.core.report.formats.sheet import Sheet, sheet_of_bisection, sheet_of_comparison
from swingbot.core.report.formats.sheet_formats import FORMS, NothingToShow
from swingbot.service.ports import RequestError
from swingbot.web.experiment_sheet import sheet_with_beside
from swingbot.web.ports import OpenArtifact
from swingbot_db import read
from swingbot_db.engine import Connection

# What can be printed of each kind.
TABLE_FORMS: Final[Mapping[str, Collection[str]]] = {
    **dict.fromkeys(("comparison", "bisection", "incident", "report"), FORMS),
    "experiment": EXPERIMENT_FORMS,
}


def printed(conn: Connection, id_: str, form: str, open_artifact: OpenArtifact) -> str:
    """The numbers of `id_` as `form`, one of FORMS or EXPERIMENT_FORMS. Raises RequestError."""
    kind = ids.read(id_)[0]
    experiment = kind == "experiment"
    forms = TABLE_FORMS.get(kind, FORMS)
    if form not in forms:
        what = "an experiment" if experiment else "this"
        raise RequestError(f"{what} has no form {form}; there are {', '.join(sorted(forms))}")
    try:
        if experiment:
            found = read.experiment(conn, id_)
            sheet = sheet_with_beside(read, open_artifact, conn, found, every_run=form == "lkp")
            return EXPERIMENT_FORMS[form](sheet)
        return FORMS[form](sheet_of(conn, id_))
    except NothingToShow as error:
        raise RequestError(str(error)) from None


def sheet_of(conn: Connection, id_: str) -> Sheet:
    """A report and an incident are shown by the comparison of culprit and parent, a bisection by its own boots until there is one.

    Raises RequestError for a kind without numbers and for a bisection that has named no commit.
    """
    kind, _ = ids.read(id_)
    if kind == "bisection":
        return _of_bisection(conn, id_)
    if kind in ("report", "incident"):
        incident = read.report(conn, id_)["incident"] if kind == "report" else id_
        comparison = read.incident(conn, incident)["comparison"]
        if comparison is None:
            raise RequestError(f"{id_}: its commit was not yet compared with its parent")
        return _of_comparison(conn, id_, comparison)
    if kind != "comparison":
        raise RequestError(
            f"a {kind} cannot be shown in this form; comparisons (c5), bisections (b2), incidents (i1) and reports (r4) can"
        )
    return _of_comparison(conn, id_, id_)


def _of_bisection(conn: Connection, id_: str) -> Sheet:
    found = read.bisection(conn, id_)
    comparison = (
        read.incident(conn, found["incident"])["comparison"] if found.get("incident") else None
    )
    if comparison is not None:
        return _of_comparison(conn, id_, comparison)
    sheet = sheet_of_bisection(found)
    if sheet is None:
        raise RequestError(
            f"{id_} is {found['status']}: it has named no commit that was measured beside its parent; `swingbot show {id_}` tells more"
        )
    return sheet


def _of_comparison(conn: Connection, id_: str, comparison: str) -> Sheet:
    return sheet_of_comparison(
        id_, read.comparison(conn, comparison), read.samples_of_comparison(conn, comparison)
    )
