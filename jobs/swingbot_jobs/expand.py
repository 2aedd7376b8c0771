"""From a job to unit jobs: the product of its axes, resolved for one testbox and named as LKP names them."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Protocol

from swingbot_jobs.job import CLUSTERS, Document, JobError, load_job
from swingbot_jobs.lines import Value, suggest
from swingbot_jobs.program import Parameter, Program
from swingbot_jobs.unit_job import UnitJob

MAX_UNIT_JOBS: Final = 1000
MAX_RUNS: Final = 1000
MAX_NUMBER: Final = 10**15  # of what a program is handed: larger ones are slips, and break shell arithmetic
MAX_EXPRESSION: Final = 200

SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
BYTES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NUMBER: Final = r"(\d{1,15}(?:\.\d{1,9})?)"
_EXPRESSION: Final = re.compile(r"\{\{(.*)\}\}", re.DOTALL)
_TEXT: Final = re.compile(r"[^\x00-\x1f\x7f]{1,255}")


class Box(Protocol):
    """What expansion has to know of a testbox."""

    @property
    def name(self) -> str: ...
    @property
    def nr_cpu(self) -> int: ...
    @property
    def memory_mb(self) -> int: ...


@dataclass(frozen=True, slots=True)
class NominalBox:
    """A box that no machine is: for looking at a job file without one (`swingbot jobs lint`)."""

    name: str = "nominal"
    nr_cpu: int = 100
    memory_mb: int = 100 * 1024


def expand(text: str, file_name: str, testbox: Box, programs: Mapping[str, Program], overrides: Mapping[str, str] | None = None) -> list[UnitJob]:
    """Unit jobs of a job file on `testbox`, in the order in which they are written: earlier keys vary slowest.

    `overrides` replace a parameter, `cluster` or `runs` in every document (`nr_threads=2`, `netperf.test=TCP_RR`; `[a, b]` is an axis).
    Raises JobError with file and line.
    """
    found: dict[str, tuple[UnitJob, Document]] = {}
    for document in load_job(text, file_name, programs):
        program = programs[document.program]
        for job in _unit_jobs(_overridden(document, program, overrides or {}), program, testbox):
            other, where = found.setdefault(job.name, (job, document))
            if other != job:
                raise JobError(
                    f"{file_name}:{document.line}: this job and the one of line {where.line} are both called {job.name} but differ;"
                    " put them into files of their own, or set a parameter that tells them apart"
                )
            if len(found) > MAX_UNIT_JOBS:
                raise JobError(f"{file_name}:{document.line}: the job expands to more than {MAX_UNIT_JOBS} unit jobs")
    return [job for job, _ in found.values()]


# --- overrides -------------------------------------------------------------------------------------------------------


def _overridden(document: Document, program: Program, overrides: Mapping[str, str]) -> Document:
    for key, text in overrides.items():
        owner, dot, name = key.rpartition(".")
        where = f"{document.file_name}:{document.line}: {key}={text}"
        if dot and owner != program.name:
            raise JobError(f"{where}: this job runs {program.name}, not {owner!r}")
        value = _override_value(text, document.line)
        if name == "runs" and not dot:
            document = replace(document, runs=value)
        elif name in program.parameters or (name == "cluster" and not dot):
            document = replace(document, settings={**document.settings, name: value})
        else:
            known = [*program.parameters, "cluster", "runs"]
            raise JobError(f"{where}: {program.name} has no parameter {name!r}{suggest(name, known)}; known are {', '.join(known)}")
    return document


def _override_value(text: str, line: int) -> Value:
    """A plain value, or a list written as `[a, b]`."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return Value(tuple(Value(item.strip(), line) for item in text[1:-1].split(",")), line)
    return Value(text or None, line)


# --- axes and names --------------------------------------------------------------------------------------------------


def _unit_jobs(document: Document, program: Program, testbox: Box) -> Iterator[UnitJob]:
    axes = {key: value.items for key, value in document.settings.items() if value.content is not None}
    size = 1
    for items in axes.values():
        size *= len(items)
    if size > MAX_UNIT_JOBS or size == 0:
        raise JobError(f"{document.file_name}:{document.line}: the job expands to {size} unit jobs, must be 1 to {MAX_UNIT_JOBS}")
    runs = _runs(document)
    for point in itertools.product(*axes.values()):
        chosen = dict(zip(axes, point, strict=True))
        params = _Resolver(document, program, testbox, chosen).params()
        name = f"{document.job_name}-{path_params({key: value.text or '' for key, value in chosen.items()})}"
        try:
            yield UnitJob(name=name, program=program.name, params=params, runs=runs)
        except ValueError as error:
            raise JobError(f"{document.file_name}:{document.line}: {error}") from error


def path_params(values: Mapping[str, str]) -> str:
    """LKP's name of one point: values by sorted option name, each cut to 31 characters, joined by '-'; percentages stay symbolic."""
    joined = "-".join(values[key][:31] for key in sorted(values))
    return re.sub(r"[^-a-zA-Z0-9+=:.%]", "_", joined) or "defaults"


def _runs(document: Document) -> int:
    value = document.runs
    if value is None:
        return 1
    text = value.text or ""
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= MAX_RUNS:
        raise JobError(f"{document.file_name}:{value.line}: runs must be a number from 1 to {MAX_RUNS}: the runs of a unit job within one boot")
    return int(text)


# --- values ----------------------------------------------------------------------------------------------------------


class _Resolver:
    """Turns the values of one point into what a program's `run` finds in its environment."""

    def __init__(self, document: Document, program: Program, testbox: Box, chosen: Mapping[str, Value]) -> None:
        self._document, self._program, self._box, self._chosen = document, program, testbox, chosen
        self._done: dict[str, str] = {}
        self._open: list[str] = []

    def params(self) -> dict[str, str]:
        for name, parameter in self._program.parameters.items():
            if name in self._chosen or parameter.default is not None:
                self._resolve(parameter)
            elif parameter.required:
                raise JobError(f"{self._document.file_name}:{self._document.line}: {self._program.name} needs {name}: {parameter.describe}")
        if "cluster" in self._chosen:
            self._done["cluster"] = self._cluster(self._chosen["cluster"])
        return dict(sorted(self._done.items()))

    def _cluster(self, value: Value) -> str:
        if value.text not in CLUSTERS:
            raise self._error(value, "cluster", f"only {CLUSTERS[0]} is supported")
        return value.text

    def _resolve(self, parameter: Parameter) -> str:
        name = parameter.name
        if name not in self._done:
            value = self._chosen.get(name) or Value(parameter.default, self._document.line)
            if name in self._open:
                raise self._error(value, name, f"is worked out from itself ({' from '.join([*self._open, name])})")
            self._open.append(name)
            self._done[name] = self._resolved(parameter, value)
            self._open.remove(name)
        return self._done[name]

    def _resolved(self, parameter: Parameter, value: Value) -> str:
        text = (value.text or "").strip()
        expression = _EXPRESSION.fullmatch(text)
        if expression:
            text = str(self._calculate(expression[1].strip(), parameter.name, value))
        if parameter.choices and text not in parameter.choices:
            raise self._error(value, parameter.name, f"must be one of {', '.join(parameter.choices)}{suggest(text, parameter.choices)}")
        if parameter.kind == "text":
            return self._text(parameter, value, text)
        return str(self._number(parameter, value, text))

    def _text(self, parameter: Parameter, value: Value, text: str) -> str:
        if not _TEXT.fullmatch(text) or (parameter.pattern and not re.fullmatch(parameter.pattern, text)):
            raise self._error(value, parameter.name, f"must look like {parameter.pattern}" if parameter.pattern else "must be a line of text")
        return text

    def _number(self, parameter: Parameter, value: Value, text: str) -> int:
        kind, name = parameter.kind, parameter.name
        number = {"count": self._count, "duration": _duration, "size": self._size, "iterations": _iterations}[kind](text)
        examples = {"count": "4 or 50%", "duration": "300s, 5m or 1h", "size": "64K, 128M or 10%", "iterations": "8 or 100x"}
        if number is None:
            raise self._error(value, name, f"must be a {kind}, such as {examples[kind]}")
        whole = number.numerator // number.denominator
        if whole < 1 and number > 0 and text.endswith("%"):
            what = f"{self._box.nr_cpu} CPUs" if kind == "count" else f"{self._box.memory_mb} MiB"
            raise self._error(value, name, f"is less than 1 on testbox {self._box.name}, which has {what}; use a larger share or a plain number")
        if not 1 <= whole <= MAX_NUMBER or (number != whole and not text.endswith("%")):
            raise self._error(value, name, f"must be a whole number of at least 1, not {_shown(number)}")
        return whole

    def _count(self, text: str) -> Fraction | None:
        """`4`, `50%` of the CPUs, or LKP's `1t`."""
        match = re.fullmatch(_NUMBER + r"(%|[A-Za-z]{0,8})", text)
        if not match:
            return None
        return Fraction(match[1]) * self._box.nr_cpu / 100 if match[2] == "%" else Fraction(match[1])

    def _size(self, text: str) -> Fraction | None:
        """Bytes of `64K`, `128M`, or `10%` of the memory; units are powers of 1024."""
        match = re.fullmatch(_NUMBER + r"([KMGTkmgt]?)(?:i?[Bb])?|" + _NUMBER + "%", text)
        if not match:
            return None
        if match[3]:
            return Fraction(match[3]) * self._box.memory_mb * BYTES["M"] / 100
        return Fraction(match[1]) * BYTES[match[2].upper()]

    def _calculate(self, source: str, name: str, value: Value) -> int:
        """`{{ nr_cpu / 2 }}`: whole numbers, + - * / and parentheses, nr_cpu, memory_mb and other parameters; division rounds down."""
        try:
            tree = ast.parse(source, mode="eval") if len(source) <= MAX_EXPRESSION else None
            if tree is None:
                raise ValueError(f"is longer than {MAX_EXPRESSION} characters")
            return self._node(tree.body)
        except ZeroDivisionError:
            raise self._error(value, name, "divides by 0") from None
        except JobError:
            raise
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise self._error(value, name, f"can't be calculated: {error}") from None

    def _node(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int() as number) if not isinstance(number, bool):
                result = number
            case ast.Name(id=name):
                result = self._name(name)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                result = self._node(left) + self._node(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                result = self._node(left) - self._node(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                result = self._node(left) * self._node(right)
            case ast.BinOp(left=left, op=ast.Div() | ast.FloorDiv(), right=right):
                result = self._node(left) // self._node(right)
            case _:
                raise ValueError("only whole numbers, names, + - * / and parentheses can be used")
        return result

    def _name(self, name: str) -> int:
        facts = {"nr_cpu": self._box.nr_cpu, "memory_mb": self._box.memory_mb}
        if name in facts:
            return facts[name]
        parameter = self._program.parameters.get(name)
        if parameter is None or parameter.kind == "text" or (name not in self._chosen and parameter.default is None):
            raise ValueError(f"{name!r} is neither nr_cpu, memory_mb nor a number that this job sets")
        return int(self._resolve(parameter))

    def _error(self, value: Value, name: str, why: str) -> JobError:
        return JobError(f"{self._document.file_name}:{value.line}: {name} {(value.text or '')[:60]!r}: {why}")


def _duration(text: str) -> Fraction | None:
    """Seconds of `300`, `300s`, `5m`, `1.5h`."""
    match = re.fullmatch(_NUMBER + r"([smhdwy]?)", text)
    return Fraction(match[1]) * SECONDS[match[2]] if match else None


def _iterations(text: str) -> Fraction | None:
    match = re.fullmatch(r"(\d{1,9})x?", text)
    return Fraction(match[1]) if match else None


def _shown(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else f"{float(number):g}"
