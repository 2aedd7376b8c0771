"""What a plan says besides its rows and its cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from swingbot.core.table.layout import Axis
from swingbot.core.text.plain import cut
from swingbot.service.ports.testboxes import Testboxes
from swingbot.service.table.kernels import KernelRequest

_SHOWN: Final = 12  # patches of a stack listed at most


def notes_on(
    states: Testboxes, kernels: KernelRequest, axes: Sequence[Axis], testboxes: Sequence[str]
) -> list[str]:
    """Return sentences on settings that all rows have, patches of a stack, mails that are not
    applied, and testboxes that do not work at present.
    """
    return [*_common(axes), *_patches(kernels), *_idle(states, testboxes)]


def _common(axes: Sequence[Axis]) -> Iterator[str]:
    for axis in axes:
        if len(axis.values) == 1:
            (label, value), *_ = axis.values
            yield f"every row has {axis.name} {label}" + (f": {value}" if value != label else "")


def _patches(kernels: KernelRequest) -> Iterator[str]:
    for row in kernels.rows:
        patches = row.series.patches if not row.each else ()
        for patch in patches[:_SHOWN]:
            yield f"{row.name}: {patch.number}/{len(patches)} {cut(patch.subject, 80)}"
        if len(patches) > _SHOWN:
            yield f"{row.name}: and {len(patches) - _SHOWN} more patches"
        yield from (f"{row.name}: {note}" for note in row.series.notes)
        yield from (f"left out: {mail}" for mail in row.series.left_out)


def _idle(states: Testboxes, testboxes: Sequence[str]) -> Iterator[str]:
    reasons = states.reasons()
    for testbox in testboxes:
        state, reason = reasons.get(testbox, ("active", None))
        if state != "active":
            why = f" ({reason})" if reason else ""
            yield f"{testbox} is {state}{why}: its boots wait for `swingbot testbox resume`"
