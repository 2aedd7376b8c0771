"""Other layouts of the same code: a linker script that moves the functions of each object elsewhere.

Nothing is compiled differently, and nothing but plain `.text` changes its order: initcalls, tables and
data follow each other as ever, only at other addresses. See docs/decisions/0005-layout-builds.md.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

SCRIPT = "swingbot-layout.lds"  # below the object directory
# gcc aligns functions to 16 bytes: a step of it is what any change of an earlier function moves the later ones by.
STEP = 16
GAPS = 4  # 0..3 steps between two objects
LEAD = 256  # 0..255 steps before the first: moves all that follows, data included, by up to a page
_MAIN_TEXT = re.compile(r"\*\(\.text[ )]")


class NoLayout(Exception):
    """This kernel's linker script has no place where functions can be moved about."""


def permuted(script: str, objects: Sequence[str], layout: int) -> str:
    """The kernel's preprocessed vmlinux.lds with the code of `objects` in another order, with small gaps; another one for each `layout` >= 1.

    `objects` are paths as the linker sees them. Order and gaps depend on their names and on `layout` alone,
    so two commits of one layout differ by what their change moves and by nothing else. Objects that are not
    linked, and those not named, cost nothing: the latter follow at the end. Raises NoLayout.
    """
    place = _MAIN_TEXT.search(script)
    if place is None:
        raise NoLayout(
            "Its linker script has no statement for .text, so its code has but one layout here."
        )
    lead = f". = . + {STEP * (_draw(layout, 'lead', '') % LEAD)};"
    moved = [
        _moved(name, STEP * (_draw(layout, "gap", name) % GAPS))
        for name in sorted(set(objects), key=lambda name: (_draw(layout, "place", name), name))
    ]
    return "\n".join([script[: place.start()], lead, *moved, script[place.start() :]])


def _moved(name: str, gap: int) -> str:
    # Brackets make it a pattern, which matches members of archives too; a plain name would be opened as a file.
    return f"[{name[0]}]{name[1:]}(.text .text.fixup) . = . + {gap};"


def _draw(layout: int, what: str, name: str) -> int:
    """A number that looks random and is always the same."""
    return int.from_bytes(hashlib.sha256(f"{layout}\0{what}\0{name}".encode()).digest()[:8])
