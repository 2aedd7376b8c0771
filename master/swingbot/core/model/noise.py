"""The noise record: how much a metric of a unit job moves on a testbox although nothing changed; and what a bisection expects of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A standard deviation, relative (0.01 is 1 %), and how many degrees of freedom stand behind it. df 0: not known, sd means nothing."""

    sd: float = 0.0
    df: float = 0.0

    @property
    def known(self) -> bool:
        return self.df > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBoot:
    """One boot of the past with the runs of one metric of one unit job."""

    code: str  # equal for builds of equal code: they differ in layout alone
    image: str  # the kernel image, and what ran in the boot
    day: str  # when, to the day
    k: int  # which perturbation; boots of different images with equal `k` in the shared series were shifted alike
    shared: bool  # belongs to the series that all share
    values: tuple[float, ...]  # one a run, the metric's unit


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseRecord:
    """Where the noise comes from. All spreads without the ones below them, except `boot_mean`."""

    run: Spread = Spread()  # between runs of one boot
    boot: Spread = Spread()  # between boots of one kernel on one day
    # of the mean of a boot as it was usually made: `boot` and the runs in it together
    boot_mean: Spread = Spread()
    # of a boot mean on a repeatable testbox, without the shift that k gives all kernels
    pair: Spread = Spread()
    day: Spread = Spread()  # between days
    layout: Spread = Spread()  # between builds of equal code with another layout
    boots: int = 0
    runs: int = 0
    images: int = 0  # kernels, each counted once for every set of unit jobs that it ran
    wild_runs: int = 0  # left out of every spread
    wild_boots: int = 0
    # Boots fall into two modes: the share of them in the smaller one, how far that is from the other
    # (log units, negative: low), and the spread between boots of one mode. 0: one mode.
    mode_share: float = 0.0
    mode_apart: float = 0.0
    mode_boot: Spread = Spread()
    since: str | None = None  # ISO 8601, of the first boot counted
    until: str | None = None

    def to_json(self) -> dict[str, Any]:
        return _without_modes_of_zero(asdict(self))

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> NoiseRecord:
        fields: dict[str, Any] = {
            key: Spread(**value) if isinstance(value, Mapping) else value
            for key, value in given.items()
        }
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisePrior:
    """Spreads to expect of this metric on this testbox, relative (0.01 is 1 %), before any boot of the bisection."""

    sd_run: float = 0.02  # between runs of one boot
    sd_boot: float = 0.02  # between boots of one kernel; on a paired testbox what is left after the shift that k gives all kernels
    sd_layout: float = 0.002  # between kernels that differ in nothing that matters. 0 turns any shifted image into a culprit
    certainty: float = 2.0  # how well sd_run (paired: sd_boot) is known: 1/(4 e^2) + 1/2 for a relative error e; 2: +-40 %
    sd_day: float | None = (
        None  # between days (unpaired): how far the box wanders. 0: seen to stand still; None: nobody has looked yet
    )
    drift_seconds: float = (
        0.0  # over which it wanders by about sd_day; 0: not known, several are tried
    )
    # Share of the boots in a second mode, and how far that is from the first (relative, negative:
    # low). 0: not known to have one.
    mode_share: float = 0.0
    mode_apart: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return _without_modes_of_zero(asdict(self))


def _without_modes_of_zero(fields: dict[str, Any]) -> dict[str, Any]:
    """What was stored before modes were known is stored the same again."""
    one = not fields["mode_share"]
    return {k: v for k, v in fields.items() if not (one and k.startswith("mode_"))}


# One vCPU under an instruction-count clock: boots repeat almost exactly, kernels shift each other by up to half a percent.
EMULATED = NoisePrior(sd_run=0.003, sd_boot=0.002, sd_layout=0.003, certainty=0.75)
# Threads on a wall clock, or a machine nobody has measured yet.
NOISY = NoisePrior(sd_run=0.05, sd_boot=0.03, sd_layout=0.005, certainty=0.75)
