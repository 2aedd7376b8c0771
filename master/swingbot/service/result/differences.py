"""Find the facts that differ between two kernels' boots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from swingbot.core.model.records import BootNumbers
from swingbot.core.stats.fact_differences import (
    BootSettings,
    FactDifference,
    against,
    differences,
    explanation,
    facts_for,
)
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.specs import Specs
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.definition import Testbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    facts: tuple[FactDifference, ...]  # how the fact sheets of the two sides differ

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
    return Differences(
        facts=tuple(
            differences(
                *({boot.k: boot.facts for boot in side} for side in sides),
                paired=testbox.repeatable,
                arms=(BootSettings.of(specs.get(ran[0])), BootSettings.of(specs.get(ran[1]))),
            )
        )
    )
