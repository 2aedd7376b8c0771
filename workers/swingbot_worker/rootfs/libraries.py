"""Copy programs of this host and their shared libraries into the guest."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from swingbot_worker import InfraError
from swingbot_worker.answers import Answers
from swingbot_worker.rootfs import cpio

# The directory that Debian's loader searches without a cache file.
LIBRARY_DIR = "usr/lib/x86_64-linux-gnu"
# Opened by name at run time, so ldd does not list them: libgcc_s for pthread_cancel
# (will-it-scale's threads).
OPENED_LATER = ("libgcc_s.so.1", "libnss_files.so.2")
_LOADER_CACHE = Path("/etc/ld.so.cache")  # replaced whenever a library is installed or removed
_NEEDED = re.compile(r"^[ \t]*(?:(?P<name>\S+) => )?(?P<path>/\S+) \(0x[0-9a-f]+\)$", re.M)
_MISSING = re.compile(r"^[ \t]*(\S+) => not found", re.M)


@dataclass
class GuestTree:
    """Files of the guest under construction, and a digest of each program.

    `cache` keeps the names of the programs' libraries.
    """

    cache: Path
    entries: dict[str, cpio.Entry] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)  # name -> sha256 of the binary
    sources: dict[str, Path] = field(default_factory=dict)  # path in the guest -> file of this host

    def add(self, entry: cpio.Entry) -> None:
        """Add `entry`. Raises InfraError if the path exists with other content.

        A program would silently get the wrong library otherwise.
        """
        path = entry.path.strip("/")
        old = self.entries.setdefault(path, entry)
        if old.content != entry.content:
            raise InfraError(
                f"Two different files have the path /{path} in the guest; build the benchmarks "
                "against the libraries of this host."
            )

    def add_program(self, source: Path, target: str) -> None:
        """Add the executable `source` as `target`, with its libraries."""
        content = source.read_bytes()
        self.programs[Path(target).name] = hashlib.sha256(content).hexdigest()
        self.add(cpio.file(target, content, executable=True))
        self.sources[target.strip("/")] = source
        for name, path in needed(source, self.cache):
            self.add_library(name, path)

    def add_library(self, name: str, path: Path) -> None:
        target = f"usr/lib64/{name}" if name.startswith("ld-linux") else f"{LIBRARY_DIR}/{name}"
        self.add(cpio.file(target, path.read_bytes(), executable=True))
        self.sources[target] = path.resolve()

    def add_opened_later(self) -> None:
        """Add the libraries that pthread_cancel and name look-ups open, if this host has them."""
        for name, path in opened_later():
            self.add_library(name, path)


def opened_later() -> Iterator[tuple[str, Path]]:
    """Yield the libraries of OPENED_LATER that this host has as (soname, file)."""
    for name in OPENED_LATER:
        for directory in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"):
            if (path := Path(directory, name)).exists():
                yield name, path
                break


def needed(program: Path, cache: Path) -> list[tuple[str, Path]]:
    """Return the shared libraries of `program` as (soname, file).

    The list is empty for a static program or a script. `cache` keeps the answers of ldd.
    """
    with program.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return []
    # its status is 1 for a static program
    ldd = Answers(cache).of_command(["ldd", program], [program, _LOADER_CACHE], good=(0, 1))
    listed = ldd.text
    if missing := _MISSING.findall(listed):
        raise InfraError(
            f"{program} needs the libraries {', '.join(sorted(set(missing)))}, which are not on "
            "this host; install them or rebuild the program."
        )
    return sorted(
        {
            (Path(match["name"] or match["path"]).name, Path(match["path"]).resolve())
            for match in _NEEDED.finditer(listed)
        }
    )


def layout() -> Iterable[cpio.Entry]:
    """Yield the directories and links of every guest: /bin, /lib and so on point into /usr."""
    for name in ("bin", "sbin", "lib", "lib64"):
        yield cpio.directory(f"usr/{name}")
        yield cpio.link(name, f"usr/{name}")
    for name in ("dev", "proc", "sys", "tmp", "run", "root", "mnt", "job", "var"):
        yield cpio.directory(name)
