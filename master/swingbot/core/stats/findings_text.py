"""Describe the findings in a history of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from swingbot.core.stats.findings import (
    Creep,
    Excursion,
    Findings,
    FinishedSearch,
    LevelChange,
    Mode,
    ModeChange,
    Ramp,
)
from swingbot.core.stats.path_change import PathChange
from swingbot.core.stats.tip_spreads import SpreadChange
from swingbot.core.text.numbers import count, two_digits
from swingbot_jobs import codec

Labels = Sequence[str] | Mapping[int, str]
_NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six")


def history_lines(findings: Mapping[str, Any]) -> list[str]:
    """Describe the stored findings in the tips of a branch; a tip is named by its commit."""
    try:
        tips = {int(at): tip["commit"][:12] for at, tip in findings["tips"].items()}
        return tell(codec.typed(Findings, findings, ignore_unknown=True), tips)
    except (AttributeError, KeyError, TypeError, ValueError):
        return ["stored by a different version of swingbot; the next tip replaces it"]


def tell(findings: Findings, x: Labels) -> list[str]:
    """Describe findings for a person; `x` labels at least the points that the text mentions."""
    if findings.points == 1:
        return ["1 point: nothing to compare it with"]
    lines = [
        f"{count(findings.points, 'point')}, noise {two_digits(findings.noise_pct)} %"
        " about the level"
        + (f", autocorrelation {findings.alike:.2f}" if findings.alike >= 0.2 else "")
    ]
    if findings.path is not None:
        lines.append(_path(findings.path, x))
    lines += [_mode_change(change, x) for change in findings.mode_changes]
    for change in findings.changes:
        machine = "; the anchor moved too, so it is the machine" if change.machine else ""
        lines.append(f"{step_words(change, x)}{machine}")
    if findings.candidate is not None:
        words = step_words(findings.candidate, x)
        undecided = not findings.candidate.searches
        lines.append(
            f"candidate{words.removeprefix('step')}; more points will decide"
            if undecided
            else words
        )
    lines += [_excursion(each, x) for each in findings.excursions]
    if findings.creep is not None:
        ends = " from first to last" if findings.creep.pct is not None else ""
        lines.append(f"creep: {step_size(findings.creep)}{ends}, {_chance(findings.creep.p)}")
    if findings.ramp is not None:
        ramp = findings.ramp
        lines.append(
            f"ramp from {_place(ramp, x)} on: {step_size(ramp)} by the last point,"
            f" {_chance(ramp.p)}"
        )
    if findings.spread is not None and two_digits(findings.spread.times) != "1":
        lines.append(
            f"spread: {two_digits(findings.spread.times)} times as large"
            f" from {x[findings.spread.at]} on, {_chance(findings.spread.p)}"
        )
    if findings.boots_spread is not None:
        lines.append(_boots_spread(findings, findings.boots_spread, x))
    if findings.modes is not None and not findings.mode_changes:
        lines.append(
            f"{_NUMBERS[len(findings.modes)]} modes: {_modes(findings.modes)} of the points"
        )
    if findings.anchor is not None:
        moved = _moved(findings.anchor)
        lines.append("machine: " + ("its anchor moved:" if moved else "its anchor shows no change"))
        if moved:
            lines += [f"  {line}" for line in tell(findings.anchor, x)[1:]]
    if not _moved(findings) and not findings.path:
        lines.append(
            "the level wanders: steps and creep cannot be told from it"
            if findings.wanders
            else "no step and no creep"
        )
    return lines


def _moved(findings: Findings) -> bool:
    """Whether the level is found to be another one somewhere."""
    return bool(
        findings.changes
        or findings.creep
        or findings.ramp
        or findings.mode_changes
        or findings.excursions
    )


def step_words(change: LevelChange, x: Labels) -> str:
    """Return `step at` its place, size with its interval, and p. Where a bisection searched it,
    what that found instead."""
    if change.searches:
        return "; ".join(_found(found, change, x) for found in change.searches)
    size = step_size(change)
    if change.parts:
        size = f"{size} in all, in more than one part"
    interval = _interval(change.low_pct, change.high_pct)
    return f"step at {_place(change, x)}: {size}{interval}, {_chance(change.p)}"


def _found(found: FinishedSearch, change: LevelChange, x: Labels) -> str:
    if found.denies:
        return f"no step at {_place(change, x)}: fresh boots do not differ ({found.search})"
    size = f"{percent(found.pct)} %" if found.pct is not None else "a change"
    size += _interval(found.low_pct, found.high_pct)
    if found.status == "creep":
        return f"no step at {_place(change, x)}: a gradual drift of {size} ({found.search})"
    short = [commit[:12] for commit in found.commits]
    place = (
        short[0] if len(short) == 1 else f"one of {len(short)} commits, {short[0]} .. {short[-1]}"
    )
    return f"step at {place}: {size} ({found.search})"


def _chance(p: float) -> str:
    """Return `p = 8e-12`; a P of less than the smallest number is not 0."""
    return f"p = {p:.1g}" if p > 0.0 else "p < 1e-300"


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f", 95 % interval {percent(low)} .. {percent(high)} %"


def _place(change: LevelChange | ModeChange | Ramp | PathChange, x: Labels) -> str:
    place = x[change.at]
    return (
        place
        if change.first == change.last
        else f"{place}, one of {x[change.first]} .. {x[change.last]}"
    )


def step_size(change: LevelChange | Creep | Ramp | Excursion) -> str:
    """Return `-10.00 %`, or `from 0 to 5` where a percentage has no meaning."""
    if change.pct is not None:
        return f"{percent(change.pct)} %"
    return f"from {change.before:.5g} to {change.after:.5g}"


def _excursion(off: Excursion, x: Labels) -> str:
    return (
        f"excursion from {x[off.first]} to {x[off.last]}: {step_size(off)} and back,"
        f" {_chance(off.p)}: a change that was reverted, or a disturbance"
    )


def _path(path: PathChange, x: Labels) -> str:
    """Such as "from v30 on, 1 run in 7 takes a path about 50 % lower than the others"."""
    way = "lower" if path.pct < 0.0 else "higher"
    before = _one_in(path.before, "run") if path.before else f"none of {path.runs_before}"
    after = _one_in(path.after, "run") if path.after else "no run"
    verb = "take" if after.endswith("runs") else "takes"
    return (
        f"from {_place(path, x)} on, {after} {verb} a path about {two_digits(abs(path.pct))} %"
        f" {way} than the other runs, before it {before}, {_chance(path.p)}"
    )


def _one_in(share: float, unit: str) -> str:
    return f"{100.0 * share:.0f} % of {unit}s" if share > 0.25 else f"1 {unit} in {1 / share:.0f}"


def _mode_change(change: ModeChange, x: Labels) -> str:
    before, after = change.before, change.after
    shares = f"{_modes(before)} before; {_modes(after)} from there on"
    if len(before) == len(after) == 2 and _alike(before, after):
        old, new = before[1].share, after[1].share
        verb = "rose" if new > old else "fell"
        what = f"the share of the upper mode {verb} from {100 * old:.0f} % to {100 * new:.0f} %"
    elif (rare := _rare(before, after)) is not None:
        far = 100.0 * (rare.value / before[0].value - 1.0)
        what = (
            f"{_one_in(rare.share, 'point')} takes a path about {two_digits(abs(far))} %"
            f" {'lower' if far < 0.0 else 'higher'}, before it none"
        )
    elif len(before) == len(after) == 1:
        what = "the level changed"
    elif len(before) == len(after):
        what = f"the {_NUMBERS[len(before)]} modes changed"
    else:
        modes = "mode" if len(before) == 1 else "modes"
        what = f"{_NUMBERS[len(before)]} {modes} became {_NUMBERS[len(after)]}"
    return f"modes at {_place(change, x)}: {what} ({shares}), {_chance(change.p)}"


def _rare(before: Sequence[Mode], after: Sequence[Mode]) -> Mode | None:
    """Return the mode that some points take beside the one that was there before, if any."""
    if (len(before), len(after)) != (1, 2) or before[0].value <= 0.0:
        return None
    new, old = sorted(after, key=lambda mode: mode.share)
    stays = abs(old.value - before[0].value) < abs(new.value - old.value) / 4.0
    return new if stays and new.share <= 0.25 else None


def _alike(before: Sequence[Mode], after: Sequence[Mode]) -> bool:
    """Whether modes are where they were, to a quarter of the distance between them."""
    apart = abs(before[1].value - before[0].value)
    return all(abs(a.value - b.value) < apart / 4.0 for a, b in zip(before, after, strict=True))


def _modes(modes: Sequence[Mode]) -> str:
    if len(modes) == 1:
        return f"{modes[0].value:.5g}"
    return ", ".join(f"{mode.value:.5g} ({100 * mode.share:.0f} %)" for mode in modes)


def _boots_spread(findings: Findings, spread: SpreadChange, x: Labels) -> str:
    moved = findings.creep is not None or any(
        change.first <= spread.at <= change.last for change in findings.changes
    )
    return (
        f"spread between boots: {two_digits(spread.times)} times as large from {x[spread.at]} on"
        + ("" if moved else ", level unchanged")
        + f", {_chance(spread.p)}"
    )


def percent(pct: float) -> str:
    """Format a signed change in percent of any size."""
    return f"{pct:+.2f}" if abs(pct) < 1e5 else f"{pct:+.4g}" if math.isfinite(pct) else "?"
