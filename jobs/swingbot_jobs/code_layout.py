"""Other layouts of the same code, by a linker script that moves the functions of each object.

The same objects are linked, and only code changes its order. Initcalls, tables and data keep their
order but have other addresses. See docs/decisions/0005-layout-builds.md.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

SCRIPT = "swingbot-layout.lds"  # below the object directory
# Bytes. gcc aligns functions to 16 bytes, so a change of one function moves the later ones by a
# multiple of 16.
STEP = 16
GAPS = 4  # 0..3 steps between two objects
# 0..255 steps before the first: moves everything after it, including data, by up to a page.
LEAD = 256
LINE = 64  # bytes of a cache line
# (section, object) -> address of its first code. Members of archives are "libx.a:member.o".
Code = Mapping[tuple[str, str], int]
_MAIN_TEXT = re.compile(r"\*\(\.text[ )]")
_ANY_TEXT = re.compile(r"\*\((\.text[^()]*)\)")


class NoLayout(Exception):
    """This linker script does not allow functions to be reordered."""


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
    moved = [
        _moved(name, ".text .text.fixup", f". = . + {STEP * (_draw(layout, 'gap', name) % GAPS)};")
        for name in _ordered(objects, layout)
    ]
    return "\n".join([script[: place.start()], _lead(layout), *moved, script[place.start() :]])


def permuted_program(
    script: str, code: Code, nameless: Collection[str], layout: int, root: str = ""
) -> str:
    """Return the default script of `ld` (`ld --verbose`) with the code of each object moved.

    As `permuted`, but cold, startup and hot functions move as well, each kind within its own place:
    compilers put `main` there. `code` is where they are in layout 0; those of the objects
    `nameless` follow the others. `root` is what names begin with that differs between work trees,
    and has no effect on the order. In layouts 1 to 3 code begins 16, 32 and 48 bytes further in its
    cache line than in layout 0, so that code that lies badly in one of four layouts lies well in
    the others. Raises NoLayout.
    """
    places = list(_ANY_TEXT.finditer(script))
    if not places:
        raise NoLayout("the linker script has no statement for .text")
    parts, begin, taken = list[str](), 0, set[str]()
    for place in places:
        parts += [script[begin : place.start()]] + [_lead(layout)] * (place is places[0])
        first: dict[str, int] = {}
        here = {s for s, _ in code if any(fnmatchcase(s, p) for p in place[1].split())} - taken
        for (section, name), address in code.items():
            if section in here:
                first[name] = min(address, first.get(name, address))
        for name in _ordered(first.keys() - set(nameless), layout, root):
            parts += [_phase(first[name], layout), _moved(name, place[1], "")]
        rest = [first[name] for name in nameless if name in first]
        parts += [_phase(min(rest), layout)] if rest else []
        begin, taken = place.start(), taken | here
    return "\n".join([*parts, script[begin:]])


def _phase(address: int, layout: int) -> str:
    """Go on to where code that began at `address` begins in its cache line in this layout."""
    place = (address + STEP * layout) % LINE
    return f". = . + (({place} - ABSOLUTE(.)) & {LINE - 1});"


def _lead(layout: int) -> str:
    return f". = . + {STEP * (_draw(layout, 'lead', '') % LEAD)};"


def _ordered(objects: Iterable[str], layout: int, root: str = "") -> list[str]:
    def place(name: str) -> tuple[int, str]:
        return _draw(layout, "place", name.removeprefix(root)), name

    return sorted(set(objects), key=place)


def _moved(name: str, sections: str, behind: str) -> str:
    # Brackets make the name a pattern, which also matches archive members; a plain name would be
    # opened as a file.
    return f"[{name[0]}]{name[1:]}({sections}) {behind}".rstrip()


def _draw(layout: int, what: str, name: str) -> int:
    """Return a pseudo-random number that depends only on the arguments."""
    return int.from_bytes(hashlib.sha256(f"{layout}\0{what}\0{name}".encode()).digest()[:8])
