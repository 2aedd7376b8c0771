"""A comparison row: one metric of one unit job on one testbox, base against head."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

from swingbot.core.model.statuses import Reference
from swingbot_jobs import codec
from swingbot_jobs.codec import Count, Hidden, Named, Required, Sparse
from swingbot_jobs.language.better import Better

Verdict = Literal["worse", "better", "changed", "same", "unclear", "invalid"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
CHANGED: Final[tuple[Verdict, ...]] = ("worse", "better", "changed")  # verdicts of a change
Key = tuple[str, str, str]  # testbox, unit job, metric
Bounds = tuple[float, float]  # low and high end of a 95 % interval
_NAMES: Final = frozenset(
    ("unit_job", "testbox", "label", "metric", "unit", "problems", "headline", "alias_of")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One kernel's half of a row, in the metric's unit."""

    boots: Count
    runs: Count
    mean: float | None  # of boot means, or the level named by `ComparisonRow.level`
    stddev: float | None  # between boots, of their means or medians; None with one boot
    stddev_within: float | None = None  # of one run, pooled; None where no boot has two runs
    values: Sparse[tuple[float, ...]] = ()  # of each run, by boot, if a table needs them


NO_BOOTS: Final = Side(boots=0, runs=0, mean=None, stddev=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """The change of a share in percentage points: head.mean - base.mean."""

    change: float | None
    interval: Bounds | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutSpread:
    """What another build of equal code may add to a row."""

    sd_pct: float  # standard deviation between layouts, of one kernel
    df: float | None  # degrees of freedom of the measurement; None: assumed, not measured
    share: float  # of the variance of the row's change

    @property
    def assumed(self) -> bool:
        """Whether an assumption makes up most of the interval."""
        return self.df is None and self.share > 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """Runs of one kernel that are far off its others beyond chance, and that the change follows."""

    side: Literal["base", "head"]  # which has more of them
    far: int  # runs far off
    runs: int
    other_far: int  # the same of the other side
    other_runs: int
    apart_pct: float | None  # how far off they are
    rest_pct: float | None  # change of the other runs
    percentile: Literal[1, 99]  # of the runs, on the side where they lie
    base: float  # that percentile, in the metric's unit
    head: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """The result of a comparison for one metric.

    `compare` fills in the numbers, its caller the names. Missing values are None, never 0.
    """

    # Measurements, in the order of the document
    klass: Annotated[str | None, Named("class")] = None  # None where it is not known
    better: Better | None  # None: neither direction is better
    base: Side
    head: Side
    change_pct: float | None  # 100 * (head.mean / base.mean - 1)
    interval_pct: Bounds | None  # of the change (Rule.interval_alpha)
    verdict: Verdict
    reason: str | None = None  # for unclear, invalid and same; a note for the others
    level: str | None = None  # kind of the means; None: plain means of boot means
    min_effect_pct: float | None = None  # smallest change that matters; points for a share
    margin_pct: float | None = None  # larger changes are excluded at the rule's alpha
    more_boots: int | None = None  # per side; number that would settle an unclear row
    paired: bool | None = None  # boot k against boot k; None: nothing was compared
    p: float | None = None  # two-sided, of "no effect"
    layout: Sparse[LayoutSpread | None] = None  # None: none is added
    # head's spread between boots over base's, if they differ significantly
    spread_ratio: Sparse[float | None] = None
    points: Sparse[Points | None] = None  # shares only
    tail: Sparse[Tail | None] = None  # None: no runs are far off on one side beyond chance
    # Identity and description of the row in a comparison; empty for numbers typed in by a person
    unit_job: Required[str] = ""
    testbox: Required[str] = ""
    label: str = ""  # what the numbers of an emulated testbox are worth; empty for a real machine
    metric: Required[str] = ""
    unit: str = ""
    problems: tuple[str, ...] = ()  # problems of boots and runs
    headline: bool = False  # first metric of its program; only these can become swings
    # metric of the same part with the same number: meta.yaml
    alias_of: Sparse[str | None] = None
    # the commit between reference and row, if it is only one
    attributed_to: Sparse[str | None] = None
    sentence: Sparse[str] = ""  # meaning of the metric; for mails only
    # sha256 of the boot spec; the arm, its reference and the rule that selects the reference:
    # set by the database
    spec: Hidden[str] = ""
    arm: Hidden[int] = 1
    reference: Hidden[int] = 0
    against: Hidden[Reference] = "first"
    # Intermediate results on the scale of effects; never stored
    effect: Hidden[float | None] = None  # log ratio; for differences, over the larger mean
    stderr: Hidden[float | None] = None
    df: Hidden[float | None] = None  # degrees of freedom of `stderr`

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
        """Return the row as it is stored and as scripts read it.

        The samples are stored separately. Results of a calculation are left out if there was none.
        """
        document = codec.plain(self)
        for side in (document["base"], document["head"]):
            side.pop("values", None)
        if self.paired is None:
            for key in ("margin_pct", "paired", "p"):
                del document[key]
        for key, value in document.pop("points", {}).items():
            document[f"{key}_points"] = value
        return dict(document)

    def verdict_json(self) -> dict[str, Any]:
        """Return the row without names, as `swingbot stats compare` prints it."""
        return {key: value for key, value in self.to_json().items() if key not in _NAMES}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> ComparisonRow:
        """Read a stored row, or one of a comparison's JSON, whose other keys are ignored.

        Raises BadDocument.
        """
        points = {key: given.get(f"{key}_points") for key in ("change", "interval")}
        shares = {"points": points} if "change_points" in given else {}
        return codec.typed(cls, {**given, **shares}, "row", ignore_unknown=True)


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
