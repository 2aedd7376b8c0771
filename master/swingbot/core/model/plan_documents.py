"""What requests would cost. `documents.py` has the rules."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Resolution(TypedDict):
    """What a number of boots can show ([noise](noise.md))."""

    testbox: str
    unit_job: str
    boots: int
    words: str
    metric: str | None  # null: no noise record yet
    resolves_pct: float | None  # smallest change that the boots show
    wanted_pct: float | None  # smallest change that matters
    needs: int | None  # boots a side that would show it
    needs_boots: int | None  # of all kernels
    needs_seconds: float | None  # testbox time of these
    layout_assumed: bool  # spread between layouts


class CostOfATestbox(TypedDict):
    testbox: str
    boots: int  # boots to make
    known: int  # boots that exist already
    kernels: int  # different kernels
    boot_seconds: float  # of one boot
    seconds: float  # of all
    at_most: bool  # no such boot was timed yet, so the times are upper estimates


class Cost(TypedDict):
    """What a table or its extension costs."""

    kernels: int  # different kernels
    builds: int  # kernels to build
    build_seconds: float | None  # null: not known
    unbuilt: dict[str, Any]  # rows whose kernel is known not to build, with the reason
    identical: list[Any]  # groups of rows that boot the same image
    testboxes: list[CostOfATestbox]  # by testbox
    resolves: list[Resolution]  # what the boots resolve
    boots: int  # boots to make
    seconds: float | None  # until the end
    testbox_seconds: float | None  # sum over testboxes


class PlanOfATable(TypedDict):
    """`swingbot compare --dry-run`, `experiment --dry-run`, and the forms with `"dry_run": true`;
    once it is queued, `plan` of its document.
    """

    tree: str  # name of the tree
    against: list[str]  # references: `above`, `first`, `base`, `pair`, or names of rows
    boots_each: int  # boots of each row
    # `name`, `commit`, `subject`, `kconfig`, `compiler`, `layout`, `axes`, `settings`
    rows: list[dict[str, Any]]
    # settings that all rows have, patches of a stack, mails left out, testboxes that do not work at
    # present
    notes: list[str]
    cost: Cost  # what it costs


class PlanOfAnExtension(TypedDict):
    """`swingbot extend e3 --dry-run`; `swingbot extend` adds it to its document as `plan`."""

    id: str  # letter and number of what is extended
    boots_each: int  # boots of each row after the extension
    rows: int  # rows, with those that are added
    added: list[str]  # names of the rows that are added
    look: int  # the look that judges it, counted from 1
    looks_stated: int  # how many looks the request stated
    cost: Cost  # what the extension costs


class PlanOfAResumption(TypedDict):
    """`swingbot bisect resume b2 --boots N --dry-run`. At most; without builds."""

    id: str  # letter and number of what is resumed
    boots: int  # more boots
    most_boots: int  # limit of the search, with the boots that it had
    testboxes: list[str]  # that share the boots
    boot_seconds: float  # of one boot
    seconds: float  # until the end on an idle lab
    testbox_seconds: float  # of all testboxes together


class CostOfABisection(TypedDict):
    """Of a search that finds a culprit, before its first boot."""

    kernels: int  # kernels that a binary search measures
    builds: int  # kernels of these to build
    build_seconds: float  # time of these builds
    boots: int  # median of searches that find a culprit
    most_boots: int  # limit of the search, without its confirmation
    boot_seconds: float  # of one boot
    seconds: float  # until the end on an idle lab
    testbox_seconds: float  # sum over testboxes
    at_most: bool  # no such boot was timed yet, so the times are upper estimates


class PlanOfABisection(TypedDict):
    """`swingbot bisect start --dry-run`; `bisect start` adds it to its document as `plan`."""

    tree: str  # name of the tree
    good: str  # older end of the range
    bad: str  # newer end of the range
    commits: int  # commits after `good`, along first parents
    metric: str
    unit_job: str
    testboxes: list[str]  # that share the boots
    cost: CostOfABisection  # what it costs


class Explanation(TypedDict):
    """Only `text` and `action` if another engine decided the last step."""

    id: str
    text: list[str]  # the sentences
    action: dict[str, Any]  # what comes next
    belief: NotRequired[dict[str, Any]]  # what is believed
    bits_left: NotRequired[float | None]  # doubt that is left
    influences: NotRequired[list[dict[str, Any]]]  # boots that moved the belief, in bits
    what_ifs: NotRequired[list[dict[str, Any]]]  # the belief after either answer
    spreads: NotRequired[dict[str, Any]]  # spreads seen so far
