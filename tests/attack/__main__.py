"""Run all attacks, or those that are named, and print a line for each.

    python -m tests.attack [--url http://127.0.0.1:8010] [--state DIR] [NAME ...]

Exit status: 0 all were held off, 1 some were not.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import time
from pathlib import Path

import tests.attack
from tests.attack import Target


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--url", help="the running web service")
    parser.add_argument("--state", type=Path, help="state directory of a service on this host")
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args()
    target, lost = Target(url=given.url, state=given.state), 0
    for module in pkgutil.iter_modules(tests.attack.__path__):
        attack = importlib.import_module(f"tests.attack.{module.name}")
        if not hasattr(attack, "NAME") or (given.names and attack.NAME not in given.names):
            continue
        began = time.monotonic()
        result = attack.run(target)
        lost += not result.held
        word = "held" if result.held else "LOST"
        seconds = time.monotonic() - began
        print(f"{word}  {attack.NAME}  {seconds:.1f} s  got: {result.got}  wanted: {attack.WANTED}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
