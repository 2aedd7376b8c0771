"""The parts of a kit, from rows and the artifact store: boots, kernels, root file systems, jobs, and what of them is gone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, Protocol, cast

from swingbot.core.model.artifact import ArtifactError, Gone
from swingbot.core.reproduce import KitArtifact, KitBoot, KitKernel, KitOmission, KitRootfs, KitRun
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.reading import newc

Row = Mapping[str, Any]
MOST_IMAGE_BYTES: Final = 64 << 20  # all images together; bigger ones are left to build.sh
WITHOUT_IMAGES: Final = "the kernel images were left out; build.sh makes them"
_MOST_DOCUMENT: Final = 16 << 20  # of a record or a job's archive that is read whole
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_PACKAGE: Final = re.compile(r"[A-Za-z0-9][^\s]*")


class Sources(Protocol):
    """What is known of a report, its comparison and kernels; each method answers as the read model of its name does."""

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
class Gathering:
    """What has been looked for so far, and what of it was not there."""

    sources: Sources
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


def kernel_of(found: Gathering, name: str, of: str, variant: Row) -> KitKernel:
    """The build of a variant, as kernel `name`; `of` is what a sentence calls it. Raises NotFound."""
    build = found.sources.kernel(variant["build_key"])
    return KitKernel(
        name=name,
        commit=variant["commit"],
        subject=variant["subject"],
        kconfig=variant["kconfig"],
        compiler=variant["compiler"],
        compiler_version=build["compiler_version"] or "",
        layout=variant["layout"],
        image_sha256=build["image_sha256"] or "none",
        image=found.stored(build["files"], "bzImage", of),
        config=found.stored(build["files"], "config", of),
    )


def boot_of(found: Gathering, row: Row, programs: Mapping[str, str]) -> KitBoot:
    """A boot, `row` with the name of its `kernel`. `programs`: program by unit job."""
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
        kernel=row["kernel"],
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


def job_of(
    found: Gathering, rows: Sequence[Row], jobs: Sequence[UnitJob]
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


def rootfs_of(found: Gathering, rows: Sequence[Row]) -> KitRootfs | None:
    """The root file system that all these boots had."""
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


def _read_rootfs(found: Gathering, record: Any) -> KitRootfs:
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
    if not _SHA256.fullmatch(str(record["whole"])) or not all(
        _PACKAGE.fullmatch(gone.package) and _SHA256.fullmatch(str(gone.sha256))
        for gone in left_out
    ):
        raise ValueError
    archive = found.stored(
        {"rootfs.cpio": {"sha256": record["archive"], "size": int(record["size"])}},
        "rootfs.cpio",
        "the boots",
    )
    return KitRootfs(whole=str(record["whole"]), archive=archive, files=files, left_out=left_out)
