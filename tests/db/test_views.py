"""Views over real rows: what panels and reports may rely on."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
import sqlalchemy as sa

from swingbot_db import read
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


def test_variants_of_a_commit_are_told_apart_and_only_its_plain_kernels_are_tips(
    conn: sa.Connection,
) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    base = make.a_kernel(conn, tree, 0)
    kernels = [
        make.a_kernel(conn, tree, 1),
        make.a_kernel(conn, tree, 1, compiler="clang-19"),
        make.a_kernel(conn, tree, 1, layout=1),
        make.a_kernel(conn, tree, 1, patched=True),
    ]
    make.a_change(conn, tree, base.commit, kernels[0].commit)
    for kernel in kernels:
        make.a_boot(conn, testbox, kernel, values={make.METRIC: [7.0]})
    found = rows(
        conn,
        "SELECT compiler, kconfig, layout, patched, origin, is_tip, place"
        " FROM v_metric_over_commits ORDER BY variant",
    )
    assert [tuple(row.values()) for row in found] == [
        ("gcc", "vm-x86_64", 0, False, "branch", True, 1),
        ("clang-19", "vm-x86_64", 0, False, "branch", True, 1),
        ("gcc", "vm-x86_64", 1, False, "branch", False, 1),
        ("gcc", "vm-x86_64", 0, True, "patch", False, None),
    ]


def test_tips_count_from_the_base_of_the_first_change(conn: sa.Connection) -> None:
    tree, other = make.a_tree(conn), make.a_tree(conn, "other")
    commits = [make.hex_of(number) for number in range(4)]
    for day, (old, new) in enumerate(pairwise(commits)):
        make.a_change(conn, tree, old, new, seen_at=make.START + timedelta(days=day))
    make.a_change(conn, other, commits[3], commits[0])
    found = rows(conn, "SELECT commit, place FROM v_tips WHERE tree = 'mm-demo' ORDER BY place")
    assert [(row["commit"], row["place"]) for row in found] == list(
        zip(commits, range(4), strict=True)
    )
    assert len(rows(conn, "SELECT * FROM v_tips WHERE tree = 'other'")) == 2


@pytest.mark.parametrize("backwards", [False, True])
def test_the_base_comes_before_the_first_tip_also_where_both_were_seen_at_once(
    conn: sa.Connection, backwards: bool
) -> None:
    """Neither time nor the order of the commits' names says which came first."""
    tree = make.a_tree(conn)
    kernels = [make.a_kernel(conn, tree, number) for number in range(6)]
    kernels.sort(key=lambda kernel: kernel.commit, reverse=backwards)
    commits = [kernel.commit for kernel in kernels]
    for old, new in pairwise(commits):
        make.a_change(conn, tree, old, new)
    found = rows(conn, "SELECT commit FROM v_tips ORDER BY place")
    assert [row["commit"] for row in found] == commits
    testbox = make.a_testbox(conn)
    for kernel in kernels:
        make.a_boot(conn, testbox, kernel, values={make.METRIC: [1.0]})
    where = {"testbox": testbox.name, "unit_job": make.UNIT_JOB, "metric": make.METRIC}
    history = read.history(conn, tree="mm-demo", **where)
    assert [(one["commit"], one["place"]) for one in history] == [
        (commit, place) for place, commit in enumerate(commits)
    ]
    page = read.metric_history(conn, "mm-demo", *where.values())
    assert [kernel["commit"] for kernel in page["kernels"]] == commits
    over = rows(conn, "SELECT commit FROM v_metric_over_commits WHERE is_tip ORDER BY place")
    assert [row["commit"] for row in over] == commits


def test_the_unit_of_a_metric_is_that_of_its_latest_comparison(conn: sa.Connection) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    base, head = (make.a_kernel(conn, tree, number) for number in (1, 2))
    for unit in ("KiB", "MiB"):
        comparison = make.a_comparison(conn, tree, base, head, [testbox])
        make.a_row(conn, comparison, testbox, unit=unit, better="higher", headline=True)
    assert rows(conn, "SELECT metric, unit, better, headline FROM v_compared") == [
        {"metric": make.METRIC, "unit": "MiB", "better": "higher", "headline": True}
    ]


def a_culprit(conn: sa.Connection, report: str, **more: Any) -> dict[str, int]:
    """A change that swung, its proof an hour later, a bisection of ten minutes and a mail."""
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    kernels = [make.a_kernel(conn, tree, number) for number in range(3)]
    change = make.a_change(conn, tree, kernels[0].commit, kernels[2].commit)
    at = make.START + timedelta(minutes=30)
    compared = make.a_comparison(
        conn, tree, kernels[0], kernels[2], [testbox], kind="watch", change=change, at=at
    )
    make.a_row(conn, compared, testbox, headline=True)
    proof = make.a_comparison(
        conn, tree, kernels[0], kernels[2], [testbox], kind="prove", at=at + timedelta(hours=1)
    )
    bisection = make.a_bisection(
        conn, tree, testbox, kernels, status="culprit", at=at + timedelta(hours=2)
    )
    make.a_swing(conn, compared, testbox, state="explained", bisection=bisection, proof=proof)
    incident = make.an_incident(conn, tree, kernels[1], bisections=[bisection])
    sent = at + timedelta(hours=4)
    make.a_report(conn, incident, state=report, at=at + timedelta(hours=3), **more)
    if report == "sent":
        conn.execute(sa.text("UPDATE report SET sent_at = :at"), {"at": sent})
    return {"incident": incident, "bisection": bisection}


def test_the_stages_of_a_culprit_add_up_to_the_time_from_its_change_to_its_mail(
    conn: sa.Connection,
) -> None:
    a_culprit(conn, "sent")
    found = rows(conn, "SELECT * FROM v_stage_times ORDER BY stage_number")
    minutes = {row["stage"]: row["seconds"] / 60 for row in found}
    assert minutes == {"compare": 35, "prove": 60, "bisect": 65, "draft": 50, "mail": 60}
    assert found[0]["time"] == make.START
    assert sum(minutes.values()) == 30 + 4 * 60


def test_a_stage_that_ended_before_an_earlier_one_takes_no_time(conn: sa.Connection) -> None:
    a_culprit(conn, "sent")
    early = make.START - timedelta(days=1)
    conn.execute(sa.text("UPDATE report SET created_at = :at"), {"at": early})
    found = rows(conn, "SELECT stage, seconds FROM v_stage_times ORDER BY stage_number")
    assert {row["stage"]: row["seconds"] for row in found}["draft"] == 0
    assert sum(row["seconds"] for row in found) == (30 + 4 * 60) * 60


def test_a_swing_is_open_until_its_incident_is_settled_and_says_why_its_mail_waits(
    conn: sa.Connection,
) -> None:
    a_culprit(conn, "held", reason="the first of its class")
    (swing,) = rows(conn, "SELECT * FROM v_swings")
    assert swing["open"] and swing["incident_status"] == "open"
    assert (swing["report"], swing["report_state"]) == ("r1", "held")
    assert swing["held_by"] == "the first of its class"
    assert swing["unit"] == "ops/s" and swing["seen_at"] == make.START
    (mail,) = rows(conn, "SELECT * FROM v_reports")
    assert mail["held_seconds"] > 0 and mail["bisection"] == "b1"
    conn.execute(sa.text("UPDATE incident SET status = 'fixed'"))
    assert rows(conn, "SELECT open FROM v_swings") == [{"open": False}]


def test_a_change_says_how_far_its_tip_came(conn: sa.Connection) -> None:
    a_culprit(conn, "sent")
    tree = conn.execute(sa.text("SELECT id FROM tree")).scalar_one()
    make.a_change(conn, tree, make.hex_of("a"), make.hex_of("b"))
    names = "comparison, status, swings, refuted, proved, bisected, culprits, mails"
    found = rows(conn, f'SELECT {names} FROM v_changes ORDER BY "time", comparison')
    assert [tuple(row.values()) for row in found] == [
        ("c1", "done", 1, 0, 1, 1, 1, 1),
        (None, None, 0, 0, 0, 0, 0, 0),
    ]


def test_a_spread_that_is_not_known_is_missing(conn: sa.Connection) -> None:
    testbox = make.a_testbox(conn)
    boot = make.a_boot(conn, testbox, make.a_kernel(conn, make.a_tree(conn), 1))
    detail = {"run": {"sd": 0.0, "df": 0.0}, "boot_mean": {"sd": 0.004, "df": 12.0}, "boots": 13}
    row = {"testbox": testbox.name, "unit_job": make.UNIT_JOB, "metric": make.METRIC}
    make._insert(conn, "noise_record", row | {"detail": detail, "through": boot}, returning=None)
    (noise,) = rows(conn, "SELECT * FROM v_noise")
    assert (noise["run_pct"], noise["boot_pct"], noise["boots"]) == (None, 0.4, 13)


def test_the_moves_of_the_queue_add_up_to_the_orders_that_wait(conn: sa.Connection) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    kernel = make.a_kernel(conn, tree, 1)
    make.a_boot(conn, testbox, kernel)
    started = make.an_order(conn, kernel, testbox, k=1, state="running")
    make.an_attempt(conn, started, state="dead")
    make.an_attempt(conn, started, number=2)
    make.an_order(conn, kernel, testbox, k=2, state="cancelled")
    for k in (3, 4):
        make.an_order(conn, kernel, testbox, k=k, state="ready")
    moves = "SELECT kind, sum(delta)::integer AS n FROM v_queue_moves GROUP BY kind ORDER BY kind"
    assert rows(conn, moves) == [{"kind": "boot", "n": 2}, {"kind": "build", "n": 0}]


def test_a_lost_testbox_says_so_whatever_its_state_is(conn: sa.Connection) -> None:
    for name, state, now in (
        ("a", "active", "lost"),
        ("b", "quarantined", "idle"),
        ("c", "drained", "idle"),
        ("d", "active", "running"),
        ("e", "active", None),
    ):
        make.a_testbox(conn, name, state=state, reason="by hand" if state != "active" else None)
        if now:
            of_testbox = {
                "testbox": name,
                "state": now,
                "why": "no answer" if now == "lost" else "",
            }
            make._insert(conn, "testbox_now", of_testbox, returning=None)
    found = rows(conn, "SELECT testbox, condition, why FROM v_testboxes ORDER BY testbox")
    assert [tuple(row.values()) for row in found] == [
        ("a", "lost", "no answer"),
        ("b", "quarantined", "by hand"),
        ("c", "drained", "by hand"),
        ("d", "running", ""),
        ("e", "idle", ""),
    ]
