"""`python -m tests.attack`: run every attack, or those that are named, and print a line each.

The exit status is 1 unless every one of them held; one that was skipped did not.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

import tests.attack
from tests.attack.own_service import filled
from tests.attack.target import Target

RESTARTING: Final = frozenset({"hung_parts"})


def attacks() -> Iterator[tuple[str, ModuleType]]:
    """Yield each attack with the name of its module.

    Those that restart parts of the service come last: the others know the process of a part.
    """
    names = [found.name for found in pkgutil.iter_modules(tests.attack.__path__)]
    for name in sorted(names, key=lambda name: (name in RESTARTING, name)):
        if name == "__main__":
            continue
        module = importlib.import_module(f"tests.attack.{name}")
        if hasattr(module, "WANTED"):
            yield name, module


def main() -> int:
    ask = argparse.ArgumentParser(
        prog="python -m tests.attack", description="Run every attack, and print a line each."
    )
    ask.add_argument("names", nargs="*", help="modules of tests/attack (default: all)")
    ask.add_argument("--host", default="127.0.0.1")
    ask.add_argument("--port", type=int, default=8010)
    ask.add_argument("--buildbot-port", type=int, help="Buildbot's own pages (default: port + 1)")
    ask.add_argument("--smtp-port", type=int, help="embedded mail server (default: port + 3)")
    ask.add_argument("--pid", type=int, help="process of the web service, to judge its memory")
    ask.add_argument("--boot", default="x1", help="a boot with many samples")
    ask.add_argument("--state", type=Path, help="state directory of a service on this host")
    ask.add_argument("--token", default="", help="a token of an operator, which must stay valid")
    ask.add_argument("--worker", default="", help="the token of an attempt under way, as a12.9f...")
    ask.add_argument(
        "--fill",
        action="store_true",
        help="put what the attacks read into the database of the service at --state, which was"
        " started for them alone, and find --pid, --boot, --token and --worker there",
    )
    given = ask.parse_args()
    target = Target(
        host=given.host,
        port=given.port,
        buildbot_port=given.buildbot_port or given.port + 1,
        smtp_port=given.smtp_port or given.port + 3,
        pid=given.pid,
        boot=given.boot,
        state=given.state,
        token=given.token,
        attempt=given.worker.partition(".")[0],
        worker={"Authorization": f"Bearer {given.worker}"} if given.worker else None,
    )
    known = dict(attacks())
    if unknown := sorted(set(given.names) - set(known)):
        ask.error(f"unknown: {', '.join(unknown)}; known are {', '.join(known)}")
    if given.fill:
        if given.state is None:
            ask.error("--fill needs --state, the state directory of a service of its own")
        target = filled(target)
    logging.getLogger("swingbot").addHandler(logging.NullHandler())
    counts = {"held": 0, "FAILED": 0, "skipped": 0}
    for name in given.names or known:
        result = known[name].run(target)
        word = "skipped" if result.skipped else "held" if result.held else "FAILED"
        counts[word] += 1
        wanted = f"{known[name].NAME}: {result.line} (wanted: {known[name].WANTED})"
        print(f"{word:7}  {wanted}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 0 if counts["held"] == sum(counts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
