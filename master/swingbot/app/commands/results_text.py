"""Format results that exist, as pages have them, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from swingbot.app.commands.text import Facts, table
from swingbot.core.table.verdict import in_words
from swingbot.core.text.numbers import (
    count,
    duration,
    levels,
    spreads,
    times_the_spread,
)
from swingbot.core.text.plain import cut

_SUBJECT: Final = 60  # characters


def measured_kernels(facts: Facts) -> str:
    """The kernels of a tree that have boots."""
    return f"kernels of tree {facts['tree']} with boots\n\n{_kernels(facts['kernels'])}"


def compared(facts: Facts) -> str:
    """Kernels against the first of them: rows, what moved and who did it, and what is missing."""
    names = [kernel["name"] for kernel in facts["kernels"]]
    lines = [
        f"{', '.join(names[1:])} against {names[0]}, tree {facts['tree']}, from boots that exist",
        "",
        _kernels(facts["kernels"]),
        *_notes(facts),
    ]
    if rows := [row for row in facts["rows"] if not row["alias_of"]]:
        heads = ("TESTBOX", "UNIT JOB", "METRIC", "UNIT", "REFERENCE", "KERNEL", "CHANGE")
        lines += ["", table([_row(row, names) for row in rows], (*heads, "95% INTERVAL", "REASON"))]
    for one in facts["moved"]:
        lines += ["", *_moved(one, names)]
    lines += ["", "missing:" if facts["missing"] else "missing: nothing"]
    if facts["missing"]:
        cells = [_gap(gap, names) for gap in facts["missing"]]
        lines.append(table(cells, ("KERNEL", "TESTBOX", "UNIT JOBS", "WHY", "FILLING IT")))
    return "\n".join(lines)


def history(facts: Facts) -> str:
    """A metric over commits: levels, and the swings and incidents at each commit."""
    unit = f"{facts['unit']}, " if facts["unit"] else ""
    better = f"{facts['better']} is better" if facts["better"] else "neither direction is better"
    lines = [
        f"{facts['metric']} of {facts['unit_job']} on {facts['testbox']}",
        f"tree {facts['tree']}, kernels with {facts['compiler']}, {facts['kconfig']};"
        f" {unit}{better}",
        *_notes(facts),
    ]
    points = facts["points"]
    shown = zip(
        points,
        levels(*(point["level"] for point in points)) if points else (),
        spreads(*(point["stddev"] for point in points)) if points else (),
        strict=True,
    )
    rows = [
        (
            point["commit"][:12],
            point["release"],
            level if point["level"] is not None else "-".rjust(len(level)),
            spread,
            _boots(point, facts["testbox"]),
            "; ".join(_found(point, facts)),
            cut(point["subject"], _SUBJECT),
        )
        for point, level, spread in shown
    ]
    heads = ("COMMIT", "RELEASE", "LEVEL", "SD", "BOOTS", "FOUND", "SUBJECT")
    lines += ["", table(rows, heads)]
    for one in facts["findings"]:
        from swingbot.core.stats.findings_text import history_lines

        lines += ["", f"history of the tips up to {one['upto']}:"]
        lines += [f"  {line}" for line in history_lines(one["findings"])]
    others = [one for one in facts["testboxes"] if one["name"] != facts["testbox"]]
    if others:
        means = levels(*(one["level"] for one in others))
        cells = [
            (one["name"], one["state"], str(one["commits"]), str(one["boots"]), mean, one["latest"])
            for one, mean in zip(others, means, strict=True)
        ]
        of_testbox = ("TESTBOX", "STATE", "COMMITS", "BOOTS", "LATEST LEVEL", "LATEST COMMIT")
        lines += ["", table([(*cell[:5], _short(cell[5])) for cell in cells], of_testbox)]
    return "\n".join(lines)


def _notes(facts: Facts) -> list[str]:
    return ["", *(f"note: {note}" for note in facts["notes"])] if facts["notes"] else []


def _kernels(kernels: Sequence[Facts]) -> str:
    rows = [
        (
            kernel["name"],
            kernel["id"],
            kernel["commit"][:12],
            f"{kernel['compiler']}, {kernel['kconfig']}"
            + (f", layout {kernel['layout']}" if kernel["layout"] else "")
            + (", patched" if kernel["origin"] == "patch" else ""),
            str(kernel["boots"]),
            ",".join(kernel["testboxes"]),
            cut(kernel["subject"], _SUBJECT),
        )
        for kernel in kernels
    ]
    heads = ("KERNEL", "ID", "COMMIT", "BUILT WITH", "BOOTS", "TESTBOXES", "SUBJECT")
    return table(rows, heads)


def _row(row: Facts, names: Sequence[str]) -> tuple[object, ...]:
    sides = (row["base"], row["head"])
    means, sds = levels(*(s["mean"] for s in sides)), spreads(*(s["stddev"] for s in sides))
    measured = [
        f"{names[row[kernel]]}: {mean.strip()} +- {sd.strip()} ({count(side['boots'], 'boot')})"
        for kernel, mean, sd, side in zip(("reference", "arm"), means, sds, sides, strict=True)
    ]
    where = (row["testbox"], row["unit_job"], row["metric"], row["unit"])
    why = "; ".join([row["reason"] or "", *row["problems"][:2]]).strip("; ")
    return (*where, *measured, in_words(row), _interval(row["interval_pct"]), why)


def _interval(bounds: Sequence[float | None] | None) -> str | None:
    if not bounds or None in bounds:
        return None
    return f"{bounds[0]:+.1f}% to {bounds[1]:+.1f}%"


def _moved(one: Facts, names: Sequence[str]) -> Iterator[str]:
    """What changed from the reference to a kernel, and the incidents between the two."""
    head = f"from {names[0]} to {names[one['kernel']]}:"
    if not one["judged"]:
        yield f"{head} no metric of this choice was measured on both"
        return
    yield f"{head} {one['changed']} of {count(one['judged'], 'row')} changed"
    if one["order"]:
        yield f"  commits between them: {one['order']}"
    for incident in one["incidents"]:
        undone = ", undone: the first kernel is the newer one" if one["backwards"] else ""
        yield (
            f"  {incident['incident']} is {incident['status']}: {incident['commit'][:12]}"
            f" {cut(incident['subject'], _SUBJECT)}{undone}"
        )
        for metric in incident["metrics"]:
            size = metric["change_pct"]
            words = "" if size is None else f" {size:+.1f}%"
            yield f"    {metric['metric']}{words} on {metric['testbox']} ({metric['bisection']})"
    if not one["incidents"] and not one["order"]:
        yield "  no incident has a commit between them"


def _gap(gap: Facts, names: Sequence[str]) -> tuple[object, ...]:
    jobs = ", ".join(gap["unit_jobs"][:4])
    if len(gap["unit_jobs"]) > 4:
        jobs += f" and {len(gap['unit_jobs']) - 4} more"
    filling = "no boot can"
    if gap["boots"]:
        times = (gap["seconds"], gap["build_seconds"])
        known = None if None in times else sum(times)
        more = f" and {gap['reference_boots']} of the other" if gap["reference_boots"] else ""
        build = " and its build" if gap["build_seconds"] != 0 else ""
        filling = f"{count(gap['boots'], 'boot')}{more}{build}: {duration(known)}"
    return names[gap["kernel"]], gap["testbox"], jobs, gap["why"], filling


def _boots(point: Facts, testbox: str) -> str:
    own = [boot for boot in point["boots"] if boot["testbox"] == testbox]
    return " ".join(boot["boot"] + ("" if boot["counts"] else " (other unit)") for boot in own)


def _found(point: Facts, facts: Facts) -> Iterator[str]:
    here = (point["commit"], facts["testbox"])
    for swing in facts["swings"]:
        if (swing["commit"], swing["testbox"]) == here:
            yield f"{swing['comparison']} {swing['direction']}{_size(swing)}"
    for culprit in facts["culprits"]:
        if (culprit["commit"], culprit["testbox"]) == here:
            yield f"{culprit['incident']} {culprit['status']}{_percent(culprit['change_pct'])}"


def _size(swing: Facts) -> str:
    ratio = swing["spread_ratio"]
    if swing["source"] == "spread":
        return "" if ratio is None else f", {times_the_spread(ratio)}"
    return _percent(swing["change_pct"])


def _percent(value: Any) -> str:
    return "" if value is None else f" {value:+.1f}%"


def _short(commit: str | None) -> str | None:
    return commit and commit[:12]
