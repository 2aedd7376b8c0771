"""Data between the database, Buildbot and the workers: dispatches, order documents, deliveries."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from swingbot.core.model.statuses import AttemptState, OrderState
from swingbot_jobs import codec
from swingbot_jobs.contract.orders import SEARCH, OrderKind
from swingbot_jobs.contract.trust import Trust
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.boot_time import boot_limit
from swingbot_jobs.testbox.definition import Testbox

_TOKEN = re.compile(r"a([0-9]{1,18})\.([0-9a-f]{64})")


class DatabaseAway(Exception):
    """The database does not respond; the caller should try again later."""


class Delivery(StrEnum):
    """The result of delivering an outcome."""

    STORED = "stored"  # the attempt was running and has now ended with this outcome
    SAME = "same"  # the attempt had already ended with this outcome (duplicate delivery)
    LATE = "late"  # the attempt had been declared dead; the outcome is kept but not counted
    OTHER = "other"  # the attempt had ended with a different outcome, which is kept
    FOREIGN = "foreign"  # the outcome is for another order or another kind of work
    UNKNOWN = "unknown"  # the attempt does not exist


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDispatch:
    """A requested or placed dispatch, with what the dispatcher must know about it."""

    id: int
    attempt: int
    order: int
    builder: str  # Buildbot's builder: 'kernel' or 'boot-<testbox>'
    external_id: str  # o12/a1/d1
    state: Literal["wanted", "placed"]
    compiler: str | None  # required by a kernel build; None: a boot
    bb_request: int | None
    bb_number: int | None
    priority: int
    cancelled: bool  # the order is no longer needed, or the attempt is over


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFacts:
    """The contents of an order document, from the database."""

    attempt: int
    attempt_state: AttemptState
    order: int
    order_state: OrderState
    kind: OrderKind
    build_key: str
    tree: int
    commit: str
    kconfig: str
    compiler: str
    layout: int
    trust: Trust = "trusted"
    image_sha256: str | None  # of the kernel build; None if not built yet
    testbox: str | None
    k: int | None
    purpose: str = SEARCH
    unit_jobs: Sequence[Mapping[str, Any]]
    measured_seconds: float | None = None  # mean of such boots that came up on the testbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The part of order documents that is the same for all orders of this service."""

    exchange_url: str
    repo: str  # git repository with all commits of this service
    build_deadline_seconds: float
    testboxes: Mapping[str, Testbox]


def token(secret: bytes, attempt: int) -> str:
    """Return the password of one attempt, `a12.<64 hex digits>`.

    It permits delivery for this attempt and nothing else.
    """
    name = f"a{attempt}"
    return f"{name}.{hmac.new(secret, name.encode(), hashlib.sha256).hexdigest()}"


def attempt_of_token(secret: bytes, text: str) -> int | None:
    """Return the attempt of a token; None if the token is not valid."""
    match = _TOKEN.fullmatch(text)
    if match is None:
        return None
    attempt = int(match[1])
    return attempt if hmac.compare_digest(text, token(secret, attempt)) else None


def order_document(facts: OrderFacts, terms: Terms, secret: bytes) -> dict[str, Any]:
    """Return the order document (`jobs/schema/order-1.schema.json`).

    It contains the attempt's token, so it must not be logged. Raises ValueError for a boot whose
    kernel has no image or whose testbox has no file.
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
            "tree": f"t{facts.tree}",
        }
        return document
    if facts.image_sha256 is None:
        raise ValueError(
            f"order o{facts.order} is to boot kernel {facts.build_key[:12]}, which has no image"
        )
    assert facts.testbox is not None
    testbox = terms.testboxes.get(facts.testbox)
    if testbox is None:
        raise ValueError(f"testbox {facts.testbox} of order o{facts.order} has no file any more")
    unit_jobs = [codec.typed(UnitJob, job) for job in facts.unit_jobs]
    document["deadline_seconds"] = boot_limit(testbox, unit_jobs, facts.measured_seconds)
    # Parameters for an engine or a driver
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
    """Return the purpose for an order document; empty for a search.

    Old workers, which do not know purposes, boot a search correctly and refuse anything else.
    """
    return {} if purpose == SEARCH else {"purpose": purpose}
