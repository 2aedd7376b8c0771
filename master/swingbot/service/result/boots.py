"""Load the measured values of one kernel's boots for the statistics."""

from __future__ import annotations

from swingbot.core.model.records import BootNumbers
from swingbot.core.stats.compare import BootRuns
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.specs import Specs

Values = dict[tuple[str, str], list[BootRuns]]  # by (unit job, metric)


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
    problems = []
    for boot in boots.find(image, testbox, spec, series, numbers):
        if boot.outcome != "up":
            problems.append(f"boot {boot.k} was {boot.trouble}")
            continue
        samples = boots.values(boot.id)
        for key, runs in samples.items():
            values.setdefault(key, []).append(BootRuns(k=boot.k, values=tuple(runs)))
        jobs_seen = {job for job, _ in samples}
        problems += [
            f"boot {boot.k}, {job.name}: {problem}"
            for job in specs.get(spec)
            if job.name not in jobs_seen
            for problem in boots.problems(boot.id, job.name)[:1]
        ]
    return values, problems
