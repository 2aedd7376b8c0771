"""What was proved and what explains it, in the words of a mail."""

from __future__ import annotations

from collections.abc import Sequence

from swingbot.core.proof.clues import Clue
from swingbot.core.report.facts import Gate
from swingbot.core.text.plain import cut, wrap

_MOST_GATES = 10
_MOST_CLUES = 5
# gates whose failure has the layout of the kernel or noise for the likeliest cause
_SUSPICIOUS = ("code", "executed", "layout")


def gate_lines(gates: Sequence[Gate]) -> list[str]:
    """The evidence line: what failed first, what passed, what was not run with its reason; nothing where no gate is known."""
    if not gates:
        return []
    sorts = {
        status: [_gate(gate) for gate in gates[:_MOST_GATES] if gate.status == status]
        for status in ("fail", "pass", "not run")
    }
    words = {"fail": "Failed", "pass": "Passed", "not run": "Not run"}
    lines = [
        line
        for status, told in sorts.items()
        if told
        for line in wrap(f"{words[status]}: {', '.join(told)}.", "  ", "")
    ]
    suspect = [
        cut(gate.name, 30) for gate in gates if gate.status == "fail" and gate.name in _SUSPICIOUS
    ]
    return (
        [
            *lines,
            *wrap(
                "Layout or noise suspected: this is no proof against the commit, but look twice."
            ),
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
    return ["", "What goes with it:", *lines]
