"""Functions and data that a commit changed, from the records of two builds.

The comparison covers the bytes of each function and initialised variable, their references,
and the unnamed constants they read. It ignores what differs without a change:
addresses, line numbers, build ids, dates, numbers that a compiler appends to names
(docs/kernel-builds.md has the list).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from swingbot_jobs.kernel_diff.record import KernelRecord, ObjectFile, SymbolRecord

# Suffixes of compilers: clones for constant arguments, split-off parts, cold parts, numbers.
# `__pfx_` is padding before a function.
_SUFFIX = re.compile(r"[0-9]+|constprop|isra|part|cold|llvm|localalias|lto_priv")
# Maximum length of a chain of renamed callees; longer chains are reported as changed.
_ROUNDS = 8
_COLD = re.compile(r"\.cold(?:\.[0-9]+)?$")


def source_name(name: str) -> str:
    """Return the source function of a symbol: `foo` of `foo.isra.0`, `foo.cold` and `__pfx_foo`."""
    parts = name.removeprefix("__pfx_").split(".")
    while len(parts) > 1 and _SUFFIX.fullmatch(parts[-1]):
        parts.pop()
    return ".".join(parts) or name


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSymbol:
    """A function (with its clones and cold parts) or a variable that differs.

    Sizes in bytes, None on the side that lacks it.
    """

    object: str
    name: str
    kind: str  # changed, new or gone
    what: tuple[str, ...]  # of a changed one: code, references, constants
    base: int | None
    head: int | None
    now_uses: tuple[str, ...] = ()  # symbols it refers to in the head only
    used: tuple[str, ...] = ()  # and in the base only


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamedSymbol:
    """The same code or data under another name, or the same name in another object."""

    object: str
    name: str
    was_object: str
    was: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedObject:
    """An object whose bytes differ; None on the side that lacks it.

    Sizes are often equal although the code differs: see the functions.
    """

    object: str
    base: Mapping[str, int] | None
    head: Mapping[str, int] | None
    parts: int  # functions and variables of it that differ


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeChange:
    """The differences between two builds."""

    functions: tuple[ChangedSymbol, ...]
    data: tuple[ChangedSymbol, ...]
    renamed: tuple[RenamedSymbol, ...]
    objects: tuple[ChangedObject, ...]

    @property
    def nothing(self) -> bool:
        """True: base and head run the same code on the same data, whatever else moved."""
        return not (self.functions or self.data)

    def to_json(self) -> dict[str, Any]:
        return {"nothing": self.nothing, **asdict(self)}


@dataclass(frozen=True, slots=True, order=True)
class _Key:
    """Location of a function or variable; `section` of the record: code or data."""

    section: str
    object: str
    name: str


_Groups = dict[_Key, tuple[SymbolRecord, ...]]


def code_change(base: KernelRecord, head: KernelRecord) -> CodeChange:
    """Compare two builds. Raises BadRecord.

    The time depends on the objects that differ, not on the kernel's size.
    """
    paths = sorted(
        path for path in base.paths() | head.paths() if base.sha256(path) != head.sha256(path)
    )
    sides = [
        {path: record.object(path) for path in paths if path in record.paths()}
        for record in (base, head)
    ]
    one, other = _grouped(sides[0]), _grouped(sides[1])
    renamed = _renamed(one, other)
    changes = _changes(one, other, renamed)
    count = Counter(key.object for key, _ in changes)
    return CodeChange(
        functions=tuple(change for key, change in changes if key.section == "code"),
        data=tuple(change for key, change in changes if key.section == "data"),
        renamed=tuple(
            RenamedSymbol(object=now.object, name=now.name, was_object=was.object, was=was.name)
            for was, now in sorted(renamed.items())
        ),
        objects=tuple(
            _object(path, sides[0].get(path), sides[1].get(path), count[path]) for path in paths
        ),
    )


def _object(
    path: str, base: ObjectFile | None, head: ObjectFile | None, parts: int
) -> ChangedObject:
    return ChangedObject(
        object=path,
        base=dict(base.sizes) if base else None,
        head=dict(head.sizes) if head else None,
        parts=parts,
    )


def _grouped(objects: Mapping[str, ObjectFile]) -> _Groups:
    """Return parts by the function or variable that they belong to."""
    groups: dict[_Key, list[SymbolRecord]] = defaultdict(list)
    for path, entry in objects.items():
        for section, parts in (("code", entry.code), ("data", entry.data)):
            for part in parts:
                groups[_Key(section, path, source_name(part.name))].append(part)
    return {key: tuple(parts) for key, parts in groups.items()}


def _renamed(base: _Groups, head: _Groups) -> dict[_Key, _Key]:
    """Pair parts that are gone with parts that appeared under another name or in another object.

    Only unambiguous pairs count.

    A part that refers to a renamed symbol can be paired after that symbol, hence the rounds.
    """
    pairs: dict[_Key, _Key] = {}
    for _ in range(_ROUNDS):
        gone = _by_form(base.keys() - head.keys() - pairs.keys(), base, _names(pairs))
        new = _by_form(head.keys() - base.keys() - set(pairs.values()), head, {})
        more = {
            was[0]: new[form][0]
            for form, was in gone.items()
            if len(was) == 1 and len(new.get(form, ())) == 1
        }
        if not more:
            break
        pairs |= more
    return pairs


def _names(renamed: Mapping[_Key, _Key]) -> dict[str, str]:
    return {was.name: now.name for was, now in renamed.items()}


def _by_form(
    keys: Iterable[_Key], groups: _Groups, names: Mapping[str, str]
) -> Mapping[Any, Sequence[_Key]]:
    parts: dict[Any, list[_Key]] = defaultdict(list)
    for key in keys:
        if key.name.startswith("("):  # the rest of a section: its name is its location
            continue
        parts[(key.section, _forms(groups[key], {**names, key.name: ""}))].append(key)
    return parts


def _forms(parts: Iterable[SymbolRecord], names: Mapping[str, str]) -> tuple[Any, ...]:
    """Return a function's identity without its name.

    Names that it refers to are replaced by `names`.
    """
    rows = (
        (
            bool(_COLD.search(part.name)),
            part.size,
            part.shape,
            part.constants,
            tuple(_replaced(use, names) for use in part.uses),
        )
        for part in parts
    )
    return tuple(sorted(rows))


def _replaced(use: str, names: Mapping[str, str]) -> str:
    if not names:
        return use
    name = source_name(use)
    return use.replace(name, names[name], 1) if name in names else use


def _changes(
    base: _Groups, head: _Groups, renamed: Mapping[_Key, _Key]
) -> list[tuple[_Key, ChangedSymbol]]:
    names, paired = _names(renamed), renamed.keys() | set(renamed.values())
    changes = []
    for key in sorted((base.keys() | head.keys()) - paired):
        if key not in base or key not in head:
            changes.append((key, _one_sided(key, base.get(key), head.get(key))))
        elif _forms(head[key], {}) not in (_forms(base[key], {}), _forms(base[key], names)):
            changes.append((key, _changed(key, base[key], head[key], names)))
    return changes


def _one_sided(
    key: _Key, base: tuple[SymbolRecord, ...] | None, head: tuple[SymbolRecord, ...] | None
) -> ChangedSymbol:
    return ChangedSymbol(
        object=key.object,
        name=key.name,
        kind="gone" if base else "new",
        what=(),
        base=_size(base),
        head=_size(head),
    )


def _changed(
    key: _Key,
    base: tuple[SymbolRecord, ...],
    head: tuple[SymbolRecord, ...],
    names: Mapping[str, str],
) -> ChangedSymbol:
    one, other = _forms(base, names), _forms(head, {})
    what = tuple(
        word
        for word, fields in (("code", (0, 1, 2)), ("references", (4,)), ("constants", (3,)))
        if _differ(one, other, fields)
    )
    used, uses = (
        {_replaced(use, names) for part in base for use in part.uses},
        {use for part in head for use in part.uses},
    )
    only = {"now_uses": tuple(sorted(uses - used)), "used": tuple(sorted(used - uses))}
    return ChangedSymbol(
        object=key.object,
        name=key.name,
        kind="changed",
        what=what,
        base=_size(base),
        head=_size(head),
        **only,
    )


def _size(parts: tuple[SymbolRecord, ...] | None) -> int | None:
    return sum(part.size for part in parts) if parts else None


def _differ(one: tuple[Any, ...], other: tuple[Any, ...], fields: tuple[int, ...]) -> bool:
    return sorted(tuple(form[i] for i in fields) for form in one) != sorted(
        tuple(form[i] for i in fields) for form in other
    )
