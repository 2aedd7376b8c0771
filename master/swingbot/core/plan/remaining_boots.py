"""Estimate how many boots a bisection takes. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from swingbot.core.bisect.state import Belief
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.noise import NoisePrior

# boots beyond the bound when the noise is unknown; makes the median estimate correct
_SLACK: Final = 1.25
# effect in standard deviations of a boot before the first one; where boots repeat, one boot tells
_UNKNOWN_D, _REPEATABLE_D = 2.5, 8.0
# smaller effects cannot be distinguished from none; lower limit of the estimate
_LEAST_D: Final = 0.2


def foreseen_boots(weights: Sequence[float], policy: Policy, *, repeatable: bool) -> float:
    """Boots of a bisection before its first one: the median of those that find a culprit.

    `weights` are the prior weights of the commits; `repeatable` is that of the testbox.
    """
    d = _REPEATABLE_D if repeatable else _UNKNOWN_D
    search = _searching(_bits(weights), _logit(policy.confidence), d)
    ends = 2 * policy.boots_per_end
    return min(_SLACK * search + ends, policy.max_boots) + 2 * policy.confirm_boots


def boots_left(belief: Belief, noise: NoisePrior, policy: Policy) -> float:
    """Remaining boots, by the bound for known levels and noise, with slack.

    The sum of: missing bits divided by bits per boot, boots that raise the best commit to the
    required confidence, and confirmation boots (the bound of benchmarks/README.md, "What is
    measured"; the capacity C(d) is fitted to within 0.01 bits).
    """
    d = max(_distance(belief, noise), _LEAST_D)
    shares = sorted((c.probability for c in belief.candidates if c.probability > 0), reverse=True)
    total = sum(shares) or 1.0
    best = min(shares[0] / total if shares else 0.0, 0.999999)
    missing = max(0.0, _logit(policy.confidence) - max(0.0, _logit(best)))
    search = _searching(_bits(shares), missing, d) if best < policy.confidence else 0.0
    ends = max(
        0, 2 * policy.boots_per_end - sum(p.boots for p in (belief.points[0], belief.points[-1]))
    )
    spent = sum(p.boots + p.failed for p in belief.points)
    return min(_SLACK * search + ends, max(0, policy.max_boots - spent)) + 2 * policy.confirm_boots


def _searching(bits: float, missing: float, d: float) -> float:
    return bits / capacity(d) + missing / (d * d / 2)


def _bits(weights: Sequence[float]) -> float:
    """Entropy of a choice with these weights, in bits."""
    total = sum(weights) or 1.0
    return -sum(w / total * math.log2(w / total) for w in weights if w > 0)


def capacity(d: float) -> float:
    """Bits per boot about an even question, with levels d standard deviations apart."""
    return 1.0 - math.exp(-0.18 * d**1.9)


def _distance(belief: Belief, noise: NoisePrior) -> float:
    """Effect in standard deviations of a one-run boot."""
    if belief.change_pct is None:
        return _UNKNOWN_D
    return abs(math.log1p(max(belief.change_pct, -99.0) / 100)) / math.hypot(
        noise.sd_run, noise.sd_boot
    )


def _logit(p: float) -> float:
    return math.log(p / (1 - p)) if p > 0 else -30.0
