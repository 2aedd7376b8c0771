"""The store in memory: passes the contract tests that PostgreSQL passes,
and runs use cases in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from tests.fakes.store.access import Access
from tests.fakes.store.alerts import Alerts
from tests.fakes.store.anchors import Anchors
from tests.fakes.store.attempts import Attempts
from tests.fakes.store.bisections import Bisections
from tests.fakes.store.boots import Boots
from tests.fakes.store.builds import KernelBuilds
from tests.fakes.store.comparisons import Comparisons
from tests.fakes.store.compilers import Compilers
from tests.fakes.store.dispatches import Dispatches
from tests.fakes.store.gates import Gates
from tests.fakes.store.histories import Histories
from tests.fakes.store.incidents import Incidents
from tests.fakes.store.leases import Leases
from tests.fakes.store.noise import Noise
from tests.fakes.store.orders import Orders
from tests.fakes.store.outbox import Outbox
from tests.fakes.store.patches import Patches
from tests.fakes.store.reports import Reports
from tests.fakes.store.rounds import Rounds
from tests.fakes.store.runs import Runs
from tests.fakes.store.sightings import Sightings
from tests.fakes.store.specs import Specs
from tests.fakes.store.steering import Steering
from tests.fakes.store.swings import Swings
from tests.fakes.store.tables import Refused, Tables
from tests.fakes.store.testboxes import Testboxes
from tests.fakes.store.trees import Trees
from tests.fakes.store.variants import Variants


class MemoryTransaction:
    """`swingbot.service.ports.Transaction` in memory."""

    def __init__(self, db: Tables) -> None:
        self.trees = Trees(db)
        self.patches = Patches(db)
        self.variants = Variants(db)
        self.orders = Orders(db)
        self.testboxes = Testboxes(db)
        self.specs = Specs(db)
        self.attempts = Attempts(db)
        self.compilers = Compilers(db)
        self.builds = KernelBuilds(db)
        self.boots = Boots(db)
        self.runs = Runs(db)
        self.bisections = Bisections(db)
        self.steering = Steering(db)
        self.comparisons = Comparisons(db)
        self.swings = Swings(db)
        self.histories = Histories(db)
        self.noise = Noise(db)
        self.anchors = Anchors(db)
        self.sightings = Sightings(db)
        self.incidents = Incidents(db)
        self.reports = Reports(db)
        self.gates = Gates(db)
        self.alerts = Alerts(db)
        self.rounds = Rounds(db)
        self.access = Access(db)
        self.outbox = Outbox(db)
        self.dispatches = Dispatches(db)
        self.leases = Leases(db)


@dataclass
class MemoryStore:
    """The memory of one test."""

    db: Tables = field(default_factory=Tables)

    @contextmanager
    def transaction(self, name: str = "test") -> Iterator[MemoryTransaction]:
        """All of it, or nothing. One at a time: it locks nothing."""
        savepoint = self.db.savepoint()
        self.db.begun = self.db.now()
        try:
            yield MemoryTransaction(self.db)
        except BaseException:
            self.db.restore(savepoint)
            raise
        if self.db.differs(savepoint):
            Rounds(self.db).note_unseen()

    def pass_time(self, seconds: float) -> None:
        self.db.elapsed += timedelta(seconds=seconds)


__all__ = ["MemoryStore", "MemoryTransaction", "Refused"]
