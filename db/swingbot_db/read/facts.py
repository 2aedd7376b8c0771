"""Fact sheets: of one boot, and differences between the two sides of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from swingbot.core.stats.fact_differences import differences
from swingbot_jobs.contract.facts import sheet

from .rows import Row


def sheet_of(facts: Mapping[str, Any], build: Mapping[str, Any] | None) -> dict[str, list[Row]]:
    """Every listed fact by group, including facts of the kernel build; unknown values are None."""
    of_build = (
        {"config_sha256": build["config_sha256"], "compiler": build["compiler_version"]}
        if build
        else {}
    )
    return {
        group: [asdict(line) for line in lines]
        for group, lines in sheet({**facts, **of_build}).items()
    }


def facts_differ(boots: Sequence[Row], parts: Sequence[Row]) -> list[Row]:
    """Differences between the two sides' fact sheets on each testbox, blocking ones first.

    `boots`: {"side", "testbox", "spec", "k", "facts"}; `parts`: {"testbox", "spec", "unit_jobs",
    "repeatable"}. A fact is the subject of the comparison if every unit job of the part demands or
    compares it.
    """
    differing = []
    for part in parts:
        own = [
            boot
            for boot in boots
            if (boot["testbox"], boot["spec"]) == (part["testbox"], part["spec"])
        ]
        base, head = (
            {boot["k"]: boot["facts"] for boot in own if boot["side"] == side}
            for side in ("base", "head")
        )
        meant = [
            {*job.get("demand", ()), *job.get("compare_fact", ())} for job in part["unit_jobs"]
        ]
        compared = set.intersection(*meant) if meant else set()
        changes = differences(base, head, paired=bool(part["repeatable"]), compared=compared)
        differing += [{"testbox": part["testbox"]} | difference.to_json() for difference in changes]
    return differing
