"""Runs of the boots of a range that are far off the others: a path that some runs take."""

from __future__ import annotations

import numpy as np

from swingbot.core.bisect.evidence.range_evidence import Evidence
from swingbot.core.stats import path_share
from swingbot.core.stats.path_share import FarRuns


def far_runs(ev: Evidence, least: float) -> FarRuns | None:
    """Count the far-off runs of each boot, in the order of `Evidence.boots`, on the effect scale.

    None if there are none.
    """
    at = np.array(ev.boot_positions, np.intp)
    return path_share.far_runs(ev.effects, at, (int(at.min()), int(at.max())), least)


def run_spread(ev: Evidence) -> float:
    """The sd of runs within boots on the effect scale; 0 if no boot has three runs."""
    return path_share.run_spread(ev.effects)
