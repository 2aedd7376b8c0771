"""A whole lab in a database: a tree that got worse, its comparison, bisection,
incident and report, and work under way.

For tests that need a bit of everything (pages, panels). `python -m tests.scenario URL` fills a
migrated database and prints the ids.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from tests import builders as make

COMMITS, CULPRIT, UNBUILDABLE = 20, 13, 6
HACKBENCH, NETPERF = "hackbench.throughput", "netperf.Throughput_Mbps"
HACKBENCH_JOB = "hackbench-process-pipe-100%"
SUBJECTS = (
    "Linux 6.1.112",
    "mm: rename a local in rmqueue_bulk()",
    "mm/vmstat: reorder a test",
    "mm: add a helper for order checks",
    "mm/page_alloc: comment on watermarks",
    "mm/filemap: drop a redundant check",
    "mm: half a change that a later one completes",
    "mm/slub: tidy a debug message",
    "mm/memory: pass the mask, not its address",
    "mm/page_alloc: check the batch earlier",
    "mm: use a bool",
    "mm/readahead: name a constant",
    "mm/page_alloc: prepare for smaller lists",
    "mm/page_alloc: free straight to the buddy lists",
    "mm/page_alloc: keep the batch where it was",
    "mm/rmap: comment on a lock",
    "mm: move a declaration",
    "mm/swap: say why the order matters",
    "mm/hugetlb: remove an unused argument",
    "mm/page_alloc: clear fewer flags",
    "mm/mmap: simplify a condition",
)
MAIL = """Hello,

on our testbox vm-icount, commit {commit} makes
{metric} of {job} 18.1% worse:

  metric                           base            head      change   interval
  {metric}   246000 +- 310   201500 +- 280   -18.1%   -18.6 .. -17.6
  (n = 3 boots a side, 9 runs; +- is the standard deviation between boots)

The testbox is emulated; instruction-count clock; 1 vCPU: path length only.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """The numbers of what was made."""

    tree: int
    comparison: int
    running_comparison: int
    bisection: int
    running_bisection: int
    incident: int
    report: int
    boot: int
    panicked: int
    order: int


@dataclass(frozen=True, slots=True)
class _World:
    conn: sa.Connection
    testbox: make.Testbox
    tree: int
    at: Callable[[float], datetime]

    def values(self, idx: int, k: int) -> dict[tuple[str, str], list[float]]:
        """What commit `idx` measures in its k-th boot: worse from the culprit on."""
        fault = 246_000.0 * (0.819 if idx >= CULPRIT else 1.0) * (1 + 0.0015 * make.spread(k))
        hack = 9_120.0 * (0.985 if idx >= CULPRIT else 1.0) * (1 + 0.004 * make.spread(k + 3))
        return {
            (make.UNIT_JOB, make.METRIC): [
                round(fault * (1 + 0.0008 * make.spread(k, run)), 1) for run in range(3)
            ],
            (HACKBENCH_JOB, HACKBENCH): [
                round(hack * (1 + 0.003 * make.spread(k, run + 5)), 2) for run in range(3)
            ],
            (make.UNIT_JOB, "perf-stat.instructions"): [
                round(5.1e9 / fault * 246_000 * (1 + 1e-4 * make.spread(k, run)))
                for run in range(3)
            ],
        }


def a_lab(conn: sa.Connection, now: datetime | None = None) -> Lab:
    """Everything at once. The past begins two hours before `now`."""
    start = (now or datetime.now(UTC)) - timedelta(hours=2)
    tree = make.a_tree(
        conn,
        "mm-demo",
        url="https://example.org/linux.git",
        branch="mm-demo",
        polled_at=start + timedelta(minutes=119),
        job_files=make.Json([{"name": "page-fault.yaml", "text": ""}]),
    )
    world = _World(
        conn,
        make.a_testbox(conn, also=[HACKBENCH_JOB]),
        tree,
        lambda minutes: start + timedelta(minutes=minutes),
    )
    kernels = _kernels(world)
    conn.execute(
        sa.text("UPDATE tree SET base_commit = :base, tip_commit = :tip"),
        {"base": kernels[0].commit, "tip": kernels[-1].commit},
    )
    comparison = _comparison(world, kernels)
    bisection, panicked = _bisection(world, kernels)
    conn.execute(
        sa.text("UPDATE swing SET state = 'explained', bisection = :b WHERE metric = :m"),
        {"b": bisection, "m": make.METRIC},
    )
    incident = make.an_incident(
        conn, tree, kernels[CULPRIT], bisections=[bisection], created_at=world.at(60)
    )
    mail = MAIL.format(commit=kernels[CULPRIT].commit[:12], metric=make.METRIC, job=make.UNIT_JOB)
    subject = f"[mm-demo] {kernels[CULPRIT].commit[:12]}: {make.METRIC} 18.1% worse"
    report = make.a_report(
        conn, incident, body=mail, subject=subject, at=world.at(61), sent_at=world.at(61)
    )
    return Lab(
        tree=tree,
        comparison=comparison,
        bisection=bisection,
        incident=incident,
        report=report,
        panicked=panicked,
        boot=conn.execute(sa.text("SELECT min(id) FROM boot WHERE outcome = 'up'")).scalar_one(),
        **_under_way(world, kernels),
    )


def _kernels(world: _World) -> list[make.Kernel]:
    kernels = []
    for number in range(COMMITS + 1):
        kernel = make.a_variant(world.conn, world.tree, number, subject=SUBJECTS[number])
        make.a_kernel_build(
            world.conn,
            kernel,
            status="failed" if number == UNBUILDABLE else "built",
            seconds=270.0 if number == 0 else 31.0 + number % 5,
            at=world.at(number),
        )
        kernels.append(kernel)
    return kernels


def _comparison(world: _World, kernels: list[make.Kernel]) -> int:
    conn, testbox = world.conn, world.testbox
    base, head = kernels[0], kernels[-1]
    change = make.a_change(conn, world.tree, base.commit, head.commit, seen_at=world.at(0))
    comparison = make.a_comparison(
        conn, world.tree, base, head, [testbox], kind="watch", change=change, at=world.at(0)
    )
    means: dict[tuple[tuple[str, str], str], list[float]] = {}
    for k in range(3):
        for side, kernel, idx in (("base", base, 0), ("head", head, COMMITS)):
            values = world.values(idx, k)
            make.a_boot(
                conn,
                testbox,
                kernel,
                k=k,
                values=values,
                at=world.at(22 + k),
                seconds=19.0 + k,
                comparison=comparison,
            )
            for key, of_metric in values.items():
                means.setdefault((key, side), []).append(sum(of_metric) / len(of_metric))
    verdicts = {
        make.METRIC: ("worse", "ops/s", "higher"),
        HACKBENCH: ("worse", "ops/s", "higher"),
        "perf-stat.instructions": ("changed", "", None),
    }
    for job, metric in world.values(0, 0):
        verdict, unit, better = verdicts[metric]
        base_means, head_means = means[(job, metric), "base"], means[(job, metric), "head"]
        make.a_row(
            conn,
            comparison,
            testbox,
            metric,
            base=base_means,
            head=head_means,
            verdict=verdict,
            unit=unit,
            better=better,
            unit_job=job,
        )
    make.a_row(
        conn,
        comparison,
        testbox,
        "perf-stat.page-faults",
        base=(81_000.0, 81_002.0),
        head=(81_001.0, 81_002.0),
        verdict="same",
        unit="",
        better=None,
    )
    make.a_swing(conn, comparison, testbox, change_pct=-18.1, state="bisecting")
    make.a_swing(
        conn,
        comparison,
        testbox,
        HACKBENCH,
        change_pct=-1.5,
        state="not_bisected",
        unit_job=HACKBENCH_JOB,
    )
    return comparison


def _bisection(world: _World, kernels: list[make.Kernel]) -> tuple[int, int]:
    conn, testbox = world.conn, world.testbox
    weights = {
        idx: 0.9931 if idx == CULPRIT else 0.004 if idx == CULPRIT - 1 else 0.0029 / (COMMITS - 2)
        for idx in range(1, COMMITS + 1)
    }
    culprit = {"commit": kernels[CULPRIT].commit, "subject": SUBJECTS[CULPRIT]}
    candidates = [
        {
            "commit": kernels[idx].commit,
            "subject": SUBJECTS[idx],
            "probability": p,
            "state": "culprit" if idx == CULPRIT else "cleared",
        }
        for idx, p in weights.items()
    ]
    conclusion = {
        "status": "culprit",
        "culprit": culprit,
        "culprits": [culprit | {"probability": 0.9931, "change_pct": -18.1}],
        "probability": 0.9931,
        "change_pct": -18.1,
        "interval_pct": [-18.6, -17.6],
        "candidates": candidates,
    }
    bisection = make.a_bisection(
        conn, world.tree, testbox, kernels, status="culprit", conclusion=conclusion, at=world.at(28)
    )
    asked = [
        (0, 0, "ends"),
        (20, 0, "ends"),
        (0, 1, "ends"),
        (20, 1, "ends"),
        (10, 0, "search"),
        (15, 0, "search"),
        (6, 0, "search"),
        (12, 0, "search"),
        (14, 0, "search"),
        (13, 0, "search"),
    ]
    asked += [(idx, k, "confirm") for k in (3, 4, 5) for idx in (12, 13)]
    panicked = 0
    for minute, (idx, k, phase) in enumerate(asked):
        at = world.at(30 + 1.5 * minute)
        values = world.values(idx, k)
        if idx == UNBUILDABLE:
            make.an_observation(conn, bisection, idx, k, skip="does not build", phase=phase, at=at)
        elif idx == 15:
            panicked = make.a_boot(
                conn, testbox, kernels[idx], k=k, outcome="panicked", at=at, bisection=bisection
            )
            make.an_observation(
                conn,
                bisection,
                idx,
                k,
                boot=panicked,
                skip="panicked: Attempted to kill init!",
                phase=phase,
                at=at,
            )
        else:
            seen = sa.text("SELECT id FROM boot WHERE image_sha256 = :image AND k = :k")
            boot = conn.execute(
                seen, {"image": kernels[idx].image, "k": k}
            ).scalar() or make.a_boot(
                conn, testbox, kernels[idx], k=k, values=values, at=at, bisection=bisection
            )
            make.an_observation(
                conn,
                bisection,
                idx,
                k,
                boot=boot,
                values=values[make.UNIT_JOB, make.METRIC],
                phase=phase,
                at=at,
            )
    return bisection, panicked


def _under_way(world: _World, kernels: list[make.Kernel]) -> dict[str, int]:
    """A second testbox that is at work for a comparison, and a bisection in the middle of its
    search.
    """
    conn = world.conn
    noisy = make.a_testbox(conn, "vm-tcg", unit_job="netperf-200%-TCP_STREAM")
    comparison = make.a_comparison(
        conn,
        world.tree,
        kernels[3],
        kernels[8],
        [noisy],
        boots=5,
        status="running",
        at=world.at(112),
    )
    for k in range(2):
        level = {NETPERF: [870.0 * (1 + 0.12 * make.spread(k, run)) for run in range(3)]}
        make.a_boot(
            conn,
            noisy,
            kernels[3],
            k=k,
            series=f"c{comparison}",
            values=level,
            at=world.at(113 + k),
            seconds=34.0,
            comparison=comparison,
        )
    order = make.an_order(
        conn,
        kernels[8],
        noisy,
        k=0,
        series=f"c{comparison}",
        state="running",
        at=world.at(115),
        comparison=comparison,
    )
    attempt = make.an_attempt(conn, order, at=world.at(119.5))
    make.a_dispatch(conn, attempt, "boot-vm-tcg", at=world.at(119.5))
    conn.execute(
        sa.text("INSERT INTO lease (testbox, attempt) VALUES ('vm-tcg', :attempt)"),
        {"attempt": attempt},
    )
    for k in range(1, 3):
        make.an_order(
            conn,
            kernels[8],
            noisy,
            k=k,
            series=f"c{comparison}",
            state="ready",
            at=world.at(115),
            comparison=comparison,
        )
    belief = {
        "posterior": [
            {"idx": idx, "probability": 0.22 if 9 <= idx <= 12 else 0.12 / 16}
            for idx in range(1, COMMITS + 1)
        ],
        "p_none": 0.01,
        "phase": "search",
        "why": "commit 10 halves the four commits that are left",
    }
    bisection = make.a_bisection(
        conn,
        world.tree,
        world.testbox,
        kernels,
        metric=HACKBENCH,
        unit_job=HACKBENCH_JOB,
        belief=belief,
        at=world.at(110),
    )
    for idx, k in ((0, 0), (20, 0), (12, 0), (13, 0)):
        seen = sa.text("SELECT id FROM boot WHERE image_sha256 = :image AND k = :k")
        boot = conn.execute(seen, {"image": kernels[idx].image, "k": k}).scalar_one()
        make.an_observation(
            conn,
            bisection,
            idx,
            k,
            boot=boot,
            values=world.values(idx, k)[HACKBENCH_JOB, HACKBENCH],
            phase="ends" if idx in (0, 20) else "search",
            at=world.at(111),
        )
    waiting = make.an_order(
        conn, kernels[10], world.testbox, k=1, state="ready", at=world.at(118), bisection=bisection
    )
    make.an_observation(conn, bisection, 10, 1, at=world.at(118))
    make.a_testbox(
        conn,
        "rack7",
        state="quarantined",
        reason="ran the same kernel twice and saw 3.1 % between the two",
        unit_job="netperf-200%-TCP_STREAM",
    )
    return {"running_comparison": comparison, "running_bisection": bisection, "order": waiting}


if __name__ == "__main__":
    from swingbot_db.engine import make_engine
    from swingbot_db.migrate import upgrade

    engine = make_engine(sys.argv[1])
    upgrade(engine)
    with engine.begin() as connection:
        print(a_lab(connection))
