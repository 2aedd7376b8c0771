"""Results that exist, compared. `documents.py` has the rules."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from swingbot.core.model.documents import RowKeys, VerdictKeys


class KernelOfResults(TypedDict):
    kconfig: str
    compiler: str
    origin: str  # `branch`, `request` or `patch`
    trust: str
    id: str | None  # id of the variant; null: never requested
    name: str  # release or abbreviated commit
    release: str | None  # such as `v6.1.112`
    commit: str
    subject: str
    author: str  # author of the commit
    layout: int  # code layout; 0 is that of the linker
    build_key: str | None  # key of its build
    build: str | None  # `built`, `failed`, null: not yet
    boots: int  # boots on all testboxes
    testboxes: list[str]  # where it was booted
    latest: str | None  # time of its last boot


class RowOfResults(RowKeys):
    """As [row](#row), with the kernels that are compared in place of the swing."""

    arm: int  # index of the kernel
    reference: int  # index of the kernel it is compared with
    p: NotRequired[float | None]
    paired: NotRequired[bool | None]
    margin_pct: NotRequired[float | None]
    together: bool  # the boots belong to one series


class Gap(TypedDict):
    testbox: str
    kernel: int  # index of the kernel
    unit_jobs: list[str]  # what other kernels ran there
    why: str  # why it is missing
    boots: int  # boots of the kernel that fill it; 0: no boot can
    reference_boots: int  # boots of the kernel it is compared with that are needed too
    seconds: float | None  # testbox time; null: nothing similar was timed
    build_seconds: float | None  # time of its build; 0: it is built
    href: str | None  # form that requests it


class Move(TypedDict):
    """What changed from the reference to a kernel."""

    kernel: int  # index of the kernel
    backwards: bool  # the reference is the newer one
    order: str | None  # what is not known of the commits between the two
    judged: int  # rows that were judged
    changed: int  # rows with a change
    # the largest: `testbox`, `unit_job`, `metric`, `verdict`, `change_pct`, `interval_pct`,
    # `incidents` of that metric
    rows: list[dict[str, Any]]
    # with a commit between the two: `incident`, `status`, `commit`, `subject`, `author`, `tree`,
    # `metrics`
    incidents: list[dict[str, Any]]


class Results(TypedDict):
    """Two to six kernels compared by the boots that exist ([results](results.md))."""

    tree: str
    kernels: list[KernelOfResults]  # in the order of the address; the first is the reference
    filters: dict[str, Any]  # `testbox`, `test`, `metric`, `verdict` of the address
    sort: str  # `importance`, `size`, `significance` or `name`
    rows: list[RowOfResults]  # sorted
    # `name`, `tbox_group`, `state`, `label`, `repeatable`, and `others`: testboxes of the group if
    # it is gone
    testboxes: list[dict[str, Any]]
    missing: list[Gap]  # kernels without results that others have
    moved: list[Move]  # one for each kernel but the reference
    notes: list[str]  # what is not there, and why


class ChoiceOfKernels(TypedDict):
    tree: str | None  # name
    trees: list[dict[str, Any]]  # trees with kernels that were booted: `name`, `state`, `kernels`
    # as [kernel of results](#kernel-of-results), with `image_sha256` and `error`
    kernels: list[dict[str, Any]]


class PointOfAMetric(TypedDict):
    variant: str
    commit: str
    subject: str
    author: str  # author of the commit
    release: str | None  # such as `v6.1.112`
    build_key: str  # key of its build
    tip: bool  # it was a tip of the branch
    ordered: bool  # its place in history is known
    level: float | None  # mean of its boots on the testbox
    stddev: float | None  # between boots
    # on all testboxes: `boot`, `testbox`, `mean`, `runs`, `booted_at`, and `counts`: false for one
    # in another unit
    boots: list[dict[str, Any]]


class MetricOverCommits(TypedDict):
    testbox: str
    unit_job: str
    tree: str
    metric: str
    unit: str | None  # present unit
    better: str | None
    describe: str  # what is measured
    kconfig: str  # configuration of the kernels that are shown
    compiler: str  # compiler of the kernels that are shown
    configurations: list[dict[str, Any]]  # what there is: `kconfig`, `compiler`, `kernels`
    points: list[PointOfAMetric]  # measured commits, oldest first
    # `first`, `last` commit, `level` and its `rise` (in a ramp or creep), and `low`, `high`: what
    # noise explains
    bands: list[dict[str, Any]]
    # at most one: `testbox`, `upto`, `findings` as of `swingbot stats history`
    findings: list[dict[str, Any]]
    # on all testboxes: `id`, `comparison`, `testbox`, `direction`, `change_pct`, `state`,
    # `bisection`, `commit`, `source`, `spread_ratio`
    swings: list[dict[str, Any]]
    # on all testboxes: `incident`, `status`, `commit`, `subject`, `testbox`, `bisection`,
    # `change_pct`, `reports` (ids of its mails)
    culprits: list[dict[str, Any]]
    # when the testbox was out of service, latest first: `state`, `why`, `begin`, `end`
    # (null: still)
    absences: list[dict[str, Any]]
    units: list[dict[str, Any]]  # units that its rows had: `unit`, `first`, `last`, `until`
    noise: dict[str, Any] | None  # noise record
    # that measured it: `name`, `state`, `tbox_group`, `label`, `others`, `commits`, `boots`,
    # `level`, `latest`
    testboxes: list[dict[str, Any]]
    notes: list[str]  # what is not shown, and why


class ComparisonOfNumbers(VerdictKeys):
    """`swingbot stats compare`: one [row](#row) without names."""

    margin_pct: float | None
    paired: bool | None
    p: float | None
    order: str  # `given`, `strict turns` (given, b h b h) or `assumed in turns`
