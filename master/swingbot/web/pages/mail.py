"""The local mailbox: mails delivered to the embedded mail server, newest first. Read-only."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from swingbot.core.limits import MAIL_BYTES
from swingbot.core.model.lookup import NotFound
from swingbot.core.patchset.mailbox import RawMail, take_headers
from swingbot.core.patchset.mime import decode, header_text, texts
from swingbot.core.patchset.model import SeriesError

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


def _read(file: Path) -> RawMail:
    with file.open("rb") as mail:
        return take_headers(mail.read(MAIL_BYTES).replace(b"\r\n", b"\n"))


def _facts(file: Path) -> Row:
    mail = _read(file)
    facts: Row = {
        name.replace("-", "_"): header_text(mail.header(name.encode())) or None
        for name in ("subject", "from", "to", "cc", "date", "message-id", "in-reply-to")
    }
    try:
        date = parsedate_to_datetime((facts["date"] or "")[:100]).astimezone()
        facts["date"] = date.strftime("%Y-%m-%d %H:%M:%S")
    except (TypeError, ValueError, IndexError, OverflowError):
        facts["date"] = None
    return facts | {"key": file.name.split(":")[0], "size": file.stat().st_size}


def _text(mail: RawMail) -> str:
    try:
        parts, _ = texts(mail)
    except SeriesError as error:
        return f"({error})"
    shown = [decode(part.text, part.charset) for part in parts if not part.attached]
    return shown[0] if shown else "(this mail has no plain text)"
