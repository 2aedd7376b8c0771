"""Clients that ask for all samples of a large boot and hardly read them."""

from __future__ import annotations

from typing import Final

from tests.attack.target import Result, Target, slow_readers, trickle, watching

NAME: Final = "slow readers of samples"
WANTED: Final = "no connection to the database is held, and memory stays bounded"
READERS: Final = 16


def run(target: Target, *, readers: int = READERS, seconds: float = 8.0) -> Result:
    with (
        watching(target) as watch,
        slow_readers(target, f"/raw/{target.boot}/samples.csv", readers) as clients,
    ):
        trickle(clients, seconds)
    return watch.result(f"{readers} slow readers for {seconds:.0f} s")
