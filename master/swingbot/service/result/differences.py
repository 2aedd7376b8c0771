"""Find differences between two kernels' boots apart from their numbers: facts that differ, boots
and runs without results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from swingbot.core.model.records import BootNumbers
from swingbot.core.stats.compare import BootRuns
from swingbot.core.stats.fact_differences import (
    BootSettings,
    FactDifference,
    against,
    differences,
    explanation,
    facts_for,
)
from swingbot.core.stats.rows import with_lost_runs
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.specs import Specs
from swingbot_jobs.contract.unit_job import UnitJob, cmdline_of
from swingbot_jobs.testbox.definition import Testbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    identical: bool  # byte-identical images
    facts: tuple[FactDifference, ...]  # how the fact sheets of the two sides differ
    # k of the boots of base and head that took place, successful or not
    happened: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def must(self) -> str | None:
        """Facts that differ although they must be equal for every job."""
        return against(self.facts)

    @property
    def explanation(self) -> str | None:
        """Facts that differ, possibly because of the kernel itself."""
        return explanation(self.facts)

    def of(self, job: UnitJob) -> Differences:
        """Return the differences that matter for a job: facts that it demands were checked in its
        runs, and facts that it compares may differ.
        """
        return replace(self, facts=facts_for(self.facts, job.demand, job.compare_fact))

    def with_lost(self, side: int, boots: Sequence[BootRuns], runs: int) -> list[BootRuns]:
        """Return the boots of one metric with the number of lost runs out of `runs`, including
        boots without any value.
        """
        return with_lost_runs(boots, self.happened[side], runs)


def differences_of(
    specs: Specs,
    boots: Boots,
    images: Sequence[str],
    testbox: Testbox,
    ran: Sequence[str],
    series: str,
    numbers: BootNumbers,
) -> Differences:
    """Compare the boots of `images` (base, head) that ran the specs `ran` on one testbox.

    Boots lost to infrastructure failures do not count.
    """
    sides = [
        boots.find(image, testbox.name, spec, series, numbers)
        for image, spec in zip(images, ran, strict=True)
    ]
    base_set, head_set = (_settings(specs.get(spec)) for spec in ran)
    facts = differences(
        *({boot.k: boot.facts for boot in side} for side in sides),
        paired=testbox.repeatable,
        arms=(base_set, head_set),
    )
    base, head = (tuple(boot.k for boot in side) for side in sides)
    return Differences(
        identical=images[0] == images[1] and ran[0] == ran[1],
        facts=tuple(facts),
        happened=(base, head),
    )


def _settings(jobs: Sequence[UnitJob]) -> BootSettings:
    """Return the boot settings of the unit jobs of one boot."""
    return BootSettings(
        cmdline=cmdline_of(jobs),
        sysctl={name: value for job in jobs for name, value in job.sysctl.items()},
    )
