"""Where workers bring their results: files by content, then the outcome that names them.

Everything that comes in is hostile: sizes are limited, digests verified, documents checked against the
schema, and a token is good for one attempt: for files up to a cap, and for one outcome, after which it writes nothing more.
What goes out is public, as raw results are, unless settings say otherwise (`web/read_access.py`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.access.uploads import UploadLimits, UploadUsage, refusal
from swingbot.core.model.artifact import ArtifactError, Gone, NoSpace, TooLarge, WrongDigest
from swingbot.core.model.dispatch import DatabaseAway, Delivery, attempt_of_token
from swingbot.web.controllers import BoxStore, Controllers
from swingbot.web.file_response import stored
from swingbot.web.session import bearer_of
from swingbot_jobs.contract.orders import ContractError, check_outcome

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
    def brought(self, attempt: int, sha256: str) -> UploadUsage | None: ...
    def admit(self, attempt: int, sha256: str, size: int, cap: UploadLimits) -> str | None: ...


# What an outcome's delivery is answered with; a worker goes on trying at 409 `missing`, 5xx, and nothing else.
ANSWERS: Final[Mapping[Delivery, tuple[int, str]]] = {
    Delivery.STORED: (201, "stored"),
    Delivery.SAME: (200, "was stored already"),
    Delivery.LATE: (202, "this attempt was given up before; kept, but not counted"),
    Delivery.OTHER: (409, "this attempt ended with another outcome, which stands"),
    Delivery.FOREIGN: (
        400,
        "the outcome names another order or another kind of work than this attempt's",
    ),
    Delivery.UNKNOWN: (404, "there is no such attempt"),
}


def _refuse(status: int, error: str, **more: Any) -> JSONResponse:
    return JSONResponse({"error": error, **more}, status_code=status)


class NotTaken(Exception):
    """A file that this attempt may not bring (now); `status` is what it is answered with."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Exchange:
    """The endpoints; `routes` hangs them into an application."""

    def __init__(
        self,
        store: ArtifactStore,
        attempts: AttemptStore,
        secret: bytes,
        cap: UploadLimits,
        boxes: BoxStore | None = None,
    ) -> None:
        self._store, self._attempts, self._secret, self._cap = store, attempts, secret, cap
        self._controllers = Controllers(boxes)
        self._open: Counter[int] = Counter()  # files on their way, by attempt

    def _attempt(self, request: Request) -> int | None:
        return attempt_of(request, self._secret)

    async def put_artifact(self, request: Request) -> Response:
        sha256, attempt = request.path_params["sha256"], self._attempt(request)
        brought = (
            None
            if attempt is None
            else await run_in_threadpool(self._attempts.brought, attempt, sha256)
        )
        if attempt is None or brought is None:
            return _refuse(401, "give the attempt's token as a bearer token")
        try:
            if not brought.over and await run_in_threadpool(self._store.has, sha256):
                return JSONResponse({"sha256": sha256}, status_code=200)
            with self._opened(attempt):
                await self._receive(request, attempt, brought, sha256)
        except NotTaken as error:
            return _refuse(error.status, str(error))
        except ValueError as error:
            return _refuse(400, str(error))
        except ClientDisconnect:
            return _refuse(400, "the connection closed before the file was whole")
        except ArtifactError as error:
            return _refuse(REFUSALS.get(type(error), 503), str(error))
        return JSONResponse({"sha256": sha256}, status_code=201)

    @contextmanager
    def _opened(self, attempt: int) -> Iterator[None]:
        """A place for one more file. Raises NotTaken; a worker tries again."""
        if self._open[attempt] >= self._cap.open_files_each:
            raise NotTaken(
                429,
                f"this attempt is bringing {self._cap.open_files_each} files already; one after the other is enough",
            )
        if self._open.total() >= self._cap.open_files:
            raise NotTaken(
                503,
                f"{self._cap.open_files} files are on their way, the most at once; try again",
            )
        self._open[attempt] += 1
        try:
            yield
        finally:
            self._open[attempt] -= 1
            self._open += Counter()  # forgets those that are at 0

    async def _receive(
        self, request: Request, attempt: int, brought: UploadUsage, sha256: str
    ) -> None:
        self._fits(brought, _announced(request))
        sink, size = await run_in_threadpool(self._store.sink, sha256), 0
        try:
            async for chunk in request.stream():
                size += len(chunk)
                self._fits(brought, size)
                await run_in_threadpool(sink.write, chunk)
            refused = await run_in_threadpool(
                self._attempts.admit, attempt, sha256, size, self._cap
            )
            if refused is not None:
                raise NotTaken(403, refused)
            await run_in_threadpool(sink.commit)
        finally:
            sink.abort()

    def _fits(self, brought: UploadUsage, size: int) -> None:
        refused = refusal(brought, size, self._cap)
        if refused is not None:
            raise NotTaken(403, refused)

    async def get_artifact(self, request: Request) -> Response:
        sha256, name = request.path_params["sha256"], request.query_params.get("name", "")
        try:
            file = await run_in_threadpool(self._store.open, sha256)
        except ValueError as error:
            return _refuse(400, str(error))
        except Gone as error:
            return _refuse(410, f"artifact {sha256} was {error}")
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
        return stored(
            request,
            file,
            sha256,
            "text/plain; charset=utf-8" if text else "application/octet-stream",
            headers,
        )

    async def get_attempt(self, request: Request) -> Response:
        """Lets an executor ask whether anybody still waits for what it does; by asking it keeps its testbox."""
        attempt = self._attempt(request)
        if attempt is None or f"a{attempt}" != request.path_params["id"]:
            return _refuse(401, "give the attempt's token as a bearer token")
        if refusal := await self._controllers.refuse(request, attempt):
            return refusal
        wanted = await run_in_threadpool(self._attempts.wanted, attempt)
        return (
            _refuse(404, "there is no such attempt")
            if wanted is None
            else JSONResponse({"attempt": f"a{attempt}", "wanted": wanted})
        )

    async def put_phase(self, request: Request) -> Response:
        """Takes what the attempt's testbox does now."""
        attempt = self._attempt(request)
        if attempt is None or f"a{attempt}" != request.path_params["id"]:
            return _refuse(401, "give the attempt's token as a bearer token")
        return await self._controllers.take_phase(request, attempt)

    async def put_outcome(self, request: Request) -> Response:
        attempt = self._attempt(request)
        if attempt is None or f"a{attempt}" != request.path_params["id"]:
            return _refuse(401, "give the attempt's token as a bearer token")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > OUTCOME_LIMIT_BYTES:
                return _refuse(
                    413,
                    f"the outcome is larger than {OUTCOME_LIMIT_BYTES} bytes, the most that is taken",
                )
        try:
            outcome = check_outcome(_parse(bytes(body)))
        except (ContractError, ValueError, RecursionError) as error:
            return _refuse(400, str(error)[:500])
        missing = [
            name
            for name, file in outcome["files"].items()
            if not await run_in_threadpool(self._store.has, file["sha256"])
        ]
        if missing:
            return _refuse(
                409,
                f"bring the files first: {', '.join(sorted(missing)[:10])}",
                missing=sorted(missing),
            )
        if refusal := await self._controllers.refuse(request, attempt):
            return refusal
        delivery = await run_in_threadpool(self._attempts.deliver, attempt, outcome)
        status, words = ANSWERS[delivery]
        return JSONResponse(
            {"delivery": delivery.value, "message": words}
            if status < 400
            else {"error": words, "delivery": delivery.value},
            status_code=status,
        )


def attempt_of(request: HTTPConnection, secret: bytes) -> int | None:
    """The attempt whose token came with the request; None for no token of ours."""
    return attempt_of_token(secret, bearer_of(request) or "")


def _announced(request: Request) -> int:
    """The size in bytes that the request says to have; 0 if it comes in pieces."""
    text = request.headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _parse(body: bytes) -> object:
    """JSON without what PostgreSQL's jsonb cannot hold: NaN, infinities, NUL characters, lone surrogates."""

    def constant(name: str) -> object:
        raise ValueError(f"outcome: {name} is not a number that can be stored")

    text = body.decode("utf-8")
    document = json.loads(text, parse_constant=constant)
    # fails on lone surrogates and overflowed numbers
    json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8")
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


def routes(
    store: ArtifactStore,
    attempts: AttemptStore,
    secret: bytes,
    cap: UploadLimits | None = None,
    boxes: BoxStore | None = None,
) -> list[Route]:
    """The exchange's routes, to be put into the web application before its pages."""
    exchange = Exchange(store, attempts, secret, cap or UploadLimits(), boxes)
    return [
        Route("/artifacts/{sha256}", exchange.get_artifact, methods=["GET", "HEAD"]),
        Route("/artifacts/{sha256}", _patient(exchange.put_artifact), methods=["PUT"]),
        Route("/attempts/{id}", _patient(exchange.get_attempt), methods=["GET"]),
        Route("/attempts/{id}/phase", _patient(exchange.put_phase), methods=["PUT"]),
        Route("/attempts/{id}/outcome.json", _patient(exchange.put_outcome), methods=["PUT"]),
    ]
