"""Expansion of a job to unit jobs: the product of its axes, resolved for one testbox and named as
LKP does.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from swingbot_jobs import limits
from swingbot_jobs.contract.memory import with_hugepages
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language import boot_settings, demands
from swingbot_jobs.language.job import OURS, Document, JobError, load_job
from swingbot_jobs.language.program import Program
from swingbot_jobs.language.values import JobPoint, TestboxTraits, check_needs, check_working_set
from swingbot_jobs.language.values import NominalTestbox as NominalTestbox
from swingbot_jobs.yaml_lines import LocatedValue, suggest


def expand(
    text: str,
    file_name: str,
    testbox: TestboxTraits,
    programs: Mapping[str, Program],
    overrides: Mapping[str, str] | None = None,
) -> list[UnitJob]:
    """Return the unit jobs of a job file on `testbox`, in written order: earlier keys vary slowest.

    `overrides` replace a parameter, `cluster`, `runs`, `kernel_cmdline`, a sysctl or a demand in
    every document (`nr_threads=2`, `netperf.test=TCP_RR`, `sysctl.vm.swappiness=0`,
    `demand.governor=performance`; `[a, b]` is an axis).
    Raises JobError with file and line.
    """
    documents = load_job(text, file_name, programs)
    return expand_documents(
        [
            _overridden(document, programs[document.program], overrides or {})
            for document in documents
        ],
        testbox,
        programs,
    )


def expand_documents(
    documents: Sequence[Document], testbox: TestboxTraits, programs: Mapping[str, Program]
) -> list[UnitJob]:
    """Like `expand`, for documents that were already read."""
    refuse_too_many(documents)
    unit_jobs: dict[str, tuple[UnitJob, Document]] = {}
    for document in documents:
        check_needs(document, testbox)
        for job in _unit_jobs(document, testbox, programs):
            other, first = unit_jobs.setdefault(job.name, (job, document))
            if other != job:
                raise JobError(
                    f"{document.where}:"
                    f" this job and the one of line {first.where.rpartition(':')[2]} are both"
                    f" called {job.name} but differ;"
                    " put them into separate files, or set a parameter that distinguishes them"
                )
    return [job for job, _ in unit_jobs.values()]


def refuse_too_many(documents: Sequence[Document]) -> None:
    """Count unit jobs before creating any. Raises JobError with the count."""
    sizes = [
        math.prod(len(items) for items in axes_of(document).values()) for document in documents
    ]
    for document, size in zip(documents, sizes, strict=True):
        if size == 0 or sum(sizes) > limits.UNIT_JOBS:
            raise JobError(
                f"{document.where}: the job expands to {sum(sizes) if size else 0} unit jobs,"
                f" must be 1 to {limits.UNIT_JOBS}"
            )


# --- overrides ------------------------------------------------------------------------------------


def _overridden(document: Document, program: Program, overrides: Mapping[str, str]) -> Document:
    for key, text in overrides.items():
        owner, _, name = key.rpartition(".")
        where = f"{document.where}: {key}={text}"
        value = _override_value(text, document.where)
        if key in OURS:
            document = replace(document, ours={**document.ours, key: value})
        elif key.startswith("sysctl."):
            document = _with_sysctl(document, key.removeprefix("sysctl."), value)
        elif key.startswith("demand."):
            table = LocatedValue({key.removeprefix("demand."): value}, value.line, value.file)
            for option, fact, wanted in demands.written("demand", table):
                document = replace(
                    document,
                    settings={**document.settings, option: wanted},
                    demands={**document.demands, option: fact},
                )
        elif owner not in ("", program.name):
            raise JobError(f"{where}: this job runs {program.name}, not {owner!r}")
        elif name in program.parameters or key == "cluster":
            document = replace(document, settings={**document.settings, name: value})
        else:
            known = [*program.parameters, "cluster", *OURS]
            raise JobError(
                f"{where}: {program.name} has no parameter {name!r}{suggest(name, known)};"
                f" known are {', '.join(known)}"
            )
    return document


def _with_sysctl(document: Document, name: str, value: LocatedValue) -> Document:
    """Return `document` with one sysctl set to `value`; an empty value removes it."""
    current = document.ours.get("sysctl")
    table = boot_settings.written(current)
    table = {key: item for key, item in table.items() if not boot_settings.same(key, name)}
    if value.content is not None:
        table[name] = value
    changed = LocatedValue(table or None, value.line, value.file)
    return replace(document, ours={**document.ours, "sysctl": changed})


def _override_value(text: str, where: str) -> LocatedValue:
    """Parse a plain value, or a list written as `[a, b]`."""
    file, _, line = where.rpartition(":")
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return LocatedValue(
            tuple(LocatedValue(item.strip(), int(line), file) for item in text[1:-1].split(",")),
            int(line),
            file,
        )
    return LocatedValue(text or None, int(line), file)


# --- axes and names -------------------------------------------------------------------------------


def axes_of(document: Document) -> dict[str, tuple[LocatedValue, ...]]:
    """Return the values of each key that a document sets, in the order in which they vary:
    the first slowest.
    """
    return {
        key: value.items for key, value in document.settings.items() if value.content is not None
    }


def _unit_jobs(
    document: Document, testbox: TestboxTraits, programs: Mapping[str, Program]
) -> Iterator[UnitJob]:
    program = programs[document.program]
    axes = axes_of(document)
    runs, warmup = _runs(document, "runs", 1), _runs(document, "warmup", 0)
    monitors = tuple(name for name in document.monitors if programs[name].when == "asked")
    compare_fact = demands.compared(document.ours.get("compare_fact"))
    events = _events(document)
    cmdline = boot_settings.cmdline(document.ours.get("kernel_cmdline"))
    sysctl = boot_settings.sysctls(document.ours.get("sysctl"))
    for values in itertools.product(*axes.values()):
        point = JobPoint(document, program, testbox, dict(zip(axes, values, strict=True)))
        params, demand = point.params(), point.demand()
        boot_settings.refuse_demanded(sysctl, demand, document.where)
        check_working_set(document, program, params, testbox, cmdline)
        name = f"{document.job_name}-{path_params(point.written())}"
        try:
            yield UnitJob(
                name=name,
                program=program.name,
                params=params,
                runs=runs,
                warmup=warmup,
                monitors=monitors,
                demand=demand,
                compare_fact=compare_fact,
                events=events,
                cmdline=cmdline,
                sysctl=with_hugepages(params, sysctl),
                work_seconds=_work_seconds(program, params, testbox),
            )
        except ValueError as error:
            raise JobError(f"{document.where}: {error}") from error


def _work_seconds(program: Program, params: Mapping[str, str], testbox: TestboxTraits) -> float:
    if program.work is None:
        return 0.0
    cpus, virtual = testbox.nr_cpu, testbox.virtual
    return program.work.seconds_of(params, nr_cpu=cpus, virtual=virtual) or 0.0


def _events(document: Document) -> tuple[str, ...]:
    """Return the events of `events: cycles`, or of a list, each once."""
    value = document.ours.get("events")
    return tuple(dict.fromkeys(item.text or "" for item in value.items)) if value else ()


def path_params(values: Mapping[str, str]) -> str:
    """Return LKP's name of one point.

    The values, sorted by option name, each cut to 31 characters, are joined by '-';
    percentages stay symbolic.
    """
    joined = "-".join(values[key][:31] for key in sorted(values))
    return re.sub(r"[^-a-zA-Z0-9+=:.%]", "_", joined) or "defaults"


def _runs(document: Document, key: str, least: int) -> int:
    """Return `runs` or `warmup`; `least` if the document does not set it."""
    value = document.ours.get(key)
    if value is None or value.content is None:
        return least
    text = value.text or ""
    if not re.fullmatch(r"[0-9]{1,4}", text) or not least <= int(text) <= limits.RUNS:
        what = (
            "the runs of a unit job within one boot"
            if key == "runs"
            else "warm-up runs before the others, which do not count"
        )
        raise JobError(
            f"{value.where}: {key} must be a number from {least} to {limits.RUNS}: {what}"
        )
    return int(text)
