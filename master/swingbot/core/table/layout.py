"""The rows of a table: kernels times axes, each with a name used in all tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from math import prod
from typing import Final

from swingbot.core import limits
from swingbot.core.text.plain import cut

DEFAULT_BOOTS: Final = 5  # enough for a paired verdict at the stated error rate, plus one spare
KERNEL: Final = "kernel"  # the axis of the kernels themselves


class BadLayout(ValueError):
    """The kernels and axes do not form a table; the message says what to change, `key` which option
    of the request, if it is one.
    """

    def __init__(self, message: str, key: str | None = None) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A variable other than the code: `compiler`, `kconfig`, `fragment`, `layout`, `cmdline` or
    `sysctl`.
    """

    name: str
    values: tuple[tuple[str, str], ...]  # (label, value); at least one


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutRow:
    """A row before anything is built: one kernel with one combination of the other axes."""

    name: str
    kernel: str  # name of the kernel
    axes: Mapping[str, str] = field(default_factory=dict)  # axis -> label, including `kernel`
    values: Mapping[str, str] = field(default_factory=dict)  # axis -> value, without `kernel`


def lay_out(
    kernels: Sequence[str], axes: Sequence[Axis], exclude: Sequence[Mapping[str, str]] = ()
) -> list[LayoutRow]:
    """Return all combinations, kernels varying fastest, except those matching `exclude`.

    Each entry of `exclude` maps axes to labels. Raises BadLayout without kernels, for duplicate
    names of kernels or labels, for an unknown axis or label in `exclude`, and for fewer than two
    or more than `TABLE_ROWS` rows.
    """
    _check(kernels, axes)
    _check_exclude(kernels, axes, exclude)
    left_out = defaultdict[tuple[str, ...], set[tuple[str, ...]]](set)
    for excluded in filter(None, exclude):
        names = tuple(sorted(excluded))
        left_out[names].add(tuple(excluded[name] for name in names))
    wanted = (
        row
        for row in _combined(kernels, axes)
        if not any(
            tuple(row.axes[name] for name in names) in labels for names, labels in left_out.items()
        )
    )
    rows = list(islice(wanted, limits.TABLE_ROWS + 1))
    if len(rows) > limits.TABLE_ROWS:
        count = len(rows) + sum(1 for _ in wanted)
        raise BadLayout(
            f"that makes {count} rows; a table can have at most {limits.TABLE_ROWS}"
            " (leave some out with --paths or --exclude)"
        )
    _check_names(rows)
    if len(rows) < 2:
        raise BadLayout(
            f"a table needs at least two rows, but this one has {len(rows)};"
            " name another kernel or another value of an axis"
        )
    return rows


def _check(kernels: Sequence[str], axes: Sequence[Axis]) -> None:
    if not kernels:
        raise BadLayout("a table needs at least one kernel")
    count = len(kernels) * prod(len(axis.values) for axis in axes)
    if count > limits.TABLE_COMBINATIONS:
        raise BadLayout(
            f"that makes {count} combinations; a table can have at most {limits.TABLE_ROWS} rows,"
            f" chosen from at most {limits.TABLE_COMBINATIONS}"
        )
    for key, what, names in (
        ("variant", "variants", list(kernels)),
        *((a.name, f"values of {a.name}", [label for label, _ in a.values]) for a in axes),
    ):
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:
            why = f"two {what} are called {cut(twice[0], 80)!r}; give each its own name"
            raise BadLayout(why, key)


def _check_names(rows: Sequence[LayoutRow]) -> None:
    """Raise BadLayout for two rows of one name, as where long names were cut."""
    names = Counter(row.name for row in rows)
    for name, times in names.items():
        if times > 1:
            raise BadLayout(
                f"{times} rows would be called {cut(name, 80)!r}; give their kernels and values"
                f" names that differ within {limits.ROW_NAME_CHARACTERS} characters"
            )


def _check_exclude(
    kernels: Sequence[str], axes: Sequence[Axis], exclude: Sequence[Mapping[str, str]]
) -> None:
    known = {axis.name: dict(axis.values) for axis in axes}
    known[KERNEL] = dict.fromkeys(kernels, "")
    for excluded in exclude:
        for name, label in excluded.items():
            if name not in known:
                raise BadLayout(
                    f"exclude: there is no axis {cut(name, 80)!r}; the axes are"
                    f" {', '.join(sorted(known))}",
                    "exclude",
                )
            if label not in known[name]:
                raise BadLayout(
                    f"exclude: {name} has no value {cut(label, 80)!r}; it has"
                    f" {', '.join(cut(one, 40) for one in islice(known[name], 20))}",
                    "exclude",
                )


def _combined(kernels: Sequence[str], axes: Sequence[Axis]) -> Iterator[LayoutRow]:
    varied = [axis.name for axis in axes if len(axis.values) > 1]
    for combination in product(*(axis.values for axis in axes)):
        labels = {axis.name: label for axis, (label, _) in zip(axes, combination, strict=True)}
        values = {axis.name: value for axis, (_, value) in zip(axes, combination, strict=True)}
        for kernel in kernels:
            words = [labels[name] for name in varied]
            yield LayoutRow(
                name=row_name(words, kernel if len(kernels) > 1 or not words else None),
                kernel=kernel,
                axes=labels | {KERNEL: kernel},
                values=values,
            )


def row_name(labels: Sequence[str], kernel: str | None) -> str:
    """Return the labels on the axes that vary, followed by the kernel if it varies."""
    return " ".join([*labels, *([] if kernel is None else [kernel])])[: limits.ROW_NAME_CHARACTERS]
