"""Sums of likelihoods that are given as logarithms."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from swingbot.core.bisect.evidence.range_evidence import Floats

# nats below the largest: negligible, however many there are, and within what `np.exp` computes fast
_LEAST: Final = -650.0


def ln_add(a: Floats, b: Floats) -> Floats:
    """`np.logaddexp` of finite numbers, in a tenth of its time."""
    more = np.abs(a - b)
    np.minimum(more, -_LEAST, out=more)
    np.exp(np.negative(more, out=more), out=more)
    np.log1p(more, out=more)
    more += np.maximum(a, b)
    return more


def exp_below(ln: Floats) -> Floats:
    """`np.exp` of logarithms relative to the largest; none is less than exp(-650), as exponentials
    that underflow take ten times as long.
    """
    out = np.maximum(ln, _LEAST)
    return np.exp(out, out=out)


def ln_sum(ln: Floats, axis: int | None = None) -> Floats:
    """`scipy.special.logsumexp` of real numbers: a third of its time, which counts where it is
    called for each boot."""
    top = np.max(ln, axis=axis, keepdims=True)
    none = top == -math.inf
    top = np.where(none, 0.0, top)
    total = np.log(exp_below(ln - top).sum(axis=axis, keepdims=True)) + top
    return np.asarray(np.where(none, -math.inf, total).squeeze(axis))
