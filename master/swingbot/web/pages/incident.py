"""The page of an incident, and the actions of signed-in people. Reading needs no sign-in."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from swingbot.core.incident.decide import ACTS
from swingbot.core.model import ids
from swingbot.core.model.comparison_row import folded
from swingbot.core.model.documents import Incident
from swingbot.service.incident import keep as keep
from swingbot.service.ports import GitError, Lab, RequestError

from ..access.forms import FORM_HEADERS, Form, Forms
from ..http.fair_threads import in_turn
from ..http.render import Renderer, is_json
from ..http.snapshot_reader import SnapshotReader

OTHERS: Final = ("merge", "split")


class IncidentPages:
    """`lab` is created for the first action; reading needs none."""

    def __init__(
        self, source: SnapshotReader, renderer: Renderer, forms: Forms, lab: Callable[[], Lab]
    ) -> None:
        self._source, self._renderer, self._forms, self._lab = source, renderer, forms, lab

    def routes(self) -> list[Route]:
        return [
            Route("/incident/{id}", self.show, methods=["GET"]),
            Route("/incident/{id}", self.decide, methods=["POST"]),
        ]

    def show(self, request: Request) -> Response:
        with self._source.reading() as conn:
            document = self._source.read.incident(
                conn, request.path_params["id"].removesuffix(".json")
            )
        if is_json(request):
            return JSONResponse(document)
        context: dict[str, Any] = {
            "this": document,
            **shown(document),
            **self._forms.context(request),
        }
        page = self._renderer.page("incident.html", **context)
        page.headers.update(FORM_HEADERS)
        return page

    async def decide(self, request: Request) -> Response:
        form = await self._forms.read(request)
        number = ids.read(request.path_params["id"], "incident")[1]
        try:
            goal = await in_turn(request, _do, self._lab, number, form)
        except RequestError as error:
            raise HTTPException(400, f"{error}. Nothing was changed.") from None
        except GitError as error:
            raise HTTPException(503, f"{error}. Nothing was changed.") from None
        return RedirectResponse(
            f"/incident/{ids.show('incident', goal)}", status_code=HTTPStatus.SEE_OTHER
        )


def _do(lab: Callable[[], Lab], number: int, form: Form) -> int:
    """Carry out the form's action; return the incident to show. Raises RequestError, GitError."""
    act, who, reason = form.text("act", 20), f"{form.who} (pages)", form.text("reason") or None
    for action in ACTS:
        if act == action:
            return keep.say(
                lab().transaction,
                lab().tools.git,
                number,
                action,
                who=who,
                reason=reason,
                commit=form.text("commit", 100) or None,
            ).id
    if act == "merge":
        return keep.merge(
            lab().transaction,
            [number],
            _id(form.text("into", 40), "incident"),
            who=who,
            reason=reason,
        ).id
    if act == "split":
        bisection = form.text("bisection", 40)
        return keep.split(
            lab().transaction,
            number,
            who=who,
            reason=reason,
            bisection=_id(bisection, "bisection") if bisection else None,
        ).id
    raise RequestError(
        f"{act!r} is not a valid action for an incident; use one of {', '.join((*ACTS, *OTHERS))}"
    )


def _id(text: str, kind: str) -> int:
    try:
        return ids.read(text, kind)[1]
    except ids.BadId as error:
        raise RequestError(str(error)) from None


def shown(document: Incident) -> dict[str, Any]:
    """Values for the template: number of branches, what can be split off, the rows by test."""
    places = {(s["tree"], s["commit"]) for s in document["sightings"]}
    out = sorted(
        {
            s["bisection"]
            for s in document["sightings"]
            if s["bisection"] and s["commit"] != document["culprit"]["commit"]
        }
    )
    return {
        "branches": len(places),
        "can_split": out,
        "split": any(one["split"] for one in document["impact"]),
        "rows": folded(document["rows"]),
    }
