"""The lines of a mail about proof and clues."""

from __future__ import annotations

from collections.abc import Sequence

from swingbot.core.proof.clues import Clue
from swingbot.core.report.report_facts import Gate
from swingbot.core.text.plain import cut, wrap

_MOST_GATES = 10
_MOST_CLUES = 5
# Gates whose failure points to code layout or noise as the likeliest cause
_SUSPICIOUS = ("code", "executed", "layout")


def gate_lines(gates: Sequence[Gate]) -> list[str]:
    """Return the failed gates, the passed ones, and those not run, with reasons."""
    if not gates:
        return []
    gates_by_status = {
        status: [_gate(gate) for gate in gates[:_MOST_GATES] if gate.status == status]
        for status in ("fail", "pass", "not run")
    }
    words = {"fail": "Failed", "pass": "Passed", "not run": "Not run"}
    lines = [
        line
        for status, labels in gates_by_status.items()
        if labels
        for line in wrap(f"{words[status]}: {', '.join(labels)}.", "  ", "")
    ]
    suspect = [
        cut(gate.name, 30) for gate in gates if gate.status == "fail" and gate.name in _SUSPICIOUS
    ]
    return (
        [
            *lines,
            *wrap("Layout or noise suspected. This does not clear the commit, but look twice."),
        ]
        if suspect
        else lines
    )


def _gate(gate: Gate) -> str:
    return cut(gate.name, 30) + (f" ({cut(gate.reason, 140)})" if gate.reason else "")


def clue_lines(clues: Sequence[Clue]) -> list[str]:
    if not clues:
        return []
    lines = [
        line
        for clue in clues[:_MOST_CLUES]
        for line in wrap(f"{clue.kind} {cut(clue.name, 80)}: {cut(clue.words, 120)}", "    ", "  ")
    ]
    return ["", "Related changes:", *lines]
