"""The facts of a boot (`jobs/schema/facts.yaml`), and the demands of jobs and testboxes on them.

A demand is a fact's name and its required value: a word, a number or a bound (`<0.1`, `>=2`).
An unknown fact meets no demand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal

import yaml

from swingbot_jobs import resources
from swingbot_jobs.yaml_lines import suggest

LIST: Final = resources.folder("jobs") / "schema" / "facts.yaml"
Value = str | int | float | bool | None
Compare = Literal["machine", "setting", "kernel", "variant", "boot"]
OF_SERVER: Final = "server."  # before the name of a fact of the server in a cluster
OF_BMC: Final = "bmc."  # before the name of a fact that the BMC reports
SET: Final = "set."  # before the name of a sysctl that a job set, as it was in the job's runs
END: Final = "_end"  # suffix of a fact that was read again after the last run
_BOUND: Final = re.compile(r"(<=|>=|<|>) ?(-?[0-9]{1,15}(?:\.[0-9]{1,6})?)")
_WORD: Final = re.compile(r"[A-Za-z0-9(][-A-Za-z0-9 _.,:+=@()/]{0,119}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,6})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One fact of the list; jobs/schema/facts.yaml says what the fields mean."""

    name: str
    group: str
    about: str
    compare: Compare
    unit: str = ""
    files: tuple[str, ...] = ()  # where the guest reads it: globs
    by: str = "runner"
    form: str = "line"
    key: str = ""
    of: str = ""
    again: bool = False
    set: bool = False
    # file name -> our word -> what the file calls it
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    lkp: str = ""

    def words(self) -> tuple[str, ...]:
        """The allowed values, if the list restricts them."""
        return tuple(next(iter(self.values.values()), {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecklistItem:
    """One item of the checklist for a quiet testbox, and who is responsible for it."""

    item: str
    want: str
    enforced: str
    verified: tuple[str, ...]
    recorded: tuple[str, ...]


class DemandError(ValueError):
    """An invalid demand; the message says what to write instead."""


@cache
def known() -> Mapping[str, Fact]:
    """Return every fact by name, in the order of the list; `version.*` names a family."""
    groups = _list()["groups"]
    return {
        name: _fact(group, name, entry)
        for group, facts in groups.items()
        for name, entry in facts.items()
    }


@cache
def checklist() -> tuple[ChecklistItem, ...]:
    return tuple(
        ChecklistItem(
            item=entry["item"],
            want=entry["want"],
            enforced=entry["enforced"],
            verified=tuple(entry["verified"]),
            recorded=tuple(entry["recorded"]),
        )
        for entry in _list()["checklist"]
    )


@cache
def _list() -> dict[str, Any]:
    listed: dict[str, Any] = yaml.safe_load(LIST.read_text())
    return listed


def _fact(group: str, name: str, entry: Mapping[str, Any]) -> Fact:
    """A sysctl's file follows from its name, and all of them can be set."""
    more = {key: value for key, value in entry.items() if key not in ("file", "key")}
    if group == "sysctl":
        return Fact(
            name=name, group=group, files=("/proc/sys/" + name.replace(".", "/"),), set=True, **more
        )
    return Fact(
        name=name,
        group=group,
        files=tuple(str(entry.get("file", "")).split()),
        key=str(entry.get("key", "")),
        **more,
    )


def fact_of(name: str) -> Fact | None:
    """Return the fact called `name`, or None.

    `name` may be a member of a family (`sha256.perf`), the later reading of a fact (`load1_end`),
    or a fact of a cluster's server (`server.smt`).
    """
    facts = known()
    name = name.removeprefix(OF_SERVER)
    if name in facts:
        return facts[name]
    first = facts.get(name.removesuffix(END))
    if first is not None and first.again:
        return first
    return facts.get(f"{name.partition('.')[0]}.*")


# --- demands --------------------------------------------------------------------------------------


def demand(name: str, wanted: str) -> tuple[str, str]:
    """Return a demand in its stored form: the fact's own name, and its value with normalised
    blanks. Raises DemandError.
    """
    lkp = {fact.lkp: fact.name for fact in known().values() if fact.lkp}
    name, wanted = lkp.get(name, name), " ".join(wanted.split())
    fact = fact_of(name)
    if fact is None or name.endswith("*"):
        raise DemandError(
            f"there is no fact {name[:60]!r}{suggest(name, known())}; `swingbot facts` lists them"
        )
    if not _BOUND.fullmatch(wanted) and not _WORD.fullmatch(wanted):
        raise DemandError(
            f"{name}: {wanted[:60]!r} is neither a word, a number nor a bound such as <0.1"
        )
    if fact.words() and wanted not in fact.words():
        raise DemandError(f"{name} is {' or '.join(fact.words())}, not {wanted[:60]!r}")
    return name, wanted


def settings(demands: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Return (file or glob, text to write into it) for each demand that the runner can set."""
    for name, wanted in demands.items():
        fact = known().get(name)
        if fact is not None and fact.set and not _BOUND.fullmatch(wanted):
            for file in fact.files:
                yield file, fact.values.get(file.rpartition("/")[2], {}).get(wanted, wanted)


def files_of(demands: Mapping[str, str]) -> list[str]:
    """Return the files to read before and after each run to check the demands."""
    facts = [known()[name] for name in demands if name in known()]
    return list(dict.fromkeys(file for fact in facts if fact.set for file in fact.files))


def unmet(demands: Mapping[str, str], *readings: Mapping[str, Value]) -> str | None:
    """Return why a run does not meet the demands, in one sentence; None if it does.

    `readings`: the sheet of the boot, then the readings before and after the run;
    each must agree where it has the fact. A fact that the runner sets is not checked against the
    sheet, which was taken before it was set.
    """
    reasons = [
        reason for name, wanted in demands.items() if (reason := _unmet(name, wanted, readings))
    ]
    return f"demand not met: {'; '.join(reasons)}" if reasons else None


def _unmet(name: str, wanted: str, readings: tuple[Mapping[str, Value], ...]) -> str | None:
    fact = known().get(name)
    asked = readings[1:] if fact is not None and fact.set else readings[:1]
    values = [reading.get(name) for reading in asked]
    if asked is not readings[1:] and readings and name + END in readings[0]:
        values.append(readings[0][name + END])
    if not values or None in values:
        return f"{name} is unknown in this boot; {_wanted(wanted)} is required"
    wrong = next((value for value in values if not meets(value, wanted)), None)
    return None if wrong is None else f"{name} was {wrong}; {_wanted(wanted)} is required"


def meets(value: Value, wanted: str) -> bool:
    """Return whether a known value meets the demand."""
    text = str(value)
    bound = _BOUND.fullmatch(wanted)
    if bound is None:
        return text == wanted or (
            _is_number(text) and _is_number(wanted) and float(text) == float(wanted)
        )
    if not _is_number(text):
        return False
    number, limit = float(text), float(bound[2])
    return {"<": number < limit, "<=": number <= limit, ">": number > limit, ">=": number >= limit}[
        bound[1]
    ]


def _wanted(wanted: str) -> str:
    bound = _BOUND.fullmatch(wanted)
    return f"{bound[1]} {bound[2]}" if bound else wanted


def _is_number(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text))


# --- the sheet ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FactLine:
    """A line of a fact sheet; `value` None: not known."""

    name: str
    value: Value
    unit: str
    about: str


def sheet(found: Mapping[str, Value]) -> dict[str, list[FactLine]]:
    """Return every fact of the list by group, known or not, and other recorded values under
    `other`.
    """
    lines: dict[str, list[FactLine]] = {}
    shown: set[str] = set()
    for fact in known().values():
        family = fact.name.removesuffix("*")
        names = (
            [name for name in sorted(found) if name.startswith(family)]
            if family != fact.name
            else [fact.name, *([fact.name + END] if fact.again else [])]
        )
        shown |= set(names)
        about = {fact.name + END: f"{fact.about}; after the last run"}
        lines.setdefault(fact.group, []).extend(
            FactLine(
                name=name, value=found.get(name), unit=fact.unit, about=about.get(name, fact.about)
            )
            for name in names
        )
    other = [
        FactLine(name=name, value=value, unit="", about="")
        for name, value in sorted(found.items())
        if name not in shown
    ]
    return lines | ({"other": other} if other else {})
