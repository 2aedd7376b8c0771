"""The section "What the change did to the kernel" of a comparison."""

from __future__ import annotations

from swingbot.service.kernel.compare import compare_kernels
from swingbot_jobs.kernel_diff import headline

from ..ports import Connection, OpenArtifact, ReadModels, Row


def of_comparison(
    read: ReadModels, open_artifact: OpenArtifact, conn: Connection, comparison: Row
) -> Row:
    """Facts of `compare_kernels` for base and head, with a `headline` if they were compared."""
    keys = [comparison[f"{side}_variant"]["build_key"] for side in ("base", "head")]
    builds = read.kernel_builds(conn, keys)
    facts = compare_kernels(open_artifact, *(builds.get(key) for key in keys))
    return facts | {"headline": headline(facts)} if facts["state"] == "compared" else facts
