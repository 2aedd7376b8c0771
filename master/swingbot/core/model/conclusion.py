"""What a bisection that has ended says, read from its document (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class BadConclusion(ValueError):
    """A stored conclusion lacks a key; the message names it."""


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
    candidates: int
    boots: int
    kernels: int
    builds: int
    spread_ratio: float | None  # spread between boots, if that is what changed

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> EndedSearch:
        """Read a stored conclusion. Raises BadConclusion."""
        try:
            return cls(
                culprits=[
                    NamedCulprit(
                        commit=culprit["commit"],
                        parent=culprit["parent"],
                        probability=culprit["probability"],
                        change_pct=culprit["change_pct"],
                    )
                    for culprit in document["culprits"]
                ],
                candidates=len(document["candidates"]),
                boots=document["boots"],
                kernels=document["kernels"],
                builds=document["builds"],
                spread_ratio=document.get("spread_ratio"),
            )
        except KeyError as missing:
            raise BadConclusion(f"conclusion: {missing.args[0]!r} is missing") from None

    @property
    def of_spread(self) -> bool:
        """Whether the culprit changes the spread between boots, at an unchanged level."""
        return self.spread_ratio is not None

    def naming(self, commit: str) -> NamedCulprit:
        """Return the culprit `commit`, which is one of those named."""
        return next(culprit for culprit in self.culprits if culprit.commit == commit)
