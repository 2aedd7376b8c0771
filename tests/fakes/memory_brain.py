"""The whole brain on the store in memory: kernels come from a real git repository, results from a
fake lab, and nothing else of a service is there.

For tests of decisions. What PostgreSQL must do for them is in the contract of the stores.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any, BinaryIO

from swingbot.app.settings import load
from swingbot.app.wiring import lab_on, sync_testboxes
from swingbot.core.incident.model import Incident
from swingbot.core.model.artifact import Pruned
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.records import Bisection, Comparison, Swing
from swingbot.core.model.statuses import ComparisonKind
from swingbot.service.clock_watch import SteadyClock
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.kernels import KernelRecordsHere
from tests.fakes.lab import Desk, FakeLab, fakelinux_states
from tests.fakes.loop import Loop
from tests.fakes.mail import memory_sender
from tests.fakes.store import MemoryStore
from tests.fakes.store.tables import ReportRow

PAUSE_SECONDS = 600.0  # an order that failed is tried again after a while


@dataclass
class MemoryFiles:
    """An artifact store in memory."""

    files: dict[str, bytes] = field(default_factory=dict)

    def open(self, sha256: str) -> BinaryIO:
        if sha256 not in self.files:
            raise FileNotFoundError(sha256)
        return io.BytesIO(self.files[sha256])

    def put(self, stream: BinaryIO, sha256: str) -> bool:
        new = sha256 not in self.files
        self.files[sha256] = stream.read()
        return new

    def pruned(self, sha256: str) -> Pruned | None:
        return None


@dataclass(kw_only=True)
class MemoryBrain(Loop):
    """A loop in memory. Its mail server accepts everything."""

    store: MemoryStore
    letters: list[EmailMessage] = field(default_factory=list)

    def send(self) -> None:
        for sent in memory_sender(self.store.transaction).send_due(self.store.db.now()):
            self.letters.append(letter_of(self.store.db.reports[sent.report]))

    def idle(self) -> bool:
        with self.store.transaction() as tx:
            if tx.rounds.unseen():
                return False
            waits = bool(tx.orders.open() or tx.comparisons.open() or tx.bisections.running())
        if waits:
            self.store.pass_time(PAUSE_SECONDS)
        return not waits

    # -- what became of it

    @property
    def mails(self) -> list[str]:
        return [str(letter["Subject"]) for letter in self.letters]

    @property
    def reports(self) -> list[ReportRow]:
        return list(self.store.db.reports.values())

    def comparison(self, number: int = 1) -> Comparison:
        return self.store.db.comparisons[number].comparison

    def comparisons(self, *kinds: ComparisonKind) -> list[Comparison]:
        found = [row.comparison for row in self.store.db.comparisons.values()]
        return [comparison for comparison in found if comparison.kind in kinds or not kinds]

    def rows(self, comparison: int = 1) -> list[ComparisonRow]:
        with self.store.transaction() as tx:
            return tx.comparisons.rows(comparison)

    def headlines(self, comparison: int = 1) -> list[ComparisonRow]:
        return [row for row in self.rows(comparison) if row.headline]

    def bisection(self, number: int = 1) -> Bisection:
        return self.store.db.bisections[number].bisection

    def conclusion(self, bisection: int = 1) -> dict[str, Any]:
        return dict(self.store.db.bisections[bisection].conclusion or {})

    def culprit(self, bisection: int = 1) -> str:
        (culprit,) = self.conclusion(bisection)["culprits"]
        return str(culprit["commit"])

    @property
    def swings(self) -> list[Swing]:
        return [row.swing for row in self.store.db.swings.values()]

    @property
    def incidents(self) -> list[Incident]:
        return list(self.store.db.incidents.values())

    @property
    def booted(self) -> list[str]:
        """The commits of all boots, in the order of their results."""
        return [commit for kind, commit, _ in self.fake.done if kind == "boot"]

    def head_of(self, comparison: int) -> str:
        return self.store.db.variants[self.comparison(comparison).head].commit

    def base_of(self, comparison: int) -> str:
        return self.store.db.variants[self.comparison(comparison).base].commit


def letter_of(report: ReportRow) -> EmailMessage:
    letter = message_from_bytes(report.message, policy=policy.default)
    assert isinstance(letter, EmailMessage)
    return letter


def make_memory_brain(
    folder: Path, commits: Sequence[FakeCommit] = (), *, repo: Path | None = None, **settings: str
) -> MemoryBrain:
    """A brain whose mails leave at once, on the repository `repo` or one with these commits.

    `settings` are variables of the environment without SWINGBOT_.
    """
    if repo is None:
        make_fakelinux(repo := folder / "linux", commits)
    given = {"PATHS_STATE": str(folder / "state"), "MAIL_RELEASE": "release", **settings}
    found = load(environ={f"SWINGBOT_{name}": value for name, value in given.items()})
    store, files = MemoryStore(), MemoryFiles()
    lab = lab_on(found, store.transaction)
    lab = replace(
        lab,
        tools=replace(
            lab.tools,
            artifacts=files,
            kernels=KernelRecordsHere(files.open),
            results=None,
            no_room=None,
        ),
        clock=replace(lab.clock, now=store.db.now, database=SteadyClock()),
    )
    sync_testboxes(lab)
    state = fakelinux_states(repo, found.mirror)
    fake = FakeLab(desk=Desk(store.transaction), artifacts=files, state=state)
    return MemoryBrain(lab=lab, fake=fake, repo=repo, store=store)
