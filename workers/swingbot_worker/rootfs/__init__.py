"""The guest's root file system: busybox, perf and the benchmarks of an order, as a cpio archive.

It is built from this host's programs and cached by its content. It is not compressed, because
decompression takes a guest seconds (6.6 instead of 1.7 virtual seconds with an instruction-count
clock).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_worker import lease
from swingbot_worker.answers import Answers
from swingbot_worker.rootfs import contents, cpio, libraries, programs
from swingbot_worker.site import Site

# More than the job files of any lab need at one time; each is about 40 MB.
KEPT = 12
ARCHIVE = "rootfs.cpio"
# Next to the archive: its record, and the copy that may be redistributed (contents.py).
RECORD, HANDED_ON = "rootfs.json", "handed-on.cpio"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rootfs:
    """An archive in the cache.

    `key` is the sha256 of its content, `facts` describe its binaries.
    """

    key: str
    archive: Path
    facts: dict[str, str]

    @property
    def record(self) -> Path:
        """rootfs.json: every file in the archive with its package."""
        return self.archive.with_name(RECORD)


def handed_on(site: Site, key: str) -> Path:
    """Return the copy of root file system `key` that may be redistributed."""
    return site.cache / "rootfs" / key / HANDED_ON


def prepare(unit_jobs: Sequence[UnitJob], site: Site) -> Rootfs:
    """Return the root file system for `unit_jobs`.

    It depends only on their programs, so base and head get the same one. Raises InfraError that
    names the packages to install if a program is missing.
    """
    wanted = [programs.busybox(site), programs.perf(site), *programs.needed(unit_jobs, site)]
    files = recipe(site)

    def answer() -> dict[str, object]:
        made = _made(wanted, files, site)
        return {"key": made.key, "facts": made.facts}

    known = Answers(site.cache).of(
        _question(wanted, files), _files_of(wanted, site), answer, _is_key_with_facts
    )
    image = Rootfs(
        key=known["key"],
        archive=site.cache / "rootfs" / known["key"] / ARCHIVE,
        facts=known["facts"],
    )
    try:
        os.utime(image.archive.parent)
        if image.archive.is_file() and image.record.is_file():
            return image
    except FileNotFoundError:
        pass  # it has not been used for long, and was deleted
    return _made(wanted, files, site)


def _is_key_with_facts(answer: Any) -> bool:
    return (
        isinstance(answer, dict)
        and isinstance(answer.get("key"), str)
        and isinstance(facts := answer.get("facts"), dict)
        and all(isinstance(fact, str) for fact in facts.values())
    )


def _question(wanted: Sequence[programs.Binary], files: Sequence[cpio.Entry]) -> list[str]:
    """Return everything that the archive depends on besides the files of this host."""
    code = hashlib.sha256()
    for module in sorted(Path(__file__).parent.glob("*.py")):
        code.update(module.read_bytes())
    ours = hashlib.sha256(cpio.archive(cpio.with_parents(files)))
    named = [text for one in wanted for text in (str(one.source), one.target, one.version)]
    libc = os.confstr("CS_GNU_LIBC_VERSION") or "unknown"
    return ["rootfs", code.hexdigest(), ours.hexdigest(), libc, *named]


def _files_of(wanted: Sequence[programs.Binary], site: Site) -> list[Path]:
    """Return the files of this host that become part of the archive."""
    needed = [libraries.needed(binary.source, site.cache) for binary in wanted]
    shared = [path for found in (*needed, libraries.opened_later()) for _, path in found]
    return [*(binary.source for binary in wanted), *shared]


def _made(wanted: Sequence[programs.Binary], files: Sequence[cpio.Entry], site: Site) -> Rootfs:
    tree = libraries.GuestTree(site.cache)
    for entry in (*libraries.layout(), *files):
        tree.add(entry)
    for binary in wanted:
        tree.add_program(binary.source, binary.target)
    return finished(tree, wanted, {}, site)


def finished(
    tree: libraries.GuestTree,
    binaries: Sequence[programs.Binary],
    facts: Mapping[str, str],
    site: Site,
) -> Rootfs:
    """Add busybox's applets to `tree` and store it as an archive in the cache.

    `tree` already contains `binaries`; `facts` are added to the facts of the binaries.
    """
    tree.add_opened_later()
    busybox = next(binary for binary in binaries if Path(binary.target).name == "busybox")
    for applet in _applets(busybox.source, site):
        tree.entries.setdefault(f"usr/bin/{applet}", cpio.link(f"usr/bin/{applet}", "busybox"))
    facts = {
        **facts,
        **{f"version.{Path(binary.target).name}": binary.version for binary in binaries},
    }
    facts |= {f"sha256.{name}": digest for name, digest in tree.programs.items()}
    facts["glibc"] = os.confstr("CS_GNU_LIBC_VERSION") or "unknown"
    archive = cpio.archive(cpio.with_parents(tree.entries.values()))
    image = _store(archive, facts, site.cache / "rootfs")
    if not image.record.exists():
        with lease.cache_entry(image.record):
            _write_record(
                image, *contents.record(archive, binaries, tree.sources, site.cache / "debian")
            )
    return image


def _write_record(image: Rootfs, record: dict[str, object], handed_on: bytes) -> None:
    """Write the copy for redistribution and then the record, so that the record implies both."""
    for name, content in (
        (HANDED_ON, handed_on),
        (RECORD, json.dumps(record, indent=1, sort_keys=True).encode() + b"\n"),
    ):
        part = image.archive.with_name(f"{name}.part")
        part.write_bytes(content)
        part.rename(image.archive.with_name(name))


def with_job(rootfs: Rootfs, job: Sequence[cpio.Entry], target: Path) -> None:
    """Write the archive of one boot to `target`: the root file system and then the job's files."""
    with rootfs.archive.open("rb") as base, target.open("wb") as out:
        while os.sendfile(out.fileno(), base.fileno(), None, 1 << 30):
            pass  # 35 MB, which need not pass through this process
        out.seek(0, os.SEEK_END)
        # The kernel expects a second archive at a multiple of 4 bytes ("invalid magic" otherwise).
        out.write(bytes(-out.tell() % 4) + cpio.archive(cpio.with_parents(job)))


def recipe(site: Site) -> list[cpio.Entry]:
    """Return the files under workers/rootfs/, at the same path in the guest."""
    folder = site.workers / "rootfs"
    return [
        cpio.file(str(path.relative_to(folder)), path.read_bytes(), executable=path.name == "init")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    ]


def _applets(busybox: Path, site: Site) -> list[str]:
    listed = Answers(site.cache).of_command([busybox, "--list"], [busybox]).text
    return [name for name in listed.split() if "/" not in name]


def _store(archive: bytes, facts: dict[str, str], folder: Path) -> Rootfs:
    key = hashlib.sha256(archive).hexdigest()
    path = folder / key / ARCHIVE
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        with lease.cache_entry(path):
            part = path.with_suffix(".part")
            part.write_bytes(archive)
            part.rename(path)
    os.utime(path.parent)
    _forget_old(folder)
    return Rootfs(key=key, archive=path, facts=facts)


def _forget_old(folder: Path) -> None:
    """Delete all but the most recently used; another boot may do the same concurrently."""
    with contextlib.suppress(FileNotFoundError):
        for old in sorted(folder.iterdir(), key=lambda entry: entry.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)
