"""The content of a report as data, and the JSON in which it is stored and tested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from swingbot.core.mail.message import PostedMail
from swingbot.core.model.comparison_row import VERDICTS, ComparisonRow, Side, Verdict
from swingbot.core.model.statuses import GateAnswer
from swingbot.core.proof.clues import CLUE_KINDS, Clue
from swingbot.core.report.json_reader import BadFacts, Reader, number, one_of, texts
from swingbot_jobs.language.program import Better

GATE_STATUSES: tuple[GateAnswer, ...] = ("pass", "fail", "not run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    sha: str
    subject: str
    author: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionSummary:
    """The cost and the result of the search.

    `candidates` commits were searched with `boots` boots of `kernels` different kernels, of which
    `builds` were built for this bisection.
    """

    id: str
    candidates: int
    boots: int
    kernels: int
    builds: int
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One gate of proof.

    `name` is a word or two ("revert"). `reason` is a short phrase: why the gate passed, failed or
    was not run.
    """

    name: str
    status: GateAnswer
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """Content of the first mail about a culprit.

    The headline's numbers come from the boots that confirmed the culprit against its parent, `rows`
    from the comparison of the two over all jobs.
    `command` is the command line of the headline's program; `reproduce` are shell commands, one per
    line.
    `facts` (name to value, in print order) describe the environment: command line, root file
    system, THP and the like.
    `links` (name to URL): "page" is the report's own page and is printed first.
    `gates` are the gates of proof in print order; `clues` explain the change, best first; `boots`
    ("parent", "commit") are the ids of the headline's boots.
    `posted` is the mail that posted the patch. `merged` says whether others base their work on the
    culprit; None means unknown.
    `closes` is the URL under which this mail can be read. `regzbot` requests a line for that
    tracker, for merged regressions only.
    """

    report: str
    tree: str
    url: str
    branch: str
    culprit: Commit
    parent: str
    base: str
    head: str
    headline: ComparisonRow
    rows: tuple[ComparisonRow, ...] = ()
    bisection: BisectionSummary
    kconfig: str
    compiler_version: str
    facts: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    reproduce: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    reporter: str
    contact: str
    gates: tuple[Gate, ...] = ()
    clues: tuple[Clue, ...] = ()
    boots: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    posted: PostedMail | None = None
    merged: bool | None = None
    closes: str = ""
    regzbot: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return plain lists, mappings, strings and numbers; `from_json` restores an equal
        object."""
        return {
            "report": self.report,
            "tree": self.tree,
            "url": self.url,
            "branch": self.branch,
            "culprit": {
                "commit": self.culprit.sha,
                "subject": self.culprit.subject,
                "author": self.culprit.author,
            },
            "parent": self.parent,
            "base": self.base,
            "head": self.head,
            "headline": row_to_json(self.headline),
            "rows": [row_to_json(row) for row in self.rows],
            "bisection": {
                "id": self.bisection.id,
                "candidates": self.bisection.candidates,
                "boots": self.bisection.boots,
                "kernels": self.bisection.kernels,
                "builds": self.bisection.builds,
                "probability": self.bisection.probability,
            },
            "kconfig": self.kconfig,
            "compiler_version": self.compiler_version,
            "facts": dict(self.facts),
            "command": self.command,
            "reproduce": list(self.reproduce),
            "not_checked": list(self.not_checked),
            "links": dict(self.links),
            "reporter": self.reporter,
            "contact": self.contact,
            "gates": [
                {"name": gate.name, "status": gate.status, "reason": gate.reason}
                for gate in self.gates
            ],
            "clues": [
                {"kind": clue.kind, "name": clue.name, "words": clue.words} for clue in self.clues
            ],
            "boots": {side: list(ids) for side, ids in self.boots.items()},
            "posted": None if self.posted is None else posted_to_json(self.posted),
            "merged": self.merged,
            "closes": self.closes,
            "regzbot": self.regzbot,
        }

    @classmethod
    def from_json(cls, value: Any) -> ReportFacts:
        """Read the output of `to_json`, including that of versions without gates, clues etc.

        Raises BadFacts that names a missing or unknown key, or one of the wrong type.
        """
        top = Reader(value, "report")
        culprit, bisection = (
            Reader(top.take("culprit"), "culprit"),
            Reader(top.take("bisection"), "bisection"),
        )
        facts = cls(
            report=top.text("report"),
            tree=top.text("tree"),
            url=top.text("url"),
            branch=top.text("branch"),
            culprit=Commit(
                sha=culprit.text("commit"),
                subject=culprit.text("subject"),
                author=culprit.text("author"),
            ),
            parent=top.text("parent"),
            base=top.text("base"),
            head=top.text("head"),
            headline=row_from_json(top.take("headline"), "headline"),
            rows=tuple(row_from_json(row, f"rows[{n}]") for n, row in enumerate(top.items("rows"))),
            bisection=BisectionSummary(
                id=bisection.text("id"),
                candidates=bisection.whole("candidates"),
                boots=bisection.whole("boots"),
                kernels=bisection.whole("kernels"),
                builds=bisection.whole("builds"),
                probability=bisection.real("probability"),
            ),
            kconfig=top.text("kconfig"),
            compiler_version=top.text("compiler_version"),
            facts=top.texts_by_name("facts"),
            command=top.text("command"),
            reproduce=top.texts("reproduce"),
            not_checked=top.texts("not_checked"),
            links=top.texts_by_name("links"),
            reporter=top.text("reporter"),
            contact=top.text("contact"),
            gates=tuple(_gate(item) for item in top.items_if_there("gates")),
            clues=tuple(_clue(item) for item in top.items_if_there("clues")),
            boots={
                side: tuple(texts(ids, f"boots.{side}"))
                for side, ids in top.mapping_if_there("boots").items()
            },
            posted=posted_from_json(top.take_if_there("posted")),
            merged=top.flag_if_there("merged"),
            closes=top.text_if_there("closes") or "",
            regzbot=top.flag_if_there("regzbot") or False,
        )
        for reader in (culprit, bisection, top):
            reader.end()
        return facts


def posted_to_json(posted: PostedMail) -> dict[str, Any]:
    return {
        "message_id": posted.message_id,
        "subject": posted.subject,
        "references": list(posted.references),
    }


def posted_from_json(value: Any) -> PostedMail | None:
    if value is None:
        return None
    reader = Reader(value, "posted")
    posted = PostedMail(
        message_id=reader.text("message_id"),
        subject=reader.text("subject"),
        references=reader.texts("references"),
    )
    reader.end()
    return posted


def _gate(value: Any) -> Gate:
    reader = Reader(value, "gates")
    gate = Gate(
        name=reader.text("name"),
        status=one_of(reader.take("status"), GATE_STATUSES, "gates.status"),
        reason=reader.text("reason"),
    )
    reader.end()
    return gate


def _clue(value: Any) -> Clue:
    reader = Reader(value, "clues")
    clue = Clue(
        kind=one_of(reader.take("kind"), CLUE_KINDS, "clues.kind"),
        name=reader.text("name"),
        words=reader.text("words"),
    )
    reader.end()
    return clue


def _side_to_json(side: Side) -> dict[str, Any]:
    return {
        "boots": side.boots,
        "runs": side.runs,
        "mean": side.mean,
        "stddev": side.stddev,
        "values": list(side.values),
    }


def row_to_json(row: ComparisonRow) -> dict[str, Any]:
    """Return what a mail says of a row: sentence and run values, but not the judge's details."""
    return {
        "testbox": row.testbox,
        "label": row.label,
        "unit_job": row.unit_job,
        "metric": row.metric,
        "unit": row.unit,
        "sentence": row.sentence,
        "better": row.better,
        "base": _side_to_json(row.base),
        "head": _side_to_json(row.head),
        "change_pct": row.change_pct,
        "interval_pct": None if row.interval_pct is None else list(row.interval_pct),
        "verdict": row.verdict,
        "level": row.level,
        **({} if row.spread_ratio is None else {"spread_ratio": row.spread_ratio}),
    }


def _side_from_json(value: Any, where: str) -> Side:
    reader = Reader(value, where)
    values = tuple(number(value, f"{where}.values") for value in reader.items_if_there("values"))
    side = Side(
        boots=reader.whole("boots"),
        runs=reader.whole("runs"),
        mean=reader.real_or_none("mean"),
        stddev=reader.real_or_none("stddev"),
        values=values,
    )
    reader.end()
    return side


def row_from_json(value: Any, where: str) -> ComparisonRow:
    reader = Reader(value, where)
    row = ComparisonRow(
        testbox=reader.text("testbox"),
        label=reader.text("label"),
        unit_job=reader.text("unit_job"),
        metric=reader.text("metric"),
        unit=reader.text("unit"),
        sentence=reader.text("sentence"),
        better=_better(reader.take("better"), where),
        base=_side_from_json(reader.take("base"), f"{where}.base"),
        head=_side_from_json(reader.take("head"), f"{where}.head"),
        change_pct=reader.real_or_none("change_pct"),
        interval_pct=_bounds(reader.take("interval_pct"), where),
        verdict=_verdict(reader.text("verdict"), where),
        level=reader.text_if_there("level"),
        spread_ratio=reader.real_if_there("spread_ratio"),
    )
    reader.end()
    return row


def _better(value: Any, where: str) -> Better | None:
    if value is None or value == "higher" or value == "lower":
        return value  # type: ignore[no-any-return]  # narrowed by the comparison
    raise BadFacts(f"{where}.better: {value!r} is not one of higher, lower, null")


def _verdict(value: str, where: str) -> Verdict:
    if value not in VERDICTS:
        raise BadFacts(f"{where}.verdict: {value!r} is not one of {', '.join(VERDICTS)}")
    return value


def _bounds(value: Any, where: str) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise BadFacts(f"{where}.interval_pct: {value!r} is not two numbers")
    low, high = (number(v, f"{where}.interval_pct") for v in value)
    return low, high
