"""Put together what makes a report's headline repeatable elsewhere: which boots, which kernels, which files, and what of it is gone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, Final, Protocol, cast

from swingbot.core.model.artifact import ArtifactError, Gone
from swingbot.core.model.comparison_row import ComparisonRow, key_of, row_of
from swingbot.core.model.lookup import NotFound
from swingbot.core.reproduce.kit import (
    Kit,
    KitArtifact,
    KitBoot,
    KitKernel,
    KitOmission,
    KitRootfs,
    KitRun,
    Side,
)
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.reading import newc

Row = Mapping[str, Any]
MOST_IMAGE_BYTES: Final = 64 << 20  # both images together; bigger ones are left to build.sh
_MOST_DOCUMENT: Final = 16 << 20  # of a record or a job's archive that is read whole
# What of a report never changes once it is written: its state does, and the kit's bytes must not.
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
_SIDE_OF: Final[Mapping[str, Side]] = {"base": "parent", "head": "commit"}


class ReproductionSources(Protocol):
    """What is known of a report; each method answers as the read model of its name does."""

    def report(self, id: str) -> Row: ...
    def incident(self, id: str) -> Row: ...
    def comparison(self, id: str) -> Row: ...
    def boot(self, id: str) -> Row: ...
    def kernel(self, key: str) -> Row: ...
    def tree(self, name: str) -> Row: ...
    def page(self, id: str) -> str: ...
    def patch(self, commit: str) -> tuple[bytes | None, str]:
        """The commit as a mail for `git am`; or None, and why there is none."""
        ...

    def of_program(self, program: str) -> Mapping[str, bytes]:
        """The files of a program that a reader can use (numbers.awk, sources), by name."""
        ...

    def open(self, sha256: str) -> BinaryIO:
        """A file of the artifact store. Raises FileNotFoundError, ArtifactError."""
        ...


@dataclass
class _Gathering:
    """What has been looked for so far, and what of it was not there."""

    sources: ReproductionSources
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def stored(self, files: Mapping[str, Any] | None, name: str, of: str) -> KitArtifact | None:
        """File `name` of an order's result, if the store still has it."""
        told = (files or {}).get(name)
        if told is None:
            self.missing.append(f"{name} of {of}: it was never kept")
            return None
        try:
            self.sources.open(told["sha256"]).close()
        except (FileNotFoundError, ArtifactError) as error:
            lost = (
                f"it was {error}"
                if isinstance(error, Gone)
                else "it is no longer in the artifact store"
            )
            why = lost if isinstance(error, FileNotFoundError) else str(error)
            self.missing.append(f"{name} of {of}: {why} (sha256 {told['sha256']})")
            return None
        return KitArtifact(sha256=told["sha256"], size=told["size"])

    def content(self, artifact: KitArtifact | None) -> bytes | None:
        if artifact is None or artifact.size > _MOST_DOCUMENT:
            return None
        with self.sources.open(artifact.sha256) as file:
            return file.read(_MOST_DOCUMENT)

    def document(self, artifact: KitArtifact | None, of: str) -> Any:
        """A JSON file that a worker wrote, which may hold anything."""
        try:
            return None if (content := self.content(artifact)) is None else json.loads(content)
        except (ValueError, RecursionError):
            self.missing.append(f"{of} cannot be read")
            return None


def pack(sources: ReproductionSources, id: str, *, kernels: bool = True) -> Kit:
    """The kit of report `id`. Raises BadId, NotFound; what is merely gone is told in `missing`."""
    report = sources.report(id)
    if report["incident"] is None:
        raise NotFound(f"{report['id']} is a {report['kind']}: it rests on no boots of its own")
    incident = sources.incident(report["incident"])
    if not incident["comparison"]:
        raise NotFound(
            f"{report['id']} cannot be reproduced yet: {report['incident']} has no boots of the culprit beside its parent"
        )
    comparison = sources.comparison(incident["comparison"])
    headline = incident["bisection_list"][0]
    part = next((part for part in comparison["parts"] if _runs(part, headline)), None)
    if part is None:
        raise NotFound(
            f"{report['id']} cannot be reproduced: {comparison['id']} has no boots of {headline['unit_job']} on {headline['testbox']}"
        )
    return _kit(_Gathering(sources), report, incident, comparison, headline, part, kernels=kernels)


def _runs(part: Row, headline: Row) -> bool:
    return part["testbox"] == headline["testbox"] and any(
        job["name"] == headline["unit_job"] for job in part["unit_jobs"]
    )


def _kit(
    found: _Gathering,
    report: Row,
    incident: Row,
    comparison: Row,
    headline: Row,
    part: Row,
    *,
    kernels: bool,
) -> Kit:
    sources = found.sources
    jobs = [UnitJob.from_json(job) for job in part["unit_jobs"]]
    rows = [
        {**sources.boot(boot["id"]), "side": _SIDE_OF[boot["side"]]}
        for boot in comparison["boot_list"]
        if (boot["testbox"], boot["spec"], boot["outcome"]) == (part["testbox"], part["spec"], "up")
    ]
    boots = [_boot(found, row, {job.name: job.program for job in jobs}) for row in rows]
    if not boots:
        found.missing.append("boots: none of culprit and parent came up")
    row = row_of(map(ComparisonRow.from_json, comparison["rows"]), key_of(headline))
    tree = sources.tree(incident["tree"])
    patch, no_patch = sources.patch(incident["culprit"]["commit"])
    job_archive, programs = _job(found, rows, jobs)
    sides = {
        side: _kernel(found, side, comparison[f"{name}_variant"]) for name, side in _SIDE_OF.items()
    }
    return Kit(
        report=report["id"],
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
        kernels=_images(found, sides) if kernels else _without_images(found, sides),
        boots=boots,
        rootfs=_rootfs(found, rows),
        job=job_archive,
        programs=programs,
        patch=patch,
        no_patch=no_patch,
        missing=tuple(found.missing),
        notes=tuple(found.notes),
    )


def _kernel(found: _Gathering, side: Side, variant: Row) -> KitKernel:
    build = found.sources.kernel(variant["build_key"])
    return KitKernel(
        side=side,
        commit=variant["commit"],
        subject=variant["subject"],
        kconfig=variant["kconfig"],
        compiler=variant["compiler"],
        compiler_version=build["compiler_version"],
        layout=variant["layout"],
        image_sha256=build["image_sha256"] or "none",
        image=found.stored(build["files"], "bzImage", f"the {side}'s kernel"),
        config=found.stored(build["files"], "config", f"the {side}'s kernel"),
    )


def _images(found: _Gathering, sides: Mapping[Side, KitKernel]) -> Mapping[Side, KitKernel]:
    size = sum(kernel.image.size for kernel in sides.values() if kernel.image is not None)
    return sides if size <= MOST_IMAGE_BYTES else _without_images(found, sides)


def _without_images(found: _Gathering, sides: Mapping[Side, KitKernel]) -> Mapping[Side, KitKernel]:
    found.notes.append("the kernel images were left out; build.sh makes them")
    return {side: replace(kernel, image=None) for side, kernel in sides.items()}


def _boot(found: _Gathering, row: Row, programs: Mapping[str, str]) -> KitBoot:
    argv: object = []
    if "qemu.json" in (row["files"] or {}):
        argv = found.document(
            found.stored(row["files"], "qemu.json", f"boot {row['id']}"),
            f"qemu.json of boot {row['id']}",
        )
    elif row["facts"].get("server_testbox"):
        found.missing.append(
            f"QEMU's arguments of boot {row['id']}: it was of two machines with a wire, which these scripts do not make"
        )
    elif row["facts"].get("qemu_version"):
        found.missing.append(
            f"QEMU's arguments of boot {row['id']}: it was made before they were kept"
        )
    runs = [
        KitRun(
            unit_job=run["unit_job"],
            number=run["number"],
            values=_own(run["samples"], programs.get(run["unit_job"], "")),
        )
        for run in row["runs"]
        if run["status"] == "ok"
    ]
    return KitBoot(
        id=row["id"],
        side=row["side"],
        k=row["k"],
        seconds=row["seconds"],
        qemu=_argv(argv),
        runs=[run for run in runs if run.values],
    )


def _own(samples: Mapping[str, Sequence[float]], program: str) -> dict[str, float]:
    """The program's own numbers, one a run; what monitors saw is not compared."""
    return {
        metric: values[0]
        for metric, values in samples.items()
        if metric.startswith(f"{program}.") and len(values) == 1
    }


def _argv(told: object) -> tuple[str, ...]:
    """Arguments as one line each: a worker's document may hold anything."""
    words = told if isinstance(told, list) else []
    sound = bool(words) and all(isinstance(word, str) and word.isprintable() for word in words)
    return tuple(words) if sound else ()


def _same(rows: Sequence[Row], name: str) -> Mapping[str, Any] | None:
    """The files of a boot that has `name`; None where boots have different ones."""
    having = [row["files"] for row in rows if name in (row["files"] or {})]
    return (
        cast("Mapping[str, Any]", having[0])
        if having and len({files[name]["sha256"] for files in having}) == 1
        else None
    )


def _job(
    found: _Gathering, rows: Sequence[Row], jobs: Sequence[UnitJob]
) -> tuple[KitArtifact | None, Mapping[str, bytes]]:
    """The job's archive, and its files to read: what ran, with what our programs have beside it."""
    files = {
        f"programs/{program}/{name}": content
        for program in sorted({job.program for job in jobs})
        for name, content in found.sources.of_program(program).items()
    }
    having = _same(rows, "job.cpio")
    if having is None:
        found.missing.append(
            "job.cpio: the boots were made before it was kept, or did not all run the same"
        )
        return None, files
    artifact = found.stored(having, "job.cpio", "the boots")
    content = found.content(artifact) or b""
    try:
        ran = (
            {
                member.path.removeprefix("job/"): content[
                    member.offset : member.offset + member.size
                ]
                for member in newc.members(content)
            }
            if content
            else {}
        )
    except newc.NotAnArchive as error:
        found.missing.append(f"job.cpio of the boots: {error}")
        return None, files
    return artifact, {
        **files,
        **{
            path: text
            for path, text in ran.items()
            if ".." not in path and not path.startswith("/")
        },
    }


def _rootfs(found: _Gathering, rows: Sequence[Row]) -> KitRootfs | None:
    having = _same(rows, "rootfs.json")
    if having is None:
        found.missing.append(
            "rootfs.cpio: the boots were made before it was kept, or did not all have the same"
        )
        return None
    record = found.document(
        found.stored(having, "rootfs.json", "the boots"), "rootfs.json of the boots"
    )
    try:
        return _read_rootfs(found, record)
    except (KeyError, TypeError, ValueError):
        found.missing.append("rootfs.json of the boots is not a record of a root file system")
        return None


def _read_rootfs(found: _Gathering, record: Any) -> KitRootfs:
    files = [
        (str(file["path"]), int(file["size"]), str(file["sha256"]), str(file.get("package") or "-"))
        for file in record["files"]
    ]
    left_out = [
        KitOmission(
            path=file["path"],
            offset=int(file["left_out"]["offset"]),
            size=file["size"],
            sha256=file["sha256"],
            package=str(file.get("package")),
        )
        for file in record["files"]
        if "left_out" in file
    ]
    if any(
        not word.isprintable() or " " in word
        for path, _, sha256, _ in files
        for word in (path, sha256)
    ):
        raise ValueError
    archive = found.stored(
        {"rootfs.cpio": {"sha256": record["archive"], "size": int(record["size"])}},
        "rootfs.cpio",
        "the boots",
    )
    return KitRootfs(whole=str(record["whole"]), archive=archive, files=files, left_out=left_out)
