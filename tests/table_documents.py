"""The read model's JSON of a table of kernels that measured given levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from swingbot.core.model.statuses import Reference
from swingbot.core.stats.family import compare_family
from swingbot.core.stats.rows import BootRuns, Rule
from swingbot.core.table.references import references

UNIT_JOB = "will-it-scale-page_fault1-process-100%"
METRIC = "will-it-scale.processes"
RULE = Rule(better="higher", min_effect_pct=1.0)


def boots(level: float, number: int = 4) -> list[BootRuns]:
    """Boots around `level`, their mean exactly there."""
    spread = [0.999, 1.001, 0.9995, 1.0005][:number]
    return [BootRuns(k=k, values=(level * s,)) for k, s in enumerate(spread)]


def a_table(
    levels: Mapping[str, Sequence[float | None]],
    names: Sequence[str],
    against: Sequence[Reference] = ("above",),
    **more: Any,
) -> dict[str, Any]:
    """A table that measured `levels` by testbox; None: no kernel."""
    missing = {i for measured in levels.values() for i, level in enumerate(measured) if not level}
    rows = []
    for testbox, measured in levels.items():
        arms = [boots(level) if level else [] for level in measured]
        for rule in against:
            pairs = references(rule, [{}] * len(names), missing)
            pairs = [pair for pair in pairs if not set(pair) & missing]
            for (reference, arm), row in zip(pairs, compare_family(arms, pairs, RULE), strict=True):
                place = {"testbox": testbox, "unit_job": UNIT_JOB, "metric": METRIC}
                own = {"arm": arm, "reference": reference, "against": rule, "headline": True}
                rows.append(row.to_json() | place | own | {"unit": "ops/s", "counter": False})
    job = {"name": UNIT_JOB, "program": "will-it-scale", "params": {"test": "x"}, "runs": 1}
    return {
        "id": "e3",
        "tree": "linux",
        "status": "done",
        "reason": None,
        "boots": 4,
        "against": list(against),
        "columns": [],
        "facts_differ": [],
        "parts": [{"testbox": testbox, "unit_jobs": [job]} for testbox in levels],
        "rows": rows,
        "arms": [an_arm(number, name, number in missing) for number, name in enumerate(names)],
    } | more


def an_arm(number: int, name: str, broken: bool = False) -> dict[str, Any]:
    return {
        "arm": number,
        "name": name,
        "axes": {},
        "settings": {},
        "state": "failed" if broken else "built",
        "reason": "mm/x.c:1: error" if broken else None,
        "variant": {
            "commit": f"{number:040x}",
            "subject": f"patch {number}",
            "compiler": "gcc",
            "kconfig": "vm-x86_64",
        },
    }
