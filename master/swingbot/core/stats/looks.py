"""Judge a table again after boots were added, with the error rate of a table judged once.

The request states how many looks there will be, and each of these spends an equal share. No rule
can claim a new change in a later look without exceeding the stated rate, so later looks may only
keep or withdraw claims. Derivation: docs/statistics.md, "Judging a table again".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from swingbot.core.model.comparison_row import ComparisonRow, Verdict
from swingbot.core.model.statuses import Reference
from swingbot.core.stats.rows import Rule

RowKey = tuple[str, str, str, Reference, int]  # testbox, unit job, metric, rule, arm

NOT_STATED: Final = "this look was not stated in the request, so it claims no new change (--looks)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One judgement of a table; `earlier` are the rows of the look before it."""

    number: int = 1
    stated: int = 1
    earlier: Mapping[RowKey, ComparisonRow] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.number < 1 or self.stated < 1:
            raise ValueError(
                f"looks are numbered from 1 and at least one is stated; got look {self.number}"
                f" of {self.stated}"
            )

    @property
    def share(self) -> float:
        """The share of the table's error rates that this look spends.

        The stated looks spend all of it together, and so do all looks after them.
        """
        return 1.0 / self.stated if self.number <= self.stated else 0.5**self._unstated

    @property
    def _unstated(self) -> int:
        return self.number - self.stated

    def rule(self, rule: Rule) -> Rule:
        """Return the rule for this look."""
        return replace(
            rule,
            alpha=rule.alpha * self.share,
            interval_alpha=rule.interval_alpha * self.share,
        )

    def admitted(self, row: ComparisonRow, key: RowKey) -> ComparisonRow:
        """Return the row, without a direction that this look may not claim.

        A row without boots in the previous look has not been examined before.
        """
        if self._unstated < 1 or not row.changed or self._is_new(key):
            return row
        before = self.earlier.get(key)
        if before is not None and _claim(before) == _claim(row):
            return row
        reason = NOT_STATED if row.reason is None else f"{NOT_STATED}; {row.reason}"
        return replace(row, verdict="unclear", reason=reason, more_boots=None)

    def _is_new(self, key: RowKey) -> bool:
        return not any(row.head.boots for (*_, arm), row in self.earlier.items() if arm == key[-1])


FIRST_LOOK: Final = Look()


def _claim(row: ComparisonRow) -> tuple[Verdict, int]:
    """Return the claimed direction; a changed metric without a better direction has a sign."""
    return row.verdict, 0 if row.change_pct is None else (row.change_pct > 0) - (row.change_pct < 0)


def keyed(row: ComparisonRow) -> RowKey:
    """Return the key of a row in `Look.earlier`."""
    return (*row.key, row.against, row.arm)
