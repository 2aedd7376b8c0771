"""The memory of the brain: what the use cases in `swingbot.service` read and record, on one open transaction."""

from __future__ import annotations

from swingbot_db.store.bisections import BisectionRows
from swingbot_db.store.boxes import BoxRows
from swingbot_db.store.builds import BuildRows
from swingbot_db.store.detection import DetectionRows
from swingbot_db.store.incidents import IncidentRows
from swingbot_db.store.moderated import ModerationRows
from swingbot_db.store.orders import OrderRows
from swingbot_db.store.proof import ProofRows
from swingbot_db.store.raw_runs import RawRunRows
from swingbot_db.store.results import ResultRows
from swingbot_db.store.steering import SteeringRows
from swingbot_db.store.trees import TreeRows


class PgStore(
    TreeRows,
    IncidentRows,
    OrderRows,
    ResultRows,
    RawRunRows,
    BisectionRows,
    SteeringRows,
    DetectionRows,
    BuildRows,
    ProofRows,
    ModerationRows,
    BoxRows,
):
    """`swingbot.service.ports.Store` on PostgreSQL; lives as long as its transaction."""
