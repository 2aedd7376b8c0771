"""Probability of each commit and facts of each point of a bisection, for pages. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

import numpy as np

from swingbot.core.bisect.evidence.range_evidence import Evidence, Floats
from swingbot.core.bisect.posterior.assessment import Assessment, assess, phases, why_not
from swingbot.core.bisect.state import (
    Action,
    Belief,
    BisectionState,
    CandidateBelief,
    Conclude,
    Measure,
    PointBelief,
)
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.statuses import Phase
from swingbot_jobs import codec


def belief(state: BisectionState, policy: Policy | None = None) -> Belief:
    """Return the posterior of each commit and the measurements of each point, for pages."""
    case = assess(state, policy or Policy())
    post, ev = case.post, case.ev
    seen = phases(state)
    phase: Phase = next((p for p in ("confirm", "search") if p in seen), "ends")
    return Belief(
        candidates=candidates(case),
        p_none=suspicion(case)[1],
        points=tuple(_point(case, i) for i in range(len(state.points))),
        change_pct=ev.pct(post.effect) if post else None,
        good_level=ev.level(post.low) if post else None,
        bad_level=ev.level(post.low + post.effect) if post else None,
        phase=phase,
    )


def belief_json(
    current: Belief, state: BisectionState, policy: Policy, action: Action
) -> dict[str, Any]:
    """Return a belief and the resulting decision as JSON for pages.

    Probabilities have six digits and are in the order of the commits.
    """
    return {
        "posterior": [
            {"idx": c.idx, "probability": round(c.probability, 6), "state": c.state}
            for c in current.candidates
        ],
        "p_none": round(current.p_none, 6),
        "phase": current.phase,
        "why": action.conclusion.reason if isinstance(action, Conclude) else action.why,
        "next": [boot.to_json() for boot in action.requests] if isinstance(action, Measure) else [],
        "change_pct": current.change_pct,
        "levels": [current.good_level, current.bad_level],
        "noise": codec.plain(state.noise),
        "max_boots": policy.max_boots,
        "points": [asdict(point) for point in current.points],
    }


def suspicion(case: Assessment) -> tuple[Floats, float]:
    """Return P(step) by position and P(none), which sum to one; two steps have half the weight
    each.
    """
    if case.post is None:
        none = case.policy.prior_no_change if case.ev.last else 1.0
        return case.ev.mass * (1.0 - none), none
    sides = case.sides()
    if sides is None:
        return case.post.commit, case.post.none
    (left, left_none), (right, right_none) = (suspicion(part) for part in sides)
    both = np.zeros(case.ev.last + 1)
    both[: len(left)] += left / 2
    both[-len(right) :] += right / 2
    return both, (left_none + right_none) / 2


def candidates(case: Assessment) -> tuple[CandidateBelief, ...]:
    ev = case.ev
    per_position, _ = suspicion(case)
    return tuple(_candidate(ev, i, per_position) for i in range(1, len(case.state.points)))


def _candidate(ev: Evidence, idx: int, per_position: Floats) -> CandidateBelief:
    position = ev.position[idx]
    if ev.points[position] != idx:
        return CandidateBelief(idx=idx, probability=0.0, state="same")
    measured: Literal["measured", "candidate"] = "measured" if ev.at(position) else "candidate"
    return CandidateBelief(
        idx=idx,
        probability=float(per_position[position]),
        state=measured if ev.measurable[position] else "skipped",
    )


def _point(case: Assessment, idx: int) -> PointBelief:
    ev, point = case.ev, case.state.points[idx]
    own = [o for o in case.state.observations if o.idx == idx]
    shared = (
        ev.at(ev.position[idx])
        if point.same_as is not None or ev.points[ev.position[idx]] == idx
        else []
    )
    means = [float(np.mean(b.values)) for b in shared]
    failed = sum(1 for o in own if not o.values)
    unbootable = None if ev.measurable[ev.position[idx]] else why_not(case, ev.position[idx])
    return PointBelief(
        idx=idx,
        boots=len(means),
        runs=sum(len(b.values) for b in shared),
        failed=failed,
        mean=float(np.mean(means)) if means else None,
        skipped=point.skipped or unbootable,
    )
