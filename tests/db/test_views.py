"""Views over real rows: what panels and reports may rely on."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from tests import builders as make


def rows(conn: sa.Connection, sql: str) -> list[dict[str, Any]]:
    return [dict(row) for row in conn.execute(sa.text(sql)).mappings()]


def test_a_commit_is_the_mean_of_its_boots_and_the_spread_is_between_boots(
    conn: sa.Connection,
) -> None:
    tree, box = make.a_tree(conn), make.a_testbox(conn)
    kernel = make.a_kernel(conn, tree, 1)
    for k, values in enumerate(([1.0, 3.0], [4.0], [6.0])):
        make.a_boot(conn, box, kernel, k=k, values={make.METRIC: values})
    (row,) = rows(conn, "SELECT * FROM v_metric_over_commits")
    assert (row["mean"], row["stddev"], row["boots"], row["runs"]) == (4.0, 2.0, 3, 4)
    assert (row["commit"], row["tree"], row["testbox"]) == (kernel.commit, "mm-demo", "vm-icount")
    assert row["label"].startswith("emulated")


def test_one_boot_has_no_spread(conn: sa.Connection) -> None:
    box = make.a_testbox(conn)
    make.a_boot(
        conn, box, make.a_kernel(conn, make.a_tree(conn), 1), values={make.METRIC: [1.0, 2.0]}
    )
    assert rows(conn, "SELECT stddev FROM v_metric_over_commits") == [{"stddev": None}]


def test_a_boot_counts_for_every_commit_with_the_same_image(conn: sa.Connection) -> None:
    tree, box = make.a_tree(conn), make.a_testbox(conn)
    first = make.a_kernel(conn, tree, 1)
    second = make.a_kernel(conn, tree, 2, image=first.image)
    make.a_boot(conn, box, first, values={make.METRIC: [7.0]})
    found = rows(conn, "SELECT commit, mean FROM v_metric_over_commits ORDER BY subject")
    assert found == [{"commit": first.commit, "mean": 7.0}, {"commit": second.commit, "mean": 7.0}]


def test_only_measured_boots_are_shown(conn: sa.Connection) -> None:
    box = make.a_testbox(conn)
    boot = make.a_boot(
        conn, box, make.a_kernel(conn, make.a_tree(conn), 1), values={make.METRIC: [7.0]}
    )
    conn.execute(sa.text("UPDATE boot SET origin = 'simulated' WHERE id = :id"), {"id": boot})
    assert rows(conn, "SELECT * FROM v_metric_over_commits") == []
    assert rows(conn, "SELECT * FROM v_boots") == []


def test_tips_are_told_from_commits_that_only_a_bisection_measured(conn: sa.Connection) -> None:
    tree, box = make.a_tree(conn), make.a_testbox(conn)
    kernels = [make.a_kernel(conn, tree, number) for number in range(3)]
    make.a_change(conn, tree, kernels[0].commit, kernels[2].commit)
    for kernel in kernels:
        make.a_boot(conn, box, kernel, values={make.METRIC: [7.0]})
    assert [
        row["is_tip"]
        for row in rows(conn, "SELECT is_tip FROM v_metric_over_commits ORDER BY subject")
    ] == [True, False, True]


def test_the_fault_of_an_attempt_is_the_labs_only_if_it_died_or_said_infra(
    conn: sa.Connection,
) -> None:
    tree, box = make.a_tree(conn), make.a_testbox(conn)
    kernel = make.a_kernel(conn, tree, 1)
    make.a_boot(conn, box, kernel, outcome="panicked")
    order = make.an_order(conn, kernel, box, k=1, state="running")
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
