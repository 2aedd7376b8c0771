"""Judge the arms of a table on one testbox: each metric of each arm against its reference.

Where the boots come from is not its business: `service/table/judge.py` loads those of a request,
`core/results/existing_boots.py` those that exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from swingbot.core.model.comparison_row import NO_BOOTS, ComparisonRow
from swingbot.core.model.statuses import Reference
from swingbot.core.plan.aliases import with_aliases
from swingbot.core.plan.metric_rules import makes_row, metric_of, runs_with
from swingbot.core.stats.fact_differences import (
    BootSettings,
    FactDifference,
    against,
    differences,
    explanation,
    facts_for,
)
from swingbot.core.stats.family import compare_family, recoveries
from swingbot.core.stats.looks import FIRST_LOOK, Look
from swingbot.core.stats.rows import BootRuns, Rule, with_lost_runs
from swingbot.core.table.references import references
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Metric, Program
from swingbot_jobs.reading.perf_stat import RUNNING

PART_METRICS: Final = 50  # judged at a time: 0.1 s of a table with two rows
Pair = tuple[int, int]  # (reference, row), as indices into the arms
MetricKey = tuple[str, str]  # unit job, metric


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBoot:
    """A boot that took place. Equal `k` on a paired testbox mean the same perturbation."""

    k: int
    facts: Mapping[str, Any]
    values: Mapping[MetricKey, Sequence[float]] = field(default_factory=dict)  # {}: not up


@dataclass(frozen=True, kw_only=True)
class MeasuredArm:
    """A row of the table and its boots on the testbox."""

    name: str
    axes: Mapping[str, str] = field(default_factory=dict)
    commit: str = ""
    parents: Sequence[str] = ()
    image: str | None  # sha256; None: the kernel does not exist
    trouble: str | None = None  # the reason in that case, as a predicate: "does not build: ..."
    spec: str = ""
    jobs: Sequence[UnitJob] = ()  # that its boots run, with its own settings
    boots: Sequence[MeasuredBoot] = ()
    problems: Sequence[str] = ()  # of its boots and runs, as text
    first_k: int = 0  # of its first boot beside the others
    units: Mapping[MetricKey, str] = field(default_factory=dict)  # as recorded with the samples

    @cached_property
    def measured(self) -> frozenset[MetricKey]:
        """What any of its boots has values of."""
        return frozenset(key for boot in self.boots for key in boot.values)

    def runs_of(self, key: MetricKey) -> list[BootRuns]:
        """Return the runs of a metric, one BootRuns for each boot that has values of it."""
        return [
            BootRuns(k=boot.k, values=tuple(boot.values[key]))
            for boot in self.boots
            if key in boot.values
        ]

    def shares_of(self, key: MetricKey) -> list[float]:
        """Return the running shares, in percent, of the runs in which perf extrapolated a count."""
        job, (program, _, event) = key[0], key[1].partition(".")
        share = (job, f"{program}.{RUNNING}{event}")
        return [value for boot in self.boots for value in boot.values.get(share, ())]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestboxRule:
    """How the arms on one testbox are judged."""

    testbox: str
    label: str
    paired: bool  # boots of equal k are pairs
    jobs: Mapping[str, UnitJob]
    programs: Mapping[str, Program]
    of_metric: Callable[[UnitJob, Metric], Rule]
    against: Sequence[Reference] = ("first",)
    metrics: Sequence[MetricKey] | None = None  # None: all that make a row
    headlines: int | None = None  # headline metrics of the testbox; None: those of `metrics`
    look: Look = FIRST_LOOK
    note: str = ""  # what a reader of a verdict must know

    def metric(self, name: str) -> Metric:
        return metric_of(self.programs, name)


def rows_of(arms: Sequence[MeasuredArm], rule: TestboxRule) -> Iterator[ComparisonRow]:
    """Return the rows of all metrics, by reference and metric."""
    return with_aliases(rows_without_aliases(arms, rule), rule.jobs, rule.programs)


def rows_without_aliases(arms: Sequence[MeasuredArm], rule: TestboxRule) -> Iterator[ComparisonRow]:
    keys = metrics_in_order(arms, rule) if rule.metrics is None else rule.metrics
    headlines = rule.headlines
    if headlines is None:
        headlines = sum(rule.metric(name).headline for _, name in keys)
    for reference in rule.against:
        pairs = [pair for pair in pairs_of(arms, reference) if _built(arms, pair)]
        facts = {
            (base, head): fact_differences(arms[base], arms[head], paired=rule.paired)
            for base, head in pairs
        }
        for key in keys:
            yield from _family(arms, facts, key, headlines, reference, rule)


def in_parts(rule: TestboxRule, metrics: Sequence[MetricKey]) -> Iterator[TestboxRule]:
    """Yield rules for some of the `metrics` each, whose rows together are those of all."""
    headlines = sum(rule.metric(name).headline for _, name in metrics)
    for at in range(0, len(metrics), PART_METRICS):
        yield replace(rule, metrics=metrics[at : at + PART_METRICS], headlines=headlines)


def built_pairs(arms: Sequence[MeasuredArm], rule: TestboxRule) -> list[Pair]:
    """Return the pairs of all references that have both kernels."""
    pairs = [pair for reference in rule.against for pair in pairs_of(arms, reference)]
    return [pair for pair in pairs if _built(arms, pair)]


def pairs_of(arms: Sequence[MeasuredArm], reference: Reference) -> list[Pair]:
    """Return the pairs of one reference, those without a kernel included."""
    missing = {index for index, arm in enumerate(arms) if not arm.measured}
    names = [arm.name for arm in arms]
    return references(reference, [arm.axes for arm in arms], missing, names=names)


def rows_without_numbers(arms: Sequence[MeasuredArm], rule: TestboxRule) -> Iterator[ComparisonRow]:
    """Return a row for each unit job without a result from any arm, and for each unit job of a pair
    that lacks a kernel.
    """
    heard = {job for arm in arms for job, _ in arm.measured}
    for reference in rule.against:
        for base, head in pairs_of(arms, reference):
            if _built(arms, (base, head)):
                problems = [*arms[base].problems, *arms[head].problems]
                why = "; ".join(["no run of either kernel reported a result", *problems[:1]])
                silent = [job for name, job in rule.jobs.items() if name not in heard]
            else:
                problems, why = [], _unbuilt(arms[base], arms[head])
                silent = list(rule.jobs.values())
            for job in silent:
                row = _nothing(job, why, problems, rule)
                yield replace(row, against=reference, reference=base, arm=head)


def _built(arms: Sequence[MeasuredArm], pair: Pair) -> bool:
    return all(arms[index].image is not None for index in pair)


def _unbuilt(reference: MeasuredArm, arm: MeasuredArm) -> str:
    """Return why a pair has no kernel of its row or of its reference."""
    if arm.trouble is not None:
        return f"the kernel {arm.trouble}"
    return f"the kernel that it is compared with, {reference.name}, {reference.trouble}"


def metrics_in_order(arms: Sequence[MeasuredArm], rule: TestboxRule) -> list[MetricKey]:
    """Return (unit job, metric) in the order of the job file and of meta.yaml, without metrics that
    are only stored.
    """
    jobs = list(rule.jobs)
    keys = {
        key
        for arm in arms
        for key in arm.measured
        if key[0] in rule.jobs and makes_row(rule.metric(key[1]), arm.runs_of(key))
    }

    def position(key: MetricKey) -> tuple[int, int, int, str]:
        unit_job, metric = key
        program = rule.jobs[unit_job].program
        own = list(rule.programs[program].metrics)
        return (
            jobs.index(unit_job),
            0 if metric.startswith(f"{program}.") else 1,
            own.index(metric) if metric in own else len(own),
            metric,
        )

    return sorted(keys, key=position)


def _family(
    arms: Sequence[MeasuredArm],
    facts: Mapping[Pair, Sequence[FactDifference]],
    key: MetricKey,
    headlines: int,
    reference: Reference,
    rule: TestboxRule,
) -> Iterator[ComparisonRow]:
    """Return the rows of one metric against one reference."""
    job, metric = rule.jobs[key[0]], rule.metric(key[1])
    runs = runs_with(rule.programs, job, key[1])
    boots: dict[tuple[int, int], list[BootRuns]] = {}  # by arm and first boot that counts
    sides = []
    for pair in facts:
        first = max(arms[index].first_k for index in pair)
        for index in pair:
            took_place = [boot.k for boot in arms[index].boots]
            boots[index, first] = [
                boot
                for boot in with_lost_runs(arms[index].runs_of(key), took_place, runs)
                if boot.k >= first
            ]
        at = list(boots)
        sides.append((at.index((pair[0], first)), at.index((pair[1], first))))
    found = {pair: facts_for(those, job.demand, job.compare_fact) for pair, those in facts.items()}
    invalid = {
        place: why
        for place, (pair, those) in enumerate(found.items())
        if (why := _other_unit(arms, pair, key) or against(those))
    }
    own = rule.look.rule(rule.of_metric(job, metric))
    own = replace(own, headlines=headlines if metric.headline else 0)
    rows = [
        rule.look.admitted(row, (rule.testbox, *key, reference, arm))
        for (_, arm), row in zip(
            facts, compare_family(list(boots.values()), sides, own, invalid=invalid), strict=True
        )
    ]
    if reference == "above":
        rows = _with_recoveries(arms, list(facts), (list(boots.values()), sides), rows, own)
    for (pair, those), row in zip(found.items(), rows, strict=True):
        base, head = arms[pair[0]], arms[pair[1]]
        row = _with_findings(row, base, head, those, rule.note)
        if shares := [*base.shares_of(key), *head.shares_of(key)]:
            words = f"extrapolated by perf: counted in {min(shares):.4g} % of the time"
            row = replace(row, reason=_joined(row.reason, words))
        if reference == "above":
            row = _attributed(row, base, head, headline=metric.headline)
        yield replace(
            row,
            testbox=rule.testbox,
            label=rule.label,
            unit_job=job.name,
            metric=metric.name,
            unit=metric.unit,
            headline=metric.headline,
            against=reference,
            reference=pair[0],
            arm=pair[1],
        )


def fact_differences(
    base: MeasuredArm, head: MeasuredArm, *, paired: bool
) -> tuple[FactDifference, ...]:
    """Return how the fact sheets of a pair differ."""
    return tuple(
        differences(
            {boot.k: boot.facts for boot in base.boots},
            {boot.k: boot.facts for boot in head.boots},
            paired=paired,
            arms=(BootSettings.of(base.jobs), BootSettings.of(head.jobs)),
        )
    )


def _other_unit(arms: Sequence[MeasuredArm], pair: Pair, key: MetricKey) -> str | None:
    """Return why numbers in two units cannot be compared."""
    units = [arms[index].units.get(key) for index in pair]
    if None in units or units[0] == units[1]:
        return None
    names = [unit or "no unit" for unit in units]
    return (
        f"the unit of {key[1]} changed between the two measurements, from {names[0]} to"
        f" {names[1]}, so their numbers cannot be compared"
    )


def _with_recoveries(
    arms: Sequence[MeasuredArm],
    pairs: Sequence[Pair],
    family: tuple[Sequence[Sequence[BootRuns]], Sequence[Pair]],
    rows: Sequence[ComparisonRow],
    rule: Rule,
) -> list[ComparisonRow]:
    """Add the reason to both rows where one change reverts another."""
    marked = list(rows)
    for recovery in recoveries(*family, rows, rule):
        change, back = (arms[pairs[i][1]].name for i in (recovery.change, recovery.back))
        extent = (
            f"{min(99.0, 100 * recovery.part):.0f} % of it"
            if recovery.part is not None
            else "all of it"
            if recovery.shown
            else "as far as can be resolved"
        )
        for i, words in (
            (recovery.change, f"{back} reverts it"),
            (recovery.back, f"reverts {change}, {extent}"),
        ):
            marked[i] = replace(marked[i], reason=_joined(marked[i].reason, words))
    return marked


def _with_findings(
    judged: ComparisonRow,
    base: MeasuredArm,
    head: MeasuredArm,
    facts: Sequence[FactDifference],
    note: str,
) -> ComparisonRow:
    """Return a row with findings other than its numbers."""
    verdict, reason = judged.verdict, judged.reason
    explained = explanation(facts)
    problems = [*base.problems, *head.problems]
    if (base.image, base.spec) == (head.image, head.spec):
        verdict, reason = "same", "the two kernel images are byte-identical"
    elif explained and judged.changed:
        reason = _joined(reason, explained)
    elif verdict == "invalid" and problems:
        reason = _joined(reason, problems[0])
    if note and verdict != "invalid":
        reason = _joined(reason, note)
    shown = (*base.problems[:3], *head.problems[:3])
    return replace(judged, verdict=verdict, reason=reason, problems=shown)


def _attributed(
    row: ComparisonRow, above: MeasuredArm, own: MeasuredArm, *, headline: bool
) -> ComparisonRow:
    """Return a row with a change attributed to its commit, if the row above is the parent.

    No bisection is needed then: no other commit is between them.
    """
    if not row.changed or not headline or own.parents[:1] != [above.commit]:
        return row
    what = "patch" if len(own.parents) == 1 else "merge"
    words = f"attributed to this {what}: the row above is its parent"
    reason = f"{words}; {row.reason}" if row.reason else words
    return replace(row, attributed_to=own.commit, reason=reason)


def _nothing(job: UnitJob, why: str, problems: Sequence[str], rule: TestboxRule) -> ComparisonRow:
    """Return a row without values, only with the reason, under a headline metric's name."""
    metric = next(m for m in rule.programs[job.program].metrics.values() if m.headline)
    return ComparisonRow(
        unit_job=job.name,
        testbox=rule.testbox,
        label=rule.label,
        metric=metric.name,
        unit=metric.unit,
        klass=metric.klass,
        better=metric.better,
        base=NO_BOOTS,
        head=NO_BOOTS,
        change_pct=None,
        interval_pct=None,
        verdict="invalid",
        reason=why,
        min_effect_pct=metric.min_effect(job.params),
        problems=tuple(problems[:6]),
        headline=True,
    )


def _joined(reason: str | None, more: str) -> str:
    return f"{reason}; {more}" if reason else more
