"""Add settings of an experiment to unit jobs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from swingbot_jobs.contract import facts, settings
from swingbot_jobs.contract.unit_job import UnitJob, cmdline_of


def with_settings(
    unit_jobs: Sequence[UnitJob], cmdline: str | None, sysctl: Mapping[str, str]
) -> list[UnitJob]:
    """Return the unit jobs of one boot with `cmdline` and `sysctl` added to their settings.

    Names stay the same, so that both sides of an experiment have the same rows; the boot specs
    differ. A parameter or sysctl of a unit job may be repeated with the same value.

    Raises settings.SettingError for a setting that jobs must not use, a parameter or sysctl with
    two values, and a sysctl that contradicts a demand of the job or the testbox.
    """
    own = _own_words(unit_jobs)
    added = " ".join((cmdline or "").split())
    settings.check_words(added)
    named = {settings.sysctl_name(name): value for name, value in sysctl.items()}
    settings.check_sysctls(named)
    words = settings.joined(own, *_new_words(own, added))
    settings.parse_words(words)
    return [replace(job, cmdline=words, sysctl=_merged(job, named)) for job in unit_jobs]


def _own_words(unit_jobs: Sequence[UnitJob]) -> str:
    try:
        return cmdline_of(unit_jobs)
    except ValueError as error:
        raise settings.SettingError(str(error)) from None


def _new_words(own: str, added: str) -> list[str]:
    """Return the words of `added` that are not in `own`."""
    present = settings.parse_words(own)
    by_name = {settings.parameter(word): word for word in present}
    new = [word for word in settings.parse_words(added) if word not in present]
    for word in new:
        if (name := settings.parameter(word)) in by_name:
            raise settings.SettingError(
                f"the job already has {by_name[name]} on the kernel command line, so {word} cannot"
                f" be added; remove {name} from one of the two"
            )
    return new


def _merged(job: UnitJob, sysctl: Mapping[str, str]) -> dict[str, str]:
    for name, value in sysctl.items():
        if job.sysctl.get(name, value) != value:
            raise settings.SettingError(
                f"the unit job {job.name} already sets {name} to {job.sysctl[name]}, not {value};"
                " remove it from one of the two"
            )
        if name in job.demand and not facts.meets(value, job.demand[name]):
            raise settings.SettingError(
                f"{name} cannot be set to {value}: the unit job {job.name} or its testbox demands"
                f" {job.demand[name]}; remove the demand"
            )
    return dict(sorted({**job.sysctl, **sysctl}.items()))
