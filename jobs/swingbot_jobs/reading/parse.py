"""Parse raw results into samples: read results.tar as hostile input, and each run with its
program's `parse.py`.

A run counts as a whole or not at all: an exit status other than 0, a missing instance or a value
that is not a number makes it `failed` with a reason; nothing is averaged over survivors, and
nothing missing becomes 0.
"""

from __future__ import annotations

import importlib.util
import io
import math
import re
import sys
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

from swingbot_jobs import limits
from swingbot_jobs.contract import memory
from swingbot_jobs.contract.deadline import run_seconds
from swingbot_jobs.contract.fact_sheet import facts_of, not_as_asked
from swingbot_jobs.contract.facts import Value
from swingbot_jobs.contract.unit_job import NAME, UnitJob
from swingbot_jobs.language.program import Program
from swingbot_jobs.printable import printable
from swingbot_jobs.reading.lkp import is_lkp, read_lkp
from swingbot_jobs.reading.perf_stat import RUNNING, read_quality
from swingbot_jobs.reading.result import ParsedRun, ParseError, Results, RunStatus, Samples
from swingbot_jobs.yaml_lines import suggest

METRIC: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.:/%=,+@()]{0,199}")
PERF_STAT: Final = "perf-stat"
_RUN_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,5}")
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# The runner ended the run at its limit.
_LIMIT: Final = "124"
# 137 and 143 are KILL and TERM seen from a shell, as by a limit of the program's own.
_TIMED_OUT: Final = frozenset({int(_LIMIT), 137, 143})

Parser = Callable[[Mapping[str, str], Mapping[str, str]], Mapping[str, float | list[float]]]


# --- one run --------------------------------------------------------------------------------------


def parse_run(
    program: str,
    files: Mapping[str, str],
    params: Mapping[str, str],
    programs: Mapping[str, Program],
) -> Samples:
    """Return samples of one run by full metric name, with those of every readable monitor.

    Raises ParseError without a result.
    """
    return (
        _benchmark(_known(program, programs), files, params) | _watched(files, params, programs)[0]
    )


def parse_file(program: str, path: Path, programs: Mapping[str, Program]) -> dict[str, object]:
    """Return the document that `swingbot parse PROGRAM FILE` prints:
    `{"program", "samples": {metric: [values]}}`, of perf-stat also `read_quality` of its counts.

    `path` is the output of a program or a monitor, or the directory of one run.
    The parameters are not known here, so missing instances go unnoticed.
    """
    known = _known(program, programs)
    files = _files_at(path, "stdout" if known.kind == "benchmark" else program)
    if known.kind == "benchmark":
        return {
            "program": program,
            "samples": _benchmark(known, files, {}) | _watched(files, {}, programs)[0],
        }
    try:
        samples = _monitor(known, files, {})
    except ParseError as error:
        raise ParseError(f"{path}: {error}") from error
    if not samples:
        raise ParseError(f"{path}: has no counter of {program.replace('-', ' ')}")
    if program != PERF_STAT:
        return {"program": program, "samples": samples}
    counts = {name: values for name, values in samples.items() if RUNNING not in name}
    return {"program": program, "samples": counts, **read_quality(files[PERF_STAT])}


def _known(program: str, programs: Mapping[str, Program]) -> Program:
    if program not in programs:
        raise ParseError(
            f"there is no program {program!r}{suggest(program, programs)};"
            f" known are {', '.join(sorted(programs))}"
        )
    return programs[program]


def _files_at(path: Path, name: str) -> dict[str, str]:
    try:
        if path.is_dir():
            return {file.name: _text_at(file) for file in sorted(path.iterdir()) if file.is_file()}
        return {name: _text_at(path)}
    except OSError as error:
        raise ParseError(f"{path}: {error.strerror}") from error


def _text_at(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(limits.RESULT_FILE_BYTES + 1)
    if len(content) > limits.RESULT_FILE_BYTES:
        raise ParseError(
            f"{path}: larger than {limits.RESULT_FILE_BYTES} bytes, which no run writes"
        )
    return content.decode(errors="replace")


def _benchmark(program: Program, files: Mapping[str, str], params: Mapping[str, str]) -> Samples:
    return _measured(program, files, params)[0]


def _measured(
    program: Program, files: Mapping[str, str], params: Mapping[str, str]
) -> tuple[Samples, str | None]:
    """Return a benchmark's samples, and a remark."""
    if program.kind != "benchmark":
        raise ParseError(f"{program.name} is a monitor and has no result of its own")
    samples, remark = (
        _by_lkp(program, files, params) if is_lkp(files) else (_asked(program, files, params), None)
    )
    if not files.get("stdout", "\n").endswith("\n"):
        raise ParseError(f"the output of {program.name} ends within a line: it was cut")
    return {
        f"{program.name}.{name}": values for name, values in _checked(program.name, samples).items()
    }, remark


def _by_lkp(
    program: Program, files: Mapping[str, str], params: Mapping[str, str]
) -> tuple[Mapping[str, float | list[float]], str | None]:
    try:
        return read_lkp(program, files, lambda: _asked(program, files, params))
    except ParseError as error:
        raise ParseError(
            _printable(str(error))
        ) from error  # it may quote what came from the testbox


def _monitor(program: Program, files: Mapping[str, str], params: Mapping[str, str]) -> Samples:
    """Return a monitor's samples; none if it had nothing to count.

    Kernel names (symbols, interrupts) are converted to valid metric names. A last line without an
    end was cut, perhaps within a number or a name, and is left out.
    """
    if program.name != PERF_STAT:  # people paste its table
        files = {name: text[: text.rfind("\n") + 1] for name, text in files.items()}
    samples: dict[str, float | list[float]] = {}
    for name, values in _asked(program, files, params).items():
        samples.setdefault(
            re.sub(r"[^-A-Za-z0-9_.:/%=,+@()]", "_", name)[: limits.METRIC_NAME_CHARACTERS].lstrip(
                "-_.:/%=,+@()"
            ),
            values,
        )
    samples.pop("", None)
    return (
        {
            f"{program.prefix}.{name}": values
            for name, values in _checked(program.name, samples).items()
        }
        if samples
        else {}
    )


def _asked(
    program: Program, files: Mapping[str, str], params: Mapping[str, str]
) -> Mapping[str, float | list[float]]:
    try:
        return _parser(program.directory / "parse.py")(files, params)
    except ParseError as error:
        raise ParseError(_printable(str(error))) from error  # it may quote what the guest wrote


def _watched(
    files: Mapping[str, str], params: Mapping[str, str], programs: Mapping[str, Program]
) -> tuple[Samples, list[str]]:
    """Return the samples of the monitors of every run, and a remark about unreadable ones."""
    samples: Samples = {}
    problems: list[str] = []
    for program in programs.values():
        if (
            program.kind == "monitor"
            and program.when == "always"
            and any(files.get(name, "").strip() for name in program.wanted_files)
        ):
            try:
                samples |= _monitor(program, files, params)
            except ParseError as error:
                problems.append(
                    f"{'counters' if program.name == PERF_STAT else program.name} left out: {error}"
                )
    return samples, problems


def _checked(program: str, parsed: Mapping[str, float | list[float]]) -> Samples:
    samples: Samples = {}
    for name, value in parsed.items():
        values = [float(one) for one in (value if isinstance(value, list) else [value])]
        if not METRIC.fullmatch(name):
            raise ParseError(f"{program} produced a metric with the invalid name {name[:80]!r}")
        if not values or len(values) > limits.METRIC_VALUES:
            raise ParseError(f"{program}.{name} has {len(values)} values")
        if not all(abs(one) < limits.SAMPLE_VALUE for one in values):  # also NaN
            raise ParseError(f"{program}.{name} is not a number below {limits.SAMPLE_VALUE:g}")
        samples[name] = values
    if not samples or len(samples) > limits.RUN_METRICS:
        raise ParseError(f"{program} gives {len(samples)} metrics")
    return samples


@cache
def _parser(path: Path) -> Parser:
    """Return the `parse` function of a program's parse.py, which is trusted code next to its
    meta.yaml.
    """
    spec = importlib.util.spec_from_file_location(
        f"swingbot_program_{path.parent.name.replace('-', '_')}", path
    )
    if spec is None or spec.loader is None or not path.is_file():
        raise ParseError(f"{path.parent.name} has no parse.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their own module up there
    spec.loader.exec_module(module)
    return cast(Parser, module.parse)


# --- one boot -------------------------------------------------------------------------------------


def parse_results(
    tar: Path | str | IO[bytes],
    unit_jobs: Iterable[UnitJob],
    programs: Mapping[str, Program],
    boot: Mapping[str, Value] | None = None,
) -> list[ParsedRun]:
    """Return every expected run of this boot, in order.

    Runs that the boot did not reach are `missing`.

    `boot`: its facts, if more are known than the guest sent; they must include those that a job
    demands.
    """
    results = read_results(tar)
    facts = {**facts_of(results.facts), **(boot or {})}
    return [
        _counted(_parsed(job, number, results, programs), job, results, facts)
        for job in unit_jobs
        for number in job.numbers
    ]


def _counted(
    run: ParsedRun, job: UnitJob, results: Results, facts: Mapping[str, Value]
) -> ParsedRun:
    """Return the run, without samples if it was a warm-up or a demand or setting was not met."""
    if run.status != "ok":
        return run
    facts = {**facts, **_counted_pct(run)}
    if why := not_as_asked(job, facts, results.runs[job.name, run.number]):
        return replace(run, status="invalid", reason=why[: limits.REASON_CHARACTERS], samples={})
    return (
        replace(run, status="warmup", reason="a warm-up: not counted", samples={})
        if run.number < job.warmup
        else run
    )


def _counted_pct(run: ParsedRun) -> dict[str, Value]:
    """Return the lowest running share of the counters around this run, if there are any.

    A run for a monitor has none that are samples.
    """
    counters = [name for name in run.samples if name.startswith(f"{PERF_STAT}.")]
    if not counters and run.monitor is None:
        return {}
    running = f"{PERF_STAT}.{RUNNING}"
    shares = [run.samples[name][0] for name in counters if name.startswith(running)]
    return {"counted_pct": min(shares, default=100.0)}


def _parsed(
    job: UnitJob, number: int, results: Results, programs: Mapping[str, Program]
) -> ParsedRun:
    files = results.runs.get((job.name, number), {})
    seconds = _seconds(files.get("seconds", ""))
    if not files:
        why = f" ({results.notes[0]})" if results.notes else ""
        return _run(
            job,
            number,
            "missing",
            f"this run has no results: the boot ended before it{why}",
            {},
            None,
        )
    if failure := memory.memory_failure(files):
        return _run(job, number, "failed", failure, {}, seconds)
    try:
        remark, samples = _result(job, files, _known(job.program, programs))
        if (monitor := job.monitor_of(number)) is not None:
            return _run(
                job,
                number,
                "ok",
                f"run for {monitor}: its other numbers are not compared",
                _disturbed(job, files, _known(monitor, programs), samples),
                seconds,
            )
    except ParseError as error:
        usual = run_seconds(job, job.monitor_of(number))
        if files.get("rc", "").strip() == _LIMIT and seconds is not None and seconds < usual:
            why = f"its limit is too short: it ended after {seconds:.0f} s of about {usual:.0f} s"
            return replace(_run(job, number, "invalid", why, {}, seconds), limited=True)
        return _run(job, number, "failed", str(error), {}, seconds)
    watched, problems = _watched(files, job.params, programs)
    reasons = ([remark] if remark else []) + problems
    return _run(job, number, "ok", "; ".join(reasons) or None, samples | watched, seconds)


def _disturbed(
    job: UnitJob, files: Mapping[str, str], monitor: Program, samples: Samples
) -> Samples:
    """Return a disturbing monitor's samples, and the benchmark's numbers of the same run under
    names that are never judged.
    """
    seen = _monitor(monitor, files, job.params)
    if not seen:
        raise ParseError(f"{monitor.name} recorded nothing")
    return (
        seen
        | _path_length(seen, samples)
        | {f"{monitor.prefix}.beside.{name}": values for name, values in samples.items()}
    )


def _path_length(seen: Samples, samples: Samples) -> Samples:
    """Return LKP's instructions per unit of work, if there is one kind of work.

    For will-it-scale, whose work is a rate, it is too high by the seconds of the run.
    """
    instructions = seen.get("perf-stat.total.instructions", [])
    work = [
        values[0]
        for name, values in samples.items()
        if name.endswith(".workload") and values[0] > 0
    ]
    return (
        {"perf-stat.overall.path-length": [instructions[0] / work[0]]}
        if instructions and len(work) == 1
        else {}
    )


def _run(
    job: UnitJob,
    number: int,
    status: RunStatus,
    reason: str | None,
    samples: Samples,
    seconds: float | None,
) -> ParsedRun:
    reason = reason[: limits.REASON_CHARACTERS] if reason else None
    return ParsedRun(
        unit_job=job.name,
        number=number,
        status=status,
        reason=reason,
        samples=samples,
        seconds=seconds,
        monitor=job.monitor_of(number),
    )


def _result(job: UnitJob, files: Mapping[str, str], program: Program) -> tuple[str | None, Samples]:
    """Return a remark and the benchmark's samples.

    Raises ParseError if the run ended so that its result does not count.
    """
    rc = files.get("rc", "").strip()
    if not re.fullmatch(r"[0-9]{1,3}", rc):
        raise ParseError("the run did not complete: the boot ended before its exit status arrived")
    status = int(rc)
    if status == 0:
        samples, remark = _measured(program, files, job.params)
        return remark, samples
    how = (
        f"{program.name} hung and was stopped by its time limit"
        if rc == _LIMIT
        else f"{program.name} was stopped by its time limit"
        if status in _TIMED_OUT
        else f"{program.name} ended with exit status {status}"
    )
    try:
        samples = _benchmark(program, files, job.params)
    except ParseError as error:
        raise ParseError(f"{how}: {error}{_last_words(files)}") from error
    if status in _TIMED_OUT and program.result_before_timeout:
        return f"{program.name} printed its result and was then stopped by its time limit", samples
    raise ParseError(f"{how}{_last_words(files)}")


def _last_words(files: Mapping[str, str]) -> str:
    """Return the program's last line of error output."""
    lines = [line.strip() for line in files.get("stderr", "").splitlines() if line.strip()]
    return f"; its last words: {_printable(lines[-1])}" if lines else ""


def _printable(text: str) -> str:
    """Return one line that is safe to show on a terminal and in a mail."""
    return printable(text[:500])


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text.strip()) if len(text) < 64 else math.nan
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and 0 <= seconds < 1e9 else None


# --- results.tar ----------------------------------------------------------------------------------


def read_results(tar: Path | str | IO[bytes]) -> Results:
    """Read the concatenated tars that a guest sent; invalid members are left out and noted.

    The last tar may be truncated, because a kernel can die while it writes:
    the truncated member is missing.
    """
    if isinstance(tar, Path | str):
        with open(tar, "rb") as file:
            return _ArchiveReader().read(file)
    return _ArchiveReader().read(tar)


class _ArchiveReader:
    def __init__(self) -> None:
        self._runs: dict[tuple[str, int], dict[str, str]] = {}
        self._facts: dict[str, str] = {}
        self._notes: list[str] = []
        self._total = 0

    def read(self, file: IO[bytes]) -> Results:
        if file.seek(0, io.SEEK_END) > limits.RESULT_ARCHIVE_BYTES:
            return Results(
                runs={},
                notes=(
                    f"the results have more than {limits.RESULT_ARCHIVE_BYTES} bytes:"
                    " nothing was read",
                ),
            )
        file.seek(0)
        try:
            with tarfile.open(
                fileobj=file, mode="r:", ignore_zeros=True, errors="replace"
            ) as archive:
                self._read_members(archive)
        except (
            tarfile.TarError,
            ValueError,
            OverflowError,
            EOFError,
            LookupError,
            OSError,
            RecursionError,
            MemoryError,
        ) as error:
            # An empty file is valid too: the guest sent nothing.
            problem = "it takes too much memory" if isinstance(error, MemoryError) else error
            self._note(f"the results end early: {problem}")
        return Results(runs=self._runs, facts=self._facts, notes=tuple(self._notes))

    def _read_members(self, archive: tarfile.TarFile) -> None:
        count = 0
        while (member := archive.next()) is not None:
            count += 1
            if count > limits.RESULT_FILES:
                return self._note(f"more than {limits.RESULT_FILES} files: the rest was not read")
            # tarfile keeps every header for later extraction by name, which takes much memory for a
            # hundred thousand.
            archive.members = []  # type: ignore[attr-defined]
            if member.isdir():
                continue
            problem = self._problem(member)
            if problem:
                self._note(f"{_printable(member.name[:100])!r} was left out: {problem}")
            elif not self._keep(archive, member):
                return None
        return None

    def _problem(self, member: tarfile.TarInfo) -> str | None:
        if not member.isreg() or member.issparse():
            return "not an ordinary file"
        if member.size > limits.RESULT_FILE_BYTES:
            return f"it has {member.size} bytes, more than {limits.RESULT_FILE_BYTES}"
        if self._place(member.name) is None:
            return "not a path of a result"
        return None

    def _place(self, name: str) -> tuple[dict[str, str], str] | None:
        """Return the table and key of a member name."""
        parts = PurePosixPath(name).parts
        if (
            name.startswith("/")
            or not parts
            or any(part == ".." for part in parts)
            or not _FILE_NAME.fullmatch(parts[-1])
        ):
            return None
        if len(parts) == 2 and parts[0] == "facts":
            return self._facts, parts[1]
        if len(parts) == 3 and NAME.fullmatch(parts[0]) and _RUN_NUMBER.fullmatch(parts[1]):
            return self._runs.setdefault((parts[0], int(parts[1])), {}), parts[2]
        return None

    def _keep(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bool:
        """Store one file; False if there is nothing more to read."""
        source = archive.extractfile(member)
        # a truncated member raises and ends the reading
        content = source.read() if source else b""
        self._total += len(content)
        if self._total > limits.RESULT_BYTES:
            self._note(f"more than {limits.RESULT_BYTES} bytes: the rest was not read")
            return False
        place = self._place(member.name)
        assert place is not None
        table, key = place
        if key in table:
            self._note(f"{_printable(member.name[:100])!r} came twice: the first one counts")
        else:
            table[key] = content.decode(errors="replace")
        return True

    def _note(self, text: str) -> None:
        if len(self._notes) < limits.RESULT_NOTES:
            self._notes.append(text)
