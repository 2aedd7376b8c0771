"""What a request takes, wherever it takes it, is charged to its client; places are shared."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from swingbot.core.access.rates import Buckets, Rate
from swingbot.web.access.forms import Forms
from swingbot.web.access.read_access import ReadAccess, ReadSettings
from swingbot.web.access.request_limits import RequestLimits, Traffic
from swingbot.web.access.session import Sessions
from swingbot.web.http.fair_threads import Charged, FairThreads, PiecesResponse, in_turns, share
from swingbot.web.http.render import Renderer
from tests.fakes.store import MemoryStore
from tests.unit.test_fair_threads import burn
from tests.unit.test_forms import SECRET, Settings

WORK = 0.05  # processor seconds, far above what the request itself takes
WEB = Path(__file__).parents[2] / "master/swingbot/web"
# What may use threads that charge nobody: `fair_threads` itself; the exchange with workers, which
# have a token; bodies that are sent in pieces.
OWN_THREADS = {"http/fair_threads.py", "http/spooled.py", "workers/exchange.py"} | {
    "workers/controllers.py"
}


def limited(
    app: ASGIApp, spent: Buckets, most: int = 200, known: Callable[[Any], bool] = lambda _: False
) -> RequestLimits:
    threads = FairThreads(2, spent, now=lambda: 0.0)
    return RequestLimits(
        app, Renderer(Settings()), threads, lambda *_: 1 << 16, known, traffic=Traffic(most)
    )


def debt_of(app: ASGIApp, method: str, path: str, **more: Any) -> float:
    """Return the processor seconds that a request of 192.0.2.1 is charged."""
    spent = Buckets(Rate(per_second=1.0, burst=1000.0))

    async def ask() -> None:
        transport = httpx.ASGITransport(limited(app, spent), client=("192.0.2.1", 9))
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            await client.request(method, path, **more)

    asyncio.run(ask())
    return spent.debt("192.0.2.1", 0.0)


def a_door() -> ReadAccess:
    """Sign-in pages and read access, whose transactions take WORK each."""
    store = MemoryStore()

    def begin(name: str) -> Any:
        burn(WORK)
        return store.transaction(name)

    sessions = Sessions(SECRET, begin, pause=0.0)
    app = Starlette(routes=Forms(SECRET, Renderer(Settings()), sessions).routes())
    reading = ReadSettings(read="token")
    return ReadAccess(app, Renderer(Settings()), sessions, reading, *(lambda *_: False,) * 3)


TOKEN = {"Authorization": f"Bearer swingbot_{'x' * 43}"}


@pytest.mark.parametrize(
    ("method", "path", "more", "transactions"),
    [
        ("POST", "/login", {"data": {"key": TOKEN["Authorization"][7:]}}, 2),  # looked up, noted
        ("POST", "/logout", {"headers": TOKEN}, 2),
        ("GET", "/metrics.json", {"headers": TOKEN}, 2),  # read access
        ("GET", "/metrics.json", {"headers": {"Cookie": f"swingbot={'x' * 43}"}}, 1),
    ],
)
def test_acts_and_signing_in_are_charged_to_the_client(
    method: str, path: str, more: dict[str, Any], transactions: int
) -> None:
    assert debt_of(a_door(), method, path, **more) >= transactions * WORK


def test_work_on_the_event_loop_is_charged_to_the_client() -> None:
    async def reads(request: Request) -> Response:
        await request.body()
        burn(WORK)
        await asyncio.sleep(0.001)
        burn(WORK)
        return PlainTextResponse("x")

    app = Starlette(routes=[Route("/", reads, methods=["POST"])])
    assert 2 * WORK <= debt_of(app, "POST", "/", content=b"x") < 4 * WORK


def test_pages_and_pieces_are_charged_to_the_client() -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(2):
            burn(WORK)
            yield b"x"

    async def of_a_file(request: Request) -> Response:
        return in_turns(request, PiecesResponse(pieces()))

    app = Starlette(
        routes=[Route("/page", lambda _: PiecesResponse(pieces())), Route("/file", of_a_file)]
    )
    share(app.router.routes)
    for path in ("/page", "/file"):
        assert debt_of(app, "GET", path) >= 2 * WORK


def test_a_cancelled_request_is_charged_and_cleans_up() -> None:
    taken, cleaned = [0.0], list[str]()

    async def request() -> None:
        try:
            burn(WORK)
            await asyncio.sleep(3600)
        finally:
            cleaned.append("yes")

    async def play() -> None:
        async def charged() -> None:
            await Charged(request(), lambda seconds: taken.__setitem__(0, taken[0] + seconds))

        task = asyncio.create_task(charged())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(play())
    assert taken[0] >= WORK and cleaned == ["yes"]


def test_nothing_else_starts_threads_that_charge_nobody() -> None:
    free = {
        path.relative_to(WEB).as_posix()
        for path in WEB.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.ImportFrom) and node.module == "starlette.concurrency")
        or (isinstance(node, ast.Attribute) and node.attr in ("run_sync", "to_thread"))
    }
    assert free == OWN_THREADS


def test_a_client_leaves_places_for_others_however_many_it_asks_for() -> None:
    async def play() -> tuple[list[int], set[int], int]:
        release, refused, admitted = asyncio.Event(), list[int](), [0]

        async def slow(request: Request) -> Response:
            admitted[0] += 1
            await release.wait()
            return PlainTextResponse("x")

        spent = Buckets(Rate(per_second=1.0, burst=1000.0))
        app = limited(Starlette(routes=[Route("/", slow)]), spent)

        async def ask(client: int) -> int:
            transport = httpx.ASGITransport(app, client=(f"192.0.2.{client}", 9))
            async with httpx.AsyncClient(transport=transport, base_url="http://x") as one:
                return (await one.get("/")).status_code

        async def crowd(client: int) -> int:
            """Return how many of 100 requests have begun when the others are answered."""
            before = admitted[0]
            tasks = {asyncio.create_task(ask(client)) for _ in range(100)}
            while admitted[0] - before + sum(task.done() for task in tasks) < 100:
                await asyncio.sleep(0.001)
            refused.extend(task.result() for task in tasks if task.done())
            held.update(task for task in tasks if not task.done())
            return admitted[0] - before

        held = set[asyncio.Task[int]]()
        places = [await crowd(client) for client in range(1, 6)]
        last = asyncio.create_task(ask(99))
        await asyncio.sleep(0.05)
        release.set()
        await asyncio.gather(*held)
        return places, set(refused), await last

    places, refused, last = asyncio.run(play())
    assert places == [40, 32, 26, 21, 17]
    assert refused == {429} and last == 200
