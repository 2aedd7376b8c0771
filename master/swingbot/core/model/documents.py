"""Documents that pages, `--json` and scripts get, as types: tables, bisections and incidents. The
modules `*_documents.py` have the others.

Read models make them. `python -m tests.json_page` makes the sections of docs/json.md from these
types, and `swingbot/web/api/openapi.py` the schemas of `/api/v1/openapi.json`. A key's comment is
its explanation there; a key without one is explained in `common_keys.py`.
`tests/db/test_json_page.py` holds real documents against the page.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from swingbot.core.model.why_documents import Why


class UnitJob(TypedDict):
    """Also `swingbot jobs expand`, with `result_root` and `boot_seconds`."""

    name: str
    runs: int  # runs in one boot
    params: dict[str, str]  # parameters
    program: str  # name of the program
    result_root: NotRequired[str]  # its result root, as far as it is known
    boot_seconds: NotRequired[float]  # seconds of a boot with all unit jobs, roughly
    monitors: NotRequired[list[str]]  # monitors with a run of their own
    warmup: NotRequired[int]  # runs that are not counted
    demand: NotRequired[dict[str, Any]]  # facts that it demands
    compare_fact: NotRequired[list[str]]  # facts that are compared on purpose
    functions: NotRequired[list[str]]  # functions whose calls are counted
    events: NotRequired[list[str]]  # events that are counted in place of the usual ones
    cmdline: NotRequired[str]  # words that it puts on the command line
    sysctl: NotRequired[dict[str, Any]]  # sysctls that it sets
    work_seconds: NotRequired[float]  # guest seconds of one run of fixed work, roughly


class Side(TypedDict):
    """Levels of one kernel in a row."""

    mean: float | None  # level
    runs: int  # runs that count
    boots: int  # boots that count
    stddev: float | None  # between boots
    stddev_within: float | None  # of a run within its boot


class Variant(TypedDict):
    """`swingbot show v3`, `/variant/v3.json`, and within other documents."""

    id: str
    tree: str
    commit: str
    subject: str
    author: str  # name and address
    kconfig: str
    compiler: str
    layout: int  # 0 is the default link order
    build_key: str
    origin: str  # `branch`, `request` or `patch`
    trust: str
    build: str | None  # `built`, `failed`, or null: not built yet
    image_sha256: str | None
    build_seconds: float | None  # duration of the build
    build_cached: bool | None  # taken from a cache
    build_errors: list[str] | None  # first errors of the compiler
    build_order: str | None  # id of the order
    build_order_state: str | None  # state of the order; `ready` until Buildbot starts it


class Part(TypedDict):
    """What runs on one testbox."""

    testbox: str
    spec: str
    label: str | None
    unit_jobs: list[UnitJob]  # unit jobs of each boot
    state: str  # state of the testbox
    repeatable: bool  # it counts instructions


class Arm(TypedDict):
    """A kernel of a table."""

    arm: int  # number, from 0
    name: str
    variant: Variant  # its kernel
    axes: dict[str, str]  # value of each axis
    settings: dict[str, Any]  # command line and sysctls of its boots
    from_block: int  # first block in which it was booted
    state: str  # `waiting`, `building`, `built` or `failed`
    reason: str | None
    boots: int  # made
    up: int  # of these that came up
    incident: str | None


class BootOfAnArm(TypedDict):
    """A boot in a table."""

    arm: int  # number of the arm
    id: str
    testbox: str
    spec: str
    k: int
    outcome: str
    reason: str | None
    seconds: float
    booted_at: str
    order: str | None


class WantedOrder(TypedDict):
    """An order of a table."""

    id: str
    kind: str  # `build` or `boot`
    testbox: str | None  # null for a build
    spec: str | None  # null for a build
    k: int | None  # null for a build
    state: str  # `waiting`, `ready`, `running`, `done`, `failed` or `cancelled`
    reason: str | None
    build_key: str


class Progress(TypedDict):
    """Builds and boots that exist, and how many there will be."""

    builds: int  # made
    builds_total: int  # in all
    builds_known: int  # known before it began
    boots: int  # made
    boots_total: int  # in all
    boots_known: int  # known before it began
    failed: int  # orders that failed or were cancelled


# a keyword cannot be declared in a class
Classed = TypedDict("Classed", {"class": str})  # `benchmark`, `time`, `counter` or `profile`


class VerdictKeys(Classed):
    better: str | None
    verdict: str
    reason: str | None
    base: Side  # levels of the reference
    head: Side  # levels of the kernel
    change_pct: float | None
    interval_pct: list[float] | None
    change_points: NotRequired[float | None]
    interval_points: NotRequired[list[float] | None]
    spread_ratio: NotRequired[float]
    min_effect_pct: float | None
    more_boots: int | None
    level: str | None


class RowKeys(VerdictKeys):
    testbox: str
    unit_job: str
    metric: str
    headline: bool
    counter: bool
    alias_of: str | None
    label: str | None
    unit: str
    # what another build of equal code may add: `sd_pct`, `df` (null: assumed, not measured) and
    # its `share` of the variance of the change
    layout: NotRequired[dict[str, Any]]
    # runs far off on one side beyond chance, and the percentile that shows them
    tail: NotRequired[dict[str, Any]]
    problems: list[Any]


class Row(RowKeys):
    """One metric of one unit job on one testbox: head against base, its reference.
    `mean` and the interval are of boot means; a missing value is null, never 0.
    """

    spec: str
    arm: int  # number of the arm
    reference: int  # number of the arm it is compared with
    against: str  # rule of the reference
    # against `above`: the commit that makes the change, where the arm above is its parent
    attributed_to: str | None
    margin_pct: float | None
    p: float | None
    paired: bool | None
    swing: int | None  # number of the swing that it raised
    # `suspected`, `refuted`, `open`, `bisecting`, `explained`, `not_bisected`, `not_found`,
    # `known`
    swing_state: str | None
    swing_source: str | None  # `base`, `history`, `creep`, `spread` or `expected`
    bisection: str | None  # id of the bisection of that swing
    proof: str | None  # id of the comparison that proves or refutes it
    evidence: SwingEvidence | None  # of the alarm and that proof


class SwingEvidence(TypedDict):
    """Null: not yet."""

    alarm: str | None  # why it was suspected
    answer: str | None  # `accept`, `reject`, `more`, `known` or `none`
    reason: str | None  # why
    pairs: int | None  # boots of each kernel
    bf: float | None  # Bayes factor
    wanted: float | None  # the one to accept
    mean: float | None  # log ratio
    spread_ratio: float | None  # head over base
    left_pct: float | None  # beyond known culprits


class Table(TypedDict):
    """A comparison (c5) or an experiment (e3): kernels, each against its reference.
    Requests add `plan`; `show` and the page add `kernel_changes` and `why`.
    """

    id: str
    # `asked`, `experiment`, `watch`, `attribute`, `prove`, `anchor`, `gate` or `still`
    kind: str
    tree: str
    change: int | None  # number of the change of a branch
    against: list[str]  # references: `above`, `first`, `base`, `pair`, or names of rows
    columns: list[str]  # columns beside the numbers
    first_k: int  # first boot number
    boots: int  # boots of each kernel
    looks: int  # how often it is judged
    looks_stated: int  # of these, how many its request stated
    min_effect_pct: float | None  # smallest change of interest; null: that of each metric
    unjudged: int  # counters without a row: others have stronger evidence
    status: str  # `waiting`, `running`, `done`, `failed` or `cancelled`
    reason: str | None
    asked_by: list[str]  # people who asked for it with a token; empty: the service or its host
    private_to: list[str] | None  # who may read it, with operators; null: everybody
    created_at: str
    ended_at: str | None
    seconds: float
    incident: str | None
    arms: list[Arm]  # its kernels; of a comparison `base` and `head`
    parts: list[Part]  # what runs where
    # facts that differ from those of the reference: `testbox`, `arms`, `fact`, `kind`, `base`,
    # `head`, `words`, `about` ([facts](facts.md#comparing-the-sheets))
    facts_differ: list[dict[str, Any]]
    rows: list[Row]  # benchmark metrics first, then worse first, then larger first
    next: str | None  # `?after=` gives the next 500 rows
    boot_list: list[BootOfAnArm]  # its boots
    orders: list[WantedOrder]  # what it ordered
    progress: Progress  # how far it is
    waits: list[str]
    eta_seconds: float | None
    eta_note: str | None
    # [plan of a table](#plan-of-a-table) as it was queued, or after `swingbot extend` the
    # [plan of an extension](#plan-of-an-extension)
    plan: NotRequired[dict[str, Any]]
    # what each arm changed in the kernel of its `reference` ([kernel-builds](kernel-builds.md)); of
    # many arms the code of the first, then differing configurations (`state` `not compared`)
    kernel_changes: NotRequired[list[dict[str, Any]]]
    why: NotRequired[list[Why]]  # what changed beside the headline numbers, by arm


class NamedCommit(TypedDict):
    commit: str
    subject: str


class Culprit(NamedCommit):
    """A commit that a bisection named."""

    parent: str  # commit
    probability: float | None
    change_pct: float | None
    interval_pct: list[float] | None
    share: NotRequired[float | None]  # share of the whole change


class Candidate(NamedCommit):
    probability: float | None
    state: str  # such as `not built`, `measured` or `skipped`


class LogEntry(NamedCommit):
    """A boot that a bisection requested."""

    asked_at: str  # time
    seen_at: str | None  # time; null: not observed yet
    phase: str  # `history`, `ends`, `search` or `confirm`
    idx: int  # position in the range; 0 is the good end
    k: int
    layout: int  # layout of the build
    testbox_index: int  # which testbox of the group
    boot: str | None  # id of the boot
    order: str | None
    order_state: str | None  # state of the order
    outcome: str | None  # outcome of the boot
    values: list[float] | None  # one for each run
    mean: float | None  # mean of the values
    skip: str | None  # why it gave no value


class Point(NamedCommit):
    """A commit of the range with what is known of it."""

    author: str  # name and address
    idx: int  # position in the range; 0 is the good end
    variant: str
    skipped: str | None  # why it cannot be measured
    weight: float | None  # prior weight, relative to the others
    hint: float | None  # factor of the last hint
    build_key: str
    build: str | None  # `built`, `failed`, or null
    image_sha256: str | None
    build_seconds: float | None  # duration of the build
    build_errors: list[str] | None  # first errors of the compiler
    probability: float | None
    observations: list[LogEntry]  # its boots
    boots: int
    mean: float | None  # mean of its boot means
    sd: float | None  # spread between its boots
    state: str  # such as `not built`, `measured` or `skipped`


class ConfigChange(TypedDict):
    base: str  # commit
    head: str  # commit
    config: list[dict[str, Any]]  # symbols that differ: `symbol`, `base`, `head`


class Bisection(TypedDict):
    """`swingbot bisect run --json` prints the keys from `status` to `candidates` with `id` null
    ([bisect-run](bisect-run.md)).
    """

    id: str
    tree: str
    origin: str  # `asked` or `watch`
    good: str  # commit
    bad: str  # commit
    testbox: str
    spec: str
    series: str  # whose boots are shared; empty: everyone's
    unit_job: str
    metric: str
    terms: dict[str, Any]  # terms that it was begun with
    # `running`, `culprit`, `credible_set`, `several`, `creep`, `not_reproduced`, `inconclusive`,
    # `failed` or `cancelled`
    status: str
    reason: str | None
    created_at: str
    ended_at: str | None
    seconds: float
    label: str | None
    unit_jobs: list[UnitJob]  # what its boots run
    parent: str | None  # id of the bisection whose merge this one searches
    merged: str | None  # that merge
    steps: int  # length of the journal
    culprit: NamedCommit | None  # the commit, if there is one
    culprits: list[Culprit]  # all that were named
    # likely, but less than `confidence`: `commit`, `subject`, `probability`, `settled_by`
    suspect: NotRequired[dict[str, Any] | None]
    probability: float | None
    change_pct: float | None
    interval_pct: list[float] | None
    # spread between boots after the commit over that before it, if that is what changed
    spread_ratio: float | None
    boots: int  # boots that were observed
    builds: int  # kernels that were built for it
    candidates: list[Candidate]  # every commit of the range
    p_none: float | None  # probability that nothing changed
    phase: str | None  # `ends`, `search` or `confirm` while it runs
    why: str | None  # the reason for the next boots
    next: list[dict[str, Any]]  # boots that were just requested
    noise: dict[str, Any] | None  # spreads that were expected before any boot
    levels: list[float] | None  # believed levels of the good and the bad end
    max_boots: int | None  # budget
    kernels: NotRequired[int]  # kernels that were measured
    members: NotRequired[list[NamedCommit]]  # commits of a credible set
    build_seconds: NotRequired[float | None]  # time of its builds
    points: list[Point]  # good end, then every commit
    log: list[LogEntry]  # what was requested, when, and the result
    unit: str | None  # unit of the metric; null: not known yet
    better: str | None
    swing: dict[str, Any] | None  # `comparison` and `change_pct` of the swing that it is about
    incident: str | None
    steers: list[dict[str, Any]]  # advice: `act`, `points`, `factor`, `boots`, `why`, `who`, `at`
    resumable: bool  # `swingbot bisect resume` can continue it
    branches: list[dict[str, Any]]  # bisections of merged branches
    within: NamedCommit | None  # what they found
    waits: list[str]
    # of the two ends, and of each culprit and its parent; `show` and the page add it
    config_changes: NotRequired[list[ConfigChange]]
    # `fraction`, `bits_left`, `bits_at_start`, while it runs
    progress: NotRequired[dict[str, Any]]
    eta_seconds: NotRequired[float | None]
    eta_note: NotRequired[str | None]
    plan: NotRequired[dict[str, Any]]  # [its plan](#plan-of-a-bisection), of `bisect start`


class Place(TypedDict):
    testbox: str
    label: str | None
    tree: str
    branch: str | None  # branch of the tree
    commit: str
    comparison: str | None
    unit: str
    better: str | None
    base: Side  # parent
    head: Side  # culprit
    change_pct: float | None
    interval_pct: list[float] | None
    level: str | None
    verdict: str
    words: str


class Impact(TypedDict):
    unit_job: str
    metric: str
    split: bool  # better in one place and worse in another
    places: list[Place]  # where it was measured


class Sighting(TypedDict):
    bisection: str | None
    comparison: str | None
    report: str | None  # id of the report about it
    patch_id: str | None  # `git patch-id --verbatim`
    seen_at: str  # time
    tree: str
    branch: str  # branch of the tree
    commit: str
    subject: str
    testbox: str
    metric: str


class Gate(TypedDict):
    """`swingbot proof show i1` prints `incident` and `gates`. What each asks: [proof](proof.md)."""

    gate: str  # its name
    status: str  # `running`, `pass`, `fail` or `not run`
    reason: str | None
    comparison: str | None
    tries: int  # how often boots were requested
    foreseen: dict[str, Any] | None  # `boots`, `builds`, `seconds` as foreseen
    detail: dict[str, Any] | None  # figures, depending on the gate
    asked_at: str  # time
    decided_at: str | None  # time
    comparison_status: str | None  # status of the comparison
    question: str  # what it asks
    boots: dict[str, Any]  # sides of its comparison


class LooksFixed(TypedDict):
    """A step of the tips that brings the level from before the culprit back."""

    commit: str  # first tip with it, or the commit that a search found
    subject: str | None  # null if no kernel of the commit was asked for
    change_pct: float  # of the step
    testbox: str
    metric: str
    seen_at: str | None  # time at which that tip was seen


class Incident(TypedDict):
    id: str
    status: str  # `open`, `expected`, `fixed`, `invalid`, `duplicate` or `closed`
    tree: str
    culprit: dict[str, Any]  # `commit`, `subject`, `author`, `variant`
    comparison: str | None
    rows: list[Row]  # parent against culprit
    why: list[Why]  # what changed beside these, as on the page of `comparison`
    impact: list[Impact]  # every benchmark metric that changed somewhere
    sightings: list[Sighting]  # where the commit was found
    reports: list[str]  # ids of its reports
    # `id`, `kind`, `revision`, `state`, `subject`, `withdrawn`, `restricted`, `created_at`,
    # `sent_at` of each
    report_list: list[dict[str, Any]]
    bisections: list[str]  # ids
    bisection_list: list[dict[str, Any]]  # some keys of each bisection
    gates: list[Gate]  # gates of proof
    evidence: dict[str, str]  # by gate: `pass`, `fail`, `not run` or `running`
    merged_into: str | None  # id of the incident that it is a duplicate of
    duplicates: list[str]  # ids
    fixed_by: str | None  # commit
    fix_check: str | None  # id of the comparison that checks the fix
    # while it is open: later tips are back at the level from before it; a person confirms that
    looks_fixed: LooksFixed | None
    history: list[dict[str, Any]]  # `act`, `who`, `reason`, `detail`, `at`
    created_at: str
