"""Clients that ask for one large file of a boot and hardly read it."""

from __future__ import annotations

from typing import Final

from tests.attack.target import Result, Target, slow_readers, trickle, watching

NAME: Final = "large files"
WANTED: Final = "the file is read in pieces; memory stays bounded"
READERS: Final = 8


def run(target: Target, *, seconds: float = 8.0) -> Result:
    with (
        watching(target) as watch,
        slow_readers(target, f"/raw/{target.boot}/results.tar", READERS) as clients,
    ):
        trickle(clients, seconds)
    return watch.result(f"{READERS} slow readers for {seconds:.0f} s")
