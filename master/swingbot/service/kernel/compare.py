"""Compare two kernel builds by their records in the artifact store, to show what a commit changed
in the built kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, BinaryIO, TypeVar

from swingbot_jobs.kernel_diff import (
    FILE,
    BadRecord,
    CodeChange,
    ComparedBuild,
    KernelRecord,
    code_change,
    kernel_change,
    read_record,
)
from swingbot_jobs.limits import KCONFIG_BYTES, KERNEL_RECORD_BYTES

Open = Callable[[str], BinaryIO]  # a stored file by its sha256; raises OSError
Build = Mapping[str, Any]  # a row of kernel_build: build_key, status, image_sha256, files

_T = TypeVar("_T")


class NoRecord(Exception):
    """The builds cannot be compared. The message gives the reason in one sentence."""


def compare_kernels(open_artifact: Open, base: Build | None, head: Build | None) -> dict[str, Any]:
    """Return the facts of `kernel_diff.kernel_change` with `state` compared and the builds' keys;
    else `state` and a `reason`.

    States: `waiting` (a side is not built yet), `not built` (a side does not build), `not recorded`
    (built, but without a readable record), `compared`.
    """
    keys = {"base_build": base and base["build_key"], "head_build": head and head["build_key"]}
    if base is None or head is None:
        return {
            "state": "waiting",
            "reason": "The kernels are compared when both are built.",
        } | keys
    if base["status"] != "built" or head["status"] != "built":
        which = " and ".join(
            name for name, build in (("base", base), ("head", head)) if build["status"] != "built"
        )
        return {"state": "not built", "reason": f"The kernel of {which} does not build."} | keys
    try:
        return (
            {"state": "compared", "reason": None}
            | keys
            | _change(open_artifact, *_sources(base), *_sources(head))
        )
    except NoRecord as error:
        return {"state": "not recorded", "reason": str(error)} | keys


def changed_code(open_artifact: Open, base: Build, head: Build) -> CodeChange:
    """Return the functions and data that differ between two builds, with their sizes in bytes.
    Raises NoRecord.

    Used by gates of proof: `.nothing` means that base and head run the same code, so that the
    commit cannot cause a difference.
    """
    return _code(open_artifact, _sources(base)[0], _sources(head)[0])


def record_of(open_artifact: Open, build: Build) -> KernelRecord:
    """Load the record of a build's functions and data. Raises NoRecord."""
    return _record(open_artifact, _sources(build)[0])


def _sources(build: Build) -> tuple[str, str | None]:
    """Return the sha256 of a build's record, and of its kernel configuration if there is one.

    Raises NoRecord.
    """
    files = build["files"] or {}
    if FILE not in files:
        raise NoRecord(
            f"Kernel {build['build_key'][:12]} has no record of its functions: it was built by a "
            "version that did not write one, or its image could not be read."
        )
    return files[FILE]["sha256"], files.get("config", {}).get("sha256")


@lru_cache(maxsize=32)
def _change(
    open_artifact: Open, base: str, base_config: str | None, head: str, head_config: str | None
) -> dict[str, Any]:
    """Compare two builds, cached by content so that viewing a page again is cheap.

    Callers must not modify the result.
    """
    sides = [
        ComparedBuild(record=_record(open_artifact, sha256), config=_config(open_artifact, config))
        for sha256, config in ((base, base_config), (head, head_config))
    ]
    return _or_no_record(lambda: kernel_change(*sides))


def _code(open_artifact: Open, base: str, head: str) -> CodeChange:
    one, other = _record(open_artifact, base), _record(open_artifact, head)
    return _or_no_record(lambda: code_change(one, other))


def _record(open_artifact: Open, sha256: str) -> KernelRecord:
    try:
        with open_artifact(sha256) as file:
            packed = file.read(KERNEL_RECORD_BYTES + 1)
    except OSError:
        raise NoRecord(f"The record {sha256[:12]} is not in the artifact store.") from None
    return _or_no_record(lambda: read_record(packed))


def _config(open_artifact: Open, sha256: str | None) -> str | None:
    if sha256 is None:
        return None
    try:
        with open_artifact(sha256) as file:
            return file.read(KCONFIG_BYTES).decode(errors="replace")
    except OSError:
        return None


def _or_no_record(run: Callable[[], _T]) -> _T:
    try:
        return run()
    except BadRecord as error:
        raise NoRecord(f"A record ({FILE}) cannot be used: {error}.") from None
