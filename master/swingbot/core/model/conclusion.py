"""What a bisection that has ended says, read from its document (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swingbot_jobs import codec


def same_mean(spread_ratio: float | None, interval_pct: Sequence[float] | None) -> bool:
    """Whether only the spread between boots changes: the interval of the mean holds 0."""
    return spread_ratio is not None and (
        interval_pct is None or interval_pct[0] <= 0.0 <= interval_pct[1]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCulprit:
    commit: str
    parent: str
    probability: float
    change_pct: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSearch:
    """The conclusion of a bisection, with the boots, kernels and builds that it took."""

    culprits: Sequence[NamedCulprit]
    candidates: Sequence[Any]  # the commits searched
    boots: int
    kernels: int
    builds: int
    spread_ratio: float | None = None  # spread between boots, if that is what changed

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> EndedSearch:
        """Read a stored conclusion, whose other keys are ignored. Raises BadDocument."""
        return codec.typed(cls, document, "conclusion", ignore_unknown=True)

    @property
    def of_spread(self) -> bool:
        """Whether the culprit changes the spread between boots, at an unchanged level."""
        return self.spread_ratio is not None

    def naming(self, commit: str) -> NamedCulprit:
        """Return the culprit `commit`, which is one of those named."""
        return next(culprit for culprit in self.culprits if culprit.commit == commit)
