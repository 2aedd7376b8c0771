"""A table of kernels with everything that its formats print, for pages and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from swingbot.core.report.table.columns import ColumnSources, column, columns_of
from swingbot.core.report.table.formats import SAMPLES
from swingbot.core.report.table.sheet import Sheet, sheet_of_table
from swingbot.service.kernel.compare import NoRecord, Open, compare_kernels, record_of
from swingbot_jobs.kernel_diff import KernelRecord, headline

Row = dict[str, Any]
MOST_CHANGES: Final = 8  # pairs of kernels whose code is compared; the column `size` has all


class TableReads(Protocol):
    """Read models, each given an open connection."""

    def samples_of_table(
        self, conn: Any, id: int | str, metrics: list[str] | None = None
    ) -> list[Row]: ...
    def kernel_builds(self, conn: Any, keys: Iterable[str]) -> dict[str, Row]: ...


def sheet_of(
    read: TableReads,
    open_artifact: Open,
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
    sources = ColumnSources(
        names=[arm["name"] for arm in table["arms"]],
        samples=samples,
        records=_records(read, open_artifact, conn, table) if "size" in names else {},
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


def kernel_changes(
    read: TableReads, open_artifact: Open, conn: Any, table: Mapping[str, Any]
) -> list[Row]:
    """What each row changed in the kernel of its reference, for a table of few rows.

    Facts of `compare_kernels` with `reference` and `arm`, and a `headline` if they were compared.
    """
    compared = pairs(table) or [(0, arm["arm"]) for arm in table["arms"][1:]]
    if len(compared) > MOST_CHANGES:
        return []
    keys = {arm["arm"]: arm["variant"]["build_key"] for arm in table["arms"]}
    builds = read.kernel_builds(conn, list(keys.values()))
    changes = []
    for reference, arm in compared:
        facts = compare_kernels(open_artifact, *(builds.get(keys[at]) for at in (reference, arm)))
        words = {"headline": headline(facts)} if facts["state"] == "compared" else {}
        changes.append({"reference": reference, "arm": arm, **facts, **words})
    return changes


def _records(
    read: TableReads, open_artifact: Open, conn: Any, table: Mapping[str, Any]
) -> dict[int, KernelRecord]:
    """Map each row to its build's code record; identical builds share one."""
    keys = {arm["arm"]: arm["variant"]["build_key"] for arm in table["arms"]}
    builds = read.kernel_builds(conn, list(keys.values()))
    records: dict[str, KernelRecord] = {}
    for key in dict.fromkeys(keys.values()):
        try:
            if key in builds:
                records[key] = record_of(open_artifact, builds[key])
        except NoRecord:
            continue
    return {arm: records[key] for arm, key in keys.items() if key in records}
