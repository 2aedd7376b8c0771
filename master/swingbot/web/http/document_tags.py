"""Validators of JSON documents: `ETag` by their content, and 304 for who has that one already."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# In 304; the others describe the content (RFC 9110, section 15.4.5).
_KEPT: Final = ("cache-control", "etag", "link", "vary")
_TAG: Final = re.compile(r'"[!#-~]*"')


class DocumentTags:
    """Tags the documents that the application answers to GET.

    A tag is made of what this person is shown, after access control, so it says nothing about what
    others are shown.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        wanted = Headers(scope=scope).get("if-none-match", "")
        held: Message | None = None  # until the content is there

        async def tagged(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start" and _is_document(message):
                held = message
                return
            if held is not None:
                start, held = held, None
                if not message.get("more_body", False):
                    message = _tag(start, message, wanted)
                await send(start)
            await send(message)

        await self._app(scope, receive, tagged)


def _is_document(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    return (
        start["status"] == 200
        and headers.get("content-type", "").startswith("application/json")
        and "etag" not in headers
        and "no-store" not in headers.get("cache-control", "")
    )


def _tag(start: Message, body: Message, wanted: str) -> Message:
    """Add the tag to the head of an answer; return its body, which a matching tag empties."""
    tag = f'"{hashlib.sha256(body.get("body", b"")).hexdigest()[:32]}"'
    headers = MutableHeaders(scope=start)
    headers["etag"] = f"W/{tag}"
    headers.setdefault("cache-control", "no-cache")
    headers.add_vary_header("Authorization, Cookie")
    if wanted.strip() != "*" and tag not in _TAG.findall(wanted):
        return body
    start["status"] = 304
    start["headers"] = [pair for pair in start["headers"] if pair[0].decode() in _KEPT]
    return {**body, "body": b""}
