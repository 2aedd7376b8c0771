"""What passes between the database, Buildbot and the workers: open dispatches, order documents, deliveries."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from swingbot.core.model.statuses import AttemptState, OrderKind, OrderState
from swingbot_jobs.contract.orders import SEARCH
from swingbot_jobs.contract.trust import Trust

_TOKEN = re.compile(r"a([0-9]{1,18})\.([0-9a-f]{64})")


class DatabaseAway(Exception):
    """The database does not answer now; asking again later is right."""


class Delivery(StrEnum):
    """What became of an outcome that was handed in."""

    STORED = "stored"  # the attempt ran; now it has ended with this outcome
    SAME = "same"  # the attempt had ended with this very outcome: handed in twice
    LATE = "late"  # the attempt had been declared dead: kept, never counted
    OTHER = "other"  # the attempt had ended with another outcome, which stands
    FOREIGN = "foreign"  # the outcome names another order, or another kind of work
    UNKNOWN = "unknown"  # there is no such attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDispatch:
    """A handing-over that is wanted or placed, with what the dispatcher must know about it."""

    id: int
    attempt: int
    order: int
    builder: str  # Buildbot's builder: 'kernel' or 'boot-<testbox>'
    external_id: str  # o12/a1/d1
    state: Literal["wanted", "placed"]
    compiler: str | None  # that a kernel build wants; None: a boot
    bb_request: int | None
    bb_number: int | None
    priority: int
    cancelled: bool  # nobody wants the order any more, or the attempt is over


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFacts:
    """All that an order document is made of, as the database knows it."""

    attempt: int
    attempt_state: AttemptState
    order: int
    order_state: OrderState
    kind: OrderKind
    build_key: str
    commit: str
    kconfig: str
    compiler: str
    layout: int
    trust: Trust = "trusted"
    image_sha256: str | None  # of the kernel build; None before there is one
    testbox: str | None
    k: int | None
    purpose: str = SEARCH
    unit_jobs: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What every order document of this service says alike."""

    exchange_url: str
    repo: str  # git repository that has all our commits
    build_deadline_seconds: float
    boot_deadline_seconds: float


def token(secret: bytes, attempt: int) -> str:
    """The password of one attempt, `a12.<64 hex digits>`: whoever has it may deliver for this attempt and do nothing else."""
    name = f"a{attempt}"
    return f"{name}.{hmac.new(secret, name.encode(), hashlib.sha256).hexdigest()}"


def attempt_of_token(secret: bytes, text: str) -> int | None:
    """The attempt whose token `text` is; None if it is not a token of ours."""
    match = _TOKEN.fullmatch(text)
    if match is None:
        return None
    attempt = int(match[1])
    return attempt if hmac.compare_digest(text, token(secret, attempt)) else None


def order_document(facts: OrderFacts, terms: Terms, secret: bytes) -> dict[str, Any]:
    """The order as a worker reads it (`jobs/schema/order-1.schema.json`); it holds the attempt's token, so it is never logged.

    Raises ValueError for a boot whose kernel has no image: such an order should not have become ready.
    """
    document: dict[str, Any] = {
        "version": 1,
        "kind": facts.kind,
        "order": f"o{facts.order}",
        "attempt": f"a{facts.attempt}",
        "exchange": {"url": terms.exchange_url, "token": token(secret, facts.attempt)},
    }
    if facts.kind == "build":
        document["deadline_seconds"] = terms.build_deadline_seconds
        document["kernel"] = {
            "build_key": facts.build_key,
            "repo": terms.repo,
            "commit": facts.commit,
            "kconfig": facts.kconfig,
            "compiler": facts.compiler,
            "layout": facts.layout,
            "trust": facts.trust,
        }
        return document
    if facts.image_sha256 is None:
        raise ValueError(
            f"order o{facts.order} wants to boot kernel {facts.build_key[:12]}, which has no image"
        )
    document["deadline_seconds"] = terms.boot_deadline_seconds
    # what an engine or a driver may call it by
    named = {"commit": facts.commit, "kconfig": facts.kconfig, "compiler": facts.compiler}
    document["kernel"] = {
        "build_key": facts.build_key,
        "image_sha256": facts.image_sha256,
        "trust": facts.trust,
        **named,
    }
    document |= {
        "testbox": facts.testbox,
        "k": facts.k,
        **purpose_named(facts.purpose),
        "unit_jobs": [dict(job) for job in facts.unit_jobs],
    }
    return document


def purpose_named(purpose: str) -> dict[str, str]:
    """What an order says of its purpose. A search is not named: a worker that knows no purposes boots it right, and refuses all others."""
    return {} if purpose == SEARCH else {"purpose": purpose}
