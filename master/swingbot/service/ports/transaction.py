"""The database within one transaction, by noun."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from swingbot.service.ports.access import Access
from swingbot.service.ports.alerts import Alerts
from swingbot.service.ports.anchors import Anchors
from swingbot.service.ports.attempts import Attempts
from swingbot.service.ports.bisections import Bisections
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.builds import KernelBuilds
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.compilers import Compilers
from swingbot.service.ports.dispatches import Dispatches
from swingbot.service.ports.gates import Gates
from swingbot.service.ports.histories import Histories
from swingbot.service.ports.incidents import Incidents
from swingbot.service.ports.leases import Leases
from swingbot.service.ports.noise import Noise
from swingbot.service.ports.orders import Orders
from swingbot.service.ports.outbox import Outbox
from swingbot.service.ports.patches import Patches
from swingbot.service.ports.reports import Reports
from swingbot.service.ports.rounds import Rounds
from swingbot.service.ports.runs import Runs
from swingbot.service.ports.sightings import Sightings
from swingbot.service.ports.specs import Specs
from swingbot.service.ports.steering import Steering
from swingbot.service.ports.swings import Swings
from swingbot.service.ports.testboxes import Testboxes
from swingbot.service.ports.trees import Trees
from swingbot.service.ports.variants import Variants


class Transaction(Protocol):
    """Everything read and written together, all of it or nothing (`swingbot_db/store/`)."""

    @property
    def trees(self) -> Trees: ...
    @property
    def patches(self) -> Patches: ...
    @property
    def variants(self) -> Variants: ...
    @property
    def orders(self) -> Orders: ...
    @property
    def testboxes(self) -> Testboxes: ...
    @property
    def specs(self) -> Specs: ...
    @property
    def attempts(self) -> Attempts: ...
    @property
    def compilers(self) -> Compilers: ...
    @property
    def builds(self) -> KernelBuilds: ...
    @property
    def boots(self) -> Boots: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def bisections(self) -> Bisections: ...
    @property
    def steering(self) -> Steering: ...
    @property
    def comparisons(self) -> Comparisons: ...
    @property
    def swings(self) -> Swings: ...
    @property
    def histories(self) -> Histories: ...
    @property
    def noise(self) -> Noise: ...
    @property
    def anchors(self) -> Anchors: ...
    @property
    def sightings(self) -> Sightings: ...
    @property
    def incidents(self) -> Incidents: ...
    @property
    def reports(self) -> Reports: ...
    @property
    def gates(self) -> Gates: ...
    @property
    def alerts(self) -> Alerts: ...
    @property
    def rounds(self) -> Rounds: ...
    @property
    def access(self) -> Access: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def dispatches(self) -> Dispatches: ...
    @property
    def leases(self) -> Leases: ...


# Begins a transaction; its name labels its checkpoints.
OpenTransaction = Callable[[str], AbstractContextManager[Transaction]]
