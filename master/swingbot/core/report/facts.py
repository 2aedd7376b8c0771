"""What a report says, before it has words: frozen facts, and the JSON they are kept and tested as."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Better = Literal["higher", "lower"]
Verdict = Literal["worse", "better", "changed", "same", "unclear", "invalid"]
VERDICTS: tuple[str, ...] = ("worse", "better", "changed", "same", "unclear", "invalid")


class BadFacts(ValueError):
    """A document is not the facts of a report; the message names the place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One kernel's half of a row: `mean` of boot means, `stddev` between boots (None for one boot), both in the metric's unit."""

    boots: int
    runs: int
    mean: float | None
    stddev: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One testbox, unit job and metric: parent (`base`) against the commit (`head`).

    `change_pct` is 100 * (head.mean / base.mean - 1), so that a reader can recompute it; `interval_pct` are its 95 % bounds.
    `label` says what the numbers of an emulated testbox are worth and is empty for a real machine.
    """

    testbox: str
    label: str
    unit_job: str
    metric: str
    unit: str
    sentence: str
    better: Better | None
    base: Side
    head: Side
    change_pct: float | None
    interval_pct: tuple[float, float] | None
    verdict: Verdict
    level: str | None = None  # what the means are where they are not plain means of boots

    @property
    def key(self) -> tuple[str, str, str]:
        return self.testbox, self.unit_job, self.metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    sha: str
    subject: str
    author: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection:
    """What the search cost: `candidates` commits looked at by `boots` boots of `kernels` different kernels (`builds` of them built for it)."""

    id: str
    candidates: int
    boots: int
    kernels: int
    builds: int
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """Everything the first mail about a culprit says.

    The headline's numbers come from the boots that confirmed the culprit against its parent, `rows` from the comparison of the two over all jobs.
    `command` is how the program of the headline was called; `reproduce` are commands for a shell, one a line.
    `facts` (name to value, in the order printed) describe the environment: command line, root file system, THP and the like.
    `links` (name to URL): "page" is the report's own page and the first to be printed.
    """

    report: str
    tree: str
    url: str
    branch: str
    culprit: Commit
    parent: str
    base: str
    head: str
    headline: Row
    rows: tuple[Row, ...] = ()
    bisection: Bisection
    kconfig: str
    compiler_version: str
    facts: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    reproduce: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    reporter: str
    contact: str

    def to_json(self) -> dict[str, Any]:
        """Plain lists, mappings, strings and numbers; `from_json` reads them back equal."""
        return {
            "report": self.report,
            "tree": self.tree,
            "url": self.url,
            "branch": self.branch,
            "culprit": {"commit": self.culprit.sha, "subject": self.culprit.subject, "author": self.culprit.author},
            "parent": self.parent,
            "base": self.base,
            "head": self.head,
            "headline": _row_to_json(self.headline),
            "rows": [_row_to_json(row) for row in self.rows],
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
        }

    @classmethod
    def from_json(cls, value: Any) -> ReportFacts:
        """Read what `to_json` wrote. Raises BadFacts that names the key that is missing, unknown or of the wrong kind."""
        top = _Reader(value, "report")
        culprit, bisection = _Reader(top.take("culprit"), "culprit"), _Reader(top.take("bisection"), "bisection")
        facts = cls(
            report=top.text("report"),
            tree=top.text("tree"),
            url=top.text("url"),
            branch=top.text("branch"),
            culprit=Commit(sha=culprit.text("commit"), subject=culprit.text("subject"), author=culprit.text("author")),
            parent=top.text("parent"),
            base=top.text("base"),
            head=top.text("head"),
            headline=_row_from_json(top.take("headline"), "headline"),
            rows=tuple(_row_from_json(row, f"rows[{n}]") for n, row in enumerate(top.items("rows"))),
            bisection=Bisection(
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
        )
        for reader in (culprit, bisection, top):
            reader.end()
        return facts


def _side_to_json(side: Side) -> dict[str, Any]:
    return {"boots": side.boots, "runs": side.runs, "mean": side.mean, "stddev": side.stddev}


def _row_to_json(row: Row) -> dict[str, Any]:
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
    }


def _side_from_json(value: Any, where: str) -> Side:
    reader = _Reader(value, where)
    side = Side(boots=reader.whole("boots"), runs=reader.whole("runs"), mean=reader.real_or_none("mean"), stddev=reader.real_or_none("stddev"))
    reader.end()
    return side


def _row_from_json(value: Any, where: str) -> Row:
    reader = _Reader(value, where)
    row = Row(
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
    )
    reader.end()
    return row


def _better(value: Any, where: str) -> Better | None:
    if value is None or value == "higher" or value == "lower":
        return value  # type: ignore[no-any-return]  # narrowed by the comparison
    raise BadFacts(f"{where}.better: {value!r} is none of higher, lower, null")


def _verdict(value: str, where: str) -> Verdict:
    if value not in VERDICTS:
        raise BadFacts(f"{where}.verdict: {value!r} is none of {', '.join(VERDICTS)}")
    return value  # type: ignore[return-value]  # checked above


def _bounds(value: Any, where: str) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise BadFacts(f"{where}.interval_pct: {value!r} is not two numbers")
    low, high = (_number(v, f"{where}.interval_pct") for v in value)
    return low, high


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise BadFacts(f"{where}: {value!r} is not a finite number")
    return float(value)


class _Reader:
    """Takes the keys of one mapping, once each; what is left over at the end is an error."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, Mapping):
            raise BadFacts(f"{where}: is not a mapping")
        self._left = dict(value)
        self._where = where

    def take(self, key: str) -> Any:
        if key not in self._left:
            raise BadFacts(f"{self._where}.{key}: is missing")
        return self._left.pop(key)

    def end(self) -> None:
        if self._left:
            raise BadFacts(f"{self._where}: unknown key {next(iter(self._left))!r}")

    def text(self, key: str) -> str:
        return self._text(self.take(key), key)

    def text_if_there(self, key: str) -> str | None:
        """For a key that reports of an older swingbot do not have."""
        value = self._left.pop(key, None)
        return None if value is None else self._text(value, key)

    def _text(self, value: Any, key: str) -> str:
        if not isinstance(value, str):
            raise BadFacts(f"{self._where}.{key}: {value!r} is not text")
        return value

    def whole(self, key: str) -> int:
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise BadFacts(f"{self._where}.{key}: {value!r} is not a count")
        return value

    def real(self, key: str) -> float:
        return _number(self.take(key), f"{self._where}.{key}")

    def real_or_none(self, key: str) -> float | None:
        value = self.take(key)
        return None if value is None else _number(value, f"{self._where}.{key}")

    def items(self, key: str) -> list[Any]:
        value = self.take(key)
        if not isinstance(value, (list, tuple)):
            raise BadFacts(f"{self._where}.{key}: is not a list")
        return list(value)

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(self._text(item, key) for item in self.items(key))

    def texts_by_name(self, key: str) -> dict[str, str]:
        value = self.take(key)
        if not isinstance(value, Mapping):
            raise BadFacts(f"{self._where}.{key}: is not a mapping")
        return {self._text(name, key): self._text(item, key) for name, item in value.items()}
