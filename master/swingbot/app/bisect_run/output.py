"""Text output: progress on stderr, the answer on stdout at the end."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from swingbot.app.bisect_run.bisector import Bisector, LinearRange, ProgressEvent
from swingbot.app.bisect_run.journal import BootRequest, BootResult
from swingbot.app.bisect_run.result_json import Facts, spent
from swingbot.core.bisect.posterior.belief import belief
from swingbot.core.model.conclusion import same_mean
from swingbot.core.plan.remaining_boots import boots_left
from swingbot.core.text.numbers import count, duration, short, two_digits

_BAR = 20
_SHOWN = 3  # most likely commits in a progress line


def teller(write: Callable[[str], None]) -> Callable[[ProgressEvent, Bisector], None]:
    """Return a listener that writes progress, one or two lines per boot."""

    def tell(event: ProgressEvent, bisector: Bisector) -> None:
        if event.kind == "note":
            write(event.why)
        elif event.asked is not None:
            part, sha = event.part, event.asked.sha
            write(
                f"boot {len(bisector.journal.booted) + 1 + len(bisector.lab.under_way)}: {sha[:12]}"
                f" {_place(part, sha)}{_image(event.asked)} {part.range.subject(sha)[:50]}"
            )
        elif event.booted is not None:
            write(
                f"  {_boot_text(event.booted)}"
                + (f" ({event.warning})" if event.warning and event.booted.values else "")
            )
            write(f"  {_belief(event.part, bisector)}")

    return tell


def _place(part: LinearRange, sha: str) -> str:
    place, last = part.range.shas.index(sha), len(part.range.shas) - 1
    return "(good end)" if place == 0 else "(bad end)" if place == last else f"({place} of {last})"


def _image(asked: BootRequest) -> str:
    if asked.control:
        return f" as {asked.control[:12]}"
    return f" layout {asked.layout}" if asked.layout else ""


def _boot_text(boot: BootResult) -> str:
    took = f"in {boot.seconds:.3g} s" if boot.seconds < 60 else f"in {duration(boot.seconds)}"
    if not boot.values:
        return f"no value: {boot.untestable or boot.failed}, {took}"
    shown = " ".join(short(v) for v in boot.values[:6]) + (
        f" ... {len(boot.values)} runs" if len(boot.values) > 6 else ""
    )
    mean = f", mean {short(sum(boot.values) / len(boot.values))}" if len(boot.values) > 1 else ""
    return f"{shown}{mean}, {took}"


def _belief(part: LinearRange, bisector: Bisector) -> str:
    state, policy = bisector.state(part), bisector.policy(part)
    known = belief(state, policy)
    if known.change_pct is None:
        return "measuring both ends first"
    best = sorted(known.candidates, key=lambda c: -c.probability)[:_SHOWN]
    bars = "  ".join(
        f"{part.range.shas[c.idx][:8]} {bar(c.probability)} {100 * c.probability:.3g} %"
        for c in best
        if c.probability >= 0.005
    )
    remaining = max(1.0, boots_left(known, state.noise, policy))
    eta = duration(remaining * (bisector.boot_seconds() or 0.0) / bisector.lab.command.jobs)
    return (
        f"change {known.change_pct:+.2g} %, none {two_digits(100 * known.p_none)} %; {bars}; about"
        f" {remaining:.0f} boots, {eta} left"
    )


def bar(share: float) -> str:
    """Draw a fraction (0 to 1) as a short bar."""
    full = round(share * _BAR / 2)
    return "#" * full + "." * (_BAR // 2 - full)


def answer(
    facts: Facts,
    shown: str,
    command: Sequence[str],
    booted: Sequence[BootResult],
    *,
    checkout: bool,
) -> str:
    """Format the answer; its first line is that of `git bisect`.

    `shown` is the output of `git show` for the culprit.
    """
    lines = [_headline(facts)]
    if facts["status"] == "culprit":
        lines += [shown, ""]
    if facts["status"] in ("several", "credible_set", "inconclusive"):
        lines += _list(facts)
    lines += _evidence(facts, booted)
    if facts["status"] == "culprit":
        lines += ["", "reproduce:", f"  {_reproduce(facts, command, checkout)}"]
    return "\n".join(lines)


def _headline(facts: Facts) -> str:
    status = facts["status"]
    if status == "culprit":
        return f"{facts['culprit']['commit']} is the first bad commit"
    if status == "several":
        others = len(facts["members"]) > len(facts["culprits"])
        named = f"{count(len(facts['culprits']), 'commit')} changed the value"
        return f"{named}, and one of the others:" if others else f"{named}:"
    if status == "credible_set":
        return "The first bad commit could be any of:"  # wording of git bisect for skipped commits
    return {
        "not_reproduced": "no change between the ends; nothing to bisect",
        "inconclusive": f"no culprit; {facts['suspect']['commit']} is a suspect"
        if facts["suspect"]
        else "no culprit could be identified",
        "creep": "the value drifts gradually over the range; no single commit is the first bad one",
        "failed": "an end of the range could not be measured; there is no result",
    }[status]


def _list(facts: Facts) -> list[str]:
    stated = [*facts["culprits"], *([facts["suspect"]] if facts["suspect"] else [])]
    p = {c["commit"]: c["probability"] for c in (*facts["candidates"], *stated)}
    change = (
        {c["commit"]: c["change_pct"] for c in facts["culprits"]}
        if facts["status"] == "several"
        else {}
    )
    rows = []
    for member in facts["members"]:
        sha = member["commit"]
        effect = f"  {change[sha]:+.3g} %" if change.get(sha) is not None else ""
        rows.append(f"{sha}  {100 * p.get(sha, 0.0):5.1f} %{effect}  {member['subject'][:60]}")
    return rows


def _evidence(facts: Facts, booted: Sequence[BootResult]) -> list[str]:
    lines, interval = [], facts["interval_pct"]
    if facts["spread_ratio"] is not None:
        lines.append(
            f"spread       {two_digits(facts['spread_ratio'])} times as large between boots"
        )
    if facts["change_pct"] is not None and not same_mean(facts["spread_ratio"], interval):
        bounds = f"95 % interval {interval[0]:+.3g} .. {interval[1]:+.3g} %" if interval else None
        notes = ", ".join(note for note in (facts["verdict"], bounds) if note)
        lines.append(
            f"change       {facts['change_pct']:+.3g} %" + (f" ({notes})" if notes else "")
        )
    if facts["probability"] is not None:
        lines.append(f"probability  {facts['probability']:.3f}")
    lines.append(f"why          {facts['reason']}")
    if facts["suspect"]:
        lines.append(f"to settle    {facts['suspect']['settled_by']}")
    counts = spent(booted)
    lost = ", ".join(f"{n} {what}" for what, n in counts.items() if what != "value")
    lines.append(
        f"cost         {count(facts['boots'], 'boot')} of {count(facts['builds'], 'commit')}"
        + (f" ({lost})" if lost else "")
        + f", {duration(facts['seconds'])}"
    )
    lines.append(f"journal      {facts['journal']}")
    if before := facts["answered_before"]:
        day, boots = before["at"][:10], before["boots"]
        lines.append(f"answered     on {day} from {boots} boots; --restart measures again")
    if facts["cmd_changed"]:
        lines.append(
            f"CMD          {', '.join(facts['cmd_changed'])}: changed since the bisection started;"
            " --restart measures again"
        )
    return lines


def _reproduce(facts: Facts, command: Sequence[str], checkout: bool) -> str:
    culprit = facts["culprits"][0]
    run = f"SWINGBOT_COMMIT=$(git rev-parse $c) {shlex.join(command)}"
    run = f"git checkout -q $c && {run}" if checkout else run
    return (
        f"for c in {culprit['parent'][:12]} {culprit['commit'][:12]} {culprit['commit'][:12]}"
        f" {culprit['parent'][:12]}; do {run}; done"
    )
