"""Digests of the files that must be identical on the master's host and on a worker's,
so that one name means one measurement.

An order carries the digests of the files that determine its result: for a build the kernel
configuration, for a boot the testbox, the programs that it names, the root file system's own files
and the tuning. The worker computes them from its files and refuses an order whose digests differ.
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
# Not part of a measurement: samples are for tests, and the master runs its own version of the
# parsers.
_IGNORED: Final = ("samples", "__pycache__", "parse.py")


def of_order(order: Mapping[str, Any], jobs: Path, workers: Path) -> dict[str, str]:
    """Return digests (SHA-256) by name. A missing part has the digest `missing`. Raises OSError."""
    if order["kind"] == "build":
        name = order["kernel"]["kconfig"]
        return {f"kconfig/{name}": _kconfig(workers / "kconfig", name)}
    programs = sorted(
        {name for job in order["unit_jobs"] for name in (job["program"], *job.get("monitors", ()))}
    )
    testboxes = [order["testbox"], *_nodes(workers / "testboxes" / f"{order['testbox']}.yaml")]
    parts = {f"testboxes/{name}.yaml": workers / "testboxes" / f"{name}.yaml" for name in testboxes}
    parts |= {name: workers / name for name in ("rootfs", "tuning")}
    parts |= {f"programs/{name}": jobs / "programs" / name for name in programs}
    return {name: digest(path) for name, path in parts.items()}


def digest(path: Path) -> str:
    """Return SHA-256 over the names, modes and contents of a file or of all files under a
    directory.

    `missing` if the path does not exist. Raises OSError.
    """
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
    """Return the testboxes of a cluster.

    Empty if the file is not a valid cluster file, which is reported elsewhere.
    """
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
    """Return a sentence about differences from the order's digests.

    None if all are equal, or the order (one by hand) has none.
    """
    wanted: Mapping[str, str] = order.get("alike", {})
    own = of_order(order, jobs, workers) if wanted else {}
    other = sorted(name for name, expected in wanted.items() if own.get(name) != expected)
    if not other:
        return None
    lacking = all(own.get(name, MISSING) == MISSING for name in other)
    verb = ("is" if len(other) == 1 else "are") + (
        " missing on this worker's host"
        if lacking
        else " not the same on this worker's host as on the master's"
    )
    return f"{', '.join(other)} {verb}; bring {jobs} and {workers} to the master's version."
