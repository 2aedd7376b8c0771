"""Frozen facts of a kit: everything needed to repeat the boots behind some numbers elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from swingbot.core.reproduce.names import directory_names
from swingbot_jobs.contract.unit_job import UnitJob


@dataclass(frozen=True, slots=True, kw_only=True)
class KitArtifact:
    """A file of the artifact store; `size` in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KitKernel:
    """A kernel build; `name` is its directory. Files missing from the artifact store are None."""

    name: str
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
    """One boot behind the numbers.

    `qemu` is the QEMU command line with file names instead of paths; empty if the testbox is not
    virtual.
    """

    id: str
    kernel: str  # name of the kernel
    k: int
    seconds: float
    qemu: Sequence[str]
    runs: Sequence[KitRun]
    payload: int = 1  # number of its payload


@dataclass(frozen=True, slots=True, kw_only=True)
class KitOmission:
    """A program of Debian's non-free, left out: its place in the archive and its package."""

    path: str
    offset: int
    size: int
    sha256: str
    package: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KitRootfs:
    """The guest's root file system.

    `whole` is the sha256 of the booted archive, `archive` the one in the kit (equal if nothing is
    left out). `files` are (path, size, sha256, package) of every file in it.
    """

    whole: str
    archive: KitArtifact | None
    files: Sequence[tuple[str, int, str, str]]
    left_out: Sequence[KitOmission] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KitText:
    """A generated file of the kit."""

    content: bytes
    executable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KitMember:
    """A file of the tarball: its path below the kit's directory, and its content.

    `same_as` is the path of an earlier file with the same content, to which it is a hard link.
    """

    path: str
    content: KitText | KitArtifact
    same_as: str = ""

    @property
    def mode(self) -> int:
        return 0o755 if isinstance(self.content, KitText) and self.content.executable else 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table: a kernel with the name that all tables, pages and files use.

    `patches` are the row's own commits, oldest first, as mails for `git am`. `series` are the paths
    in the kit of all patches that make the row's source from commit `start`, in order; empty where
    `start` is the row's commit itself. `trouble` says why the row has no boots.
    """

    title: str
    kernel: KitKernel
    settings: Sequence[str] = ()  # kernel command line and sysctls of its boots, in words
    trouble: str = ""
    patches: Sequence[bytes] = ()
    series: Sequence[str] = ()
    start: str
    no_patches: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KitPayload:
    """Input of a boot in addition to its kernel: root file system, job archive and unit jobs.

    `number` counts from 1; `rootfs_number` is the number of the first payload with the same root
    file system.
    `programs` are files by path below the payload's directory.
    """

    number: int
    rootfs_number: int
    rootfs: KitRootfs | None
    job: KitArtifact | None
    programs: Mapping[str, bytes]
    unit_jobs: Sequence[UnitJob]

    @property
    def directory(self) -> str:
        """Directory of the job in the kit."""
        return numbered("job", self.number)

    @property
    def rootfs_directory(self) -> str:
        """Directory of the root file system in the kit."""
        return numbered("rootfs", self.rootfs_number)

    @property
    def bootable(self) -> bool:
        """Whether the kit has everything that QEMU needs of it."""
        return self.job is not None and self.rootfs is not None and self.rootfs.archive is not None


def numbered(name: str, number: int) -> str:
    """Return `job`, `job-2`, `job-3`: the first has no number."""
    return name if number == 1 else f"{name}-{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedChange:
    """A reported change of a row against its reference. `words` names the reference."""

    kernel: str
    reference: str
    words: str
    verdict: str
    change_pct: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """One table: a metric of a unit job. `levels` are means in `unit`, by name of the kernel."""

    unit_job: str
    metric: str
    unit: str
    better: str | None
    level: str | None  # estimator of the reported levels; None: plain means of boot means
    levels: Mapping[str, float]
    changes: Sequence[ReportedChange]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """Facts of a table on one testbox, or of the boots of a report's culprit and its parent.

    `id` names the report, comparison or experiment, `kind` is the word of its page's address;
    `created_at` is its time (ISO 8601), `json` what programs read of it. `boots` are in the order
    in which to repeat them, `rows` in the order of the table. `others` are its other testboxes.
    `missing` lists in words what is no longer available, `notes` what was left out on purpose.
    """

    id: str
    kind: str
    created_at: str
    page: str
    tree: str
    url: str
    branch: str
    testbox: str
    label: str
    others: Sequence[str]
    chosen: bool  # whether the testbox was requested
    qemu_version: str
    rows: Sequence[Row]
    boots: Sequence[KitBoot]
    payloads: Sequence[KitPayload]
    headlines: Sequence[Headline]
    json: str
    subject: str = ""  # of a report's mail
    mail: str = ""
    missing: Sequence[str] = ()
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def directory(self) -> str:
        """The one directory that the tarball unpacks to; it includes a requested testbox."""
        suffix = f"-{directory_names([self.testbox])[0]}" if self.chosen else ""
        return f"swingbot-{self.id}{suffix}"

    @property
    def virtual(self) -> bool:
        """Whether QEMU can repeat the boots with the files of the kit."""
        return (
            bool(self.boots)
            and all(boot.qemu for boot in self.boots)
            and all(payload.bootable for payload in self.payloads)
        )


def boot_ids(kit: Kit) -> list[str]:
    """Return the ids of its boots in order, each once."""
    return list(dict.fromkeys(boot.id for boot in kit.boots))
