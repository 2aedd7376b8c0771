"""Stores for the use cases in `swingbot.service`, on one open transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from swingbot.service.ports.transaction import OpenTransaction, Transaction
from swingbot_db.engine import away, transaction
from swingbot_db.store.access import Access
from swingbot_db.store.alerts import Alerts
from swingbot_db.store.anchors import Anchors
from swingbot_db.store.attempts import Attempts
from swingbot_db.store.bisections import Bisections
from swingbot_db.store.boots import Boots
from swingbot_db.store.builds import KernelBuilds
from swingbot_db.store.comparisons import Comparisons
from swingbot_db.store.compilers import Compilers
from swingbot_db.store.dispatches import Dispatches
from swingbot_db.store.gates import Gates
from swingbot_db.store.histories import Histories
from swingbot_db.store.incidents import Incidents
from swingbot_db.store.leases import Leases
from swingbot_db.store.noise import Noise
from swingbot_db.store.orders import Orders
from swingbot_db.store.outbox import Outbox
from swingbot_db.store.patches import Patches
from swingbot_db.store.reports import Reports
from swingbot_db.store.rounds import Rounds
from swingbot_db.store.runs import Runs
from swingbot_db.store.sightings import Sightings
from swingbot_db.store.specs import Specs
from swingbot_db.store.steering import Steering
from swingbot_db.store.swings import Swings
from swingbot_db.store.testboxes import Testboxes
from swingbot_db.store.trees import Trees
from swingbot_db.store.variants import Variants


class PgTransaction:
    """Implements `swingbot.service.ports.Transaction` on PostgreSQL, for one transaction."""

    def __init__(self, conn: sa.Connection) -> None:
        self.trees = Trees(conn)
        self.patches = Patches(conn)
        self.variants = Variants(conn)
        self.orders = Orders(conn)
        self.testboxes = Testboxes(conn)
        self.specs = Specs(conn)
        self.attempts = Attempts(conn)
        self.compilers = Compilers(conn)
        self.builds = KernelBuilds(conn)
        self.boots = Boots(conn)
        self.runs = Runs(conn)
        self.bisections = Bisections(conn)
        self.steering = Steering(conn)
        self.comparisons = Comparisons(conn)
        self.swings = Swings(conn)
        self.histories = Histories(conn)
        self.noise = Noise(conn)
        self.anchors = Anchors(conn)
        self.sightings = Sightings(conn)
        self.incidents = Incidents(conn)
        self.reports = Reports(conn)
        self.gates = Gates(conn)
        self.alerts = Alerts(conn)
        self.rounds = Rounds(conn)
        self.access = Access(conn)
        self.outbox = Outbox(conn)
        self.dispatches = Dispatches(conn)
        self.leases = Leases(conn)


def transactions(engine: sa.Engine) -> OpenTransaction:
    """Return what begins a transaction on `engine`."""

    @contextmanager
    def begin(name: str) -> Iterator[PgTransaction]:
        with transaction(engine, name) as conn:
            yield PgTransaction(conn)

    return begin


def patient_transactions(engine: sa.Engine) -> OpenTransaction:
    """As `transactions`, for those who try again: raises DatabaseAway if the server does not
    respond.
    """
    begin = transactions(engine)

    @contextmanager
    def patient(name: str) -> Iterator[Transaction]:
        with away(), begin(name) as tx:
            yield tx

    return patient
