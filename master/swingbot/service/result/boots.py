"""Load the measured values of one kernel's boots for the statistics."""

from __future__ import annotations

from swingbot.core.model.records import BootNumbers
from swingbot.core.stats.compare import BootRuns
from swingbot.core.table.rows import MeasuredArm, MeasuredBoot
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.specs import Specs

Values = dict[tuple[str, str], list[BootRuns]]  # by (unit job, metric)


def measured_boots(
    specs: Specs,
    boots: Boots,
    image: str,
    testbox: str,
    spec: str,
    series: str,
    numbers: BootNumbers,
) -> tuple[list[MeasuredBoot], list[str]]:
    """Return the boots of an image with their values, and the problems of boots that did not come
    up and of unit jobs without a result, as text.
    """
    measured, problems = [], []
    for boot in boots.find(image, testbox, spec, series, numbers):
        values = boots.values(boot.id) if boot.outcome == "up" else {}
        measured.append(MeasuredBoot(k=boot.k, facts=boot.facts, values=values))
        if boot.outcome != "up":
            problems.append(f"boot {boot.k} was {boot.trouble}")
            continue
        seen = {job for job, _ in values}
        problems += [
            f"boot {boot.k}, {job.name}: {problem}"
            for job in specs.get(spec)
            if job.name not in seen
            for problem in boots.problems(boot.id, job.name)[:1]
        ]
    return measured, problems


def booted_arm(
    specs: Specs,
    boots: Boots,
    image: str,
    testbox: str,
    spec: str,
    series: str,
    numbers: BootNumbers,
) -> MeasuredArm:
    """Return an image with the fact sheets of its boots, without values."""
    sheets = [
        MeasuredBoot(k=boot.k, facts=boot.facts)
        for boot in boots.find(image, testbox, spec, series, numbers)
    ]
    return MeasuredArm(name="", image=image, spec=spec, jobs=specs.get(spec), boots=sheets)


def boots_of(
    specs: Specs,
    boots: Boots,
    image: str,
    testbox: str,
    spec: str,
    series: str,
    numbers: BootNumbers,
) -> tuple[Values, list[str]]:
    """Return values by (unit job, metric), one BootRuns per boot that came up, and the problems of
    the other boots as text.
    """
    values: Values = {}
    measured, problems = measured_boots(specs, boots, image, testbox, spec, series, numbers)
    for boot in measured:
        for key, runs in boot.values.items():
            values.setdefault(key, []).append(BootRuns(k=boot.k, values=tuple(runs)))
    return values, problems
