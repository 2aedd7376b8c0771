"""Other layouts of the same code, by a linker script that moves the functions of each object.

The same objects are linked, and only plain `.text` changes its order. Initcalls, tables and data
keep their order but have other addresses. See docs/decisions/0005-layout-builds.md.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

SCRIPT = "swingbot-layout.lds"  # below the object directory
# Bytes. gcc aligns functions to 16 bytes, so a change of one function moves the later ones by a
# multiple of 16.
STEP = 16
GAPS = 4  # 0..3 steps between two objects
# 0..255 steps before the first: moves everything after it, including data, by up to a page.
LEAD = 256
_MAIN_TEXT = re.compile(r"\*\(\.text[ )]")


class NoLayout(Exception):
    """This kernel's linker script does not allow functions to be reordered."""


def permuted(script: str, objects: Sequence[str], layout: int) -> str:
    """Return the preprocessed vmlinux.lds with the code of `objects` reordered, with small gaps.

    Each `layout` >= 1 has a different order. `objects` are paths as the linker sees them. Order and
    gaps depend only on their names and on `layout`, so two commits of one layout differ only by
    what their change moves. Objects that are not linked have no effect; objects that are not named
    follow at the end. Raises NoLayout.
    """
    place = _MAIN_TEXT.search(script)
    if place is None:
        raise NoLayout(
            "Its linker script has no statement for .text, so only layout 0 of its code can be "
            "built."
        )
    lead = f". = . + {STEP * (_draw(layout, 'lead', '') % LEAD)};"
    moved = [
        _moved(name, STEP * (_draw(layout, "gap", name) % GAPS))
        for name in sorted(set(objects), key=lambda name: (_draw(layout, "place", name), name))
    ]
    return "\n".join([script[: place.start()], lead, *moved, script[place.start() :]])


def _moved(name: str, gap: int) -> str:
    # Brackets make the name a pattern, which also matches archive members; a plain name would be
    # opened as a file.
    return f"[{name[0]}]{name[1:]}(.text .text.fixup) . = . + {gap};"


def _draw(layout: int, what: str, name: str) -> int:
    """Return a pseudo-random number that depends only on the arguments."""
    return int.from_bytes(hashlib.sha256(f"{layout}\0{what}\0{name}".encode()).digest()[:8])
