"""Requests to a service elsewhere. A token goes to the URL of the login and nowhere else."""

from __future__ import annotations

import http.client
import json
import math
import re
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from types import MappingProxyType
from typing import IO, Any, Final, TypeVar, get_origin
from urllib.parse import parse_qs, urlencode, urlsplit

from swingbot.app import limits
from swingbot.app.documents import ServiceAway
from swingbot.app.remote import no_answer
from swingbot.app.remote.login import Login, is_here
from swingbot.app.remote.no_answer import LostAnswer, ServiceError
from swingbot.core.model.cursor import PIECE
from swingbot.core.model.document_version import HEADER, VERSION
from swingbot.core.model.lookup import NotFound
from swingbot.service.ports import RequestError
from swingbot_jobs import codec

D = TypeVar("D")  # the type of a document
_TIMEOUT_SECONDS: Final = 120.0  # without a byte; a plan may apply patches for a minute
_LARGE: Final = 1 << 20  # bytes of a body that may be refused before its end
_PIECE_BYTES: Final = 1 << 20
_EVENTS: Final = "text/event-stream"
_EVENT_LINE_BYTES: Final = 1 << 16
_EVENT_ID: Final = re.compile(" ?[!-~]{1,100}")  # becomes a header of the next request
_AWAY: Final = (429, 502, 503, 504)
_GATEWAY: Final = (502, 504)  # a proxy lost the answer of the service
_KEY: Final = "Idempotency-Key"
_IN_PROGRESS: Final = 409
_PAUSES: Final = (1.0, 3.0, 10.0)  # seconds before a request is sent again


class CutOff(ServiceError):
    """An answer is cut off before its end."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def http_error_302(self, req: Any, fp: IO[bytes], code: int, msg: str, headers: Any) -> None:
        return None

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


class Connection:
    """Sends one request at a time.

    Each method raises ServiceError, ServiceAway, RequestError or NotFound.
    """

    def __init__(self, login: Login) -> None:
        """Raises NoLogin if the token can be read on its way."""
        login.check_private()
        self.url, self._token = login.url, login.token
        # behind a jump host the service is at a port of this machine, where no proxy gets
        proxies = [urllib.request.ProxyHandler({})] if is_here(login.url) else []
        self._opener = urllib.request.build_opener(_NoRedirect, *proxies)

    def json(self, kind: Any, path: str, query: Mapping[str, str] | None = None) -> Any:
        """Return the document at an address, which has the type `kind`."""
        return self._read_as(kind, self._sent(_with(path, query), None))

    def rows(self, kind: Any, path: str, query: Mapping[str, str], most: int) -> list[Any]:
        """Return at most `most` rows, of the type `kind`, of a list, which comes in pieces."""
        found: list[Any] = []
        asked = {**query, "limit": str(min(most, PIECE))}
        for piece in self._pieces(list[kind], path, asked, _following_rows):
            found += piece
            if not piece or len(found) >= most:
                break
        return found[:most]

    def document_pieces(self, kind: Any, path: str) -> Iterator[Any]:
        """Return the pieces of a long document, each of which has the type `kind`."""
        return self._pieces(kind, path, {}, lambda piece, headers: piece.get("next"))

    def _pieces(
        self,
        kind: Any,
        path: str,
        query: Mapping[str, str],
        following: Callable[[Any, Message], str | None],
    ) -> Iterator[Any]:
        """Yield pieces. `following` finds the cursor of the next in a piece and its headers.

        Raises ServiceError for a service whose pieces do not end.
        """
        asked, size = dict(query), 0
        name = path.rpartition("/")[2].removesuffix(".json")
        for _ in range(limits.ANSWER_PIECES):
            content, headers = self._exchanged(_with(path, asked), None)
            if (size := size + len(content)) > limits.ANSWER_BYTES:
                raise self._too_long()
            piece = self._read_as(kind, content)
            yield piece
            if not (after := following(piece, headers)):
                return
            if after == asked.get("after"):
                raise ServiceError(f"{self.url} answers again with the same piece of {name}")
            asked["after"] = after
        raise ServiceError(
            f"{self.url} does not end {name} after {limits.ANSWER_PIECES} pieces; tell its operator"
        )

    def text(self, path: str, query: Mapping[str, str] | None = None) -> str:
        return self.content(path, query).decode("utf-8", "replace")

    def content(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        return self._sent(_with(path, query), None)

    def pieces(self, path: str) -> Iterator[bytes]:
        """Return the content of a file in pieces, however large it is."""
        with self._opened(path, None) as answer:
            while piece := answer.read(_PIECE_BYTES):
                yield piece
            self._check_end(answer)

    def events(self, kind: Any, path: str, seen: str, seconds: float) -> Iterator[Any]:
        """Yield the ids and documents, of the type `kind`, of a stream of events; None between
        them for a sign of life.

        `seen` is the id of the last one that was received, or empty. Raises ServiceAway once
        nothing came for `seconds`.
        """
        headers = {"Accept": _EVENTS} | ({"Last-Event-ID": seen} if seen else {})
        with self._opened(path, None, headers, seconds) as answer:
            if answer.status != 200 or answer.headers.get_content_type() != _EVENTS:
                raise ServiceError(f"{self.url} answers with something else than a stream")
            fields: dict[str, str] = {}
            while line := answer.readline(_EVENT_LINE_BYTES):
                if not line.endswith(b"\n"):
                    raise ServiceError(f"{self.url} sends an event that is cut off or too long")
                name, _, value = line.decode("utf-8", "replace").rstrip("\r\n").partition(":")
                if name == "data" or (name == "id" and _EVENT_ID.fullmatch(value)):
                    fields[name] = value.removeprefix(" ")
                elif not line.strip() and "data" in fields:
                    document = self._read_as(kind, fields.pop("data").encode())
                    yield fields.pop("id", ""), document
                else:
                    yield None

    def post(self, kind: type[D], path: str, document: Mapping[str, Any]) -> D:
        """Send a document; return the answer, which has the type `kind`.

        If the answer is lost, the document is sent again with the same key, by which the service
        knows that it is the same request.
        """
        body = json.dumps(document).encode()
        more = {} if document.get("dry_run") else {_KEY: f'"{uuid.uuid4()}"'}
        for pause in _PAUSES:
            try:
                return self._posted(kind, path, body, more)
            except (LostAnswer, CutOff):
                time.sleep(pause)
        return self._posted(kind, path, body, more)

    def _posted(self, kind: type[D], path: str, body: bytes, more: Mapping[str, str]) -> D:
        found: D = self._read_as(kind, self._exchanged(path, body, more)[0])
        return found

    def _read_as(self, kind: Any, content: bytes) -> Any:
        """Return a document as it came, once it is known to be a `kind`. Raises ServiceError."""
        found = _parsed(content, self.url)
        try:
            codec.typed(kind, found, ignore_unknown=True)
        except codec.BadDocument as error:
            what = "a list" if get_origin(kind) is list else "the document asked for"
            raise ServiceError(
                f"{self.url} answers with something else than {what}: {error}"
            ) from None
        return found

    def _sent(self, path: str, body: bytes | None) -> bytes:
        return self._exchanged(path, body)[0]

    def _exchanged(
        self, path: str, body: bytes | None, more: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[bytes, Message]:
        with self._opened(path, body, more) as answer:
            return self._read(answer), answer.headers

    @contextmanager
    def _opened(
        self,
        path: str,
        body: bytes | None,
        more: Mapping[str, str] = MappingProxyType({}),
        seconds: float = _TIMEOUT_SECONDS,
    ) -> Iterator[http.client.HTTPResponse]:
        """Open an address; `more` headers, `seconds` without a byte."""
        headers = {"Accept": "application/json", HEADER: str(VERSION), **more}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.url + path, data=body, headers=headers)
        try:
            with self._opener.open(request, timeout=seconds) as answer:
                self._check(answer.headers, answer.status)
                yield answer
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 413 and body is not None:
                    raise self._too_large(error, len(body)) from None
                raise self._refusal(error, path) from None
        except ServiceError:
            raise
        except http.client.IncompleteRead:
            raise self._cut_off() from None
        except (OSError, http.client.HTTPException) as error:
            if body is not None and len(body) > _LARGE and no_answer.was_cut(error):
                raise ServiceError(
                    f"{self.url} closed the connection, perhaps because"
                    f" {no_answer.too_large(len(body))}"
                ) from None
            raise no_answer.failure(self.url, error, seconds) from None

    def _read(self, answer: IO[bytes]) -> bytes:
        content = answer.read(limits.ANSWER_BYTES + 1)
        if len(content) > limits.ANSWER_BYTES:
            raise self._too_long()
        self._check_end(answer)
        return content

    def _too_long(self) -> ServiceError:
        return ServiceError(
            f"{self.url} answers with more than {limits.ANSWER_BYTES >> 20} MiB; ask for less"
        )

    def _check_end(self, answer: IO[bytes]) -> None:
        if getattr(answer, "length", None):
            raise self._cut_off()

    def _cut_off(self) -> CutOff:
        return CutOff(f"the answer of {self.url} is cut off; try again")

    def _check(self, headers: Message, status: int) -> None:
        """Raises ServiceError unless a service of this version answers."""
        found = headers.get(HEADER, "")
        if not (found.isascii() and found.isdigit()):
            raise no_answer.stranger(self.url, status)
        if int(found[:9]) != VERSION:
            older = "service" if int(found[:9]) < VERSION else "command on this machine"
            raise ServiceError(
                f"{self.url} speaks version {found} of swingbot's documents and this command"
                f" version {VERSION}: the {older} is too old; install the wheel of"
                f" {self.url}/install"
            )

    def _too_large(self, error: urllib.error.HTTPError, size: int) -> Exception:
        """Return the error that status 413 means for a body of `size` bytes."""
        if HEADER not in error.headers:
            return ServiceError(
                f"a proxy on the way to {self.url} refuses a request of {size >> 10} KiB as too"
                " large; tell its operator"
            )
        if size > _LARGE:
            return RequestError(f"{self.url}: {no_answer.too_large(size)}")
        return self._refusal(error, "")

    def _refusal(self, error: urllib.error.HTTPError, asked: str) -> Exception:
        """Return the error that an answer with a status of 300 or more means; `asked`: the address
        that was asked for.
        """
        if 300 <= error.code < 400:
            return no_answer.redirected(self.url, asked, error.headers.get("location", ""))
        try:
            self._check(error.headers, error.code)
            sentence = str(_parsed(self._read(error), self.url)["detail"])
        except ServiceError as why:
            return LostAnswer(str(why)) if error.code in _GATEWAY else why
        except (KeyError, TypeError):
            sentence = f"{self.url} answers with status {error.code}"
        if error.code == 401:
            if self._token is None:
                sentence = f"{self.url} asks for a token here: get one from its operator."
            return ServiceError(f"{sentence} Then run `swingbot login {self.url}`")
        if error.code == 404:
            return NotFound(sentence)
        if error.code == _IN_PROGRESS and "retry-after" in error.headers:
            return LostAnswer(f"{self.url}: {sentence}")
        if error.code in _AWAY:
            return ServiceAway(f"{self.url}: {sentence}")
        if error.code >= 500:
            return ServiceError(f"{self.url}: {sentence}")
        return RequestError(sentence)


def _following_rows(piece: Any, headers: Message) -> str | None:
    following = parse_qs(urlsplit(headers.get("link", "").partition(">")[0]).query)
    return following["after"][-1] if "after" in following else None


def _with(path: str, query: Mapping[str, str] | None) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _parsed(content: bytes, url: str) -> Any:
    try:
        return json.loads(content, parse_int=_integer, parse_float=_number, parse_constant=_number)
    except (ValueError, RecursionError):
        raise ServiceError(f"{url} answers with something else than JSON") from None


def _integer(text: str) -> int:
    """Raises ValueError for one that no service has: theirs have 64 bits."""
    if len(text) > 20:
        raise ValueError(text[:20])
    return int(text)


def _number(text: str) -> float:
    """Raises ValueError for what is not finite."""
    if not math.isfinite(value := float(text)):
        raise ValueError(text[:20])
    return value
