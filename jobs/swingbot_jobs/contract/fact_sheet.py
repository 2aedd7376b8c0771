"""Facts of a boot from the guest's output of `grep . FILES`, the files that facts.yaml names.

The text is untrusted: a broken kernel may have written it. Anything malformed is ignored.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from swingbot_jobs import limits
from swingbot_jobs.contract import memory, settings
from swingbot_jobs.contract.facts import END, Fact, Value, known, unmet
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.printable import printable

BEFORE: Final = "sheet"  # members of facts/: the files before the first run ...
AFTER: Final = "after"  # ... and after the last one, for facts that are read again
NOTES: Final = "notes"  # the kernel's ELF notes in hexadecimal
RUN_BEFORE: Final = (
    "facts-before"  # in a run's folder: the files of demanded facts, before the run ...
)
RUN_AFTER: Final = "facts-after"  # ... and after it
CMDLINE_UNKNOWN: Final = (
    "cmdline_unknown"  # the fact that lists words of the job that the kernel does not know
)
_LENGTHS: Final = {"cmdline": limits.COMMAND_LINE_BYTES}  # of facts that may be longer
PROC_SYS: Final = "/proc/sys/"
_GNU_BUILD_ID: Final = 3  # type of the note, elf.h

Dump = Mapping[str, list[str]]  # path -> its lines


def facts_of(members: Mapping[str, str]) -> dict[str, Value]:
    """Return the facts in the members `facts/<name>`: single facts by name,
    and those of the files that were sent unparsed.
    """
    single = {
        name: value(text)
        for name, text in sorted(members.items())
        if name not in (BEFORE, AFTER, NOTES)
    }
    before = read(members.get(BEFORE, ""))
    later = {
        name + END: reading
        for name, reading in read(members.get(AFTER, "")).items()
        if known()[name].again
    }
    differences = dict(_differences(before | later))
    build_id = _build_id(members.get(NOTES, ""))
    every = before | later | differences | ({"build_id": build_id} if build_id else {}) | single
    return {
        name: reading
        for name, reading in list(every.items())[: limits.FACTS]
        if reading not in (None, "")
    }


def dump_command(files: Iterable[str]) -> str:
    """Return the shell command that prints the dump of `files`, paths and globs, for `read`.

    Files that do not exist are left out.
    """
    words = " ".join(dict.fromkeys(files))
    return f"LC_ALL=C grep -s -m {limits.FACT_FILE_LINES} . {words} /dev/null"


def read(text: str) -> dict[str, Value]:
    """Return the facts in a dump of files (`path:line`); unknown facts are missing."""
    dump = _dump(text)
    readings = {fact.name: _reading(fact, dump) for fact in known().values() if fact.files}
    return {name: reading for name, reading in readings.items() if reading not in (None, "")}


def not_as_demanded(
    demands: Mapping[str, str], boot: Mapping[str, Value], files: Mapping[str, str]
) -> str | None:
    """Return why a run with these files does not count in a boot with these facts.

    None if all demands are met.
    """
    return (
        unmet(demands, boot, read(files.get(RUN_BEFORE, "")), read(files.get(RUN_AFTER, "")))
        if demands
        else None
    )


def not_as_asked(job: UnitJob, boot: Mapping[str, Value], files: Mapping[str, str]) -> str | None:
    """Return why a run of `job` with these files does not count in a boot with these facts.

    None if every demand was met, and every setting of the job was in force before and after the
    run.
    """
    counted = {name for name in job.demand if name.startswith(memory.COUNTED)}
    read = {name: wanted for name, wanted in job.demand.items() if name not in counted}
    return (
        not_as_demanded(read, boot, files)
        or settings.unlike_cmdline(job.cmdline, boot.get("cmdline"), boot.get(CMDLINE_UNKNOWN))
        or settings.unlike_sysctls(
            job.sysctl, [_sysctls(files.get(name, "")) for name in (RUN_BEFORE, RUN_AFTER)]
        )
        or memory.unlike(job.params, files.get(memory.STATE, ""))
        or memory.too_little(
            {name: job.demand[name] for name in counted}, files.get(memory.VMSTAT, "")
        )
    )


def sysctls_read(sysctls: Iterable[str], files: Mapping[str, str]) -> dict[str, str]:
    """Return the values of these sysctls after a run with these files, by name.

    Unreadable ones are left out.
    """
    readings = _sysctls(files.get(RUN_AFTER, ""))
    paths = {name: settings.sysctl_path(name) for name in sysctls}
    return {
        name: printable(readings[path][: limits.FACT_CHARACTERS], " ")
        for name, path in paths.items()
        if path in readings
    }


def _sysctls(text: str) -> dict[str, str]:
    """Return the first line of each file below /proc/sys in a dump, by path below it."""
    return {
        path.removeprefix(PROC_SYS): lines[0]
        for path, lines in _dump(text).items()
        if path.startswith(PROC_SYS)
    }


def value(text: str, length: int = limits.FACT_CHARACTERS) -> Value:
    """Return a number if `text` looks like one, else one printable line of at most `length`
    characters.
    """
    plain = printable(text[:length], " ").strip()
    if not re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,6})?", plain):
        return plain
    return float(plain) if "." in plain else int(plain)


def _dump(text: str) -> dict[str, list[str]]:
    dump: dict[str, list[str]] = {}
    for line in text.split("\n"):
        path, colon, content = line.partition(":")
        if (
            not colon
            or not path.startswith("/")
            or (path not in dump and len(dump) >= limits.FACT_FILES)
        ):
            continue
        lines = dump.setdefault(path, [])
        if len(lines) < limits.FACT_FILE_LINES:
            lines.append(content[: 4 * limits.FACT_CHARACTERS])
    return dump


def _reading(fact: Fact, dump: Dump) -> Value:
    files = {path: lines for pattern in fact.files for path, lines in _matching(pattern, dump)}
    if not files:
        return None
    parsed = _FORMS[fact.form](fact, files)
    length = _LENGTHS.get(fact.name, limits.FACT_CHARACTERS)
    return value(str(parsed), length) if parsed is not None else None


def _matching(pattern: str, dump: Dump) -> Iterator[tuple[str, list[str]]]:
    if "*" not in pattern and "[" not in pattern:
        if pattern in dump:
            yield pattern, dump[pattern]
        return
    for path in fnmatch.filter(dump, pattern):
        if path.count("/") == pattern.count("/"):  # a shell's star ends at a slash
            yield path, dump[path]


def _differences(readings: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
    for fact in known().values():
        before, after = readings.get(fact.of), readings.get(fact.of + END)
        if fact.of and isinstance(before, int) and isinstance(after, int) and after >= before:
            yield fact.name, after - before


def _build_id(text: str) -> str | None:
    """Return the build id among ELF notes.

    Each note is (name length, value length, type) as 32-bit words, then name and value,
    padded to 4 bytes.
    """
    digits = re.sub(r"[^0-9a-f]", "", text[:20_000])
    notes = bytes.fromhex(digits[: len(digits) // 2 * 2])
    at = 0
    while at + 12 <= len(notes):
        names, values, kind = (
            int.from_bytes(notes[at + i : at + i + 4], "little") for i in (0, 4, 8)
        )
        name_at, value_at = at + 12, at + 12 + (names + 3) // 4 * 4
        if (
            kind == _GNU_BUILD_ID
            and notes[name_at : name_at + 4] == b"GNU\0"
            and 8 <= values <= 64
            and value_at + values <= len(notes)
        ):
            return notes[value_at : value_at + values].hex()
        at = value_at + (values + 3) // 4 * 4
    return None


# --- forms ----------------------------------------------------------------------------------------

Files = Mapping[str, list[str]]


def _line(_: Fact, files: Files) -> str | None:
    return next((lines[0] for lines in files.values() if lines), None)


def _chosen(_: Fact, files: Files) -> str | None:
    """Return the word in brackets, with which sysfs marks the current choice.

    Some debugfs files use parentheses.
    """
    return next((_in_brackets(lines[0]) for lines in files.values() if lines), None)


def _in_brackets(line: str) -> str:
    match = re.search(r"[\[(]([^\[\]()]+)[\])]", line)
    return match[1] if match else line


def _each(_: Fact, files: Files) -> str:
    return ", ".join(dict.fromkeys(lines[0].strip() for lines in files.values()))


def _numbers(files: Files) -> list[int]:
    return [
        int(lines[0])
        for lines in files.values()
        if re.fullmatch(r"-?[0-9]{1,15}", lines[0].strip())
    ]


def _sum(_: Fact, files: Files) -> str | None:
    numbers = _numbers(files)
    return str(sum(numbers)) if numbers else None


def _max(_: Fact, files: Files) -> str | None:
    numbers = _numbers(files)
    return str(max(numbers)) if numbers else None


def _field(fact: Fact, files: Files) -> str | None:
    """The value behind `key:`, without its unit."""
    for line in next(iter(files.values())):
        name, colon, content = line.partition(":")
        if colon and name.strip() == fact.key:
            return content.strip().removesuffix(f" {fact.unit}") if fact.unit else content.strip()
    return None


def _word(fact: Fact, files: Files) -> str | None:
    words = next(iter(files.values()))[0].split()
    return words[int(fact.key)] if int(fact.key) < len(words) else None


def _cpus(_: Fact, files: Files) -> str | None:
    """Return the number of CPUs in a list such as 0-3,8."""
    parts = [
        re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part.strip())
        for part in next(iter(files.values()))[0].split(",")
    ]
    if not all(parts):
        return None
    return str(sum(int(part[2] or part[1]) - int(part[1]) + 1 for part in parts if part))


def _distinct(_: Fact, files: Files) -> str:
    return str(len({lines[0] for lines in files.values()}))


def _named(_: Fact, files: Files) -> str:
    """`sda: none, sdb: mq-deadline`: by the part of each path that matches the glob's wildcard."""
    return ", ".join(
        f"{_device(path)}: {_in_brackets(lines[0])}" for path, lines in sorted(files.items())
    )


def _device(path: str) -> str:
    """Return the device of /sys/block/sda/queue/scheduler, /sys/class/net/eth0/mtu or
    /sys/devices/system/node/node0/cpulist.
    """
    parts = path.split("/")
    return parts[3] if parts[2] == "block" else parts[4] if parts[2] == "class" else parts[-2]


def _drivers(fact: Fact, files: Files) -> str | None:
    drivers = {
        _device(path): line[7:]
        for path, lines in sorted(files.items())
        for line in lines
        if line.startswith("DRIVER=")
    }
    return ", ".join(f"{device}: {driver}" for device, driver in drivers.items()) or None


def _mitigations(_: Fact, files: Files) -> str:
    states = [(path.rpartition("/")[2], lines[0]) for path, lines in sorted(files.items())]
    return (
        "".join(f"{name}:{line};" for name, line in states if line != "Not affected")
        or "none needed"
    )


def _cgroups(_: Fact, files: Files) -> str:
    kinds = {line.split()[2] for line in next(iter(files.values())) if len(line.split()) > 2}
    return (
        " and ".join(
            number for number, kind in (("1", "cgroup"), ("2", "cgroup2")) if kind in kinds
        )
        or "none"
    )


def _caches(_: Fact, files: Files) -> str:
    """`L1d 32K, L1i 32K, L2 1024K`."""
    caches: dict[str, dict[str, str]] = {}
    for path, lines in sorted(files.items()):
        index, _slash, name = path.rpartition("/")
        caches.setdefault(index, {})[name] = lines[0].strip()
    short = {"Data": "d", "Instruction": "i"}
    sizes = [
        f"L{one['level']}{short.get(one.get('type', ''), '')} {one.get('size', '?')}"
        for one in caches.values()
        if "level" in one
    ]
    return ", ".join(sorted(sizes))


def _turbo(fact: Fact, files: Files) -> str | None:
    """Return on or off by whichever of the two files exists; both words if they disagree."""
    states: dict[str, None] = {}
    for path, lines in files.items():
        words = {
            theirs: ours for ours, theirs in fact.values.get(path.rpartition("/")[2], {}).items()
        }
        states |= {words[lines[0].strip()]: None} if lines[0].strip() in words else {}
    return ", ".join(states) or None


_FORMS: Final[Mapping[str, Callable[[Fact, Files], str | None]]] = {
    "line": _line,
    "chosen": _chosen,
    "each": _each,
    "sum": _sum,
    "max": _max,
    "field": _field,
    "word": _word,
    "cpus": _cpus,
    "distinct": _distinct,
    "named": _named,
    "drivers": _drivers,
    "mitigations": _mitigations,
    "cgroups": _cgroups,
    "caches": _caches,
    "turbo": _turbo,
}
