"""Threads of pages are shared by processor time: a crowd of one client delays only itself."""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from swingbot.adapters import process
from swingbot.core.access.rates import UNLIMITED, Buckets, Rate
from swingbot.web.access.request_limits import budget_of
from swingbot.web.http.fair_threads import FairThreads


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def order_of(threads: FairThreads, *clients: str) -> list[str]:
    """Return the order in which waiting clients get the only thread."""
    go, order = threading.Event(), list[str]()
    held = asyncio.create_task(threads.run("held", go.wait))
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(threads.run(client, order.append, client)) for client in clients]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(held, *waiting)
    return order


def test_a_client_that_asks_once_waits_for_none_of_the_crowd() -> None:
    async def play() -> list[str]:
        threads, go, done = FairThreads(1, Buckets(UNLIMITED)), threading.Event(), list[str]()
        crowd = [asyncio.create_task(threads.run("crowd", go.wait)) for _ in range(25)]
        for task in crowd:
            task.add_done_callback(lambda _: done.append("crowd"))
        await asyncio.sleep(0)
        other = asyncio.create_task(threads.run("other", burn, 0.0))
        other.add_done_callback(lambda _: done.append("other"))
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(*crowd, other)
        return done

    assert asyncio.run(play()).index("other") == 1, "after the call that had begun"


def test_a_client_has_one_thread_whatever_it_asks() -> None:
    async def play() -> int:
        threads, most, lock, now = FairThreads(8, Buckets(UNLIMITED)), [0], threading.Lock(), [0]

        def work() -> None:
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            burn(0.002)
            with lock:
                now[0] -= 1

        await asyncio.gather(*(threads.run("crowd", work) for _ in range(25)))
        return most[0]

    assert asyncio.run(play()) == 1


def test_the_client_that_used_the_least_processor_time_is_next() -> None:
    async def play() -> list[str]:
        threads = FairThreads(1, Buckets(UNLIMITED), now=lambda: 0.0)
        await threads.run("dear", burn, 0.05)
        await threads.run("cheap", burn, 0.0)
        return await order_of(threads, "dear", "cheap", "new")

    assert asyncio.run(play()) == ["new", "cheap", "dear"]


def test_a_client_that_stops_waiting_takes_no_turn() -> None:
    async def play() -> None:
        threads, go = FairThreads(1, Buckets(UNLIMITED)), threading.Event()
        held = asyncio.create_task(threads.run("a", go.wait))
        await asyncio.sleep(0)
        gone = [asyncio.create_task(threads.run(client, burn, 0.0)) for client in "ab"]
        await asyncio.sleep(0)
        for task in gone:
            task.cancel()
        await asyncio.gather(*gone, return_exceptions=True)
        go.set()
        await held
        async with asyncio.timeout(60):
            await asyncio.gather(*(threads.run(client, burn, 0.0) for client in "abc"))

    asyncio.run(play())


def test_a_client_that_leaves_as_a_thread_becomes_free_is_skipped() -> None:
    async def play() -> list[object]:
        threads, go = FairThreads(1, Buckets(UNLIMITED)), threading.Event()
        held = asyncio.create_task(threads.run("a", go.wait))
        await asyncio.sleep(0)
        gone = [asyncio.create_task(threads.run(client, burn, 0.0)) for client in "bbc"]
        await asyncio.sleep(0)
        for task in gone:
            task.cancel()
        threads._free += 1  # a call ends before the cancelled tasks run
        threads._start()
        threads._free -= 1
        ended: list[object] = [*await asyncio.gather(*gone, return_exceptions=True)]
        go.set()
        await held
        return ended

    assert [type(error) for error in asyncio.run(play())] == [asyncio.CancelledError] * 3


def test_pieces_are_charged_to_their_reader() -> None:
    spent = Buckets(Rate(per_second=1.0, burst=0.0))

    async def play() -> list[int]:
        threads = FairThreads(2, spent, now=lambda: 0.0)

        def pieces() -> Iterator[int]:
            for number in range(3):
                burn(0.01)
                yield number

        return [piece async for piece in threads.each("reader", pieces())]

    assert asyncio.run(play()) == [0, 1, 2]
    assert 0.03 <= spent.debt("reader", 0.0) < 0.3


def test_pools_share_a_budget_and_a_kit_delays_pages_of_the_same_client() -> None:
    spent = Buckets(UNLIMITED)

    async def play() -> list[str]:
        kits, pages = (FairThreads(1, spent, now=lambda: 0.0) for _ in range(2))
        await kits.run("dear", burn, 0.05)
        return await order_of(pages, "dear", "other")

    assert asyncio.run(play()) == ["other", "dear"]


def test_persons_at_one_address_wait_each_for_their_own_calls() -> None:
    spent = Buckets(UNLIMITED)

    async def play() -> list[str]:
        threads, go, order = FairThreads(4, spent), threading.Event(), list[str]()
        first = asyncio.create_task(threads.run("home", go.wait, person="Ada"))
        second = asyncio.create_task(threads.run("office", order.append, "second", person="Ada"))
        await threads.run("home", order.append, "of Bob", person="Bob")
        go.set()
        await asyncio.gather(first, second)
        return order

    assert asyncio.run(play()) == ["of Bob", "second"]


def test_processes_of_a_call_are_charged_to_its_client_and_to_no_other() -> None:
    spent = Buckets(Rate(per_second=1.0, burst=0.0))
    loop = "import time\nwhile time.process_time() < 0.3: pass"

    async def play() -> None:
        threads = FairThreads(2, spent, now=lambda: 0.0, seconds=process.seconds)
        ran = functools.partial(process.run, [sys.executable, "-S", "-c", loop], timeout=300.0)
        parts = [threads.run("git", ran), threads.run("other", time.sleep, 0.0)]
        await asyncio.gather(*parts)
        await threads.run("other", time.sleep, 0.0)  # perhaps in the thread that ran the process

    asyncio.run(play())
    assert spent.debt("git", 0.0) >= 0.3 > spent.debt("other", 0.0)


def test_a_failed_call_is_charged_and_leaves_its_thread() -> None:
    spent = Buckets(Rate(per_second=1.0, burst=0.0))

    async def play() -> None:
        threads = FairThreads(1, spent, now=lambda: 0.0)

        def fail() -> None:
            burn(0.01)
            raise ValueError("a page")

        for _ in range(2):
            with pytest.raises(ValueError, match="a page"):
                await threads.run("client", fail)

    asyncio.run(play())
    assert spent.debt("client", 0.0) >= 0.02


def test_a_client_that_exceeds_its_burst_waits_until_it_has_paid() -> None:
    spent = Buckets(budget_of(60.0))  # one second a second, 60 at once
    spent.charge("client", 65.0, now=0.0)
    assert spent.wait("client", 0.0, 0.0) == 5.0
    assert spent.wait("client", 5.0, 0.0) == 0.0
    assert spent.wait("other", 0.0, 0.0) == 0.0
    assert Buckets(budget_of(0)).wait("client", 0.0, 0.0) == 0.0
