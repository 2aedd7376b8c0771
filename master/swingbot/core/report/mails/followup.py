"""Short mails in the thread of a first report: still present, update, fixed, retraction.

Each fits on one screen. Facts in, text out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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
from swingbot.core.report.json_reader import BadFacts, Reader, one_of
from swingbot.core.report.parts.comparison_table import grid
from swingbot.core.report.report_facts import (
    Commit,
    posted_from_json,
    posted_to_json,
    row_from_json,
    row_to_json,
)
from swingbot.core.text.numbers import change
from swingbot.core.text.plain import cut, wrap

Kind = Literal["still", "update", "fixed", "retraction"]
KINDS: tuple[Kind, ...] = ("still", "update", "fixed", "retraction")
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

    def to_json(self) -> dict[str, Any]:
        """Return plain lists, mappings, strings and numbers; `from_json` restores an equal
        object."""
        return {
            "kind": self.kind,
            "report": self.report,
            "first": posted_to_json(self.first),
            "culprit": _commit_to_json(self.culprit),
            "row": row_to_json(self.row),
            "rows": [row_to_json(row) for row in self.rows],
            "where": self.where,
            "head": self.head,
            "fix": None if self.fix is None else _commit_to_json(self.fix),
            "reason": self.reason,
            "links": dict(self.links),
            "contact": self.contact,
        }

    @classmethod
    def from_json(cls, value: Any) -> FollowUp:
        """Read the output of `to_json`.

        Raises BadFacts that names a missing or unknown key, or one of the wrong type.
        """
        top = Reader(value, "follow-up")
        first, fix = posted_from_json(top.take("first")), top.take_if_there("fix")
        if first is None:
            raise BadFacts("follow-up.first: null; a follow-up must refer to a first mail")
        follow_up_facts = cls(
            kind=one_of(top.take("kind"), KINDS, "follow-up.kind"),
            report=top.text("report"),
            first=first,
            culprit=_commit_from_json(top.take("culprit"), "culprit"),
            row=row_from_json(top.take("row"), "row"),
            rows=tuple(
                row_from_json(row, f"rows[{n}]") for n, row in enumerate(top.items_if_there("rows"))
            ),
            where=top.text_if_there("where") or "",
            head=top.text_if_there("head") or "",
            fix=None if fix is None else _commit_from_json(fix, "fix"),
            reason=top.text_if_there("reason") or "",
            links=top.texts_by_name("links"),
            contact=top.text("contact"),
        )
        top.end()
        return follow_up_facts


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


def _commit_to_json(commit: Commit) -> dict[str, Any]:
    return {"commit": commit.sha, "subject": commit.subject, "author": commit.author}


def _commit_from_json(value: Any, where: str) -> Commit:
    reader = Reader(value, where)
    commit = Commit(
        sha=reader.text("commit"), subject=reader.text("subject"), author=reader.text("author")
    )
    reader.end()
    return commit
