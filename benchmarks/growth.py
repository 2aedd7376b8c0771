"""What each part of a running service grows by while many readers read its pages.

`python -m benchmarks.growth --state DIR --port 8010 --minutes 20`, on the host of `swingbot up`, as
root. Give it work to do meanwhile. Memory is the proportional set size (PSS) of a part with the
processes that it started, attempts apart.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import numpy as np
import psutil
import sqlalchemy as sa

from swingbot.adapters.part_heartbeat import beats
from swingbot.app.database import database_url
from swingbot.app.settings import load
from swingbot_db.engine import make_engine

SAMPLE_SECONDS: Final = 20.0
# A reader's pauses between two pages, in seconds.
PAUSE: Final = (1.0, 15.0)
PAGES: Final = (
    *("/", "/status.json", "/comparisons", "/experiments", "/bisections", "/incidents", "/reports"),
    *("/orders", "/orders.json", "/testboxes", "/trees", "/metrics", "/mailbox", "/moderation"),
    *("/outbox", "/compare", "/results", "/search?q=mm", "/healthz"),
)
_LINKS: Final = re.compile(
    r'href="(/(?:comparison|bisection|incident|report|order|boot|kernel|tree|testbox|raw|mailbox'
    r'|metric|plot|feed)/[^"#]+)"'
)
_CONNECTIONS: Final = (
    "SELECT coalesce(nullif(application_name, ''), usename, backend_type), count(*)"
    " FROM pg_stat_activity WHERE datname = current_database() GROUP BY 1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSample:
    """`seconds` since the begin; `pss` in bytes."""

    seconds: float
    pss: int
    descriptors: int
    processes: int


class Readers:
    """Threads that read pages, each from an address of its own: 127.0.0.2 and on."""

    def __init__(self, url: str, count: int) -> None:
        self._url, self.end = url, threading.Event()
        self.answers: Counter[int] = Counter()
        self.refused: Counter[str] = Counter()
        self.seconds: list[float] = []
        self._lock = threading.Lock()
        self._links = set(PAGES)
        self.threads = [
            threading.Thread(target=self._read, args=(number,)) for number in range(count)
        ]

    def _read(self, number: int) -> None:
        choose = random.Random(number)
        transport = httpx.HTTPTransport(local_address=f"127.0.0.{2 + number}")
        with httpx.Client(transport=transport, base_url=self._url, timeout=120) as client:
            while not self.end.wait(choose.uniform(*PAUSE)):
                with self._lock:
                    links = sorted(self._links)
                path = choose.choice([choose.choice(PAGES), choose.choice(links)])
                begin = time.monotonic()
                try:
                    answer = client.get(path)
                    status, text = answer.status_code, answer.text[:200_000]
                except httpx.HTTPError:
                    status, text = 0, ""
                with self._lock:
                    self.answers[status] += 1
                    if status != 200:
                        self.refused[f"{status} {path}"] += 1
                    self.seconds.append(time.monotonic() - begin)
                    self._links.update(link.replace("&amp;", "&") for link in _LINKS.findall(text))


def parts_of(state: Path) -> dict[str, list[psutil.Process]]:
    """Map each part to its process and what that started; PostgreSQL is one part."""
    found = {beat.part: _tree(beat.pid) for beat in beats(state) if beat.pid is not None}
    try:
        postgres = int((state / "postgres" / "postmaster.pid").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return found
    return found | {"postgres": _tree(postgres)}


def _tree(pid: int) -> list[psutil.Process]:
    try:
        first = psutil.Process(pid)
        below = [one for one in first.children(recursive=True) if "attempt" not in one.cmdline()]
    except psutil.Error:
        return []
    return [first, *below]


def sample(processes: Iterable[psutil.Process], seconds: float) -> PartSample:
    pss = descriptors = counted = 0
    for one in processes:
        try:
            pss += one.memory_full_info().pss
            descriptors += one.num_fds()
            counted += 1
        except (psutil.Error, OSError):
            continue
    return PartSample(seconds=seconds, pss=pss, descriptors=descriptors, processes=counted)


def slope(seconds: Sequence[float], values: Sequence[float]) -> float:
    """Growth an hour over the second half, by least squares: a service that has just begun fills
    its caches.
    """
    half = len(seconds) // 2
    if len(seconds) - half < 3:
        return 0.0
    return float(np.polyfit(seconds[half:], values[half:], 1)[0] * 3600)


def table(samples: Mapping[str, Sequence[PartSample]]) -> list[str]:
    lines = [
        "part                 MiB: begin    end    max  /hour | descriptors: begin end max /hour"
    ]
    for part, of_part in sorted(samples.items()):
        seconds = [one.seconds for one in of_part]
        memory = [one.pss / (1 << 20) for one in of_part]
        files = [one.descriptors for one in of_part]
        lines.append(
            f"{part:20} {memory[0]:10.1f} {memory[-1]:6.1f} {max(memory):6.1f}"
            f" {slope(seconds, memory):6.1f} | {files[0]:18} {files[-1]:3} {max(files):3}"
            f" {slope(seconds, files):5.1f}"
        )
    return lines


def main() -> int:
    ask = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    ask.add_argument("--state", type=Path, required=True)
    ask.add_argument("--port", type=int, default=8010)
    ask.add_argument("--minutes", type=float, default=20.0)
    ask.add_argument("--readers", type=int, default=50)
    ask.add_argument("--json", type=Path, help="write all samples there, line by line")
    given = ask.parse_args()
    url = f"http://127.0.0.1:{given.port}"
    settings = load(environ={"SWINGBOT_PATHS_STATE": str(given.state)})
    engine = make_engine(database_url(settings), connections=1)
    samples: dict[str, list[PartSample]] = {}
    connections: dict[str, list[int]] = {}
    readers = Readers(url, given.readers)
    for thread in readers.threads:
        thread.start()
    begin, rounds = time.monotonic(), 0
    try:
        while (now := time.monotonic() - begin) < given.minutes * 60:
            for part, processes in parts_of(given.state).items():
                samples.setdefault(part, []).append(sample(processes, now))
            with engine.connect() as conn:
                counts = {row[0]: row[1] for row in conn.execute(sa.text(_CONNECTIONS))}
                size = conn.execute(
                    sa.text("SELECT pg_database_size(current_database())")
                ).scalar_one()
            rounds += 1
            for name in {*counts, *connections}:
                counted = connections.setdefault(name, [0] * (rounds - 1))
                counted.append(counts.get(name, 0))
            if given.json:
                with given.json.open("a") as file:
                    last = {part: of_part[-1].pss for part, of_part in samples.items()}
                    line = {"seconds": now, "pss": last, "connections": counts, "database": size}
                    file.write(json.dumps(line) + "\n")
            time.sleep(max(0.0, rounds * SAMPLE_SECONDS - (time.monotonic() - begin)))
    finally:
        readers.end.set()
        for thread in readers.threads:
            thread.join()
    print("\n".join(table(samples)))
    for name, counts_of in sorted(connections.items()):
        print(
            f"connections {name}: begin {counts_of[0]}, end {counts_of[-1]}, max {max(counts_of)}"
        )
    slowest = np.quantile(readers.seconds, [0.5, 0.95, 1.0]) if readers.seconds else [0.0] * 3
    print(
        *(f"{count} times {what}\n" for what, count in readers.refused.most_common(10)),
        f"{len(readers.seconds)} pages: {dict(sorted(readers.answers.items()))},"
        f" median {slowest[0]:.2f} s, 95 % below {slowest[1]:.2f} s, slowest {slowest[2]:.2f} s",
        sep="",
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
