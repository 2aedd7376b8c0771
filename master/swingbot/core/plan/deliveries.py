"""What a delivered outcome means for its attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from swingbot.core.model.dispatch import Delivery
from swingbot.core.model.statuses import AttemptState, OrderState
from swingbot_jobs.contract.orders import OrderKind


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAttempt:
    """An attempt, the outcome that counts, and the one that came after it was declared dead."""

    state: AttemptState
    order: int
    kind: OrderKind
    order_state: OrderState
    outcome: Mapping[str, Any] | None = None
    late: Mapping[str, Any] | None = None

    @property
    def wanted(self) -> bool:
        return self.state == "running" and self.order_state not in ("cancelled", "failed")


def delivery_of(
    stored: StoredAttempt | None, attempt: int, outcome: Mapping[str, Any]
) -> tuple[Delivery, bool]:
    """Return the delivery, and whether the outcome is to be stored: as that of the attempt
    (STORED), or beside it (LATE).
    """
    if stored is None:
        return Delivery.UNKNOWN, False
    named = (outcome["attempt"], outcome["order"], outcome["kind"])
    if named != (f"a{attempt}", f"o{stored.order}", stored.kind):
        return Delivery.FOREIGN, False
    match stored.state:
        case "running":
            return Delivery.STORED, True
        case "dead" if stored.late is None:
            return Delivery.LATE, True
        case "dead":
            return (Delivery.LATE if stored.late == outcome else Delivery.OTHER), False
    return (Delivery.SAME if stored.outcome == outcome else Delivery.OTHER), False
