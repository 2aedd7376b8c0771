"""Facts as plain text for a terminal: the same dicts that `--json` prints, laid out for people."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from swingbot.core.bisect.text_plot import PlotPoint, picture
from swingbot.core.model.comparison_row import ComparisonRow, Side, aliases_of, without_aliases
from swingbot_jobs.contract.orders import SEARCH
from swingbot_jobs.kernel_diff import change_text

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
    """Columns as wide as they need; numbers are given as text already."""
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
    """How long a comparison or bisection that is under way will take, to ten seconds; or that it waits."""
    if facts.get("waits"):
        return "waits for a testbox"
    eta = facts.get("eta_seconds")
    return "time left unknown" if eta is None else f"about {seconds(round(eta, -1))} left"


def seconds(value: float | None) -> str:
    """A duration as people say it: 45 s, 3 min 20 s, 2 h 5 min."""
    if value is None:
        return "unknown"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.4g}"


def change(row: ComparisonRow) -> str:
    """`18.0% worse`: direction in words, never a bare sign."""
    pct, verdict = row.change_pct, row.verdict
    if pct is None:
        return verdict
    if verdict in ("worse", "better"):
        return f"{abs(pct):.1f}% {verdict}"
    return f"{pct:+.2f}%"


def interval(row: ComparisonRow) -> str:
    bounds = row.interval_pct
    return f"{bounds[0]:+.2f} .. {bounds[1]:+.2f} %" if bounds else "-"


def side(of: Side) -> str:
    spread = f" +- {number(of.stddev)}" if of.stddev is not None else ""
    return f"{number(of.mean)}{spread} ({of.boots} boots, {of.runs} runs)"


def comparison(facts: Facts, *, counters: bool = False) -> str:
    """A comparison: the headline metric of each unit job, or with `counters` every row."""
    lines = [
        f"{facts['id']}  {facts['base'][:12]} -> {facts['head'][:12]}  {facts['status']}"
        + (f": {facts['reason']}" if facts.get("reason") else "")
    ]
    lines += differences(facts.get("facts_differ", ()))
    hidden = 0
    given = [ComparisonRow.from_json(row) for row in facts["rows"]]
    for row in without_aliases(given):
        if not counters and not row.headline:
            hidden += 1
            continue
        lines += [
            "",
            f"{row.testbox}  {row.unit_job}  {row.metric} [{row.unit or 'count'}]: {change(row)}",
        ]
        if row.base.mean is not None or row.head.mean is not None:
            lines += [
                f"  base {side(row.base)}",
                f"  head {side(row.head)}",
                f"  verdict {row.verdict}, 95 % interval {interval(row)}",
            ]
        if also := aliases_of(row, given):
            lines.append(f"  the same number: {', '.join(also)}")
        if row.reason:
            lines.append(f"  {row.reason}")
        if row.label:
            lines.append(f"  [{row.label}]")
    if hidden:
        lines += [
            "",
            f"{hidden} further rows (counters, other metrics of the same runs); --counters shows them",
        ]
    return "\n".join(lines)


def kernel_change(facts: Facts) -> str:
    """What the change did to the kernel, or why that is not known."""
    return f"What the change did to the kernel\n{change_text(facts, most=20) if facts['state'] == 'compared' else facts['reason']}"


def differences(found: Iterable[Facts]) -> list[str]:
    """How the fact sheets of the two sides differ; the variant itself, which has to, in one line."""
    marks = {
        "blocks": "BLOCKS A VERDICT",
        "compared": "compared by the job",
        "told": "may be the explanation",
    }
    shown = [
        f"  {d['testbox']}: {d['words']} [{marks[d['kind']]}]" for d in found if d["kind"] in marks
    ]
    variant = sorted({d["fact"] for d in found if d["kind"] == "variant"})
    shown += [f"  the variant itself: {', '.join(variant)}"] if variant else []
    return ["facts that differ:", *shown] if shown else []


def boot(facts: Facts) -> str:
    """A boot: how it ended, its runs, and its fact sheet; what is not known is `-`."""
    lines = [
        f"{facts['id']}  {facts['commit'][:12]} on {facts['testbox']}, k={facts['k']}{_purpose(facts)}  {facts['outcome']}"
        + (f": {facts['reason']}" if facts["reason"] else "")
    ]
    lines += [
        f"  {run['unit_job']} run {run['number']}  {run['status']}"
        + (f": {run['reason']}" if run["reason"] else "")
        for run in facts["runs"]
    ]
    for group, told in facts["sheet"].items():
        wide = max((len(line["name"]) for line in told), default=0)
        lines += ["", group]
        for line in told:
            value = "-" if line["value"] is None else f"{line['value']} {line['unit']}".rstrip()
            lines.append(f"  {line['name']:{wide}}  {value}")
    return "\n".join(lines)


def _purpose(facts: Facts) -> str:
    """What a boot was for, where its number is not one of the search."""
    return "" if facts["purpose"] == SEARCH else f" of {facts['purpose']}"


def bisection(facts: Facts) -> str:
    """A bisection: how it stands, and a picture of what is believed of each commit."""
    return f"{bisection_head(facts)}\n\n{bisection_picture(facts, width=shutil.get_terminal_size((100, 24)).columns)}"


def bisection_picture(
    facts: Facts, *, width: int, ascii: bool | None = None, everything: bool = False
) -> str:
    """A bar for each commit. `ascii` None: as standard output can."""
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
    """Whether standard output can carry these characters."""
    try:
        characters.encode(sys.stdout.encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True


def bisection_head(facts: Facts) -> str:
    """A bisection in a few lines: what it found, or how it stands."""
    lines = [
        f"{facts['id']}  {facts['metric']} of {facts['unit_job']} on {facts['testbox']}  {facts['status']}"
    ]
    if facts.get("reason"):
        lines.append(f"  {facts['reason']}")
    if facts.get("culprit"):
        lines.append(f"  culprit {facts['culprit']['commit'][:12]} ({facts['culprit']['subject']})")
    if facts.get("change_pct") is not None:
        bounds = facts.get("interval_pct")
        lines.append(
            f"  change {facts['change_pct']:+.2f} %"
            + (f" (95 % interval {bounds[0]:+.2f} .. {bounds[1]:+.2f} %)" if bounds else "")
        )
    if facts["status"] == "running" and facts.get("why"):
        lines.append(f"  {facts.get('phase') or 'start'}: {facts['why']}; {left(facts)}")
    lines += [f"  waits: {why}" for why in facts.get("waits", ())]
    lines += [f"  {branch['words']}" for branch in facts.get("branches", ())]
    if facts["status"] == "several":
        lines += [
            f"  culprit {c['commit'][:12]} ({c['subject']}): {_pct(c['change_pct'])}{_share(c)}, P = {c['probability']:.3f}"
            for c in facts["culprits"]
        ]
    if facts.get("parent"):
        lines.append(
            f"  searches the branch that {facts['merged'][:12]} merged, for {facts['parent']}"
        )
    lines += [f"  told by {steer['words']}" for steer in facts.get("steers", ())]
    lines.append(f"  {facts['boots']} boots, {facts['builds']} kernels built")
    if facts.get("resumable"):
        lines.append(
            f"  swingbot bisect resume {facts['id']} --boots N  goes on with it; all that was observed still counts"
        )
    return "\n".join(lines)


def _pct(value: float | None) -> str:
    return "change unknown" if value is None else f"{value:+.2f} %"


def _share(culprit: Facts) -> str:
    return (
        ""
        if culprit.get("share") is None
        else f" ({100 * culprit['share']:.0f} % of the whole change)"
    )


def open_work(counts: Mapping[str, int]) -> str:
    """What is open, as `comparisons: 2, orders: 14`."""
    words = {
        "trees": "trees not polled yet",
        "reports": "reports on their way",
        "unseen": "changes that the loop has not seen",
    }
    return ", ".join(f"{words.get(kind, kind)}: {n}" for kind, n in counts.items() if n)


def status(facts: Facts) -> str:
    """`swingbot status`."""
    queue = facts["queue"]
    lines = [
        "queue     "
        + "; ".join(
            f"{kind}s: {n['running']} running, {n['ready']} ready, {n['waiting']} waiting"
            for kind, n in queue.items()
        ),
        "idle      " + ("yes" if facts["idle"] else f"no ({open_work(facts['open'])})"),
    ]
    for box in facts["testboxes"]:
        lines.append(
            f"testbox   {box['name']}  {box['words']}"
            + (f"  {box['label']}" if box.get("label") else "")
        )
    for job in facts["running"]:
        lines.append(
            f"running   {job['id']}  {job['kind']}  {job.get('testbox') or 'kernel'}  {(job.get('commit') or '')[:12]}"
        )
    for tree in facts["trees"]:
        lines.append(
            f"tree      {tree['name']}  {tree['branch']}  tip {(tree['tip_commit'] or 'not looked at yet')[:12]}"
        )
    for open_ in [*facts["comparisons"], *facts["experiments"], *facts["bisections"]]:
        lines.append(f"open      {open_['id']}  {open_['status']}, {left(open_)}")
    for problem in facts["problems"]:
        lines.append(f"PROBLEM   {problem['text']}")
    if not facts["problems"]:
        lines.append("nothing is wrong")
    return "\n".join(lines)
