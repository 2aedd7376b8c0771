"""The job language: from an LKP-style job file to documents with settings, axes not yet expanded.

A file holds `---` documents. The first is the base and a job by itself;
each later one is the base with its own keys laid over it, key by key at the top level,
so that documents do not build upon each other. A key that swingbot does not understand is refused
with file and line: dropping a key silently changes the measurement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from swingbot_jobs.contract.memory import CGROUP_FILES, CPUS, MEMORY_MAX, NUMA, file_of
from swingbot_jobs.language import demands
from swingbot_jobs.language.lkp_keys import NEEDS, REMARKS, WITHOUT_EFFECT, refusal
from swingbot_jobs.language.program import Program
from swingbot_jobs.language.revise import revised
from swingbot_jobs.testbox.wire import LOCALHOST
from swingbot_jobs.yaml_lines import JobError as JobError
from swingbot_jobs.yaml_lines import LineOrigins, LocatedValue, read_documents, suggest

# Keys other than parameters that are not axes: the number of runs, facts that may differ between
# the sides of a comparison, events to count, and settings of the boot.
OURS: Final = ("runs", "warmup", "compare_fact", "events", "kernel_cmdline", "sysctl")
# LKP's programs: limits of the cgroup that the run is in, and those of version 1
CGROUPS: Final = ("cgroup2", "cgroup")
# What LKP's files set nr_node to, to calculate with it; here it is a fact of the testbox.
_NODES: Final = "$(echo /sys/devices/system/node/node* | wc -w)"
_ERB: Final = re.compile(r"<%|^%(?!YAML|TAG)", re.MULTILINE)
_CONTROL: Final = re.compile(r"(?:if|for|while|until|function|call|command)\s")
_ROLE: Final = re.compile(r"if\s+role\s+(\S+)")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9+=.%_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One job of a file: a benchmark, and its settings in the order in which they were written.

    `settings` holds the program's parameters, `cluster` and the demands on the testbox, by name;
    a list is an axis. `demands` says which of them are demands, and on which fact.
    `needs` holds `need_cpu` and `need_memory`.
    """

    job_name: str
    program: str
    where: str
    settings: Mapping[str, LocatedValue]
    monitors: tuple[str, ...] = field(default=())
    needs: Mapping[str, LocatedValue] = field(default_factory=dict)
    demands: Mapping[str, str] = field(default_factory=dict)
    ours: Mapping[str, LocatedValue] = field(default_factory=dict)  # the values of OURS


def load_job(text: str, file_name: str, programs: Mapping[str, Program]) -> list[Document]:
    """Read a job file; `file_name` names it in messages, its stem is the job's name.

    Raises JobError, the first of all problems.
    """
    documents, problems = read_job(text, file_name, programs)
    if problems:
        raise problems[0]
    return documents


def read_job(
    text: str, file_name: str, programs: Mapping[str, Program]
) -> tuple[list[Document], list[JobError]]:
    """Return the valid documents, and each error in the others once."""
    try:
        name = _job_name(file_name)
        tables = list(
            revised(
                [
                    _table(document)
                    for document in read_documents(_data(text, file_name), file_name, JobError)
                ]
            )
        )
    except JobError as error:
        return [], [error]
    reader = _JobReader(name, programs)
    documents = [document for document in map(reader.document, tables) if document is not None]
    problems = list({str(problem): problem for problem in reader.problems}.values())
    if not documents and not problems:
        benchmarks = ", ".join(
            sorted(program.name for program in programs.values() if program.kind == "benchmark")
        )
        problems.append(
            JobError(f"{file_name}:1: the job names no benchmark; known are {benchmarks}")
        )
    return documents, problems


def _job_name(file_name: str) -> str:
    name = PurePosixPath(file_name).name.removesuffix(".yaml").removesuffix(".yml")
    if not _NAME.fullmatch(name):
        raise JobError(
            f"{file_name}:1: a job file's name becomes part of every result's: only letters,"
            " digits and '-_.+=%' can be in it"
        )
    return name


def _data(text: str, file_name: str) -> str:
    """Return the text as valid YAML: without templates, and with `key: {{ ... }}` in quotes."""
    erb = _ERB.search(text)
    if erb:
        where = LineOrigins.of(text, file_name).where(text.count("\n", 0, erb.start()))
        raise JobError(f"{where}: ERB (<% %>) is not supported: job files are data, not programs")
    return quote_braces(text)


def quote_braces(text: str) -> str:
    """Quote `key: {{ expression }}`, which LKP accepts without quotes and YAML does not.

    Lines keep their numbers.
    """
    parts, done = [], 0
    while (start := text.find("{{", done)) >= 0 and (end := text.find("}}", start)) >= 0:
        line = text.rfind("\n", 0, start) + 1
        stop = text.find("\n", end)
        stop = len(text) if stop < 0 else stop
        if line >= done and _awaits_value(text[line:start]):
            value = (
                text[start:stop].partition(" #")[0]
                if "\n" not in text[start:end]
                else text[start:stop]
            )
            parts += [text[done:start], "'", value.rstrip().replace("'", "''"), "'"]
            done = stop
        else:
            parts.append(text[done : end + 2])
            done = end + 2
    return "".join([*parts, text[done:]])


def _awaits_value(before: str) -> bool:
    """Return whether a value follows this start of a line: after `key: ` or `- `,
    not within quotes, a list or a comment.
    """
    words = before.split()
    return (
        before.endswith(" ")
        and bool(words)
        and (words[-1] == "-" or words[-1].endswith(":"))
        and not set(before) & set("#'\"{[")
    )


def _table(document: LocatedValue) -> Mapping[str, LocatedValue]:
    if document.table is None:
        raise JobError(f"{document.where}: a job must be a table of 'key: value' lines")
    return document.table


# --- meaning: programs, parameters, remarks -------------------------------------------------------


class _JobReader:
    """Reads the documents of one file and collects their errors."""

    def __init__(self, job_name: str, programs: Mapping[str, Program]) -> None:
        self._job_name, self._programs, self.problems = job_name, programs, list[JobError]()
        self._daemons = {daemon for known in programs.values() for daemon in known.daemons}

    def document(self, table: Mapping[str, LocatedValue]) -> Document | None:
        """Return the job of a document.

        None for a base without a benchmark, and for an invalid document.
        """
        before = len(self.problems)
        entries = self._flat(table)
        program = self._benchmark(entries)
        settings: dict[str, LocatedValue] = {}
        demanded: dict[str, str] = {}
        for key, value in entries.items():
            if program and key == program.name:
                self._take_options(settings, value, program)
            elif key in CGROUPS:
                self._take_group(settings, key, value)
            elif key == "nr_node" and value.text == _NODES:
                continue
            elif key == "demand" or key in demands.lkp_keys():
                self._take_demands(settings, demanded, key, value)
            elif key == "cluster" or (program and key in program.parameters):
                self._take(settings, key, value)
            else:
                self._check_other(key, value, program)
        self._check_cluster(settings)
        for name in (MEMORY_MAX, CPUS, NUMA):
            if {name, file_of(name)} <= set(settings):
                self._refuse(settings[name], f"{name} and cgroup2's {file_of(name)} are one limit")
        if program is None or len(self.problems) > before:
            return None
        return Document(
            job_name=self._job_name,
            program=program.name,
            where=entries[program.name].where,
            settings=settings,
            monitors=tuple(
                key
                for key in entries
                if key in self._programs and self._programs[key].kind == "monitor"
            ),
            needs={key: entries[key] for key in ("need_cpu", "need_memory") if key in entries},
            demands=demanded,
            ours={key: entries[key] for key in OURS if key in entries},
        )

    def _refuse(self, value: LocatedValue, why: str) -> None:
        self.problems.append(JobError(f"{value.where}: {why}"))

    def _flat(self, table: Mapping[str, LocatedValue]) -> dict[str, LocatedValue]:
        """Replace `if role ...:` blocks by their contents: the program itself assigns the roles
        (its `run`, `serve` and `client`).
        """
        flat: dict[str, LocatedValue] = {}
        for key, value in self._entries(table):
            if key in flat:
                self._refuse(value, f"{key!r} appears twice, first in line {flat[key].line}")
            flat.setdefault(key, value)
        return flat

    def _entries(self, table: Mapping[str, LocatedValue]) -> Iterator[tuple[str, LocatedValue]]:
        for key, value in table.items():
            role = _ROLE.fullmatch(key)
            if key.startswith(("#", ":")):  # LKP's way to disable a key without deleting it
                continue
            if (
                role
                and role[1] in ("server", "client")
                and (value.content is None or value.table is not None)
            ):
                yield from self._entries(value.table or {})
            elif role and role[1] in ("server", "client"):
                self._refuse(value, f"{key!r} must hold 'key: value' lines")
            elif _CONTROL.match(key):
                self._refuse(
                    value,
                    f"{key!r} is not supported; only 'if role server' and 'if role client' are",
                )
            elif key == "<<":
                self._refuse(
                    value,
                    (
                        "'<<' includes the text of a job file and must name one ('<<: base.yaml');"
                        " YAML merges are not supported"
                    ),
                )
            else:
                yield key, value

    def _benchmark(self, entries: Mapping[str, LocatedValue]) -> Program | None:
        benchmarks = [
            key
            for key in entries
            if key in self._programs and self._programs[key].kind == "benchmark"
        ]
        if len(benchmarks) > 1:
            self._refuse(
                entries[benchmarks[1]],
                (
                    f"one job runs one benchmark, but this one has {' and '.join(benchmarks)};"
                    " put them into separate files"
                ),
            )
        return self._programs[benchmarks[0]] if benchmarks else None

    def _take_options(
        self, settings: dict[str, LocatedValue], block: LocatedValue, program: Program
    ) -> None:
        """Collect the settings inside a program's own block; `hackbench:` alone has none."""
        if block.content is not None and block.table is None:
            self._refuse(
                block,
                (
                    f"{program.name} must be empty or a table of its parameters"
                    f" ({', '.join(program.parameters)})"
                ),
            )
        for key, value in (block.table or {}).items():
            if key in program.parameters:
                self._take(settings, key, value)
            elif not key.startswith(("#", ":")) and f"{program.name}.{key}" not in WITHOUT_EFFECT:
                known = f"; known are {', '.join(program.parameters)}" if program.parameters else ""
                self._refuse(
                    value,
                    refusal(key)
                    or (
                        f"{program.name} has no parameter"
                        f" {key!r}{suggest(key, program.parameters)}{known}"
                    ),
                )

    def _take_group(
        self, settings: dict[str, LocatedValue], group: str, block: LocatedValue
    ) -> None:
        """Collect the limits of LKP's cgroup2 or cgroup; a key without a value sets nothing."""
        for key, value in (block.table or {}).items():
            if key in CGROUP_FILES:
                self._take(settings, key, value)
            elif value.content is not None and not key.startswith(("#", ":")):
                known = ", ".join(CGROUP_FILES)
                self._refuse(value, f"{key} needs LKP's {group}; swingbot sets only {known}")

    def _take_demands(
        self,
        settings: dict[str, LocatedValue],
        demanded: dict[str, str],
        key: str,
        value: LocatedValue,
    ) -> None:
        try:
            for name, fact, wanted in demands.written(key, value):
                demanded[name] = fact
                self._take(settings, name, wanted, plain=key == "demand")
        except JobError as error:
            self.problems.append(error)

    def _take(
        self,
        settings: dict[str, LocatedValue],
        key: str,
        value: LocatedValue,
        *,
        plain: bool = False,
    ) -> None:
        """`plain`: YAML's type of a value does not matter, because LKP never sees it."""
        if value.table is not None or any(
            item.table is not None or isinstance(item.content, tuple) for item in value.items
        ):
            self._refuse(value, f"{key} must be a value or a list of values")
            return
        for item in value.items:
            if item.ambiguous and not plain:
                self._refuse(
                    item,
                    (
                        f"{key}: YAML reads {item.text} as another value than it looks like;"
                        " put it in quotes, or write it plainly"
                    ),
                )
        if key in settings:
            self._refuse(value, f"{key} is set twice, first in line {settings[key].line}")
        settings[key] = value

    def _check_other(self, key: str, value: LocatedValue, program: Program | None) -> None:
        """Refuse keys that are neither remarks nor monitors nor meant for later documents."""
        other = self._programs.get(key)
        # In a base without a benchmark, any program's parameter may be meant for later documents.
        waiting = (
            {name for known in self._programs.values() for name in known.parameters}
            if program is None
            else set[str]()
        )
        if other and other.kind == "monitor":
            self._take_options({}, value, other)
        elif key in self._daemons:
            if value.content is not None:
                self._refuse(
                    value, f"{key} is started by the benchmark itself and takes no settings here"
                )
        elif not (
            other
            or key in REMARKS
            or key in WITHOUT_EFFECT
            or key in OURS
            or key in waiting
            or NEEDS.fullmatch(key)
        ):
            self._refuse_unknown(key, value, program, waiting)

    def _refuse_unknown(
        self, key: str, value: LocatedValue, program: Program | None, waiting: set[str]
    ) -> None:
        parameters = {*(program.parameters if program else waiting), *OURS, "cluster", "demand"}
        hint = suggest(key, {*parameters, *REMARKS, *self._programs, *self._daemons})
        what = "no program is called" if value.table is not None else "unknown key"
        listed = ", ".join(sorted(self._programs if value.table is not None else parameters))
        self._refuse(value, refusal(key) or f"{what} {key!r}{hint}; known are {listed}")

    def _check_cluster(self, settings: Mapping[str, LocatedValue]) -> None:
        for item in settings["cluster"].items if "cluster" in settings else ():
            if item.content is not None and not _NAME.fullmatch(item.text or ""):
                self._refuse(
                    item,
                    (
                        f"cluster {item.text!r} must be {LOCALHOST} (both roles on one testbox),"
                        " or the tbox_group of a testbox that is a cluster"
                    ),
                )
