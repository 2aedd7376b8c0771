"""Confirmation: fresh boots of the kernel before the step and of the one behind it, in turn. Only these make the printed effect."""

from __future__ import annotations

import math
from dataclasses import dataclass

from swingbot.core.bisect.evidence import Evidence
from swingbot.core.bisect.posterior import Posterior
from swingbot.core.bisect.state import Policy
from swingbot.core.stats.compare import BootRuns, RowVerdict, Rule, compare


@dataclass(frozen=True, slots=True)
class Fresh:
    """Confirmation boots of two neighbouring positions, in pairs of equal k."""

    left: int
    right: int
    pairs: int
    failed: int  # values of k at which one of the two gave nothing
    row: RowVerdict | None  # right against left; None without a pair

    @property
    def effect(self) -> float:
        return self.row.effect if self.row and self.row.effect is not None else 0.0


def fresh(ev: Evidence, left: int, right: int, post: Posterior, policy: Policy, *, paired: bool, min_effect_pct: float) -> Fresh:
    """Compare what confirmation boots there are. Their spread leans on that of all other boots: two pairs alone know too little of it."""
    sides = [{b.k: BootRuns(k=b.k, values=b.values) for b in ev.at(p, "confirm")} for p in (left, right)]
    ks = sorted(sides[0].keys() & sides[1].keys())
    failed = len({k for p, k in ev.failed if p in (left, right) and _is_confirm(ev, k)})
    if not ks:
        return Fresh(left, right, 0, failed, None)
    rule = Rule(
        min_effect_pct=min_effect_pct,
        paired=paired,
        alpha=policy.interval_alpha,
        prior_sd=math.sqrt(post.boot_var * (2.0 if paired else 1.0)),
        prior_df=post.df,
        form="ratio" if ev.ratio else "difference",
    )
    return Fresh(left, right, len(ks), failed, compare([sides[0][k] for k in ks], [sides[1][k] for k in ks], rule))


def confirm_requests(ev: Evidence, left: int, right: int, pairs: int) -> tuple[tuple[int, int], ...]:
    """(position, k) still missing for `pairs` pairs, alternating so that drift hits both sides alike; () if all are there or under way."""
    there = {(b.position, b.k) for b in ev.boots if b.phase == "confirm"} | {(p.position, p.k) for p in ev.pending if p.phase == "confirm"}
    broken = {k for p, k in ev.failed if p in (left, right)}
    ks = sorted({k for p, k in there if p in (left, right)} - broken)[:pairs]
    taken = {(b.position, b.k) for b in ev.boots} | {(p.position, p.k) for p in ev.pending}
    ks = [k for k in ks if all((p, k) in there or (p, k) not in taken for p in (left, right))]
    first = ev.next_k()
    ks += range(first, first + pairs - len(ks))
    wanted = [(p, k) for turn, k in enumerate(ks) for p in ((left, right) if turn % 2 == 0 else (right, left))]
    return tuple(want for want in wanted if want not in there)


def _is_confirm(ev: Evidence, k: int) -> bool:
    return all(b.k != k or b.phase == "confirm" for b in ev.boots)
