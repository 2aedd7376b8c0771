"""The tables of a kit: tab-separated fields without a header line, for awk and `read`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from swingbot.core.reproduce.kit import Headline, Kit, KitBoot, KitPayload, ReportedChange, Row
from swingbot.core.text.plain import clean, columns, cut

NAME_COLUMNS: Final = 28  # for the name of a row in the output of reproduce.sh


def numbers(boots: Iterable[KitBoot]) -> str:
    """Return all reported values: boot, kernel, k, unit job, run, metric, value (exact double)."""
    rows = [
        f"{boot.id}\t{boot.kernel}\t{boot.k}\t{run.unit_job}\t{run.number}\t{metric}\t{value!r}\n"
        for boot in boots
        for run in boot.runs
        for metric, value in sorted(run.values.items())
    ]
    return "".join(rows)


def patch_path(kernel: str, number: int) -> str:
    """Return the path of the `number`-th patch of a kernel, counted from 1."""
    return f"kernels/{kernel}/{number:04}.patch"


def kernels(kit: Kit) -> str:
    """Return the rows: directory, name, commit, sha256 of the image."""
    return "".join(
        _line(row.kernel.name, title(row), row.kernel.commit, row.kernel.image_sha256)
        for row in kit.rows
    )


def title(row: Row) -> str:
    """Return the name of the row on one line, or its directory if the name is not printable."""
    return clean(row.title) or row.kernel.name


def boots(kit: Kit) -> str:
    """Return the boots in order: id, kernel, k, duration in seconds, payload."""
    return "".join(
        _line(boot.id, boot.kernel, str(boot.k), f"{boot.seconds:.0f}", str(boot.payload))
        for boot in kit.boots
    )


def payloads(kit: Kit) -> str:
    """Return the payloads: number, job directory, directory and sha256 of the root file system."""
    return "".join(
        _line(str(one.number), one.directory, one.rootfs_directory, _whole(one))
        for one in kit.payloads
    )


def _whole(payload: KitPayload) -> str:
    return payload.rootfs.whole if payload.rootfs is not None else "unknown"


def levels(kit: Kit) -> str:
    """Return the reported tables: a line per row and reference, one line for a row without.

    Fields: unit job, metric, unit, better, kernel, its name padded for printing, reported level,
    reference, reported change in percent, verdict, kind of reference. `-` if there is none.
    """
    return "".join(
        line for headline in kit.headlines for line in _levels_of(kit, headline, _width(kit))
    )


def _width(kit: Kit) -> int:
    return max((columns(cut(title(row), NAME_COLUMNS)) for row in kit.rows), default=0)


def _levels_of(kit: Kit, headline: Headline, width: int) -> Iterator[str]:
    for row in kit.rows:
        name = row.kernel.name
        shown = cut(title(row), NAME_COLUMNS)
        level = headline.levels.get(name)
        of_row = [change for change in headline.changes if change.kernel == name]
        changes: list[ReportedChange | None] = [*of_row] or [None]
        for change in changes:
            yield _line(
                headline.unit_job,
                headline.metric,
                clean(headline.unit) or "-",
                headline.better or "-",
                name,
                shown + " " * (width - columns(shown)),
                "-" if level is None else repr(level),
                *_change(change),
            )


def _change(change: ReportedChange | None) -> tuple[str, str, str, str]:
    if change is None:
        return ("-", "-", "-", "-")
    pct = "-" if change.change_pct is None else repr(change.change_pct)
    return (change.reference, pct, change.verdict, change.words)


def _line(*fields: str) -> str:
    return "\t".join(fields) + "\n"
