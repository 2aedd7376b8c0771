"""The answer of `swingbot bisect run` states each fact once, and only what was found."""

from __future__ import annotations

import re
from typing import Any

import pytest

from swingbot.app.bisect_run import output, result_json
from swingbot.app.bisect_run.bisector import LinearRange, RangeResult
from swingbot.app.bisect_run.commit_range import CommitRange, RangeCommit
from swingbot.app.bisect_run.journal import BootResult
from swingbot.core.bisect.state import Conclusion, Culprit

ONE = "1" * 40


def answer(**more: Any) -> str:
    nothing = ("suspect", "change_pct", "interval_pct", "spread_ratio", "verdict", "probability")
    facts: dict[str, Any] = dict.fromkeys((*nothing, "answered_before", "culprit"))
    facts |= {"status": "inconclusive", "reason": "x", "boots": 1, "builds": 1, "seconds": 1.0}
    facts |= {key: [] for key in ("candidates", "culprits", "members", "cmd_changed")}
    facts |= {"journal": "log"} | more
    return output.answer(facts, "", ["x"], [], checkout=False)


def line(said: str, key: str) -> str | None:
    rows = (row.split(maxsplit=1) for row in said.splitlines() if row)
    return next((row[1] for row in rows if row[0] == key), None)


def test_a_suspect_has_one_probability() -> None:
    members = [{"commit": ONE, "subject": "a"}]
    said = answer(
        members=members,
        candidates=[members[0] | {"probability": 0.943, "state": "open"}],
        suspect=members[0] | {"probability": 0.89, "settled_by": "more"},
        probability=0.89,
    )
    assert f"{ONE}   89.0 %  a" in said.splitlines()
    assert line(said, "probability") == "0.890"


@pytest.mark.parametrize(
    ("verdict", "interval", "said"),
    [
        (None, (-8.4, 0.6), "-4 % (95 % interval -8.4 .. +0.6 %)"),
        ("worse", None, "-4 % (worse)"),
        (None, None, "-4 %"),
    ],
)
def test_a_change_without_a_verdict_or_interval_has_none(
    verdict: str | None, interval: tuple[float, float] | None, said: str
) -> None:
    assert line(answer(change_pct=-4.0, verdict=verdict, interval_pct=interval), "change") == said


@pytest.mark.parametrize("interval", [None, (-1.0, 2.0)])
def test_where_only_the_spread_changes_no_change_of_the_mean_is_printed(
    interval: tuple[float, float] | None,
) -> None:
    said = answer(change_pct=0.4, interval_pct=interval, spread_ratio=3.1, verdict="changed")
    assert line(said, "change") is None
    assert line(said, "spread") == "3.1 times as large between boots"
    said = answer(change_pct=-4.0, interval_pct=(-6, -2), spread_ratio=3.1, verdict="changed")
    assert line(said, "change") == "-4 % (changed, 95 % interval -6 .. -2 %)"


def test_one_boot_is_no_boots() -> None:
    assert str(line(answer(), "cost")).startswith("1 boot of 1 commit,")


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("commit 1 -9.9 %; one of 2, 3 +6.1 %", "commit 1a1a -9.9 %; one of 2a2a, 3a3a +6.1 %"),
        ("one of 2, 3, 3, 1; commit 3: x", "one of 2a2a, 3a3a, 1a1a; commit 3a3a: x"),
        ("one of 3 commits; from commit 1 to commit 2", None),
        ("commit 99 of a kernel", "commit 99 of a commit"),
    ],
)
def test_commits_have_ids_in_a_reason(reason: str, said: str | None) -> None:
    shas = tuple(f"{i}a" * 20 for i in range(4))
    whole = CommitRange(shas, (0.0, 1.0, 1.0, 1.0), {s: RangeCommit(s, (), "") for s in shas})
    if said is None:
        said = "one of 3 commits; from commit 1a1a to commit 2a2a"
    assert re.sub(r"(\da){6}", r"\1\1", whole.in_words(reason)) == said


def test_one_commit_of_several_is_counted_as_one() -> None:
    members = [{"commit": c * 40, "subject": c} for c in "123"]
    facts = [m | {"probability": 0.99, "change_pct": -5.0, "parent": ONE} for m in members]
    named = {"status": "several", "members": members, "change_pct": None}
    first = answer(**named, culprits=facts[:1]).splitlines()[0]
    assert first == "1 commit changed the value, and one of the others:"
    first = answer(**named, culprits=facts).splitlines()[0]
    assert first == "3 commits changed the value:"


def test_several_lists_the_commits_that_are_not_certain() -> None:
    shas = tuple(f"{i}a" * 20 for i in range(5))
    whole = CommitRange(shas, (0.0,) + (1.0,) * 4, {s: RangeCommit(s, (), "") for s in shas})
    culprit = Culprit(
        idx=4, parent_idx=3, probability=0.995, change_pct=4.0, interval_pct=(3.0, 5.0)
    )
    conclusion = Conclusion(
        kind="several",
        reason="2 changes in the range, each confirmed: one of 1, 2 -5.0 %; commit 4 +4.0 %",
        culprits=(culprit,),
        members=(1, 2, 4),
        probability=0.99,
    )
    ended = RangeResult(LinearRange("", whole), conclusion)
    boots = [a_boot(sha) for sha in shas]
    facts = result_json.facts(ended, boots, "higher", "log")
    assert [c["commit"] for c in facts["members"]] == [shas[4], shas[1], shas[2]]
    assert facts["reason"].endswith("; layout not checked: one build of each")
    said = output.answer(
        facts | {"answered_before": None, "cmd_changed": []}, "", ["x"], boots, checkout=False
    )
    assert said.splitlines()[0] == "1 commit changed the value, and one of the others:"


def a_boot(sha: str) -> BootResult:
    return BootResult(part="", sha=sha, k=0, phase="search", values=(1.0,), at=0.0, seconds=1.0)
