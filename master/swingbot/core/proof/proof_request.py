"""A request to run gates again, as it is sent (docs/api.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from swingbot.core.proof.gates import GATES
from swingbot_jobs.codec import Sparse, at_most_entries


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRequest:
    """No `gates`: the default ones. `dry_run`: their costs only."""

    gates: Annotated[Sparse[tuple[str, ...]], at_most_entries(len(GATES))] = ()
    dry_run: Sparse[bool] = False
