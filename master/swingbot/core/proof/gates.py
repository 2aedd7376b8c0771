"""The gates that stand between a culprit and a mail: what they are called, what they ask, and when a mail may leave by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from swingbot.core.model.statuses import GateStatus

# In the order of the mail: name, and the question that it answers.
GATES: Final[Mapping[str, str]] = {
    "reproduced": "do fresh boots of commit and parent show it, and those of another build layout of both?",
    "tip": "is it still there at the tip of the branch?",
    "series": "is it still there at the end of the series that the commit belongs to?",
    "revert": "does reverting the commit on the tip give the number back?",
    "code": "does the commit change built code or data at all?",
    "executed": "were the changed functions called during this unit job?",
    "layout": "is it still there with functions aligned to 64 bytes?",
    "facts": "were the facts of both sides' boots equal?",
    "elsewhere": "is it seen on the other testboxes that run this job?",
}
# Gates that need kernels or boots of their own, in the order in which a budget is spent on them.
MEASURED: Final = ("reproduced", "tip", "revert", "series", "executed", "layout")
# What fails here has the place of code in memory, or noise, for its likeliest cause; yet such commits were guilty often enough.
DOUBTFUL: Final = ("code", "executed")
# A failure of this one says where the change is seen, not that it is not there.
TELLING: Final = ("elsewhere",)
UNASKED: Final = "left out by the setting proof.gates"


class BadGate(ValueError):
    """There is no such gate; the message says which there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    """One gate of an incident. `reason` is half a sentence that begins small; `foreseen` {"builds", "boots", "seconds"} was said before it began."""

    gate: str
    status: GateStatus
    reason: str = ""
    comparison: int | None = None
    tries: int = 1  # how often it was asked for; each time with fresh boots
    foreseen: Mapping[str, Any] | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    age_seconds: float = 0.0  # since it was asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """What a gate came to."""

    status: GateStatus
    reason: str
    detail: Mapping[str, Any] = field(default_factory=dict)


def names(text: str) -> tuple[str, ...]:
    """A comma-separated list of gates, `all` and the empty list included, in the order of `GATES`. Raises BadGate."""
    given = {part.strip() for part in text.split(",") if part.strip()}
    unknown = sorted(given - GATES.keys() - {"all"})
    if unknown:
        raise BadGate(f"{unknown[0]!r} is no gate; known are {', '.join(GATES)}, and all")
    return tuple(gate for gate in GATES if gate in given or "all" in given)


def decided(gates: Iterable[GateRow]) -> bool:
    """Whether nothing is under way any more; no gates at all are not decided."""
    known = [gate.status for gate in gates]
    return bool(known) and "running" not in known


def in_order(gates: Iterable[GateRow]) -> list[GateRow]:
    """As the mail lists them; unknown ones last."""
    places = {name: place for place, name in enumerate(GATES)}
    return sorted(gates, key=lambda gate: (places.get(gate.gate, len(places)), gate.gate))


def doubted(gates: Iterable[GateRow]) -> list[str]:
    """Gates whose failure makes one suspect layout or noise."""
    return [
        gate.gate for gate in in_order(gates) if gate.gate in DOUBTFUL and gate.status == "fail"
    ]


def in_short(gate: GateRow) -> str:
    """The reason as a mail has room for it: of a change that is still there, how much of it; everything else as it is."""
    share = gate.detail.get("share")
    if gate.status != "pass" or not isinstance(share, float):
        return gate.reason
    where = {"reproduced": " in another build layout", "revert": " comes back"}.get(gate.gate, "")
    return f"{100.0 * share:.0f}% of it{where}"


def fit_to_leave(gates: Sequence[GateRow], required: Collection[str]) -> str | None:
    """Why a mail with these gates needs a person before it leaves, in a sentence; None if it may leave by itself.

    A gate that failed always holds it (except `elsewhere`, which tells where the change is seen); one that is required holds it unless it passed.
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
        return f"required and not passed: {_listed(known.get(name, GateRow(gate=name, status='not run')) for name in missing)}"
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
    """Gates that a budget (0: none) has no room for, with the reason; `foreseen` are the seconds of each, taken in the order of `MEASURED`.

    A gate that does not fit is left out and those after it may still fit.
    """
    left = budget_seconds
    out: dict[str, str] = {}
    for gate in [name for name in MEASURED if name in foreseen] if budget_seconds > 0 else []:
        if foreseen[gate] > left:
            out[gate] = (
                f"would take about {spoken(foreseen[gate])}, and {spoken(left)} of proof.budget_minutes are left"
            )
        else:
            left -= foreseen[gate]
    return out


def spoken(seconds: float) -> str:
    """A time as people say it: `50 s`, `12 min`, `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
