"""The guest's root file system: busybox, one perf and the benchmarks of an order, as an uncompressed cpio archive.

Made here from this host's own programs and kept in the cache by its content. Uncompressed, because
unpacking costs a guest seconds (6.6 instead of 1.7 virtual seconds with counted instructions).
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

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_worker import lease, process
from swingbot_worker.rootfs import contents, cpio, libraries, programs
from swingbot_worker.site import Site

# More than any one lab's job files need at a time; each is about 40 MB.
KEPT = 12
# Beside the archive: what is in it, and the copy that may be handed on (contents.py).
RECORD, HANDED_ON = "rootfs.json", "handed-on.cpio"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rootfs:
    """An archive in the cache; `key` is the sha256 of its bytes, `facts` say which binaries are in it."""

    key: str
    archive: Path
    facts: dict[str, str]

    @property
    def record(self) -> Path:
        """rootfs.json: every file in it, and whose it is."""
        return self.archive.with_name(RECORD)


def handed_on(site: Site, key: str) -> Path:
    """The copy of root file system `key` that may leave this worker."""
    return site.cache / "rootfs" / key / HANDED_ON


def prepare(unit_jobs: Sequence[UnitJob], site: Site) -> Rootfs:
    """The root file system for `unit_jobs`. It depends on their programs only, so base and head get the same one.

    Raises InfraError with what to install when a program cannot be provided.
    """
    wanted = [programs.busybox(), programs.perf(), *programs.needed(unit_jobs, site)]
    tree = libraries.Tree()
    for entry in (*libraries.layout(), *recipe(site)):
        tree.add(entry)
    for binary in wanted:
        tree.add_program(binary.source, binary.target)
    return finished(tree, wanted, {}, site)


def finished(
    tree: libraries.Tree, binaries: Sequence[programs.Binary], facts: Mapping[str, str], site: Site
) -> Rootfs:
    """`tree`, which holds `binaries`, with busybox for whatever else is called, as an archive in the cache; `facts` are told beside those of the binaries."""
    tree.add_opened_later()
    busybox = next(binary for binary in binaries if Path(binary.target).name == "busybox")
    for applet in _applets(busybox.source):
        tree.entries.setdefault(f"usr/bin/{applet}", cpio.link(f"usr/bin/{applet}", "busybox"))
    facts = {
        **facts,
        **{f"version.{Path(binary.target).name}": binary.version for binary in binaries},
    }
    facts |= {f"sha256.{name}": digest for name, digest in tree.programs.items()}
    facts["glibc"] = os.confstr("CS_GNU_LIBC_VERSION") or "unknown"
    archive = cpio.archive(cpio.with_parents(tree.entries.values()))
    made = _kept(archive, facts, site.cache / "rootfs")
    if not made.record.exists():
        with lease.cache_entry(made.record):
            _note(made, *contents.record(archive, binaries, tree.sources, site.cache / "debian"))
    return made


def _note(made: Rootfs, record: dict[str, object], handed_on: bytes) -> None:
    """Put the record and the copy that may leave beside the archive, the record last: where it is, both are."""
    for name, content in (
        (HANDED_ON, handed_on),
        (RECORD, json.dumps(record, indent=1, sort_keys=True).encode() + b"\n"),
    ):
        part = made.archive.with_name(f"{name}.part")
        part.write_bytes(content)
        part.rename(made.archive.with_name(name))


def with_job(rootfs: Rootfs, job: Sequence[cpio.Entry], target: Path) -> None:
    """Write the archive that one boot gets to `target`: the root file system and behind it the job's own files."""
    with rootfs.archive.open("rb") as base, target.open("wb") as out:
        shutil.copyfileobj(base, out, 1 << 20)
        # The kernel looks for a second archive at multiples of 4 only ("invalid magic" otherwise).
        out.write(bytes(-out.tell() % 4) + cpio.archive(cpio.with_parents(job)))


def recipe(site: Site) -> list[cpio.Entry]:
    """What lies under workers/rootfs/, at the same place in the guest."""
    folder = site.workers / "rootfs"
    return [
        cpio.file(str(path.relative_to(folder)), path.read_bytes(), executable=path.name == "init")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    ]


def _applets(busybox: Path) -> list[str]:
    return [
        name
        for name in process.output([busybox, "--list"], timeout=60).text.split()
        if "/" not in name
    ]


def _kept(archive: bytes, facts: dict[str, str], folder: Path) -> Rootfs:
    key = hashlib.sha256(archive).hexdigest()
    path = folder / key / "rootfs.cpio"
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
    """Remove all but the last used; another boot may do the same beside us."""
    with contextlib.suppress(FileNotFoundError):
        for old in sorted(folder.iterdir(), key=lambda entry: entry.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)
