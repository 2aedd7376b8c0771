"""tinyconfig with our configuration and its fragments over it, made again only when something that goes into it has changed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs.contract.kconfig import FRAGMENTS, NoKconfig, load_kconfigs, parts_of
from swingbot_worker import InfraError
from swingbot_worker.kbuild import recipe
from swingbot_worker.kbuild.make import BuildFailed, Make
from swingbot_worker.kbuild.worktree import WorkTree
from swingbot_worker.site import Site

# All that a .config of kbuild depends on, besides compiler and fragments. Too many only costs some seconds now and then.
INPUTS = (
    ":(glob)**/Kconfig*",
    "scripts/kconfig",
    "scripts/*.sh",
    "kernel/configs",
    "arch/x86/configs",
    "arch/x86/Makefile",
    "Makefile",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A kernel configuration by name: the files to merge, the first one lowest, and the text that goes into the build key."""

    files: tuple[Path, ...]
    text: str


def configuration_of(site: Site, kconfig: str) -> Configuration:
    """The configuration `kconfig`. Raises InfraError if this worker has none of that name."""
    try:
        text = load_kconfigs(site.kconfig).text(kconfig)
    except NoKconfig as error:
        raise InfraError(f"This worker cannot configure a kernel so: {error}.") from None
    parts = parts_of(kconfig)
    above = (site.kconfig / FRAGMENTS / f"{name}.config" for name in parts.fragments)
    return Configuration(files=(site.kconfig / f"{parts.base}.config", *above), text=text)


def configure(
    tree: WorkTree, make: Make, objects: Path, wanted: Configuration, compiler_version: str
) -> None:
    """Leave the right .config in `objects`; lines that this kernel did not take are noted in the log.

    Raises BuildFailed if a fragment asks for something that this kernel did not take: who names a fragment is after what it
    says and nothing else. What the configuration below says may be unknown to some version of the kernel.
    """
    config = objects / ".config"
    stamp = objects / ".swingbot-config"
    fingerprint = _fingerprint(tree.listing(*INPUTS), wanted.text, compiler_version)
    if not (
        stamp.exists() and config.exists() and stamp.read_text() == _stamp(fingerprint, config)
    ):
        make.run("tinyconfig")
        make.command(recipe.merge_argv(make.spec, wanted.files), "merge_config.sh")
        make.run("olddefconfig")
    _check(make, wanted, config.read_text())


def _check(make: Make, wanted: Configuration, config: str) -> None:
    texts = [file.read_text() for file in wanted.files]
    missing: list[str] = []
    for number, file in enumerate(wanted.files):
        lost = recipe.lost_lines(
            recipe.not_overridden(texts[number], "\n".join(texts[number + 1 :])), config
        )
        for line in lost:
            make.note(f"{file.name}: this kernel does not take: {line}")
        missing += [f"{line} (fragment {file.stem})" for line in lost if number]
    if missing:
        raise BuildFailed(
            f"This kernel does not take {', '.join(missing)}: it has no such option, or one that the option needs is off.",
            missing,
        )


def sealed(tree: WorkTree, objects: Path, wanted: Configuration, compiler_version: str) -> None:
    """After a build: remember what .config came from (make may have normalised it once more)."""
    fingerprint = _fingerprint(tree.listing(*INPUTS), wanted.text, compiler_version)
    (objects / ".swingbot-config").write_text(_stamp(fingerprint, objects / ".config"))


def _fingerprint(listing: str, text: str, compiler_version: str) -> str:
    return hashlib.sha256(
        json.dumps([listing, text, compiler_version, recipe.RECIPE]).encode()
    ).hexdigest()


def _stamp(wanted: str, config: Path) -> str:
    return f"{wanted} {hashlib.sha256(config.read_bytes()).hexdigest()}\n"
