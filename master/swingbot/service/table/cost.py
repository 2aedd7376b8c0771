"""Estimate in advance what a table costs and which effects it can detect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from swingbot.core.model.records import BootNumbers, KernelBuild, NewComparison, Variant
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.boot_series import series_of
from swingbot.core.table.references import references_of
from swingbot.service.kernel.foresee_builds import build_seconds
from swingbot.service.ports import Git
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.builds import KernelBuilds
from swingbot.service.ports.specs import Specs
from swingbot.service.table.detectable_effects import DetectableEffect
from swingbot_jobs.testbox.boot_time import boot_seconds
from swingbot_jobs.testbox.definition import Testbox


@dataclass(frozen=True, slots=True, kw_only=True)
class TestboxCost:
    """Boots needed on one testbox. Times in seconds."""

    testbox: str
    boots: int  # still needed
    known: int  # existing boots that count
    kernels: int  # that it boots, each under its settings
    boot_seconds: float  # of one boot
    seconds: float
    at_most: bool  # no such boot was timed there yet: an upper estimate from its unit jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCost:
    """Kernels to build, boots to run, and the effects they can resolve. Times in seconds."""

    kernels: int  # distinct kernels
    builds: int  # kernels to build
    build_seconds: float
    unbuilt: Mapping[str, str]  # rows whose kernels do not build, and why
    identical: Sequence[Sequence[str]]  # groups of rows with identical images
    testboxes: Sequence[TestboxCost]
    resolves: Sequence[DetectableEffect] = ()

    @property
    def boots(self) -> int:
        """Boots needed on all testboxes."""
        return sum(testbox.boots for testbox in self.testboxes)

    @property
    def at_most(self) -> bool:
        """Whether any of the times is an upper bound."""
        return any(testbox.at_most for testbox in self.testboxes)

    @property
    def testbox_seconds(self) -> float:
        """Testbox time."""
        return sum(testbox.seconds for testbox in self.testboxes)

    @property
    def seconds(self) -> float:
        """Time to completion on an idle lab: kernels are built one by one, testboxes work in
        parallel.
        """
        return self.build_seconds + max(
            (testbox.seconds for testbox in self.testboxes), default=0.0
        )

    def to_json(self) -> dict[str, Any]:
        sums = {
            "boots": self.boots,
            "seconds": self.seconds,
            "testbox_seconds": self.testbox_seconds,
        }
        return asdict(self) | sums


def cost_of(
    git: Git,
    testboxes: KnownTestboxes,
    specs: Specs,
    builds: KernelBuilds,
    boots: Boots,
    new: NewComparison,
    variants: Sequence[Variant],
) -> TableCost:
    """Return the cost of `new`, whose arms have the kernels `variants`; `resolves` is empty."""
    keys = list(dict.fromkeys(variant.build_key for variant in variants))
    built = builds.by_key(keys)
    missing = {v.build_key: v for v in variants if v.build_key not in built}
    return TableCost(
        kernels=len(keys),
        builds=len(missing),
        build_seconds=sum(build_seconds(git, builds, list(missing.values()))),
        unbuilt={
            arm.name: build.trouble
            for arm, variant in zip(new.arms, variants, strict=True)
            if (build := built.get(variant.build_key)) and build.image_sha256 is None
        },
        identical=_identical(new, variants, built),
        testboxes=[
            _of_part(
                boots,
                new,
                variants,
                built,
                testboxes.known(testbox),
                spec,
                boot_seconds(testboxes.known(testbox), specs.get(spec)),
            )
            for testbox, spec in new.parts
        ],
    )


def priced(cost: TableCost, effects: Sequence[DetectableEffect]) -> TableCost:
    """Return the cost with the effects, each with what it takes to detect the smallest change of
    interest.
    """
    parts = {part.testbox: part for part in cost.testboxes}
    resolves = []
    for effect in effects:
        part = parts[effect.testbox]
        if effect.needs is not None:
            boots = effect.needs * part.kernels
            effect = replace(effect, needs_boots=boots, needs_seconds=boots * part.boot_seconds)
        resolves.append(effect)
    return replace(cost, resolves=resolves)


def widest_family(new: NewComparison) -> list[tuple[int, int]]:
    """Return the (reference, row) pairs of the reference rule with the most rows."""
    return max((references_of(rule, new.arms) for rule in new.against), key=len)


def _identical(
    new: NewComparison, variants: Sequence[Variant], builds: Mapping[str, KernelBuild]
) -> list[list[str]]:
    """Return the names of rows that boot the same image with the same settings, by group."""
    groups: dict[tuple[str, str], list[str]] = {}
    for arm, variant in zip(new.arms, variants, strict=True):
        build = builds.get(variant.build_key)
        image = build.image_sha256 if build else variant.build_key
        if image is not None:
            groups.setdefault((image, str(sorted(arm.specs.items()))), []).append(arm.name)
    return [names for names in groups.values() if len(names) > 1]


def _of_part(
    boots: Boots,
    new: NewComparison,
    variants: Sequence[Variant],
    builds: Mapping[str, KernelBuild],
    testbox: Testbox,
    spec: str,
    computed: float,
) -> TestboxCost:
    """Return the cost of one testbox; before its first boot each takes the `computed` seconds."""
    needed: Counter[tuple[str, str]] = Counter()  # boots by (image or build key, spec)
    known = 0
    for arm, variant in zip(new.arms, variants, strict=True):
        build = builds.get(variant.build_key)
        if build is not None and build.image_sha256 is None:
            continue
        image, own = (build.image_sha256 if build else None), arm.spec(spec)
        kernel = image or variant.build_key
        if (kernel, own) in needed:
            continue
        existing = 0
        if image is not None and testbox.repeatable:
            numbers = BootNumbers(range(new.first_k, new.first_k + new.boots), new.purpose)
            existing = len(boots.find(image, testbox.name, own, series_of(testbox, ""), numbers))
        needed[kernel, own] = new.boots - existing
        known += existing
    usual = boots.seconds(testbox.name, spec)
    number, each = sum(needed.values()), computed if usual is None else usual
    return TestboxCost(
        testbox=testbox.name,
        boots=number,
        known=known,
        kernels=len(needed),
        boot_seconds=each,
        seconds=number * each,
        at_most=usual is None and number > 0,
    )
