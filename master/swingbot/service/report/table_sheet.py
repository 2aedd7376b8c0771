"""A table of kernels with everything that its formats print, for pages and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from swingbot.core.model.documents import Table
from swingbot.core.model.why_documents import Why
from swingbot.core.report.table.columns import ColumnSources, column, columns_of
from swingbot.core.report.table.formats import SAMPLES
from swingbot.core.report.table.sheet import Sheet, sheet_of_table
from swingbot.service.kernel.compare import compare_kernels, config_change, files_of
from swingbot.service.ports.kernels import CodeGrowth, KernelRecords, NoRecord
from swingbot_jobs.kernel_diff import FILE, headline

Row = dict[str, Any]
# Bytes read to show what the rows of one table changed: a pair of vm-x86_64 has 2.6 MB of records,
# compared in 0.3 s of a processor, and 120 KB of configurations.
RECORD_BYTES: Final = 24 << 20
CONFIG_BYTES: Final = 4 << 20
MOST_REASONS: Final = 8  # pairs listed of which nothing could be compared


class TableReads(Protocol):
    """Read models, each given an open connection."""

    def samples_of_table(
        self, conn: Any, id: int | str, metrics: list[str] | None = None
    ) -> list[Row]: ...
    def kernel_builds(self, conn: Any, keys: Iterable[str]) -> dict[str, Row]: ...


class WhyReads(TableReads, Protocol):
    def why_of_table(self, conn: Any, table: Table, changes: Sequence[Row]) -> list[Why]: ...


def sheet_of(
    read: TableReads,
    kernels: KernelRecords,
    conn: Any,
    table: Mapping[str, Any],
    *,
    form: str = "text",
    id_: str | None = None,
) -> Sheet:
    """Build the sheet of `table`, a document of `read.table`, with what `form` needs.

    `id_`: the object that readers know it by, if it is another one.
    """
    names = table["columns"]
    metrics = [*SAMPLES.get(form, ()), *(m for name in names for m in column(name).metrics)]
    samples = read.samples_of_table(conn, table["id"], metrics) if metrics else []
    sizes, growth = _code(read, kernels, conn, table) if "size" in names else ({}, {})
    sources = ColumnSources(
        names=[arm["name"] for arm in table["arms"]],
        samples=samples,
        sizes=sizes,
        growth=growth,
        references=pairs(table),
        measured=any(arm["up"] for arm in table["arms"]),
    )
    return sheet_of_table(table, samples, columns_of(names, sources), id_)


def pairs(table: Mapping[str, Any]) -> list[tuple[int, int]]:
    """(reference, row) of each row of headline metrics, by the first reference."""
    found = {
        (row["reference"], row["arm"]): None
        for row in table["rows"]
        if row["against"] == table["against"][0] and row["headline"]
    }
    return sorted(found, key=lambda pair: pair[1])


def explain(read: WhyReads, kernels: KernelRecords, conn: Any, table: Table) -> None:
    """Put `kernel_changes` and `why` into `table`, a document of `read.table`."""
    table["kernel_changes"] = changes = kernel_changes(read, kernels, conn, table)
    table["why"] = read.why_of_table(conn, table, changes)


def kernel_changes(
    read: TableReads, kernels: KernelRecords, conn: Any, table: Mapping[str, Any]
) -> list[Row]:
    """What each row changed in the kernel of its reference.

    Facts of `compare_kernels` with `reference` and `arm`, and a `headline` if they were compared.
    Code is compared as far as RECORD_BYTES reach, of the first pair in any case; configurations of
    the other pairs as far as CONFIG_BYTES do, and those that differ are listed. Of pairs with
    nothing to compare, MOST_REASONS say why.
    """
    compared = pairs(table) or [(0, arm["arm"]) for arm in table["arms"][1:]]
    keys = {arm["arm"]: arm["variant"]["build_key"] for arm in table["arms"]}
    builds = read.kernel_builds(conn, list(keys.values()))
    records, configs = _Allowance(FILE, RECORD_BYTES), _Allowance("config", CONFIG_BYTES)
    changes: list[Row] = []
    reasons = 0
    for reference, arm in compared:
        sides = [builds.get(keys[at]) for at in (reference, arm)]
        if records.covers(sides) or not changes:
            facts = compare_kernels(kernels, *sides)
        else:
            found = config_change(kernels, *sides) if configs.covers(sides) else None
            if not found:
                continue
            facts = {
                "state": "not compared",
                "reason": "Only its configuration was compared, as the table has many kernels;"
                " compare the two alone to see their code.",
                "config": found,
            } | {f"{name}_build": keys[at] for name, at in (("base", reference), ("head", arm))}
        words = {"headline": headline(facts)} if facts["state"] == "compared" else {}
        reasons += not words and not facts["config"]
        if words or facts["config"] or reasons <= MOST_REASONS:
            changes.append({"reference": reference, "arm": arm, **facts, **words})
    return changes


class _Allowance:
    """How many bytes of a kind of file may still be read; a pair that was read costs nothing."""

    def __init__(self, file: str, left: int) -> None:
        self._file, self._left, self._read = file, left, set[tuple[str, ...]]()

    def covers(self, sides: Sequence[Row | None]) -> bool:
        """Whether the files of a pair of builds may be read; counts them if so."""
        files = [
            found for side in sides if (found := ((side or {}).get("files") or {}).get(self._file))
        ]
        pair = tuple(file["sha256"] for file in files)
        if pair in self._read:
            return True
        cost = sum({file["sha256"]: int(file.get("size") or 0) for file in files}.values())
        if cost > self._left:
            return False
        self._left -= cost
        self._read.add(pair)
        return True


def _code(
    read: TableReads, kernels: KernelRecords, conn: Any, table: Mapping[str, Any]
) -> tuple[dict[int, Mapping[str, int]], dict[tuple[int, int], Sequence[str]]]:
    """Return the sizes of each row's kernel, and what differs in each pair of different builds;
    kernels without a record are left out.
    """
    keys = {arm["arm"]: arm["variant"]["build_key"] for arm in table["arms"]}
    builds = read.kernel_builds(conn, list(keys.values()))
    found: dict[tuple[str, str], CodeGrowth] = {}
    sizes: dict[str, Mapping[str, int]] = {}

    def ask(base: str, head: str) -> None:
        if (base, head) not in found and base in builds and head in builds:
            with suppress(NoRecord):
                growth = kernels.growth(files_of(builds[base]), files_of(builds[head]))
                found[base, head] = growth
                sizes.update({base: growth.base, head: growth.head})

    of_pairs = {pair: (keys[pair[0]], keys[pair[1]]) for pair in pairs(table)}
    for base, head in of_pairs.values():
        if base != head:
            ask(base, head)
    for key in keys.values():
        if key not in sizes:
            ask(key, key)
    return (
        {arm: sizes[key] for arm, key in keys.items() if key in sizes},
        {
            pair: found[builds_of].lines
            for pair, builds_of in of_pairs.items()
            if builds_of in found and builds_of[0] != builds_of[1]
        },
    )
