"""Compare the rows of a table simultaneously: N kernels, one metric of one unit job on a testbox.

If each row of a table of 40 equal kernels is judged alone, 18 % of tables claim a change. Here all
deciding intervals hold simultaneously except in at most `rule.alpha` of tables, and the printed
ones except in `rule.interval_alpha`. Each row is still judged by `compare`, with its treatment of
outliers, modes, drift and lost runs. Arms that agree in their spread share it.
Formulas and error rates: docs/statistics.md, "Tables of N kernels".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.stats.compare import compare
from swingbot.core.stats.pool import Pool, VarianceEstimate, parts_of_arms, parts_of_rows, pool
from swingbot.core.stats.rows import Basis, BootRuns, Pooled, Rule
from swingbot.core.stats.simultaneous import Edge as Pair
from swingbot.core.stats.simultaneous import (
    forest_of,
    independent_rows,
    information,
    own_share,
    uses_of,
)
from swingbot.core.thresholds import GONE_SHARE

Arms = Sequence[Sequence[BootRuns]]

__all__ = ["Recovery", "compare_family", "recoveries"]


def compare_family(
    arms: Arms,
    pairs: Sequence[Pair],
    rule: Rule,
    *,
    invalid: Mapping[int, str] | None = None,
    absent: Mapping[int, str] | None = None,
) -> list[ComparisonRow]:
    """Judge each (reference, row) pair of arms; returns one ComparisonRow per pair, in order.

    `invalid` maps the index of a pair to a known objection, such as differing facts. The pair
    still counts as a row of the family.
    `absent` maps pairs that were known to be unmeasurable before any boot, such as a kernel that
    does not build, to the reason. They are invalid and do not count as rows.
    A single row is judged exactly as `compare` does. Raises ValueError if a pair does not name two
    arms, a reason is for a row that does not exist, or an arm has the same k twice.
    """
    invalid, absent = invalid or {}, absent or {}
    _check(arms, pairs, [*invalid, *absent])
    counted = {i: pair for i, pair in enumerate(pairs) if i not in absent}
    table = FamilyTable(arms, counted, rule, uses=uses_of(counted.values()))

    def judged(i: int, pair: Pair) -> ComparisonRow:
        why = "; ".join(w for w in (absent.get(i), invalid.get(i)) if w) or None
        its_rule = table.rule_of((i,), pair) if i in counted else rule
        return compare(arms[pair[0]], arms[pair[1]], its_rule, invalid=why)

    return [judged(i, pair) for i, pair in enumerate(pairs)]


def _check(arms: Arms, pairs: Sequence[Pair], named: Sequence[int]) -> None:
    for pair in pairs:
        if pair[0] == pair[1] or not all(0 <= arm < len(arms) for arm in pair):
            raise ValueError(
                f"a row compares two different arms out of {len(arms)}, numbered from 0; got {pair}"
            )
    if unknown := [i for i in named if not 0 <= i < len(pairs)]:
        raise ValueError(
            f"row {unknown[0]} does not exist; the {len(pairs)} rows are numbered from 0"
        )


@dataclass(frozen=True, slots=True, eq=False)
class FamilyTable:
    """The rows that count and their shared spreads; each basis is pooled once."""

    arms: Arms
    pairs: Mapping[int, Pair]
    rule: Rule
    comparisons: int = 0  # simultaneous comparisons; 0: the number of pairs
    uses: Mapping[int, int] = field(default_factory=dict)  # rows of each arm
    _pools: dict[Basis, Pool | None] = field(default_factory=dict)
    _pooled: dict[Basis, Pooled | None] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return self.comparisons or len(self.pairs)

    def rule_of(self, rows: Sequence[int], pair: Pair) -> Rule:
        """Return the rule for a pair of arms connected by `rows`.

        Findings that many rows would show by chance are shown as rarely as in a single row.
        """
        if self.rows < 2:
            return self.rule
        return replace(
            self.rule,
            family=_FamilyRow(self, frozenset(rows), frozenset(pair), self._most_uses(pair)),
            spread_change_p=self.rule.spread_change_p / self.rows,
            trend_note_alpha=self.rule.trend_note_alpha / self.rows,
        )

    def _most_uses(self, pair: Pair) -> int:
        if self.comparisons:  # between any two arms
            return len(self.pairs)
        return max(self.uses[arm] for arm in pair)

    def pool(self, basis: Basis) -> Pool | None:
        if basis not in self._pools:
            self._pools[basis] = pool(self._parts(basis))
        return self._pools[basis]

    def pooled(self, basis: Basis) -> Pooled | None:
        """Return the pooled spread for the whole table."""
        if basis not in self._pooled:
            pool = self.pool(basis)
            self._pooled[basis] = None if pool is None else self._shared(pool, basis)
        return self._pooled[basis]

    def _parts(self, basis: Basis) -> dict[int, VarianceEstimate]:
        if basis.pairs:
            sides = {i: (self.arms[a], self.arms[b]) for i, (a, b) in self.pairs.items()}
            return parts_of_rows(sides, self.rule, basis)
        used = sorted({arm for pair in self.pairs.values() for arm in pair})
        return parts_of_arms({arm: self.arms[arm] for arm in used}, basis)

    def _shared(self, pool: Pool, basis: Basis) -> Pooled:
        if basis.pairs:
            df = pool.df * information([self.pairs[i] for i in pool.members])
            return Pooled(pool.variance, df, (float(self.rows), float(self.rows)), 1.0)
        return Pooled(pool.variance, pool.df, self._independent(pool.df, basis), 1.0)

    def _independent(self, df: float, basis: Basis) -> tuple[float, float]:
        """Exact for a complete table with equal numbers of boots; otherwise all rows count."""
        pairs = list(self.pairs.values())
        boots = {sum(1 for b in self.arms[arm] if b.values) for pair in pairs for arm in pair}
        exact = len(boots) == 1 and not basis.trimmed and not self.comparisons
        forest = forest_of(pairs) if exact else None
        at_alpha, shown = (
            independent_rows(alpha, forest, self.rows, df)
            for alpha in (self.rule.alpha, self.rule.interval_alpha)
        )
        return at_alpha, shown


@dataclass(frozen=True, slots=True)
class _FamilyRow:
    """The family as seen by one row, which shares the spread of the rows it agrees with."""

    table: FamilyTable
    through: frozenset[int]
    arms: frozenset[int]
    uses: int  # rows of the arm that is in more rows

    @property
    def rows(self) -> int:
        return self.table.rows

    def pooled(self, basis: Basis) -> Pooled | None:
        pool = self.table.pool(basis)
        mine = self.through if basis.pairs else self.arms
        pooled = self.table.pooled(basis) if pool and mine <= pool.members else None
        return pooled and replace(pooled, own_share=own_share(self.rows, self.uses))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """A change in one row and a later row that reverts it, by index."""

    change: int
    back: int
    shown: bool  # True: no change above the minimum effect remains; False: less than half remains
    row: ComparisonRow  # from before the change to after its recovery
    part: float | None = None  # share of the change that is reverted, where a rest is shown


def recoveries(
    arms: Arms, pairs: Sequence[Pair], rows: Sequence[ComparisonRow], rule: Rule
) -> list[Recovery]:
    """Find changes that a later patch reverts, in a table whose reference is the row above.

    `pairs` and `rows` are the input and output of `compare_family`. For each row with a direction,
    return the first later row of the opposite direction such that the remaining change is either
    shown to be none, or may be none and is at most GONE_SHARE of the change. The remaining change
    is compared at `rule.alpha` over all row pairs, so that at most `rule.alpha` of tables have a
    wrong mark. Raises ValueError if `rows` do not belong to `pairs`.
    """
    if len(pairs) != len(rows):
        raise ValueError(f"{len(rows)} rows do not belong to {len(pairs)} pairs")
    _check(arms, pairs, [])
    measured = {i: p for i, p in enumerate(pairs) if rows[i].effect is not None}
    table = FamilyTable(arms, measured, rule, comparisons=math.comb(len(pairs), 2))
    return [
        recovery
        for i, row in enumerate(rows)
        if row.changed and (recovery := _taken_back(i, table, rows)) is not None
    ]


def _taken_back(i: int, table: FamilyTable, rows: Sequence[ComparisonRow]) -> Recovery | None:
    for j in range(i + 1, len(rows)):
        if not (rows[j].changed and _opposite(rows[i], rows[j])):
            continue
        before, after = table.pairs[i][0], table.pairs[j][1]
        if before == after:
            continue
        rest = compare(
            table.arms[before], table.arms[after], table.rule_of((i, j), (before, after))
        )
        if rest.verdict == "same" or _may_be_gone(rows[i], rest, table.rule.alpha):
            return Recovery(
                change=i,
                back=j,
                shown=rest.verdict == "same",
                row=rest,
                part=_part(rows[i], rest, table.rule.alpha),
            )
    return None


def _part(change: ComparisonRow, left: ComparisonRow, alpha: float) -> float | None:
    """Return the share of a change that is reverted; None if nothing of it is shown to be left.

    A rest below the minimum effect is "same", and still a rest.
    """
    if not change.effect or left.effect is None or left.p is None or left.p >= alpha:
        return None
    return 1.0 - left.effect / change.effect


def _opposite(one: ComparisonRow, other: ComparisonRow) -> bool:
    return one.effect is not None and other.effect is not None and one.effect * other.effect < 0


def _may_be_gone(change: ComparisonRow, left: ComparisonRow, alpha: float) -> bool:
    if change.effect is None or left.effect is None or left.p is None:
        return False
    open_question = left.verdict == "unclear" and left.p >= alpha
    return open_question and abs(left.effect) <= GONE_SHARE * abs(change.effect)
