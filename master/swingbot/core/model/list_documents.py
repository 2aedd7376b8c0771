"""Lists of the lab, its trees and testboxes, and its state. `documents.py` has the rules."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from swingbot.core.model.documents import Bisection, LooksFixed, NamedCommit, Table
from swingbot.core.model.report_documents import LineOfAReport


class LineOfATable(TypedDict):
    id: str
    kind: str  # `asked`, `experiment`, `watch`, `attribute`, `prove`, `anchor`, `gate` or `still`
    tree: str
    against: list[str]  # references: `above`, `first`, `base`, `pair`, or names of rows
    boots: int  # boots of each kernel
    status: str  # `waiting`, `running`, `done`, `failed` or `cancelled`
    reason: str | None
    asked_by: list[str]  # people who asked for it with a token; empty: the service or its host
    created_at: str
    ended_at: str | None
    testboxes: list[str]
    arms: list[dict[str, Any]]  # `name`, `commit` and `subject` of its kernels
    # the headline row that changed most, worse first: `metric`, `unit_job`, `testbox`, `arm`,
    # `verdict`, `change_pct`, `interval_pct`, `margin_pct`, `more_boots`, `better`
    headline: dict[str, Any] | None
    worse: int  # headline rows with this verdict
    better: int  # headline rows with this verdict
    changed: int  # headline rows with this verdict
    same: int  # headline rows with this verdict
    unclear: int  # headline rows that are unclear or invalid


class LineOfABisection(TypedDict):
    id: str
    tree: str
    origin: str  # `asked` or `watch`
    good: str  # commit
    bad: str  # commit
    testbox: str
    unit_job: str
    metric: str
    reason: str | None
    created_at: str
    ended_at: str | None
    seconds: float
    change_pct: float | None
    probability: float | None
    boots: int
    status: str  # as of a bisection
    commits: int  # in the range
    culprit: NamedCommit | None  # the commit, if there is one
    phase: str | None  # while it runs
    why: str | None  # while it runs


class LineOfAnIncident(TypedDict):
    """An incident by its largest regression, else by its largest change."""

    id: str
    metric: str | None  # null for one that was merged into another
    unit_job: str | None  # null for one that was merged into another
    change_pct: float | None  # as in its mail; null: only the spread between boots changed
    interval_pct: list[float] | None  # 95 %, of the change
    spread_ratio: float | None  # spread between boots behind the culprit over that before it
    direction: str  # `worse`, `better` or `changed`
    more: int  # further metrics and testboxes where a search found it
    testboxes: list[str]
    owner: str | None  # person who decided about it last
    fixed_by: str | None  # commit
    looks_fixed: LooksFixed | None  # as of an incident
    created_at: str
    tree: str
    bisections: list[str]  # ids
    status: str  # as of an incident
    merged_into: str | None  # id
    reports: list[str]  # ids
    culprit: dict[str, Any]  # `commit`, `subject`, `author`


class LineOfAnOrder(TypedDict):
    id: str
    kind: str  # `build` or `boot`
    testbox: str | None  # null for a build
    k: int | None  # null for a build
    series: str | None  # null for a build
    reason: str | None
    priority: int  # higher goes first
    created_at: str
    ended_at: str | None
    tree: str
    commit: str
    subject: str
    state: str  # as of an order
    attempts: int  # made


class LineOfAMetric(TypedDict):
    unit_job: str
    metric: str
    testbox: str
    boots: int
    samples: int  # number of values
    latest: str  # time of the last boot
    noise: dict[str, Any] | None  # noise record
    noise_pct: float | None  # spread of a boot mean in percent
    # metric beside it that is the same number: in the latest comparison that has it, or else in its
    # noise record
    alias_of: str | None


class Patch(TypedDict):
    """A patch of a branch ([incidents](incidents.md#rebased-branches))."""

    number: int
    commit: str
    subject: str
    position: int  # in the branch
    state: str  # `same`, `moved`, `changed`, `new` or `dropped`
    patch_id: str | None  # `git patch-id --verbatim`
    author: str  # name and address
    was: str | None  # commit of its former version
    # measured against its parent: `testbox`, `unit_job`, `metric`, `change_pct`, `interval_pct`,
    # `verdict`, `margin_pct`, `more_boots`, `boots`, `comparison`, ...
    costs: list[dict[str, Any]]
    incidents: list[dict[str, Any]]  # `id`, `status`, `part`


class LineOfATree(TypedDict):
    id: str
    name: str
    testboxes: list[str]
    kconfig: str
    compiler: str
    trust: str
    created_at: str
    url: str  # address
    branch: str  # its branch
    base_commit: str  # commit
    tip_commit: str | None  # commit; null: never polled
    paths: list[str]  # globs; empty: all paths
    min_effect_pct: float | None  # as of a table
    state: str  # `watched` or `removed`
    problem: str | None  # why it cannot be polled
    polled_at: str | None  # time
    jobs: list[str]  # names of its job files
    tip_subject: str | None  # subject of the tip
    base_subject: str | None  # subject of the base; null if no kernel of it was asked for


class Standing(TypedDict):
    """A headline metric at the last measured tip of a branch, with the levels of its tips: of
    boots that were made when each tip was new."""

    testbox: str
    label: str | None
    unit_job: str
    metric: str
    unit: str
    better: str | None
    commit: str  # of the last measured tip
    comparison: str  # of that tip with the tip before it, as are verdict and change
    verdict: str
    change_pct: float | None
    interval_pct: list[float] | None
    margin_pct: float | None
    more_boots: int | None
    mean: float  # level of that tip
    levels: list[float]  # of the measured tips, oldest first, at most 120
    base_pct: float | None  # level against that of the base of the first change, if it is listed
    release: str | None  # subject of the last tip that is a release
    release_pct: float | None  # level against that of the release


class Tree(LineOfATree):
    standing: list[Standing]  # its headline metrics
    incidents: list[LineOfAnIncident]  # open ones
    open_tables: list[Table]  # that wait or run
    open_bisections: list[Bisection]  # that run
    patches: list[Patch]  # its patches
    # what its tips show: `testbox`, `unit_job`, `metric`, `upto`, `findings`
    histories: list[dict[str, Any]]
    # latest moves: `kind`, `old_commit`, `old_subject`, `new_commit`, `new_subject`, `seen_at`,
    # `comparison`, `status`; a subject is null if no kernel of the commit was asked for
    changes: list[dict[str, Any]]
    tables: list[LineOfATable]  # latest comparisons and experiments


class TestboxNow(TypedDict):
    state: str  # `idle`, `leased`, `booting`, `running`, `returning`, `lost` or `quarantined`
    since: str | None  # time
    why: str  # reason
    failures: int  # in a row
    holder: str | None  # controller that holds the lease
    until: str | None  # time at which the lease expires
    hardware: dict[str, Any] | None  # hardware as last seen
    attempt: str | None  # id of the attempt
    screening: dict[str, Any] | None  # `boots` and `of` while it is screened


class TimeOfATestbox(TypedDict):
    """Seconds of the last 24 hours, or since its first boot."""

    since: str  # time
    seconds: float  # in all
    busy: float  # booting, running or returning
    kernel: float  # free, while its orders wait for a kernel
    service: float  # free, although the kernel of an order is there
    idle: float  # without an order
    out: float  # lost or quarantined
    overhead: float | None  # (`busy` + `service`) / `busy`; null if it was never busy


class QueueEnd(TypedDict):
    """When the queue of a testbox or of the lab ends. The estimate is that of tables and
    bisections; it does not foresee requests.
    """

    seconds: float | None  # from now; 0: nothing waits; null: not known
    until: str | None  # time; null if nothing waits, too
    why: str | None  # why it is not known, or rough, a sentence


class LineOfATestbox(TypedDict):
    name: str
    label: str | None
    reason: str | None
    words: str
    tbox_group: str  # group
    facts: dict[str, Any]  # facts of the testbox's file
    state: str  # `active`, `drained`, `quarantined` or `gone`
    updated_at: str  # time
    queued: int  # orders that wait for it
    queue_end: QueueEnd  # of its boots
    boots: int  # boots it made
    boots_not_up: int  # of these that did not come up
    boot_seconds: float | None  # mean duration of the latest
    machine: NotRequired[str]  # its machine in one line
    # the usual counters of perf-stat that its latest boot lacked, a sentence; null if none
    lacking_counters: NotRequired[str | None]
    # shipped jobs: `job`, `runs`, `seconds` of a boot, `measured`, `too_long` (why requests are
    # refused, or null)
    jobs: NotRequired[list[dict[str, Any]]]
    # of its metrics with a noise record, in shipped jobs: `unit_job`, `metric`, `boots` (those of a
    # tip), `resolves_pct` and `words` (what so many boots a side show)
    resolves: NotRequired[list[dict[str, Any]]]
    # boots of one kernel: `pairs`, `days`, `since` (anchor that claimed a change, or null),
    # `restricted` (why reports about it go to mail.to alone, or null)
    aa_record: NotRequired[dict[str, Any]]
    doing: dict[str, Any] | None  # the order that it works on
    now: TestboxNow  # what it does


class Testbox(LineOfATestbox):
    # the last 30: `id`, `outcome`, `reason`, `k`, `series`, `seconds`, `booted_at`, `order`,
    # `commit` and `subject` of their kernel
    latest_boots: list[dict[str, Any]]
    # noise records ([noise](noise.md)), each with `alias_of` as of a metric
    noise: list[dict[str, Any]]
    # boots of kernels with two or more of its last 300, of up to 6 metrics: `unit_job`, `metric`
    # and `kernels`, each `variant`, `commit`, `subject`, `author` and `boots`: `boot`, `booted_at`,
    # `runs` and `pct`, in per cent of the mean of the kernel's boots
    scatter: list[dict[str, Any]]
    anchors: list[dict[str, Any]]  # its anchors
    anchor_commit: str | None  # kernel of its next anchor or night; null before there is one
    # its last [night](testboxes.md#what-can-it-resolve-one-night): `id`, `status`, `reason`,
    # `boots`, `done`, `spec`, `created_at`, `ended_at`, and at its end `answer`: `boots` that came
    # up, `suspicious`, and `metrics` with their figures, `findings` by kind, `measured` kinds and
    # `words`
    night: dict[str, Any] | None
    # the same of its last [doctor's night](testboxes.md#what-is-its-tuning-worth); `answer`:
    # `boots` that came up, `skipped` (items and why), and `items`: `item`, `boots`, `boot_seconds`
    # and `metrics` (`value`, `low`, `high` with the item off), `problem` and `words`
    doctor: dict[str, Any] | None
    events: list[dict[str, Any]]  # last changes: `at`, `was`, `state`, `why`, `attempt`, `order`
    alerts: list[dict[str, Any]]  # mails about it
    left_out: list[str]  # monitors with too many new names, in its last 20 boots
    time_use: TimeOfATestbox | None  # what it did in the last day; null before its first boot


class Swing(TypedDict):
    comparison: str | None
    testbox: str
    unit_job: str
    metric: str
    change_pct: float | None
    bisection: str | None
    created_at: str
    tree: str
    label: str | None
    id: int  # number
    direction: str  # `worse`, `better` or `changed`
    state: str  # as `swing_state` of a row
    source: str  # as `swing_source` of a row
    # source `spread`: spread between boots after the change over that before it, once pairs showed
    # it
    spread_ratio: float | None


class RecentChange(TypedDict):
    """An incident by its largest change, or a swing that has no incident yet."""

    testbox: str
    unit_job: str
    metric: str
    bisection: str | None
    created_at: str
    tree: str
    label: str | None
    direction: str  # `worse`, `better` or `changed`
    state: str  # as `swing_state` of a row
    source: str  # as `swing_source` of a row
    # source `spread`: spread between boots after the change over that before it, once pairs showed
    # it
    spread_ratio: float | None
    incident: str | None
    id: int | None  # number of the swing; null: a person began the bisection of the incident
    # id of the comparison that measured the change: of the incident if it has one; null: the
    # comparison of an incident without a swing has not begun
    comparison: str | None
    change_pct: float  # head against base in percent
    more: int  # further changes of the same incident
    culprit: dict[str, Any] | None  # `commit`, `subject`, `author`
    report: str | None  # id of its mail
    report_state: str | None  # as `state` of a report


class Status(TypedDict):
    now: str  # time
    idle: bool  # nothing is open ([operations](operations.md#is-anything-open))
    open: dict[str, int]  # what is open, by kind
    # orders by kind and state; one that Buildbot has accepted but not started is `ready`
    queue: dict[str, dict[str, int]]
    queue_end: QueueEnd  # of everything; each testbox has its own
    totals: dict[str, int]  # `built`, `cached`, `boots`, `runs`
    # attempts, those included that Buildbot has not started (`queued`)
    running: list[dict[str, Any]]
    testboxes: list[LineOfATestbox]  # all of them
    trees: list[LineOfATree]  # watched trees
    tables: list[Table]  # open comparisons and experiments
    bisections: list[Bisection]  # running ones
    recent_tables: list[LineOfATable]  # latest first
    recent_bisections: list[LineOfABisection]  # latest first
    incidents: list[LineOfAnIncident]  # latest first
    swings: list[Swing]  # latest first
    lately: list[RecentChange]  # what got worse, then what got better: the latest of each
    reports: list[LineOfAReport]  # latest first
    problems: list[dict[str, Any]]  # `text`, one sentence that says what to do, and `link`


class Search(TypedDict):
    """`/search.json?q=WORDS`: what matches every word, 20 of a kind; `&kind=KIND&after=CURSOR` has
    the next ones of a kind.
    """

    query: str  # as it was searched: at most 200 characters
    # `kind` and `id`, if the query is the id of something that exists
    object: dict[str, Any] | None
    hits: dict[str, int]  # how many there are, by kind
    next: dict[str, str]  # cursor of the next ones, by kind, where some follow
    # by the start of the commit, subject or author: `variant`, `commit`, `subject`, `author`,
    # `incident`, `comparison` (the latest)
    commits: list[dict[str, Any]]
    mails: list[dict[str, Any]]  # by subject: `id`, `subject`, `state`
    tests: list[str]  # names of unit jobs
    metrics: list[str]  # names of metrics that were compared
    testboxes: list[dict[str, Any]]  # `name`, `label`
    trees: list[dict[str, Any]]  # `name`, `branch`, `url`


class Idle(TypedDict):
    idle: bool  # nothing is open
    open: dict[str, int]  # what is open, by kind


class Health(TypedDict):
    """`/healthz`; 503 while the database is away. It answers within 6 s."""

    status: str  # `ok`; `degraded` while a part hangs; `failed` while the database does not respond
    reason: NotRequired[str]  # why the database does not respond; only then
    orders_open: NotRequired[int]  # orders that wait or run; only while the database responds
    hung: list[dict[str, Any]]  # parts without a heartbeat: `part`, `seconds`, `since`


class History(TypedDict):
    testbox: str
    unit_job: str
    metric: str
    unit: str
    # `comparison`, `commit`, `subject`, `mean`, `stddev` (between boots), `boots` of each tip,
    # oldest first
    levels: list[dict[str, Any]]
    # as of `swingbot stats history`; a change begins at point `at`, with 95 % at one of `first` to
    # `last`; `excursions` go and come back, `path` is a share of runs that changed
    findings: dict[str, Any]
