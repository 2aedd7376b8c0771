"""Views over real rows: what panels and reports may rely on."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from tests import builders as make
from tests.tables import COUNTER, an_experiment


def rows(conn: sa.Connection, sql: str) -> list[dict[str, Any]]:
    return [dict(row) for row in conn.execute(sa.text(sql)).mappings()]


def test_a_commit_is_the_mean_of_its_boots_and_the_spread_is_between_boots(
    conn: sa.Connection,
) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    kernel = make.a_kernel(conn, tree, 1)
    for k, values in enumerate(([1.0, 3.0], [4.0], [6.0])):
        make.a_boot(conn, testbox, kernel, k=k, values={make.METRIC: values})
    (row,) = rows(conn, "SELECT * FROM v_metric_over_commits")
    assert (row["mean"], row["stddev"], row["boots"], row["runs"]) == (4.0, 2.0, 3, 4)
    assert (row["commit"], row["tree"], row["testbox"]) == (kernel.commit, "mm-demo", "vm-icount")
    assert row["label"].startswith("emulated")


def test_one_boot_has_no_spread(conn: sa.Connection) -> None:
    testbox = make.a_testbox(conn)
    make.a_boot(
        conn, testbox, make.a_kernel(conn, make.a_tree(conn), 1), values={make.METRIC: [1.0, 2.0]}
    )
    assert rows(conn, "SELECT stddev FROM v_metric_over_commits") == [{"stddev": None}]


def test_a_boot_counts_for_every_commit_with_the_same_image(conn: sa.Connection) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    first = make.a_kernel(conn, tree, 1)
    second = make.a_kernel(conn, tree, 2, image=first.image)
    make.a_boot(conn, testbox, first, values={make.METRIC: [7.0]})
    found = rows(conn, "SELECT commit, mean FROM v_metric_over_commits ORDER BY subject")
    assert found == [{"commit": first.commit, "mean": 7.0}, {"commit": second.commit, "mean": 7.0}]


def test_only_measured_boots_are_shown(conn: sa.Connection) -> None:
    testbox = make.a_testbox(conn)
    boot = make.a_boot(
        conn, testbox, make.a_kernel(conn, make.a_tree(conn), 1), values={make.METRIC: [7.0]}
    )
    conn.execute(sa.text("UPDATE boot SET origin = 'simulated' WHERE id = :id"), {"id": boot})
    assert rows(conn, "SELECT * FROM v_metric_over_commits") == []
    assert rows(conn, "SELECT * FROM v_boots") == []


def test_tips_are_distinguished_from_commits_that_only_a_bisection_measured(
    conn: sa.Connection,
) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    kernels = [make.a_kernel(conn, tree, number) for number in range(3)]
    make.a_change(conn, tree, kernels[0].commit, kernels[2].commit)
    for kernel in kernels:
        make.a_boot(conn, testbox, kernel, values={make.METRIC: [7.0]})
    assert [
        row["is_tip"]
        for row in rows(conn, "SELECT is_tip FROM v_metric_over_commits ORDER BY subject")
    ] == [True, False, True]


def test_the_fault_of_an_attempt_is_the_labs_only_if_it_died_or_said_infra(
    conn: sa.Connection,
) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    kernel = make.a_kernel(conn, tree, 1)
    make.a_boot(conn, testbox, kernel, outcome="panicked")
    order = make.an_order(conn, kernel, testbox, k=1, state="running")
    make.an_attempt(conn, order, number=1, state="dead", reason="the worker was lost")
    make.an_attempt(
        conn,
        order,
        number=2,
        outcome={"status": "infra", "seconds": 3, "reason": "no room on the disk"},
    )
    make.an_attempt(conn, order, number=3)
    found = {
        row["status"]: row["lab_fault"]
        for row in rows(conn, "SELECT status, lab_fault FROM v_attempts WHERE kind = 'boot'")
    }
    assert found == {"panicked": False, "dead": True, "infra": True, "running": False}


def test_an_experiment_counts_its_headline_rows_once_however_many_references_they_have(
    conn: sa.Connection,
) -> None:
    made = an_experiment(conn, kernels=4, boots=4, against=("above", "first"))
    an_experiment(conn, kernels=2, boots=1, status="waiting", tree="other")
    done, waiting = rows(conn, "SELECT * FROM v_experiments ORDER BY experiment")
    assert (done["experiment"], done["tree"], done["status"]) == ("e1", "mm-tables", "done")
    assert (done["rows"], done["boots"], done["against"]) == (4, 4, ["above", "first"])
    assert [done[name] for name in ("worse", "better", "changed", "same", "unclear")] == [
        1,
        1,
        0,
        1,
        0,
    ]
    assert (waiting["rows"], waiting["worse"], waiting["ended_at"]) == (2, 0, None)
    assert made.id == 1


def test_a_row_of_an_experiment_has_its_level_and_its_change_against_each_reference(
    conn: sa.Connection,
) -> None:
    made = an_experiment(conn, kernels=3, boots=4, against=("above", "first"), unbuildable=(1,))
    query = "SELECT * FROM v_experiment_rows WHERE metric = :metric ORDER BY arm, against"
    found = [dict(r) for r in conn.execute(sa.text(query), {"metric": make.METRIC}).mappings()]
    assert [(r["arm"], r["against"], r["reference"], r["verdict"]) for r in found] == [
        (0, None, None, None),
        (1, "above", "v6.1", "invalid"),
        (1, "first", "v6.1", "invalid"),
        (2, "above", made.kernels[1].commit[:12], "invalid"),
        (2, "first", "v6.1", "worse"),
    ]
    first, last = found[0], found[-1]
    assert first["change_pct"] is None and first["low_pct"] is None and first["boots"] == 4
    assert last["low_pct"] < last["change_pct"] < last["high_pct"] < 0
    assert abs(100 * (last["mean"] / first["mean"] - 1) - last["change_pct"]) < 0.1
    assert found[1]["mean"] is None and "does not build" in found[1]["reason"]
    assert last["stddev"] > 0 and last["commit"] == made.kernels[2].commit
    counters = rows(conn, f"SELECT headline FROM v_experiment_rows WHERE metric = '{COUNTER}'")
    assert {row["headline"] for row in counters} == {False}


def test_comparisons_are_no_experiments(conn: sa.Connection) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    base, head = (make.a_kernel(conn, tree, number) for number in (1, 2))
    make.a_row(conn, make.a_comparison(conn, tree, base, head, [testbox]), testbox)
    assert rows(conn, "SELECT * FROM v_experiments") == []
    assert rows(conn, "SELECT * FROM v_experiment_rows") == []
