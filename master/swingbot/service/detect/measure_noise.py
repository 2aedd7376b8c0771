"""Update the noise records when new boots are complete."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from swingbot.core.plan.aliases import aliases_of_boots
from swingbot.core.plan.noise import estimate
from swingbot.service.ports import Lab, Transaction

# A record is recomputed after this many new boots, or a twentieth of those it has. More often costs
# time and changes nothing.
FRESH: Final = 4
SHARE: Final = 0.05


def measure_noise(lab: Lab, tx: Transaction) -> None:
    """Recompute the records of each testbox that has enough new boots.

    A metric without two boots of the same kernel has no record.
    """
    present = lab.catalogue.testboxes.present
    enough = tx.noise.with_fresh_boots(present.keys(), FRESH, SHARE)
    for name, latest in enough.items():
        measured = tx.noise.measured_boots(name)
        aliases = aliases_of_boots(
            {key: of_metric for key, (of_metric, _, _) in measured.items()},
            tx.noise.measured_jobs(name),
            lab.catalogue.programs,
        )
        for key, (of_metric, since, until) in measured.items():
            record = estimate(of_metric, paired=present[name].repeatable)
            if record.boot_mean.known or record.pair.known:
                record = replace(
                    record,
                    since=since.isoformat(),
                    until=until.isoformat(),
                    alias_of=aliases.get(key),
                )
                tx.noise.put(name, *key, record, latest)
