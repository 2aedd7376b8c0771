"""Uploads of workers: files by content, then the outcome that names them.

All input may be hostile: sizes are limited, digests verified, documents checked against the
schema. A token is valid for one attempt: for files up to a cap, and for one outcome, after which
it can write nothing more. Downloads are public, as raw results are, unless settings restrict them
(`web/access/read_access.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, Final, Protocol

import anyio
from anyio import to_thread
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.access.uploads import UploadLimits, UploadUsage, refusal
from swingbot.core.model.artifact import ArtifactError, Gone, NoSpace, TooLarge, WrongDigest
from swingbot.core.model.dispatch import DatabaseAway, Delivery, attempt_of_token
from swingbot.service.order.worker_requests import WorkerRequests
from swingbot.web import limits
from swingbot.web.access.session import bearer_of
from swingbot.web.http import json_body
from swingbot.web.http.error_response import problem
from swingbot.web.http.fair_threads import in_turn, in_turns
from swingbot.web.http.file_response import stored
from swingbot.web.workers.controllers import Controllers
from swingbot_jobs import codec
from swingbot_jobs.contract.orders import ContractError, check_outcome

EXCHANGE_THREADS: Final = 8
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_TEXT: Final = re.compile(r".*\.(log|txt|json|map|config|yaml)|config|System\.map", re.IGNORECASE)


REFUSALS: Final[Mapping[type[ArtifactError], int]] = {WrongDigest: 400, TooLarge: 413, NoSpace: 507}


Endpoint = Callable[[Request], Awaitable[Response]]


class ArtifactSink(Protocol):
    def write(self, chunk: bytes) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...


class ArtifactStore(Protocol):
    """Implemented by `swingbot.adapters.artifacts.ArtifactDirectory`."""

    def open(self, sha256: str) -> BinaryIO: ...
    def has(self, sha256: str) -> bool: ...
    def sink(self, sha256: str) -> ArtifactSink: ...


# Responses to an outcome's delivery. A worker retries after 409 `missing` and 5xx, nothing else.
ANSWERS: Final[Mapping[Delivery, tuple[int, str]]] = {
    Delivery.STORED: (201, "stored"),
    Delivery.SAME: (200, "already stored"),
    Delivery.LATE: (202, "this attempt was given up earlier; stored, but not counted"),
    Delivery.OTHER: (409, "this attempt already has a different outcome, which remains valid"),
    Delivery.FOREIGN: (
        400,
        "the outcome names a different order or kind of work than this attempt",
    ),
    Delivery.UNKNOWN: (404, "this attempt does not exist"),
}


class NotTaken(Exception):
    """An upload is refused, temporarily or permanently; `status` is the HTTP status."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Exchange:
    """The endpoints; `routes` adds them to an application."""

    def __init__(
        self,
        store: ArtifactStore,
        attempts: WorkerRequests,
        secret: bytes,
        cap: UploadLimits,
    ) -> None:
        self._store, self._attempts, self._secret, self._cap = store, attempts, secret, cap
        self._threads = anyio.CapacityLimiter(EXCHANGE_THREADS)
        self._controllers = Controllers(attempts, self._threads)
        self._open: Counter[int] = Counter()  # uploads in progress, by attempt

    def _attempt(self, request: Request) -> int | None:
        return attempt_of(request, self._secret)

    async def put_artifact(self, request: Request) -> Response:
        sha256, attempt = request.path_params["sha256"], self._attempt(request)
        brought = (
            None
            if attempt is None
            else await to_thread.run_sync(
                self._attempts.brought, attempt, sha256, limiter=self._threads
            )
        )
        if attempt is None or brought is None:
            return problem(401, "send the attempt's token as a bearer token")
        try:
            if not brought.over and await to_thread.run_sync(
                self._store.has, sha256, limiter=self._threads
            ):
                return JSONResponse({"sha256": sha256}, status_code=200)
            with self._opened(attempt):
                await self._receive(request, attempt, brought, sha256)
        except NotTaken as error:
            return problem(error.status, str(error))
        except ValueError as error:
            return problem(400, str(error))
        except ClientDisconnect:
            return problem(400, "the connection closed before the file was complete")
        except ArtifactError as error:
            return problem(REFUSALS.get(type(error), 503), str(error))
        return JSONResponse({"sha256": sha256}, status_code=201)

    @contextmanager
    def _opened(self, attempt: int) -> Iterator[None]:
        """Reserve a slot for one more upload. Raises NotTaken; a worker retries."""
        if self._open[attempt] >= self._cap.open_files_each:
            raise NotTaken(
                429,
                f"this attempt already has {self._cap.open_files_each} uploads in progress; retry"
                " when one has finished",
            )
        if self._open.total() >= self._cap.open_files:
            raise NotTaken(
                503,
                f"{self._cap.open_files} uploads are in progress, which is the limit; retry later",
            )
        self._open[attempt] += 1
        try:
            yield
        finally:
            self._open[attempt] -= 1
            self._open += Counter()  # drops entries that are 0

    async def _receive(
        self, request: Request, attempt: int, brought: UploadUsage, sha256: str
    ) -> None:
        self._fits(brought, _announced(request))
        sink, size = await to_thread.run_sync(self._store.sink, sha256, limiter=self._threads), 0
        try:
            async for chunk in request.stream():
                size += len(chunk)
                self._fits(brought, size)
                await to_thread.run_sync(sink.write, chunk, limiter=self._threads)
            refused = await to_thread.run_sync(
                self._attempts.admit, attempt, sha256, size, self._cap, limiter=self._threads
            )
            if refused is not None:
                raise NotTaken(403, refused)
            await to_thread.run_sync(sink.commit, limiter=self._threads)
        finally:
            sink.abort()

    def _fits(self, brought: UploadUsage, size: int) -> None:
        refused = refusal(brought, size, self._cap)
        if refused is not None:
            raise NotTaken(403, refused)

    async def get_artifact(self, request: Request) -> Response:
        sha256, name = request.path_params["sha256"], request.query_params.get("name", "")
        try:
            file = (
                await in_turn(request, self._store.open, sha256)
                if self._attempt(request) is None
                else await to_thread.run_sync(self._store.open, sha256, limiter=self._threads)
            )
        except ValueError as error:
            return problem(400, str(error))
        except Gone as error:
            return problem(410, f"artifact {sha256} was {error}")
        except FileNotFoundError:
            return problem(404, f"artifact {sha256} does not exist")
        except ArtifactError as error:
            return problem(500, str(error))
        name = name if _NAME.fullmatch(name) else sha256
        text = _TEXT.fullmatch(name) is not None
        headers = {
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "Cache-Control": "public, max-age=31536000, immutable",
            "Content-Disposition": f'{"inline" if text else "attachment"}; filename="{name}"',
        }
        media_type = "text/plain; charset=utf-8" if text else "application/octet-stream"
        return in_turns(request, stored(request, file, sha256, media_type, headers))

    async def get_attempt(self, request: Request) -> Response:
        """Tell an executor whether its work is still needed. Asking keeps its testbox leased.

        `lease` has the fencing token, and the seconds for which the lease is valid at least.
        """
        attempt = self._attempt(request)
        if attempt is None or f"a{attempt}" != request.path_params["id"]:
            return problem(401, "send the attempt's token as a bearer token")
        held = await self._controllers.hold(request, attempt)
        if isinstance(held, Response):
            return held
        lease = {} if held is None else {"lease": codec.plain(held)}
        wanted = await to_thread.run_sync(self._attempts.wanted, attempt, limiter=self._threads)
        return (
            problem(404, "this attempt does not exist")
            if wanted is None
            else JSONResponse({"attempt": f"a{attempt}", "wanted": wanted} | lease)
        )

    async def put_phase(self, request: Request) -> Response:
        """Accept the current phase of the attempt's testbox."""
        attempt = self._attempt(request)
        if attempt is None or f"a{attempt}" != request.path_params["id"]:
            return problem(401, "send the attempt's token as a bearer token")
        return await self._controllers.take_phase(request, attempt)

    async def put_outcome(self, request: Request) -> Response:
        attempt = self._attempt(request)
        if attempt is None or f"a{attempt}" != request.path_params["id"]:
            return problem(401, "send the attempt's token as a bearer token")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > limits.OUTCOME_BYTES:
                return problem(
                    413,
                    f"the outcome exceeds the limit of {limits.OUTCOME_BYTES} bytes",
                )
        try:
            outcome = check_outcome(json_body.parse(bytes(body)))
        except (ContractError, ValueError, RecursionError) as error:
            return problem(400, str(error)[:500])
        missing = [
            name
            for name, file in outcome["files"].items()
            if not await to_thread.run_sync(self._store.has, file["sha256"], limiter=self._threads)
        ]
        if missing:
            return problem(
                409,
                f"upload the files first: {', '.join(sorted(missing)[:10])}",
                missing=sorted(missing),
            )
        if refusal := await self._controllers.refuse(request, attempt):
            return refusal
        delivery = await to_thread.run_sync(
            self._attempts.deliver, attempt, outcome, limiter=self._threads
        )
        status, words = ANSWERS[delivery]
        if status >= 400:
            return problem(status, words, delivery=delivery.value)
        return JSONResponse({"delivery": delivery.value, "message": words}, status_code=status)


def attempt_of(request: HTTPConnection, secret: bytes) -> int | None:
    """Return the attempt whose token the request has; None if the token is not valid."""
    return attempt_of_token(secret, bearer_of(request) or "")


def _announced(request: Request) -> int:
    """Return the request's declared size in bytes; 0 if it is chunked."""
    text = request.headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _patient(endpoint: Endpoint) -> Endpoint:
    """Wrap the endpoint: 503 while the database is unavailable, so that the worker retries."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except DatabaseAway as error:
            return problem(503, str(error))

    return answer


def routes(
    store: ArtifactStore,
    attempts: WorkerRequests,
    secret: bytes,
    cap: UploadLimits | None = None,
) -> list[Route]:
    """Return the exchange's routes; they go before the routes of the pages."""
    exchange = Exchange(store, attempts, secret, cap or UploadLimits())
    return [
        Route("/artifacts/{sha256}", exchange.get_artifact, methods=["GET", "HEAD"]),
        Route("/artifacts/{sha256}", _patient(exchange.put_artifact), methods=["PUT"]),
        Route("/attempts/{id}", _patient(exchange.get_attempt), methods=["GET"]),
        Route("/attempts/{id}/phase", _patient(exchange.put_phase), methods=["PUT"]),
        Route("/attempts/{id}/outcome.json", _patient(exchange.put_outcome), methods=["PUT"]),
    ]
