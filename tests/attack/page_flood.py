"""One client asks for a page of thousands of rows, 25 times at once, again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Final

import httpx

from tests.attack.target import MEMORY_LIMIT, Result, Target

NAME: Final = "a flood at one page"
WANTED: Final = (
    "another client's page waits for few of the answers and takes at most three times as long;"
    " below 300 MiB a minute later"
)
AT_ONCE: Final = 25
ROUNDS: Final = 2  # without and with the flood in turns, so that other work delays both
PAGES: Final = 5  # of the other client in a round
# Answers to the flood while a page of the other client is made. In turns these are one or two of
# about its cost, whatever else the host does; behind the crowd, 17 and more.
OVERTAKEN: Final = 5
TIMES: Final = 3.0
LATER_SECONDS: Final = 60.0
OTHER: Final = "127.0.0.2"


def run(target: Target, suffix: str = "") -> Result:
    """`suffix`: of the address of the table."""
    path = f"/comparison/{target.table}{suffix}"
    calm: list[float] = []
    flooded: list[float] = []
    overtaken: list[int] = []
    answers: list[int] = []
    other = httpx.HTTPTransport(local_address=OTHER)
    with httpx.Client(transport=other, base_url=target.url, timeout=60) as client:

        def ask(seconds: list[float], flood: Sequence[int]) -> list[int]:
            """Return the number of answers to the flood during each page."""
            counts = []
            for _ in range(PAGES):
                begin, before = time.monotonic(), len(flood)
                answers.append(client.get("/").status_code)
                seconds.append(time.monotonic() - begin)
                counts.append(len(flood) - before)
            return counts

        ask([], [])  # the first page loads templates
        for _ in range(ROUNDS):
            ask(calm, [])
            with _flood(target, path) as rows:
                overtaken += ask(flooded, rows)
    resident = _resident_later(target)
    stood = (
        set(answers) == {200}
        and 200 in rows
        and resident < MEMORY_LIMIT
        and median(overtaken) <= OVERTAKEN
    )
    late = median(flooded) > TIMES * median(calm)
    return Result(
        stood and not late,
        f"{AT_ONCE} at once: a page of another client takes {median(flooded):.2f} s"
        f" ({median(calm):.2f} s without), with {median(overtaken):g} answers to the flood;"
        f" {resident >> 20} MiB afterwards",
        late=stood and late,
    )


def _resident_later(target: Target) -> int:
    """Memory of the service in bytes once it is below the limit, at most a minute later."""
    end = time.monotonic() + LATER_SECONDS
    while (resident := target.resident()) >= MEMORY_LIMIT and time.monotonic() < end:
        time.sleep(1)
    return resident


@contextmanager
def _flood(target: Target, path: str) -> Iterator[list[int]]:
    """Ask for `path` until the block ends; yield the statuses, which are there afterwards.

    An answer counts once it begins. What is left of it at the end of the block is not waited for:
    25 files in turns take minutes on a busy host.
    """
    end, statuses = threading.Event(), list[int]()

    def crowd() -> None:
        while not end.is_set():
            try:
                with httpx.stream("GET", target.url + path, timeout=120, trust_env=False) as answer:
                    statuses.append(answer.status_code)
                    for _ in answer.iter_raw():
                        if end.is_set():
                            return
            except httpx.HTTPError:
                statuses.append(0)

    threads = [threading.Thread(target=crowd) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    while not statuses:
        time.sleep(0.01)
    try:
        yield statuses
    finally:
        end.set()
        for thread in threads:
            thread.join()
