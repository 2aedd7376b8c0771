"""What `meta.yaml` says of a program's binaries, how its source is built, and how long it runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from swingbot_jobs.language.meta_table import Conditions, MetaTable, holds


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestFile:
    """A file of the host that a program needs in the guest.

    `name` may hold parameters (`{test}_threads`). Besides the operator's file and that of
    `swingbot-worker program build`, it comes from one of Debian's packages: installed (`package`),
    or from non-free, downloaded when a boot needs it (`download`).
    """

    name: str
    directory: str = "usr/bin"  # in the guest
    when: Conditions = ()
    package: str = ""
    download: str = ""
    paths: tuple[str, ...] = ()  # on host and guest, below /; empty: found by PATH
    installed_as: str = ""  # its name in PATH, if the package has it by another one
    contains: Conditions = ()  # the binary contains the values of these parameters as text

    def texts(self, params: Mapping[str, str]) -> tuple[str, ...]:
        """Return what the binary must contain for these parameters."""
        return tuple(params[one[0]] for one in self.contains if holds((one,), params))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecipe:
    """How a program's source is built. The commands run in sequence in its directory."""

    upstream: str
    marks: tuple[str, ...]  # files that identify this program's source
    headers: Mapping[str, str]  # header below /usr/include -> Debian package
    commands: tuple[tuple[str, ...], ...]
    outputs: re.Pattern[str]  # paths of binaries in the source directory; the file name is kept

    def command_lines(self, jobs: int) -> list[list[str]]:
        """Return the commands with `{jobs}` replaced by the number of parallel jobs."""
        return [[word.replace("{jobs}", str(jobs)) for word in line] for line in self.commands]

    def binaries(self, paths: Iterable[str]) -> list[str]:
        """Return the program's binaries among `paths` (relative to the source), sorted."""
        return sorted(path for path in paths if self.outputs.fullmatch(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedWork:
    """Work of a run without a runtime: the product of the parameters `factors`.

    `seconds` are guest seconds per unit on vm-icount, the slowest testbox that comes with swingbot,
    rather too many, and `real_seconds` those of one CPU of a real machine. `spread`: all CPUs
    share the work there, without a lock between them.
    """

    factors: tuple[str, ...]
    seconds: float
    real_seconds: float
    spread: bool = False

    def seconds_of(self, params: Mapping[str, str], *, nr_cpu: int, virtual: bool) -> float | None:
        """Return the guest seconds of one run; None if a factor is not a number.

        Virtual processors share those of the host, so that they may have no more than one.
        """
        values = [params.get(name, "") for name in self.factors]
        if not all(v.isascii() and v.isdecimal() and len(v) < 16 for v in values):
            return None
        units: float = math.prod(map(float, values))
        if virtual:
            return units * self.seconds
        return units * self.real_seconds / (nr_cpu if self.spread else 1)


def guest_files(meta: MetaTable) -> tuple[GuestFile, ...]:
    """Read `files:`, a table of file names."""
    found = []
    for name, table in meta.tables("files"):
        when, contains = table.take("when"), table.take("contains")
        file = GuestFile(
            name=name,
            directory=table.text("directory", "usr/bin"),
            when=table.conditions(when) if when else (),
            package=table.text("package", ""),
            download=table.text("download", ""),
            paths=table.texts("paths"),
            installed_as=table.text("installed_as", ""),
            contains=table.conditions(contains) if contains else (),
        )
        if file.paths and not file.package:
            table.refuse("paths are those of a package: name it with 'package'")
        table.done()
        found.append(file)
    return tuple(found)


def source_recipe(meta: MetaTable) -> SourceRecipe | None:
    """Read `build:`."""
    value = meta.take("build")
    if value is None:
        return None
    table = meta.inner("build", value)
    outputs = table.text("outputs")
    try:
        pattern = re.compile(outputs)
    except re.error as error:
        table.refuse(f"outputs is not a regular expression: {error}")
    recipe = SourceRecipe(
        upstream=table.text("upstream"),
        marks=table.texts("marks"),
        headers={
            header: package.text or "" for header, package in table.entries("headers").items()
        },
        commands=table.lines("commands"),
        outputs=pattern,
    )
    table.done()
    return recipe


def work_of(meta: MetaTable) -> FixedWork | None:
    """Read `work:`."""
    value = meta.take("work")
    if value is None:
        return None
    table = meta.inner("work", value)
    seconds = table.number("seconds")
    work = FixedWork(
        factors=table.texts("factors"),
        seconds=seconds,
        real_seconds=table.number("real_seconds") if table.take("real_seconds") else seconds,
        spread=table.truth("spread"),
    )
    table.done()
    return work
