"""Update the noise records when new boots are complete."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from swingbot.core.plan.aliases import aliases_of_boots
from swingbot.core.plan.noise import estimate
from swingbot.service.ports import Catalogue
from swingbot.service.ports.noise import Noise

# A record is recomputed after this many new boots, or a twentieth of those it has. More often costs
# time and changes nothing.
FRESH: Final = 4
SHARE: Final = 0.05


def measure_noise(catalogue: Catalogue, noise: Noise) -> None:
    """Recompute the records of each testbox that has enough new boots.

    A metric without two boots of the same kernel has no record.
    """
    present = catalogue.testboxes.present
    enough = noise.with_fresh_boots(present.keys(), FRESH, SHARE)
    for name, latest in enough.items():
        measured = noise.measured_boots(name)
        aliases = aliases_of_boots(
            {key: of_metric for key, (of_metric, _, _) in measured.items()},
            noise.measured_jobs(name),
            catalogue.programs,
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
                noise.put(name, *key, record, latest)
