"""The page of an incident, and the actions of signed-in people. Reading needs no sign-in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role
from swingbot.core.incident.decide import ACTS, MOVES, IncidentDecision
from swingbot.core.incident.model import Incident as Decided
from swingbot.core.limits import COMMIT_NAME_CHARACTERS
from swingbot.core.model import ids
from swingbot.core.model.comparison_row import folded
from swingbot.core.model.documents import Incident
from swingbot.core.model.lookup import NotFound
from swingbot.service.incident import keep as keep
from swingbot.service.ports import GitError, Lab, RequestError

from ..access.forms import FORM_HEADERS, Form, Forms
from ..http import json_body
from ..http.fair_threads import in_turn
from ..http.render import Renderer, is_json
from ..http.snapshot_reader import SnapshotReader


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
            Route("/incident/{id}/decide", self.decide_by_script, methods=["POST"]),
        ]

    def show(
        self,
        request: Request,
        problem: str = "",
        status: int = HTTPStatus.OK,
        typed: Mapping[str, str] = MappingProxyType({}),
    ) -> Response:
        """`problem`: why the form with these values was refused; it comes back as `typed`."""
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
            "problem": problem,
            "typed": typed,
        }
        page = self._renderer.page("incident.html", status=status, **context)
        page.headers.update(FORM_HEADERS)
        return page

    async def decide(self, request: Request) -> Response:
        form = await self._forms.read(request)
        number = ids.read(request.path_params["id"], "incident")[1]
        try:
            number, decision = _decision(number, form)
            goal = await in_turn(request, self._carry_out, number, decision, form.who)
        except (NotFound, RequestError, ids.BadId) as error:
            # an incident that the form alone names makes a bad form
            if isinstance(error, NotFound) and not form.values.get("into"):
                raise HTTPException(404, f"{error}. Nothing was changed.") from None
            words = (f"{error}. Nothing was changed.", 400, form.values)
            return await in_turn(request, self.show, request, *words)
        except GitError as error:
            words = (f"{error}. Nothing was changed.", 503, form.values)
            return await in_turn(request, self.show, request, *words)
        return RedirectResponse(
            f"/incident/{ids.show('incident', goal.id)}", status_code=HTTPStatus.SEE_OTHER
        )

    async def decide_by_script(self, request: Request) -> Response:
        """The same for a token, with the decision as JSON; answers with the incident's id."""
        person = await self._forms.token_holder(request, Role.MODERATOR)
        number = ids.read(request.path_params["id"], "incident")[1]
        decision = await in_turn(request, json_body.read, IncidentDecision, await request.body())

        async def make(person: Person) -> Response:
            try:
                goal = await in_turn(request, self._carry_out, number, decision, person.who)
            except GitError as error:
                raise HTTPException(503, str(error)) from None
            return JSONResponse({"id": ids.show("incident", goal.id), "status": goal.status})

        return await self._forms.once.answer(request, person, make)

    def _carry_out(self, number: int, decision: IncidentDecision, who: str) -> Decided:
        lab = self._lab()
        return keep.carry_out(lab.transaction, lab.tools.git, number, decision, f"{who} (pages)")


def _decision(number: int, form: Form) -> tuple[int, IncidentDecision]:
    """Return the decision of a form, and the number of the incident that it is about.

    Raises RequestError, BadId.
    """
    act, reason = form.text("act", 20), form.text("reason") or None
    if act == "merge":
        into = ids.read(form.text("into", 40), "incident")[1]
        return into, IncidentDecision(
            act=act, reason=reason, others=(ids.show("incident", number),)
        )
    if act not in (*ACTS, *MOVES):
        raise RequestError(
            f"{act!r} is not a valid action for an incident; use one of"
            f" {', '.join((*ACTS, *MOVES))}"
        )
    return number, IncidentDecision(
        act=act,
        reason=reason,
        commit=form.text("commit", COMMIT_NAME_CHARACTERS) or None,
        bisection=form.text("bisection", 40) or None,
    )


def _retest(document: Incident) -> str | None:
    """Address of the form that measures parent, culprit, and culprit with a patch."""
    culprit = document["culprit"]["commit"]
    for one in document["sightings"]:
        if one["commit"] == culprit and one["testbox"]:
            query = {"tree": one["tree"], "base": f"{culprit}~", "head": culprit}
            return f"/compare?{urlencode(query | {'testbox': one['testbox']})}"
    return None


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
        "retest": _retest(document),
        "branches": len(places),
        "can_split": out,
        "split": any(one["split"] for one in document["impact"]),
        "rows": folded(document["rows"]),
        "labels": {
            one["testbox"]: one["label"]
            for one in (
                *document["rows"],
                *(place for test in document["impact"] for place in test["places"]),
            )
            if one["label"]
        },
    }
