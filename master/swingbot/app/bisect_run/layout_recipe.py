"""How `swingbot bisect run --layouts` varies the layout of what CMD builds, and whether it did.

`cmd`: CMD does it. `program`, `kernel`: CMD's compilers find `linker` where they look for ld, and
what they linked in another layout before is made older than its objects, so that make links it
again.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swingbot.app.bisect_run import linker
from swingbot.app.bisect_run.failures import UsageError

_LINKER: Final = re.compile(r"([\w.-]+-)?ld(\.\w+)?")  # such as ld, ld.bfd, aarch64-linux-gnu-ld
_OLD: Final = (1.0, 1.0)  # time of access and of change: older than all that it is linked from


@dataclass(frozen=True, slots=True)
class VariedLinks:
    """Links of the work trees below `state`, in the layouts that boots ask for."""

    recipe: str  # "program" or "kernel"
    state: Path

    def environment(self, tree: Path) -> Mapping[str, str]:
        """Variables by which CMD finds our linker, and where it records its links."""
        shims, path = str(self.state / "linkers"), os.environ.get("PATH", os.defpath)
        before = os.environ.get("COMPILER_PATH")
        return {
            "PATH": f"{shims}:{path}",
            "COMPILER_PATH": f"{shims}:{before}" if before else shims,
            linker.LINKS: str(self._links(tree)),
            linker.TREE: str(tree),
        }

    def install(self) -> None:
        """Write a script for each linker in PATH. Raises UsageError, OSError."""
        shims = self.state / "linkers"
        if ":" in str(shims):
            raise UsageError(
                f"PATH cannot hold {shims}, which has a colon: give a --state DIR without one"
            )
        shims.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, "-I", "-m", linker.__name__, self.recipe]
        for name in _linkers():
            shim = shims / name
            shim.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$0" "$@"\n')
            shim.chmod(0o755)

    def take_down(self, tree: Path) -> None:
        """Forget the links of a work tree that is removed, and remove the scripts."""
        self._links(tree).unlink(missing_ok=True)
        shutil.rmtree(self.state / "linkers", ignore_errors=True)

    def prepare(self, tree: Path, layout: int) -> None:
        """Have everything linked again that is not in this layout."""
        for output, (of, _) in self._linked(tree).items():
            if of != layout:
                os.utime(output, _OLD)

    def without_effect(self, tree: Path, layout: int) -> str | None:
        """Why what is in the tree now is not in this layout; None if it is."""
        linked = self._linked(tree)
        if not linked:
            what = "no vmlinux" if self.recipe == "kernel" else "no program"
            return f"CMD linked {what} in its work tree with an ld from PATH"
        for output, (of, why) in linked.items():
            name = os.path.relpath(output, tree)
            if of != layout:
                return f"CMD did not link {name} again"
            if why:
                return f"{name}: {why}"
        return None

    def _links(self, tree: Path) -> Path:
        return tree.with_suffix(".links")

    def _linked(self, tree: Path) -> dict[str, tuple[int, str]]:
        """Path -> layout of its last link, and why that has no effect; only what is there."""
        try:
            text = self._links(tree).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return {}
        last = {}
        for line in text.splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):  # cut off by a full disk
                row = json.loads(line)
                last[str(row["output"])] = int(row["layout"]), str(row["why"])
        inside = f"{tree}/"
        return {o: of for o, of in last.items() if o.startswith(inside) and os.path.isfile(o)}


def _linkers() -> set[str]:
    names = {"ld"}
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        try:
            names |= {name for name in os.listdir(folder or ".") if _LINKER.fullmatch(name)}
        except OSError:
            continue
    return names
