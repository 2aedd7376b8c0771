"""Documents that pages, `--json` and scripts get, as types.

Read models make them, docs/json.md lists them: `python -m tests.json_page` makes the page's
sections from the classes below. A key's comment is its explanation there; a key without one is
among the page's common keys. `tests/db/test_json_page.py` holds real documents against the page.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class UnitJob(TypedDict):
    """Also `swingbot jobs expand`, with `result_root`."""

    name: str
    runs: int  # runs in one boot
    params: dict[str, str]  # parameters
    program: str  # name of the program
    result_root: NotRequired[str]  # its result root, as far as it is known
    monitors: NotRequired[list[str]]  # monitors with a run of their own
    warmup: NotRequired[int]  # runs that are not counted
    demand: NotRequired[dict[str, Any]]  # facts that it demands
    compare_fact: NotRequired[list[str]]  # facts that are compared on purpose
    functions: NotRequired[list[str]]  # functions whose calls are counted
    events: NotRequired[list[str]]  # events that are counted in place of the usual ones
    cmdline: NotRequired[str]  # words that it puts on the command line
    sysctl: NotRequired[dict[str, Any]]  # sysctls that it sets


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
    unit: str
    better: str | None
    swing: dict[str, Any] | None  # `comparison` and `change_pct` of the swing that it is about
    incident: str | None
    steers: list[dict[str, Any]]  # advice: `act`, `points`, `factor`, `boots`, `why`, `who`, `at`
    resumable: bool  # `swingbot bisect resume` can continue it
    branches: list[dict[str, Any]]  # bisections of merged branches
    within: NamedCommit | None  # what they found
    waits: list[str]
    # `fraction`, `bits_left`, `bits_at_start`, while it runs
    progress: NotRequired[dict[str, Any]]
    eta_seconds: NotRequired[float | None]


class Side(TypedDict):
    """Levels of one kernel in a row."""

    mean: float | None  # level
    runs: int  # runs that count
    boots: int  # boots that count
    stddev: float | None  # between boots
    stddev_within: float | None  # of a run within its boot


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
    patch_id: str | None  # `git patch-id --stable`
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


class Incident(TypedDict):
    id: str
    status: str  # `open`, `expected`, `fixed`, `invalid`, `duplicate` or `closed`
    tree: str
    culprit: dict[str, Any]  # `commit`, `subject`, `author`, `variant`
    comparison: str | None
    rows: list[dict[str, Any]]  # parent against culprit: [rows](#row)
    impact: list[Impact]  # every benchmark metric that changed somewhere
    sightings: list[Sighting]  # where the commit was found
    reports: list[str]  # ids of its reports
    # `id`, `kind`, `revision`, `state`, `subject`, `withdrawn`, `created_at`, `sent_at` of each
    report_list: list[dict[str, Any]]
    bisections: list[str]  # ids
    bisection_list: list[dict[str, Any]]  # some keys of each bisection
    gates: list[Gate]  # gates of proof
    evidence: dict[str, str]  # by gate: `pass`, `fail`, `not run` or `running`
    merged_into: str | None  # id of the incident that it is a duplicate of
    duplicates: list[str]  # ids
    fixed_by: str | None  # commit
    fix_check: str | None  # id of the comparison that checks the fix
    history: list[dict[str, Any]]  # `act`, `who`, `reason`, `detail`, `at`
    created_at: str
