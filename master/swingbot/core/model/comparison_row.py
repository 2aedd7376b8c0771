"""A comparison row: one metric of one unit job on one testbox, base against head, from the judge to the mail."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from swingbot.core.model.statuses import ReferenceRule
from swingbot_jobs.language.program import Better

Verdict = Literal["worse", "better", "changed", "same", "unclear", "invalid"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
CHANGED: Final[tuple[Verdict, ...]] = ("worse", "better", "changed")  # those that claim a change
Key = tuple[str, str, str]  # testbox, unit job, metric
Bounds = tuple[float, float]  # low and high end of a 95 % interval


class BadRow(ValueError):
    """A JSON document is not a comparison row; the message names the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One kernel's half of a row, in the metric's unit."""

    boots: int
    runs: int
    mean: float | None  # of boot means; of the level that `ComparisonRow.level` names
    stddev: float | None  # between boots, of their means or medians; None with one boot
    stddev_within: float | None = None  # of one run, pooled; None where no boot has two runs
    values: tuple[float, ...] = ()  # of each run, boot by boot, where a table needs them

    def to_json(self) -> dict[str, Any]:
        """Without `values`: the samples are stored on their own."""
        return {
            "boots": self.boots,
            "runs": self.runs,
            "mean": self.mean,
            "stddev": self.stddev,
            "stddev_within": self.stddev_within,
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Side:
        """Raises BadRow."""
        return cls(
            boots=_taken(given, "boots"),
            runs=_taken(given, "runs"),
            mean=_taken(given, "mean"),
            stddev=_taken(given, "stddev"),
            stddev_within=given.get("stddev_within"),
        )


NO_BOOTS: Final = Side(boots=0, runs=0, mean=None, stddev=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """The change of a share in points of a hundred: head.mean - base.mean."""

    change: float | None
    interval: Bounds | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """What a comparison says of one metric: `compare` fills in the numbers, the judge the names. Missing is None, never 0."""

    # Which row of a comparison it is; empty for numbers that somebody typed in.
    testbox: str = ""
    unit_job: str = ""
    metric: str = ""
    alias_of: str | None = None  # the metric of the same part that is the same number: meta.yaml
    spec: str = ""  # sha256 of the boot spec that was run; the database adds it
    # Which arm it is of, which one it is compared with, and by which rule; the database adds them.
    arm: int = 1
    reference: int = 0
    against: ReferenceRule = "first"
    # The metric and its testbox, for the reader.
    label: str = ""  # what the numbers of an emulated testbox are worth; empty for a real machine
    unit: str = ""
    sentence: str = ""  # what the metric means; mails only
    better: Better | None  # None: neither direction is better by itself
    klass: str | None = None  # `class` in JSON; None where it is not known
    headline: bool = False  # the first metric of its program: only these can become swings
    min_effect_pct: float | None = None  # smallest change that matters; points for a share
    # What was measured.
    base: Side
    head: Side
    change_pct: float | None  # 100 * (head.mean / base.mean - 1)
    interval_pct: Bounds | None  # around it (Rule.interval_alpha)
    points: Points | None = None  # shares only
    level: str | None = None  # what the means are of; None: plain means of boot means
    verdict: Verdict
    reason: str | None = None  # for unclear, invalid and same; a note for the others
    margin_pct: float | None = None  # a larger change is excluded at the rule's alpha
    more_boots: int | None = None  # a side; what would settle an unclear row
    paired: bool | None = None  # boot k against boot k; None: nothing was compared
    p: float | None = None  # two-sided, of "no effect"
    spread_ratio: float | None = (
        None  # head's spread between boots over base's, where the two differ beyond chance
    )
    problems: tuple[str, ...] = ()  # what went wrong in boots and runs, in words
    # Of the calculation, on the scale of effects; never stored.
    effect: float | None = None  # log ratio; for differences, over the larger mean magnitude
    stderr: float | None = None
    df: float | None = None  # degrees of freedom of `stderr`

    @property
    def key(self) -> Key:
        return self.testbox, self.unit_job, self.metric

    @property
    def original(self) -> Key:
        """The key of the row whose number this is: its own unless it is an alias."""
        return self.testbox, self.unit_job, self.alias_of or self.metric

    @property
    def changed(self) -> bool:
        """Whether the verdict claims a change."""
        return self.verdict in CHANGED

    @property
    def min_effect(self) -> float:
        """The smallest change that matters, as a log ratio."""
        assert self.min_effect_pct is not None, "only rows that were judged have one"
        return math.log1p(self.min_effect_pct / 100.0)

    def to_json(self) -> dict[str, Any]:
        """The row as it is stored and as scripts read it."""
        return self.verdict_json() | {
            "unit_job": self.unit_job,
            "testbox": self.testbox,
            "label": self.label,
            "metric": self.metric,
            "unit": self.unit,
            "problems": list(self.problems),
            "headline": self.headline,
            **({"alias_of": self.alias_of} if self.alias_of else {}),
        }

    def verdict_json(self) -> dict[str, Any]:
        """The row without names, as `swingbot stats compare` prints it."""
        facts: dict[str, Any] = {
            "class": self.klass,
            "better": self.better,
            "base": self.base.to_json(),
            "head": self.head.to_json(),
            "change_pct": self.change_pct,
            "interval_pct": _listed(self.interval_pct),
            "verdict": self.verdict,
            "reason": self.reason,
            "level": self.level,
            "min_effect_pct": self.min_effect_pct,
            "margin_pct": self.margin_pct,
            "more_boots": self.more_boots,
            "paired": self.paired,
            "p": self.p,
        }
        if self.paired is None:  # what follows from a calculation is left out where there was none
            for key in ("margin_pct", "paired", "p"):
                del facts[key]
        if self.spread_ratio is not None:
            facts["spread_ratio"] = self.spread_ratio
        if self.points is not None:
            facts["change_points"] = self.points.change
            facts["interval_points"] = _listed(self.points.interval)
        return facts

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> ComparisonRow:
        """Read a stored row, or one of a comparison's JSON. Keys that older rows lack are None, unknown ones are passed over. Raises BadRow."""
        return cls(
            testbox=_taken(given, "testbox"),
            unit_job=_taken(given, "unit_job"),
            metric=_taken(given, "metric"),
            alias_of=given.get("alias_of"),
            spec=given.get("spec") or "",
            arm=given.get("arm", 1),
            reference=given.get("reference", 0),
            against=given.get("against", "first"),
            label=given.get("label") or "",
            unit=given.get("unit") or "",
            better=given.get("better"),
            klass=given.get("class"),
            headline=bool(given.get("headline")),
            min_effect_pct=given.get("min_effect_pct"),
            base=Side.from_json(_taken(given, "base")),
            head=Side.from_json(_taken(given, "head")),
            change_pct=_taken(given, "change_pct"),
            interval_pct=_bounds(_taken(given, "interval_pct")),
            points=_points(given),
            level=given.get("level"),
            verdict=_verdict(_taken(given, "verdict")),
            reason=given.get("reason"),
            margin_pct=given.get("margin_pct"),
            more_boots=given.get("more_boots"),
            paired=given.get("paired"),
            p=given.get("p"),
            spread_ratio=given.get("spread_ratio"),
            problems=tuple(given.get("problems") or ()),
        )


def key_of(document: Mapping[str, Any]) -> Key:
    """The key of a row, sample or bisection as JSON."""
    return document["testbox"], document["unit_job"], document["metric"]


def without_aliases(rows: Iterable[ComparisonRow]) -> list[ComparisonRow]:
    """The rows in their order, each number once: an alias is left out beside its original."""
    given = list(rows)
    there = {row.key for row in given}
    return [row for row in given if row.alias_of is None or row.original not in there]


def aliases_of(row: ComparisonRow, rows: Iterable[ComparisonRow]) -> tuple[str, ...]:
    """The other metrics of its part that are the same number as `row`."""
    return tuple(
        other.metric for other in rows if other.alias_of is not None and other.original == row.key
    )


def row_of(rows: Iterable[ComparisonRow], key: Key) -> ComparisonRow | None:
    """The row of that testbox, unit job and metric; None where the comparison has none."""
    return next((row for row in rows if row.key == key), None)


def _taken(given: Mapping[str, Any], key: str) -> Any:
    if key not in given:
        raise BadRow(f"a comparison row without {key!r}: it has {', '.join(sorted(given))}")
    return given[key]


def _verdict(given: Any) -> Verdict:
    for verdict in VERDICTS:
        if verdict == given:
            return verdict
    raise BadRow(f"verdict {given!r} of a comparison row is none of {', '.join(VERDICTS)}")


def _points(given: Mapping[str, Any]) -> Points | None:
    if "change_points" not in given:
        return None
    return Points(change=given["change_points"], interval=_bounds(given.get("interval_points")))


def _bounds(given: Any) -> Bounds | None:
    return (given[0], given[1]) if given else None


def _listed(bounds: Bounds | None) -> list[float] | None:
    return None if bounds is None else list(bounds)
