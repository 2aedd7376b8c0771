"""The outcome of an order as a worker writes it (outcome-1 schema), with its result files."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from swingbot_jobs.limits import REASON_CHARACTERS
from swingbot_worker.digest import sha256
from swingbot_worker.order import OrderHeader

Outcome = dict[str, Any]


def outcome(
    order: OrderHeader, status: str, reason: str | None, seconds: float, files: Iterable[Path]
) -> Outcome:
    """Return the outcome document of `order` after `seconds` of wall-clock time.

    Each of `files` that exists is listed with its name, sha256 and size in bytes.
    """
    return {
        "version": 1,
        "kind": order.kind,
        "order": order.order,
        "attempt": order.attempt,
        "status": status,
        "reason": reason[:REASON_CHARACTERS] if reason is not None else None,
        "seconds": round(seconds, 3),
        "origin": order.origin,
        "worker": socket.gethostname(),
        "files": {
            path.name: {"sha256": sha256(path), "size": path.stat().st_size}
            for path in files
            if path.is_file()
        },
    }


def died(order: OrderHeader, reason: str, seconds: float) -> Outcome:
    """Return the outcome of an attempt that produced none: an infrastructure failure."""
    return {
        "version": 1,
        "kind": order.kind,
        "order": order.order,
        "attempt": order.attempt,
        "status": "infra",
        "reason": reason[:REASON_CHARACTERS] or "unknown",
        "seconds": round(seconds, 3),
        "files": {},
    }
