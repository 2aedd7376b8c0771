"""The schema refuses rows that make no sense."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from swingbot.core.model.patches import BranchPatch, Patch
from swingbot_db.engine import make_engine
from swingbot_db.migrate import upgrade
from swingbot_db.store import PgTransaction
from tests import builders as make


@pytest.fixture
def filled(conn: sa.Connection) -> sa.Connection:
    """A database with a row in most tables."""
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    kernels = [make.a_kernel(conn, tree, n) for n in range(2)]
    comparison = make.a_comparison(conn, tree, kernels[0], kernels[1], [testbox], kind="watch")
    make.a_row(conn, comparison, testbox)
    make.a_swing(conn, comparison, testbox)
    make.a_boot(conn, testbox, kernels[0], values={make.METRIC: [1.0]})
    bisection = make.a_bisection(conn, tree, testbox, kernels)
    want = "INSERT INTO bisection_want (bisection, idx, k, phase) VALUES (:b, 0, 0, 'ends')"
    conn.execute(sa.text(want), {"b": bisection})
    make.a_report(conn, make.an_incident(conn, tree, kernels[1]))
    attempt = make.an_attempt(conn, make.an_order(conn, kernels[1], testbox, state="running"))
    lease = "INSERT INTO lease (testbox, attempt) VALUES (:testbox, :attempt)"
    conn.execute(sa.text(lease), {"testbox": testbox.name, "attempt": attempt})
    old, new = (
        Patch(commit=digit * 40, parent="", patch_id="p", subject="s", author="a") for digit in "12"
    )
    tx = PgTransaction(conn)
    tx.patches.set_branch(tree, [BranchPatch(patch=new, state="same", was=old)])
    tx.builds.put_forecasts({kernels[0].build_key: 300.0})
    return conn


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("UPDATE bisection SET status = 'crept', ended_at = now()", "bisection_status_check"),
        ("UPDATE bisection_want SET layout = -1", "bisection_want_layout_check"),
        ("UPDATE bisection_want SET testbox_index = -1", "bisection_want_testbox_index_check"),
        ("UPDATE bisection_want SET layout = NULL", "layout"),
        ("UPDATE boot SET purpose = 'Gate 2'", "boot_purpose_is_a_word"),
        ("UPDATE branch_patch SET state = 'lost'", "branch_patch_state_check"),
        ("UPDATE branch_patch SET position = 0", "branch_patch_position_check"),
        ("UPDATE branch_patch SET was = NULL", "branch_patch_was_there"),
        ("UPDATE build_forecast SET seconds = -1", "build_forecast_seconds_check"),
        ("UPDATE comparison SET kind = 'perhaps'", "comparison_kind_check"),
        ("UPDATE comparison SET looks_stated = 0", "comparison_looks_stated_check"),
        ("UPDATE comparison SET min_effect_pct = 0", "comparison_min_effect_pct_check"),
        ("UPDATE comparison SET purpose = 'Gate 2'", "comparison_purpose_is_a_word"),
        ("UPDATE lease SET holder = 'lab1', until = NULL", "lease_holder_is_dated"),
        ("INSERT INTO mail_switch DEFAULT VALUES", "mail_switch_pkey"),
        ("UPDATE orders SET purpose = 'Gate 2'", "order_purpose_is_a_word"),
        ("UPDATE report SET incident = NULL", "report_of_incident_or_week"),
        ("UPDATE report SET incident = NULL, kind = 'alert'", "report_of_incident_or_week"),
        ("UPDATE run SET status = 'perhaps', reason = 'why'", "run_status_check"),
        ("UPDATE swing SET state = 'perhaps'", "swing_state_check"),
        ("UPDATE swing SET source = 'creep'", "swing_creep_has_anchor"),
        ("UPDATE swing SET source = 'rumour'", "swing_source_check"),
        ("UPDATE tree SET min_effect_pct = -1", "tree_min_effect_pct_check"),
        ("UPDATE variant SET commit = repeat('a', 40)", "variant_once_a_level"),
    ],
)
def test_rows_that_make_no_sense_are_refused(
    filled: sa.Connection, statement: str, constraint: str
) -> None:
    with pytest.raises(sa.exc.IntegrityError, match=f'"{constraint}"'):
        filled.execute(sa.text(statement))


def test_a_commit_is_a_variant_of_each_level_of_trust(conn: sa.Connection) -> None:
    kernel = make.a_variant(conn, make.a_tree(conn))
    copy = (
        "INSERT INTO variant (tree, commit, subject, tree_hash, kconfig, compiler, build_key,"
        " origin, trust) SELECT tree, commit, subject, tree_hash, kconfig, compiler,"
        " repeat('e', 64), 'patch', 'untrusted' FROM variant"
    )
    conn.execute(sa.text(copy))
    of_commit = sa.text("SELECT trust FROM variant WHERE commit = :c ORDER BY trust")
    found = conn.execute(of_commit, {"c": kernel.commit}).scalars().all()
    assert found == ["trusted", "untrusted"]


@pytest.mark.parametrize(
    "name",
    [
        "result/a/b/c/d/e/f",
        "result/a/b/c/d/e/f/../x",
        "/result/a/b/c/d/e/f/g",
        "result/a/b/c/d/e/f/g h",
        "result/a/b/c/d/e/f/..",
    ],
)
def test_result_roots_that_are_no_paths_are_refused(conn: sa.Connection, name: str) -> None:
    with pytest.raises(sa.exc.IntegrityError):
        conn.execute(sa.text("INSERT INTO result_root (name) VALUES (:name)"), {"name": name})


def test_mail_is_not_stopped_at_first(conn: sa.Connection) -> None:
    assert conn.execute(sa.text("SELECT stopped FROM mail_switch")).scalar_one() is False


def test_fences_of_a_database_that_is_set_up_anew_exceed_those_of_the_last(
    fresh_databases: Callable[[], str], old: sa.Engine
) -> None:
    def fence(engine: sa.Engine) -> int:
        with engine.begin() as conn:
            return int(conn.execute(sa.text("SELECT nextval('lease_fence_seq')")).scalar_one())

    last = make_engine(fresh_databases())
    wait_for_the_next_second = 1.1
    time.sleep(wait_for_the_next_second)
    upgrade(old)
    assert fence(old) > fence(last)
    last.dispose()
