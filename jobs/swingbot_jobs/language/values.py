"""Values of one point of a job: from the written form (`50%`, `5m`, `{{ nr_cpu / 2 }}`) to the
environment of a program's `run`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final, Protocol

from swingbot_jobs import limits
from swingbot_jobs.contract.memory import MEMORY_MAX, PAGE, RAM_DISK_SIZE, SWAP, ram_disk
from swingbot_jobs.contract.memory import limits as limits_of
from swingbot_jobs.language import demands
from swingbot_jobs.language.arithmetic import calculate
from swingbot_jobs.language.job import Document, JobError
from swingbot_jobs.language.program import Parameter, Program
from swingbot_jobs.testbox.wire import LOCALHOST
from swingbot_jobs.yaml_lines import LocatedValue, suggest

SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
BYTES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NUMBER: Final = r"([0-9]{1,15}(?:\.[0-9]{1,9})?)"
_COUNT: Final = re.compile(_NUMBER + r"(%|[A-Za-z]{0,8})")
_SHARE: Final = re.compile(_NUMBER + "%")
_SIZE: Final = re.compile(_NUMBER + r"([KMGTkmgt]?)(?:i?[Bb])?")
_DURATION: Final = re.compile(_NUMBER + r"([smhdwy]?)")
# {{ nr_cpu / 2 }}, or as LKP's files have it too: $((nr_cpu-1))
_EXPRESSION: Final = re.compile(r"\{\{((?:(?!\{\{|\}\}).)*)\}\}|\$\(\(([^()]*)\)\)", re.DOTALL)
_TEXT: Final = re.compile(r"[^\x00-\x1f\x7f]{1,255}")


class TestboxTraits(Protocol):
    """The properties of a testbox that expansion needs."""

    @property
    def name(self) -> str: ...
    @property
    def nr_cpu(self) -> int: ...
    @property
    def nr_node(self) -> int | None: ...
    @property
    def memory_mb(self) -> int: ...
    @property
    def cluster(self) -> str: ...  # required value of a job's `cluster`; empty: any
    @property
    def virtual(self) -> bool: ...  # a program on the worker's host


@dataclass(frozen=True, slots=True)
class NominalTestbox:
    """A testbox without a machine, to check a job file without one (`swingbot jobs lint`)."""

    name: str = "nominal"
    tbox_group: str = "nominal"
    nr_cpu: int = 100
    nr_node: int | None = 4
    memory_mb: int = 100 * 1024
    cluster: str = ""
    virtual: bool = False


class JobPoint:
    """One point of a document's axes on a testbox: for each key that the job sets a value,
    or None for the default.
    """

    def __init__(
        self,
        document: Document,
        program: Program,
        testbox: TestboxTraits,
        chosen: Mapping[str, LocatedValue],
    ) -> None:
        self._document, self._program, self._testbox = document, program, testbox
        self._chosen = {key: value for key, value in chosen.items() if value.content is not None}
        self._done: dict[str, str] = {}
        self._open: list[str] = []

    def params(self) -> dict[str, str]:
        """Return the program's parameters by name. Raises JobError."""
        for name, parameter in self._program.parameters.items():
            if self._given(parameter):
                self._resolve(parameter)
            elif parameter.required:
                raise JobError(
                    f"{self._document.where}: {self._program.name} needs {name}:"
                    f" {parameter.describe}"
                )
        if "cluster" in self._chosen:
            self._done["cluster"] = self._cluster(self._chosen["cluster"])
        elif self._testbox.cluster not in ("", LOCALHOST):
            raise JobError(
                f"{self._document.where}: testbox {self._testbox.name} is a cluster of two:"
                f" set cluster: {self._testbox.cluster}"
            )
        return dict(sorted(self._done.items()))

    def check(self, key: str) -> None:
        """Resolve this key alone. Raises JobError."""
        if key in self._document.demands:
            self.demand(key)
        elif key in self._program.parameters:
            self._resolve(self._program.parameters[key])

    def demand(self, *names: str) -> dict[str, str]:
        """Return required values by fact: all demands, or those with these names.

        Raises JobError.
        """
        asked = names or self._document.demands
        chosen = {
            fact: self._chosen[name]
            for name, fact in self._document.demands.items()
            if name in self._chosen and name in asked
        }
        return {
            fact: demands.checked(fact, self._evaluated(fact, value), value)
            for fact, value in sorted(chosen.items())
        }

    def written(self) -> dict[str, str]:
        """Return the values from which names are built: percentages as written,
        expressions evaluated.
        """
        return {key: self._evaluated(key, value) for key, value in self._chosen.items()}

    def _given(self, parameter: Parameter) -> bool:
        """Return whether the program gets this parameter, from the job or by its default."""
        return parameter.name in self._chosen or (
            parameter.default is not None and parameter.unless not in self._chosen
        )

    def _cluster(self, value: LocatedValue) -> str:
        required, requested = self._testbox.cluster, value.text or ""
        if required == LOCALHOST != requested:
            raise _error(
                value,
                "cluster",
                (
                    f"testbox {self._testbox.name} is one testbox, where only {LOCALHOST} is;"
                    f" choose a testbox of the group {requested[:60]}"
                ),
            )
        if required not in ("", requested):
            raise _error(
                value,
                "cluster",
                f"testbox {self._testbox.name} is a cluster of two, where it has to be {required}",
            )
        if requested != LOCALHOST and not self._program.serves:
            raise _error(
                value,
                "cluster",
                (
                    f"{self._program.name} has no server for another testbox;"
                    f" use {LOCALHOST}, or remove the key"
                ),
            )
        return requested

    def _resolve(self, parameter: Parameter) -> str:
        name = parameter.name
        if name not in self._done:
            value = self._chosen.get(name) or LocatedValue(
                parameter.default, *_place(self._document)
            )
            if name in self._open:
                raise _error(
                    value, name, f"depends on itself ({' from '.join([*self._open, name])})"
                )
            self._open.append(name)
            self._done[name] = self._resolved(parameter, value)
            self._open.remove(name)
        return self._done[name]

    def _resolved(self, parameter: Parameter, value: LocatedValue) -> str:
        text = self._evaluated(parameter.name, value).strip()
        if parameter.choices and text not in parameter.choices:
            raise _error(
                value,
                parameter.name,
                f"must be one of {', '.join(parameter.choices)}{suggest(text, parameter.choices)}",
            )
        if parameter.kind == "text":
            return _checked_text(parameter, value, text)
        if parameter.kind == "limit" and text == "max":
            return text
        return str(self._number(parameter, value, text))

    def _evaluated(self, name: str, value: LocatedValue) -> str:
        """Return the text with its `{{ }}` evaluated: `{{ nr_cpu / 2 }}` or `{{ nr_cpu * 2 }}G`."""

        def result(expression: re.Match[str]) -> str:
            try:
                return str(calculate((expression[1] or expression[2]).strip(), self._name))
            except JobError:
                raise
            except ValueError as error:
                raise _error(value, name, f"can't be calculated: {error}") from None

        return _EXPRESSION.sub(result, value.text or "")

    def _number(self, parameter: Parameter, value: LocatedValue, text: str) -> int:
        kind, name = parameter.kind, parameter.name
        read: Mapping[str, Callable[[str], Fraction | None]] = {
            "count": self._count,
            "duration": _duration,
            "size": partial(self._size, name),
            "limit": partial(self._size, name),
            "iterations": _iterations,
        }
        number = read[kind](text)
        examples = {
            "count": "4 or 50%",
            "duration": "300s, 5m or 1h",
            "size": "64K, 128M or 10%",
            "limit": "64M, 50% or max",
            "iterations": "8 or 100x",
        }
        if number is None:
            raise _error(value, name, f"must be a {kind}, such as {examples[kind]}")
        whole = number.numerator // number.denominator
        if whole < 1 and number > 0 and text.endswith("%"):
            what = (
                f"{self._testbox.nr_cpu} CPUs"
                if kind == "count"
                else f"{self._testbox.memory_mb} MiB"
            )
            raise _error(
                value,
                name,
                (
                    f"is less than 1 on testbox {self._testbox.name}, which has {what};"
                    " use a larger share or a plain number"
                ),
            )
        if not 1 <= whole <= limits.PROGRAM_NUMBER or (number != whole and not text.endswith("%")):
            raise _error(value, name, f"must be a whole number of at least 1, not {_shown(number)}")
        return whole

    def _count(self, text: str) -> Fraction | None:
        """Resolve `4`, `50%` of the CPUs, or LKP's `1t`."""
        match = _COUNT.fullmatch(text)
        if not match:
            return None
        return (
            Fraction(match[1]) * self._testbox.nr_cpu / 100
            if match[2] == "%"
            else Fraction(match[1])
        )

    def _size(self, name: str, text: str) -> Fraction | None:
        """Return the bytes of `64K`, `128M`, or `10%` of the memory; units are powers of 1024.

        The memory is the job's memory_max, or all of the testbox's; a share is of whole pages.
        """
        match = _SHARE.fullmatch(text)
        if match is None:
            return size(text)
        limited = name != MEMORY_MAX and MEMORY_MAX in self._chosen
        memory = (
            int(self._resolve(self._program.parameters[MEMORY_MAX]))
            if limited
            else self._testbox.memory_mb * BYTES["M"]
        )
        share = Fraction(match[1]) * memory / 100
        return Fraction(share // PAGE * PAGE) or share

    def _name(self, name: str) -> int:
        facts = {
            "nr_cpu": self._testbox.nr_cpu,
            "nr_node": self._testbox.nr_node or 1,
            "memory_mb": self._testbox.memory_mb,
        }
        if name in facts:
            return facts[name]
        parameter = self._program.parameters.get(name)
        if parameter is None or parameter.kind == "text" or not self._given(parameter):
            raise ValueError(
                f"{name!r} is neither nr_cpu, nr_node, memory_mb nor a number that this job sets"
            )
        return int(self._resolve(parameter))


def check_working_set(
    document: Document,
    program: Program,
    params: Mapping[str, str],
    testbox: TestboxTraits,
    cmdline: str,
) -> None:
    """Refuse a run that touches more than its memory and its swap area hold, with the arithmetic.

    How much a disk holds is not known here, zram holds as much as the testbox has memory, and a RAM
    disk as much as `cmdline`, the words of the job for its boot, says, in memory that the limit
    leaves.
    Without a parameter that the job does not set, the program alone knows what it touches.
    """
    swap = params.get(SWAP, "")
    names = program.touches(params)
    if not names or swap == "disk":
        return
    memory = testbox.memory_mb * BYTES["M"]
    limit = limits_of(params).get("memory.max", "max")
    most = memory if limit == "max" else min(int(limit), memory)
    disk = ram_disk(cmdline)
    areas = {"zram": memory, "ramdisk": min(disk, memory - most), "zswap": disk}
    area = areas.get(swap, 0)
    factors = [(name, int(params[name])) for name in names]
    touched = math.prod(number for _, number in factors)
    if touched > most + area:
        product = " x ".join(f"{name} {_mebibytes(number)}" for name, number in factors)
        has = f"{_mebibytes(most)} of memory" + (
            f" and {_mebibytes(area)} of {swap}" if area else ""
        )
        raise JobError(
            f"{document.where}: the working set, {product} = {_mebibytes(touched)}, is larger than"
            f" {has} on testbox {testbox.name}: choose a smaller one"
            + (_larger_area(swap) if swap != "ramdisk" or area == disk else "")
        )


def _larger_area(swap: str) -> str:
    if swap in ("ramdisk", "zswap"):
        return f", or give the RAM disk more KiB with kernel_cmdline: {RAM_DISK_SIZE}=..."
    return "" if swap == "zram" else ", or give the job an area with swap: zram or swap: disk"


def _mebibytes(number: int) -> str:
    return f"{number / BYTES['M']:g} MiB" if number >= BYTES["M"] else str(number)


def check_needs(document: Document, testbox: TestboxTraits) -> None:
    """Refuse a testbox with less than `need_cpu` or `need_memory`."""
    for key, has, what in (
        ("need_cpu", testbox.nr_cpu, "CPUs"),
        ("need_memory", testbox.memory_mb * BYTES["M"], "of memory"),
    ):
        value = document.needs.get(key)
        if value is None or value.content is None:
            continue
        needed = size(value.text or "")
        if needed is None:
            raise _error(
                value,
                key,
                "must be a number" + (" of bytes, such as 16G" if key == "need_memory" else ""),
            )
        if needed > has:
            shown = f"{testbox.memory_mb} MiB" if key == "need_memory" else str(has)
            raise _error(value, key, f"testbox {testbox.name} has {shown} {what} only")


def size(text: str) -> Fraction | None:
    """Return the bytes of `4096`, `64K`, `1GiB`; None for anything else."""
    match = _SIZE.fullmatch(text)
    return Fraction(match[1]) * BYTES[match[2].upper()] if match else None


def _checked_text(parameter: Parameter, value: LocatedValue, text: str) -> str:
    if not _TEXT.fullmatch(text) or (
        parameter.pattern and not re.fullmatch(parameter.pattern, text)
    ):
        raise _error(
            value,
            parameter.name,
            f"must look like {parameter.pattern}"
            if parameter.pattern
            else "must be a line of text",
        )
    return text


def _duration(text: str) -> Fraction | None:
    """Return the seconds of `300`, `300s`, `5m`, `1.5h`."""
    match = _DURATION.fullmatch(text)
    return Fraction(match[1]) * SECONDS[match[2]] if match else None


def _iterations(text: str) -> Fraction | None:
    match = re.fullmatch(r"([0-9]{1,9})x?", text)
    return Fraction(match[1]) if match else None


def _place(document: Document) -> tuple[int, str]:
    file, _, line = document.where.rpartition(":")
    return int(line), file


def _error(value: LocatedValue, name: str, why: str) -> JobError:
    return JobError(f"{value.where}: {name} {(value.text or '')[:60]!r}: {why}")


def _shown(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else f"{float(number):g}"
