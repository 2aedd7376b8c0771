"""The local mailbox: mails delivered to the embedded mail server, newest first. Read-only."""

from __future__ import annotations

import email
import email.policy
import re
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from swingbot.core.limits import MAIL_BYTES
from swingbot.core.model.lookup import NotFound

from ..http.render import Renderer, is_json
from ..ports import Row

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._,=+-]{0,250}")
_NEWEST = 200  # mails listed


class MailPages:
    def __init__(self, maildir: Path, renderer: Renderer) -> None:
        self._maildir, self._renderer = maildir, renderer

    def listing(self, request: Request) -> Response:
        files = sorted(
            self._files().values(),
            key=lambda file: (file.stat().st_mtime_ns, file.name),
            reverse=True,
        )
        return self._renderer.page(
            "mailbox.html", mails=[_facts(file) for file in files[:_NEWEST]], count=len(files)
        )

    def message(self, request: Request) -> Response:
        key = request.path_params["key"].removesuffix(".json")
        file = self._files().get(key) if _KEY.fullmatch(key) else None
        if file is None:
            raise NotFound("this mail does not exist; /mailbox lists the mails")
        facts = _facts(file) | {"text": _text(_read(file))}
        return (
            JSONResponse(facts)
            if is_json(request)
            else self._renderer.page("mail.html", this=facts)
        )

    def _files(self) -> dict[str, Path]:
        """Key (the name without Maildir's flags) -> file."""
        return {
            file.name.split(":")[0]: file
            for place in ("new", "cur")
            for file in (self._maildir / place).glob("*")
            if file.is_file()
        }


def _read(file: Path) -> EmailMessage:
    with file.open("rb") as mail:
        message = email.message_from_bytes(mail.read(MAIL_BYTES), policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def _header(message: EmailMessage, name: str) -> str | None:
    try:
        value = message[name]
    # the header parser fails in many ways on hostile input; unreadable headers are not shown
    except Exception:
        return "(unreadable)"
    return None if value is None else str(value)


def _facts(file: Path) -> Row:
    message = _read(file)
    facts: Row = {
        name.lower().replace("-", "_"): _header(message, name)
        for name in ("Subject", "From", "To", "Cc", "Date", "Message-ID", "In-Reply-To")
    }
    try:
        facts["date"] = (
            parsedate_to_datetime(facts["date"]).astimezone().strftime("%Y-%m-%d %H:%M:%S")
            if facts["date"]
            else None
        )
    except (TypeError, ValueError):
        facts["date"] = None
    return facts | {"key": file.name.split(":")[0], "size": file.stat().st_size}


def _text(message: EmailMessage) -> str:
    body = message.get_body(preferencelist=("plain",))
    if body is None:
        return "(this mail has no plain text)"
    try:
        return str(body.get_content())
    except (LookupError, ValueError):
        return "(the text of this mail cannot be decoded)"
