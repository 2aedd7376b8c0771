"""Fresh boots of the kernel before a suspected step and of the one behind it, in turn: what they
show, and which are missing.

Only these make the printed effect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from scipy.special import ndtri

from swingbot.core.bisect.evidence.range_evidence import Evidence
from swingbot.core.bisect.posterior.assessment import Assessment
from swingbot.core.bisect.posterior.step_posterior import in_first_mode, wild_on_both_sides
from swingbot.core.bisect.thresholds import SLOW_PATH_PERHAPS
from swingbot.core.model.bisection import WantedBoot
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.stats.compare import BootRuns, Rule, compare


@dataclass(frozen=True, slots=True)
class ConfirmationBoots:
    """Confirmation boots of two neighbouring positions, in pairs of equal k."""

    left: int
    right: int
    pairs: int
    failed: int  # values of k at which one of the two gave nothing
    # pairs left out because a boot of them is wild, or because its boots are of two testboxes: they
    # say nothing about the size of the step
    odd: int
    row: ComparisonRow | None  # right against left; None without a pair
    # whether the values differ as printed: rounding may hide the size of a step, not its direction
    differ: bool = True
    # half the width of the interval that no number of boots of the same images narrows
    floor: float = 0.0
    # each side repeats to the last digit, so that another boot says nothing
    repeats: bool = False

    @property
    def effect(self) -> float:
        return self.row.effect if self.row and self.row.effect is not None else 0.0


def fresh(case: Assessment, left: int, right: int) -> ConfirmationBoots:
    """Compare what confirmation boots there are.

    Their spread leans on that of all other boots: two pairs alone know too little of it. If perhaps
    the step changes a share of the boots only, none is left out and the spread includes that.
    """
    ev, policy, post, paired = case.ev, case.policy, case.posterior, case.state.paired
    path = post.slow_path
    shared = path is not None and path.unit == "boot" and path.p > SLOW_PATH_PERHAPS
    modes = path.spread if path is not None and shared else 0.0
    one_mode = ev.boots if shared else in_first_mode(ev, post)
    boots = list(zip(ev.boot_positions, one_mode, strict=True))
    sides = [
        {
            b.k: BootRuns(k=b.k, values=b.values)
            for position, b in boots
            if position == p and b.phase == "confirm"
        }
        for p in (left, right)
    ]
    both = sorted(sides[0].keys() & sides[1].keys())
    where = {(position, b.k): b.testbox for position, b in boots if b.phase == "confirm"}
    same = [k for k in both if where[left, k] == where[right, k]]
    wild = set() if shared else wild_on_both_sides(ev, post)
    ks = [k for k in same if not {(left, k), (right, k)} & wild]
    if len(same) - len(ks) > policy.max_confirm:  # a testbox like that: leave nothing out
        ks = same
    layouts = len({b.layout for p in (left, right) for b in ev.at(p, "confirm")})
    failed = len({k for p, k in ev.failed if p in (left, right) and _is_confirm(ev, k)})
    if not ks:
        return ConfirmationBoots(left, right, 0, failed, len(both), None)
    rule = Rule(
        min_effect_pct=case.state.min_effect_pct,
        paired=paired,
        alpha=policy.interval_alpha,
        prior_sd=math.sqrt((post.boot_var + modes**2) * (2.0 if paired else 1.0)),
        prior_df=case.spread_df,
        layout=post.layout_if_images_are_even() / math.sqrt(max(layouts, 1)),
        form="ratio" if ev.ratio else "difference",
        unimodal=True,  # modes are in the model that named these two
        robust=not shared,
    )
    good, bad = ([side[k] for k in ks] for side in sides)
    row = compare(good, bad, rule)
    differ = not _holds_zero(row) or not _holds_zero(
        compare(good, bad, replace(rule, rounding=False))
    )
    repeats = len(ks) > 1 and all(len({boot.values for boot in side}) == 1 for side in (good, bad))
    floor = math.sqrt(2.0) * rule.layout * float(ndtri(1.0 - policy.interval_alpha / 2.0))
    return ConfirmationBoots(
        left, right, len(ks), failed, len(both) - len(ks), row, differ, floor, repeats
    )


def _holds_zero(row: ComparisonRow) -> bool:
    return row.interval_pct is not None and row.interval_pct[0] <= 0.0 <= row.interval_pct[1]


def missing_boots(
    ev: Evidence, left: int, right: int, pairs: int, *, layouts: bool
) -> tuple[WantedBoot, ...]:
    """Boots still missing for `pairs` pairs, alternating so that drift hits both sides alike; () if
    all are there or under way. With `layouts` each pair is of another build of the same two
    commits.
    """
    layouts_of = {ev.key(b): b.layout for b in ev.asked if b.phase == "confirm"}
    broken = {k for p, k in ev.failed if p in (left, right)}
    taken = {ev.key(b) for b in ev.asked}
    # some with another neighbour, when that was the suspect
    begun = sorted({k for p, k in layouts_of if p in (left, right)} - broken)
    whole = [k for k in begun if (left, k) in layouts_of and (right, k) in layouts_of]
    half = [
        k
        for k in begun
        if k not in whole
        and all((p, k) in layouts_of or (p, k) not in taken for p in (left, right))
    ]
    ks = sorted((whole + half)[:pairs])
    first = ev.next_k()
    ks += range(first, first + pairs - len(ks))
    wanted = []
    for turn, k in enumerate(ks):
        layout = next(
            (layouts_of[p, k] for p in (left, right) if (p, k) in layouts_of),
            turn if layouts else 0,
        )
        wanted += [
            WantedBoot(ev.points[p], k, "confirm", layout)
            for p in ((left, right) if turn % 2 == 0 else (right, left))
            if (p, k) not in layouts_of
        ]
    return tuple(wanted)


def _is_confirm(ev: Evidence, k: int) -> bool:
    return all(b.k != k or b.phase == "confirm" for b in ev.boots)
