"""Names of kernel configurations: `vm-x86_64`, or with fragments merged over it in order,
`vm-x86_64+trace+align64`.

The comment at the top of a configuration says over what it is merged: `# base: defconfig` is the
target of kbuild that comes first (tinyconfig if there is no such line), and `# with: server quiet`
are fragments that come between the two. `# base: distro:PATH` names the configuration of a
distribution instead of a target (`distro_config`).
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from swingbot_jobs import limits
from swingbot_jobs.contract import distro_config

# Names become paths, arguments and levels of result roots; "+" only separates them.
PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# A result root has `+layout2` for a kernel with another link order.
RESERVED: Final = re.compile(r"layout[0-9]*")
# Targets of kbuild that a configuration may be merged over; the first is the default.
TARGETS: Final = ("tinyconfig", "defconfig")
# Before the path of a distribution's configuration, which may take the place of a target.
DISTRO: Final = "distro:"
_DIRECTIVE: Final = re.compile(r"# (base|with): (.*)")
_OPTIONAL: Final = re.compile(r"^# optional: (.*)", re.MULTILINE)
# An option as people write it; see `bare`.
OPTION: Final = re.compile(r"(?:CONFIG_)?[A-Z0-9_]{1,100}")
# Subdirectory of the fragments in the directory of the configurations.
FRAGMENTS: Final = "fragments"


class NoKconfig(ValueError):
    """No configuration has that name; the message lists those that exist."""


@dataclass(frozen=True, slots=True)
class KconfigParts:
    """A parsed name: the configuration, and its fragments in the order in which they are merged."""

    base: str
    fragments: tuple[str, ...] = ()


def bare(options: Iterable[str]) -> tuple[str, ...]:
    """Return options without CONFIG_."""
    return tuple(option.removeprefix("CONFIG_") for option in options)


def missing(needed: Iterable[str], config: str) -> list[str]:
    """Return those of the `needed` options that are not built in (=y)."""
    lines = set(config.splitlines())
    return [option for option in needed if f"CONFIG_{option}=y" not in lines]


def shortfall(lacking: Sequence[str], who: str, fragments: Mapping[str, str]) -> str:
    """Return what `who` needs and a kernel lacks, and what to do, as the end of a sentence."""
    lines = ", ".join(f"CONFIG_{option}=y" for option in lacking)
    return f"lacks options that {who} needs: {lines}; {advice(lacking, fragments)}"


def advice(lacking: Sequence[str], fragments: Mapping[str, str]) -> str:
    """Return what to add to a configuration that lacks these options."""
    fragment = fragment_with(lacking, fragments)
    return (
        f"add {f'the fragment {fragment}' if fragment else 'a fragment that has them'} to the"
        " kernel configuration of the tree or the testbox"
    )


def fragment_with(options: Sequence[str], fragments: Mapping[str, str]) -> str:
    """Return the name of the fragment that has all `options`, the one with the fewest lines of
    several; "" if none has.
    """
    fitting = [name for name, text in fragments.items() if not missing(options, text)]
    return min(fitting, key=lambda name: len(fragments[name].splitlines()), default="")


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


@dataclass(frozen=True, slots=True)
class Over:
    """What a configuration is merged over: a target of kbuild or `distro:PATH`, then fragments, in
    order.
    """

    target: str = TARGETS[0]
    fragments: tuple[str, ...] = ()


def over_of(base: str, text: str) -> Over:
    """Read the comment at the top of `text`, that of the configuration `base`.

    Raises NoKconfig if it is invalid.
    """
    given: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if match := _DIRECTIVE.fullmatch(line):
            given.setdefault(match[1], match[2])
    target = given.get("base", TARGETS[0]).strip()
    if target not in TARGETS and not target.startswith(DISTRO):
        raise NoKconfig(
            f"{base}.config: '# base: {target[:80]}' must name one of {', '.join(TARGETS)}, or"
            f" {DISTRO}PATH"
        )
    fragments = parts_of("+".join((base, *given.get("with", "").split()))).fragments
    return Over(target, fragments)


def optional_of(fragment: str) -> frozenset[str]:
    """Return the options, with CONFIG_, that a kernel may lack although the fragment sets them."""
    lines = _OPTIONAL.findall(fragment)
    return frozenset(f"CONFIG_{one}" for one in bare(" ".join(lines).split()))


def joined(name: str, fragment: str) -> str:
    """Return `name` with `fragment` merged last; a name that already has it stays unchanged."""
    return name if fragment in parts_of(name).fragments else f"{name}+{fragment}"


@dataclass(frozen=True, slots=True)
class Kconfigs(Mapping[str, str]):
    """Every valid configuration: name -> the text that goes into build keys.

    Iteration yields those without fragments; lookup also accepts names with fragments. The text is
    that of all files as they are merged: the fragments below the configuration, the configuration,
    and the fragments of the name. A distribution's configuration is represented by its digest.

    `distros` has the text of each `distro:PATH`, or the reason why it cannot be used.
    """

    bases: Mapping[str, str]
    fragments: Mapping[str, str] = field(default_factory=dict)
    distros: Mapping[str, str | distro_config.NoDistroConfig] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        try:
            return self.text(name)
        except NoKconfig as error:
            raise KeyError(str(error)) from None

    def text(self, name: str) -> str:
        """Return the text of `name`. Raises NoKconfig, which lists the known names."""
        parts = parts_of(name)
        over, above = self.over(name), parts.fragments
        distro = self.distro(name)
        return "\n".join(
            [
                *([] if distro is None else [f"# {DISTRO}{_sha256(distro)}"]),
                *(self.fragments[one] for one in over.fragments),
                self.bases[parts.base],
                *(self.fragments[one] for one in above),
            ]
        )

    def distro(self, name: str) -> str | None:
        """Return the text of the distribution's configuration below `name`, if there is one.

        Raises NoKconfig.
        """
        target = self.over(name).target
        found = self.distros[target] if target.startswith(DISTRO) else None
        assert not isinstance(found, ValueError)
        return found

    def over(self, name: str) -> Over:
        """Return what the configuration of `name` is merged over.

        Raises NoKconfig if one of its files does not exist or is merged twice, or if the
        configuration of its distribution cannot be used.
        """
        parts = parts_of(name)
        if parts.base not in self.bases:
            raise NoKconfig(
                f"there is no kernel configuration {parts.base!r}; known are {_names(self.bases)}"
            )
        over = over_of(parts.base, self.bases[parts.base])
        if isinstance(error := self.distros.get(over.target), ValueError):
            raise NoKconfig(f"{parts.base}.config: '# base: {over.target[:200]}': {error}")
        for fragment in (*over.fragments, *parts.fragments):
            if fragment not in self.fragments:
                raise NoKconfig(
                    f"{name!r}: there is no fragment {fragment!r};"
                    f" known are {_names(self.fragments)}"
                )
        if twice := set(over.fragments) & set(parts.fragments):
            raise NoKconfig(f"{name!r}: {parts.base} has {', '.join(sorted(twice))} already")
        return over

    def on(self, testbox: str, tree: str) -> str:
        """Return the name of the configuration of a kernel of a tree for a testbox.

        `testbox` is the name in the testbox's file, empty if it has none; `tree` is that of the
        tree, whose fragments come on top. Raises NoKconfig if there is no such configuration.
        """
        name = testbox or tree
        for fragment in parts_of(tree).fragments:
            if fragment not in self.over(name).fragments:
                name = joined(name, fragment)
        self.over(name)
        return name

    def refusal(self, name: str, needs: Mapping[str, Sequence[str]]) -> str | None:
        """Return why kernels of this configuration cannot run what needs options, by who needs
        them; None if nothing is known to be lacking.

        Options count as lacking that no file of `name` sets and a fragment would. What `defconfig`
        sets is not known here. Raises NoKconfig.
        """
        over = self.over(name)
        if over.target == "defconfig":
            return None
        config = f"{self.distro(name) or ''}\n{self.text(name)}"
        for who, options in needs.items():
            lacking = missing(options, config)
            if lacking and fragment_with(lacking, self.fragments):
                return f"kernel configuration {name} {shortfall(lacking, who, self.fragments)}"
        return None

    def __iter__(self) -> Iterator[str]:
        return iter(self.bases)

    def __len__(self) -> int:
        return len(self.bases)


def _names(known: Mapping[str, str]) -> str:
    return ", ".join(sorted(known)) or "none at all"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def load_kconfigs(directory: Path) -> Kconfigs:
    """Read `workers/kconfig`: `<name>.config`, `fragments/<name>.config`, and the configurations of
    distributions that those name.
    """
    bases = _texts(directory)
    return Kconfigs(bases, load_fragments(directory), _distros(bases, directory))


def load_fragments(directory: Path) -> dict[str, str]:
    """Read the texts of the fragments in `workers/kconfig`, by name."""
    return _texts(directory / FRAGMENTS)


def _distros(
    bases: Mapping[str, str], directory: Path
) -> dict[str, str | distro_config.NoDistroConfig]:
    found: dict[str, str | distro_config.NoDistroConfig] = {}
    for base, text in bases.items():
        with contextlib.suppress(NoKconfig):  # raised when the configuration is asked for
            target = over_of(base, text).target
            if target.startswith(DISTRO):
                try:
                    found[target] = distro_config.read(target.removeprefix(DISTRO), directory)
                except distro_config.NoDistroConfig as error:
                    found[target] = error
    return found


def _texts(directory: Path) -> dict[str, str]:
    return {file.stem: file.read_text() for file in sorted(directory.glob("*.config"))}
