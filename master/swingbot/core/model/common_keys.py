"""Keys that many documents have, with one meaning: a document need not explain them again."""

from __future__ import annotations

from typing import Any

from swingbot.core.model.documents import Classed
from swingbot.core.model.order_documents import File


class CommonKeys(Classed):
    alias_of: str | None  # metric beside it that is the same number
    better: str | None  # `higher` or `lower`; null for a metric without a direction
    bisection: str | None  # id of the bisection
    booted_at: str  # time
    boots: int  # number of boots
    build_key: str  # digest of what goes into the build
    cc: list[str]  # addresses
    change_pct: float | None  # head against base in percent
    change_points: float | None  # a share: the change in points of a hundred
    commit: str  # 40 hex digits
    # recipients whom the commit alone names, not MAINTAINERS of the tree's base
    commit_only: list[str]
    comparison: str | None  # id of the comparison
    compiler: str  # name of the compiler
    counter: bool  # it explains and is not compared for its own sake
    created_at: str  # time
    dry_run: bool  # mail goes to the operator alone
    ended_at: str | None  # time; null while it is open
    error: str | None  # last answer of the mail server, if it refused
    eta_note: str | None  # what makes the estimate rough, a sentence
    # estimate; null if it is over, waits for a testbox, or nothing comparable was timed
    eta_seconds: float | None
    files: dict[str, File]  # files by name
    headline: bool  # this metric can swing
    id: str  # letter and number
    image_sha256: str | None  # digest of the bzImage
    incident: str | None  # id of the incident
    interval_pct: list[float] | None  # 95 % interval of the change in percent: low, high
    interval_points: list[float] | None  # a share: the interval in points of a hundred
    k: int  # number of the boot among those of its kernel and purpose
    kconfig: str  # name of the configuration
    label: str | None  # what a reader must know of the testbox, such as that it is emulated
    left_out: list[dict[str, Any]]  # `address` and `reason` of who gets nothing
    level: str | None  # how the level was computed if not as a mean
    lists: list[str]  # mailing lists among them
    # verdict `same`: the change that is excluded, in percent; of a share in points of a hundred
    margin_pct: float | None
    message_id: str  # Message-ID
    metric: str  # full name, such as `netperf.Throughput_Mbps`
    min_effect_pct: float | None  # smallest change that matters ([thresholds](thresholds.md))
    more_boots: int | None  # boots a side that would settle an unclear row
    name: str  # name
    number: int  # number
    order: str | None  # id of the order
    outcome: str  # `up`, `panicked`, `oopsed` or `hung`
    p: float | None  # P of the change where nothing changed
    paired: bool | None  # boot k of head is compared with boot k of base
    probability: float | None  # from 0 to 1
    problems: list[Any]  # what was odd about its boots
    reason: str | None  # one sentence; null if there is nothing to say
    seconds: float  # duration so far, or in all
    sent_at: str | None  # time
    size: int | None  # bytes
    spec: str  # digest of the boot spec
    spread_ratio: float  # spread of head over that of base, where it changed
    subject: str  # first line of the commit message
    testbox: str  # name
    testboxes: list[str]  # names
    to: list[str]  # addresses
    tree: str  # name of the tree
    trust: str  # `trusted` or `untrusted`
    unit: str  # unit of the metric
    unit_job: str  # name of the unit job
    variant: str  # id of the variant
    verdict: str  # `worse`, `better`, `changed`, `same`, `unclear` or `invalid`
    waits: list[str]  # why it waits for a testbox or for builds; empty if it does not
    words: str  # the same in words
