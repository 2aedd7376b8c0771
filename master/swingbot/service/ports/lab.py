"""Protocols for everything that use cases need from outside, implemented by the adapters and the
database.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO, Protocol

from swingbot.core.mail.message import PostedMail
from swingbot.core.mail.recipients import MaintainerEntry
from swingbot.core.model.artifact import Pruned
from swingbot.core.model.patches import Patch
from swingbot.core.model.records import (
    CommitFacts,
)
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.moderation.filing import MailRules
from swingbot.core.patchset.bundle import Bundle
from swingbot.core.patchset.model import SeriesPatch
from swingbot.core.plan.testbox_rules import TestboxRules
from swingbot.service.clock_watch import SteadyClock
from swingbot.service.ports.kernels import KernelRecords
from swingbot.service.ports.results import ResultReader
from swingbot.service.ports.transaction import OpenTransaction
from swingbot_jobs.contract.kconfig import Kconfigs
from swingbot_jobs.language.program import Program


class Git(Protocol):
    """The mirror (`adapters/git.py`); every method may raise GitError."""

    def check_source(self, url: str, refs: Sequence[str]) -> None: ...
    def fetch_branch(self, tree: str, url: str, branch: str) -> str: ...
    def resolve_remote(self, tree: str, url: str, ref: str) -> str: ...
    def remote_tip(self, url: str, branch: str) -> str: ...
    def resolve(self, tree: str, ref: str) -> str: ...
    def facts(self, commit: str) -> CommitFacts: ...
    def is_kernel(self, commit: str) -> bool: ...
    def is_ancestor(self, old: str, new: str) -> bool: ...
    def outside(self, commits: Collection[str], ends: Sequence[str]) -> set[str]: ...
    def beyond(
        self, commits: Collection[str], ends: Sequence[str], most: int
    ) -> dict[str, tuple[str, ...]]: ...
    def known(self, commits: Collection[str], person: str) -> set[str]: ...
    def is_sent_by(self, person: str, commit: str) -> bool: ...
    def merge_base(self, one: str, other: str) -> str | None: ...
    def first_parents(self, good: str, bad: str) -> list[str]: ...
    def places(self, good: str, bad: str, commits: Collection[str]) -> dict[str, int]: ...
    def changed_paths(self, commit: str) -> tuple[str, ...]: ...
    def paths_between(self, old: str, new: str) -> tuple[str, ...]: ...
    def paths_along(self, good: str, bad: str) -> dict[str, tuple[str, ...]]: ...
    def whole_sources(self, commit: str) -> str: ...
    def message(self, commit: str) -> str: ...
    def messages_from(self, commit: str, tip: str, most: int) -> list[tuple[str, str]]: ...
    def without(self, tip: str, commit: str) -> str: ...
    def patch_ids(self, commits: Sequence[str]) -> dict[str, str]: ...
    def patches(self, good: str, bad: str, most: int = 500) -> list[Patch]: ...
    def find_patch(
        self, patch_id: str, like: str, good: str, bad: str, most: int = 200
    ) -> str | None: ...
    def keep(self, commit: str) -> None: ...
    def call(self, tree: str, name: str, commit: str) -> None: ...
    def apply_series(self, base: str, patches: Sequence[SeriesPatch]) -> list[str]: ...
    def quarantine(self) -> AbstractContextManager[QuarantinedGit]: ...


class QuarantinedGit(Git, Protocol):
    """The mirror for one request: what it creates and keeps is deleted unless it is admitted."""

    def unbundle(self, bundle: Bundle, person: str) -> None:
        """Read and check the commits that a person sent; `person` is a `Person.ref_name`."""

    def created(self, commits: Collection[str]) -> set[str]:
        """Return those of `commits` that the mirror lacks: this request sent or made them."""

    def admit(self) -> None:
        """Let it join the mirror; before the database refers to it."""


class Artifacts(Protocol):
    """The content-addressed store of all results."""

    def open(self, sha256: str) -> BinaryIO:
        """Return the content, seekable.

        Raises FileNotFoundError; raises ArtifactError, now or while reading, for a damaged file.
        """

    def pruned(self, sha256: str) -> Pruned | None:
        """Return when and why a file was pruned; None if it was not, or was stored again."""


# (commit, base) -> whom the base names for the commit. May raise NoMaintainers.
Maintainers = Callable[[str, str], tuple[MaintainerEntry, ...]]
# (Message-ID or "", subject, author) -> the patch's own mail
ListArchive = Callable[[str, str, str], PostedMail | None]
# -> the reason if the free disk space is below so many times the limit for dispatching
NoRoom = Callable[[float], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabSettings:
    """The settings that decisions depend on (described in `app/settings.py`)."""

    watch_boots: int
    watch_testbox: str
    bisect_improvements: bool
    idle_aa_seconds: float
    confidence: float
    max_boots: int
    sender: str
    recipients: tuple[str, ...]
    still_days: float  # between two mails that only report that a change is still there; 0: none
    contact: str
    domain: str
    web_url: str
    deadline_build: float
    proof_gates: tuple[str, ...]
    proof_require: tuple[str, ...]
    proof_deadline_seconds: float
    proof_budget_seconds: float
    merged_trees: tuple[str, ...]
    mail: MailRules = field(default_factory=MailRules)
    testboxes: TestboxRules = field(default_factory=TestboxRules)


def _always() -> float:
    return float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What use cases reach outside the service: the mirror, files, mail archives."""

    git: Git
    artifacts: Artifacts
    kernels: KernelRecords
    maintainers: Maintainers | None = None  # None: disabled
    list_archive: ListArchive | None = None  # None: no archive
    no_room: NoRoom | None = None
    results: ResultReader | None = None  # None: parsed in this process


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """What can be booted, run and configured, from the files of the operator."""

    testboxes: KnownTestboxes
    programs: Mapping[str, Program]
    parsers: Mapping[str, str]  # program -> hash of the code that parses its output
    kconfigs: Kconfigs


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The time of day, and for how long this process has been able to see the others."""

    now: Callable[[], datetime]
    database: SteadyClock = field(default_factory=SteadyClock)
    # seconds for which the web service was continuously reachable for workers, as known to this
    # process
    listening: Callable[[], float] = _always
    awake: Callable[[], float] = _always  # seconds since this process started to watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """Everything that a use case can reach."""

    transaction: OpenTransaction
    tools: Tools
    catalogue: Catalogue
    settings: LabSettings
    clock: Clock
