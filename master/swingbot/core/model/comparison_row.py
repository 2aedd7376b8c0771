"""A comparison row: one metric of one unit job on one testbox, base against head."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from swingbot.core.model.statuses import Reference
from swingbot_jobs.language.program import Better

Verdict = Literal["worse", "better", "changed", "same", "unclear", "invalid"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
CHANGED: Final[tuple[Verdict, ...]] = ("worse", "better", "changed")  # verdicts of a change
Key = tuple[str, str, str]  # testbox, unit job, metric
Bounds = tuple[float, float]  # low and high end of a 95 % interval


class BadRow(ValueError):
    """A JSON document is not a comparison row; the message names the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One kernel's half of a row, in the metric's unit."""

    boots: int
    runs: int
    mean: float | None  # of boot means, or the level named by `ComparisonRow.level`
    stddev: float | None  # between boots, of their means or medians; None with one boot
    stddev_within: float | None = None  # of one run, pooled; None where no boot has two runs
    values: tuple[float, ...] = ()  # of each run, by boot, if a table needs them

    def to_json(self) -> dict[str, Any]:
        """Return JSON without `values`, as the samples are stored separately."""
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
    """The change of a share in percentage points: head.mean - base.mean."""

    change: float | None
    interval: Bounds | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """The result of a comparison for one metric.

    `compare` fills in the numbers, its caller the names. Missing values are None, never 0.
    """

    # Identity of the row in a comparison; empty for numbers typed in by a person
    testbox: str = ""
    unit_job: str = ""
    metric: str = ""
    alias_of: str | None = None  # metric of the same part with the same number: meta.yaml
    spec: str = ""  # sha256 of the boot spec; set by the database
    # The arm, its reference and the rule that selects the reference; set by the database
    arm: int = 1
    reference: int = 0
    against: Reference = "first"
    # Description of metric and testbox for the reader
    label: str = ""  # what the numbers of an emulated testbox are worth; empty for a real machine
    unit: str = ""
    sentence: str = ""  # meaning of the metric; for mails only
    better: Better | None  # None: neither direction is better
    klass: str | None = None  # `class` in JSON; None where it is not known
    headline: bool = False  # first metric of its program; only these can become swings
    min_effect_pct: float | None = None  # smallest change that matters; points for a share
    # Measurements
    base: Side
    head: Side
    change_pct: float | None  # 100 * (head.mean / base.mean - 1)
    interval_pct: Bounds | None  # of the change (Rule.interval_alpha)
    points: Points | None = None  # shares only
    level: str | None = None  # kind of the means; None: plain means of boot means
    verdict: Verdict
    reason: str | None = None  # for unclear, invalid and same; a note for the others
    margin_pct: float | None = None  # larger changes are excluded at the rule's alpha
    more_boots: int | None = None  # per side; number that would settle an unclear row
    paired: bool | None = None  # boot k against boot k; None: nothing was compared
    p: float | None = None  # two-sided, of "no effect"
    spread_ratio: float | None = (
        None  # head's spread between boots over base's, if they differ significantly
    )
    attributed_to: str | None = None  # the commit between reference and row, if it is only one
    problems: tuple[str, ...] = ()  # problems of boots and runs
    # Intermediate results on the scale of effects; never stored
    effect: float | None = None  # log ratio; for differences, over the larger mean magnitude
    stderr: float | None = None
    df: float | None = None  # degrees of freedom of `stderr`

    @property
    def key(self) -> Key:
        return self.testbox, self.unit_job, self.metric

    @property
    def original(self) -> Key:
        """The key of the row that an alias repeats; otherwise the row's own key."""
        return self.testbox, self.unit_job, self.alias_of or self.metric

    @property
    def changed(self) -> bool:
        """Whether the verdict claims a change."""
        return self.verdict in CHANGED

    @property
    def spread_changed(self) -> bool:
        """Whether the row claims a change of the spread between boots and none of the level."""
        return self.spread_ratio is not None and not self.changed

    @property
    def min_effect(self) -> float:
        """The smallest relevant change, as a log ratio."""
        assert self.min_effect_pct is not None, "only rows that were judged have one"
        return math.log1p(self.min_effect_pct / 100.0)

    def to_json(self) -> dict[str, Any]:
        """Return the row as it is stored and as scripts read it."""
        return self.verdict_json() | {
            "unit_job": self.unit_job,
            "testbox": self.testbox,
            "label": self.label,
            "metric": self.metric,
            "unit": self.unit,
            "problems": list(self.problems),
            "headline": self.headline,
            **({"alias_of": self.alias_of} if self.alias_of else {}),
            **({"attributed_to": self.attributed_to} if self.attributed_to else {}),
        }

    def verdict_json(self) -> dict[str, Any]:
        """Return the row without names, as `swingbot stats compare` prints it."""
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
        if self.paired is None:  # results of a calculation are left out if there was none
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
        """Read a stored row, or one of a comparison's JSON.

        Missing keys become None, unknown keys are ignored. Raises BadRow.
        """
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
            attributed_to=given.get("attributed_to"),
            problems=tuple(given.get("problems") or ()),
        )


def key_of(document: Mapping[str, Any]) -> Key:
    """Return the key of a row, sample or bisection in JSON."""
    return document["testbox"], document["unit_job"], document["metric"]


def without_aliases(rows: Iterable[ComparisonRow]) -> list[ComparisonRow]:
    """Return the rows in order, without aliases of rows that are present."""
    listed = list(rows)
    present = {row.key for row in listed}
    return [row for row in listed if row.alias_of is None or row.original not in present]


def folded(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in JSON without those that repeat a number under another name; `aliases` of a
    row has these names.
    """
    present = {key_of(row) for row in rows}
    names: dict[Key, list[str]] = {}
    shown = []
    for row in rows:
        testbox, unit_job, metric = key_of(row)
        original = (testbox, unit_job, row.get("alias_of") or metric)
        if row.get("alias_of") and original in present:
            names.setdefault(original, []).append(metric)
        else:
            shown.append(row)
    return [{**row, "aliases": tuple(names.get(key_of(row), ()))} for row in shown]


def aliases_of(row: ComparisonRow, rows: Iterable[ComparisonRow]) -> tuple[str, ...]:
    """Return the other metrics of the part that repeat the number of `row`."""
    return tuple(
        other.metric for other in rows if other.alias_of is not None and other.original == row.key
    )


def row_of(rows: Iterable[ComparisonRow], key: Key) -> ComparisonRow | None:
    """Return the row for a testbox, unit job and metric; None if there is none."""
    return next((row for row in rows if row.key == key), None)


def row_at(rows: Iterable[ComparisonRow], key: Key) -> ComparisonRow | None:
    """Return the row for a testbox, unit job and metric in a comparison that was asked for it.

    If the comparison moved to another testbox of the group, none of its rows is of that testbox,
    and the row is that of the only other one. None if there is none.
    """
    known = list(rows)
    if any(row.testbox == key[0] for row in known):
        return row_of(known, key)
    moved = [row for row in known if row.key[1:] == key[1:]]
    return moved[0] if len(moved) == 1 else None


def _taken(given: Mapping[str, Any], key: str) -> Any:
    if key not in given:
        raise BadRow(f"a comparison row lacks {key!r}; it has {', '.join(sorted(given))}")
    return given[key]


def _verdict(given: Any) -> Verdict:
    for verdict in VERDICTS:
        if verdict == given:
            return verdict
    raise BadRow(f"verdict {given!r} of a comparison row is not one of {', '.join(VERDICTS)}")


def _points(given: Mapping[str, Any]) -> Points | None:
    if "change_points" not in given:
        return None
    return Points(change=given["change_points"], interval=_bounds(given.get("interval_points")))


def _bounds(given: Any) -> Bounds | None:
    return (given[0], given[1]) if given else None


def _listed(bounds: Bounds | None) -> list[float] | None:
    return None if bounds is None else list(bounds)
