"""tinyconfig with our fragment over it, made again only when something that goes into it has changed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from swingbot_worker.kbuild import recipe
from swingbot_worker.kbuild.make import Make
from swingbot_worker.kbuild.worktree import WorkTree

# All that a .config of kbuild depends on, besides compiler and fragment. Too many only costs some seconds now and then.
INPUTS = (":(glob)**/Kconfig*", "scripts/kconfig", "scripts/*.sh", "kernel/configs", "arch/x86/configs", "arch/x86/Makefile", "Makefile")


def configure(tree: WorkTree, make: Make, objects: Path, fragment: Path, compiler_version: str) -> None:
    """Leave the right .config in `objects`; lines of the fragment that this kernel did not take are noted in the log."""
    config = objects / ".config"
    stamp = objects / ".swingbot-config"
    wanted = _fingerprint(tree.listing(*INPUTS), fragment.read_text(), compiler_version)
    if not (stamp.exists() and config.exists() and stamp.read_text() == _stamp(wanted, config)):
        make.run("tinyconfig")
        make.command(recipe.merge_argv(make.spec, fragment), "merge_config.sh")
        make.run("olddefconfig")
    for line in recipe.lost_lines(fragment.read_text(), config.read_text()):
        make.note(f"{fragment.name}: this kernel does not take: {line}")


def sealed(tree: WorkTree, objects: Path, fragment: Path, compiler_version: str) -> None:
    """After a build: remember what .config came from (make may have normalised it once more)."""
    wanted = _fingerprint(tree.listing(*INPUTS), fragment.read_text(), compiler_version)
    (objects / ".swingbot-config").write_text(_stamp(wanted, objects / ".config"))


def _fingerprint(listing: str, fragment: str, compiler_version: str) -> str:
    return hashlib.sha256(json.dumps([listing, fragment, compiler_version, recipe.RECIPE]).encode()).hexdigest()


def _stamp(wanted: str, config: Path) -> str:
    return f"{wanted} {hashlib.sha256(config.read_bytes()).hexdigest()}\n"
