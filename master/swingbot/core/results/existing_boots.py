"""Judge two or more kernels by the boots that exist, whoever requested them.

They are judged as every table is (`core/table/rows.py`). What differs is which boots may be
compared: boots of one series alternate on a testbox, so the testbox's own drift is in both sides.
Where no series has all kernels, boots of different days are compared, and the spread between days
is added to each side. It is frozen into a side like a layout: more boots do not average it out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from swingbot.core import limits
from swingbot.core.model.comparison_row import ComparisonRow, Verdict
from swingbot.core.model.noise import NoiseRecord
from swingbot.core.plan.metric_rules import makes_row, metric_of, rule_on
from swingbot.core.plan.noise import day_sd, noise_prior
from swingbot.core.stats.rows import BootRuns, Rule
from swingbot.core.table.rows import MeasuredArm, MeasuredBoot, MetricKey, TestboxRule, rows_of
from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Metric, Program

_OTHER_WORK: Final = "its boots ran this job with other parameters or settings"
Document = Mapping[str, Any]  # `swingbot_db.read.results`


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPlace:
    """A unit job on a testbox and the boots of each kernel that are compared there.

    `together`: the boots belong to one series. `note` says what a reader must know about them.
    """

    testbox: str
    job: UnitJob
    spec: str
    together: bool
    note: str
    boots: Mapping[int, Sequence[Document]]  # by kernel, without those that measured nothing
    left_out: Mapping[int, str]  # kernels whose boots cannot be compared here, and why

    @property
    def reference(self) -> int:
        return min(self.boots)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedResults:
    """`rows` are of kernel `arm` against kernel `reference`; `unjudged` metrics were too many."""

    places: Sequence[MeasuredPlace]
    rows: Sequence[ComparisonRow]
    unjudged: int


def judge_existing(document: Document, programs: Mapping[str, Program]) -> JudgedResults:
    """Judge each kernel of `document` against the first one that was measured at the same place."""
    document = {**document, "values": _by_boot(document["values"])}
    places = _measured_places(document)
    families = [
        (place, metric) for place in places for metric in _metrics(place, document, programs)
    ]
    families.sort(key=lambda one: _importance(programs, *one))
    judged = families[: limits.JUDGED_METRICS]
    headlines = Counter(
        place.testbox for place, name in judged if metric_of(programs, name).headline
    )
    rows: list[ComparisonRow] = []
    for place in places:
        names = [name for at, name in judged if at is place]
        kernels = list(place.boots)
        rule = replace(
            _rule(place, document, programs),
            metrics=[(place.job.name, name) for name in names],
            headlines=headlines[place.testbox],
        )
        rows += [
            replace(row, spec=place.spec, reference=kernels[row.reference], arm=kernels[row.arm])
            for row in rows_of(_arms(place, document), rule)
        ]
    return JudgedResults(places=places, rows=rows, unjudged=len(families) - len(judged))


# -- which boots


def _by_boot(values: Mapping[str, Sequence[Document]]) -> dict[str, dict[tuple[str, str], Any]]:
    """Boot -> (unit job, metric) -> one value per run."""
    return {
        boot: {(row["unit_job"], row["metric"]): tuple(row["values"]) for row in of_boot}
        for boot, of_boot in values.items()
    }


def _measured_places(document: Document) -> list[MeasuredPlace]:
    """Return every unit job on every testbox that ran on one of the kernels."""
    by_place: dict[tuple[str, str], list[Document]] = defaultdict(list)
    jobs: dict[tuple[str, str], UnitJob] = {}
    for spec, unit_jobs in document["specs"].items():
        for job in unit_jobs:
            jobs[spec, job["name"]] = codec.typed(UnitJob, job)
    for boot in document["boots"]:
        for job in document["specs"][boot["spec"]]:
            by_place[boot["testbox"], job["name"]].append(boot)
    return [
        _place(testbox, name, boots, jobs, document)
        for (testbox, name), boots in sorted(by_place.items())
    ]


def _place(
    testbox: str,
    name: str,
    boots: Sequence[Document],
    jobs: Mapping[tuple[str, str], UnitJob],
    document: Document,
) -> MeasuredPlace:
    useful = [boot for boot in boots if name in document["ran"].get(boot["id"], ())]
    kernels = {boot["kernel"] for boot in useful}
    shared = _most_kernels(useful or boots, lambda boot: (boot["spec"], boot["series"]))
    spec = shared[0]
    ids = {boot["id"] for boot in useful}
    in_series = [boot for boot in boots if (boot["spec"], boot["series"]) == shared]
    together = kernels <= {boot["kernel"] for boot in in_series if boot["id"] in ids}
    if together:
        chosen, note = in_series, ""
    else:
        work = _most_kernels(useful, lambda boot: _work(jobs[boot["spec"], name]))
        chosen = [boot for boot in boots if _work(jobs[boot["spec"], name]) == work]
        spec = next(boot["spec"] for boot in reversed(chosen))
        note = (
            "boots of different specs; not paired"
            if document["testboxes"][testbox]["repeatable"]
            else "boots of different requests: the spread between days is included"
        )
    present = {boot["kernel"] for boot in chosen if boot["id"] in ids}
    return MeasuredPlace(
        testbox=testbox,
        job=jobs[spec, name],
        spec=spec,
        together=together,
        note=note if len(present) > 1 else "",
        boots={
            kernel: [boot for boot in chosen if boot["kernel"] == kernel]
            for kernel in sorted(present)
        },
        left_out=dict.fromkeys(sorted(kernels - present), _OTHER_WORK),
    )


def _most_kernels(boots: Sequence[Document], key: Any) -> Any:
    """Return the key under which the most kernels have boots; of equals, the most boots."""
    kernels, counts = defaultdict(set), Counter[Any]()
    for boot in boots:
        kernels[key(boot)].add(boot["kernel"])
        counts[key(boot)] += 1
    return max(counts, key=lambda one: (len(kernels[one]), counts[one]), default=None)


def _work(job: UnitJob) -> str:
    """What a unit job does in its counted runs; monitors have runs of their own."""
    own = (job.program, sorted(job.params.items()), job.cmdline, sorted(job.sysctl.items()))
    return repr((*own, job.warmup, job.events, sorted(job.demand.items())))


# -- what they show


def _metrics(
    place: MeasuredPlace, document: Document, programs: Mapping[str, Program]
) -> list[str]:
    """Metrics that at least two kernels have there."""
    kernels: dict[str, set[int]] = defaultdict(set)
    boots: dict[str, list[BootRuns]] = defaultdict(list)
    for kernel, own in place.boots.items():
        for boot in own:
            for (unit_job, metric), values in document["values"].get(boot["id"], {}).items():
                if unit_job == place.job.name:
                    kernels[metric].add(kernel)
                    boots[metric].append(BootRuns(k=0, values=values))
    return [
        name
        for name, measured in kernels.items()
        if len(measured) > 1 and makes_row(metric_of(programs, name), boots[name])
    ]


def _importance(
    programs: Mapping[str, Program], place: MeasuredPlace, name: str
) -> tuple[Any, ...]:
    metric = metric_of(programs, name)
    own = programs.get(place.job.program)
    listed = list(own.metrics) if own else []
    return (
        not metric.headline,
        metric.klass in ("counter", "profile"),
        place.job.name,
        listed.index(name) if name in listed else len(listed),
        name,
        place.testbox,
    )


def _arms(place: MeasuredPlace, document: Document) -> list[MeasuredArm]:
    """Return the kernels measured at a place, with its boots."""
    numbers = _numbers(place)
    units: dict[int, dict[MetricKey, str]] = defaultdict(dict)
    for row in document["units"]:
        units[row["kernel"]][row["unit_job"], row["metric"]] = row["unit"]
    return [
        MeasuredArm(
            name=str(kernel),
            image=boots[0]["image_sha256"],
            spec=place.spec,
            jobs=[codec.typed(UnitJob, job) for job in document["specs"][boots[0]["spec"]]],
            boots=[
                MeasuredBoot(
                    k=numbers[kernel, boot["id"]],
                    facts=boot["facts"],
                    values=document["values"].get(boot["id"], {}),
                )
                for boot in boots
            ],
            problems=[
                f"boot {boot['id']} {boot['outcome']}: {boot['reason'] or 'no reason known'}"
                for boot in boots
                if boot["outcome"] != "up"
            ],
            units=units[kernel],
        )
        for kernel, boots in place.boots.items()
    ]


def _numbers(place: MeasuredPlace) -> dict[tuple[int, str], int]:
    """Number the boots of each kernel: equal numbers mean equal perturbations if `together`."""
    if place.together:
        keys = sorted(
            {(boot["purpose"], boot["k"]) for own in place.boots.values() for boot in own}
        )
        at = {key: number for number, key in enumerate(keys)}
        return {
            (kernel, boot["id"]): at[boot["purpose"], boot["k"]]
            for kernel, own in place.boots.items()
            for boot in own
        }
    return {
        (kernel, boot["id"]): number
        for kernel, own in place.boots.items()
        for number, boot in enumerate(own)
    }


def _rule(place: MeasuredPlace, document: Document, programs: Mapping[str, Program]) -> TestboxRule:
    testbox = document["testboxes"][place.testbox]
    repeatable = bool(testbox["repeatable"])

    def of_metric(job: UnitJob, metric: Metric) -> Rule:
        record = noise_of(document, place.testbox, job.name, metric.name)
        rule = rule_on(metric, job, repeatable=repeatable, record=record)
        if place.together:
            return rule
        if repeatable:
            return replace(rule, paired=False)
        # Without a record of days, a day may differ as much as one boot.
        between = day_sd(record) or noise_prior(record, paired=False).sd_boot
        return replace(rule, day=between)

    return TestboxRule(
        testbox=place.testbox,
        label=testbox["label"] or "",
        paired=place.together and repeatable,
        jobs={place.job.name: place.job},
        programs=programs,
        of_metric=of_metric,
        note=place.note,
    )


def noise_of(document: Document, testbox: str, unit_job: str, metric: str) -> NoiseRecord | None:
    for row in document["noise"]:
        if (row["testbox"], row["unit_job"], row["metric"]) == (testbox, unit_job, metric):
            return codec.typed(NoiseRecord, row["detail"], "noise")
    return None


# -- order

# The most interesting first.
_VERDICTS: Final[tuple[Verdict, ...]] = ("worse", "changed", "better", "invalid", "unclear", "same")


def in_order(rows: Iterable[ComparisonRow], sort: str) -> list[ComparisonRow]:
    """Sort rows by importance (verdict, then size), size of change, significance or name."""
    return sorted(rows, key=lambda row: _place_of(row, sort))


def _place_of(row: ComparisonRow, sort: str) -> tuple[Any, ...]:
    size = -abs(row.change_pct or 0.0)
    name = row.metric, row.unit_job, row.testbox, row.arm
    if sort == "size":
        return size, name
    if sort == "significance":
        return not row.changed, 1.0 if row.p is None else row.p, size, name
    if sort == "name":
        return name
    return row.klass in ("counter", "profile"), _VERDICTS.index(row.verdict), size, name
