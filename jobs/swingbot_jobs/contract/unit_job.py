"""A unit job: one point of a job's axes, resolved for one testbox, ready to run.

Values in `params` are the strings that the program's `run` script finds in its environment;
percentages, durations and arithmetic are already resolved. The name is LKP's
(`<job>-<path params>`), so that the same work has the same name in LKP and here.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from swingbot_jobs import codec, limits
from swingbot_jobs.codec import Sparse
from swingbot_jobs.contract import settings

# A unit job's name becomes a directory in the guest, a URL and a column:
# only these characters are safe.
NAME = re.compile(r"[A-Za-z0-9][-A-Za-z0-9+=:.%_]{0,254}")

# A function as a symbol of the kernel; it becomes a word of a shell script and a part of a metric's
# name.
FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,127}")

# An event as perf names it, without a group or a PMU's own syntax; it becomes a word of a shell
# script and a part of a metric's name.
EVENT = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,127}")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitJob:
    """One benchmark program with resolved parameters, to be run `runs` times within one boot.

    Each of `monitors` disturbs the benchmark, so it gets a separate run after the others,
    whose benchmark numbers are not compared.
    """

    name: str
    program: str
    params: Mapping[str, str]
    runs: int
    # Unset fields are left out, so that a spec keeps its name when the language grows.
    monitors: Sparse[tuple[str, ...]] = ()
    warmup: Sparse[int] = 0  # warm-up runs before the others; not counted
    # required facts of the boot; otherwise the runs are invalid
    demand: Sparse[Mapping[str, str]] = field(default_factory=dict)
    # facts under comparison: a difference in them does not prevent a verdict
    compare_fact: Sparse[tuple[str, ...]] = ()
    # kernel functions, as in the source, whose calls the monitor function-profile counts
    functions: Sparse[tuple[str, ...]] = ()
    # events that perf counts in place of the usual ones, as perf names them
    events: Sparse[tuple[str, ...]] = ()
    cmdline: Sparse[str] = ""  # words appended to the testbox's own kernel command line
    # sysctls by name (settings.sysctl_name), set for its runs and then restored
    sysctl: Sparse[Mapping[str, str]] = field(default_factory=dict)
    # guest seconds of one run of fixed work, roughly; 0: it has a runtime, or it is not known
    work_seconds: Sparse[float] = 0.0

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"unit job name {self.name!r} has characters that a path cannot hold")
        if self.runs < 1:
            raise ValueError(f"unit job {self.name}: runs is {self.runs}, must be at least 1")
        if self.warmup < 0:
            raise ValueError(f"unit job {self.name}: warmup is {self.warmup}, must be 0 or more")
        for strange in (name for name in self.functions if not FUNCTION.fullmatch(name)):
            raise ValueError(
                f"unit job {self.name}: {strange[:80]!r} is not a valid kernel function name"
            )
        for strange in (name for name in self.events if not EVENT.fullmatch(name)):
            raise ValueError(f"unit job {self.name}: {strange[:80]!r} is not the name of an event")
        if len(self.events) > limits.JOB_EVENTS:
            raise ValueError(f"unit job {self.name}: more than {limits.JOB_EVENTS} events")
        try:
            settings.parse_words(self.cmdline)
            settings.check_form(self.sysctl)
        except settings.SettingError as error:
            raise ValueError(f"unit job {self.name}: {error}") from error

    @property
    def command(self) -> str:
        """How a run calls the program, on one line: its parameters as environment variables,
        sorted; files of its cgroup are none.
        """
        params = (
            f"{name}={shlex.quote(value)}"
            for name, value in sorted(self.params.items())
            if name.isidentifier()
        )
        return " ".join([*params, f"jobs/programs/{self.program}/run"])

    @property
    def numbers(self) -> range:
        """The numbers of all its runs: warm-up runs first, runs for a monitor last."""
        return range(self.warmup + self.runs + len(self.monitors))

    def monitor_of(self, number: int) -> str | None:
        """The monitor that run `number` belongs to; None for a run that measures."""
        behind = number - self.warmup - self.runs
        return self.monitors[behind] if behind >= 0 else None


def cmdline_of(unit_jobs: Iterable[UnitJob]) -> str:
    """Return the words that the unit jobs of one boot add to its kernel command line.

    Raises ValueError if they do not agree: one boot has one command line.
    """
    first: UnitJob | None = None
    for job in unit_jobs:
        first = first or job
        if job.cmdline != first.cmdline:
            raise ValueError(
                f"{first.name} and {job.name} have different kernel_cmdline"
                f" ({first.cmdline!r} and {job.cmdline!r}), and one boot has one kernel command"
                " line; measure them in separate requests"
            )
    return first.cmdline if first else ""


def spec_sha256(unit_jobs: Iterable[UnitJob]) -> str:
    """Name a set of unit jobs by its content: boots of equal specs can be compared.

    How long they take is an estimate and no part of it.
    """
    canonical = json.dumps(
        codec.plain([replace(job, work_seconds=0.0) for job in unit_jobs]),
        sort_keys=True,
        separators=(",", ":"),
    )
    return hashlib.sha256(canonical.encode()).hexdigest()
