"""Keep the noise records up to date with the boots that came in."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from swingbot.core.plan.noise import estimate
from swingbot.service.ports import Lab, Transaction

# A record is made anew after so many boots, or a twentieth of those it has: more often costs time and changes nothing.
FRESH: Final = 4
SHARE: Final = 0.05


def measure_noise(lab: Lab, tx: Transaction) -> None:
    """Make the records of each testbox anew whose boots have grown by enough. A metric without two boots of one kernel has none."""
    for name, box in lab.testboxes.present.items():
        latest, fresh, boots = tx.noise.fresh_boots(name)
        if latest is None or fresh < max(FRESH, SHARE * boots):
            continue
        for (unit_job, metric), (measured, since, until) in tx.noise.measured_boots(name).items():
            record = estimate(measured, paired=box.repeatable)
            if record.boot_mean.known or record.pair.known:
                tx.noise.put(
                    name,
                    unit_job,
                    metric,
                    replace(record, since=since.isoformat(), until=until.isoformat()),
                    latest,
                )
