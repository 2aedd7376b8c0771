"""Where workers bring their results: files by content, then the outcome that names them.

Everything that comes in is hostile: sizes are limited, digests verified, documents checked against the
schema, and a token is good for one attempt. Everything that goes out is public, as raw results are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, BinaryIO, Final, Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.model.artifact import ArtifactError, NoSpace, TooLarge, WrongDigest
from swingbot.core.model.dispatch import DatabaseAway, Delivery, attempt_of_token
from swingbot.web.stored import stored
from swingbot_jobs.contract import ContractError, check_outcome

OUTCOME_LIMIT_BYTES: Final = 8 << 20
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_TEXT: Final = re.compile(r".*\.(log|txt|json|map|config|yaml)|config|System\.map", re.IGNORECASE)


REFUSALS: Final[Mapping[type[ArtifactError], int]] = {WrongDigest: 400, TooLarge: 413, NoSpace: 507}


Endpoint = Callable[[Request], Awaitable[Response]]


class ArtifactSink(Protocol):
    def write(self, chunk: bytes) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...


class ArtifactStore(Protocol):
    """`swingbot.adapters.artifacts.Artifacts` fits."""

    def open(self, sha256: str) -> BinaryIO: ...
    def has(self, sha256: str) -> bool: ...
    def sink(self, sha256: str) -> ArtifactSink: ...


class AttemptStore(Protocol):
    """`swingbot_db.attempts.Attempts` fits."""

    def deliver(self, attempt: int, outcome: Mapping[str, Any]) -> Delivery: ...
    def wanted(self, attempt: int) -> bool | None: ...


# What an outcome's delivery is answered with; a worker goes on trying at 409 `missing`, 5xx, and nothing else.
ANSWERS: Final[Mapping[Delivery, tuple[int, str]]] = {
    Delivery.STORED: (201, "stored"),
    Delivery.SAME: (200, "was stored already"),
    Delivery.LATE: (202, "this attempt was given up before; kept, but not counted"),
    Delivery.OTHER: (409, "this attempt ended with another outcome, which stands"),
    Delivery.FOREIGN: (400, "the outcome names another order or another kind of work than this attempt's"),
    Delivery.UNKNOWN: (404, "there is no such attempt"),
}


def _refuse(status: int, error: str, **more: Any) -> JSONResponse:
    return JSONResponse({"error": error, **more}, status_code=status)


class Exchange:
    """The endpoints; `routes` hangs them into an application."""

    def __init__(self, store: ArtifactStore, attempts: AttemptStore, secret: bytes) -> None:
        self._store, self._attempts, self._secret = store, attempts, secret

    def _attempt(self, request: Request) -> int | None:
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        return attempt_of_token(self._secret, text.strip()) if scheme.lower() == "bearer" else None

    async def put_artifact(self, request: Request) -> Response:
        attempt = self._attempt(request)
        if attempt is None or await run_in_threadpool(self._attempts.wanted, attempt) is None:
            return _refuse(401, "give the attempt's token as a bearer token")
        sha256 = request.path_params["sha256"]
        try:
            if await run_in_threadpool(self._store.has, sha256):
                return JSONResponse({"sha256": sha256}, status_code=200)
            await self._receive(request, sha256)
        except ValueError as error:
            return _refuse(400, str(error))
        except ClientDisconnect:
            return _refuse(400, "the connection closed before the file was whole")
        except ArtifactError as error:
            return _refuse(REFUSALS.get(type(error), 503), str(error))
        return JSONResponse({"sha256": sha256}, status_code=201)

    async def _receive(self, request: Request, sha256: str) -> None:
        sink = await run_in_threadpool(self._store.sink, sha256)
        try:
            async for chunk in request.stream():
                await run_in_threadpool(sink.write, chunk)
            await run_in_threadpool(sink.commit)
        finally:
            sink.abort()

    async def get_artifact(self, request: Request) -> Response:
        sha256, name = request.path_params["sha256"], request.query_params.get("name", "")
        try:
            file = await run_in_threadpool(self._store.open, sha256)
        except ValueError as error:
            return _refuse(400, str(error))
        except FileNotFoundError:
            return _refuse(404, f"no artifact {sha256}")
        except ArtifactError as error:
            return _refuse(500, str(error))
        name = name if _NAME.fullmatch(name) else sha256
        text = _TEXT.fullmatch(name) is not None
        headers = {
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "Cache-Control": "public, max-age=31536000, immutable",
            "Content-Disposition": f'{"inline" if text else "attachment"}; filename="{name}"',
        }
        return stored(request, file, sha256, "text/plain; charset=utf-8" if text else "application/octet-stream", headers)

    async def get_attempt(self, request: Request) -> Response:
        """Lets an executor ask whether anybody still waits for what it does."""
        attempt = self._attempt(request)
        if attempt is None or f"a{attempt}" != request.path_params["id"]:
            return _refuse(401, "give the attempt's token as a bearer token")
        wanted = await run_in_threadpool(self._attempts.wanted, attempt)
        return _refuse(404, "there is no such attempt") if wanted is None else JSONResponse({"attempt": f"a{attempt}", "wanted": wanted})

    async def put_outcome(self, request: Request) -> Response:
        attempt = self._attempt(request)
        if attempt is None or f"a{attempt}" != request.path_params["id"]:
            return _refuse(401, "give the attempt's token as a bearer token")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > OUTCOME_LIMIT_BYTES:
                return _refuse(413, f"the outcome is larger than {OUTCOME_LIMIT_BYTES} bytes, the most that is taken")
        try:
            outcome = check_outcome(_parse(bytes(body)))
        except (ContractError, ValueError, RecursionError) as error:
            return _refuse(400, str(error)[:500])
        missing = [name for name, file in outcome["files"].items() if not await run_in_threadpool(self._store.has, file["sha256"])]
        if missing:
            return _refuse(409, f"bring the files first: {', '.join(sorted(missing)[:10])}", missing=sorted(missing))
        delivery = await run_in_threadpool(self._attempts.deliver, attempt, outcome)
        status, words = ANSWERS[delivery]
        return JSONResponse(
            {"delivery": delivery.value, "message": words} if status < 400 else {"error": words, "delivery": delivery.value}, status_code=status
        )


def _parse(body: bytes) -> object:
    """JSON without what PostgreSQL's jsonb cannot hold: NaN, infinities, NUL characters, lone surrogates."""

    def constant(name: str) -> object:
        raise ValueError(f"outcome: {name} is not a number that can be stored")

    text = body.decode("utf-8")
    document = json.loads(text, parse_constant=constant)
    json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8")  # fails on lone surrogates and overflowed numbers
    if re.search(r"(?<!\\)(\\\\)*\\u0000", text):
        raise ValueError("outcome: a NUL character cannot be stored")
    return document


def _patient(endpoint: Endpoint) -> Endpoint:
    """The endpoint, with 503 for a database that is away: the worker tries again."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except DatabaseAway as error:
            return _refuse(503, str(error))

    return answer


def routes(store: ArtifactStore, attempts: AttemptStore, secret: bytes) -> list[Route]:
    """The exchange's routes, to be put into the web application before its pages."""
    exchange = Exchange(store, attempts, secret)
    return [
        Route("/artifacts/{sha256}", exchange.get_artifact, methods=["GET", "HEAD"]),
        Route("/artifacts/{sha256}", _patient(exchange.put_artifact), methods=["PUT"]),
        Route("/attempts/{id}", _patient(exchange.get_attempt), methods=["GET"]),
        Route("/attempts/{id}/outcome.json", _patient(exchange.put_outcome), methods=["PUT"]),
    ]
