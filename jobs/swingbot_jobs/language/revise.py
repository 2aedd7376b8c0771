"""Merging of the documents of a job file, as LKP merges them.

The first document is the base; each later one is merged over it by top-level key,
and later documents do not affect each other. In addition to plain keys there are
`a.b: v` (set b inside a, leave the rest of a), `a+: v` (append to a) and `a-: v` (remove v from a;
`a-:` alone removes a). A key keeps its first position when its value changes:
the order of keys is the order of axes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Final

from swingbot_jobs.yaml_lines import JobError, LocatedValue

# Keys to which a later value is added.
_ADDING: Final = re.compile(r"mail_to|mail_cc|constraints|need_(?!(?:memory|cpu|modules)$)\w+")


def revised(documents: list[Mapping[str, LocatedValue]]) -> Iterator[dict[str, LocatedValue]]:
    """Return the base, then the base merged with each later document. Raises JobError."""
    if documents:
        base = laid_over({}, documents[0])
        yield dict(base)
        for document in documents[1:]:
            yield laid_over(base, document)


def laid_over(
    base: Mapping[str, LocatedValue], over: Mapping[str, LocatedValue]
) -> dict[str, LocatedValue]:
    """Return `base` merged with `over`; neither is modified."""
    merged = dict(base)
    for key, value in over.items():
        if not _is_revision(key):
            merged[key] = (
                _sum(merged[key], value) if key in merged and _ADDING.fullmatch(key) else value
            )
    for key, value in over.items():
        if _is_revision(key):
            path = key.removesuffix(key[-1] if key[-1] in "+-" else "").split(".")
            _revise(merged, [*_block_with(path[0], merged), *path], key[-1], value, value)
    return merged


def _is_revision(key: str) -> bool:
    return not key.startswith(("#", ":")) and (key.endswith(("+", "-")) or "." in key)


def _block_with(key: str, table: Mapping[str, LocatedValue]) -> list[str]:
    """Return the path of the `if role` block with `key`, or an empty path without one.

    So `netperf.test: TCP_RR` finds netperf there too.
    """
    blocks = (
        name
        for name, value in table.items()
        if name.startswith("if role ") and value.table and key in value.table
    )
    return [] if key in table else list(itertools.islice(blocks, 1))


def _revise(
    table: dict[str, LocatedValue], path: list[str], how: str, value: LocatedValue, at: LocatedValue
) -> None:
    """Set, append to or remove from the entry at `path`; tables on the path are copied."""
    head, rest = path[0], path[1:]
    if not head:
        raise JobError(f"{at.where}: a dotted key has an empty part")
    inner = table.get(head)
    if rest:
        if inner is not None and inner.content is not None and inner.table is None:
            raise JobError(
                f"{at.where}: {'.'.join(path)!r} sets a key inside {head!r},"
                f" which is a plain value in line {inner.line}"
            )
        if inner is None and how == "-":
            return
        copy = dict(inner.table or {}) if inner else {}
        _revise(copy, rest, how, value, at)
        table[head] = LocatedValue(copy or None, (inner or at).line, (inner or at).file)
    elif how == "+":
        table[head] = _sum(inner, value) if inner else value
    elif how == "-":
        _take_away(table, head, value, at)
    else:
        table[head] = value


def _sum(old: LocatedValue, new: LocatedValue) -> LocatedValue:
    """Join both values: lists without repetition, tables merged, plain values as a list."""
    if old.content is None or new.content is None:
        return new if old.content is None else old
    if old.table is not None or new.table is not None:
        return LocatedValue(_as_table(old) | _as_table(new), new.line, new.file)
    items: list[LocatedValue] = []
    for item in (*old.items, *new.items):
        if all(item.content != known.content for known in items):
            items.append(item)
    return LocatedValue(tuple(items), new.line, new.file)


def _as_table(value: LocatedValue) -> dict[str, LocatedValue]:
    if value.table is not None:
        return value.table
    return {item.text or "": LocatedValue(None, item.line, item.file) for item in value.items}


def _take_away(
    table: dict[str, LocatedValue], key: str, value: LocatedValue, at: LocatedValue
) -> None:
    """Remove `key`, or those of its items that `value` names. Missing items are ignored."""
    old = table.get(key)
    if old is None:
        return
    if value.content is None:
        del table[key]
        return
    gone = set(value.table) if value.table is not None else {item.text for item in value.items}
    if old.table is not None:
        remaining: dict[str, LocatedValue] | tuple[LocatedValue, ...] = {
            name: entry for name, entry in old.table.items() if name not in gone
        }
    elif isinstance(old.content, tuple):
        remaining = tuple(item for item in old.items if item.text not in gone)
    else:
        raise JobError(
            f"{at.where}: items can be removed from a list or a table;"
            f" {key} is a plain value in line {old.line}: to remove it, write '{key}-:'"
        )
    table[key] = LocatedValue(remaining or None, value.line, value.file)
