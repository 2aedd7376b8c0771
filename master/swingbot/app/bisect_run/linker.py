"""What CMD finds as `ld` while `swingbot bisect run --layouts` varies the layout: the linker, which
links the same objects in the layout SWINGBOT_LAYOUT.

    python -m swingbot.app.bisect_run.linker RECIPE SHIM ARGUMENTS...

SHIM is the path of the script that calls it, named as the linker is. In layout 0, and for links
that the recipe leaves alone or that are not below the work tree SWINGBOT_TREE, it becomes that
linker. Otherwise it links twice: as it was asked to,
into a temporary file, whose map and script name the objects; then with the script in which their
code moved. Functions of both have to differ in address, else the link is as it was asked for.
Each link is a line of JSON in the file SWINGBOT_LINKS. Format of the map: that of GNU ld.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from swingbot.app.bisect_run import process
from swingbot_jobs import code_layout

if TYPE_CHECKING:
    from swingbot.adapters.process import Completed

LINKS: Final = "SWINGBOT_LINKS"
TREE: Final = "SWINGBOT_TREE"
_BROKEN_OFF: Final = -1  # layout of a link that has not ended
_SECONDS: Final = 3600.0  # of one link
_EXPANDED: Final = 1 << 24  # bytes of a response file
_PARTIAL: Final = ("-r", "-i", "-Ur", "--relocatable")  # objects again: their code moves later
_CODE: Final = re.compile(
    r"^ (\.text\S*)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S[^\n]*)$", re.MULTILINE
)
_PLAIN: Final = re.compile(r"[\w./+@%~,-]+(:[\w./+@%~,-]+)?")  # a name that a script can hold
_RULE: Final = "=" * 50 + "\n"  # around the script in the output of --verbose


class NotVaried(Exception):
    """Why this link has the layout that it was asked to have."""


@dataclass(frozen=True, slots=True)
class ProgramLink:
    """What a link was asked for."""

    arguments: tuple[str, ...]
    output: str | None
    script: str | None
    map: str | None
    partial: bool

    def varied_by(self, recipe: str, tree: str) -> bool:
        """Whether this is a link below the work tree whose layout the recipe varies."""
        if self.partial or self.output is None:
            return False
        if not os.path.abspath(self.output).startswith(f"{tree}/"):
            return False
        if recipe == "kernel":  # not its decompressor, its tools nor its vDSO
            return self.script is not None and self.script.endswith("kernel/vmlinux.lds")
        return self.script is None


def read_link(arguments: Sequence[str]) -> ProgramLink:
    """Read the options of ld that matter here; the last one counts, as for ld."""
    words = list(_words(arguments))
    return ProgramLink(
        tuple(arguments),
        _option(words, "-o", "--output"),
        _option(words, "-T", "--script"),
        _option(words, "-Map", "--Map"),
        any(word in _PARTIAL for word in words),
    )


def placed_code(text: str) -> dict[tuple[str, str], int]:
    """Parse a map: (section, object) -> first address of its code. Empty and discarded code is left
    out. Members of archives are named "libx.a:member.o".
    """
    found: dict[tuple[str, str], int] = {}
    for section, address, size, name in _CODE.findall(text):
        if int(size, 16) and int(address, 16):
            key = section, name.replace("(", ":").rstrip(")")
            found[key] = min(int(address, 16), found.get(key, int(address, 16)))
    return found


def main() -> NoReturn:
    recipe, shim, *arguments = sys.argv[1:]
    link, layout = read_link(arguments), int(os.environ.get("SWINGBOT_LAYOUT", "0"))
    linker, tree = _behind(shim), os.environ.get(TREE)  # None where CMD clears its environment
    if tree and link.varied_by(recipe, tree):
        why = ""
        try:
            if layout:
                _record(link, _BROKEN_OFF, "")  # where this process is killed
                _link(linker, link, layout, recipe)
        except (NotVaried, OSError, code_layout.NoLayout) as error:
            why = " ".join(str(error).split())[:200]
        _record(link, layout, why)
        if layout and not why:
            sys.exit(0)
    process.become([linker, *arguments])


def _link(linker: str, link: ProgramLink, layout: int, recipe: str) -> None:
    """ProgramLink in this layout. Raises NotVaried where that cannot be done or has no effect."""
    assert link.output is not None
    beside = os.path.dirname(os.path.abspath(link.output))
    with tempfile.TemporaryDirectory(dir=beside, prefix=".swingbot-") as place:
        plain_map, script = Path(place) / "map", Path(place) / code_layout.SCRIPT
        told = _ld(
            linker,
            [*link.arguments, "--verbose", f"-Map={plain_map}", "-o", f"{place}/plain"],
        )
        parts = told.out.split(_RULE)
        if len(parts) < 3:
            raise NotVaried(f"{os.path.basename(linker)} is not GNU ld")
        plain = placed_code(plain_map.read_text(errors="replace"))
        script.write_text(_script(parts[1], plain, layout, recipe))
        varied_map = Path(link.map) if link.map else Path(place) / "varied"
        more = [] if link.map else [f"-Map={varied_map}"]
        done = _ld(linker, [*_with_script(link, str(script)), *more])
        if placed_code(varied_map.read_text(errors="replace")) == plain:
            raise NotVaried("no function has another address")
    sys.stdout.write(done.out)
    sys.stderr.write(done.err)


def _with_script(link: ProgramLink, script: str) -> list[str]:
    """The arguments with this script in place of their own, or of the one of the linker."""
    if link.script is None:
        return [*link.arguments, "-T", script]
    old = {link.script: script, f"--script={link.script}": f"--script={script}"}
    return [old.get(word, word) for word in link.arguments]


def _script(script: str, code: code_layout.Code, layout: int, recipe: str) -> str:
    """The linker script of this layout. Objects that the compiler leaves for a moment have no name
    there, as they are called differently each time."""
    brief, tree = tempfile.gettempdir() + "/", os.environ[TREE] + "/"
    names = {name for _, name in code}
    lasting = {n for n in names if n.startswith(tree) or not n.startswith(brief)}
    nameless = {n for n in names if n not in lasting or not _PLAIN.fullmatch(n)}
    if recipe == "kernel":
        return code_layout.permuted(script, sorted(names - nameless), layout)
    return code_layout.permuted_program(script, code, nameless, layout, tree)


def _ld(linker: str, words: Sequence[str]) -> Completed:
    """Run the linker. Raises NotVaried with its last line if it fails."""
    from swingbot.adapters.process import run  # most links need no second one

    done = run([linker, *words], timeout=_SECONDS)
    if done.rc != 0:
        raise NotVaried((done.err.strip().splitlines() or [f"exit status {done.rc}"])[-1])
    return done


def _record(link: ProgramLink, layout: int, why: str) -> None:
    """Append the link in one write, as links run in parallel."""
    assert link.output is not None
    row = {"output": os.path.abspath(link.output), "layout": layout, "why": why}
    with open(os.environ[LINKS], "a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(json.dumps(row) + "\n")


def _behind(shim: str) -> str:
    """The linker that CMD would have found: COMPILER_PATH is where gcc looks first."""
    name, own = os.path.basename(shim), os.path.realpath(os.path.dirname(shim))
    folders = f"{os.environ.get('COMPILER_PATH', '')}:{os.environ.get('PATH', os.defpath)}"
    for folder in folders.split(":"):
        path = os.path.join(folder, name)
        if folder and os.path.realpath(folder) != own and os.access(path, os.X_OK):
            return path
    sys.exit(f"swingbot: {name} was not found")


def _words(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments with response files (@FILE) read."""
    for word in arguments:
        if not word.startswith("@"):
            yield word
            continue
        try:
            with open(word[1:], encoding="utf-8", errors="replace") as file:
                yield from shlex.split(file.read(_EXPANDED))
        except (OSError, ValueError):
            yield word


def _option(words: Sequence[str], short: str, long: str) -> str | None:
    """The value of an option, as "-o X", "-oX", "--output X", "--output=X" or "-Map=X"."""
    value = None
    for word, after in zip(words, [*words[1:], None], strict=True):
        name, equals, behind = word.partition("=")
        if word in (short, long):
            value = after
        elif equals and name in (short, long):
            value = behind
        elif len(short) == 2 and word.startswith(short) and not word.startswith("--"):
            value = word[2:]
    return value


if __name__ == "__main__":
    main()
