"""The noise record of a metric on a testbox, and the expectations of a bisection.

The record says how much a metric of a unit job varies on a testbox without any change.
"""

from __future__ import annotations

from dataclasses import dataclass

from swingbot_jobs.codec import Sparse


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A relative standard deviation (0.01 is 1 %) with its degrees of freedom.

    df 0: not known; sd is meaningless.
    """

    sd: float = 0.0
    df: float = 0.0

    @property
    def known(self) -> bool:
        return self.df > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PastBoot:
    """One past boot with the runs of one metric of one unit job."""

    code: str  # equal for builds of equal code, which differ only in layout
    image: str  # the kernel image and the unit jobs of the boot
    day: str  # date of the boot
    k: int  # perturbation; shared boots with equal `k` are shifted alike for all images
    shared: bool  # belongs to the shared series
    values: tuple[float, ...]  # one per run, in the metric's unit


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseRecord:
    """The sources of noise. Each spread excludes the ones below it, except `boot_mean`."""

    run: Spread = Spread()  # between runs of one boot
    boot: Spread = Spread()  # between boots of one kernel on one day
    # of the mean of a boot with its usual number of runs: `boot` and `run` together
    boot_mean: Spread = Spread()
    # of a boot mean on a repeatable testbox, without the common shift of each k
    pair: Spread = Spread()
    day: Spread = Spread()  # between days
    layout: Spread = Spread()  # between builds of equal code with different layouts
    # the same with what its boots leave of their own noise: an upper limit, as good as `df` says
    layout_measured: Sparse[Spread] = Spread()
    boots: int = 0
    runs: int = 0
    images: int = 0  # kernels, counted once for every set of unit jobs that they ran
    wild_runs: int = 0  # excluded from all spreads
    wild_boots: int = 0
    # Two modes of boots: the share of the smaller one, its distance from the other (log units,
    # negative: low), and the spread between boots of one mode. 0: one mode.
    mode_share: Sparse[float] = 0.0
    mode_apart: Sparse[float] = 0.0
    mode_boot: Sparse[Spread] = Spread()
    since: str | None = None  # ISO 8601, of the first boot included
    until: str | None = None
    # Metric of the same unit job that had the same number in all boots of both: meta.yaml.
    alias_of: Sparse[str | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisePrior:
    """Relative spreads (0.01 is 1 %) that a bisection expects before its first boot."""

    sd_run: float = 0.02  # between runs of one boot
    sd_boot: float = 0.02  # between boots of one kernel; if paired, without the common shift of k
    # between kernels without a relevant difference; 0 turns any shifted image into a culprit
    sd_layout: float = 0.002
    # how well sd_run (paired: sd_boot) is known: 1/(4 e^2) + 1/2 for a relative error e; 2: +-40 %
    certainty: float = 2.0
    sd_day: float | None = (
        None  # between days (unpaired), by drift. 0: shown to be stable; None: not known
    )
    drift_seconds: float = (
        0.0  # time over which it drifts by about sd_day; 0: not known, several are tried
    )
    # Share of the boots in a second mode, and its distance from the first (relative, negative:
    # low). 0: none known.
    mode_share: Sparse[float] = 0.0
    mode_apart: Sparse[float] = 0.0


# One vCPU with an instruction-count clock: boots are almost identical; kernels shift each other by
# up to 0.5 %.
EMULATED = NoisePrior(sd_run=0.003, sd_boot=0.002, sd_layout=0.003, certainty=0.75)
# Threads on a wall clock, or a machine without measurements
NOISY = NoisePrior(sd_run=0.05, sd_boot=0.03, sd_layout=0.005, certainty=0.75)
