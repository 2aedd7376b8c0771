"""What a report says of its proof: gates, clues, whether the commit is merged, the mail it was posted as, what nobody checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.records import Tree
from swingbot.core.proof.clues import Clue, PairRows, clues
from swingbot.core.proof.gates import GateRow, in_order, in_short
from swingbot.core.report.facts import Gate
from swingbot.service.ports import Lab
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.gates import Gates

# Trees on whose branch everybody bases work, whatever they are called here.
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
    """The gates of an incident in the order of the mail; empty before they were opened."""
    return in_order(gates.of_incident(incident))


def told_gates(gates: Sequence[GateRow]) -> tuple[Gate, ...]:
    """Those that have an answer, in the words of a mail."""
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
    """Counters and sizes that go with the change in every pair of kernels that was measured."""
    # hooks change every counter
    known = [gate for gate in gates if gate.status == "pass" and gate.gate != "executed"]
    pairs = [
        PairRows(rows=comparisons.rows(gate.comparison), turned=gate.gate == "revert")
        for gate in known
        if gate.comparison is not None
    ]
    return clues(headline, rows, pairs, next((gate for gate in gates if gate.gate == "code"), None))


def not_checked(gates: Sequence[GateRow], headline: ComparisonRow) -> tuple[str, ...]:
    """What nobody looked at: gates without an answer, and real hardware where the testbox is emulated."""
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


def merged(lab: Lab, tree: Tree) -> bool | None:
    """Whether others base their work on the branch: by setting, or as the tree's address and branch say. None is unknown."""
    if tree.name in lab.policies.merged_trees:
        return True
    if any(fnmatchcase(tree.name, pattern) for pattern in lab.policies.mail.private_trees):
        return False
    return True if _MAINLINE.search(tree.url) and _MAIN_BRANCHES.fullmatch(tree.branch) else None
