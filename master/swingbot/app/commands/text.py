"""Format facts, the dicts that `--json` prints, as plain text for a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from swingbot.core.bisect.tell.text_plot import PlotPoint, picture
from swingbot.core.model.conclusion import same_mean
from swingbot.core.model.documents import Gate
from swingbot.core.text.numbers import duration, times_the_spread
from swingbot.core.text.plain import person
from swingbot_jobs.contract.orders import SEARCH

Facts = Mapping[str, Any]
_MARKED = (
    "culprit",
    "suspect",
    "skipped",
    "does not build",
    "cannot be measured",
    "same kernel",
    "good end",
    "bad end",
)


def table(rows: Iterable[Sequence[object]], heads: Sequence[str]) -> str:
    """Format rows as aligned columns; numbers must already be text."""
    body = [[("-" if cell is None or cell == "" else str(cell)) for cell in row] for row in rows]
    if not body:
        return "(none)"
    grid = [list(heads), *body]
    widths = [max(len(row[i]) for row in grid) for i in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in grid
    )


def left(facts: Facts) -> str:
    """Remaining time of an open comparison or bisection, rounded to 10 s, or that it waits."""
    eta = facts.get("eta_seconds")
    if eta is not None:
        note = f" ({facts['eta_note']})" if facts.get("eta_note") else ""
        return f"about {duration(round(eta, -1))} left{note}"
    return "waits" if facts.get("waits") else "time left unknown"


def queue_end(end: Facts) -> str:
    """When the queue ends, or why that is not known."""
    if end["seconds"] is None:
        return f"unknown: {end['why']}"
    if end["until"] is None:
        return "now: nothing waits"
    note = f" ({end['why']})" if end["why"] else ""
    until = end["until"][:16].replace("T", " ")
    return f"about {until} UTC, in {duration(round(end['seconds'], -1))}{note}"


def incidents(rows: Sequence[Facts]) -> str:
    """Format a list of incidents as a table."""
    lines = [
        (
            row["id"],
            _size(row),
            row["metric"],
            ",".join(row["testboxes"]),
            row["culprit"]["commit"][:12],
            person(row["culprit"]["author"]),
            row["created_at"][:10],
            _state(row),
            row["owner"],
            row["tree"],
            row["culprit"]["subject"],
        )
        for row in rows
    ]
    heads = "ID CHANGE METRIC TESTBOXES COMMIT AUTHOR FOUND STATE OWNER TREE SUBJECT"
    return table(lines, heads.split())


def _size(row: Facts) -> str:
    ratio, bounds = row["spread_ratio"], row["interval_pct"]
    if ratio is not None and same_mean(ratio, bounds):
        return times_the_spread(ratio)
    return "-" if row["change_pct"] is None else f"{row['change_pct']:+.1f} %"


def _state(row: Facts) -> str:
    if not row["merged_into"] and (fix := row["looks_fixed"]):
        since = f"{fix['commit'][:12]} ({fix['change_pct']:+.1f} %)"
        return f"{row['status']}; looks fixed since {since}"
    return incident_status(row)


def incident_status(facts: Facts) -> str:
    """Format the status of an incident, with the one that it is a duplicate of."""
    of = f" of {facts['merged_into']}" if facts["merged_into"] else ""
    return f"{facts['status']}{of}"


def gates(gates: Sequence[Gate]) -> str:
    """Format gates of proof as a table."""
    if not gates:
        return (
            "no gate is open yet; gates open when the commit has been measured against its parent;"
            " `swingbot proof run` starts that measurement if necessary"
        )
    rows = [
        (
            gate["gate"],
            gate["status"],
            gate["comparison"],
            _gate_cost(gate["foreseen"]),
            gate["reason"] or gate["question"],
        )
        for gate in gates
    ]
    return table(rows, ("GATE", "STATUS", "COMPARISON", "ESTIMATED COST", "REASON"))


def _gate_cost(foreseen: Facts | None) -> str | None:
    if foreseen is None:
        return None
    builds, boots = f"{foreseen['builds']:.0f} builds", f"{foreseen['boots']:.0f} boots"
    return f"{builds}, {boots}, {duration(foreseen['seconds'])}"


def boot(facts: Facts) -> str:
    """Format a boot: outcome, runs and fact sheet; `-` is an unknown value."""
    lines = [
        f"{facts['id']}  {facts['commit'][:12]} on {facts['testbox']},"
        f" k={facts['k']}{_purpose(facts)}  {facts['outcome']}"
        + (f": {facts['reason']}" if facts["reason"] else "")
    ]
    lines += [
        f"  {run['unit_job']} run {run['number']}  {run['status']}"
        + (f": {run['reason']}" if run["reason"] else "")
        for run in facts["runs"]
    ]
    for group, entries in facts["sheet"].items():
        wide = max((len(line["name"]) for line in entries), default=0)
        lines += ["", group]
        for line in entries:
            value = "-" if line["value"] is None else f"{line['value']} {line['unit']}".rstrip()
            lines.append(f"  {line['name']:{wide}}  {value}")
    return "\n".join(lines)


def _purpose(facts: Facts) -> str:
    """Purpose of a boot other than the search."""
    return "" if facts["purpose"] == SEARCH else f" of {facts['purpose']}"


def bisection(facts: Facts) -> str:
    """Format a bisection: its state, and a plot of the probability of each commit."""
    width = shutil.get_terminal_size((100, 24)).columns
    return f"{bisection_head(facts)}\n\n{bisection_picture(facts, width=width)}"


def bisection_picture(
    facts: Facts, *, width: int, ascii: bool | None = None, everything: bool = False
) -> str:
    """Plot a bar for each commit. `ascii` None: depends on the encoding of stdout."""
    lines = [
        PlotPoint(
            idx=p["idx"],
            commit=p["commit"],
            subject=p["subject"],
            probability=p["probability"] if p["idx"] else None,
            boots=p["boots"],
            mean=p["mean"],
            sd=p["sd"],
            mark=p["state"] if p["state"] in _MARKED else "",
            hint=p["hint"],
            coming=any(entry["seen_at"] is None for entry in p["observations"])
            and facts["status"] == "running",
        )
        for p in facts["points"]
    ]
    return picture(
        lines,
        width=width,
        ascii=not prints("█▏±") if ascii is None else ascii,
        p_none=facts.get("p_none"),
        everything=everything,
    )


def prints(characters: str) -> bool:
    """Return True if stdout can encode these characters."""
    try:
        characters.encode(sys.stdout.encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True


def bisection_head(facts: Facts) -> str:
    """Format a bisection in a few lines: its result or its state."""
    lines = [
        f"{facts['id']}  {facts['metric']} of {facts['unit_job']} on {facts['testbox']}"
        f"  {facts['status']}"
    ]
    if facts.get("reason"):
        lines.append(f"  {facts['reason']}")
    if facts.get("culprit"):
        lines.append(f"  culprit {facts['culprit']['commit'][:12]} ({facts['culprit']['subject']})")
    if suspect := facts.get("suspect"):
        lines.append(
            f"  suspect {suspect['commit'][:12]} ({suspect['subject']}):"
            f" P = {suspect['probability']:.3f}, too little to name it; {suspect['settled_by']}"
            " would settle it"
        )
    ratio, bounds = facts.get("spread_ratio"), facts.get("interval_pct")
    if ratio is not None:
        lines.append(f"  {times_the_spread(ratio)}")
    if facts.get("change_pct") is not None and not same_mean(ratio, bounds):
        lines.append(
            f"  change in its own boots {facts['change_pct']:+.2f} %"
            + (f" (95 % interval {bounds[0]:+.2f} .. {bounds[1]:+.2f} %)" if bounds else "")
        )
    if facts["status"] == "running" and facts.get("why"):
        lines.append(f"  {facts.get('phase') or 'start'}: {facts['why']}; {left(facts)}")
    lines += [f"  waiting: {why}" for why in facts.get("waits", ())]
    lines += [f"  {branch['words']}" for branch in facts.get("branches", ())]
    if facts["status"] == "several":
        lines += [
            f"  culprit {c['commit'][:12]} ({c['subject']}): {_pct(c['change_pct'])}{_share(c)},"
            f" P = {c['probability']:.3f}"
            for c in facts["culprits"]
        ]
    if facts.get("parent"):
        lines.append(
            f"  searches the branch that {facts['merged'][:12]} merged, for {facts['parent']}"
        )
    for pair in facts.get("config_changes", ()):
        if pair["config"]:
            from swingbot_jobs.kernel_diff import config_part

            lines.append(f"  kernels of {pair['base'][:12]} and {pair['head'][:12]}:")
            lines += [f"    {line}" for line in config_part(pair["config"], most=8)]
    lines += [f"  advice by {steer['words']}" for steer in facts.get("steers", ())]
    lines.append(f"  {facts['boots']} boots; kernels built for it: {facts['builds']}")
    if facts.get("resumable"):
        lines.append(
            f"  to continue: swingbot bisect resume {facts['id']} --boots N"
            "  (all observations still count)"
        )
    return "\n".join(lines)


def _pct(value: float | None) -> str:
    return "change unknown" if value is None else f"{value:+.2f} %"


def _share(culprit: Facts) -> str:
    return (
        ""
        if culprit.get("share") is None
        else f" ({100 * culprit['share']:.0f} % of the total change)"
    )


def open_work(counts: Mapping[str, int]) -> str:
    """Format open work, such as `comparisons: 2, orders: 14`."""
    words = {
        "trees": "trees not polled yet",
        "reports": "reports being sent",
        "unseen": "changes not yet processed by the loop",
    }
    return ", ".join(f"{words.get(kind, kind)}: {n}" for kind, n in counts.items() if n)


def status(facts: Facts) -> str:
    """Format the output of `swingbot status`."""
    queue = facts["queue"]
    lines = [
        "queue     "
        + "; ".join(
            f"{kind}s: {n['running']} running, {n['ready']} ready, {n['waiting']} waiting"
            for kind, n in queue.items()
        ),
        *([f"until     {queue_end(end)}"] if (end := facts["queue_end"])["seconds"] != 0 else []),
        "idle      " + ("yes" if facts["idle"] else f"no ({open_work(facts['open'])})"),
    ]
    for testbox in facts["testboxes"]:
        lines.append(
            f"testbox   {testbox['name']}  {testbox['words']}"
            + (f"  {testbox['label']}" if testbox.get("label") else "")
            + (f", until {queue_end(own)}" if (own := testbox["queue_end"])["seconds"] != 0 else "")
        )
    for job in facts["running"]:
        state = "queued" if job["queued"] else "running"
        lines.append(
            f"{state:<10}{job['id']}  {job['kind']}  {job.get('testbox') or 'kernel'}"
            f"  {(job.get('commit') or '')[:12]}"
        )
    for tree in facts["trees"]:
        lines.append(
            f"tree      {tree['name']}  {tree['branch']}"
            f"  tip {(tree['tip_commit'] or 'not polled')[:12]}"
        )
    for open_ in [*facts["tables"], *facts["bisections"]]:
        lines.append(f"open      {open_['id']}  {open_['status']}, {left(open_)}")
    for problem in facts["problems"]:
        lines.append(f"PROBLEM   {problem['text']}")
    if not facts["problems"]:
        lines.append("no problems")
    return "\n".join(lines)
