"""Short mails in the thread of a first report: still present, update, fixed, retraction.

Each fits on one screen. Facts in, text out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from swingbot.core.mail.message import (
    BODY_BYTES,
    Mail,
    PostedMail,
    as_text,
    fitting,
    size,
    thread_of,
    web_address,
)
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.report.parts.comparison_table import grid
from swingbot.core.report.report_facts import Commit
from swingbot.core.text.numbers import change
from swingbot.core.text.plain import cut, wrap

Kind = Literal["still", "update", "fixed", "retraction"]
_MOST_ROWS = 8
_MOST_LINKS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """Content of a follow-up mail.

    `first` is our first mail: its Message-ID, its subject and the mail it replied to. `row` is the
    headline as reported. `rows` were measured since, `head` against the culprit's parent. `where`
    names `head` in words ("linux-next, master"). `fix` is the commit that fixed the regression, if
    known. `reason` is one sentence: why the report is retracted, or what the update is about.
    """

    kind: Kind
    report: str
    first: PostedMail
    culprit: Commit
    row: ComparisonRow
    rows: tuple[ComparisonRow, ...] = ()
    where: str = ""
    head: str = ""
    fix: Commit | None = None
    reason: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    contact: str


def follow_up(facts: FollowUp) -> Mail:
    """Return a short reply to our first mail: one sentence, the numbers, and where to look."""
    subject, parent, references = thread_of(
        facts.first, f"{_commit(facts.culprit)}: {cut(facts.row.metric, 60)}"
    )
    rows = facts.rows[:_MOST_ROWS]
    lines = [*wrap(_sentence(facts)), "", *wrap(_commit(facts.culprit), "    ", "  ")]
    if facts.reason:
        lines += ["", *wrap(cut(facts.reason, 400))]
    lines += _fix(facts)
    if rows:
        lines += [
            "",
            *wrap(f"Parent of the commit against {_head(facts)}:"),
            "",
            *_grid(rows, "commit" if facts.kind == "retraction" else "now"),
        ]
    lines += _consequence(facts)
    end = _end(facts)
    whole = [*lines, *end]
    return Mail(
        subject=subject,
        body=as_text(whole) if size(whole) <= BODY_BYTES else fitting(lines, end, keep=1),
        in_reply_to=parent,
        references=references,
    )


def _sentence(facts: FollowUp) -> str:
    metric, claim = cut(facts.row.metric, 80), change(facts.row.change_pct, facts.row.better)
    first = f"the change that we reported as {metric} {claim}"
    match facts.kind:
        case "still":
            return f"Still present: {first} still shows at {_head(facts)}."
        case "update":
            return f"Update on {first}."
        case "fixed":
            return f"Fixed: {first} is gone at {_head(facts)}."
        case "retraction":
            return (
                f"We retract our report of {metric} {claim}. Please disregard it. We are sorry"
                " for the noise."
            )


def _consequence(facts: FollowUp) -> list[str]:
    sentence = {
        "still": "This mail makes no new claim. It only says that the change is still there.",
        "fixed": "We consider this closed. No action is needed.",
        "retraction": "Please do not add a tag for it. No fix is needed.",
    }.get(facts.kind)
    return ["", *wrap(sentence)] if sentence else []


def _fix(facts: FollowUp) -> list[str]:
    if facts.fix is None:
        return []
    return ["", "Fixed by", *wrap(_commit(facts.fix), "    ", "  ")]


def _grid(rows: tuple[ComparisonRow, ...], head: str) -> list[str]:
    labels = dict.fromkeys(
        f"{cut(row.testbox, 63)} ({cut(row.label, 100)})" for row in rows if row.label
    )
    lines = grid(
        [f"{cut(row.testbox, 40)}: {cut(row.metric, 60)}" for row in rows], rows, ("parent", head)
    )
    return [*lines, "", *(line for label in labels for line in wrap(label))] if labels else lines


def _head(facts: FollowUp) -> str:
    head = cut(facts.head, 40)[:12]
    where = cut(facts.where, 80)
    return " ".join(part for part in (where, f"({head})" if where and head else head) if part) or (
        "the commit" if facts.kind == "retraction" else "the tip"
    )


def _commit(commit: Commit) -> str:
    return f'{cut(commit.sha, 40)[:12]} ("{cut(commit.subject, 120)}")'


def _end(facts: FollowUp) -> list[str]:
    urls = [(cut(name, 20), web_address(url)) for name, url in facts.links.items()]
    links = [f"  {name}: {url}" for name, url in urls[:_MOST_LINKS] if url]
    bot = (
        "Sent by a bot, which may be wrong. A human is responsible for it:"
        f" {cut(facts.contact, 120)}. Report {cut(facts.report, 20)}."
    )
    return [*(["", *links] if links else []), "", *wrap(bot)]
