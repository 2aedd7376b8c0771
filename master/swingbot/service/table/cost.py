"""Estimate in advance what a table costs and which effects it can detect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from swingbot.core.model.records import BootNumbers, KernelBuild, NewComparison, Variant
from swingbot.core.plan.boot_series import series_of
from swingbot.core.stats.looks import Look
from swingbot.core.table.references import references_of
from swingbot.service.kernel.foresee_builds import build_seconds
from swingbot.service.ports import Lab, Transaction
from swingbot.service.table.detectable_effects import DetectableEffect, detectable_effects


@dataclass(frozen=True, slots=True, kw_only=True)
class TestboxCost:
    """Boots needed on one testbox. Times in seconds."""

    testbox: str
    boots: int  # still needed
    known: int  # existing boots that count
    seconds: float
    at_most: bool  # no similar boot was timed there yet, so the deadline counts


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCost:
    """Kernels to build, boots to run, and the effects they can resolve. Times in seconds."""

    kernels: int  # distinct kernels
    builds: int  # kernels to build
    build_seconds: float
    unbuilt: Mapping[str, str]  # rows whose kernels do not build, and why
    identical: Sequence[Sequence[str]]  # groups of rows with identical images
    testboxes: Sequence[TestboxCost]
    resolves: Sequence[DetectableEffect]

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
    lab: Lab, tx: Transaction, new: NewComparison, variants: Sequence[Variant]
) -> TableCost:
    """Return the cost of `new`, whose arms have the kernels `variants`."""
    keys = list(dict.fromkeys(variant.build_key for variant in variants))
    builds = tx.builds.by_key(keys)
    missing = {v.build_key: v for v in variants if v.build_key not in builds}
    return TableCost(
        kernels=len(keys),
        builds=len(missing),
        build_seconds=sum(build_seconds(lab.tools.git, tx.builds, list(missing.values()))),
        unbuilt={
            arm.name: build.trouble
            for arm, variant in zip(new.arms, variants, strict=True)
            if (build := builds.get(variant.build_key)) and build.image_sha256 is None
        },
        identical=_identical(new, variants, builds),
        testboxes=[
            _of_part(lab, tx, new, variants, builds, testbox, spec) for testbox, spec in new.parts
        ],
        resolves=detectable_effects(
            lab,
            tx,
            new.parts,
            new.boots,
            widest_family(new),
            share=Look(stated=new.looks_stated).share,
        ),
    )


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
    lab: Lab,
    tx: Transaction,
    new: NewComparison,
    variants: Sequence[Variant],
    builds: Mapping[str, KernelBuild],
    testbox: str,
    spec: str,
) -> TestboxCost:
    definition = lab.catalogue.testboxes.known(testbox)
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
        if image is not None and definition.repeatable:
            numbers = BootNumbers(range(new.first_k, new.first_k + new.boots), new.purpose)
            existing = len(tx.boots.find(image, testbox, own, series_of(definition, ""), numbers))
        needed[kernel, own] = new.boots - existing
        known += existing
    usual = tx.boots.seconds(testbox, spec)
    boots = sum(needed.values())
    return TestboxCost(
        testbox=testbox,
        boots=boots,
        known=known,
        seconds=boots * (lab.settings.deadline_boot if usual is None else usual),
        at_most=usual is None and boots > 0,
    )
