"""`/tokens`: a person's own tokens, for an operator everybody's; a form revokes one."""

from __future__ import annotations

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role, may
from swingbot.core.model.lookup import NotFound
from swingbot.service.access import NotYourToken, revoke_over_the_web
from swingbot.service.ports import RequestError
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.web.access.forms import FORM_HEADERS, NO_TOKEN, Forms
from swingbot.web.http.fair_threads import in_turn
from swingbot.web.http.render import Renderer, is_json
from swingbot.web.http.snapshot_reader import SnapshotReader
from swingbot.web.ports import Row


class TokenPages:
    def __init__(
        self, source: SnapshotReader, renderer: Renderer, forms: Forms, begin: OpenTransaction
    ) -> None:
        self._source, self._renderer, self._forms, self._begin = source, renderer, forms, begin

    def routes(self) -> list[Route]:
        return [
            Route("/tokens", self.show, methods=["GET"]),
            Route("/tokens.json", self.show, methods=["GET"]),
            Route("/tokens/{id}/revoke", self.revoke, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """Tokens that are valid; with `?over=1` those too that have ended."""
        person = await self._forms.visitor(request)
        if person is None and is_json(request):
            raise HTTPException(401, NO_TOKEN)
        return await in_turn(request, self._shown, request, person)

    def _shown(self, request: Request, person: Person | None) -> Response:
        over = request.query_params.get("over") == "1"
        rows = [] if person is None else self._of(person, over)
        if is_json(request):
            answer: Response = JSONResponse(rows)
        else:
            context = self._forms.context(request, Role.READER)
            revocable = [role for role in Role if person is not None and may(person.role, role)]
            answer = self._renderer.page(
                "tokens.html", rows=rows, over=over, revocable=revocable, **context
            )
            answer.headers.update(FORM_HEADERS)
        answer.headers["cache-control"] = "no-store"
        return answer

    def _of(self, person: Person, over: bool) -> list[Row]:
        who = None if person.role is Role.OPERATOR else person.who
        with self._source.reading() as conn:
            return self._source.read.tokens(conn, over=over, who=who)

    async def revoke(self, request: Request) -> Response:
        form = await self._forms.read(request, Role.READER)
        id = request.path_params["id"]
        if not (id.isascii() and id.isdigit() and len(id) < 18):
            raise HTTPException(400, f"{id[:40]!r} is not the number of a token.")
        try:
            await in_turn(request, self._revoke, int(id), form.person)
        except NotYourToken as error:
            raise HTTPException(403, f"{error}; nothing was changed.") from None
        except (NotFound, RequestError) as error:
            raise HTTPException(404, f"{error}; nothing was changed.") from None
        return RedirectResponse("/tokens", status_code=HTTPStatus.SEE_OTHER)

    def _revoke(self, number: int, person: Person) -> None:
        with self._begin("revoke token") as tx:
            revoke_over_the_web(tx.access, number, person)
