"""The names under which the service answers: a request for any other host is refused.

Otherwise a page of another site whose name leads to this address reads the pages of whoever visits
it (DNS rebinding). Addresses are not names, so they are accepted.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from ..http.error_response import failure
from ..http.render import Renderer

ANY: Final = "*"
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::[0-9]{1,5})?")


class KnownHosts:
    """`names` are host names; ANY among them accepts every host."""

    def __init__(self, app: ASGIApp, renderer: Renderer, names: Iterable[str]) -> None:
        self._app, self._renderer = app, renderer
        self._names = frozenset(name.lower().rstrip(".") for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or all(
            self.accepts(value.decode("latin-1"))
            for name, value in scope["headers"]
            if name == b"host"
        ):
            await self._app(scope, receive, send)
            return
        answer = failure(
            self._renderer,
            HTTPConnection(scope),
            421,
            "This service does not answer for this host name; its operator can add it to"
            " web.hosts.",
            {"connection": "close"},
        )
        await answer(scope, receive, send)

    def accepts(self, host: str) -> bool:
        """Return True if a Host header names this service or any IP address."""
        match = _HOST.fullmatch(host.strip())
        if ANY in self._names:
            return True
        if match is None:
            return False
        name = match[1].lower().rstrip(".")
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return name in self._names
        return True
