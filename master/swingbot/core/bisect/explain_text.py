"""An explanation in sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from swingbot.core.bisect.explain import Explanation, Influence, WhatIf
from swingbot.core.bisect.state import BisectionState, Conclude, Measure
from swingbot.core.model.bisection import Observation

Duration = Callable[[float], str]
Commits = Sequence[tuple[str, str]]  # (commit, subject) by point


def told(
    found: Explanation, state: BisectionState, commits: Commits, unit: str, duration: Duration
) -> list[str]:
    """Paragraphs of a line each; those that begin with two blanks belong to the one before."""
    return [
        *_belief(found, commits),
        *_levels(found, state, unit),
        *_next(found, state, commits),
        *_influences(found.influences, commits, unit),
        *_minds(found.what_ifs, commits),
        *_rest(found, duration),
    ]


def name(commits: Commits, idx: int) -> str:
    commit, subject = commits[idx]
    return f"{commit[:12]} ({subject[:60]})"


def of_merge(
    merge: str, branch: str, status: str, culprit: Mapping[str, str] | None, reason: str | None
) -> str:
    """What the search of a merged branch, bisection `branch`, makes of the blame on the merge."""
    if status == "running":
        return f"the merge {merge[:12]} is blamed; {branch} searches the branch that it merged"
    if culprit is not None:
        return f"in the branch merged by {merge[:12]}: commit {culprit['commit'][:12]} ({culprit['subject']})"
    if status == "several":
        return f"in the branch merged by {merge[:12]}: more than one commit, {branch} names them"
    if status == "not_reproduced":
        return f"the merge {merge[:12]} itself: neither side alone shows it"
    return (
        f"the merge {merge[:12]}; its branch gave no single commit ({branch}: {reason or status})"
    )


def _belief(found: Explanation, commits: Commits) -> list[str]:
    ranked = sorted(
        (c for c in found.known.candidates if c.probability > 0),
        key=lambda c: (-c.probability, c.idx),
    )
    lines = [
        f"Belief: {found.bits_left:.1f} bits of doubt are left; no change at all has {_share(found.known.p_none)}."
    ]
    lines += [
        f"  {_share(c.probability)}  {name(commits, c.idx)}"
        + (f", {c.state}" if c.state == "skipped" else "")
        for c in ranked[:4]
    ]
    if len(ranked) > 4:
        lines.append(
            f"  {_share(sum(c.probability for c in ranked[4:]))}  the {len(ranked) - 4} others together"
        )
    return lines


def _levels(found: Explanation, state: BisectionState, unit: str) -> list[str]:
    known, noise, seen = found.known, state.noise, found.spreads
    if known.good_level is None or known.bad_level is None:
        lines = ["Levels: not known yet; both ends are measured first."]
    else:
        change = "" if known.change_pct is None else f", a step of {known.change_pct:+.2f} %"
        lines = [
            f"Levels: {known.good_level:.6g} before, {known.bad_level:.6g} behind it {unit}".rstrip()
            + f"{change}, if there is one step."
        ]
    expected = f"{_pct(noise.sd_run)} between runs of a boot, {_pct(noise.sd_boot)} between boots, {_pct(noise.sd_layout)} between builds that differ in layout alone"
    lines.append(f"Noise expected before any boot: {expected}.")
    if seen.run is not None or seen.boot is not None:
        parts = (
            [f"{_pct(seen.run)} between runs ({seen.boots} boots)"] if seen.run is not None else []
        )
        parts += (
            [f"{_pct(seen.boot)} between boots ({seen.kernels} kernels with more than one)"]
            if seen.boot is not None
            else []
        )
        paired = (
            "; that has in it the shift which the k-th boot gives to all kernels alike, and which the model takes out"
            if state.paired
            else ""
        )
        lines.append(f"Noise seen: {', '.join(parts)}{paired}.")
    return lines


def _next(found: Explanation, state: BisectionState, commits: Commits) -> list[str]:
    action, under_way = (
        found.action,
        [f"boot k={f.k} of {name(commits, f.idx)}" for f in state.in_flight],
    )
    if isinstance(action, Conclude):
        return [f"It is over: {_stop(action.conclusion.reason)}"]
    if isinstance(action, Measure):
        lines = [f"Next ({action.phase}): {_stop(action.why)}"]
        lines += [
            f"  boot k={r.k} of {name(commits, r.idx)}"
            + (f", layout {r.layout}" if r.layout else "")
            for r in action.requests
        ]
    else:
        lines = [f"It waits: {_stop(action.why)}"]
    return lines + [f"  under way: {words}" for words in under_way]


def _influences(influences: Sequence[Influence], commits: Commits, unit: str) -> list[str]:
    if not influences:
        return []
    return [
        "Boots that changed the belief most (bits: how far it moved):",
        *(
            f"  {i.bits:5.2f}  {_boots(i.boots, commits, unit)}: {_shift(i, commits)}"
            for i in influences
        ),
    ]


def _boots(boots: Sequence[Observation], commits: Commits, unit: str) -> str:
    if len(boots) > 1:
        return f"{len(boots)} boots of {len({o.idx for o in boots})} kernels together"
    (o,) = boots
    value = f"{fmean(o.values):.6g} {unit}".rstrip() if o.values else f"no value, {o.skip}"
    return f"boot k={o.k} of {name(commits, o.idx)}, {value}"


def _shift(influence: Influence, commits: Commits) -> str:
    if (
        influence.before is not None
        and influence.after is not None
        and influence.before[0] == influence.after[0]
    ):
        return f"the first suspect {commits[influence.after[0]][0][:12]} went from {_share(influence.before[1])} to {_share(influence.after[1])}"
    return f"the first suspect was {_suspect(influence.before, commits)}, then {_suspect(influence.after, commits)}"


def _suspect(leader: tuple[int, float] | None, commits: Commits) -> str:
    return "none" if leader is None else f"{commits[leader[0]][0][:12]} with {_share(leader[1])}"


def _minds(what_ifs: Sequence[WhatIf], commits: Commits) -> list[str]:
    if not what_ifs:
        return []
    lines = ["What would change the mind:"]
    for found in what_ifs:
        boots = "one boot" if found.boots == 1 else f"{found.boots} boots"
        lines.append(
            f"  {boots} of {name(commits, found.idx)} like the {found.like} end: first suspect then {_suspect(found.leader, commits)}"
        )
    return lines


def _rest(found: Explanation, duration: Duration) -> list[str]:
    if isinstance(found.action, Conclude):
        return []
    if found.forecast is None:
        return ["How much is left cannot be said before both ends have answered."]
    left = found.forecast
    return [
        f"Left, if boots come out as believed: about {left.boots:.0f} boots and {left.builds:.0f} kernel builds, {duration(left.seconds)} of work."
    ]


def _stop(sentence: str) -> str:
    return sentence if sentence.endswith(("?", ".", "!")) else f"{sentence}."


def _share(p: float) -> str:
    return ">99.9 %" if 0.9995 < p < 1 else "<0.1 %" if 0 < p < 0.0005 else f"{100 * p:.1f} %"


def _pct(sd: float | None) -> str:
    return "unknown" if sd is None else f"{100 * sd:.2g} %"
