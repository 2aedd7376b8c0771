"""Settings of a job for its boot, as written: `kernel_cmdline: WORDS`, `sysctl: {name: value}`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from swingbot_jobs.contract import facts, settings
from swingbot_jobs.yaml_lines import JobError, LocatedValue

# Names in LKP's program sysctl, which omit the directory.
_LKP_PREFIX: Final = "sc_"
# In LKP's cgroup2.yaml; the runner mounts the hierarchy of version 2 itself.
_UNIFIED: Final = "systemd.unified_cgroup_hierarchy=1"
_BLANKS: Final = re.compile(r"[ \t]+")


def cmdline(value: LocatedValue | None) -> str:
    """Return the words of `kernel_cmdline`, separated by one blank.

    Raises JobError with the line.
    """
    if value is None or value.content is None:
        return ""
    if value.text is None:
        raise JobError(
            f"{value.where}: kernel_cmdline must be words with blanks between them, such as"
            " 'transparent_hugepage=never nokaslr'"
        )
    words = " ".join(word for word in value.text.split() if word != _UNIFIED)
    try:
        settings.check_words(words)
    except settings.SettingError as error:
        raise JobError(f"{value.where}: kernel_cmdline: {error}") from None
    return words


def sysctls(value: LocatedValue | None) -> dict[str, str]:
    """Return the sysctls of `sysctl` by canonical name, in its order.

    Raises JobError with the line.
    """
    by_name: dict[str, tuple[str, LocatedValue]] = {}
    for written, item in _entries(value):
        name, text = _one(written, item)
        if name in by_name:
            first = by_name[name][1].line
            raise JobError(f"{item.where}: the sysctl {name} is set twice, first in line {first}")
        by_name[name] = (text, item)
    try:
        settings.check_form({name: text for name, (text, _) in by_name.items()})
    except settings.SettingError as error:
        assert value is not None
        raise JobError(f"{value.where}: {error}") from None
    return {name: text for name, (text, _) in sorted(by_name.items())}


def problems(ours: Mapping[str, LocatedValue]) -> Iterator[JobError]:
    """Yield all errors in the settings of a job, each value checked by itself."""
    try:
        cmdline(ours.get("kernel_cmdline"))
    except JobError as error:
        yield error
    value = ours.get("sysctl")
    try:
        entries = written(value)
    except JobError as error:
        yield error
        return
    for name, item in entries.items():
        try:
            _one(name, item)
        except JobError as error:
            yield error


def written(value: LocatedValue | None) -> dict[str, LocatedValue]:
    """Return the entries of `sysctl` as written, flattened. Raises JobError."""
    return dict(_entries(value))


def same(one: str, other: str) -> bool:
    """Return whether two names, as written, mean the same sysctl."""
    try:
        return settings.sysctl_path(one) == settings.sysctl_path(other)
    except settings.SettingError:
        return one == other


def refuse_demanded(sysctl: Mapping[str, str], demand: Mapping[str, str], where: str) -> None:
    """Raise JobError for a sysctl of which the job demands another value."""
    for name in sysctl.keys() & demand.keys():
        if not facts.meets(sysctl[name], demand[name]):
            raise JobError(
                f"{where}: the job sets {name} to {sysctl[name]} and demands {demand[name]};"
                " remove one of the two"
            )


def _entries(value: LocatedValue | None) -> Iterator[tuple[str, LocatedValue]]:
    """Return names and values; the key of a nested table is a part of a name: `sysctl.vm.x: 1`."""
    if value is None or value.content is None:
        return
    if value.table is None:
        raise JobError(
            f"{value.where}: sysctl must be a table of names and values, such as"
            " 'vm.swappiness: 10'"
        )
    for key, item in value.table.items():
        if item.table is None:
            yield key, item
        else:
            yield from ((f"{key}.{rest}", inner) for rest, inner in _entries(item))


def _one(written: str, item: LocatedValue) -> tuple[str, str]:
    if written.startswith(_LKP_PREFIX):
        raise JobError(
            f"{item.where}: {written[:60]} is LKP's name of a sysctl; write the one that sysctl(8)"
            " prints, such as vm.overcommit_memory for sc_overcommit_memory"
        )
    if item.text is None:
        raise JobError(f"{item.where}: the sysctl {written[:60]} must have exactly one value")
    if item.ambiguous:
        raise JobError(
            f"{item.where}: {written[:60]}: YAML reads {item.text[:60]} as another value than it"
            " looks like; put it in quotes, or write it plainly"
        )
    try:
        name, text = settings.sysctl_name(written), _BLANKS.sub(" ", item.text.strip(" \t"))
        settings.check_sysctls({name: text})
    except settings.SettingError as error:
        raise JobError(f"{item.where}: {error}") from None
    return name, text
