"""In which order the arms of a comparison are booted: block by block, boot k of every arm in block k.

A testbox that drifts then moves all rows of a table alike. Within a block each arm takes each place
and follows each other arm about equally often: rows of a Williams design (E. J. Williams,
"Experimental designs balanced for the estimation of residual effects of treatments", 1949) over
arms in an order that is drawn from the comparison's number. Two arms take turns.
"""

from __future__ import annotations

import hashlib


def block_order(arms: int, block: int, seed: int) -> list[int]:
    """The arms of block `block` in the order of their boots, for a comparison with number `seed`.

    The same arguments give the same order, so that an extension goes on where the design stood.
    """
    if arms < 3:
        return [(place + block) % arms for place in range(arms)]
    labels = sorted(range(arms), key=lambda arm: _drawn(seed, arm))
    row = [labels[(place + block) % arms] for place in _zigzag(arms)]
    # Only with an even number of arms is each arm behind each other one within `arms` rows; with
    # an odd number, the rows and the rows read backwards together are balanced.
    return row[::-1] if arms % 2 and (block // arms) % 2 else row


def _zigzag(arms: int) -> list[int]:
    """0, 1, n-1, 2, n-2, ...: neighbours differ by each distance once."""
    return [(place + 1) // 2 if place % 2 else (arms - place // 2) % arms for place in range(arms)]


def _drawn(seed: int, arm: int) -> bytes:
    return hashlib.sha256(f"{seed}:{arm}".encode()).digest()
