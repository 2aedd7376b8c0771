"""States, statuses, kinds and outcomes as spelled in the database and in JSON documents.

Each is defined once. Verdicts are defined in `comparison_row`, the final states of an order in
`swingbot_jobs.contract.orders`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, get_args

# Work.
OrderState = Literal["waiting", "ready", "running", "done", "failed", "cancelled"]
AttemptState = Literal["running", "ended", "dead"]
DispatchState = Literal["wanted", "placed", "over"]

# Conclusions of a bisection by the engine.
ConclusionKind = Literal[
    "culprit", "credible_set", "not_reproduced", "inconclusive", "several", "creep"
]

# Requests and their origins.
ChangeKind = Literal["first", "advance", "rebase"]
# What a move of a branch did to a patch. below: it is new and precedes the branch's own patches.
PatchState = Literal["same", "moved", "changed", "new", "below", "dropped"]
VariantOrigin = Literal["branch", "request", "patch"]  # patch: applied by swingbot
RequestOrigin = Literal["asked", "watch"]  # of a bisection
# still: a known culprit's copy against its parent, in a rebased branch
# experiment: a request with any number of kernels
ComparisonKind = Literal[
    "asked", "experiment", "watch", "attribute", "prove", "anchor", "gate", "still"
]
# What a row of a table is compared with: `above`, `first`, `base`, `pair`
# (`core/table/references.py`), or the name of a row.
Reference = str
REQUESTED: Final[tuple[ComparisonKind, ...]] = ("asked", "experiment")  # tables of people
ComparisonStatus = Literal["waiting", "running", "done", "failed", "cancelled"]
OVER: Final = ("done", "failed", "cancelled")  # of an order or comparison
BisectionEnd = ConclusionKind | Literal["failed", "cancelled"]
BisectionStatus = Literal["running"] | BisectionEnd
# Ends without an answer: `swingbot bisect resume` continues the search.
RESUMABLE: Final = ("inconclusive", "failed", "cancelled")
SteerAct = Literal["skip", "unskip", "hint", "resume"]

# Boots of a bisection. history: boots from before it began, at no cost to it.
Phase = Literal["history", "ends", "search", "confirm"]

# Findings.
Direction = Literal["worse", "better", "changed"]
# known: caused by known culprits that are still in the branch
SwingState = Literal[
    "suspected", "refuted", "open", "bisecting", "explained", "not_bisected", "not_found", "known"
]
SwingSource = Literal["base", "history", "creep", "spread", "expected"]  # what raised the alarm
GateAnswer = Literal["pass", "fail", "not run"]  # of a completed gate
GateStatus = GateAnswer | Literal["running"]
IncidentStatus = Literal["open", "expected", "fixed", "invalid", "duplicate", "closed"]
IncidentAct = Literal[
    "opened",
    "seen",
    "merge",
    "split",
    "close",
    "reopen",
    "expected",
    "fixed-by",
    "invalid",
    "checked",
    "still",
    "withdrawn",
    "removed",
    "prove",
]

# Mail.
ReportKind = Literal[
    "first", "still", "update", "fixed", "retraction", "answer", "digest", "alert", "result"
]
ReportState = Literal["draft", "held", "queued", "sending", "sent", "unknown", "dropped"]
FirstState = Literal["draft", "held", "queued"]  # initial state of a report
ReportAct = Literal["hold", "release", "drop"]
ModerationAct = ReportAct | Literal["readdress", "stop", "resume"]
AlertKind = Literal["lost", "quarantined", "moved", "invalid", "stuck", "disk"]

# Whether a testbox may work; gone: its file was removed. Its activity is `TestboxPhase`.
TestboxState = Literal["active", "drained", "quarantined", "gone"]


def search_over(status: str, branches: Iterable[bool]) -> bool:
    """Return whether a bisection is over for those who wait for it: it has ended, and so have the
    searches of the branches that its culprits merged (`branches`: whether each is over).
    """
    return status != "running" and all(branches)


def words(kind: Any) -> tuple[str, ...]:
    """Return the words of a type of this module, in order: those of all parts of a union."""
    return tuple(
        dict.fromkeys(
            word
            for part in get_args(kind)
            for word in ((part,) if isinstance(part, str) else words(part))
        )
    )
