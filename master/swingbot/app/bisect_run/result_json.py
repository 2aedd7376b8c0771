"""Result of a bisection as JSON (docs/bisect-run.md); resolves searched merges. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from swingbot.app.bisect_run.bisector import MergeResult, RangeResult
from swingbot.app.bisect_run.commit_range import CommitRange
from swingbot.app.bisect_run.journal import BootResult
from swingbot.core.bisect.state import Conclusion, Culprit
from swingbot.core.bisect.thresholds import EXPLAINED_SHARE
from swingbot.core.text.numbers import count
from swingbot_jobs.language.better import Better

Facts = dict[str, Any]
_NAMED = ("culprit", "several", "credible_set")


def facts(result: RangeResult, booted: Sequence[BootResult], better: Better, journal: str) -> Facts:
    """All facts of a finished bisection. `seconds` is the sum of the durations of all boots."""
    conclusion, whole = result.conclusion, result.part.range
    status, culprits, notes = _resolved(result)
    single = culprits[0] if status == "culprit" else None
    change = single["change_pct"] if single else conclusion.change_pct
    interval = single["interval_pct"] if single else _listed(conclusion.interval_pct)
    if _dead_end(conclusion, whole, booted):
        status = "failed"
    members = _members(status, culprits, conclusion, whole)
    notes += _not_searched(result, [member["commit"] for member in members])
    candidates = _candidates(result)
    named = culprits or [row for row in candidates if row["probability"] > 0.5]
    notes += [
        f"{row['commit'][:12]} touches none of --paths"
        for row in named
        if whole.elsewhere(row["commit"])
    ]
    checked = _layout_checked(culprits, booted)
    if checked is False and status in ("several", "credible_set"):  # a culprit's reason says so
        notes.append("layout not checked: one build of each")
    unvaried = next((b.unvaried for b in booted if b.unvaried), None)
    notes += [f"layouts could not be varied: {unvaried}"] if unvaried else []
    return {
        "id": None,
        "status": status,
        "reason": "; ".join([whole.in_words(conclusion.reason), *notes]),
        "good": whole.shas[0],
        "bad": whole.shas[-1],
        "culprit": {"commit": single["commit"], "subject": single["subject"]} if single else None,
        "culprits": culprits,
        "suspect": _suspect(conclusion, whole, status),
        "members": members,
        "probability": single["probability"] if single else conclusion.probability,
        "change_pct": change,
        "interval_pct": interval,
        "better": better,
        "spread_ratio": conclusion.spread_ratio,
        "verdict": (
            "changed"
            if conclusion.spread_ratio is not None
            else verdict(change, better)
            if status in (*_NAMED, "creep") or conclusion.suspect is not None
            else None
        ),
        "boots": len(booted),
        "builds": len({b.control or b.sha for b in booted}),
        "runs": sum(len(b.values) for b in booted),
        "seconds": round(sum(b.seconds for b in booted), 3),
        "layout_checked": checked,
        "levels": _levels(result, culprits, booted),
        "candidates": candidates,
        "journal": journal,
    }


def _suspect(conclusion: Conclusion, whole: CommitRange, status: str) -> Facts | None:
    if conclusion.suspect is None or status == "failed":
        return None
    sha = whole.shas[conclusion.suspect]
    return {
        "commit": sha,
        "subject": whole.subject(sha),
        "probability": conclusion.probability,
        "settled_by": whole.in_words(conclusion.settled_by or ""),
    }


def verdict(change_pct: float | None, better: Better) -> str | None:
    if change_pct is None:
        return None
    return "worse" if (change_pct < 0) == (better == "higher") else "better"


def exit_status(answer: Facts) -> int:
    """Exit status for --exit-code: 3 worse, 4 unclear, 1 if an end was not measured, else 0."""
    if answer["status"] == "failed":
        return 1
    if answer.get("spread_ratio") is not None:
        return 3 if answer["status"] == "culprit" else 4
    if answer["status"] in ("culprit", "several"):
        return (
            3
            if any(
                verdict(c["change_pct"], answer["better"]) != "better" for c in answer["culprits"]
            )
            else 0
        )
    return 0 if answer["status"] == "not_reproduced" else 4


def _resolved(result: RangeResult) -> tuple[str, list[Facts], list[str]]:
    """Status, culprits and notes, with each searched merge replaced by the result of its branch."""
    conclusion, whole = result.conclusion, result.part.range
    status: str = conclusion.kind
    culprits: list[Facts] = []
    notes: list[str] = []
    for culprit in conclusion.culprits:
        resolved, note = _through(whole, _culprit(whole, culprit), result.entered)
        if status == "credible_set" and _explains(resolved, conclusion):
            resolved[0]["probability"] = conclusion.probability
            merge = whole.shas[culprit.idx][:12]
            return "culprit", resolved, [f"the branch of {merge} shows the change by itself", *note]
        if len(resolved) > 1 and status == "culprit":
            status = "credible_set"
        culprits += resolved
        notes += note
    return status, culprits, notes


def _not_searched(result: RangeResult, named: Sequence[str]) -> list[str]:
    """Say of which commits the merges among `named` consist whose branches were not searched."""
    chains = [result.part.range, *(e.part.range for e in result.entered)]
    searched = {e.merge for e in result.entered}
    notes = []
    for sha in named:
        chain = next((chain for chain in chains if sha in chain.shas[1:]), None)
        if chain is None or sha in searched or len(chain.commits[sha].parents) < 2:
            continue
        if brought := len(chain.brought(chain.shas.index(sha))) - 1:
            notes.append(
                f"{sha[:12]} is a merge of {count(brought, 'commit')}, where the change may be"
            )
    if notes and result.first_parent:
        notes.append("the same command without --first-parent searches merged branches")
    return notes


def _explains(resolved: Sequence[Facts], conclusion: Conclusion) -> bool:
    """Whether a merge is replaced by a commit of its branch with the change of the whole set."""
    if len(resolved) > 1 or not resolved[0]["merge"]:
        return False
    change, of_set = resolved[0]["change_pct"], conclusion.change_pct
    low, high = EXPLAINED_SHARE
    return bool(change and of_set) and low <= change / of_set <= high


def _through(
    whole: CommitRange, outer: Facts, entered: Sequence[MergeResult]
) -> tuple[list[Facts], list[str]]:
    """Culprits and notes that replace `outer`: itself, or the result of its branches."""
    inside = [e for e in entered if e.merge == outer["commit"]]
    merge = outer["commit"][:12]
    if not inside:
        return [outer], []
    last = inside[-1]
    conclusion, part = last.conclusion, last.part.range
    if conclusion.kind == "not_reproduced":
        return [outer], [
            f"{merge} is a merge whose branch does not show the change by itself: of what it adds,"
            " the merge itself is left"
        ]
    if conclusion.kind == "culprit":
        inner = _culprit(part, conclusion.culprits[0])
        inner["probability"] *= outer["probability"]
        inner["merge"] = outer["commit"]
        resolved, notes = _through(part, inner, [e for e in entered if e not in inside])
        return resolved, [f"merged by {merge}", *notes]
    members = [part.shas[i] for i in conclusion.members] or list(part.shas[1:])
    named = {c.idx: c for c in conclusion.candidates}
    index = {sha: i for i, sha in enumerate(part.shas)}
    share = [
        outer["probability"] * (named[index[sha]].probability if index[sha] in named else 0.0)
        for sha in members
    ]
    inner_set = [
        {
            **outer,
            "commit": sha,
            "subject": part.subject(sha),
            "probability": p,
            "merge": outer["commit"],
        }
        for sha, p in zip(members, share, strict=True)
    ]
    return [*inner_set, {**outer, "probability": max(0.0, outer["probability"] - sum(share))}], [
        f"merged by {merge}, whose branch gave: {part.in_words(conclusion.reason)}"
    ]


def _culprit(whole: CommitRange, culprit: Culprit) -> Facts:
    sha = whole.shas[culprit.idx]
    return {
        "commit": sha,
        "subject": whole.subject(sha),
        "probability": culprit.probability,
        "change_pct": culprit.change_pct,
        "interval_pct": _listed(culprit.interval_pct),
        "parent": whole.shas[culprit.parent_idx],
        "merge": None,
    }


def _listed(interval: tuple[float, float] | None) -> list[float] | None:
    return list(interval) if interval else None


def _members(
    status: str, culprits: Sequence[Facts], conclusion: Conclusion, whole: CommitRange
) -> list[Facts]:
    named = [{"commit": c["commit"], "subject": c["subject"]} for c in culprits]
    if status in ("culprit", "credible_set"):
        return named
    searched = {sha for c in culprits for sha in (c["commit"], c["merge"])}
    return named + [
        {"commit": sha, "subject": whole.subject(sha)}
        for sha in dict.fromkeys(whole.shas[i] for i in conclusion.members)
        if sha not in searched
    ]


def _layout_checked(culprits: Sequence[Facts], booted: Sequence[BootResult]) -> bool | None:
    """True if each culprit and its reference were also measured in another code layout.

    None if there is no culprit.
    """
    again = {b.sha for b in booted if b.layout and b.values and not (b.control or b.unvaried)}
    return all({c["commit"], c["parent"]} <= again for c in culprits) if culprits else None


def _levels(
    result: RangeResult, culprits: Sequence[Facts], booted: Sequence[BootResult]
) -> list[Facts]:
    """Return the mean level at both ends and at each culprit and its parent."""
    shas = [
        result.part.range.shas[0],
        *(sha for c in culprits for sha in (c["parent"], c["commit"])),
        result.part.range.shas[-1],
    ]
    means = {
        sha: [
            sum(b.values) / len(b.values)
            for b in booted
            if b.sha == sha and b.values and not b.control
        ]
        for sha in shas
    }
    return [
        {"commit": sha, "boots": len(m), "mean": sum(m) / len(m) if m else None}
        for sha, m in means.items()
    ]


def _candidates(result: RangeResult) -> list[Facts]:
    """Commits of the range; a searched merge is preceded by its branch, which shares its
    probability.
    """
    inside: dict[str, MergeResult] = {
        e.merge: e for e in result.entered if e.conclusion.kind != "not_reproduced"
    }

    def listed(whole: CommitRange, conclusion: Conclusion, share: float) -> list[Facts]:
        rows: list[Facts] = []
        for c in conclusion.candidates:
            sha, p = whole.shas[c.idx], share * c.probability
            inner = inside.get(sha)
            below = listed(inner.part.range, inner.conclusion, p) if inner else []
            remainder = max(0.0, p - sum(row["probability"] for row in below))
            rows += [
                *below,
                {
                    "commit": sha,
                    "subject": whole.subject(sha),
                    "probability": remainder,
                    "state": c.state,
                },
            ]
        return rows

    return listed(result.part.range, result.conclusion, 1.0)


def _dead_end(conclusion: Conclusion, whole: CommitRange, booted: Sequence[BootResult]) -> bool:
    """True if fewer than two commits of the range gave a value, so that there is no result."""
    gave = {b.sha for b in booted if b.values}
    return conclusion.kind == "inconclusive" and len(gave.intersection(whole.shas)) < 2


def spent(booted: Sequence[BootResult]) -> Counter[str]:
    """Number of boots by outcome."""
    return Counter(
        "value" if b.values else "untestable" if b.untestable else "failed" for b in booted
    )
