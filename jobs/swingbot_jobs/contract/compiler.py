"""Compiler names and kbuild's variables for them: the same for master, worker and kits."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from swingbot_jobs import limits

# Passed to make as an argument, and an order may come from anywhere.
_NAME: Final = re.compile(r"(gcc|clang)(-[1-9][0-9]{0,2})?")
# kbuild's variable -> the program of LLVM that it names (Documentation/kbuild/llvm.rst of Linux).
LLVM_TOOLS: Final = {
    "LD": "ld.lld",
    "AR": "llvm-ar",
    "NM": "llvm-nm",
    "STRIP": "llvm-strip",
    "OBJCOPY": "llvm-objcopy",
    "OBJDUMP": "llvm-objdump",
    "READELF": "llvm-readelf",
}
_HOST_TOOLS: Final = {"HOSTAR": "llvm-ar", "HOSTLD": "ld.lld"}
FORM: Final = "gcc, clang, gcc-N or clang-N"
ANNOUNCEMENT: Final = "swingbot_compilers"  # under this name a worker sends its list at login


# What every build runs: program -> Debian package.
BUILD_TOOLS: Final = {
    "make": "make",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "gzip": "gzip",
    "perl": "perl-base",
    "awk": "mawk",
}


def is_compiler(name: str) -> bool:
    """Return True if `name` has the form of a compiler: gcc, clang, gcc-N or clang-N."""
    return _NAME.fullmatch(name) is not None


def is_clang(name: str) -> bool:
    """Return True if kernels compiled by `name` are built with LLVM's linker and utilities."""
    return name.partition("-")[0] == "clang"


def order_of(name: str) -> tuple[str, int]:
    """Sort key of compiler names: gcc before clang, the default one first, then by version."""
    family, _, version = name.partition("-")
    return ("1" if family == "clang" else "0") + family, int(version or 0)


def programs(name: str) -> dict[str, str]:
    """The programs that only builds with `name` run, each with its Debian package."""
    if not is_clang(name):
        return {name: name}
    suffix = name.removeprefix("clang")
    tools = {f"{tool}{suffix}": f"llvm{suffix}" for tool in LLVM_TOOLS.values()}
    return {name: name, **tools, f"ld.lld{suffix}": f"lld{suffix}"}


def make_variables(name: str, *, prefix: str = "") -> list[str]:
    """Variables of make that have kbuild build a kernel and its host programs with `name`.

    `prefix` goes before the compiler's name ("ccache ").
    """
    return [f"CC={prefix}{name}", f"HOSTCC={prefix}{name}", *llvm_variables(name)]


def llvm_variables(name: str) -> list[str]:
    """Return the `make_variables` that choose linker and binary utilities; none for gcc.

    clang-N is LLVM=-N with each tool named as well: Linux before 5.18 does not know the suffix and
    takes LLVM=-N for LLVM=1.
    """
    if not is_clang(name):
        return []
    suffix = name.removeprefix("clang")
    tools = {**LLVM_TOOLS, **_HOST_TOOLS}
    chosen = [f"{variable}={tool}{suffix}" for variable, tool in tools.items()]
    return [f"LLVM={suffix or 1}", *chosen]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """A compiler of a worker; `problem`: why it cannot build kernels, None if it can."""

    name: str
    version: str
    problem: str | None = None


class BadAnnouncement(ValueError):
    """A worker's announcement is invalid; the message says why."""


def to_announcement(compilers: Sequence[Compiler]) -> list[dict[str, str | None]]:
    """The compilers of a worker as a JSON document."""
    return [{"name": one.name, "version": one.version, "problem": one.problem} for one in compilers]


def from_announcement(text: str) -> list[Compiler]:
    """The compilers that a worker announced as JSON. Raises BadAnnouncement."""
    if len(text) > limits.COMPILERS_CHARACTERS:
        raise BadAnnouncement(f"more than {limits.COMPILERS_CHARACTERS} characters")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise BadAnnouncement("not valid JSON") from None
    if not isinstance(document, list):
        raise BadAnnouncement("not a list of compilers")
    compilers = {one.name: one for one in map(_compiler, document)}
    return sorted(compilers.values(), key=lambda one: order_of(one.name))


def _compiler(entry: object) -> Compiler:
    if not isinstance(entry, dict):
        raise BadAnnouncement("an entry is not an object")
    name, version, problem = (entry.get(key) for key in ("name", "version", "problem"))
    if not (isinstance(name, str) and is_compiler(name)):
        raise BadAnnouncement(f"{str(name)[:80]!r} is not the name of a compiler ({FORM})")
    if not (isinstance(version, str) and isinstance(problem, str | None)):
        raise BadAnnouncement(f"{name}: version missing, or problem is not a string")
    return Compiler(name=name, version=_line(version), problem=problem and _line(problem))


def _line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text[:500])
