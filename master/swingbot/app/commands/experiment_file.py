"""Options of an experiment, from the command line or from a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import yaml

from swingbot.adapters.patch_files import patch_sources
from swingbot.core.patchset.model import PatchSeries
from swingbot.core.patchset.read import read_series
from swingbot.core.stats.looks import MOST_LOOKS
from swingbot.service.ports import RequestError
from swingbot.service.table.kernels import NamedKernel

LARGEST: Final = 1 << 20  # bytes of an experiment file

# Key of the file -> field. Repeatable options take a list or a mapping {NAME: VALUE}.
_KEYS: Final[Mapping[str, str]] = {
    "range": "range",
    "base": "base",
    "head": "heads",
    "series": "series",
    "variant": "variants",
    "paths": "paths",
    "compiler": "compilers",
    "fragment": "fragments",
    "cmdline": "cmdlines",
    "sysctl": "sysctls",
    "exclude": "exclude",
    "against": "against",
    "with": "beside",
    "tree": "tree",
    "job": "jobs",
    "set": "overrides",
    "testbox": "testboxes",
    "boots": "boots",
    "looks": "looks",
    "trusted": "trusted",
}
_SINGLE: Final = ("range", "base", "series", "tree", "boots", "looks", "trusted")
_LARGEST_NUMBER: Final = {"boots": 1000, "looks": MOST_LOOKS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of an experiment as text."""

    range: str | None = None
    base: str | None = None
    heads: tuple[str, ...] = ()
    series: Path | None = None
    variants: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    compilers: tuple[str, ...] = ()
    fragments: tuple[str, ...] = ()
    cmdlines: tuple[str, ...] = ()
    sysctls: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    tree: str | None = None
    jobs: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    testboxes: tuple[str, ...] = ()
    boots: int | None = None
    looks: int | None = None
    trusted: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Build from the parameters of the command."""
        split = {
            name: tuple(one for text in given[name] for one in _listed(text))
            for name in ("against", "beside", "testboxes")
        }
        names = {field.name for field in fields(cls)} - {"range", "tree"}
        plain = {name: given[name] for name in names if name in given}
        return cls(range=given["range_"], tree=given["tree_name"], **(plain | split))

    def joined(self, other: Options) -> Options:
        """Merge with `other`: lists are appended, single values are replaced."""
        changed: dict[str, Any] = {}
        for field in fields(self):
            own, new = getattr(self, field.name), getattr(other, field.name)
            if isinstance(own, tuple):
                changed[field.name] = (*own, *new)
            elif new not in (None, False):
                changed[field.name] = new
        return replace(self, **changed)

    def read_series(self) -> PatchSeries | None:
        """Read the patches of `series`. Raises SeriesError."""
        return None if self.series is None else read_series(patch_sources([self.series]))

    def named(self) -> list[NamedKernel]:
        """Parse the variants: NAME=FILE[,FILE] if the files exist, else NAME=REF.

        Raises RequestError, SeriesError.
        """
        return [_variant(given) for given in self.variants]


def _variant(given: str) -> NamedKernel:
    name, sign, value = given.partition("=")
    if not sign or not name or not value:
        raise RequestError(f"--variant {given}: write it as NAME=FILE or NAME=REF")
    paths = [Path(one) for one in value.split(",")]
    existing = [path for path in paths if path.exists()]
    if len(existing) == len(paths):
        return NamedKernel(name=name, patches=read_series(patch_sources(paths)).patches)
    missing = next(path for path in paths if path not in existing)
    if len(paths) > 1 or "/" in value or missing.suffix in (".patch", ".diff", ".mbox", ".mbx"):
        raise RequestError(f"--variant {name}: file {missing} does not exist")
    return NamedKernel(name=name, ref=value)


def read_file(path: Path) -> Options:
    """Read an experiment from a YAML file. Raises RequestError that names the key."""
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise RequestError(
            f"{path} is larger than {LARGEST >> 10} KiB, the limit for an experiment file"
        )
    try:
        document = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RequestError(f"{path}: not valid YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(document, dict):
        raise RequestError(
            f"{path}: an experiment must be a mapping; valid keys are {', '.join(_KEYS)}"
        )
    unknown = [key for key in document if key not in _KEYS]
    if unknown:
        raise RequestError(
            f"{path}: unknown key {str(unknown[0])[:80]!r}; valid keys are {', '.join(_KEYS)}"
        )
    values = {_KEYS[key]: _read(path, key, value) for key, value in document.items()}
    return _resolve_paths(Options(**values), path.parent)


def _read(path: Path, key: str, value: Any) -> Any:
    if key in _LARGEST_NUMBER:
        most = _LARGEST_NUMBER[key]
        if type(value) is not int or not 1 <= value <= most:
            raise RequestError(f"{path}: {key} must be an integer from 1 to {most}")
        return value
    if key == "trusted":
        if type(value) is not bool:
            raise RequestError(f"{path}: {key} must be true or false")
        return value
    if key in _SINGLE:
        if not isinstance(value, str):
            raise RequestError(f"{path}: {key} must be a single string")
        return Path(value) if key == "series" else value
    return tuple(_texts(path, key, value))


def _texts(path: Path, key: str, value: Any) -> list[str]:
    if isinstance(value, str):
        return list(_listed(value)) if key in ("against", "with", "testbox") else [value]
    if isinstance(value, dict) and key != "exclude":
        return [f"{name}={_text(path, key, one)}" for name, one in value.items()]
    if isinstance(value, dict):
        return [",".join(f"{axis}={_text(path, key, one)}" for axis, one in value.items())]
    if isinstance(value, list):
        return [text for one in value for text in _texts(path, key, one)]
    return [_text(path, key, value)]


def _text(path: Path, key: str, value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ",".join(value)
    if value is None:
        return ""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    raise RequestError(f"{path}: value of {key} is not a string: {str(value)[:80]!r}")


def _resolve_paths(options: Options, directory: Path) -> Options:
    """Resolve paths of patches and jobs relative to the experiment file."""
    series = None if options.series is None else directory / options.series
    return replace(
        options,
        series=series,
        variants=tuple(_placed(given, directory) for given in options.variants),
        jobs=tuple(
            str(directory / job) if (directory / job).is_file() else job for job in options.jobs
        ),
    )


def _placed(given: str, directory: Path) -> str:
    name, sign, value = given.partition("=")
    files = [directory / one for one in value.split(",")]
    if all(file.exists() for file in files):
        return f"{name}{sign}{','.join(map(str, files))}"
    return given


def _listed(given: str) -> tuple[str, ...]:
    return tuple(one for one in given.split(",") if one)
