"""A report's kit: everything that makes its headline's boots repeatable elsewhere, as frozen facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from swingbot_jobs.contract.unit_job import UnitJob

Side = Literal["parent", "commit"]
SIDES: tuple[Side, Side] = ("parent", "commit")


@dataclass(frozen=True, slots=True, kw_only=True)
class KitArtifact:
    """A file of the artifact store; `size` in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KitKernel:
    """One side's kernel build. What is no longer in the artifact store is None."""

    side: Side
    commit: str
    subject: str
    kconfig: str
    compiler: str
    compiler_version: str
    layout: int
    image_sha256: str
    image: KitArtifact | None
    config: KitArtifact | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KitRun:
    """One counted run as it was reported: values of the program's own metrics, by full name."""

    unit_job: str
    number: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class KitBoot:
    """One boot that the headline rests on. `qemu` are QEMU's arguments with files by name alone; empty where the testbox is no virtual one."""

    id: str
    side: Side
    k: int
    seconds: float
    qemu: Sequence[str]
    runs: Sequence[KitRun]


@dataclass(frozen=True, slots=True, kw_only=True)
class KitOmission:
    """A program that may not be handed on by us: where its bytes belong, and the Debian package that holds them."""

    path: str
    offset: int
    size: int
    sha256: str
    package: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KitRootfs:
    """The guest's root file system: `whole` is the sha256 of what was booted, `archive` what is in the kit (equal where nothing is left out).

    `files` are (path, size, sha256, package) of every file in it.
    """

    whole: str
    archive: KitArtifact | None
    files: Sequence[tuple[str, int, str, str]]
    left_out: Sequence[KitOmission] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KitText:
    """A file of the kit that is made from what we know, not kept."""

    content: bytes
    executable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KitMember:
    """A file of the tarball: its path below the kit's directory, and its bytes or where they are kept."""

    path: str
    content: KitText | KitArtifact

    @property
    def mode(self) -> int:
        return 0o755 if isinstance(self.content, KitText) and self.content.executable else 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """Everything of one report. `missing` says in words what is not to be had any more; `notes` what was left out on purpose.

    `job` is the archive that the boots got besides the root file system, `programs` the files of the job's programs by path below `job/`.
    `change_pct` and the levels are those that the report prints.
    """

    report: str
    subject: str
    page: str
    tree: str
    url: str
    branch: str
    mail: str
    json: str
    testbox: str
    label: str
    unit_job: UnitJob  # the headline's
    unit_jobs: Sequence[UnitJob]
    metric: str
    unit: str
    better: str | None
    change_pct: float | None
    interval_pct: tuple[float, float] | None
    qemu_version: str
    kernels: Mapping[Side, KitKernel]
    boots: Sequence[KitBoot]
    rootfs: KitRootfs | None
    job: KitArtifact | None
    programs: Mapping[str, bytes]
    patch: bytes | None
    no_patch: str = ""
    missing: Sequence[str] = ()
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def directory(self) -> str:
        """The one directory that the tarball unpacks to."""
        return f"swingbot-{self.report}"

    @property
    def virtual(self) -> bool:
        """Whether its boots can be made with QEMU from what is here."""
        return (
            bool(self.boots)
            and all(boot.qemu for boot in self.boots)
            and self.rootfs is not None
            and self.rootfs.archive is not None
            and self.job is not None
        )
