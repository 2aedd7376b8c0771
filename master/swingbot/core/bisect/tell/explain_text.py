"""Explanations of a bisection as text."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from swingbot.core.bisect.state import BisectionState, Conclude, Measure
from swingbot.core.model.bisection import Observation
from swingbot.core.model.documents import NamedCommit
from swingbot.core.text.numbers import two_digits

if TYPE_CHECKING:  # needs numpy and scipy; pages and lists show sentences without them
    from swingbot.core.bisect.tell.explain import Explanation, Influence, WhatIf

Commits = Sequence[tuple[str, str]]  # (commit, subject) by point


def paragraphs(
    explanation: Explanation, state: BisectionState, commits: Commits, unit: str
) -> list[str]:
    """Return the lines of the explanation; a line indented by two spaces continues the previous
    item.
    """
    return [
        *_belief(explanation, commits),
        *_levels(explanation, state, unit),
        *_next(explanation, state, commits),
        *_influences(explanation.influences, commits, unit),
        *_what_ifs(explanation.what_ifs, commits),
    ]


def name(commits: Commits, idx: int) -> str:
    commit, subject = commits[idx]
    return f"{commit[:12]} ({subject[:60]})"


def of_merge(
    merge: str, branch: str, status: str, culprit: NamedCommit | None, reason: str | None
) -> str:
    """Describe what bisection `branch`, which searches a merged branch, says about the merge."""
    if status == "running":
        return f"the culprit is merge {merge[:12]}; {branch} searches the merged branch"
    if culprit is not None:
        return (
            f"in the branch merged by {merge[:12]}: commit {culprit['commit'][:12]}"
            f" ({culprit['subject']})"
        )
    if status == "several":
        return f"in the branch merged by {merge[:12]}: more than one commit, listed by {branch}"
    if status == "not_reproduced":
        return f"the merge {merge[:12]} itself: neither side alone shows the change"
    return f"the merge {merge[:12]}; no single commit in its branch ({branch}: {reason or status})"


def _belief(explanation: Explanation, commits: Commits) -> list[str]:
    ranked = sorted(
        (c for c in explanation.belief.candidates if c.probability > 0),
        key=lambda c: (-c.probability, c.idx),
    )
    lines = [
        (
            f"Belief: {explanation.bits_left:.1f} bits of uncertainty remain; P(no change) ="
            f" {_share(explanation.belief.p_none)}."
        )
    ]
    lines += [
        f"  {_share(c.probability)}  {name(commits, c.idx)}"
        + (f", {c.state}" if c.state == "skipped" else "")
        for c in ranked[:4]
    ]
    if len(ranked) > 4:
        lines.append(
            f"  {_share(sum(c.probability for c in ranked[4:]))}  the other {len(ranked) - 4}"
            " commits together"
        )
    return lines


def _levels(explanation: Explanation, state: BisectionState, unit: str) -> list[str]:
    belief, noise, seen = explanation.belief, state.noise, explanation.spreads
    if belief.good_level is None or belief.bad_level is None:
        lines = ["Levels: unknown until both ends are measured."]
    else:
        change = "" if belief.change_pct is None else f", a step of {belief.change_pct:+.2f} %"
        lines = [
            (
                f"Levels: {belief.good_level:.6g} before, {belief.bad_level:.6g} after the step"
                f" {unit}"
            ).rstrip()
            + f"{change}, if there is one step."
        ]
    expected = (
        f"{_pct(noise.sd_run)} between runs of a boot, {_pct(noise.sd_boot)} between boots,"
        f" {_pct(noise.sd_layout)} between builds that differ only in layout"
    )
    lines.append(f"Expected noise: {expected}.")
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
            (
                "; this includes the common shift of the k-th boot of all kernels, which the"
                " model removes"
            )
            if state.paired
            else ""
        )
        lines.append(f"Observed noise: {', '.join(parts)}{paired}.")
    return lines


def _next(explanation: Explanation, state: BisectionState, commits: Commits) -> list[str]:
    action, under_way = (
        explanation.action,
        [f"boot k={f.k} of {name(commits, f.idx)}" for f in state.in_flight],
    )
    if isinstance(action, Conclude):
        return [f"Finished: {_stop(action.conclusion.reason)}"]
    if isinstance(action, Measure):
        lines = [f"Next ({action.phase}): {_stop(action.why)}"]
        lines += [
            f"  boot k={r.k} of {name(commits, r.idx)}"
            + (f", layout {r.layout}" if r.layout else "")
            for r in action.requests
        ]
    else:
        lines = [f"Waiting: {_stop(action.why)}"]
    return lines + [f"  under way: {boot}" for boot in under_way]


def _influences(influences: Sequence[Influence], commits: Commits, unit: str) -> list[str]:
    if not influences:
        return []
    return [
        "Boots that changed the belief most (in bits):",
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
        return (
            f"the first suspect {commits[influence.after[0]][0][:12]} went from"
            f" {_share(influence.before[1])} to {_share(influence.after[1])}"
        )
    return (
        f"the first suspect was {_suspect(influence.before, commits)}, then"
        f" {_suspect(influence.after, commits)}"
    )


def _suspect(leader: tuple[int, float] | None, commits: Commits) -> str:
    return "none" if leader is None else f"{commits[leader[0]][0][:12]} with {_share(leader[1])}"


def _what_ifs(what_ifs: Sequence[WhatIf], commits: Commits) -> list[str]:
    if not what_ifs:
        return []
    lines = ["What would change the belief:"]
    for what_if in what_ifs:
        boots = "one boot" if what_if.boots == 1 else f"{what_if.boots} boots"
        lines.append(
            f"  {boots} of {name(commits, what_if.idx)} like the {what_if.like} end: the"
            f" first suspect would be {_suspect(what_if.leader, commits)}"
        )
    return lines


def _stop(sentence: str) -> str:
    return sentence if sentence.endswith(("?", ".", "!")) else f"{sentence}."


def _share(p: float) -> str:
    return ">99.9 %" if 0.9995 < p < 1 else "<0.1 %" if 0 < p < 0.0005 else f"{100 * p:.1f} %"


def _pct(sd: float | None) -> str:
    return "unknown" if sd is None else f"{two_digits(100 * sd)} %"
