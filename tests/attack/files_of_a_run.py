"""Clients that ask for one large file of a run and hardly read it."""

from __future__ import annotations

from typing import Final

from tests.attack.target import Result, Target, skipped, slow_readers, trickle, watching

NAME: Final = "files of a run"
WANTED: Final = "one file is read, in pieces; memory stays bounded"
READERS: Final = 8


def run(target: Target, *, file: str = "big.log", seconds: float = 8.0) -> Result:
    if not target.run:
        return skipped("give --run, a result root with a large file")
    with (
        watching(target) as watch,
        slow_readers(target, f"/raw/{target.run}/{file}", READERS) as clients,
    ):
        trickle(clients, seconds)
    return watch.result(f"{READERS} slow readers for {seconds:.0f} s")
