"""Resolve job files and testbox names to the unit jobs that one boot runs on each testbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from swingbot.core.model.records import JobFile
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.longest_boot import too_long
from swingbot.core.text.nearest import instead_of
from swingbot.core.text.numbers import count, duration
from swingbot.service.ports import Catalogue, LabSettings, RequestError
from swingbot.service.ports.specs import Specs
from swingbot_jobs.contract.trust import Trust, accepted
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.expand import expand
from swingbot_jobs.language.job import JobError
from swingbot_jobs.language.kconfig_needs import kconfig_needs
from swingbot_jobs.language.program import Program
from swingbot_jobs.reading import lkp
from swingbot_jobs.testbox.boot_time import boot_seconds


def pick_testboxes(
    testboxes: KnownTestboxes,
    settings: LabSettings,
    names: Sequence[str],
    trust: Trust = "trusted",
    *,
    asked: bool = True,
) -> list[str]:
    """Return testboxes by name, or all of a tbox_group; the default one if no name is given. Raises
    RequestError.

    Untrusted kernels get only testboxes that accept them. Others are left out of groups and of
    names that were not `asked` for explicitly; asking for one by name is an error.
    """
    picked: list[str] = []
    for name in names or [settings.watch_testbox]:
        matches = (
            [name]
            if name in testboxes.present
            else sorted(
                testbox.name for testbox in testboxes.present.values() if testbox.tbox_group == name
            )
        )
        if not matches:
            raise RequestError(
                f"testbox or group {name!r} does not exist; {instead_of(name, testboxes.present)}"
            )
        fitting = [
            testbox for testbox in matches if accepted(trust, testboxes.present[testbox].accepts)
        ]
        if asked and name in matches and not fitting and name in names:
            raise RequestError(_refused(testboxes, name))
        picked += [testbox for testbox in fitting if testbox not in picked]
    if not picked:
        raise RequestError(_refused(testboxes, ", ".join(names or [settings.watch_testbox])))
    return picked


def _refused(testboxes: KnownTestboxes, names: str) -> str:
    accepting = ", ".join(
        sorted(
            testbox.name for testbox in testboxes.present.values() if testbox.accepts == "untrusted"
        )
    )
    return (
        f"{names} accepts only trusted kernels, and this kernel is untrusted: it comes from a "
        "patch or an untrusted tree. "
        "Testboxes that accept untrusted kernels: "
        f"{accepting or 'none (set `accepts: untrusted` in a testbox file)'}. "
        "If the code is safe to run, an operator can vouch for it with --trusted"
    )


def resolve_parts(
    programs: Mapping[str, Program],
    testboxes: KnownTestboxes,
    specs: Specs,
    job_files: Sequence[JobFile],
    names: Sequence[str],
    overrides: Mapping[str, str],
    trust: Trust,
) -> list[tuple[str, str]]:
    """Return (testbox, spec) for each testbox, and record the specs. Raises RequestError."""
    parts = check_parts(programs, testboxes, job_files, names, overrides, trust)
    return [(name, specs.add(unit_jobs)) for name, unit_jobs in parts]


def check_parts(
    programs: Mapping[str, Program],
    testboxes: KnownTestboxes,
    job_files: Sequence[JobFile],
    names: Sequence[str],
    overrides: Mapping[str, str],
    trust: Trust,
) -> list[tuple[str, list[UnitJob]]]:
    """Return (testbox, unit jobs) for each testbox. One boot runs the unit jobs of all files.

    `trust` is the trust of the least trusted kernel to boot; some settings are refused for
    untrusted ones. Raises RequestError with file and line.
    """
    parts = []
    for name in names:
        unit_jobs: list[UnitJob] = []
        for file in job_files:
            try:
                expanded = expand(file.text, file.name, testboxes.known(name), programs, overrides)
                if testboxes.known(name).lkp is not None:
                    lkp.refuse_unknown(expanded, programs)
            except (JobError, lkp.NoLkpEquivalent) as error:
                raise RequestError(str(error)) from None
            unit_jobs += [
                job for job in testboxes.known(name).demanded(expanded) if job not in unit_jobs
            ]
        twice = {
            job.name for job in unit_jobs if sum(other.name == job.name for other in unit_jobs) > 1
        }
        if twice:
            raise RequestError(
                f"two of the jobs have the name {sorted(twice)[0]}; rename one of the job files"
            )
        try:
            testboxes.known(name).check_settings(unit_jobs, trust)
        except ValueError as error:
            raise RequestError(str(error)) from None
        refuse_long(testboxes, name, unit_jobs)
        parts.append((name, unit_jobs))
    return parts


def refuse_lacking(catalogue: Catalogue, kconfig: str, unit_jobs: Sequence[UnitJob]) -> None:
    """Raise RequestError if kernels of this configuration lack options that the unit jobs need."""
    needs = kconfig_needs(unit_jobs, catalogue.programs)
    if why := catalogue.kconfigs.refusal(kconfig, needs):
        raise RequestError(why)


def refuse_long(
    testboxes: KnownTestboxes,
    name: str,
    unit_jobs: Sequence[UnitJob],
    measured: float | None = None,
) -> None:
    """Raise RequestError if a boot with these unit jobs takes longer than testbox or lab allow.

    `measured` is the mean duration of such boots there in seconds, if there are any.
    """
    seconds = boot_seconds(testboxes.known(name), unit_jobs) if measured is None else measured
    if why := too_long(testboxes, name, seconds):
        raise RequestError(
            f"a boot of {name} with {count(len(unit_jobs), 'unit job')} takes"
            f" {'about ' if measured is None else ''}{duration(seconds)}, and {why};"
            " request fewer unit jobs or runs"
        )
