"""Requests of tables, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from swingbot.core.patchset.model import PatchSeries, SeriesPatch
from swingbot.service.asked.requested import Requested
from swingbot.service.ports import Lab
from swingbot.service.table.kernels import KernelRequest, at, patched
from swingbot.service.table.plan import TablePlan, prepared
from swingbot.service.table.request import TableRequest


def comparing(
    base: str,
    *heads: str,
    tree: str | None = "fake",
    patches: Sequence[SeriesPatch] = (),
    **more: Any,
) -> TableRequest:
    """Compare each head with the base; the patches are applied to the last one."""
    rows = [at(head) for head in heads]
    if patches:
        rows = patched(rows, PatchSeries(patches=tuple(patches)), base)
    return TableRequest(kernels=KernelRequest(base=base, rows=rows), tree=tree, **more)


def plan_table(lab: Lab, request: TableRequest) -> TablePlan:
    with prepared(lab, request) as table:
        return table.plan()


def request_table(lab: Lab, request: TableRequest) -> Requested:
    with prepared(lab, request) as table:
        return table.queue(0.0)


def compare(lab: Lab, base: str, *heads: str, **more: Any) -> int:
    """Queue a comparison and return its number."""
    return request_table(lab, comparing(base, *heads, **more)).number
