"""Sixty days of a lab in a database: what panels, alerts and pages look like at its age.

Two trees on two testboxes, a tip a day, each booted twice. `linux-next` loses 6 % on day 40 and is
built by two compilers; one commit was rebuilt in another layout, one was patched. Kernels panic, a
build fails, one testbox is lost, another is quarantined, a tree cannot be fetched, a mail waits.
`python -m tests.sixty_days URL` fills a migrated database.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import sqlalchemy as sa

from swingbot.core.model.noise import NoiseRecord, Spread
from swingbot_jobs import codec
from tests import builders as make
from tests.tables import an_experiment

DAYS: Final = 60
SWING_DAY: Final = 40
RELEASE_DAY: Final = 30
TREES: Final = ("linux-next", "mm-unstable")
LEVELS: Final = {"vm-icount": 250_000.0, "bare1": 780_000.0}
NOISE: Final = {"vm-icount": 0.0015, "bare1": 0.006}  # relative, between boots
CLANG: Final = 0.963  # level of clang's kernels relative to gcc's
HACKBENCH: Final = "hackbench.throughput"
HACKBENCH_JOB: Final = "hackbench-process-pipe-100%"
INSTRUCTIONS: Final = "perf-stat.instructions"
HOUR: Final = timedelta(hours=1)
Row = tuple[str, str]  # unit job and metric


@dataclass(slots=True, kw_only=True)
class Past:
    """The history; `start` is the time of the first tip, `clang` the kernels built by clang."""

    start: datetime
    trees: dict[str, int] = field(default_factory=dict)
    testboxes: dict[str, make.Testbox] = field(default_factory=dict)
    kernels: dict[str, list[make.Kernel]] = field(default_factory=dict)
    clang: list[make.Kernel] = field(default_factory=list)
    rebuilt: make.Kernel | None = None
    patched: make.Kernel | None = None
    incident: int = 0
    held: int = 0
    panics: int = 0


def sixty_days(conn: sa.Connection, now: datetime | None = None) -> Past:
    """Everything at once; the last tip was seen an hour before `now`."""
    end = now or datetime.now(UTC)
    past = Past(start=end - timedelta(days=DAYS) - HOUR)
    past.testboxes = {name: make.a_testbox(conn, name, also=[HACKBENCH_JOB]) for name in LEVELS}
    for name in TREES:
        past.trees[name] = make.a_tree(conn, name, testboxes=list(LEVELS), polled_at=end)
        _history(conn, past, name)
    _variants(conn, past)
    _culprit(conn, past)
    _lab(conn, past, end)
    an_experiment(conn, kernels=4, boots=3, against=("above", "first"), created_at=end - 3 * HOUR)
    conn.execute(
        sa.text("UPDATE comparison SET ended_at = :t WHERE kind = 'experiment'"), {"t": end}
    )
    return past


def _level(past: Past, tree: str, testbox: str, day: int, k: int, factor: float = 1.0) -> float:
    worse = 0.94 if tree == TREES[0] and day >= SWING_DAY else 1.0
    wave = 1 + NOISE[testbox] * make.spread(day * 7 + 3 * k)
    return LEVELS[testbox] * worse * factor * wave


def _values(level: float, k: int) -> dict[Row, list[float]]:
    return {
        (make.UNIT_JOB, make.METRIC): [level, level * 1.0004],
        (HACKBENCH_JOB, HACKBENCH): [9_000.0 * (1 + 0.004 * make.spread(k)), 9_010.0],
        (make.UNIT_JOB, INSTRUCTIONS): [1.2e15 / level, 1.2001e15 / level],
    }


def _boots(
    conn: sa.Connection,
    past: Past,
    tree: str,
    kernel: make.Kernel,
    day: int,
    at: datetime,
    factor: float = 1.0,
) -> dict[str, list[float]]:
    """Two boots on each testbox; one in fifty panics. Returns the means of the main metric."""
    means: dict[str, list[float]] = {name: [] for name in past.testboxes}
    for place, (name, testbox) in enumerate(past.testboxes.items()):
        for k in range(2):
            level = _level(past, tree, name, day, k, factor)
            boot_at = at + timedelta(minutes=5 * (2 * k + place))
            if (day + 11 * k + 23 * place) % 50 == 13:
                past.panics += 1
                make.a_boot(conn, testbox, kernel, k=k, outcome="panicked", at=boot_at)
            else:
                make.a_boot(conn, testbox, kernel, k=k, values=_values(level, k), at=boot_at)
                means[name].append(level * 1.0002)
    return means


def _history(conn: sa.Connection, past: Past, tree: str) -> None:
    """A tip a day with its comparison; on `SWING_DAY` a swing of the first tree."""
    number = past.trees[tree]
    kernels = past.kernels.setdefault(tree, [])
    before: dict[str, list[float]] = {}
    for day in range(DAYS + 1):
        seen = past.start + timedelta(days=day)
        subject = "Linux 6.12-rc3" if day == RELEASE_DAY else f"mm: commit {day} of {tree}"
        kernel = make.a_kernel(conn, number, day, subject=subject, at=seen + HOUR / 6)
        now = _boots(conn, past, tree, kernel, day, seen + HOUR / 2)
        kernels.append(kernel)
        if day:
            change = make.a_change(conn, number, kernels[-2].commit, kernel.commit, seen_at=seen)
            _compared(conn, past, tree, change, day, before, now)
        before = now
    conn.execute(
        sa.text("UPDATE tree SET base_commit = :base, tip_commit = :tip WHERE id = :tree"),
        {"base": kernels[0].commit, "tip": kernels[-1].commit, "tree": number},
    )


def _compared(
    conn: sa.Connection,
    past: Past,
    tree: str,
    change: int,
    day: int,
    before: dict[str, list[float]],
    now: dict[str, list[float]],
) -> None:
    base, head = past.kernels[tree][-2:]
    comparison = make.a_comparison(
        conn,
        past.trees[tree],
        base,
        head,
        list(past.testboxes.values()),
        boots=2,
        kind="watch",
        change=change,
        at=past.start + timedelta(days=day) + HOUR,
    )
    for testbox in past.testboxes.values():
        swung = tree == TREES[0] and day == SWING_DAY
        sides = (before[testbox.name], now[testbox.name])
        if not all(sides):
            continue
        _judged(conn, comparison, testbox, *sides, swung=swung)
        if swung:
            make.a_swing(conn, comparison, testbox, change_pct=-6.0, state="open")
        elif day == 20 and testbox.name == "bare1":
            make.a_swing(conn, comparison, testbox, change_pct=-1.4, state="refuted")
        elif day == 50:
            make.a_swing(
                conn, comparison, testbox, change_pct=2.2, direction="better", state="not_bisected"
            )


def _judged(
    conn: sa.Connection,
    comparison: int,
    testbox: make.Testbox,
    base: Sequence[float],
    head: Sequence[float],
    *,
    swung: bool,
) -> None:
    verdict = "worse" if swung else "same"
    row = {"base": base, "head": head, "verdict": verdict, "min_effect_pct": 2.0}
    make.a_row(conn, comparison, testbox, **row, headline=True)  # type: ignore[arg-type]
    make.a_row(
        conn,
        comparison,
        testbox,
        HACKBENCH,
        base=(9_000.0, 9_010.0),
        head=(9_004.0, 9_011.0),
        verdict="same",
        unit_job=HACKBENCH_JOB,
        min_effect_pct=2.0,
        headline=True,
    )
    counts = [[1.2e15 / level for level in side] for side in (base, head)]
    make.a_row(
        conn,
        comparison,
        testbox,
        INSTRUCTIONS,
        base=counts[0],
        head=counts[1],
        verdict="changed" if swung else "same",
        better=None,
        unit="",
        headline=False,
        **{"class": "counter"},
    )


def _variants(conn: sa.Connection, past: Past) -> None:
    """The last ten tips by clang, one rebuilt, one patched."""
    tree = TREES[0]
    number = past.trees[tree]
    for day in range(DAYS - 9, DAYS + 1):
        at = past.start + timedelta(days=day, hours=3)
        kernel = make.a_kernel(
            conn, number, day, subject=f"mm: commit {day} of {tree}", compiler="clang-19", at=at
        )
        _boots(conn, past, tree, kernel, day, at, CLANG)
        past.clang.append(kernel)
    at = past.start + timedelta(days=SWING_DAY, hours=6)
    subject = f"mm: commit {SWING_DAY} of {tree}"
    past.rebuilt = make.a_kernel(conn, number, SWING_DAY, subject=subject, layout=1, at=at)
    past.patched = make.a_kernel(
        conn, number, SWING_DAY, subject="mm: a patch", patched=True, at=at
    )
    for kernel, factor in ((past.rebuilt, 1.002), (past.patched, 1.05)):
        _boots(conn, past, tree, kernel, SWING_DAY, at, factor)


def _culprit(conn: sa.Connection, past: Past) -> None:
    """The swing on vm-icount has a culprit and its mail; that on bare1 is being bisected. A second
    culprit's mail is held."""
    tree, testbox = TREES[0], past.testboxes["vm-icount"]
    seen = past.start + timedelta(days=SWING_DAY)
    number = past.trees[tree]
    commits = [
        make.a_kernel(conn, number, f"step {n}", subject=f"mm: step {n}", at=seen)
        for n in range(1, 4)
    ]
    kernels = [past.kernels[tree][SWING_DAY - 1], *commits, past.kernels[tree][SWING_DAY]]
    candidates = [
        {
            "commit": kernel.commit,
            "subject": f"mm: step {n}",
            "probability": 0.97 if n == 2 else 0.01,
        }
        for n, kernel in enumerate(kernels)
        if n
    ]
    conclusion = {
        "status": "culprit",
        "culprit": {"commit": commits[1].commit, "subject": "mm: step 2"},
        "probability": 0.97,
        "change_pct": -6.0,
        "culprits": [{"commit": commits[1].commit, "probability": 0.97, "change_pct": -6.0}],
        "candidates": candidates,
    }
    proof = make.a_comparison(
        conn, number, kernels[0], kernels[-1], [testbox], kind="prove", at=seen + 2 * HOUR
    )
    bisection = make.a_bisection(
        conn,
        number,
        testbox,
        kernels,
        status="culprit",
        conclusion=conclusion,
        at=seen + 3 * HOUR,
    )
    _journal(conn, bisection, seen + 3 * HOUR)
    for idx, k in ((0, 0), (4, 0), (2, 0), (1, 0), (2, 1), (1, 1)):
        level = LEVELS["vm-icount"] * (0.94 if idx >= 2 else 1.0)
        boot = make.a_boot(
            conn,
            testbox,
            kernels[idx],
            k=k,
            series=f"b{bisection}",
            values=_values(level, k),
            at=seen + 3.2 * HOUR,
            bisection=bisection,
        )
        make.an_observation(
            conn, bisection, idx, k, boot=boot, values=[level], at=seen + 3.2 * HOUR
        )
    _settle(conn, "vm-icount", bisection, proof, "explained")
    measured = make.a_comparison(
        conn, number, commits[0], commits[1], [testbox], kind="attribute", at=seen + 4 * HOUR
    )
    make.a_row(conn, measured, testbox, base=[250_000.0] * 3, head=[235_500.0] * 3, headline=True)
    past.incident = make.an_incident(
        conn,
        number,
        commits[1],
        bisections=[bisection],
        comparison=measured,
        created_at=seen + 3.5 * HOUR,
    )
    gate = {"incident": past.incident, "gate": "tip", "status": "pass", "reason": "98 % of it"}
    asked = {"asked_at": seen + 4 * HOUR, "decided_at": seen + 5 * HOUR}
    make._insert(conn, "incident_gate", gate | asked, returning=None)
    make.a_report(
        conn,
        past.incident,
        at=seen + 5.1 * HOUR,
        sent_at=seen + 6 * HOUR,
        metric=make.METRIC,
        testbox="vm-icount",
        subject="[linux-next] mm: step 2: page-fault.per_process_ops 6.0% worse",
    )
    running = make.a_bisection(
        conn,
        number,
        past.testboxes["bare1"],
        kernels,
        belief={
            "phase": "search",
            "why": "commit 2 halves what is left",
            "posterior": [{"idx": idx, "probability": 0.25} for idx in range(1, 5)],
        },
        at=seen + 3 * HOUR,
    )
    _journal(conn, running, seen + 3 * HOUR)
    _settle(conn, "bare1", running, None, "bisecting")
    _a_held_mail(conn, past, seen)


def _settle(
    conn: sa.Connection, testbox: str, bisection: int, proof: int | None, state: str
) -> None:
    conn.execute(
        sa.text(
            "UPDATE swing SET state = :state, bisection = :bisection, proof = :proof,"
            " evidence = CAST(:evidence AS jsonb) WHERE testbox = :testbox AND state = 'open'"
        ),
        {
            "state": state,
            "bisection": bisection,
            "proof": proof,
            "testbox": testbox,
            "evidence": json.dumps({"answer": "confirmed", "reason": "6 pairs of boots agree"}),
        },
    )


def _journal(conn: sa.Connection, bisection: int, at: datetime) -> None:
    for number, boots in ((1, 2), (2, 1)):
        row = {
            "bisection": bisection,
            "number": number,
            "engine": "e",
            "facts": {},
            "digest": make.hex_of(bisection, number, digits=64),
            "action": {
                "do": "measure",
                "phase": "search",
                "requests": [[2, k] for k in range(boots)],
                "why": "commit 2 halves what is left",
            },
            "at": at + number * timedelta(minutes=5),
        }
        make._insert(conn, "bisection_step", row, returning=None)


def _a_held_mail(conn: sa.Connection, past: Past, seen: datetime) -> None:
    tree = TREES[1]
    kernels = past.kernels[tree][48:51]
    bisection = make.a_bisection(
        conn,
        past.trees[tree],
        past.testboxes["bare1"],
        kernels,
        status="culprit",
        conclusion={
            "status": "culprit",
            "culprit": {"commit": kernels[1].commit, "subject": f"mm: commit 49 of {tree}"},
        },
        at=seen + 10 * 24 * HOUR,
    )
    incident = make.an_incident(
        conn,
        past.trees[tree],
        kernels[1],
        bisections=[bisection],
        created_at=seen + 10 * 24 * HOUR,
    )
    past.held = make.a_report(
        conn,
        incident,
        state="held",
        at=seen + 10 * 24 * HOUR,
        reason="the first mail of its class",
        metric=make.METRIC,
        testbox="bare1",
    )


def _lab(conn: sa.Connection, past: Past, end: datetime) -> None:
    """What is wrong today: machines, a build, a tree, orders that wait; and what the noise is."""
    number = past.trees[TREES[0]]
    broken = make.a_variant(conn, number, "broken", subject="mm: half a change")
    make.a_kernel_build(conn, broken, status="failed", seconds=12.0, at=end - 20 * HOUR)
    icount = past.testboxes["vm-icount"]
    kernel = past.kernels[TREES[0]][-1]
    order = make.an_order(conn, kernel, icount, k=7, state="running", at=end - HOUR)
    dead = make.an_attempt(
        conn, order, number=1, state="dead", reason="the worker was lost", at=end - 2 * HOUR
    )
    attempt = make.an_attempt(conn, order, number=2, at=end - HOUR / 4)
    make._insert(conn, "lease", {"testbox": "vm-icount", "attempt": attempt}, returning=None)
    for k in (8, 9):
        make.an_order(conn, kernel, icount, k=k, state="ready", at=end - 3 * HOUR)
    make.a_testbox(conn, "bare2", state="quarantined", reason="failed three times in a row")
    for name, state, why in (("bare1", "lost", "no answer on port 22"), ("bare2", "idle", "")):
        row = {"testbox": name, "state": state, "why": why, "since": end - 5 * HOUR}
        make._insert(conn, "testbox_now", row, returning=None)
    event = {"testbox": "bare1", "was": "running", "state": "lost", "why": "no answer on port 22"}
    make._insert(conn, "testbox_event", event | {"attempt": dead, "at": end - 5 * HOUR})
    alert = {"kind": "lost", "testbox": "bare1", "reason": "no answer on port 22"}
    make._insert(conn, "alert", alert | {"began_at": end - 5 * HOUR})
    moved = {"kind": "moved", "testbox": "bare1", "reason": "the anchor kernel is 3.0 % lower"}
    make._insert(conn, "alert", moved | {"began_at": end - 30 * HOUR})
    conn.execute(
        sa.text("UPDATE tree SET problem = 'no route to host', polled_at = :at WHERE name = :name"),
        {"at": end - 9 * HOUR, "name": TREES[1]},
    )
    through = conn.execute(sa.text("SELECT max(id) FROM boot")).scalar_one()
    for name, sd in NOISE.items():
        spread = Spread(sd=sd, df=80.0)
        record = NoiseRecord(
            run=spread, boot=spread, boot_mean=spread, boots=120, runs=240, images=61
        )
        row = {
            "testbox": name,
            "unit_job": make.UNIT_JOB,
            "metric": make.METRIC,
            "detail": codec.plain(record),
            "through": through,
            "at": end - HOUR,
        }
        make._insert(conn, "noise_record", row, returning=None)


if __name__ == "__main__":
    from swingbot_db.engine import make_engine
    from swingbot_db.migrate import upgrade

    engine = make_engine(sys.argv[1])
    upgrade(engine)
    with engine.begin() as connection:
        sixty_days(connection)
