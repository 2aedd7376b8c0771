"""Where the numbers k of boots begin, by what the boots are for: a boot of one purpose is nobody else's.

Comparisons and the searches of bisections begin at 0.
"""

from __future__ import annotations

from typing import Final

# Boots that neither raised the alarm nor took part in the search: the numbers that are printed come from these.
FRESH_K: Final = 100
ANCHOR_K: Final = 200
FIX_K: Final = 250  # the parent of a culprit against a tip that has its fix
GATE_K: Final = 300
APART_K: Final = 50  # between the boots of a gate and those of the same gate asked for again
