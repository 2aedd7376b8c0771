"""`python -m tests.attack`: run every attack, or those that are named, and print a line each."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from pathlib import Path

import tests.attack
from tests.attack.target import Target


def main() -> int:
    ask = argparse.ArgumentParser(prog="python -m tests.attack", description=main.__doc__)
    ask.add_argument("names", nargs="*", help="modules of tests/attack (default: all)")
    ask.add_argument("--host", default="127.0.0.1")
    ask.add_argument("--port", type=int, default=8010)
    ask.add_argument("--pid", type=int, help="process of the web service, to judge its memory")
    ask.add_argument("--boot", default="x1", help="a boot with many samples")
    ask.add_argument("--run", default="", help="a result root, as in result/hackbench/.../0")
    ask.add_argument("--state", type=Path, help="state directory of a service on this host")
    given = ask.parse_args()
    target = Target(
        host=given.host,
        port=given.port,
        pid=given.pid,
        boot=given.boot,
        run=given.run,
        state=given.state,
    )
    failed = 0
    for found in pkgutil.iter_modules(tests.attack.__path__):
        module = importlib.import_module(f"tests.attack.{found.name}")
        if not hasattr(module, "WANTED") or (given.names and found.name not in given.names):
            continue
        result = module.run(target)
        failed += not result.held
        word = "held  " if result.held else "FAILED"
        print(f"{word}  {module.NAME}: {result.line} (wanted: {module.WANTED})", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
