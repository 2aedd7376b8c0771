"""What has to be alike on the master's host and on a worker's, or two hosts would measure two things under one name.

An order carries the digests of the files that decide what comes out: of a build the kernel configuration, of a boot the
testbox, the programs that it names, the root file system's own files and the tuning. The worker computes them from its
files and refuses an order whose digests differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from swingbot_jobs.contract.kconfig import NoKconfig, load_kconfigs
from swingbot_jobs.testbox.file import load_file
from swingbot_jobs.testbox.table import TestboxError

MISSING: Final = "missing"
# Not part of a measurement: samples are for tests, and parsers run again on the master, whose version counts.
_IGNORED: Final = ("samples", "__pycache__", "parse.py")


def of_order(order: Mapping[str, Any], jobs: Path, workers: Path) -> dict[str, str]:
    """Digests (SHA-256) by name. A part that is not there has the digest `missing`. Raises OSError."""
    if order["kind"] == "build":
        name = order["kernel"]["kconfig"]
        return {f"kconfig/{name}": _kconfig(workers / "kconfig", name)}
    programs = sorted(
        {name for job in order["unit_jobs"] for name in (job["program"], *job.get("monitors", ()))}
    )
    boxes = [order["testbox"], *_nodes(workers / "testboxes" / f"{order['testbox']}.yaml")]
    parts = {f"testboxes/{name}.yaml": workers / "testboxes" / f"{name}.yaml" for name in boxes}
    parts |= {name: workers / name for name in ("rootfs", "tuning")}
    parts |= {f"programs/{name}": jobs / "programs" / name for name in programs}
    return {name: digest(path) for name, path in parts.items()}


def digest(path: Path) -> str:
    """SHA-256 over the names, modes and contents of a file or of all files under a directory; `missing` if there is nothing. Raises OSError."""
    files = sorted(_files(path))
    if not files:
        return MISSING
    whole = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        name = file.relative_to(path).as_posix()
        whole.update(f"{name}\0{file.stat().st_mode & 0o111 != 0:d}\0{len(content)}\0".encode())
        whole.update(content)
    return whole.hexdigest()


def _nodes(path: Path) -> Iterable[str]:
    """The testboxes that a cluster is made of; none where the file is no cluster's, or none that can be read, which is told elsewhere."""
    try:
        return load_file(path).nodes
    except (TestboxError, OSError):
        return ()


def _kconfig(directory: Path, name: str) -> str:
    try:
        return hashlib.sha256(load_kconfigs(directory).text(name).encode()).hexdigest()
    except NoKconfig:
        return MISSING


def _files(path: Path) -> Iterable[Path]:
    if path.is_file():
        return [path]
    return [
        file
        for file in path.rglob("*")
        if file.is_file() and not set(_IGNORED) & set(file.relative_to(path).parts)
    ]


def difference(order: Mapping[str, Any], jobs: Path, workers: Path) -> str | None:
    """A sentence about what differs from the order's digests; None if all is alike, or the order has none (it is by hand)."""
    wanted: Mapping[str, str] = order.get("alike", {})
    here = of_order(order, jobs, workers) if wanted else {}
    other = sorted(name for name, told in wanted.items() if here.get(name) != told)
    if not other:
        return None
    lacking = all(here.get(name, MISSING) == MISSING for name in other)
    verb = ("is" if len(other) == 1 else "are") + (
        " missing on this worker's host"
        if lacking
        else " not the same on this worker's host as on the master's"
    )
    return (
        f"{', '.join(other)} {verb}; bring {jobs} and {workers} to the version that the master has."
    )
