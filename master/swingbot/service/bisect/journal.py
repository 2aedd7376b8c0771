"""Record the input and the decision of each bisection step, in the transaction that acts on it."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib import resources

from swingbot.core.bisect import journal
from swingbot.core.bisect.state import Action, BisectionState
from swingbot.core.bisect.thresholds import Policy
from swingbot.service.ports.steering import Steering


@lru_cache(maxsize=1)
def engine() -> str:
    """Return the version of the engine: a digest of the sources that decide."""
    digest = hashlib.sha256()
    files = [resources.files("swingbot.core") / "thresholds.py"]
    for package in ("swingbot.core.bisect", "swingbot.core.stats"):
        files += sorted(resources.files(package).iterdir(), key=lambda file: file.name)
    for file in files:
        if file.name.endswith(".py"):
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def note_step(
    steering: Steering, bisection: int, state: BisectionState, policy: Policy, action: Action
) -> None:
    """Add a step to the journal, unless its input equals that of the last step, or it only keeps
    waiting while costs change."""
    last = steering.last_step(bisection)
    now = journal.snapshot(state, policy)
    if last is not None and last[1] == now.digest:
        return
    before: journal.Snapshot | None = None
    for entry in steering.steps(bisection):
        before = journal.apply(before, entry.facts)
    facts, decision = journal.difference(before, now), journal.decision(action)
    if journal.worth_noting(last[2] if last else None, facts, decision):
        steering.add_step(
            bisection, last[0] + 1 if last else 1, engine(), facts, now.digest, decision
        )
