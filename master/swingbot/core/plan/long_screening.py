"""The long form of a testbox's screening: a night of boots of one kernel, and what they say.

Formulas: docs/statistics.md, "A night of one kernel".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from scipy.special import stdtr

from swingbot.core.model.noise import NoiseRecord, PastBoot
from swingbot.core.plan.noise import estimate, sd_at_most
from swingbot.core.plan.testbox_rules import HARDWARE, hardware_changes
from swingbot.core.stats.boot_modes import boot_modes
from swingbot.core.stats.resolve import KnownNoise, plan_family
from swingbot.core.stats.rows import Rule
from swingbot.core.stats.trend import drift, drifts_differ_p, trend_p
from swingbot.core.text.numbers import duration, two_digits
from swingbot.core.thresholds import (
    MOVED_LEAST_SHARE,
    SCREENING_BOOTS,
    SCREENING_MOST_BOOTS,
    SCREENING_P,
    SCREENING_RUN_SECONDS,
    VERDICT_ALPHA,
)
from swingbot_jobs.contract.deadline import runtime_seconds
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.boot_time import boot_seconds
from swingbot_jobs.testbox.definition import Testbox

SIDE: Final = 5  # boots a side whose resolution the answer states
_WAYS: Final = ("kexec", "reboot")  # into the kernel
_FEWEST: Final = 4  # boots of each way into the kernel to compare the two
# Runs of a unit job at most, and share of its runtime: the first that fits is taken.
_FORMS: Final[tuple[tuple[int | None, float], ...]] = (
    *((None, 1.0), (3, 1.0), (3, 0.5), (3, 0.2), (3, 0.1), (3, 0.05), (2, 0.05)),
)

Finding = Literal["warm-up", "kexec", "drift", "modes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NightSize:
    """How many boots a night has of each of its `arms`, which differ in their settings."""

    arms: int = 1
    fewest: int = SCREENING_BOOTS
    most: int = SCREENING_MOST_BOOTS


class NightTooShort(ValueError):
    """The boots do not fit, however short their runs are; the message says how long they take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreeningPlan:
    """`boots` boots of each of `arms` with these unit jobs; seconds of wall clock. `runtime_share`
    is below 1 where runs are shortened.
    """

    unit_jobs: tuple[UnitJob, ...]
    boots: int
    arms: int = 1
    boot_seconds: float
    full_boot_seconds: float  # with the runs of the full jobs
    runtime_share: float = 1.0

    @property
    def seconds(self) -> float:
        return self.arms * self.boots * self.boot_seconds


def plan_screening(
    testbox: Testbox,
    unit_jobs: Sequence[UnitJob],
    hours: float,
    measured: float | None = None,
    size: NightSize = NightSize(),
) -> ScreeningPlan:
    """Return the boots that fit into `hours`: at least the fewest of `size`, with runs as long as
    possible and without runs of their own for monitors.

    `measured` is the mean duration of a boot with the full jobs, if there were any. Raises
    NightTooShort.
    """
    full = boot_seconds(testbox, unit_jobs)
    pace = measured / full if measured else 1.0
    seconds = math.inf
    for runs, share in _FORMS:
        jobs = tuple(_shortened(job, runs, share) for job in unit_jobs)
        seconds = pace * boot_seconds(testbox, jobs)
        fit = min(int(hours * 3600.0 / seconds / size.arms) // 4 * 4, size.most)
        if fit >= size.fewest:
            return ScreeningPlan(
                unit_jobs=jobs,
                boots=fit,
                arms=size.arms,
                boot_seconds=seconds,
                full_boot_seconds=pace * full,
                runtime_share=share,
            )
    needed = size.arms * size.fewest
    raise NightTooShort(
        f"{needed} boots with the shortest runs take {duration(needed * seconds)}, and --hours is"
        f" {hours:g}: give --hours {math.ceil(needed * seconds / 3600.0)},"
        " or watch fewer jobs there"
    )


def _shortened(job: UnitJob, runs: int | None, share: float) -> UnitJob:
    params, runtime = dict(job.params), runtime_seconds(job)
    if share < 1.0 and runtime is not None:
        params["runtime"] = str(round(max(share * runtime, min(runtime, SCREENING_RUN_SECONDS))))
    return replace(
        job, params=params, monitors=(), runs=job.runs if runs is None else min(job.runs, runs)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenedBoot:
    """The runs of one metric in one boot, and how the kernel was entered (`kexec`, `reboot`; "" if
    unknown).
    """

    values: tuple[float, ...]
    entered: str = ""
    day: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenedMetric:
    """What a night says about one metric. Percentages are relative; None: not measured.

    `findings` are sentences by kind; a kind of `measured` without one was looked for and not found.
    """

    unit_job: str
    metric: str
    boots: int
    noise_pct: float | None  # between boot means, without a first run or a drift that was found
    resolves_pct: float | None  # with `SIDE` boots a side, as measured
    full_resolves_pct: float | None  # the same if longer runs average all noise within a boot
    findings: Mapping[Finding, str]
    measured: tuple[Finding, ...]


def judge_screening(
    job: UnitJob,
    metric: str,
    boots: Sequence[ScreenedBoot],
    rule: Rule,
    runtime_share: float = 1.0,
) -> ScreenedMetric:
    """Say what boots of one kernel, in the order in which they ran, show of a metric.

    Each kind of finding is claimed at P < SCREENING_P, and only if it is as large as a quarter of
    the metric's minimum effect.
    """
    kept = [boot for boot in boots if boot.values and all(map(math.isfinite, boot.values))]
    findings: dict[Finding, str] = {}
    measured: list[Finding] = []
    least = MOVED_LEAST_SHARE * math.log1p(rule.min_effect_pct / 100.0)
    logs = scaled([boot.values for boot in kept])
    repeated = [values for values in logs if len(values) > 1]
    if len(repeated) >= _FEWEST:
        measured.append("warm-up")
        shift = [float(values[0] - values[1:].mean()) for values in repeated]
        if _shifted(shift, least):
            middle = float(np.mean(shift))
            findings["warm-up"] = (
                f"the first run of a boot is {_by(middle)} the others: left out here; `warmup: 1`"
                " in the job leaves it out"
            )
            logs = [values[1:] if len(values) > 1 else values for values in logs]
    means = [float(values.mean()) for values in logs]
    straight = _look_for_drift(kept, means, least, findings, measured)
    if len(means) >= SCREENING_BOOTS // 2:
        measured.append("modes")
        if (modes := boot_modes([straight])) is not None and abs(modes.apart) >= least:
            findings["modes"] = (
                f"two modes: {100.0 * modes.share:.0f} % of the boots are {_by(modes.apart)} the"
                " others"
            )
    record = _record(logs, means, straight, kept)
    return ScreenedMetric(
        unit_job=job.name,
        metric=metric,
        boots=len(kept),
        noise_pct=100.0 * record.boot_mean.sd if record.boot_mean.known else None,
        resolves_pct=_resolves(record, rule, 1.0),
        full_resolves_pct=_resolves(record, rule, runtime_share) if runtime_share < 1 else None,
        findings=findings,
        measured=tuple(measured),
    )


def scaled(
    boots: Sequence[Sequence[float]],
) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Map the values of each boot to logarithms, or to shares of their mean magnitude if any is
    zero or less.
    """
    values = [np.asarray(boot, dtype=np.float64) for boot in boots]
    if not values or min(float(v.min()) for v in values) > 0:
        return [np.log(v) for v in values]
    unit = float(np.mean([np.abs(v).mean() for v in values])) or 1.0
    return [v / unit for v in values]


def _by(effect: float) -> str:
    size = two_digits(100.0 * abs(math.expm1(effect)))
    return f"{size} % {'above' if effect > 0 else 'below'}"


def _shifted(values: Sequence[float], least: float, looks: int = 1) -> bool:
    """Whether differences have a mean other than 0 (Student), large enough to matter."""
    n, mean = len(values), float(np.mean(values))
    sd = float(np.std(values, ddof=1)) or 1e-12
    p = 2.0 * float(stdtr(n - 1, -abs(mean) / (sd / math.sqrt(n))))
    return looks * p < SCREENING_P and abs(mean) >= least


def _look_for_drift(
    boots: Sequence[ScreenedBoot],
    means: Sequence[float],
    least: float,
    findings: dict[Finding, str],
    measured: list[Finding],
) -> list[float]:
    """Look for a drift over the night, and for boots by kexec that differ from those by reboot.

    Returns the means without what was found.
    """
    ways = {
        way: [m for m, b in zip(means, boots, strict=True) if b.entered == way] for way in _WAYS
    }
    straight = list(means)
    if all(len(own) >= _FEWEST for own in ways.values()):
        measured.append("kexec")
        if (why := _kexec(ways["kexec"], ways["reboot"], least)) is not None:
            findings["kexec"] = why
            for way, own in ways.items():
                at = [n for n, boot in enumerate(boots) if boot.entered == way]
                for n, value in zip(at, _flat(own), strict=True):
                    straight[n] = value
            return straight
    if len(means) >= SCREENING_BOOTS // 2:
        measured.append("drift")
        rise = drift(means)
        if trend_p([means]) < SCREENING_P and abs(rise) >= least:
            findings["drift"] = f"the last boots are {_by(rise)} the first ones"
            straight = _flat(means)
    return straight


def _kexec(kexec: Sequence[float], reboot: Sequence[float], least: float) -> str | None:
    rises = drift(kexec), drift(reboot)
    apart = rises[0] - rises[1]
    if 2.0 * drifts_differ_p([reboot], [kexec]) < SCREENING_P and abs(apart) >= least:
        return (
            f"its last boots are {_by(rises[0])} its first ones, those entered by"
            f" reboot {_by(rises[1])}"
        )
    pairs = min(len(kexec), len(reboot))
    differences = [kexec[n] - reboot[n] for n in range(pairs)]
    if _shifted(differences, least, looks=2):
        return f"boots by kexec are {_by(float(np.mean(differences)))} those by reboot"
    return None


def _flat(values: Sequence[float]) -> list[float]:
    """The values without a straight line through them, about 0."""
    n, rise, middle = len(values), drift(values), float(np.mean(values))
    return [v - middle - rise * (i / (n - 1) - 0.5) for i, v in enumerate(values)]


def _record(
    logs: Sequence[np.ndarray[tuple[int], np.dtype[np.float64]]],
    means: Sequence[float],
    straight: Sequence[float],
    boots: Sequence[ScreenedBoot],
) -> NoiseRecord:
    """Return the noise record of the boots without what was found."""
    centre = float(np.mean(straight)) if straight else 0.0
    return estimate(
        [
            PastBoot(
                code="",
                image="",
                day=boot.day,
                k=k,
                shared=False,
                values=tuple(float(v) for v in np.exp(values - mean + level - centre)),
            )
            for k, (boot, values, mean, level) in enumerate(
                zip(boots, logs, means, straight, strict=True)
            )
        ]
    )


def _resolves(record: NoiseRecord, rule: Rule, share: float) -> float | None:
    """Return the smallest change in per cent that `SIDE` boots a side resolve.

    `share` is the part of the variance of runs that remains with the full runtime.
    """
    if not record.boot_mean.known:
        return None
    variance = record.boot_mean.sd**2
    if share < 1.0 and record.run.known and record.boot.known:
        within = max(variance - record.boot.sd**2, 0.0)
        variance -= (1.0 - share) * within
    noise = KnownNoise(
        run=0.0,
        boot=math.sqrt(variance),
        df=record.boot_mean.df,
        layout=rule.layout,
        layout_df=rule.layout_df,
        sd_at_most=sd_at_most(record),
    )
    plan = plan_family(noise, 1, SIDE, False, ((0, 1),), alpha=VERDICT_ALPHA)
    return plan.resolves_pct if math.isfinite(plan.resolves_pct) else None


def suspicious(facts: Mapping[str, Any], twins: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what the facts of the boots make suspicious: noisy settings, and how the machine
    differs from its twins (facts by testbox).
    """
    found = []
    if str(facts.get("turbo")) == "on":
        found.append("turbo is on")
    governor = facts.get("governor")
    if governor not in (None, "performance"):
        found.append(f"the governor is {governor}")
    own = {name: facts[name] for name in HARDWARE if facts.get(name) is not None}
    for name, others in sorted(twins.items()):
        theirs = {fact: others[fact] for fact in HARDWARE if others.get(fact) is not None}
        if (why := hardware_changes(theirs, own)) is not None:
            found.append(f"it differs from its twin {name} ({why})")
    return found


def night_words(answer: ScreenedMetric, seconds: float | None, *, ways: bool) -> str:
    """Return what a night says about a metric in one line; only what was measured.

    `seconds` is the duration of a boot with the full jobs; `ways`: the testbox file allows both.
    """
    parts = []
    if answer.resolves_pct is not None:
        time = f" ({duration(2 * SIDE * seconds)})" if seconds else ""
        parts.append(
            f"resolves {two_digits(answer.resolves_pct)} % of {answer.metric} with {SIDE} boots a"
            f" side{time}"
        )
        if answer.full_resolves_pct is not None:
            parts.append(
                "with the full runtime between"
                f" {two_digits(answer.full_resolves_pct)} and"
                f" {two_digits(answer.resolves_pct)} %"
            )
    else:
        parts.append(f"{answer.metric}: {answer.boots} boots are too few to say what it resolves")
    kinds: tuple[Finding, ...] = ("kexec", "drift", "warm-up", "modes")
    names = {"kexec": "kexec drifts", "warm-up": "warm-up", "drift": "drift", "modes": "modes"}
    for kind in kinds:
        if kind in answer.measured:
            parts.append(f"{names[kind]}: {answer.findings.get(kind, 'no')}")
        elif kind == "kexec" and not ways:
            continue
        elif kind != "drift" or "kexec" not in answer.findings:
            parts.append(f"{names[kind]}: not measured")
    if answer.noise_pct is not None:
        parts.append(f"noise of the day: {two_digits(answer.noise_pct)} %")
    return "; ".join(parts)
