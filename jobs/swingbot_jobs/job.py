"""The job language: from an LKP-style job file to documents with settings, axes not yet expanded.

A file holds `---` documents. The first is the base and a job by itself; each later one is the base with
its own keys laid over it, key by key at the top level, so that documents do not build upon each other. What we do
not understand is refused with file and line: a key that is silently dropped changes what is measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from swingbot_jobs.lines import LineError, Value, read_documents, suggest
from swingbot_jobs.program import Program

# Keys that describe a job and change nothing about its runs.
REMARKS: Final = frozenset({"suite", "testcase", "category", "description", "title", "author"})
# One box plays both roles; the only cluster there is.
CLUSTERS: Final = ("cs-localhost",)
# Keys that LKP acts upon and we do not. Saying so beats measuring something else.
NOT_HERE: Final = {
    "kconfig": "the tree's settings choose the kernel configuration",
    "commit": "swingbot chooses the commits",
    "compiler": "the tree's settings choose the compiler",
    "rootfs": "the testbox's root file system is always the same",
    "cpufreq_governor": "testboxes keep their own governor",
    "nr_instances": "several instances of a program are not supported yet",
    "perf-profile": "profiles are not recorded yet",
    "kernel_cmdline": "the testbox's file sets the kernel command line",
}
_ERB: Final = re.compile(r"<%|^%(?!YAML|TAG)", re.MULTILINE)
_CONTROL: Final = re.compile(r"(?:if|for|while|until|function|call|command)\s")
_ROLE: Final = re.compile(r"if\s+role\s+(\S+)")
_JOB_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9+=.%_-]*")


class JobError(LineError):
    """A job file or an override is wrong; the message begins with `file:line:`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One job of a file: a benchmark, and its settings in the order in which they were written.

    `settings` holds the program's parameters (and `cluster`) by name; a list is an axis.
    """

    file_name: str
    job_name: str
    program: str
    line: int
    settings: Mapping[str, Value]
    runs: Value | None = None
    monitors: tuple[str, ...] = field(default=())


def load_job(text: str, file_name: str, programs: Mapping[str, Program]) -> list[Document]:
    """Read a job file; `file_name` names it in messages, its stem is the job's name."""
    erb = _ERB.search(text)
    if erb:
        raise JobError(f"{file_name}:{text.count(chr(10), 0, erb.start()) + 1}: ERB (<% %>) is not taken: job files are data, not programs")
    name = _job_name(file_name)
    documents = read_documents(text, file_name, JobError)
    flat = [_flat(document, file_name) for document in documents]
    jobs = [_document(table, file_name, name, programs) for table in _merged(flat, file_name)]
    found = [job for job in jobs if job is not None]
    if not found:
        benchmarks = ", ".join(sorted(program.name for program in programs.values() if program.kind == "benchmark"))
        raise JobError(f"{file_name}:1: the job names no benchmark; known are {benchmarks}")
    return found


def _job_name(file_name: str) -> str:
    name = PurePosixPath(file_name).name.removesuffix(".yaml").removesuffix(".yml")
    if not _JOB_NAME.fullmatch(name):
        raise JobError(f"{file_name}:1: a job file's name becomes part of every result's: only letters, digits and '-_.+=%' can be in it")
    return name


# --- shape: control blocks, dotted keys, documents ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Flat:
    """One document without its control blocks: entries by key, and the `if role ...` block that a key stood in."""

    entries: dict[str, Value]
    block_of: dict[str, str]

    def without(self, blocks: Iterable[str]) -> dict[str, Value]:
        return {key: value for key, value in self.entries.items() if self.block_of.get(key) not in set(blocks)}


def _flat(document: Value, file_name: str) -> _Flat:
    """The contents of `if role ...:` blocks in the place of the block: one box plays both roles."""
    if document.table is None:
        raise JobError(f"{file_name}:{document.line}: a job must be a table of 'key: value' lines")
    flat = _Flat({}, {})
    for block, key, value in _entries(document.table, file_name):
        if key in flat.entries:
            raise JobError(f"{file_name}:{value.line}: {key!r} stands twice, first in line {flat.entries[key].line}")
        flat.entries[key] = value
        if block:
            flat.block_of[key] = block
    return flat


def _entries(table: Mapping[str, Value], file_name: str, block: str = "") -> Iterator[tuple[str, str, Value]]:
    for key, value in table.items():
        role = _ROLE.fullmatch(key)
        if role and role[1] in ("server", "client"):
            yield from _entries(value.table or {}, file_name, block or role[1])
        elif not key.startswith(("#", ":")):  # LKP's way to switch a key off without deleting it
            _refuse_shape(key, value, file_name)
            yield block, key, value


def _refuse_shape(key: str, value: Value, file_name: str) -> None:
    where = f"{file_name}:{value.line}"
    if key == "<<":
        raise JobError(f"{where}: including another file (<<) is not supported yet; put its keys here")
    if _CONTROL.match(key):
        raise JobError(f"{where}: {key!r} is not supported; only 'if role server' and 'if role client' are")
    if key.endswith(("+", "-")):
        raise JobError(f"{where}: adding to or taking from a key ({key}) is not supported yet; write the whole value")


def _merged(documents: list[_Flat], file_name: str) -> Iterator[dict[str, Value]]:
    """The base as it is, then the base under each later document, where a block replaces the same block as a whole."""
    if not documents:
        return
    base = _Flat(_laid_over({}, documents[0].entries, file_name), documents[0].block_of)
    yield base.entries
    for document in documents[1:]:
        yield _laid_over(base.without(document.block_of.values()), document.entries, file_name)


def _laid_over(base: Mapping[str, Value], over: Mapping[str, Value], file_name: str) -> dict[str, Value]:
    """`base` with `over` laid over it by top-level key; `a.b: v` sets b inside a and leaves the rest of a."""
    merged = dict(base) | {key: value for key, value in over.items() if "." not in key}
    for key, value in over.items():
        if "." in key:
            _set(merged, key.split("."), value, file_name)
    return merged


def _set(table: dict[str, Value], path: list[str], value: Value, file_name: str) -> None:
    head, rest = path[0], path[1:]
    if not head:
        raise JobError(f"{file_name}:{value.line}: a dotted key has an empty part")
    if not rest:
        table[head] = value
        return
    inner = table.get(head, Value(None, value.line))
    if inner.content is not None and inner.table is None:
        raise JobError(f"{file_name}:{value.line}: {'.'.join(path)!r} sets a key inside {head!r}, which is a plain value in line {inner.line}")
    copy = dict(inner.table or {})
    _set(copy, rest, value, file_name)
    table[head] = Value(copy, inner.line)


# --- meaning: programs, parameters, remarks ----------------------------------------------------------------------------


def _document(table: Mapping[str, Value], file_name: str, job_name: str, programs: Mapping[str, Program]) -> Document | None:
    """The job that a merged document stands for; None for a base that names no benchmark."""
    benchmarks = [key for key in table if key in programs and programs[key].kind == "benchmark"]
    if len(benchmarks) > 1:
        line = table[benchmarks[1]].line
        raise JobError(f"{file_name}:{line}: one job runs one benchmark, but {' and '.join(benchmarks)} are here; put them into files of their own")
    program = programs[benchmarks[0]] if benchmarks else None
    settings: dict[str, Value] = {}
    for key, value in table.items():
        _refuse_unknown(key, value, file_name, program, programs)
        if program and key == program.name:
            _take_options(settings, value, file_name, program)
        elif key == "cluster" or (program and key in program.parameters):
            _take(settings, key, value, file_name)
    if program is None:
        return None
    _check_cluster(settings, file_name)
    return Document(
        file_name=file_name,
        job_name=job_name,
        program=program.name,
        line=table[program.name].line,
        settings=settings,
        runs=table.get("runs"),
        monitors=tuple(key for key in table if key in programs and programs[key].kind == "monitor"),
    )


def _take_options(settings: dict[str, Value], block: Value, file_name: str, program: Program) -> None:
    """The settings inside a program's own block; `hackbench:` alone has none."""
    if block.content is not None and block.table is None:
        raise JobError(f"{file_name}:{block.line}: {program.name} must be empty or a table of its parameters ({', '.join(program.parameters)})")
    for key, value in (block.table or {}).items():
        if key not in program.parameters:
            hint = suggest(key, program.parameters)
            raise JobError(f"{file_name}:{value.line}: {program.name} has no parameter {key!r}{hint}; known are {', '.join(program.parameters)}")
        _take(settings, key, value, file_name)


def _take(settings: dict[str, Value], key: str, value: Value, file_name: str) -> None:
    if value.table is not None or any(item.table is not None or isinstance(item.content, tuple) for item in value.items):
        raise JobError(f"{file_name}:{value.line}: {key} must be a value or a list of values")
    if key in settings:
        raise JobError(f"{file_name}:{value.line}: {key} is set twice, first in line {settings[key].line}")
    settings[key] = value


def _refuse_unknown(key: str, value: Value, file_name: str, program: Program | None, programs: Mapping[str, Program]) -> None:
    daemons = {daemon for known in programs.values() for daemon in known.daemons}
    # In a base without a benchmark, any program's parameter may be waiting for the documents after it.
    parameters = set(program.parameters) if program else {name for known in programs.values() for name in known.parameters}
    known = REMARKS | {"runs", "cluster"} | programs.keys() | daemons | parameters
    if key in known or re.fullmatch(r"need_\w+", key):
        return
    where = f"{file_name}:{value.line}"
    if key in NOT_HERE:
        raise JobError(f"{where}: {key} would have no effect here: {NOT_HERE[key]}; remove it")
    what = "no program is called" if value.table is not None else "unknown key"
    listed = ", ".join(sorted(programs) if value.table is not None else sorted(parameters | {"runs", "cluster"}))
    raise JobError(f"{where}: {what} {key!r}{suggest(key, known)}; known are {listed}")


def _check_cluster(settings: Mapping[str, Value], file_name: str) -> None:
    for item in settings["cluster"].items if "cluster" in settings else ():
        if item.text not in CLUSTERS:
            raise JobError(f"{file_name}:{item.line}: cluster {item.text!r} needs several machines; only {CLUSTERS[0]} (both roles on one) is supported")
