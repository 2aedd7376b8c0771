"""Build the parts of a kit from rows and the artifact store: boots, kernels, root file systems,
jobs, and a list of missing files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, Protocol, cast

from swingbot.core.model.artifact import ArtifactError, Gone
from swingbot.core.raw.boot_record import read_record
from swingbot.core.reproduce import KitArtifact, KitBoot, KitKernel, KitOmission, KitRootfs, KitRun
from swingbot.core.reproduce.names import directory_names
from swingbot.service import limits
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.reading import newc

Row = Mapping[str, Any]
WITHOUT_IMAGES: Final = "the kernel images were left out; build.sh builds them"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_PACKAGE: Final = re.compile(r"[A-Za-z0-9][^\s]*")


class KitSources(Protocol):
    """Sources of facts about a report or a table and its kernels; each method returns the read
    model of the same name.
    """

    def report(self, id: str) -> Row: ...
    def incident(self, id: str) -> Row: ...
    def table(self, id: str) -> Row: ...
    def boot(self, id: str) -> Row: ...
    def boot_order(self, id: str) -> Row: ...
    def kernel(self, key: str) -> Row: ...
    def tree(self, name: str) -> Row: ...
    def page(self, id: str) -> str: ...
    def patch(self, commit: str) -> tuple[bytes | None, str]:
        """Return the commit as a mail for `git am`; or None and the reason."""
        ...

    def first_parents(self, commit: str, most: int) -> Sequence[str]:
        """Return `commit` and its first-parent ancestors, newest first; empty if it does not
        exist.
        """
        ...

    def of_program(self, program: str) -> Mapping[str, bytes]:
        """Return the files of a program that a reader can use (numbers.awk, sources), by name."""
        ...

    def lkp_job(self, job: UnitJob) -> str:
        """Return the unit job as a job file for `lkp run`; a comment if LKP can't run it."""
        ...

    def open(self, sha256: str) -> BinaryIO:
        """Open a file of the artifact store. Raises FileNotFoundError, ArtifactError."""
        ...


@dataclass
class Gathering:
    """Collects the files of a kit, and a list of those that are missing."""

    sources: KitSources
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def stored(self, files: Mapping[str, Any] | None, name: str, of: str) -> KitArtifact | None:
        """Return file `name` of an order's result, if the store still has it."""
        entry = (files or {}).get(name)
        if entry is None:
            self.missing.append(f"{name} of {of}: it was never stored")
            return None
        try:
            self.sources.open(entry["sha256"]).close()
        except (FileNotFoundError, ArtifactError) as error:
            lost = (
                f"it was {error}"
                if isinstance(error, Gone)
                else "it was removed from the artifact store"
            )
            why = lost if isinstance(error, FileNotFoundError) else str(error)
            self.missing.append(f"{name} of {of}: {why} (sha256 {entry['sha256']})")
            return None
        return KitArtifact(sha256=entry["sha256"], size=entry["size"])

    def content(self, artifact: KitArtifact | None) -> bytes | None:
        if artifact is None or artifact.size > limits.RECORD_BYTES:
            return None
        with self.sources.open(artifact.sha256) as file:
            return file.read(limits.RECORD_BYTES)

    def document(self, artifact: KitArtifact | None, of: str) -> Any:
        """Parse a JSON file written by a worker; its content is untrusted."""
        try:
            return None if (content := self.content(artifact)) is None else read_record(content)
        except ValueError:
            self.missing.append(f"{of} cannot be read")
            return None


def kernel_of(gathering: Gathering, name: str, of: str, variant: Row) -> KitKernel:
    """Return the build of a variant, as kernel `name`; `of` is its name in messages.

    Raises NotFound.
    """
    build = gathering.sources.kernel(variant["build_key"])
    return KitKernel(
        name=name,
        commit=variant["commit"],
        subject=variant["subject"],
        kconfig=variant["kconfig"],
        compiler=variant["compiler"],
        compiler_version=build["compiler_version"] or "",
        layout=variant["layout"],
        image_sha256=build["image_sha256"] or "none",
        image=gathering.stored(build["files"], "bzImage", of),
        config=gathering.stored(build["files"], "config", of),
    )


def boot_of(gathering: Gathering, row: Row, programs: Mapping[str, str]) -> KitBoot:
    """Return a boot from `row`, which has the name of its `kernel`.

    `programs`: program by unit job.
    """
    argv: object = []
    if "qemu.json" in (row["files"] or {}):
        argv = gathering.document(
            gathering.stored(row["files"], "qemu.json", f"boot {row['id']}"),
            f"qemu.json of boot {row['id']}",
        )
    elif row["facts"].get("server_testbox"):
        gathering.missing.append(
            f"QEMU's arguments of boot {row['id']}: it ran on a cluster of two machines, "
            "which these scripts do not set up"
        )
    elif row["facts"].get("qemu_version"):
        gathering.missing.append(f"QEMU's arguments of boot {row['id']}: not stored with it")
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
    """Return the program's own values, one per run; values of monitors are not compared."""
    return {
        metric: values[0]
        for metric, values in samples.items()
        if metric.startswith(f"{program}.") and len(values) == 1
    }


def _argv(arguments: object) -> tuple[str, ...]:
    """Return arguments, each as one line; the content of a worker's document is untrusted."""
    words = arguments if isinstance(arguments, list) else []
    sound = bool(words) and all(isinstance(word, str) and word.isprintable() for word in words)
    return tuple(words) if sound else ()


def _same(rows: Sequence[Row], name: str) -> Mapping[str, Any] | None:
    """Return the files of a boot that has `name`; None if boots have different ones."""
    having = [row["files"] for row in rows if name in (row["files"] or {})]
    return (
        cast("Mapping[str, Any]", having[0])
        if having and len({files[name]["sha256"] for files in having}) == 1
        else None
    )


def job_of(
    gathering: Gathering, rows: Sequence[Row], jobs: Sequence[UnitJob]
) -> tuple[KitArtifact | None, Mapping[str, bytes]]:
    """Return the job's archive and its readable files, together with files of the programs."""
    files = {
        f"programs/{program}/{name}": content
        for program in sorted({job.program for job in jobs})
        for name, content in gathering.sources.of_program(program).items()
    }
    for name, job in zip(directory_names([job.name for job in jobs]), jobs, strict=True):
        files[f"lkp/{name}.yaml"] = gathering.sources.lkp_job(job).encode()
    having = _same(rows, "job.cpio")
    if having is None:
        gathering.missing.append(
            "job.cpio: not stored with the boots, or they did not all run the same job"
        )
        return None, files
    artifact = gathering.stored(having, "job.cpio", "the boots")
    content = gathering.content(artifact) or b""
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
        gathering.missing.append(f"job.cpio of the boots: {error}")
        return None, files
    return artifact, {
        **files,
        **{
            path: text
            for path, text in ran.items()
            if ".." not in path and not path.startswith("/")
        },
    }


def rootfs_of(gathering: Gathering, rows: Sequence[Row]) -> KitRootfs | None:
    """Return the root file system of all these boots."""
    having = _same(rows, "rootfs.json")
    if having is None:
        gathering.missing.append(
            "rootfs.cpio: not stored with the boots, or they did not all have the same one"
        )
        return None
    record = gathering.document(
        gathering.stored(having, "rootfs.json", "the boots"), "rootfs.json of the boots"
    )
    try:
        return _read_rootfs(gathering, record)
    except (KeyError, TypeError, ValueError):
        gathering.missing.append("rootfs.json of the boots is not a record of a root file system")
        return None


def _read_rootfs(gathering: Gathering, record: Any) -> KitRootfs:
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
    archive = gathering.stored(
        {"rootfs.cpio": {"sha256": record["archive"], "size": int(record["size"])}},
        "rootfs.cpio",
        "the boots",
    )
    return KitRootfs(whole=str(record["whole"]), archive=archive, files=files, left_out=left_out)
