"""The moderation queue and the outbox: reports that wait for a person, and mails being sent.

Reading needs no role. Decisions need the role moderator (`web/access/forms.py`), and are recorded
with person, time and reason.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role
from swingbot.core.model.statuses import ReportAct, ReportState
from swingbot.core.moderation.decision import ReportDecision, SwitchDecision
from swingbot.service.ports import RequestError

from ..access.forms import FORM_HEADERS, Forms
from ..http import json_body
from ..http.fair_threads import in_turn
from ..http.render import Renderer, is_json
from ..ports import Connection, Engine, Row

ACTS: Final[tuple[ReportAct, ...]] = ("release", "drop", "hold")


class QueueReader(Protocol):
    """The module `swingbot_db.read`."""

    def waiting(self, conn: Connection) -> Row: ...
    def outgoing(self, conn: Connection) -> Row: ...
    def switch(self, conn: Connection) -> Row: ...


class Moderator(Protocol):
    """Applies and records decisions. Raises ValueError with a sentence if one is not possible."""

    def decide(self, report: str, act: ReportAct, *, who: str, why: str) -> ReportState: ...
    def switch(self, *, stopped: bool, who: str, why: str) -> None: ...


class MailSettings(Protocol):
    """Settings in force that the pages show."""

    @property
    def release(self) -> str: ...
    @property
    def dry_run(self) -> bool: ...
    @property
    def stop(self) -> bool: ...


class ModerationPages:
    def __init__(
        self,
        engine: Engine,
        queue: QueueReader,
        renderer: Renderer,
        forms: Forms,
        moderator: Moderator,
        mail: MailSettings,
    ) -> None:
        self._engine, self._queue, self._renderer = engine, queue, renderer
        self._forms, self._moderator, self._mail = forms, moderator, mail

    def waiting(
        self, request: Request, problem: str = "", typed: Mapping[str, str] = MappingProxyType({})
    ) -> Response:
        """`typed`: reasons that came with a refused form, by report."""
        return self._page(request, self._queue.waiting, "moderation.html", problem, typed)

    def outbox(self, request: Request) -> Response:
        return self._page(request, self._queue.outgoing, "outbox.html", "")

    def _page(
        self,
        request: Request,
        read: Callable[[Connection], Row],
        template: str,
        problem: str,
        typed: Mapping[str, str] = MappingProxyType({}),
    ) -> Response:
        with self._engine.connect() as conn:
            queue = read(conn)
        mail: dict[str, Any] = {
            "release": self._mail.release,
            "dry_run": self._mail.dry_run,
            "stopped_by_setting": self._mail.stop,
        }
        if is_json(request):
            return JSONResponse(queue | {"settings": mail})
        page = self._renderer.page(
            template,
            status=409 if problem else 200,
            queue=queue,
            mail=mail,
            problem=problem,
            typed=typed,
            **self._forms.context(request),
        )
        page.headers.update(FORM_HEADERS)
        return page

    async def decide(self, request: Request) -> Response:
        form = await self._forms.read(request)
        act, typed = form.values.get("act", ""), form.values.get("why", "")
        try:
            why = form.text("why")
        except RequestError as error:
            return await self._refused(request, f"{error}; nothing was changed", typed)
        if act not in ACTS:
            raise HTTPException(
                400, f"The action must be one of {', '.join(ACTS)}; nothing was changed."
            )
        if act == "drop" and not why:
            return await self._refused(
                request,
                "Give a reason for dropping the report; it is recorded with the report.",
                typed,
            )
        try:
            decide = functools.partial(self._moderator.decide, who=form.who, why=why)
            await in_turn(request, decide, request.path_params["id"], act)
        except ValueError as error:
            return await self._refused(request, str(error), typed)
        return RedirectResponse("/moderation", status_code=HTTPStatus.SEE_OTHER)

    async def decide_by_script(self, request: Request) -> Response:
        """The same for a token, with the decision as JSON; answers with the report's state."""
        person = await self._forms.token_holder(request, Role.MODERATOR)
        decision = await in_turn(request, json_body.read, ReportDecision, await request.body())
        id_ = request.path_params["id"]
        decide = functools.partial(
            self._moderator.decide, id_, decision.act, who=person.who, why=decision.reason
        )

        async def make(person: Person) -> Response:
            return JSONResponse({"id": id_, "state": await in_turn(request, decide)})

        return await self._forms.once.answer(request, person, make)

    async def switch(self, request: Request) -> Response:
        form = await self._forms.read(request)
        act, why = form.values.get("act", ""), form.text("why")
        if act not in ("stop", "resume"):
            raise HTTPException(400, "The action must be stop or resume; nothing was changed.")
        stopped = act == "stop"
        await in_turn(
            request,
            functools.partial(self._moderator.switch, stopped=stopped, who=form.who, why=why),
        )
        return RedirectResponse("/outbox", status_code=HTTPStatus.SEE_OTHER)

    async def switch_by_script(self, request: Request) -> Response:
        """The same for a token, with the decision as JSON; answers with the state of the switch."""
        person = await self._forms.token_holder(request, Role.MODERATOR)
        decision = await in_turn(request, json_body.read, SwitchDecision, await request.body())

        async def make(person: Person) -> Response:
            return JSONResponse(await in_turn(request, self._switched, person.who, decision))

        return await self._forms.once.answer(request, person, make)

    def _switched(self, who: str, decision: SwitchDecision) -> Row:
        self._moderator.switch(stopped=decision.stopped, who=who, why=decision.reason)
        with self._engine.connect() as conn:
            switch = self._queue.switch(conn)
        return {"switch": switch, "stopped_by_setting": self._mail.stop}

    async def _refused(self, request: Request, problem: str, typed: str) -> Response:
        back = {request.path_params["id"]: typed}
        return await in_turn(request, self.waiting, request, problem, back)

    def routes(self) -> list[Route]:
        return [
            Route("/moderation", self.waiting, methods=["GET"]),
            Route("/moderation.json", self.waiting, methods=["GET"]),
            Route("/moderation/switch", self.switch, methods=["POST"]),
            Route("/moderation/{id}", self.decide, methods=["POST"]),
            Route("/report/{id}/decide", self.decide_by_script, methods=["POST"]),
            Route("/outbox/switch", self.switch_by_script, methods=["POST"]),
            Route("/outbox", self.outbox, methods=["GET"]),
            Route("/outbox.json", self.outbox, methods=["GET"]),
        ]
