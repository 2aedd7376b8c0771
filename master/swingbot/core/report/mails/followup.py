"""The short mails that follow a first one in its thread: still there, an update, fixed, taken back. One screen each, facts in, text out."""

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
from swingbot.core.report.facts import (
    Commit,
    posted_from_json,
    posted_to_json,
    row_from_json,
    row_to_json,
)
from swingbot.core.report.json_reader import BadFacts, Reader, one_of
from swingbot.core.report.parts.comparison_table import grid
from swingbot.core.text.numbers import change
from swingbot.core.text.plain import cut, wrap

Kind = Literal["still", "update", "fixed", "retraction"]
KINDS: tuple[Kind, ...] = ("still", "update", "fixed", "retraction")
_MOST_ROWS = 8
_MOST_LINKS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """Everything that a short mail says.

    `first` is our first mail: Message-ID, subject and what it answered itself. `row` is the headline as it was reported, `rows` what was measured since,
    head against the culprit's parent; `where` names that head in words ("linux-next, master"), `head` is its commit.
    `fix` is the commit that mended it, where one is known; `reason` a sentence: why a report is taken back, what an update is about.
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
        """Plain lists, mappings, strings and numbers; `from_json` reads them back equal."""
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
        """Read what `to_json` wrote. Raises BadFacts that names the key that is missing, unknown or of the wrong kind."""
        top = Reader(value, "follow-up")
        first, fix = posted_from_json(top.take("first")), top.take_if_there("fix")
        if first is None:
            raise BadFacts("follow-up.first: null; a follow-up answers a first mail")
        found = cls(
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
        return found


def follow_up(facts: FollowUp) -> Mail:
    """A short mail that answers our first one: its subject with `Re:`, one sentence, the numbers, where to look."""
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
    metric, told = cut(facts.row.metric, 80), change(facts.row.change_pct, facts.row.better)
    first = f"what we reported as {metric} {told}"
    match facts.kind:
        case "still":
            return f"Still there: {first} is still seen at {_head(facts)}."
        case "update":
            return f"An update to {first}."
        case "fixed":
            return f"Fixed: {first} is gone at {_head(facts)}."
        case "retraction":
            return (
                f"We take back {first}. Please disregard that report; we are sorry for the noise."
            )


def _consequence(facts: FollowUp) -> list[str]:
    told = {
        "still": "Nothing new is claimed; this only says that it has not gone away.",
        "fixed": "We look no further; nothing needs to be done.",
        "retraction": "No tag should name it, and nothing needs to be mended because of it.",
    }.get(facts.kind)
    return ["", *wrap(told)] if told else []


def _fix(facts: FollowUp) -> list[str]:
    if facts.fix is None:
        return []
    return ["", "By", *wrap(_commit(facts.fix), "    ", "  ")]


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
    said = f"Sent by a bot, which may be wrong. A person answers for it: {cut(facts.contact, 120)}. Report {cut(facts.report, 20)}."
    return [*(["", *links] if links else []), "", *wrap(said)]


def _commit_to_json(commit: Commit) -> dict[str, Any]:
    return {"commit": commit.sha, "subject": commit.subject, "author": commit.author}


def _commit_from_json(value: Any, where: str) -> Commit:
    reader = Reader(value, where)
    commit = Commit(
        sha=reader.text("commit"), subject=reader.text("subject"), author=reader.text("author")
    )
    reader.end()
    return commit
