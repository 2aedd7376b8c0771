"""Other images beside a suspected step, where its two kernels have one build each.

A step between two images is one of code only if other images on either side agree: neighbours, and
controls (images of the same level, such as an older commit in place of the good end).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from swingbot.core.bisect.choice.boot_requests import first_k
from swingbot.core.bisect.evidence.range_evidence import Evidence
from swingbot.core.bisect.posterior.step_posterior import Posterior
from swingbot.core.bisect.thresholds import (
    IMAGE_CHECK_BOOTS,
    IMAGE_CHECK_ERRORS,
    SPREAD_SUSPECT,
    UNCHECKED_NEIGHBOURS,
    UNCHECKED_NEIGHBOURS_EXACT,
)
from swingbot.core.model.bisection import WantedBoot


class _Image(NamedTuple):
    position: int
    layout: int
    boots: int  # made and under way


def unseen_images(ev: Evidence, left: int, right: int) -> list[WantedBoot]:
    """A boot of as many unseen images on each side as are wanted before a step is believed."""
    wanted: list[WantedBoot] = []
    for side in _sides(ev, left, right):
        seen = sum(image.boots > 0 for image in side)
        unseen = [image for image in side if not image.boots]
        wanted += _boots(ev, unseen[: max(0, _wanted_kernels(ev) - seen)])
    return sorted(wanted, key=lambda boot: (boot.idx, boot.layout))


def further_checks(ev: Evidence, post: Posterior, left: int, right: int) -> list[WantedBoot]:
    """One more boot of the image on each side that has the fewest; [] when all have had theirs, or
    one side has a single image.

    Controls of both kernels are a pair that confirms, like builds of both in another layout. Turns
    mirror.
    """
    sides = _sides(ev, left, right)
    if min(map(len, sides)) == 1:
        return []
    most = 1 if ev.exact else _most_boots(post)
    chosen = [
        min(open_, key=lambda image: image.boots)
        for side in sides
        if (open_ := [image for image in side if image.boots < most])
    ]
    wanted = _boots(ev, chosen)
    if len(chosen) == 2 and all(image.layout for image in chosen):
        k = ev.next_k()
        wanted = [replace(boot, k=k, phase="confirm") for boot in wanted]
    pairs = len({b.k for b in ev.asked if b.phase == "confirm" and ev.where(b) in (left, right)})
    return wanted[::-1] if pairs % 2 else wanted


def few_between_steps(part: Evidence, last: int, left: int, right: int) -> bool:
    """Whether another step is so near this one that odd images explain both: a part of a range
    begins or ends there, with too few kernels in between.

    `last`: the last position of the whole range.
    """
    before, behind = _kernels_beside(part, left, right)
    most = _wanted_kernels(part)
    return (part.first > 0 and len(before) < most) or (
        part.first + part.last < last and len(behind) < most
    )


def _most_boots(post: Posterior) -> int:
    """Boots of an image after which its level is known well beside the step; the least where it
    may be the spread that changes."""
    if post.noisier[0] >= SPREAD_SUSPECT:
        return IMAGE_CHECK_BOOTS[0]
    enough = post.boot_var * (IMAGE_CHECK_ERRORS / max(abs(post.effect), 1e-12)) ** 2
    return math.ceil(min(max(enough, IMAGE_CHECK_BOOTS[0]), IMAGE_CHECK_BOOTS[1]))


def _sides(ev: Evidence, left: int, right: int) -> tuple[list[_Image], list[_Image]]:
    """The images before the step and behind it, controls of its two kernels first."""
    boots = Counter((ev.where(b), b.layout) for b in ev.asked)
    before, behind = _kernels_beside(ev, left, right)

    def images(kernel: int, near: Sequence[int]) -> list[_Image]:
        keys = [(kernel, 0), *(c for c in ev.controls if c[0] == kernel)]
        keys += [(p, 0) for p in near if p != kernel]
        return [_Image(p, layout, boots[p, layout]) for p, layout in keys]

    return images(left, before), images(right, behind)


def _kernels_beside(ev: Evidence, left: int, right: int) -> tuple[list[int], list[int]]:
    """The measurable positions on each side of the step that are wanted at most, the nearest
    first."""
    most = _wanted_kernels(ev)
    before = [p for p in range(left, -1, -1) if ev.measurable[p]][:most]
    behind = [p for p in range(right, ev.last + 1) if ev.measurable[p]][:most]
    return before, behind


def _wanted_kernels(ev: Evidence) -> int:
    """Kernels on each side of a step, those beside it included."""
    return UNCHECKED_NEIGHBOURS_EXACT if ev.exact else UNCHECKED_NEIGHBOURS


def _boots(ev: Evidence, images: Sequence[_Image]) -> list[WantedBoot]:
    wanted: list[WantedBoot] = []
    for image in images:
        k = first_k(ev, (image.position,), wanted)
        wanted.append(WantedBoot(ev.points[image.position], k, "search", image.layout))
    return wanted
