"""Fact sheets: of one boot, and differences between the two sides of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from swingbot.core.stats.fact_differences import BootSettings, differences
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


def facts_differ(
    boots: Sequence[Row],
    parts: Sequence[Row],
    arms: Sequence[Row],
    pairs: Sequence[tuple[int, int]],
) -> list[Row]:
    """Differences between the fact sheets of compared arms on each testbox, blocking ones first.

    `boots`: {"arm", "testbox", "spec", "k", "facts"}; `parts`: {"testbox", "spec", "unit_jobs",
    "repeatable"}; `arms`: {"settings"}; `pairs`: (reference, arm). A fact is the subject of the
    table if every unit job of the part demands or compares it. A difference that several arms share
    is listed once, with their `arms`.
    """
    facts: dict[tuple[str, str, int], dict[int, Mapping[str, Any]]] = {}
    for boot in boots:
        of_arm = facts.setdefault((boot["testbox"], boot["spec"], boot["arm"]), {})
        of_arm[boot["k"]] = boot["facts"]
    differing: dict[tuple[str, str], Row] = {}
    for part in parts:
        place = part["testbox"], part["spec"]
        meant = [
            {*job.get("demand", ()), *job.get("compare_fact", ())} for job in part["unit_jobs"]
        ]
        compared = set.intersection(*meant) if meant else set()
        for reference, arm in pairs:
            base, head = (facts.get((*place, side), {}) for side in (reference, arm))
            paired = bool(part["repeatable"])
            settings = (_settings(arms[reference]), _settings(arms[arm]))
            for difference in differences(
                base, head, paired=paired, compared=compared, arms=settings
            ):
                row = {"testbox": part["testbox"], **difference.to_json()}
                known = differing.setdefault((part["testbox"], repr(row)), row | {"arms": []})
                known["arms"].append(arm)
    return list(differing.values())


def _settings(arm: Row) -> BootSettings:
    settings = arm["settings"] or {}
    return BootSettings(cmdline=settings.get("cmdline") or "", sysctl=settings.get("sysctl") or {})
