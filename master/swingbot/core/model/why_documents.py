"""What changed beside a headline number: part of the documents of tables and incidents."""

from __future__ import annotations

from typing import TypedDict


class RankedClue(TypedDict):
    """A counter or a symbol of a profile that changed, and does not only follow the work done."""

    kind: str  # `counter` or `symbol`
    metric: str
    base: float  # mean
    head: float  # the same
    change_pct: float | None  # null: a share, which has `points`
    points: float | None  # change of a share in percentage points


class ShareOfTime(TypedDict):
    """A share of a profile or of the time spent waiting for locks, in per cent of the samples or of
    the time of all CPUs.
    """

    metric: str
    base: float  # per cent
    head: float  # per cent
    changed: bool  # beyond the noise


class ExplainedChange(TypedDict):
    testbox: str
    unit_job: str
    metric: str
    change_pct: float | None
    clues: list[RankedClue]  # the strongest first; as in mails, without the sizes
    shares: list[ShareOfTime]  # the largest change first
    counters: int  # how many were judged beside it


class SizedFunction(TypedDict):
    """A function or variable that differs between the two kernels."""

    name: str
    object: str  # object file, such as `mm/page_alloc.o`
    base: int | None  # bytes; null: it does not exist
    head: int | None  # the same
    calls: float | None  # in one run, on the side that has it; null: not counted


class Why(TypedDict):
    """Beside the changes of one arm, the largest first: what else changed with them."""

    reference: int  # number of the arm it is compared with
    arm: int  # its number
    variant: str | None  # whose commit alone makes the change; null: not known
    changes: list[ExplainedChange]  # of its headline metrics
    functions: list[SizedFunction]  # the largest difference in size first, 12 at most
    functions_total: int | None  # null: the kernels were not compared
    # gate `executed` of the incident, once it is decided: `status` and `reason`
    executed: dict[str, str] | None
    lacks: list[str]  # sentences about what is missing
