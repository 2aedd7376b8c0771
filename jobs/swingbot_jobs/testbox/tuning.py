"""A tuning list: settings that reduce the noise of a testbox, item by item
(`workers/tuning/<name>.yaml`). Pure.

Ansible and the worker read the same list. A testbox alternates between its own system and the
kernel under test with a root file system in RAM, and what is set in one is lost in the other,
so each item says where it applies:

    boot     facts of the kernel under test: the runner sets those that can be set, and a run with
             another value is invalid
    cmdline  words on the command line of the kernel under test
    idle     facts of the testbox's own system, between orders
    sysctl   kernel parameters of the testbox's own system that are not facts
    stopped  units of systemd that must not run in the testbox's own system
    off, off_cmdline  facts and words that switch it off for `swingbot testbox doctor`, where
             leaving its own facts to the kernel does not

The role `swingbot_testbox` applies the items of the testbox's own system, and each boot checks them
first: `probe` is the script to run on the testbox, `findings` reads its output.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from swingbot_jobs import codec, limits
from swingbot_jobs.codec import matches
from swingbot_jobs.contract import fact_sheet as sheet
from swingbot_jobs.contract import facts
from swingbot_jobs.printable import printable
from swingbot_jobs.yaml_lines import LineError, read_documents

NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,40}")
_SYSCTL: Final = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-zA-Z0-9_-]+)+")
_UNIT: Final = re.compile(r"[A-Za-z0-9@_-][A-Za-z0-9@_.:-]*\.(?:service|timer|socket|target|path)")
_VALUE: Final = re.compile(r"[-A-Za-z0-9_. ]{1,60}")
_CMDLINE: Final = re.compile(r"[!-~]+(?: [!-~]+)*")
_UNITS: Final = "units:"
_FACTS: Final = ("boot", "idle", "off")
_PARTS: Final = ("boot", "cmdline", "idle", "sysctl", "stopped")
PLAYBOOK: Final = "run the playbook on it again (docs/ansible.md)"


class TuningError(LineError):
    """A tuning list is invalid; the message names file and item and says what to change."""


Unit = Annotated[str, matches(_UNIT, "a unit such as cron.service or fstrim.timer")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """One item as its file has it; the module's docstring explains the parts."""

    why: str = ""
    boot: Mapping[str, str] = field(default_factory=dict)
    cmdline: Annotated[str, matches(_CMDLINE, "words with single blanks between them")] = ""
    idle: Mapping[str, str] = field(default_factory=dict)
    sysctl: Mapping[str, Annotated[str, matches(_VALUE, "a plain value")]] = field(
        default_factory=dict
    )
    stopped: tuple[Unit, ...] = ()
    off: Mapping[str, str] = field(default_factory=dict)
    off_cmdline: Annotated[str, matches(_CMDLINE, "words with single blanks between them")] = ""

    def __post_init__(self) -> None:
        if not self.why.strip() or not any(getattr(self, part) for part in _PARTS):
            raise ValueError(f"needs a sentence `why`, and one of {', '.join(_PARTS)}")
        for name in self.sysctl:
            if not _SYSCTL.fullmatch(name):
                raise ValueError(f"{name[:60]!r} must be a kernel parameter such as kernel.panic")


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningItem(_Written):
    """One item of a list: facts have the names and values of the fact list."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _List:
    """A file."""

    about: str = ""
    extends: str = ""
    items: Mapping[str, _Written] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningFinding:
    """The state of one setting on the testbox's own system, and whether it matches the list.

    `do` is the advice if not.
    """

    what: str
    ok: bool
    found: str
    do: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """A list as it applies to one testbox."""

    name: str
    about: str
    items: tuple[TuningItem, ...]
    left_out: tuple[TuningItem, ...] = ()

    def without(self, names: Sequence[str]) -> Tuning:
        """Return the list without items that this testbox does not support.

        Raises TuningError for an unknown item.
        """
        known = {item.name: item for item in self.items}
        for name in names:
            if name not in known:
                raise TuningError(
                    f"the tuning list {self.name} has no item {name[:60]!r};"
                    f" it has {', '.join(known)}"
                )
        return Tuning(
            name=self.name,
            about=self.about,
            items=tuple(item for item in self.items if item.name not in names),
            left_out=tuple(known[name] for name in names),
        )

    @property
    def demand(self) -> dict[str, str]:
        """Return the facts required in each boot of the kernel under test."""
        return {name: wanted for item in self.items for name, wanted in item.boot.items()}

    @property
    def cmdline(self) -> str:
        """Return words for the command line of the kernel under test."""
        return " ".join(item.cmdline for item in self.items if item.cmdline)

    @property
    def idle(self) -> dict[str, str]:
        """Return facts of the testbox's own system."""
        return {name: wanted for item in self.items for name, wanted in item.idle.items()}

    @property
    def sysctl(self) -> dict[str, str]:
        """Return kernel parameters of the testbox's own system: facts and others."""
        of_facts = {
            name: wanted
            for name, wanted in self.idle.items()
            if (fact := facts.known().get(name)) and fact.group == "sysctl"
        }
        return of_facts | {
            name: wanted for item in self.items for name, wanted in item.sysctl.items()
        }

    @property
    def files(self) -> list[tuple[str, str]]:
        """Return (file or glob, text to write into it) on the testbox's own system,
        without kernel parameters.
        """
        return [pair for pair in facts.settings(self.idle) if not pair[0].startswith("/proc/sys/")]

    @property
    def stopped(self) -> tuple[str, ...]:
        return tuple(unit for item in self.items for unit in item.stopped)


# --- the testbox's own system
# -------------------------------------------------------------------------


def probe(tuning: Tuning) -> str:
    """Return a POSIX shell script that changes nothing and prints the input of `findings`."""
    known = facts.known()
    files = [file for name in tuning.idle for file in known[name].files]
    files += [_sysctl_file(name) for name in tuning.sysctl]
    lines = [sheet.dump_command(files)] if files else []
    if tuning.stopped:
        units = " ".join(shlex.quote(unit) for unit in tuning.stopped)
        lines.append(f"echo {_UNITS} $(systemctl is-active -- {units} 2>/dev/null)")
    return "\n".join([*lines, "true"]) + "\n"


def findings(tuning: Tuning, printed: str) -> list[TuningFinding]:
    """Return what matches the list on the testbox's own system and what does not,
    from the probe's output.
    """
    printed = printed[: limits.TUNING_CHARACTERS]
    found = sheet.read(printed)
    return [
        *(
            _of_fact(item.name, name, wanted, found.get(name))
            for item in tuning.items
            for name, wanted in item.idle.items()
        ),
        *(
            _of_sysctl(name, wanted, printed)
            for name, wanted in tuning.sysctl.items()
            if name not in tuning.idle
        ),
        *_of_units(tuning.stopped, printed),
    ]


def _of_fact(item: str, name: str, wanted: str, found: facts.Value) -> TuningFinding:
    if found is None:
        do = f"if the testbox does not support it, add {item} to tuning_without in its testbox file"
        return TuningFinding(what=f"{name} is {wanted}", ok=False, found="unknown there", do=do)
    return TuningFinding(
        what=f"{name} is {wanted}",
        ok=(met := facts.meets(found, wanted)),
        found=str(found),
        do="" if met else PLAYBOOK,
    )


def _of_sysctl(name: str, wanted: str, printed: str) -> TuningFinding:
    start = _sysctl_file(name) + ":"
    current = next(
        (
            line[len(start) : len(start) + 100].strip()
            for line in printed.split("\n")
            if line.startswith(start)
        ),
        None,
    )
    met = current is not None and current.split() == wanted.split()
    return TuningFinding(
        what=f"{name} is {wanted}",
        ok=met,
        found=printable(current) if current is not None else "unknown there",
        do="" if met else PLAYBOOK,
    )


def _of_units(units: Sequence[str], printed: str) -> list[TuningFinding]:
    """Check the units. `systemctl is-active` prints one word for each, in the requested order."""
    line = next((line for line in printed.split("\n") if line.startswith(_UNITS)), "")
    words = line.removeprefix(_UNITS).split()
    if len(words) != len(units):
        do = "check that the testbox's own system runs systemd"
        return (
            [
                TuningFinding(
                    what="disturbing services do not run",
                    ok=False,
                    found=f"systemctl reported {len(words)} of {len(units)}",
                    do=do,
                )
            ]
            if units
            else []
        )
    running = [
        unit
        for unit, word in zip(units, words, strict=True)
        if word not in ("inactive", "failed", "unknown")
    ]
    if not running:
        return [
            TuningFinding(
                what="disturbing services do not run", ok=True, found=f"{len(units)} checked"
            )
        ]
    return [
        TuningFinding(what=f"{unit} does not run", ok=False, found="it runs", do=PLAYBOOK)
        for unit in running
    ]


def _sysctl_file(name: str) -> str:
    return "/proc/sys/" + name.replace(".", "/")


# --- reading --------------------------------------------------------------------------------------


def load_all(directory: Path) -> dict[str, Tuning]:
    """Return every `*.yaml` of `directory` by name; none if it does not exist.

    Raises TuningError for the first invalid file.
    """
    texts = {path.stem: (str(path), path.read_text()) for path in sorted(directory.glob("*.yaml"))}
    return {name: load(name, texts) for name in texts}


def load(name: str, texts: Mapping[str, tuple[str, str]]) -> Tuning:
    """Return the list `name` of `texts`, which are (file name, content) by name,
    with the list that it extends. Raises TuningError.
    """
    return _load(name, texts, ())


def _load(name: str, texts: Mapping[str, tuple[str, str]], seen: tuple[str, ...]) -> Tuning:
    file, text = texts[name]
    written = _read(text, file)
    extends = written.extends
    base: tuple[TuningItem, ...] = ()
    if extends:
        if extends not in texts or extends in (*seen, name):
            raise TuningError(
                f"{file}: it extends {extends!r},"
                f" which is {'itself' if extends in texts else 'missing'};"
                " name another list in this directory"
            )
        base = _load(extends, texts, (*seen, name)).items
    own = tuple(_item(key, item, file) for key, item in written.items.items())
    names = {item.name for item in own}
    items = (*(item for item in base if item.name not in names), *own)
    _no_doubles(items, file)
    return Tuning(name=name, about=written.about, items=items)


def _read(text: str, file: str) -> _List:
    documents = read_documents(text, file, TuningError)
    if len(documents) != 1:
        raise TuningError(f"{file}: must be a table of 'key: value' lines")
    try:
        return codec.typed(_List, documents[0])
    except codec.BadDocument as error:
        raise TuningError(str(error)) from None


def _item(name: str, item: _Written, file: str) -> TuningItem:
    if not NAME.fullmatch(name):
        raise TuningError(
            f"{file}: {name[:60]!r} is not a valid item name; use lower-case letters, digits,"
            " '-' and '_'"
        )
    boot, idle, off = (_demands(getattr(item, part), f"{file}: {name}: {part}") for part in _FACTS)
    for fact_name in idle:
        fact = facts.known().get(fact_name)
        if fact is None or not fact.files:
            raise TuningError(
                f"{file}: {name}: idle: {fact_name} is only known in a boot, not on the testbox's"
                " own system"
            )
    return TuningItem(
        name=name,
        why=" ".join(item.why.split()),
        boot=boot,
        cmdline=item.cmdline,
        idle=idle,
        sysctl=item.sysctl,
        stopped=item.stopped,
        off=off,
        off_cmdline=item.off_cmdline,
    )


def _demands(given: Mapping[str, str], where: str) -> dict[str, str]:
    try:
        return dict(facts.demand(name, wanted) for name, wanted in given.items())
    except facts.DemandError as error:
        raise TuningError(f"{where}: {error}") from None


def _no_doubles(items: Sequence[TuningItem], file: str) -> None:
    for part in ("boot", "idle", "sysctl"):
        seen: dict[str, str] = {}
        for item in items:
            for name in getattr(item, part):
                if name in seen:
                    raise TuningError(
                        f"{file}: {name} is listed under {part} of both {seen[name]} and"
                        f" {item.name}"
                    )
                seen[name] = item.name
