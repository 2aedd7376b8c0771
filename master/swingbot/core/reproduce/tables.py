"""The tables of a kit: lines of fields between tabs, without a head line, for awk and `read`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from swingbot.core.reproduce.kit import Change, Headline, KitBoot, Payload, Row, TableKit
from swingbot.core.text.plain import clean, columns, cut

NAME_COLUMNS: Final = 28  # of a row's name in what reproduce.sh prints


def numbers(boots: Iterable[KitBoot]) -> str:
    """Every value that was reported: boot, kernel, k, unit job, run, metric, value (17 digits: the very same double)."""
    rows = [
        f"{boot.id}\t{boot.kernel}\t{boot.k}\t{run.unit_job}\t{run.number}\t{metric}\t{value!r}\n"
        for boot in boots
        for run in boot.runs
        for metric, value in sorted(run.values.items())
    ]
    return "".join(rows)


def patch_path(kernel: str, number: int) -> str:
    """Where the `number`-th patch of a kernel is, from 1 on."""
    return f"kernels/{kernel}/{number:04}.patch"


def kernels(kit: TableKit) -> str:
    """The rows: directory, the row's own name, commit, sha256 of the image."""
    return "".join(
        _line(row.kernel.name, title(row), row.kernel.commit, row.kernel.image_sha256)
        for row in kit.rows
    )


def title(row: Row) -> str:
    """The row's own name on one line; that of its directory where nothing of it can be printed."""
    return clean(row.title) or row.kernel.name


def boots(kit: TableKit) -> str:
    """Boots in the order in which they are to be made: id, kernel, k, seconds that ours took, payload."""
    return "".join(
        _line(boot.id, boot.kernel, str(boot.k), f"{boot.seconds:.0f}", str(boot.payload))
        for boot in kit.boots
    )


def payloads(kit: TableKit) -> str:
    """What boots get: number, directory of the job, directory and sha256 of the root file system."""
    return "".join(
        _line(str(one.number), one.directory, one.rootfs_directory, _whole(one))
        for one in kit.payloads
    )


def _whole(payload: Payload) -> str:
    return payload.rootfs.whole if payload.rootfs is not None else "unknown"


def levels(kit: TableKit) -> str:
    """What the tables say: a line for each row and each of its references, one for a row without.

    Fields: unit job, metric, unit, better, kernel, its name padded for printing, reported level,
    reference, reported change in per cent, verdict, what it is compared with. `-` where there is
    none.
    """
    return "".join(
        line for headline in kit.headlines for line in _levels_of(kit, headline, _width(kit))
    )


def _width(kit: TableKit) -> int:
    return max((columns(cut(title(row), NAME_COLUMNS)) for row in kit.rows), default=0)


def _levels_of(kit: TableKit, headline: Headline, width: int) -> Iterator[str]:
    for row in kit.rows:
        name = row.kernel.name
        shown = cut(title(row), NAME_COLUMNS)
        level = headline.levels.get(name)
        of_row = [change for change in headline.changes if change.kernel == name]
        changes: list[Change | None] = [*of_row] or [None]
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


def _change(change: Change | None) -> tuple[str, str, str, str]:
    if change is None:
        return ("-", "-", "-", "-")
    pct = "-" if change.change_pct is None else repr(change.change_pct)
    return (change.reference, pct, change.verdict, change.words)


def _line(*fields: str) -> str:
    return "\t".join(fields) + "\n"
