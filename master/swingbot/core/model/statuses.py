"""States, statuses, kinds and outcomes as the database and the JSON documents spell them, one definition each.

Verdicts stand in `comparison_row`, what an order can come to in
`swingbot_jobs.contract.orders`.
"""

from __future__ import annotations

from typing import Literal

# Work.
OrderKind = Literal["build", "boot"]
OrderState = Literal["waiting", "ready", "running", "done", "failed", "cancelled"]
AttemptState = Literal["running", "ended", "dead"]
DispatchState = Literal["wanted", "placed", "over"]

# How the engine concludes a bisection.
ConclusionKind = Literal[
    "culprit", "credible_set", "not_reproduced", "inconclusive", "several", "creep"
]

# What is asked, and where it comes from.
ChangeKind = Literal["first", "advance", "rebase"]
# What a move of a branch made of a patch; below: it came in under the branch, with a newer base.
PatchState = Literal["same", "moved", "changed", "new", "below", "dropped"]
VariantOrigin = Literal["branch", "request", "patch"]  # patch: applied by us
RequestOrigin = Literal["asked", "watch"]  # of a bisection
# still: a known culprit's copy against its parent, in a branch that was rebased
# experiment: asked for, of any number of kernels
ComparisonKind = Literal[
    "asked", "experiment", "watch", "attribute", "prove", "anchor", "gate", "still"
]
# What a row of a table is compared with: the row above, the first one, the common base, or its
# counterpart within each combination of the other axes.
ReferenceRule = Literal["above", "first", "base", "pair"]
ComparisonStatus = Literal["waiting", "running", "done", "failed", "cancelled"]
BisectionEnd = ConclusionKind | Literal["failed", "cancelled"]
BisectionStatus = Literal["running"] | BisectionEnd
SteerAct = Literal["skip", "unskip", "hint", "resume"]

# Boots of a bisection. history: that were there before it began; they cost it nothing.
Phase = Literal["history", "ends", "search", "confirm"]

# What was seen.
Direction = Literal["worse", "better", "changed"]
# known: made by culprits that are known and still in the branch
SwingState = Literal[
    "suspected", "refuted", "open", "bisecting", "explained", "noted", "not_found", "known"
]
SwingSource = Literal["base", "history", "creep", "expected"]  # what raised the alarm
GateAnswer = Literal["pass", "fail", "not run"]  # of a gate that is over
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
]

# Mail.
ReportKind = Literal["first", "still", "update", "fixed", "retraction", "answer", "digest", "alert"]
ReportState = Literal["draft", "held", "queued", "sending", "sent", "unknown", "dropped"]
FirstState = Literal["draft", "held", "queued"]  # in which a report begins
ReportAct = Literal["hold", "release", "drop"]
ModerationAct = ReportAct | Literal["readdress", "stop", "resume"]
AlertKind = Literal["lost", "quarantined", "moved", "invalid", "stuck", "disk"]

# Whether a testbox may work; gone: it has no file any more. What it does is a `box.BoxState`.
TestboxState = Literal["active", "drained", "quarantined", "gone"]
