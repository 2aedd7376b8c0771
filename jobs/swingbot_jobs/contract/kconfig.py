"""Names of kernel configurations: `vm-x86_64`, or with fragments merged over it in order,
`vm-x86_64+trace+align64`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from swingbot_jobs import limits

# Names become paths, arguments and levels of result roots; "+" only separates them.
PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# A result root has `+layout2` for a kernel with another link order.
RESERVED: Final = re.compile(r"layout[0-9]*")
# Subdirectory of the fragments in the directory of the configurations.
FRAGMENTS: Final = "fragments"


class NoKconfig(ValueError):
    """No configuration has that name; the message lists those that exist."""


@dataclass(frozen=True, slots=True)
class KconfigParts:
    """A parsed name: the configuration, and its fragments in the order in which they are merged."""

    base: str
    fragments: tuple[str, ...] = ()


def parts_of(name: str) -> KconfigParts:
    """Parse `name`. Raises NoKconfig for an invalid name; does not look at files."""
    base, *fragments = name[:1000].split("+")
    for part in (base, *fragments):
        if not PART.fullmatch(part):
            raise NoKconfig(
                f"{name[:80]!r} is not a valid kernel configuration name;"
                " write it like vm-x86_64 or vm-x86_64+align64"
            )
    for fragment in fragments:
        if RESERVED.fullmatch(fragment):
            raise NoKconfig(
                f"{name[:80]!r}: {fragment} cannot be the name of a fragment:"
                " result roots use it for layouts"
            )
    if len(set(fragments)) < len(fragments) or len(fragments) > limits.KCONFIG_FRAGMENTS:
        raise NoKconfig(
            f"{name[:80]!r}: name each fragment once, and at most {limits.KCONFIG_FRAGMENTS}"
        )
    return KconfigParts(base, tuple(fragments))


def joined(name: str, fragment: str) -> str:
    """Return `name` with `fragment` merged last; a name that already has it stays unchanged."""
    return name if fragment in parts_of(name).fragments else f"{name}+{fragment}"


@dataclass(frozen=True, slots=True)
class Kconfigs(Mapping[str, str]):
    """Every valid configuration: name -> the text that goes into build keys.

    Iteration yields those without fragments; lookup also accepts names with fragments,
    whose text is that of the configuration followed by those of its fragments, as they are merged.
    """

    bases: Mapping[str, str]
    fragments: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        try:
            return self.text(name)
        except NoKconfig as error:
            raise KeyError(str(error)) from None

    def text(self, name: str) -> str:
        """Return the text of `name`. Raises NoKconfig, which lists the known names."""
        parts = parts_of(name)
        if parts.base not in self.bases:
            raise NoKconfig(
                f"there is no kernel configuration {parts.base!r}; known are {_names(self.bases)}"
            )
        for fragment in parts.fragments:
            if fragment not in self.fragments:
                raise NoKconfig(
                    f"{name!r}: there is no fragment {fragment!r};"
                    f" known are {_names(self.fragments)}"
                )
        return "".join(
            [self.bases[parts.base], *(f"\n{self.fragments[one]}" for one in parts.fragments)]
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.bases)

    def __len__(self) -> int:
        return len(self.bases)


def _names(known: Mapping[str, str]) -> str:
    return ", ".join(sorted(known)) or "none at all"


def load_kconfigs(directory: Path) -> Kconfigs:
    """Read `workers/kconfig`: `<name>.config`, and `fragments/<name>.config`."""
    return Kconfigs(_texts(directory), _texts(directory / FRAGMENTS))


def _texts(directory: Path) -> dict[str, str]:
    return {file.stem: file.read_text() for file in sorted(directory.glob("*.config"))}
