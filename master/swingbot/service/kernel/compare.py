"""Compare two kernel builds by their records in the artifact store, to show what a commit changed
in the built kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swingbot.service.ports.kernels import KernelRecords, NoRecord, RecordFiles
from swingbot_jobs.kernel_diff import FILE

Build = Mapping[str, Any]  # a row of kernel_build: build_key, status, image_sha256, files


def compare_kernels(
    kernels: KernelRecords, base: Build | None, head: Build | None
) -> dict[str, Any]:
    """Return the facts of `kernel_diff.kernel_change` with `state` compared and the builds' keys;
    else `state` and a `reason`.

    States: `waiting` (a side is not built yet), `not built` (a side does not build), `not recorded`
    (built, but without a readable record), `compared`. `config` is that of `config_change`.
    """
    keys = {"base_build": base and base["build_key"], "head_build": head and head["build_key"]}
    if base is None or head is None:
        return {
            "state": "waiting",
            "reason": "The kernels are compared when both are built.",
            "config": None,
        } | keys
    if base["status"] != "built" or head["status"] != "built":
        which = " and ".join(
            name for name, build in (("base", base), ("head", head)) if build["status"] != "built"
        )
        return {
            "state": "not built",
            "reason": f"The kernel of {which} does not build.",
            "config": config_change(kernels, base, head),
        } | keys
    try:
        facts = kernels.change(files_of(base), files_of(head))
    except NoRecord as error:
        config = config_change(kernels, base, head)
        return {"state": "not recorded", "reason": str(error), "config": config} | keys
    return {"state": "compared", "reason": None} | keys | facts


def config_change(
    kernels: KernelRecords, base: Build | None, head: Build | None
) -> list[dict[str, Any]] | None:
    """Return the rows of `kernel_diff.config_difference`; None if a side was not configured, or its
    configuration is not stored. A kernel that does not build may have been configured.
    """
    sides = [build and (build["files"] or {}).get("config") for build in (base, head)]
    digests = [side["sha256"] for side in sides if side]
    if len(digests) < len(sides):
        return None
    if digests[0] == digests[1]:
        return []
    try:
        return kernels.config(*digests)
    except NoRecord:
        return None


def files_of(build: Build) -> RecordFiles:
    """Return a build's record and configuration. Raises NoRecord."""
    files = build["files"] or {}
    if FILE not in files:
        raise NoRecord(
            f"Kernel {build['build_key'][:12]} has no record of its functions: it was built by a "
            "version that did not write one, or its image could not be read."
        )
    return RecordFiles(files[FILE]["sha256"], files.get("config", {}).get("sha256"))
