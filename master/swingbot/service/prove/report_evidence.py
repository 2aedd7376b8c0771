"""Collect the evidence for a report: gates, clues, whether the commit is merged, its posting, and
what was not checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.records import Tree
from swingbot.core.proof.clues import Clue, PairRows, clues
from swingbot.core.proof.gates import GateRow, in_order, in_short
from swingbot.core.report.report_facts import Gate
from swingbot.service.ports import LabSettings
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.gates import Gates

# Trees that everybody bases work on, under whatever name they are watched here.
_MAINLINE: Final = re.compile(r"(?:^|[/:])(?:torvalds|stable)/linux(?:\.git)?/?$")
_MAIN_BRANCHES: Final = re.compile(r"master|main|linux-\d+\.\d+\.y")
_UNCHECKED: Final[Mapping[str, str]] = {
    "reproduced": "other memory layouts of the same kernels",
    "tip": "whether it is still there at the tip of the branch",
    "series": "whether the rest of its series changes it",
    "revert": "whether reverting the commit on the tip restores the number",
    "code": "whether the commit changes built code at all",
    "executed": "whether the changed code runs in this test",
    "layout": "whether it is still there with functions aligned to 64 bytes",
    "facts": "whether the machine was the same for both sides",
    "elsewhere": "other testboxes",
}


def gates_of(gates: Gates, incident: int) -> list[GateRow]:
    """Return the gates of an incident in the order of the mail; empty if they are not open yet."""
    return in_order(gates.of_incident(incident))


def told_gates(gates: Sequence[GateRow]) -> tuple[Gate, ...]:
    """Return the gates that have a result, formatted for a mail."""
    return tuple(
        Gate(name=gate.gate, status=gate.status, reason=in_short(gate))
        for gate in gates
        if gate.status != "running"
    )


def clues_of(
    comparisons: Comparisons,
    headline: ComparisonRow,
    rows: Sequence[ComparisonRow],
    gates: Sequence[GateRow],
) -> tuple[Clue, ...]:
    """Return the counters and sizes that change together with the metric in every measured pair of
    kernels.
    """
    # the hooks change every counter
    known = [gate for gate in gates if gate.status == "pass" and gate.gate != "executed"]
    pairs = [
        PairRows(rows=comparisons.rows(gate.comparison), turned=gate.gate == "revert")
        for gate in known
        if gate.comparison is not None
    ]
    return clues(headline, rows, pairs, next((gate for gate in gates if gate.gate == "code"), None))


def not_checked(gates: Sequence[GateRow], headline: ComparisonRow) -> tuple[str, ...]:
    """Return what was not checked: gates without a result, and real hardware if the testbox is
    emulated.
    """
    known = {gate.gate: gate.status for gate in gates}
    emulated = (
        ["real hardware: the testbox is emulated"] if headline.label.startswith("emulated") else []
    )
    return (
        *emulated,
        *(
            words
            for name, words in _UNCHECKED.items()
            if known.get(name, "not run") in ("not run", "running")
        ),
    )


def merged(settings: LabSettings, tree: Tree) -> bool | None:
    """Return whether others base their work on the branch, by setting or by the tree's address and
    branch. None: unknown.
    """
    if tree.name in settings.merged_trees:
        return True
    if any(fnmatchcase(tree.name, pattern) for pattern in settings.mail.private_trees):
        return False
    return True if _MAINLINE.search(tree.url) and _MAIN_BRANCHES.fullmatch(tree.branch) else None
