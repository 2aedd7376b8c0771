"""The A/A record of a testbox: boots of one kernel that claimed no change.

Before it stands, reports about the testbox go to the operator alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorBoots:
    """A completed anchor: `kernel` (a variant), and the date (UTC) of each boot that came up.

    `mark` says why it does not count: it claimed a change, or the machine was changed or resumed
    later.
    """

    anchor: int
    kernel: int
    days: tuple[date, ...]
    mark: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AaRules:
    """What a testbox needs before reports about it leave the lab; 0 pairs: nothing.

    `virtual` are names or globs of virtual testboxes: reports about any other virtual testbox never
    leave.
    """

    pairs: int = 20
    days: int = 2
    virtual: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AaRecord:
    """Pairs of boots of one kernel since an anchor was last marked, and the days of these boots.

    `mark` is that of the anchor, with its number; None: no anchor is marked.
    """

    pairs: int = 0
    days: int = 0
    anchor: int | None = None
    mark: str | None = None

    def stands(self, rules: AaRules) -> bool:
        return rules.pairs <= 0 or (self.pairs >= rules.pairs and self.days >= rules.days)


def aa_record(anchors: Sequence[AnchorBoots]) -> AaRecord:
    """Return the record of the kernel with the most pairs; `anchors` in any order.

    Two boots of one anchor make a pair: neighbours in time, as base and head of a comparison are.
    """
    marked = max(
        (anchor for anchor in anchors if anchor.mark),
        key=lambda anchor: anchor.anchor,
        default=None,
    )
    sound = [anchor for anchor in anchors if marked is None or anchor.anchor > marked.anchor]
    pairs, days = max(
        (_counted(a for a in sound if a.kernel == kernel) for kernel in {a.kernel for a in sound}),
        default=(0, 0),
    )
    return AaRecord(
        pairs=pairs,
        days=days,
        anchor=None if marked is None else marked.anchor,
        mark=None if marked is None else marked.mark,
    )


def _counted(anchors: Iterable[AnchorBoots]) -> tuple[int, int]:
    known = list(anchors)
    days = {day for anchor in known if len(anchor.days) > 1 for day in anchor.days}
    return sum(len(anchor.days) // 2 for anchor in known), len(days)


def why_restricted(
    testbox: str, *, virtual: bool, anchors: Sequence[AnchorBoots], rules: AaRules
) -> str:
    """Return why reports about a testbox go to mail.to alone, and what to do; "" if they do not."""
    if virtual:
        if any(fnmatchcase(testbox, pattern) for pattern in rules.virtual):
            return ""
        return (
            f"{testbox} is a virtual testbox, which mail.virtual_testboxes does not name: its"
            " results go to mail.to alone"
        )
    record = aa_record(anchors)
    if record.stands(rules):
        return ""
    since = f" since anchor c{record.anchor} ({record.mark})" if record.mark else ""
    return (
        f"the A/A record of {testbox} has {record.pairs} of {rules.pairs} pairs of boots of one"
        f" kernel, on {record.days} of {rules.days} days{since}: its results go to mail.to alone"
        f" until `swingbot testbox screen {testbox}` or anchors of idle time complete it"
    )
