"""The order in which the arms of a comparison are booted: block k has boot k of every arm.

A drifting testbox then affects all rows of a table alike. Within a block, each arm takes each place
and follows each other arm about equally often: rows of a Williams design (E. J. Williams,
"Experimental designs balanced for the estimation of residual effects of treatments", 1949) over
arms in a random order, seeded with the comparison's number. The turns of two arms mirror: b h h b.
"""

from __future__ import annotations

import hashlib


def block_order(arms: int, block: int, seed: int) -> list[int]:
    """Return the arms of block `block` in boot order, for a comparison with number `seed`.

    The result depends on the arguments only, so that an extension continues the design.
    """
    if arms < 3:
        return [(place + block) % arms for place in range(arms)]
    labels = sorted(range(arms), key=lambda arm: _drawn(seed, arm))
    row = [labels[(place + block) % arms] for place in _zigzag(arms)]
    # Only for an even number of arms does each arm follow each other one within `arms` rows. For an
    # odd number, the rows together with the reversed rows are balanced.
    return row[::-1] if arms % 2 and (block // arms) % 2 else row


def _zigzag(arms: int) -> list[int]:
    """Return 0, 1, n-1, 2, n-2, ...: each distance between neighbours occurs once."""
    return [(place + 1) // 2 if place % 2 else (arms - place // 2) % arms for place in range(arms)]


def _drawn(seed: int, arm: int) -> bytes:
    return hashlib.sha256(f"{seed}:{arm}".encode()).digest()
