"""The local mailbox: mails delivered to the embedded mail server, newest first. Read-only."""

from __future__ import annotations

from typing import Final, Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.model.lookup import NotFound

from ..http.render import Renderer, is_json
from ..ports import Row

_NEWEST: Final = 200  # mails listed


class Mailbox(Protocol):
    """Implemented by `swingbot.adapters.maildir.DeliveredMails`."""

    def newest(self, most: int) -> tuple[list[Row], int]: ...
    def mail(self, key: str) -> Row | None: ...


class MailPages:
    def __init__(self, mailbox: Mailbox, renderer: Renderer) -> None:
        self._mailbox, self._renderer = mailbox, renderer

    def listing(self, request: Request) -> Response:
        mails, count = self._mailbox.newest(_NEWEST)
        return self._renderer.page("mailbox.html", mails=mails, count=count)

    def message(self, request: Request) -> Response:
        facts = self._mailbox.mail(request.path_params["key"].removesuffix(".json"))
        if facts is None:
            raise NotFound("this mail does not exist; /mailbox lists the mails")
        return (
            JSONResponse(facts)
            if is_json(request)
            else self._renderer.page("mail.html", this=facts)
        )

    def routes(self) -> list[Route]:
        return [Route("/mailbox", self.listing), Route("/mailbox/{key}", self.message)]
