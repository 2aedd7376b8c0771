"""What a person decides about a report, or about all mail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from swingbot.core import limits
from swingbot.core.model.statuses import ReportAct
from swingbot_jobs.codec import Sparse, at_most_characters

_WHY: Final = at_most_characters(limits.WHY_CHARACTERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDecision:
    """Also the JSON of a request (docs/api.md)."""

    act: ReportAct
    reason: Annotated[Sparse[str], _WHY] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchDecision:
    """Whether all mail is stopped."""

    stopped: bool
    reason: Annotated[Sparse[str], _WHY] = ""
