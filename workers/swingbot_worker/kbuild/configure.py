"""Configure a kernel: swingbot's configuration and its fragments, merged over tinyconfig, defconfig
or the configuration of a distribution.

The configuration is made again only when one of its inputs has changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs.contract.kconfig import (
    DISTRO,
    FRAGMENTS,
    NoKconfig,
    load_kconfigs,
    optional_of,
    parts_of,
)
from swingbot_worker import InfraError
from swingbot_worker.kbuild import build_output, recipe
from swingbot_worker.kbuild.accepted import not_overridden, symbol
from swingbot_worker.kbuild.make import BuildFailed, Make
from swingbot_worker.kbuild.untrusted_reader import BuildReader
from swingbot_worker.kbuild.worktree import WorkTree
from swingbot_worker.site import Site

# The files that kbuild's .config depends on, in addition to compiler and fragments. An unneeded
# pattern costs only a few seconds now and then.
INPUTS = (
    ":(glob)**/Kconfig*",
    "scripts/kconfig",
    "scripts/*.sh",
    "kernel/configs",
    "arch/x86/configs",
    "arch/x86/Makefile",
    "Makefile",
)


# The distribution's configuration in the object directory.
_DISTRO = ".swingbot-distro"


class NotAccepted(BuildFailed):
    """The kernel was configured, but lacks lines of a fragment that its configuration names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A kernel configuration: the target of kbuild or the text of the distribution's configuration,
    the files to merge over it, lowest first, and its text for the build key.

    `required` are those of `files` whose every line a kernel must accept.
    """

    target: str
    distro: str | None
    files: tuple[Path, ...]
    required: frozenset[Path]
    text: str


def configuration_of(site: Site, kconfig: str) -> Configuration:
    """Return the configuration `kconfig`. Raises InfraError if this worker does not have it."""
    try:
        known = load_kconfigs(site.kconfig)
        text, over, distro = known.text(kconfig), known.over(kconfig), known.distro(kconfig)
    except NoKconfig as error:
        raise InfraError(f"This worker cannot configure the kernel: {error}.") from None
    parts = parts_of(kconfig)

    def files(fragments: Sequence[str]) -> tuple[Path, ...]:
        return tuple(site.kconfig / FRAGMENTS / f"{name}.config" for name in fragments)

    base, above = site.kconfig / f"{parts.base}.config", files(parts.fragments)
    return Configuration(
        target=over.target,
        distro=distro,
        files=(*files(over.fragments), base, *above),
        required=frozenset(above),
        text=text,
    )


def configure(
    tree: WorkTree,
    make: Make,
    objects: Path,
    wanted: Configuration,
    compiler_version: str,
    reader: BuildReader,
) -> None:
    """Configure the kernel in `objects`, and log the lines that it does not accept.

    Raises NotAccepted if the kernel does not accept a line of a fragment of the name, because a
    user who names a fragment needs its effect, and BuildFailed if kbuild fails. A line of the
    configuration, of what is below it, or of an option that a fragment calls optional may be
    unknown to some kernel versions.
    """
    config = objects / ".config"
    stamp = objects / ".swingbot-config"
    fingerprint = _fingerprint(tree.listing(*INPUTS), wanted.text, compiler_version)
    if not (stamp.exists() and config.exists() and _same(stamp, _stamp(fingerprint, objects))):
        over = ".config"
        if wanted.distro is None:
            make.run(wanted.target)
        else:
            over = _DISTRO
            (objects / over).write_text(wanted.distro)
        make.command(recipe.merge_argv(make.spec, over, wanted.files), "merge_config.sh")
        make.run("olddefconfig")
    _check(tree, make, wanted, objects, reader)


def _check(
    tree: WorkTree, make: Make, wanted: Configuration, objects: Path, reader: BuildReader
) -> None:
    files = list(wanted.files)
    texts = [file.read_text() for file in files]
    if wanted.distro is not None:
        files.insert(0, Path(wanted.target.removeprefix(DISTRO)))
        texts.insert(0, wanted.distro)
    fragments = [
        not_overridden(text, "\n".join(texts[number:])) for number, text in enumerate(texts, 1)
    ]
    with build_output.opened(objects, ".config") as config:
        lost_of_each = reader.lost_lines(fragments, config)
    known = tree.options({symbol(line) for lost in lost_of_each for line in lost})
    missing: list[str] = []
    for file, lost in zip(files, lost_of_each, strict=True):
        for line in lost:
            gone = "" if symbol(line) in known else " (it has no such option)"
            make.note(f"{file.name}: this kernel does not accept: {line}{gone}")
        if file in wanted.required:
            optional = optional_of(file.read_text())
            missing += [
                f"{line} (fragment {file.stem})" for line in lost if symbol(line) not in optional
            ]
    if missing:
        raise NotAccepted(
            f"This kernel does not accept {', '.join(missing)}: it does not have this option, or a "
            "dependency of the option is off.",
            missing,
        )


def sealed(tree: WorkTree, objects: Path, wanted: Configuration, compiler_version: str) -> None:
    """After a build, record the inputs of .config (make may have normalised it again)."""
    fingerprint = _fingerprint(tree.listing(*INPUTS), wanted.text, compiler_version)
    (objects / ".swingbot-config").write_text(_stamp(fingerprint, objects))


def _fingerprint(listing: str, text: str, compiler_version: str) -> str:
    return hashlib.sha256(
        json.dumps([listing, text, compiler_version, recipe.RECIPE]).encode()
    ).hexdigest()


def _stamp(wanted: str, objects: Path) -> str:
    config = build_output.content(objects, ".config")
    return f"{wanted} {hashlib.sha256(config).hexdigest()}\n"


def _same(stamp: Path, text: str) -> bool:
    with stamp.open("rb") as file:
        return file.read(len(text) + 1) == text.encode()
