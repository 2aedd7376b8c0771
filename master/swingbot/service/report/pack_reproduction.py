"""Collect what is needed to reproduce a report's headline elsewhere: boots, kernels, files, and a
list of missing ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from swingbot.core.model.comparison_row import ComparisonRow, key_of, row_of
from swingbot.core.model.lookup import NotFound
from swingbot.core.reproduce.kit import KitKernel, ReportKit, Side
from swingbot.service import limits
from swingbot.service.report.kit_parts import (
    WITHOUT_IMAGES,
    Gathering,
    ReportSources,
    Row,
    boot_of,
    job_of,
    kernel_of,
    rootfs_of,
)
from swingbot_jobs.contract.unit_job import UnitJob

# Fields of a report that never change once it is written: its state does, and the kit's bytes must
# not.
_LASTING: Final = (
    "id",
    "incident",
    "kind",
    "revision",
    "message_id",
    "subject",
    "created_at",
    "size",
)
_SIDES: Final[Sequence[Side]] = ("parent", "commit")  # by arm


def pack(sources: ReportSources, id: str, *, kernels: bool = True) -> ReportKit:
    """Return the kit of report `id`. Raises BadId, NotFound; lost files are listed in `missing`."""
    report = sources.report(id)
    if report["incident"] is None:
        raise NotFound(f"{report['id']} is a {report['kind']}, which has no boots of its own")
    incident = sources.incident(report["incident"])
    if not incident["comparison"]:
        raise NotFound(
            f"{report['id']} cannot be reproduced yet: {report['incident']} has no boots of "
            "culprit and parent"
        )
    comparison = sources.table(incident["comparison"])
    headline = incident["bisection_list"][0]
    part = next((part for part in comparison["parts"] if _runs(part, headline)), None)
    if part is None:
        raise NotFound(
            f"{report['id']} cannot be reproduced: {comparison['id']} has no boots of "
            f"{headline['unit_job']} on {headline['testbox']}"
        )
    return _kit(Gathering(sources), report, incident, comparison, headline, part, kernels=kernels)


def _runs(part: Row, headline: Row) -> bool:
    return part["testbox"] == headline["testbox"] and any(
        job["name"] == headline["unit_job"] for job in part["unit_jobs"]
    )


def _kit(
    gathering: Gathering,
    report: Row,
    incident: Row,
    comparison: Row,
    headline: Row,
    part: Row,
    *,
    kernels: bool,
) -> ReportKit:
    sources = gathering.sources
    jobs = [UnitJob.from_json(job) for job in part["unit_jobs"]]
    rows = [
        {**sources.boot(boot["id"]), "kernel": _SIDES[boot["arm"]]}
        for boot in comparison["boot_list"]
        if (boot["testbox"], boot["spec"], boot["outcome"]) == (part["testbox"], part["spec"], "up")
    ]
    boots = [boot_of(gathering, row, {job.name: job.program for job in jobs}) for row in rows]
    if not boots:
        gathering.missing.append("boots: none of culprit and parent came up")
    row = row_of(map(ComparisonRow.from_json, comparison["rows"]), key_of(headline))
    tree = sources.tree(incident["tree"])
    patch, no_patch = sources.patch(incident["culprit"]["commit"])
    job_archive, programs = job_of(gathering, rows, jobs)
    sides = {
        side: kernel_of(gathering, side, f"the {side}'s kernel", arm["variant"])
        for side, arm in zip(_SIDES, comparison["arms"], strict=True)
    }
    return ReportKit(
        id=report["id"],
        created_at=str(report["created_at"]),
        subject=report["subject"],
        page=sources.page(report["id"]),
        tree=incident["tree"],
        url=tree["url"],
        branch=tree["branch"],
        mail=(report["mail"] or report["body"]).replace("\r\n", "\n"),
        json=json.dumps({key: report[key] for key in _LASTING if key in report}, indent=1) + "\n",
        testbox=part["testbox"],
        label=part["label"] or "",
        unit_job=next(job for job in jobs if job.name == headline["unit_job"]),
        unit_jobs=jobs,
        metric=headline["metric"],
        unit=row.unit if row is not None else "",
        better=row.better if row is not None else None,
        change_pct=row.change_pct if row is not None else None,
        interval_pct=row.interval_pct if row is not None else None,
        qemu_version=next(
            (str(row["facts"]["qemu_version"]) for row in rows if row["facts"].get("qemu_version")),
            "unknown",
        ),
        kernels=_images(gathering, sides) if kernels else _without_images(gathering, sides),
        boots=boots,
        rootfs=rootfs_of(gathering, rows),
        job=job_archive,
        programs=programs,
        patch=patch,
        no_patch=no_patch,
        missing=tuple(gathering.missing),
        notes=tuple(gathering.notes),
    )


def _images(gathering: Gathering, sides: Mapping[Side, KitKernel]) -> Mapping[Side, KitKernel]:
    size = sum(kernel.image.size for kernel in sides.values() if kernel.image is not None)
    return sides if size <= limits.KIT_IMAGE_BYTES else _without_images(gathering, sides)


def _without_images(
    gathering: Gathering, sides: Mapping[Side, KitKernel]
) -> Mapping[Side, KitKernel]:
    gathering.notes.append(WITHOUT_IMAGES)
    return {side: replace(kernel, image=None) for side, kernel in sides.items()}
