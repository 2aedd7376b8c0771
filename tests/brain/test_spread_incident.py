"""A commit that triples the spread between boots and leaves the level as it was: from the end of
its bisection to the mail, on the store in memory.

That the bisection finds it is in test_bisect_spread_step.py.
"""

from __future__ import annotations

from dataclasses import replace
from email import message_from_bytes
from typing import Any, Final

from swingbot.core.thresholds import ATTRIBUTE_SPREAD_BOOTS
from swingbot.service.incident.keep import note_culprit
from tests.contract.store.world import a_bisection, a_lab, a_testbox, commit
from tests.fakes.memory_lab import MemoryLab

CULPRIT: Final = 2
KERNELS: Final = 4
SPREAD: Final = 0.02
GATES: Final = ("reproduced", "tip", "revert", "layout", "executed", "facts", "elsewhere")


def a_memory(factor: float) -> MemoryLab:
    """A noisy testbox; boots of the culprit and later commits spread `factor` times as far."""
    memory = MemoryLab(
        spreads={commit(n): SPREAD * (factor if n >= CULPRIT else 1.0) for n in range(KERNELS)}
    )
    settings = replace(
        memory.lab.settings,
        proof_gates=GATES,
        proof_require=("reproduced", "facts"),
        proof_budget_seconds=1e6,
    )
    memory.lab = replace(memory.lab, settings=settings)
    memory.boot_on(a_testbox(name, repeatable=False) for name in memory.testboxes)
    return memory


def named(memory: MemoryLab) -> None:
    """A bisection of a watched branch has named the culprit; the loop does the rest."""
    with memory.store.transaction() as tx:
        lab = a_lab(tx, KERNELS, testboxes=memory.testboxes)
        number = a_bisection(tx, lab, series="")
        culprit, parent = lab.kernels[CULPRIT], lab.kernels[CULPRIT - 1]
        found = {"commit": culprit.commit, "subject": culprit.subject}
        conclusion: dict[str, Any] = {
            "status": "culprit",
            "culprit": found,
            "culprits": [
                {
                    **found,
                    "probability": 0.96,
                    "change_pct": 0.4,
                    "interval_pct": [-1.0, 1.8],
                    "parent": parent.commit,
                }
            ],
            "members": [found],
            "probability": 0.96,
            "change_pct": 0.4,
            "interval_pct": [-1.0, 1.8],
            "spread_ratio": 3.0,
            "boots": 100,
            "kernels": 4,
            "builds": 4,
            "build_seconds": 4.0,
            "candidates": [{**found, "probability": 0.96, "state": "measured"}],
        }
        tx.bisections.conclude(number, "culprit", conclusion, "same mean, 3 times the spread")
        bisection = tx.bisections.get(number)
        assert bisection is not None
        note_culprit(memory.lab.tools.git, tx.trees, tx.sightings, tx.incidents, bisection, culprit)
    memory.run()


def gates_of(memory: MemoryLab) -> dict[str, tuple[str, str | None]]:
    with memory.store.transaction() as tx:
        return {row.gate: (row.status, row.reason) for row in tx.gates.of_incident(1)}


def the_mail(memory: MemoryLab) -> Any:
    (report,) = [row for row in memory.store.db.reports.values() if row.kind == "first"]
    return report


def test_a_change_of_the_spread_becomes_one_incident_and_one_held_mail_that_says_so() -> None:
    memory = a_memory(3.0)
    named(memory)
    (comparison,) = [row.comparison for row in memory.store.db.comparisons.values()]
    assert (comparison.kind, comparison.boots) == ("attribute", ATTRIBUTE_SPREAD_BOOTS)
    assert len(memory.store.db.incidents) == 1
    report = the_mail(memory)
    assert "times the spread between boots" in report.subject
    content = message_from_bytes(report.message).get_payload(decode=True)
    assert isinstance(content, bytes)
    body = " ".join(content.decode().split())
    assert "around the same mean as with its parent:" in body
    assert "24+24 fresh boots" in body
    assert report.state == "held"
    gates = gates_of(memory)
    words = "the change is of the spread between boots"
    assert gates.pop("facts")[0] == "pass"
    assert gates.pop("reproduced") == (
        "not run",
        f"{words}; fresh boots of commit and parent show it",
    )
    measuring = {name: gates[name] for name in GATES if name in gates}
    assert set(measuring.values()) == {("not run", words)}


def test_a_spread_that_fresh_boots_do_not_show_is_not_claimed() -> None:
    memory = a_memory(1.0)
    named(memory)
    report = the_mail(memory)
    assert report.subject.endswith("not confirmed") and report.state == "held"
    assert gates_of(memory)["reproduced"] == (
        "fail",
        "fresh boots of commit and parent do not show the change",
    )
