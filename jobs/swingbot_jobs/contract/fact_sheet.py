"""From what the guest sent to facts: `grep . FILES` of the files that the list of facts names.

The text is hostile: a mad kernel may have written it. Whatever is odd is no fact.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from swingbot_jobs.contract import settings
from swingbot_jobs.contract.facts import END, Fact, Value, known, unmet
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.printable import printable

BEFORE: Final = "sheet"  # members of facts/ with the files as they were before the first run ...
AFTER: Final = "after"  # ... and after the last one, of those that are read again
NOTES: Final = "notes"  # the kernel's ELF notes in hexadecimal
RUN_BEFORE: Final = (
    "facts-before"  # in a run's folder: the files of what is demanded, before the run ...
)
RUN_AFTER: Final = "facts-after"  # ... and after it
FACT_LENGTH: Final = 1000
CMDLINE_UNKNOWN: Final = "cmdline_unknown"  # the fact that names words of the job's
_LENGTHS: Final = {"cmdline": settings.COMMAND_LINE_SIZE}  # of facts that may be longer
MAX_FACTS: Final = 400
PROC_SYS: Final = "/proc/sys/"
_MAX_FILES: Final = 4000
_MAX_LINES: Final = 200  # of one file
_GNU_BUILD_ID: Final = 3  # type of the note, elf.h

Dump = Mapping[str, list[str]]  # path -> its lines


def facts_of(members: Mapping[str, str]) -> dict[str, Value]:
    """The facts in what came as `facts/<name>`: single ones by their names, and those of the files that were sent whole."""
    single = {
        name: value(text)
        for name, text in sorted(members.items())
        if name not in (BEFORE, AFTER, NOTES)
    }
    found = read(members.get(BEFORE, ""))
    later = {
        name + END: told
        for name, told in read(members.get(AFTER, "")).items()
        if known()[name].again
    }
    made = dict(_differences(found | later))
    build_id = _build_id(members.get(NOTES, ""))
    every = found | later | made | ({"build_id": build_id} if build_id else {}) | single
    return {name: told for name, told in list(every.items())[:MAX_FACTS] if told not in (None, "")}


def read(text: str) -> dict[str, Value]:
    """The facts that a dump of files (`path:line`) tells; what it does not tell is not in it."""
    dump = _dump(text)
    found = {fact.name: _told(fact, dump) for fact in known().values() if fact.files}
    return {name: told for name, told in found.items() if told not in (None, "")}


def not_as_demanded(
    demands: Mapping[str, str], boot: Mapping[str, Value], files: Mapping[str, str]
) -> str | None:
    """Why a run with these files does not count in a boot with these facts; None if all is as demanded."""
    return (
        unmet(demands, boot, read(files.get(RUN_BEFORE, "")), read(files.get(RUN_AFTER, "")))
        if demands
        else None
    )


def not_as_asked(job: UnitJob, boot: Mapping[str, Value], files: Mapping[str, str]) -> str | None:
    """Why a run of `job` with these files does not count in a boot with these facts.

    None if all that the job demands was so, and all that it sets was set before and after the run.
    """
    return (
        not_as_demanded(job.demand, boot, files)
        or settings.unlike_cmdline(job.cmdline, boot.get("cmdline"), boot.get(CMDLINE_UNKNOWN))
        or settings.unlike_sysctls(
            job.sysctl, [_sysctls(files.get(name, "")) for name in (RUN_BEFORE, RUN_AFTER)]
        )
    )


def sysctls_read(sysctls: Iterable[str], files: Mapping[str, str]) -> dict[str, str]:
    """What these sysctls were after a run with these files, by name; unreadable ones left out."""
    found = _sysctls(files.get(RUN_AFTER, ""))
    paths = {name: settings.sysctl_path(name) for name in sysctls}
    return {
        name: printable(found[path][:FACT_LENGTH], " ")
        for name, path in paths.items()
        if path in found
    }


def _sysctls(text: str) -> dict[str, str]:
    """The first line of each file below /proc/sys in a dump, by path below it."""
    return {
        path.removeprefix(PROC_SYS): lines[0]
        for path, lines in _dump(text).items()
        if path.startswith(PROC_SYS)
    }


def value(text: str, length: int = FACT_LENGTH) -> Value:
    """A number where it looks like one, else one line of printable text of at most `length`."""
    plain = printable(text[:length], " ").strip()
    if not re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,6})?", plain):
        return plain
    return float(plain) if "." in plain else int(plain)


def _dump(text: str) -> dict[str, list[str]]:
    dump: dict[str, list[str]] = {}
    for line in text.split("\n"):
        path, colon, content = line.partition(":")
        if not colon or not path.startswith("/") or (path not in dump and len(dump) >= _MAX_FILES):
            continue
        lines = dump.setdefault(path, [])
        if len(lines) < _MAX_LINES:
            lines.append(content[: 4 * FACT_LENGTH])
    return dump


def _told(fact: Fact, dump: Dump) -> Value:
    files = {path: lines for pattern in fact.files for path, lines in _matching(pattern, dump)}
    if not files:
        return None
    told = _FORMS[fact.form](fact, files)
    length = _LENGTHS.get(fact.name, FACT_LENGTH)
    return value(str(told), length) if told is not None else None


def _matching(pattern: str, dump: Dump) -> Iterator[tuple[str, list[str]]]:
    if "*" not in pattern and "[" not in pattern:
        if pattern in dump:
            yield pattern, dump[pattern]
        return
    for path in fnmatch.filter(dump, pattern):
        if path.count("/") == pattern.count("/"):  # a shell's star ends at a slash
            yield path, dump[path]


def _differences(found: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
    for fact in known().values():
        before, after = found.get(fact.of), found.get(fact.of + END)
        if fact.of and isinstance(before, int) and isinstance(after, int) and after >= before:
            yield fact.name, after - before


def _build_id(text: str) -> str | None:
    """The build id among ELF notes: each is (name length, value length, type) as 32-bit words, then name and value padded to 4 bytes."""
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


# --- forms -----------------------------------------------------------------------------------------------------------

Files = Mapping[str, list[str]]


def _line(_: Fact, files: Files) -> str | None:
    return next((lines[0] for lines in files.values() if lines), None)


def _chosen(_: Fact, files: Files) -> str | None:
    """The word in brackets, as sysfs marks the choice that is in force; some of debugfs use parentheses."""
    return next((_in_brackets(lines[0]) for lines in files.values() if lines), None)


def _in_brackets(line: str) -> str:
    found = re.search(r"[\[(]([^\])]+)[\])]", line)
    return found[1] if found else line


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
    """How many a list such as 0-3,8 names."""
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
    """`sda: none, sdb: mq-deadline`: by the part of each path that the glob left open."""
    return ", ".join(
        f"{_device(path)}: {_in_brackets(lines[0])}" for path, lines in sorted(files.items())
    )


def _device(path: str) -> str:
    """/sys/block/sda/queue/scheduler, /sys/class/net/eth0/mtu and /sys/devices/system/node/node0/cpulist by their device."""
    parts = path.split("/")
    return parts[3] if parts[2] == "block" else parts[4] if parts[2] == "class" else parts[-2]


def _drivers(fact: Fact, files: Files) -> str | None:
    told = {
        _device(path): line[7:]
        for path, lines in sorted(files.items())
        for line in lines
        if line.startswith("DRIVER=")
    }
    return ", ".join(f"{device}: {driver}" for device, driver in told.items()) or None


def _mitigations(_: Fact, files: Files) -> str:
    told = [(path.rpartition("/")[2], lines[0]) for path, lines in sorted(files.items())]
    return (
        "".join(f"{name}:{line};" for name, line in told if line != "Not affected") or "none needed"
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
    made: dict[str, dict[str, str]] = {}
    for path, lines in sorted(files.items()):
        index, _slash, name = path.rpartition("/")
        made.setdefault(index, {})[name] = lines[0].strip()
    short = {"Data": "d", "Instruction": "i"}
    told = [
        f"L{one['level']}{short.get(one.get('type', ''), '')} {one.get('size', '?')}"
        for one in made.values()
        if "level" in one
    ]
    return ", ".join(sorted(told))


def _turbo(fact: Fact, files: Files) -> str | None:
    """On or off by whichever of the two files there is; they disagree: both words."""
    told: dict[str, None] = {}
    for path, lines in files.items():
        words = {
            theirs: ours for ours, theirs in fact.values.get(path.rpartition("/")[2], {}).items()
        }
        told |= {words[lines[0].strip()]: None} if lines[0].strip() in words else {}
    return ", ".join(told) or None


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
