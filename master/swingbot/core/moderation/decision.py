"""What a person decides about a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from swingbot.core import limits
from swingbot.core.model.statuses import ReportAct
from swingbot_jobs.codec import Sparse, at_most_characters


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDecision:
    """Also the JSON of a request (docs/api.md)."""

    act: ReportAct
    reason: Annotated[Sparse[str], at_most_characters(limits.WHY_CHARACTERS)] = ""
