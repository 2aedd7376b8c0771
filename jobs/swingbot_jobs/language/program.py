"""Programs: the benchmarks and monitors in `jobs/programs/<name>/`.

`meta.yaml` lists the parameters that a job may set and the resulting metrics, each with unit,
direction, class and the smallest change worth reporting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Final, Literal, NoReturn, cast, get_args

from swingbot_jobs.contract.kconfig import OPTION, bare
from swingbot_jobs.contract.memory import (
    BIND,
    CGROUP_FILES,
    CPUS,
    HUGEPAGES,
    LIST,
    MEMORY_MAX,
    NUMA,
    POLICIES,
    SWAP,
    SWAPS,
)
from swingbot_jobs.language.better import Better
from swingbot_jobs.language.meta_table import (
    PARAMETER_NAME,
    Conditions,
    MetaTable,
    ProgramError,
    holds,
)
from swingbot_jobs.language.program_files import (
    FixedWork,
    GuestFile,
    SourceRecipe,
    guest_files,
    source_recipe,
    work_of,
)
from swingbot_jobs.yaml_lines import read_documents

Kind = Literal["benchmark", "monitor"]
Scope = Literal["micro", "macro", "stress"]
ParameterKind = Literal["text", "count", "duration", "size", "limit", "iterations"]
MetricClass = Literal["benchmark", "time", "counter", "profile"]
When = Literal["always", "asked"]

NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")

# Changes below this many percent are noise to a reader, however significant:
# counters of a repeatable testbox have almost no variance, and without a floor every comparison
# would report hundredths of a percent.
MIN_EFFECT_PCT: Final[Mapping[MetricClass, float]] = {
    "benchmark": 2.0,
    "time": 2.0,
    "counter": 5.0,
    "profile": 5.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One setting of a program.

    `default` is written as in a job file (`50%`, `300s`); None: not passed unless a job sets it.
    """

    name: str
    kind: ParameterKind
    describe: str
    default: str | None = None
    choices: tuple[str, ...] = ()
    required: bool = False
    pattern: str | None = None  # regular expression that the full text must match
    unless: str | None = None  # another parameter; if a job sets it, this one has no default
    lkp_default: str | None = None  # what LKP's program does instead, if its default differs


@dataclass(frozen=True, slots=True)
class Alias:
    """Another metric of the program with the same value if all conditions hold."""

    target: str  # full name
    when: Conditions = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number that a program produces.

    `name` is the full name (`netperf.Throughput_Mbps`) and may end in `*` for a family.

    `better` is None for a number that is neither good nor bad by itself, such as most counters.
    """

    name: str
    unit: str
    better: Better | None
    klass: MetricClass
    min_effect_pct: float
    describe: str
    # False: stored and shown with its run, but not compared (hundreds of symbols and interrupts)
    judged: bool = True
    # a main result: its swings are judged and bisected; other metrics are shown with it
    headline: bool = False
    min_effect_when: tuple[
        tuple[str, str, float], ...
    ] = ()  # (parameter, pattern of its value, percent); the first match wins
    aliases: tuple[Alias, ...] = ()  # the first that holds wins

    def alias_of(self, params: Mapping[str, str]) -> str | None:
        """Return the full name of the metric with the same value in a unit job with these
        parameters.

        None if this metric is not an alias. The returned metric is never an alias itself.
        """
        return next((alias.target for alias in self.aliases if holds(alias.when, params)), None)

    def min_effect(self, params: Mapping[str, str]) -> float:
        """Return the smallest change worth reporting, in percent, for a unit job with these
        parameters.
        """
        for parameter, pattern, percent in self.min_effect_when:
            if fnmatchcase(params.get(parameter, ""), pattern):
                return percent
        return self.min_effect_pct


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A benchmark or monitor. Metrics are keyed by full name."""

    name: str
    kind: Kind
    describe: str
    scope: Scope
    parameters: Mapping[str, Parameter]
    metrics: Mapping[str, Metric]
    wanted_files: tuple[str, ...]
    directory: Path
    daemons: tuple[str, ...] = ()  # LKP programs that `run` starts itself; a job may name them
    result_before_timeout: bool = False  # a run that printed its result and then hung still counts
    # monitors only: in every run, or, if it disturbs the benchmark, in a separate run that the job
    # requests
    when: When = "always"
    gives: str = ""  # prefix of its metrics' names, if not its own name
    # has `serve` and `client` in addition to `run`, for the two testboxes of a cluster
    serves: bool = False
    files: tuple[GuestFile, ...] = ()  # binaries that `run` calls; none: a script or a C source
    one_build: bool = False  # all of `files` come from the same build
    build: SourceRecipe | None = None  # how `swingbot-worker program build` builds its source
    work: FixedWork | None = None  # of a run without a runtime
    in_lkp: bool = False  # lkp-tests has it under the same name, with the same parameters
    lkp_needs: str = ""  # why LKP cannot run it on a virtual testbox
    # options that must be =y in the kernel under test -> of unit jobs with these parameters
    kconfig_needed: Mapping[str, Conditions] = field(default_factory=dict)
    # parameters whose product is the bytes that a run touches -> of unit jobs with these parameters
    working_set: Mapping[str, Conditions] = field(default_factory=dict)
    _families: tuple[Metric, ...] = field(default=(), repr=False)

    @property
    def prefix(self) -> str:
        return self.gives or self.name

    def options(self, params: Mapping[str, str]) -> tuple[str, ...]:
        """Return the options that the kernel needs for a unit job with these parameters."""
        return tuple(name for name, when in self.kconfig_needed.items() if holds(when, params))

    def touches(self, params: Mapping[str, str]) -> tuple[str, ...]:
        """Return the parameters whose product is the bytes that a unit job with these touches;
        none if only the program knows.
        """
        known = all(
            name in params and holds(when, params) for name, when in self.working_set.items()
        )
        return tuple(self.working_set) if known else ()

    def metric(self, full_name: str) -> Metric | None:
        """Return the metric with that full name, or its family (`perf-stat.*`).

        None if the program has none.
        """
        known = self.metrics.get(full_name)
        if known is not None:
            return known
        return next(
            (
                replace(family, name=full_name)
                for family in self._families
                if fnmatchcase(full_name, family.name)
            ),
            None,
        )


_KINDS: Final[Mapping[str, ParameterKind]] = {"memory": "limit", "pids": "count", "cpuset": "text"}
# Parameters of every benchmark; the runner applies them before the program starts.
MEMORY_PARAMETERS: Final[Mapping[str, Parameter]] = {
    parameter.name: parameter
    for parameter in (
        Parameter(
            name=MEMORY_MAX,
            kind="size",
            describe="limit of the run's memory, memory.max of its cgroup (version 2);"
            " a percentage is of the testbox's memory",
        ),
        Parameter(
            name=SWAP,
            kind="text",
            choices=tuple(SWAPS),
            describe="the only swap area during the run: none, zram as large as the testbox's"
            " memory, the RAM disk of the boot's brd.rd_size, the same behind zswap, or the"
            " testbox's disk",
        ),
        Parameter(
            name=CPUS,
            kind="text",
            pattern=LIST,
            describe="processors of the run, as cpuset.cpus of its cgroup has them: 0-3,8",
        ),
        Parameter(
            name=NUMA,
            kind="text",
            pattern=f"{'|'.join(POLICIES)}|{BIND}{LIST}",
            describe="memory of the run: pages of all nodes in turn, of the node of the processor"
            " that asks, or of these nodes alone (bind:1)",
        ),
        Parameter(
            name=HUGEPAGES,
            kind="text",
            pattern="[0-9]{1,7}",
            describe="huge pages that are set aside during the run (vm.nr_hugepages)",
        ),
        *(
            Parameter(
                name=file,
                kind=_KINDS[file.partition(".")[0]],
                pattern=LIST if file.startswith("cpuset.") else None,
                describe=f"{file} of the run's cgroup (version 2)",
            )
            for file in CGROUP_FILES
        ),
    )
}


def find_metric(programs: Mapping[str, Program], full_name: str) -> Metric | None:
    """Return the metric `<program>.<name>` of any program; None if it does not exist."""
    program = programs.get(full_name.partition(".")[0])
    return program.metric(full_name) if program else None


def load_programs(directory: Path) -> dict[str, Program]:
    """Return every program in `directory` by name.

    Raises ProgramError for the first invalid meta.yaml.
    """
    return {path.parent.name: load_program(path) for path in sorted(directory.glob("*/meta.yaml"))}


def load_program(path: Path) -> Program:
    """Read one `meta.yaml`; its directory's name is the program's."""
    name, where = path.parent.name, f"{path.parent.name}/{path.name}"
    if not NAME.fullmatch(name):
        raise ProgramError(
            f"{where}:1: the name of a program's directory may have lower-case letters,"
            " digits and '-' only"
        )
    documents = read_documents(path.read_text(), where, ProgramError)
    if len(documents) != 1:
        raise ProgramError(f"{where}:1: must hold one document")
    table = MetaTable(where, "the file", documents[0])
    metrics = {metric.name: metric for metric in _metrics(table, name)}
    kind = cast(Kind, table.choice("kind", get_args(Kind)))
    parameters = {parameter.name: parameter for parameter in _parameters(table)}
    program = Program(
        name=name,
        kind=kind,
        describe=table.text("describe"),
        scope=cast(Scope, table.choice("scope", get_args(Scope))),
        parameters={**parameters, **(MEMORY_PARAMETERS if kind == "benchmark" else {})},
        metrics=metrics,
        wanted_files=table.texts("wanted_files"),
        directory=path.parent,
        daemons=table.texts("daemons"),
        result_before_timeout=table.truth("result_before_timeout"),
        when=cast(When, table.choice("when", get_args(When), "always")),
        gives=table.text("gives", ""),
        serves=table.truth("serves"),
        files=guest_files(table),
        one_build=table.truth("one_build"),
        build=source_recipe(table),
        work=work_of(table),
        in_lkp=table.truth("in_lkp"),
        lkp_needs=table.text("lkp_needs", ""),
        kconfig_needed=_options(table),
        working_set=_conditional(table, "working_set"),
        _families=tuple(metric for metric in metrics.values() if "*" in metric.name),
    )
    table.done()
    _check_aliases(program, table.refuse_metric)
    return program


def _conditional(meta: MetaTable, key: str) -> dict[str, Conditions]:
    """`key: [NAME]`, or a table of `NAME: parameter=pattern|pattern ...`."""
    value = meta.take(key)
    table = value.table if value else None
    if table is None:
        return dict.fromkeys(meta.texts(key), ())
    return {
        name: meta.conditions(when) if when.content is not None else ()
        for name, when in table.items()
    }


def _options(meta: MetaTable) -> dict[str, Conditions]:
    needed = _conditional(meta, "kconfig_needed")
    for name in needed:
        if not OPTION.fullmatch(name):
            meta.refuse(f"kconfig_needed: {name!r} is not an option, such as FUNCTION_PROFILER")
    return dict(zip(bare(needed), needed.values(), strict=True))


def _parameters(meta: MetaTable) -> Iterator[Parameter]:
    for name, table in meta.tables("parameters"):
        if not PARAMETER_NAME.fullmatch(name):
            table.refuse(f"parameter {name!r} must be a valid name of a shell variable")
        if name in MEMORY_PARAMETERS:
            table.refuse(f"parameter {name!r} is one of every benchmark and has another meaning")
        parameter = Parameter(
            name=name,
            kind=cast(ParameterKind, table.choice("kind", get_args(ParameterKind))),
            describe=table.text("describe"),
            default=table.text("default", "") or None,
            choices=table.texts("choices"),
            required=table.truth("required"),
            pattern=table.text("pattern", "") or None,
            unless=table.text("unless", "") or None,
            lkp_default=table.text("lkp_default", "") or None,
        )
        if parameter.choices and parameter.default and parameter.default not in parameter.choices:
            table.refuse(f"default {parameter.default!r} is not one of the choices")
        table.done()
        yield parameter


def _metrics(meta: MetaTable, program: str) -> Iterator[Metric]:
    for name, table in meta.tables("metrics"):
        klass = cast(MetricClass, table.choice("class", get_args(MetricClass), "benchmark"))
        floor, when = _min_effect(table, MIN_EFFECT_PCT[klass])
        better = table.choice("better", get_args(Better), "") or None
        yield Metric(
            name=f"{program}.{name}",
            unit=table.text("unit", ""),
            better=cast(Better | None, better),
            klass=klass,
            min_effect_pct=floor,
            describe=table.text("describe"),
            headline=table.truth("headline"),
            judged=table.choice("judged", ("true", "false"), "true") == "true",
            min_effect_when=when,
            aliases=_aliases(table, program),
        )
        table.done()


def _min_effect(
    metric: MetaTable, default: float
) -> tuple[float, tuple[tuple[str, str, float], ...]]:
    """`min_effect_pct: 4`, or a table of `default:` and `parameter=pattern:` entries."""
    value = metric.take("min_effect_pct")
    if value is None:
        return default, ()
    if value.table is None:
        return metric.percent(value), ()
    when = []
    for key, entry in value.table.items():
        if key == "default":
            default = metric.percent(entry)
            continue
        parameter, equals, pattern = key.partition("=")
        if not equals or not PARAMETER_NAME.fullmatch(parameter):
            metric.refuse(f"{key!r} must be 'default' or 'parameter=value'", entry)
        when.append((parameter, pattern, metric.percent(entry)))
    return default, tuple(when)


def _aliases(metric: MetaTable, program: str) -> tuple[Alias, ...]:
    """`alias_of: METRIC`, or a table of `METRIC: parameter=pattern|pattern ...`."""
    value = metric.take("alias_of")
    if value is None:
        return ()
    if value.table is None:
        return (Alias(f"{program}.{metric.text('alias_of')}"),)
    return tuple(
        Alias(f"{program}.{target}", metric.conditions(entry))
        for target, entry in value.table.items()
    )


def _check_aliases(program: Program, refuse: Callable[[str, str], NoReturn]) -> None:
    """Refuse an alias of a missing metric, of a different kind of metric, or of another alias."""
    aliases = [(m, alias) for m in program.metrics.values() for alias in m.aliases]
    for metric, alias in aliases:
        if why := _wrong_alias(program, metric, alias):
            refuse(metric.name, why)
    for params in _settings(program, [alias for _, alias in aliases]):
        for metric, _ in aliases:
            target = metric.alias_of(params)
            if target and (further := program.metrics[target].alias_of(params)):
                where = " ".join(f"{name}={value}" for name, value in params.items())
                refuse(
                    metric.name,
                    f"an alias of {_short(target)}, which is an alias of {_short(further)}"
                    f"{f' where {where}' if where else ''}: name {_short(further)} itself",
                )


def _wrong_alias(program: Program, metric: Metric, alias: Alias) -> str | None:
    """Return why this alias is invalid for any parameters; None if it is valid."""
    target, name = program.metrics.get(alias.target), _short(alias.target)
    if target is None or "*" in target.name:
        return f"an alias of {name!r}, which is not a single metric of this program"
    if target is metric or "*" in metric.name or metric.headline:
        return f"an alias of {name}, but no headline, family or target itself can be an alias"
    if (metric.unit, metric.klass, metric.better) != (target.unit, target.klass, target.better):
        return f"an alias of {name}, but differs from it in unit, class or direction"
    for parameter, patterns in alias.when:
        known = program.parameters.get(parameter)
        if known is None:
            return f"an alias of {name} where {parameter!r} is set, which is not a parameter"
        for pattern in patterns:
            if known.choices and not any(fnmatchcase(c, pattern) for c in known.choices):
                return f"an alias of {name} where {parameter}={pattern}, which no choice fits"
    return None


def _settings(program: Program, aliases: Sequence[Alias]) -> Iterator[dict[str, str]]:
    """Yield the parameters in conditions with every combination of values that they distinguish."""
    patterns: dict[str, list[str]] = {}
    for name, found in (condition for alias in aliases for condition in alias.when):
        patterns.setdefault(name, []).extend(found)
    values = [
        program.parameters[name].choices or (*dict.fromkeys(found), "")
        for name, found in patterns.items()
    ]
    return (dict(zip(patterns, chosen, strict=True)) for chosen in product(*values))


def _short(full_name: str) -> str:
    return full_name.partition(".")[2]
