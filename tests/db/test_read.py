"""The read models answer in the shapes of docs/json.md, from real rows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from swingbot.app.commands import text
from swingbot_db import read
from swingbot_db.read import overview
from swingbot_db.read.variants import variants
from swingbot_db.store import PgTransaction
from tests import builders as make
from tests import scenario


def a_finished_comparison(conn: sa.Connection) -> tuple[int, make.Testbox]:
    tree = make.a_tree(conn)
    testbox = make.a_testbox(conn)
    base, head = make.a_kernel(conn, tree, 0), make.a_kernel(conn, tree, 20)
    comparison = make.a_comparison(conn, tree, base, head, [testbox])
    for k in range(3):
        for kernel, level in ((base, 100.0), (head, 82.0)):
            make.a_boot(
                conn,
                testbox,
                kernel,
                k=k,
                values={
                    make.METRIC: [level + k, level, level - k],
                    "perf-stat.instructions": [5e9] * 3,
                },
                comparison=comparison,
            )
    make.a_row(
        conn,
        comparison,
        testbox,
        "perf-stat.instructions",
        base=(5e9, 5e9),
        head=(5.9e9, 5.9e9),
        verdict="worse",
        better="lower",
        unit="",
    )
    make.a_row(
        conn,
        comparison,
        testbox,
        "page-fault.time",
        base=(10.0, 10.1),
        head=(10.0, 10.2),
        verdict="same",
        better="lower",
        unit="s",
    )
    make.a_row(conn, comparison, testbox)
    return comparison, testbox


def test_a_comparison_has_the_keys_scripts_rely_on_and_puts_bad_benchmark_metrics_first(
    conn: sa.Connection,
) -> None:
    number, _testbox = a_finished_comparison(conn)
    found = read.table(conn, f"c{number}")
    json.dumps(found)
    assert found["id"] == f"c{number}"
    assert found["status"] == "done"
    assert [len(arm["variant"]["commit"]) for arm in found["arms"]] == [40, 40]
    row = found["rows"][0]
    assert {
        "unit_job",
        "testbox",
        "metric",
        "unit",
        "better",
        "base",
        "head",
        "change_pct",
        "interval_pct",
        "verdict",
        "reason",
    } <= set(row)
    assert row["base"] == {"boots": 3, "runs": 9, "mean": 100.0, "stddev": 1.0}
    assert row["label"] and row["label"].startswith("emulated")
    assert [r["metric"] for r in found["rows"]] == [
        make.METRIC,
        "page-fault.time",
        "perf-stat.instructions",
    ]
    assert found["progress"] == {
        "builds": 2,
        "builds_total": 2,
        "boots": 6,
        "boots_total": 6,
        "failed": 0,
        "builds_known": 2,
        "boots_known": 0,
    }
    assert found["eta_seconds"] is None
    assert len(found["boot_list"]) == 6


def test_a_list_of_comparisons_counts_a_number_once_whatever_it_is_called(
    conn: sa.Connection,
) -> None:
    number, testbox = a_finished_comparison(conn)
    make.a_row(conn, number, testbox, "page-fault.total", alias_of=make.METRIC)
    found = read.table(conn, number)
    assert [row["metric"] for row in found["rows"] if row["alias_of"] == make.METRIC] == [
        "page-fault.total"
    ]
    (listed,) = [row for row in read.list_comparisons(conn) if row["id"] == found["id"]]
    worse = [row["metric"] for row in found["rows"] if row["verdict"] == "worse"]
    assert worse.count(make.METRIC) == worse.count("page-fault.total") == 1
    assert listed["worse"] == 1  # neither the alias nor the counter, which is not a headline


def test_samples_of_a_comparison_come_from_both_sides_and_from_its_own_boots_only(
    conn: sa.Connection,
) -> None:
    number, testbox = a_finished_comparison(conn)
    kernel = make.a_kernel(conn, 1, 3)
    make.a_boot(conn, testbox, kernel, k=0, values={make.METRIC: [1.0]})
    samples = [row for row in read.samples_of_table(conn, number) if row["metric"] == make.METRIC]
    assert {row["arm"] for row in samples} == {0, 1}
    assert len(samples) == 18
    assert [row["value"] for row in samples if row["arm"] == 1 and row["k"] == 2] == [
        84.0,
        82.0,
        80.0,
    ]


def test_a_running_comparison_tells_how_far_it_is_and_estimates_from_earlier_boots(
    conn: sa.Connection,
) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    base, head = make.a_kernel(conn, tree, 0), make.a_kernel(conn, tree, 1)
    comparison = make.a_comparison(conn, tree, base, head, [testbox], status="running")
    for k in range(2):
        make.a_boot(conn, testbox, base, k=k, seconds=20.0, comparison=comparison)
    make.an_order(conn, base, testbox, k=2, state="running", comparison=comparison)
    boots_of(conn, comparison, testbox, head)
    found = read.table(conn, comparison)
    assert (found["progress"]["boots"], found["progress"]["boots_total"]) == (2, 6)
    assert found["eta_seconds"] == pytest.approx(4 * 20.0)


def ago(seconds: float) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=seconds)


def boots_of(
    conn: sa.Connection,
    comparison: int,
    testbox: make.Testbox,
    *kernels: make.Kernel,
    boots: int = 3,
    **more: Any,
) -> None:
    """The boot orders of a comparison, as placed: none handed out."""
    for k in range(boots):
        for kernel in kernels:
            make.an_order(conn, kernel, testbox, k=k, comparison=comparison, **more)


def forecast(conn: sa.Connection, kernel: make.Kernel, seconds: float) -> None:
    PgTransaction(conn).builds.put_forecasts({kernel.build_key: seconds})


def test_a_full_build_is_estimated_as_one_whatever_the_builds_before_it_took(
    conn: sa.Connection,
) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    for n in range(10):
        make.a_kernel_build(conn, make.a_variant(conn, tree, n), seconds=8.0)
    make.a_boot(conn, testbox, make.a_kernel(conn, tree, 10), seconds=20.0)
    base, head = (make.a_variant(conn, tree, n) for n in (11, 12))
    comparison = make.a_comparison(conn, tree, base, head, [testbox], status="running")
    assert read.table(conn, comparison)["eta_seconds"] is None  # not foreseen yet
    forecast(conn, base, 400.0)
    forecast(conn, head, 9.0)
    # boots begin when the first kernel is built, and the last of them waits for the second
    assert read.table(conn, comparison)["eta_seconds"] == pytest.approx(400 + 6 * 20)
    boots_of(conn, comparison, testbox, base, head)
    for kernel in (base, head):
        make.an_order(conn, kernel, comparison=comparison)
    assert read.table(conn, comparison)["eta_seconds"] == pytest.approx(400 + 6 * 20)


def test_what_others_queued_before_counts_and_what_they_queued_behind_does_not(
    conn: sa.Connection,
) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    built = make.a_kernel(conn, tree, 10)
    make.a_boot(conn, testbox, built, seconds=20.0)
    theirs = make.a_comparison(conn, tree, built, make.a_variant(conn, tree, 9), [testbox])
    boots_of(conn, theirs, testbox, built, series="c9", boots=5, priority=30)
    others = make.a_variant(conn, tree, 8)
    forecast(conn, others, 300.0)
    make.an_attempt(conn, make.an_order(conn, others, state="running"), at=ago(100))
    head = make.a_variant(conn, tree, 11)
    forecast(conn, head, 50.0)
    ours = make.a_comparison(conn, tree, built, head, [testbox], status="running")
    make.an_order(conn, head, comparison=ours, priority=30)
    boots_of(conn, ours, testbox, built, head, series="c2", priority=30)
    assert read.table(conn, ours)["eta_seconds"] == pytest.approx(250 + 3 * 20, abs=2)
    assert read.table(conn, ours)["waits"] == ["1 other kernel build is before its own"]
    # lower ones fill the wait for the kernel, and the one that runs then is not stopped
    boots_of(conn, theirs, testbox, built, series="c1", boots=20, priority=10)
    assert read.table(conn, ours)["eta_seconds"] == pytest.approx(260 + 3 * 20, abs=2)
    (shown,) = [c for c in read.status(conn)["tables"] if c["id"] == f"c{ours}"]
    assert shown["eta_seconds"] == pytest.approx(260 + 3 * 20, abs=2)


def test_builds_that_are_slower_than_forecast_lengthen_the_next_ones(conn: sa.Connection) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    make.a_boot(conn, testbox, make.a_kernel(conn, tree, 10), seconds=20.0)
    for n in range(3):
        slow = make.a_variant(conn, tree, n)
        forecast(conn, slow, 100.0)
        make.a_kernel_build(conn, slow, seconds=150.0)
    head = make.a_variant(conn, tree, 11)
    forecast(conn, head, 60.0)
    comparison = make.a_comparison(
        conn, tree, make.a_kernel(conn, tree, 12), head, [testbox], status="running"
    )
    make.an_order(conn, head, comparison=comparison)
    boots_of(conn, comparison, testbox, head)
    assert read.table(conn, comparison)["eta_seconds"] == pytest.approx(90 + 3 * 20)


@pytest.mark.parametrize(("elapsed", "left"), [(100.0, 300.0), (390.0, 39.0), (1000.0, 100.0)])
def test_the_estimate_of_a_running_build_falls_with_its_time_and_grows_when_that_is_over(
    conn: sa.Connection, elapsed: float, left: float
) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    make.a_boot(conn, testbox, make.a_kernel(conn, tree, 10), seconds=20.0)
    base, head = (make.a_variant(conn, tree, n) for n in (11, 12))
    comparison = make.a_comparison(conn, tree, base, head, [testbox], status="running")
    for kernel, seconds in ((base, 400.0), (head, 9.0)):
        forecast(conn, kernel, seconds)
        order = make.an_order(conn, kernel, state="running", comparison=comparison)
        make.an_attempt(conn, order, at=ago(elapsed))
    boots_of(conn, comparison, testbox, base, head)
    found = read.table(conn, comparison)["eta_seconds"]
    assert found == pytest.approx(left + 6 * 20, abs=2)


def test_a_build_that_waited_for_another_one_runs_since_the_end_of_that(
    conn: sa.Connection,
) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    base, head = (make.a_variant(conn, tree, n) for n in (11, 12))
    make.a_kernel_build(conn, base, seconds=400.0, at=ago(410))
    make.a_boot(conn, testbox, base, seconds=20.0, k=9)
    comparison = make.a_comparison(conn, tree, base, head, [testbox], status="running")
    forecast(conn, head, 50.0)
    order = make.an_order(conn, head, state="running", comparison=comparison)
    make.an_attempt(conn, order, at=ago(410))
    boots_of(conn, comparison, testbox, head)
    found = read.table(conn, comparison)["eta_seconds"]
    assert found == pytest.approx(40 + 3 * 20, abs=2)


def test_boots_of_an_identical_image_count_for_both_sides(conn: sa.Connection) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    base = make.a_kernel(conn, tree, 0)
    head = make.a_kernel(conn, tree, 1, image=base.image)
    comparison = make.a_comparison(conn, tree, base, head, [testbox], boots=1)
    make.a_boot(conn, testbox, base, values={make.METRIC: [5.0]})
    found = read.table(conn, comparison)
    assert {row["arm"] for row in read.samples_of_table(conn, comparison)} == {0, 1}
    assert found["progress"]["boots_total"] == 1


def a_range(conn: sa.Connection, tree: int, commits: int = 8) -> list[make.Kernel]:
    return [make.a_kernel(conn, tree, number) for number in range(commits + 1)]


def test_a_running_bisection_shows_belief_points_log_and_what_is_on_its_way(
    conn: sa.Connection,
) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    kernels = a_range(conn, tree)
    belief = {
        "posterior": [
            {"idx": idx, "probability": 0.9 if idx == 5 else 0.1 / 7} for idx in range(1, 9)
        ],
        "p_none": 0.01,
        "phase": "search",
        "why": "halves the doubt",
    }
    bisection = make.a_bisection(conn, tree, testbox, kernels, belief=belief)
    boot = make.a_boot(conn, testbox, kernels[0], values={make.METRIC: [100.0, 101.0]})
    make.an_observation(conn, bisection, 0, 0, boot=boot, values=[100.0, 101.0], phase="ends")
    make.an_observation(conn, bisection, 3, 0, skip="panicked: no init")
    make.an_observation(conn, bisection, 4, 0)
    order = make.an_order(conn, kernels[4], testbox, k=0, state="running", bisection=bisection)
    found = read.bisection(conn, f"b{bisection}")
    json.dumps(found)
    assert {
        "id",
        "status",
        "culprit",
        "culprits",
        "probability",
        "change_pct",
        "interval_pct",
        "boots",
        "builds",
        "seconds",
        "candidates",
    } <= set(found)
    assert found["culprit"] is None
    assert found["probability"] == 0.9
    assert found["boots"] == 1
    assert [candidate["commit"] for candidate in found["candidates"]] == [
        kernel.commit for kernel in kernels[1:]
    ]
    assert [point["state"] for point in found["points"]][:5] == [
        "good end",
        "not measured",
        "not measured",
        "cannot be measured",
        "asked",
    ]
    waiting = [entry for entry in found["log"] if entry["seen_at"] is None]
    assert [(entry["idx"], entry["order"], entry["order_state"]) for entry in waiting] == [
        (4, f"o{order}", "running")
    ]
    assert 0 < found["progress"]["fraction"] < 1
    assert found["eta_seconds"] and found["eta_seconds"] > 0


def test_a_finished_bisection_answers_with_its_conclusion(conn: sa.Connection) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    kernels = a_range(conn, tree)
    culprit = {"commit": kernels[5].commit, "subject": "mm: commit 5"}
    candidates = [
        {
            "commit": kernel.commit,
            "subject": "",
            "probability": 0.99 if kernel is kernels[5] else 0.001,
            "state": "tested",
        }
        for kernel in kernels[1:]
    ]
    conclusion = {
        "status": "culprit",
        "culprit": culprit,
        "probability": 0.99,
        "change_pct": -18.1,
        "interval_pct": [-19.0, -17.2],
        "boots": 14,
        "candidates": candidates,
    }
    bisection = make.a_bisection(
        conn, tree, testbox, kernels, status="culprit", conclusion=conclusion
    )
    found = read.bisection(conn, bisection)
    assert found["culprit"] == culprit
    assert found["change_pct"] == -18.1
    assert found["boots"] == 14
    assert found["points"][5]["state"] == "culprit"
    assert found["points"][5]["probability"] == 0.99
    assert "eta_seconds" not in found


def test_an_incident_and_its_report_know_each_other_and_say_which_gates_were_not_run(
    conn: sa.Connection,
) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    kernels = a_range(conn, tree)
    bisection = make.a_bisection(
        conn,
        tree,
        testbox,
        kernels,
        status="culprit",
        conclusion={"culprit": {"commit": kernels[5].commit, "subject": "s"}},
    )
    incident = make.an_incident(conn, tree, kernels[5], bisections=[bisection])
    report = make.a_report(conn, incident, body="hello\n")
    found = read.incident(conn, incident)
    assert found["bisections"] == [f"b{bisection}"]
    assert found["reports"] == [f"r{report}"]
    assert found["culprit"]["commit"] == kernels[5].commit
    document = read.report(conn, f"r{report}")
    assert {
        "id",
        "kind",
        "state",
        "incident",
        "message_id",
        "to",
        "cc",
        "subject",
        "size",
        "evidence",
    } <= set(document)
    assert document["size"] == 6
    assert document["evidence"]["reproduced"] == "pass"
    assert document["evidence"]["revert"] == "not run"


def test_an_order_shows_each_attempt_with_its_dispatches(conn: sa.Connection) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    kernel = make.a_kernel(conn, tree, 0)
    order = make.an_order(conn, kernel, testbox, state="running")
    dead = make.an_attempt(conn, order, number=1, state="dead", reason="the worker was lost")
    make.a_dispatch(conn, dead, "boot-vm-icount", state="over")
    make.a_dispatch(conn, make.an_attempt(conn, order, number=2), "boot-vm-icount")
    found = read.order(conn, f"o{order}")
    assert [
        (attempt["number"], attempt["state"], len(attempt["dispatches"]))
        for attempt in found["attempts"]
    ] == [(1, "dead", 1), (2, "running", 1)]
    assert found["attempts"][0]["dispatches"][0]["bb_number"] == dead


def test_a_boot_lists_its_runs_and_a_run_that_failed_has_no_samples_and_a_reason(
    conn: sa.Connection,
) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    boot = make.a_boot(conn, testbox, make.a_kernel(conn, tree, 0), values={make.METRIC: [3.0]})
    make.a_run(conn, boot, number=1, reason="exit status 1")
    found = read.boot(conn, f"x{boot}")
    assert [(run["status"], run["samples"], run["reason"]) for run in found["runs"]] == [
        ("ok", {make.METRIC: [3.0]}, None),
        ("failed", {}, "exit status 1"),
    ]


def test_status_says_what_runs_and_what_is_wrong(conn: sa.Connection) -> None:
    tree = make.a_tree(conn, problem="https://example.org/mm-demo.git: repository not found")
    testbox = make.a_testbox(conn)
    make.a_testbox(conn, "vm-tcg", state="quarantined", reason="ran A against A differently")
    order = make.an_order(conn, make.a_kernel(conn, tree, 0), testbox, state="running")
    attempt = make.an_attempt(conn, order)
    conn.execute(
        sa.text("INSERT INTO lease (testbox, attempt) VALUES ('vm-icount', :attempt)"),
        {"attempt": attempt},
    )
    found = read.status(conn)
    json.dumps(found)
    assert found["queue"]["boot"] == {"waiting": 0, "ready": 0, "running": 1}
    assert [testbox["doing"] and testbox["doing"]["order"] for testbox in found["testboxes"]] == [
        f"o{order}",
        None,
    ]
    assert [problem["link"] for problem in found["problems"]] == [
        "/tree/mm-demo",
        "/testbox/vm-tcg",
    ]


@pytest.mark.parametrize(("kind", "words"), [("commits", "find many"), ("trees", "many")])
def test_search_says_how_many_match_and_gives_the_next_ones(
    conn: sa.Connection, kind: str, words: str
) -> None:
    tree = make.a_tree(conn)
    for n in range(45):
        make.a_tree(conn, f"many-{n:02d}")
        make.a_variant(conn, tree, n)
    conn.execute(sa.text("UPDATE variant SET subject = 'find one of many'"))
    found = read.search(conn, words)
    assert (found["hits"][kind], len(found[kind])) == (45, 20)
    assert found["hits"]["mails"] == 0 and "mails" not in found["next"]
    pieces = [found[kind]]
    while after := found["next"].get(kind):
        found = read.search(conn, words, kind, after)
        assert found["hits"] == {kind: 45}
        pieces.append(found[kind])
    assert [len(piece) for piece in pieces] == [20, 20, 5]
    assert len({str(row) for piece in pieces for row in piece}) == 45


def test_all_that_waits_is_over_with_the_last_boot_and_what_searches_will_still_order(
    conn: sa.Connection,
) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    built = make.a_kernel(conn, tree, 10)
    assert read.queue_end(conn) == {"seconds": 0.0, "until": None, "why": None}
    table = make.a_comparison(conn, tree, built, make.a_kernel(conn, tree, 9), [testbox])
    conn.execute(sa.text("UPDATE comparison SET status = 'running' WHERE id = :c"), {"c": table})
    boots_of(conn, table, testbox, built, series="c1", boots=5)
    assert "no boot of vm-icount like order o" in str(read.queue_end(conn)["why"])
    make.a_boot(conn, testbox, built, seconds=20.0)
    found = read.status(conn)
    (row,) = found["testboxes"]
    assert found["queue_end"]["seconds"] == row["queue_end"]["seconds"] == pytest.approx(100, abs=2)
    assert str(found["queue_end"]["until"]) > found["now"]
    kernels = [make.a_kernel(conn, tree, n) for n in range(1, 4)]
    make.a_bisection(conn, tree, testbox, kernels)
    assert read.queue_end(conn)["seconds"] == read.status(conn)["bisections"][0]["eta_seconds"]
    sql = "UPDATE testbox SET state = 'drained', reason = 'a new fan'"
    conn.execute(sa.text(sql))
    for end in (read.queue_end(conn), read.list_testboxes(conn)[0]["queue_end"]):
        assert end["seconds"] is None and "is drained: a new fan; run" in str(end["why"])


def test_status_names_a_testbox_that_is_idle_beside_an_order_that_it_could_take(
    conn: sa.Connection,
) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    order = make.an_order(conn, make.a_kernel(conn, tree, 0), testbox, state="ready")

    def named() -> list[str]:
        return [p["text"] for p in read.status(conn)["problems"] if "idle" in p["text"]]

    def ready(ago: str) -> None:
        for table, column in (("orders", "created_at"), ("kernel_build", "built_at")):
            conn.execute(sa.text(f"UPDATE {table} SET {column} = now() - interval '{ago}'"))

    ready("0")
    assert named() == []
    ready("5 minutes")
    (text,) = named()
    assert (
        f"vm-icount has been idle for 5 minutes beside 1 ready order, the oldest o{order}" in text
    )
    another = make.an_order(conn, make.a_kernel(conn, tree, 1), testbox, state="running")
    conn.execute(
        sa.text("INSERT INTO lease (testbox, attempt) VALUES ('vm-icount', :attempt)"),
        {"attempt": make.an_attempt(conn, another)},
    )
    assert named() == [], "it works"


def test_the_statement_of_a_long_transaction_is_named_without_its_texts(
    conn: sa.Connection, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "LONG_SECONDS", 0.0)
    with engine.connect() as long:
        long.execute(sa.text("SET application_name = 'swingbot loop'"))
        long.commit()
        long.execute(sa.text("SELECT 'it''s secret', 7,\n 'more' AS \"text\""))
        texts = [p["text"] for p in read.status(conn)["problems"] if p["text"].startswith("loop")]
    assert texts == [
        "loop has been in one transaction for 0 minutes; its last statement:"
        ' SELECT ??, 7, ? AS "text"'
    ]


def test_a_build_that_buildbot_has_not_started_is_queued(conn: sa.Connection) -> None:
    tree = make.a_tree(conn)
    kernels = [make.a_variant(conn, tree, n) for n in (1, 2)]
    first, second = (
        make.an_attempt(conn, make.an_order(conn, kernel, state="running")) for kernel in kernels
    )
    make.a_dispatch(conn, first)
    make.a_dispatch(conn, second, bb_builder=None, bb_number=None)
    states = {v["id"]: v["build_order_state"] for v in variants(conn, (1, 2)).values()}
    assert [states[f"v{kernel.variant}"] for kernel in kernels] == ["running", "ready"]
    found = read.status(conn)
    assert found["queue"]["build"] == {"waiting": 0, "ready": 1, "running": 1}
    assert [row["queued"] for row in found["running"]] == [False, True]
    lines = [line.split()[0] for line in text.status(found).splitlines()]
    assert (lines.count("running"), lines.count("queued")) == (1, 1)


@pytest.mark.parametrize(
    ("look", "id"),
    [
        (read.table, "c9"),
        (read.bisection, "b9"),
        (read.incident, "i9"),
        (read.report, "r9"),
        (read.order, "o9"),
        (read.boot, "x9"),
        (read.variant, "v9"),
    ],
)
def test_an_unknown_id_is_a_sentence(conn: sa.Connection, look: object, id: str) -> None:
    assert callable(look)
    with pytest.raises(read.NotFound, match=f"^[a-z]+ {id} does not exist"):
        look(conn, id)


def test_lists_take_filters_and_refuse_unknown_ones(conn: sa.Connection) -> None:
    number, _ = a_finished_comparison(conn)
    assert [
        row["id"]
        for row in read.list_comparisons(
            conn, {"tree": "mm-demo", "status": "done,failed", "testbox": "vm-icount"}
        )
    ] == [f"c{number}"]
    with pytest.raises(ValueError, match="tree cannot be 'other'; it is one of mm-demo"):
        read.list_comparisons(conn, {"tree": "other"})
    (comparison,) = read.list_comparisons(conn)
    assert comparison["headline"]["verdict"] == "worse"
    assert comparison["headline"]["metric"] == make.METRIC
    assert [row["metric"] for row in read.list_metrics(conn)] == [
        make.METRIC,
        "perf-stat.instructions",
    ]
    assert [row["name"] for row in read.list_testboxes(conn, {"name": "vm-icount"})] == [
        "vm-icount"
    ]
    for query in (
        read.list_bisections,
        read.list_incidents,
        read.list_orders,
        read.list_reports,
        read.list_trees,
    ):
        with pytest.raises(ValueError, match="unknown filter 'colour'"):
            query(conn, {"colour": "red"})


@pytest.mark.parametrize("plural", ["comparisons", "bisections", "incidents", "reports", "orders"])
def test_lists_begin_at_a_time_and_refuse_what_is_none(conn: sa.Connection, plural: str) -> None:
    scenario.a_lab(conn)

    def listed(**filters: str) -> list[str]:
        return [row["id"] for row in getattr(read, f"list_{plural}")(conn, filters)]

    for early in ("2001-01-02", "2001-01-02T03:04Z", "2001-01-02T03:04:05+05:30"):
        assert listed(since=early) == listed() != [], early
    assert listed(since="2101-01-02") == []
    for odd in ("yesterday", "2001-13-01", "0001-01-01T00:00+23:59", "1", "2001-01-02,", "9" * 500):
        with pytest.raises(ValueError, match="since must be a time in UTC, such as 2026-01-02"):
            listed(since=odd)


@pytest.mark.parametrize(
    ("plural", "column"), [("comparisons", "comparison"), ("bisections", "bisection")]
)
def test_lists_show_what_a_person_asked_for(conn: sa.Connection, plural: str, column: str) -> None:
    scenario.a_lab(conn)

    def listed(**filters: str) -> list[str]:
        return [row["id"] for row in getattr(read, f"list_{plural}")(conn, filters)]

    *_, first = every = listed()
    assert len(every) > 1
    conn.execute(
        sa.text(
            f"INSERT INTO asked ({column}, who, token, testbox_seconds)"
            " SELECT :number, 'Ada', min(id), 0 FROM access_token"
        ),
        {"number": int(first[1:])},
    )
    assert listed(person="Ada") == [first]
    with pytest.raises(ValueError, match="person cannot be 'Bob'; it is one of .*Ada"):
        listed(person="Ada,Bob")


@pytest.mark.parametrize("plural", ["comparisons", "bisections"])
def test_lists_take_parts_of_a_tests_name(conn: sa.Connection, plural: str) -> None:
    scenario.a_lab(conn)

    def listed(test: str) -> list[str]:
        return [row["id"] for row in getattr(read, f"list_{plural}")(conn, {"test": test})]

    assert listed("hackbench-process") == listed("none,hackbench-process") != []
    for odd in ("none", "hack_ench", "%%", "HACKBENCH", "'"):
        assert listed(odd) == [], odd


def test_raw_lists_the_files_of_every_boot_of_a_request(conn: sa.Connection) -> None:
    number, _ = a_finished_comparison(conn)
    manifest = read.raw_manifest(conn, f"c{number}")
    json.dumps(manifest)
    assert len(manifest["boots"]) == 6
    assert len([file for file in manifest["files"] if file["path"].startswith("x")]) == 18
    assert len([file for file in manifest["files"] if file["path"].startswith("kernels/")]) == 8
    assert {tuple(boot["roles"]) for boot in manifest["boots"]} == {("base",), ("head",)}
    boot = manifest["boots"][0]["id"]
    assert [file["path"] for file in read.raw_manifest(conn, boot)["files"]] == [
        "console.log",
        "qemu.log",
        "results.tar",
    ]
    assert len(list(read.samples(conn, boot))) == 6
