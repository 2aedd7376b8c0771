"""Ends that cannot be measured: bisect between other commits, and say what is left out. Pure.

That the change is in none of the commits between, but beside them, is a hypothesis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from swingbot.app.bisect_run.commit_range import CommitRange
from swingbot.core.bisect.state import CandidateBelief, Conclusion
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.text.numbers import count

Ends = tuple[int, int]  # indices in the range; the good end first


def next_ends(can: Sequence[bool], alike: Ends | None) -> Ends | None:
    """Return the ends to bisect between; `can`: commits not known to be unmeasurable.

    An end moves inwards in steps that double. If the commits `alike` do not differ, it moves
    outwards again, to the middle of what was not tried. None: no two commits can be measured.
    """
    last = len(can) - 1
    good, bad = alike or (None, None)
    ends = _end(can, 0, last, good), _end(can, last, 0, bad)
    return ends if ends[0] < ends[1] else None


def _end(can: Sequence[bool], end: int, other: int, alike: int | None) -> int:
    outwards, length = (1, end - other) if end > other else (-1, other - end)
    if alike is not None:
        beyond = range(alike, end + outwards, outwards)
        failed = next((i for i in beyond if not can[i]), None)
        return end if failed is None else alike + int((failed - alike) / 2)
    steps = [0, *(min(2**n, length - 1) for n in range(length.bit_length()))]
    return next((end - outwards * n for n in steps if can[end - outwards * n]), other)


def with_outside(
    conclusion: Conclusion, ends: Ends, full: CommitRange, why: str, policy: Policy
) -> Conclusion:
    """Return what a conclusion between `ends` of the range `full` says about all of it.

    `why`: why the ends of `full` cannot be measured. Bayes: with p of a change between the ends, a
    share s of the prior weight there and a prior n of no change, a change there, one outside and
    none weigh s p, (1 - s) (1 - p) (1 - n) / n, and 1 - p.
    """
    good, bad = ends
    outside = [*range(1, good + 1), *range(bad + 1, len(full.shas))]
    none = policy.prior_no_change
    p = sum(c.probability for c in conclusion.candidates)
    s = sum(full.weights[good + 1 : bad + 1]) / sum(full.weights)
    beside = (1.0 - s) * (1.0 - p) * (1.0 - none) / none
    total = s * p + beside + 1.0 - p
    weight = beside / total / sum(full.weights[i] for i in outside)
    likely = (conclusion.probability or 0.0) * s / total
    changed = conclusion.kind != "not_reproduced"
    named = changed and likely >= policy.confidence
    within = f"{full.shas[good][:12]}..{full.shas[bad][:12]}"
    left_out = f"{why}; the {count(len(outside), 'commit')} outside {within} may hold"
    members = {*(i + good for i in conclusion.members), *(() if named else outside)}
    outer = [
        CandidateBelief(idx=i, probability=weight * full.weights[i], state="skipped")
        for i in outside
    ]
    inner = [
        replace(c, idx=c.idx + good, probability=c.probability * s / total)
        for c in conclusion.candidates
    ]
    culprits = [
        replace(
            c,
            idx=c.idx + good,
            parent_idx=c.parent_idx + good,
            probability=c.probability * s / total,
        )
        for c in conclusion.culprits
    ]
    return replace(
        conclusion,
        kind=conclusion.kind if named or conclusion.kind == "creep" else "inconclusive",
        reason=f"{conclusion.reason}; {left_out} another change"
        if changed
        else f"{left_out} the change: within it {conclusion.reason}",
        culprits=tuple(culprits) if named else (),
        members=tuple(sorted(members)),
        probability=likely + (0.0 if named else beside / total),
        change_pct=conclusion.change_pct if changed else None,
        interval_pct=conclusion.interval_pct if changed else None,
        candidates=tuple(sorted([*outer, *inner], key=lambda c: c.idx)),
    )
