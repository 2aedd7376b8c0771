"""The gates between a culprit and its mail, and when a mail may be sent automatically."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from swingbot.core.model.statuses import GateStatus
from swingbot.core.text.numbers import duration

# Name and question of each gate, in the order of the mail.
GATES: Final[Mapping[str, str]] = {
    "reproduced": "do fresh boots of both kernels show it, and boots of another build layout?",
    "tip": "is it still there at the tip of the branch?",
    "series": "is it still there at the end of the series that the commit belongs to?",
    "revert": "does reverting the commit on the tip restore the number?",
    "code": "does the commit change built code or data at all?",
    "executed": "were the changed functions called during this unit job?",
    "layout": "is it still there with functions aligned to 64 bytes?",
    "facts": "were the facts of both sides' boots equal?",
    "elsewhere": "is it seen on the other testboxes that run this job?",
}
# Gates that need kernels or boots of their own, in the order in which the budget is spent.
MEASURED: Final = ("reproduced", "tip", "revert", "series", "executed", "layout")
# If one of these fails, code placement or noise is the most likely cause, but not the only one.
DOUBTFUL: Final = ("code", "executed")
# A failure of this gate limits where the change is seen. It does not refute the change.
TELLING: Final = ("elsewhere",)
UNASKED: Final = "left out by the setting proof.gates"


class BadGate(ValueError):
    """The gate does not exist; the message lists the known gates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    """One gate of an incident.

    `reason` is a clause that starts in lower case. `foreseen` {"builds", "boots", "seconds"} is the
    estimate from before the gate started.
    """

    gate: str
    status: GateStatus
    reason: str = ""
    comparison: int | None = None
    tries: int = 1  # number of times that it was requested, each with fresh boots
    foreseen: Mapping[str, Any] | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    age_seconds: float = 0.0  # since it was requested


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """Result of a gate."""

    status: GateStatus
    reason: str
    detail: Mapping[str, Any] = field(default_factory=dict)


def names(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of gates, which may be empty or contain `all`.

    Returns the names in the order of `GATES`. Raises BadGate.
    """
    given = {part.strip() for part in text.split(",") if part.strip()}
    unknown = sorted(given - GATES.keys() - {"all"})
    if unknown:
        raise BadGate(f"{unknown[0]!r} is not a gate; the gates are {', '.join(GATES)}, or all")
    return tuple(gate for gate in GATES if gate in given or "all" in given)


def decided(gates: Iterable[GateRow]) -> bool:
    """Return whether there are gates and none of them is still running."""
    known = [gate.status for gate in gates]
    return bool(known) and "running" not in known


def in_order(gates: Iterable[GateRow]) -> list[GateRow]:
    """Sort gates in the order of the mail, unknown ones last."""
    places = {name: place for place, name in enumerate(GATES)}
    return sorted(gates, key=lambda gate: (places.get(gate.gate, len(places)), gate.gate))


def doubted(gates: Iterable[GateRow]) -> list[str]:
    """Return the failed gates whose failure suggests layout or noise."""
    return [
        gate.gate for gate in in_order(gates) if gate.gate in DOUBTFUL and gate.status == "fail"
    ]


def in_short(gate: GateRow) -> str:
    """Return the reason in short form for a mail: the share of a change that remains.

    Other reasons are returned unchanged.
    """
    share = gate.detail.get("share")
    if gate.status != "pass" or not isinstance(share, float):
        return gate.reason
    where = {"reproduced": " in another build layout", "revert": " comes back"}.get(gate.gate, "")
    return f"{100.0 * share:.0f}% of it{where}"


def fit_to_leave(gates: Sequence[GateRow], required: Collection[str]) -> str | None:
    """Return why a mail with these gates must be held for a person, or None if it may be sent.

    A failed gate always holds the mail, except `elsewhere`, which reports where the change is seen.
    A required gate holds the mail unless it passed.
    """
    known = {gate.gate: gate for gate in gates}
    suspect = doubted(gates)
    if suspect:
        return f"layout or noise suspected: {_listed(known[name] for name in suspect)}"
    failed = [
        gate for gate in in_order(gates) if gate.status == "fail" and gate.gate not in TELLING
    ]
    if failed:
        return _listed(failed)
    missing = [
        name
        for name in GATES
        if name in required and (name not in known or known[name].status != "pass")
    ]
    if missing:
        return (
            "required but not passed:"
            f" {_listed(known.get(name, GateRow(gate=name, status='not run')) for name in missing)}"
        )
    return None


def _listed(gates: Iterable[GateRow]) -> str:
    words = {
        "fail": "failed",
        "not run": "was not run",
        "running": "is under way",
        "pass": "passed",
    }
    return "; ".join(
        f"{gate.gate} {words[gate.status]}" + (f" ({gate.reason})" if gate.reason else "")
        for gate in gates
    )


def within_budget(foreseen: Mapping[str, float], budget_seconds: float) -> dict[str, str]:
    """Return the gates that do not fit in the budget (0: unlimited), with the reason.

    `foreseen` are the estimated seconds of each gate. The budget is spent in the order of
    `MEASURED`; gates after one that does not fit may still fit.
    """
    remaining = budget_seconds
    out: dict[str, str] = {}
    for gate in [name for name in MEASURED if name in foreseen] if budget_seconds > 0 else []:
        if foreseen[gate] > remaining:
            out[gate] = (
                f"would take about {duration(foreseen[gate])}, and {duration(remaining)} of"
                " proof.budget_minutes are left"
            )
        else:
            remaining -= foreseen[gate]
    return out
