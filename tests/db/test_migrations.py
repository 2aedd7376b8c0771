"""A migration carries what is there across."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from swingbot.core.model.patches import BranchPatch, Patch
from swingbot.core.model.records import BootKey, BootNumbers, base_and_head
from swingbot.core.model.testbox_state import LeaseHeld
from swingbot_db.migrate import DB_DIR, upgrade
from swingbot_db.store import PgTransaction
from swingbot_db.store.leases import Leases
from tests import builders as make


def upgrade_to(engine: sa.Engine, revision: str) -> None:
    with engine.begin() as conn:
        conn.execute(sa.text("CREATE SCHEMA IF NOT EXISTS swingbot"))
        config = Config()
        config.set_main_option("script_location", str(DB_DIR / "migrations"))
        config.attributes["connection"] = conn
        command.upgrade(config, revision)


def test_swings_and_wants_of_before_detection_in_two_stages_are_kept(old: sa.Engine) -> None:
    upgrade_to(old, "0002")
    with old.begin() as conn:
        tree, testbox = make.a_tree(conn), make.a_testbox(conn)
        kernels = [make.a_kernel(conn, tree, n) for n in range(3)]
        comparison = make.a_comparison(conn, tree, kernels[0], kernels[2], [testbox], kind="watch")
        make.a_row(conn, comparison, testbox)
        make.a_swing(conn, comparison, testbox, state="noted")
        bisection = make.a_bisection(conn, tree, testbox, kernels)
        conn.execute(
            sa.text(
                "INSERT INTO bisection_want (bisection, idx, k, phase) VALUES (:b, 0, 0, 'ends')"
            ),
            {"b": bisection},
        )
    upgrade(old)
    with old.begin() as conn:
        swing = conn.execute(
            sa.text("SELECT state, source, anchor, proof, evidence FROM swing")
        ).one()
        assert tuple(swing) == ("noted", "base", None, None, {})
        assert conn.execute(sa.text("SELECT phase FROM bisection_want")).scalars().all() == ["ends"]
        conn.execute(
            sa.text(
                "INSERT INTO bisection_want (bisection, idx, k, phase) VALUES (:b, 0, 1, 'history')"
            ),
            {"b": bisection},
        )
        conn.execute(
            sa.text("UPDATE swing SET state = 'suspected', source = 'creep', anchor = :v"),
            {"v": kernels[1].variant},
        )


@pytest.mark.parametrize("wrong", ["state = 'perhaps'", "source = 'creep'", "source = 'rumour'"])
def test_swings_that_make_no_sense_are_refused(conn: sa.Connection, wrong: str) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    comparison = make.a_comparison(
        conn,
        tree,
        make.a_kernel(conn, tree, 0),
        make.a_kernel(conn, tree, 1),
        [testbox],
        kind="watch",
    )
    make.a_row(conn, comparison, testbox)
    make.a_swing(conn, comparison, testbox)
    with pytest.raises(sa.exc.IntegrityError):
        conn.execute(sa.text(f"UPDATE swing SET {wrong}"))


def test_wants_of_before_layouts_are_of_the_usual_one_on_the_one_testbox(old: sa.Engine) -> None:
    upgrade_to(old, "0003")
    with old.begin() as conn:
        tree, testbox = make.a_tree(conn), make.a_testbox(conn)
        bisection = make.a_bisection(
            conn, tree, testbox, [make.a_kernel(conn, tree, n) for n in range(3)]
        )
        conn.execute(
            sa.text(
                "INSERT INTO bisection_want (bisection, idx, k, phase) VALUES (:b, 0, 0, 'ends')"
            ),
            {"b": bisection},
        )
    upgrade(old)
    with old.begin() as conn:
        assert [
            tuple(row) for row in conn.execute(sa.text("SELECT k, layout, box FROM bisection_want"))
        ] == [(0, 0, 0)]
        conn.execute(
            sa.text(
                "INSERT INTO bisection_want (bisection, idx, k, phase, layout, box) "
                "VALUES (:b, 0, 1, 'confirm', 2, 1)"
            ),
            {"b": bisection},
        )


@pytest.mark.parametrize("wrong", ["layout = -1", "box = -1", "layout = NULL"])
def test_wants_of_no_layout_or_testbox_are_refused(conn: sa.Connection, wrong: str) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    bisection = make.a_bisection(
        conn, tree, testbox, [make.a_kernel(conn, tree, n) for n in range(2)]
    )
    conn.execute(
        sa.text("INSERT INTO bisection_want (bisection, idx, k, phase) VALUES (:b, 0, 0, 'ends')"),
        {"b": bisection},
    )
    with pytest.raises(sa.exc.IntegrityError):
        conn.execute(sa.text(f"UPDATE bisection_want SET {wrong}"))


def test_runs_of_before_demands_stay_as_they_are_and_new_ones_may_be_invalid(
    old: sa.Engine,
) -> None:
    upgrade_to(old, "0006")
    with old.begin() as conn:
        tree, testbox = make.a_tree(conn), make.a_testbox(conn)
        boot = make.a_boot(conn, testbox, make.a_kernel(conn, tree, 0), values={make.METRIC: [1.0]})
    upgrade(old)
    with old.begin() as conn:
        assert conn.execute(sa.text("SELECT status FROM run")).scalars().all() == ["ok"]
        for number, status in enumerate(("invalid", "warmup"), start=1):
            conn.execute(
                sa.text(
                    "INSERT INTO run (boot, unit_job, number, status, reason) VALUES "
                    "(:b, 'j', :n, :s, 'why')"
                ),
                {"b": boot, "n": number, "s": status},
            )
        with pytest.raises(sa.exc.IntegrityError), conn.begin_nested():
            conn.execute(sa.text("UPDATE run SET status = 'perhaps'"))


def test_reports_of_before_their_facts_were_kept_have_none(old: sa.Engine) -> None:
    upgrade_to(old, "0007")
    with old.begin() as conn:
        tree = make.a_tree(conn)
        add = "INSERT INTO incident (tree, culprit) VALUES (:tree, :culprit) RETURNING id"
        incident = conn.execute(
            sa.text(add), {"tree": tree, "culprit": make.a_kernel(conn, tree, 0).variant}
        ).scalar_one()
        make.a_report(conn, incident)
    upgrade(old)
    with old.begin() as conn:
        assert conn.execute(sa.text("SELECT facts FROM report")).scalars().all() == [None]
        conn.execute(sa.text("""UPDATE report SET facts = '{"report": "r1"}'"""))
        assert conn.execute(sa.text("SELECT facts ->> 'report' FROM report")).scalar() == "r1"


def test_runs_of_before_result_roots_get_a_place_each(old: sa.Engine) -> None:
    upgrade_to(old, "0004")
    with old.begin() as conn:
        tree, testbox = make.a_tree(conn), make.a_testbox(conn)
        kernels = [make.a_kernel(conn, tree, n) for n in range(2)]
        for k in range(2):
            for kernel in kernels:
                make.a_boot(
                    conn,
                    testbox,
                    kernel,
                    k=k,
                    values={make.METRIC: [1.0, 2.0]},
                    facts={"rootfs": "ab" * 32} if k else {},
                )
    upgrade(old)
    with old.begin() as conn:
        found = conn.execute(
            sa.text(
                "SELECT rr.name, r.root_run, r.parser FROM run r JOIN result_root rr ON "
                "rr.id = r.result_root ORDER BY r.id"
            )
        ).all()
        names = [
            f"result/page-fault/{make.UNIT_JOB.removeprefix('page-fault-')}/vm-icount/{rootfs}/vm-x86_64/gcc-12/{kernel.commit}"
            for rootfs in ("unknown", "rootfs-abababababab")
            for kernel in kernels
        ]
        assert [tuple(row) for row in found] == [
            (name, number, None) for name in names for number in (0, 1)
        ]
        assert (
            conn.execute(sa.text("SELECT value FROM sample ORDER BY run")).scalars().all()
            == [1.0, 2.0] * 4
        )


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


def test_reports_of_before_moderation_are_kept_as_dry_runs_and_mail_is_not_stopped(
    old: sa.Engine,
) -> None:
    upgrade_to(old, "0007")
    with old.begin() as conn:
        tree = make.a_tree(conn)
        incident = make.an_incident(conn, tree, make.a_kernel(conn, tree, 0))
        number = make.a_report(conn, incident)
        conn.execute(
            sa.text("INSERT INTO outbox (report, message) VALUES (:r, 'mail')"), {"r": number}
        )
    upgrade(old)
    with old.begin() as conn:
        row = conn.execute(
            sa.text(
                "SELECT state, kind, would_to, left_out, dry_run, reason, metric, week FROM report"
            )
        ).one()
        assert tuple(row) == ("sent", "first", [], [], True, None, None, None)
        assert conn.execute(sa.text("SELECT stopped FROM mail_switch")).scalar_one() is False
        with pytest.raises(sa.exc.IntegrityError, match="mail_switch_pkey"), conn.begin_nested():
            conn.execute(sa.text("INSERT INTO mail_switch DEFAULT VALUES"))
        with (
            pytest.raises(sa.exc.IntegrityError, match="report_of_incident_or_week"),
            conn.begin_nested(),
        ):
            conn.execute(sa.text("UPDATE report SET incident = NULL"))


def test_trees_and_variants_of_before_levels_are_trusted_and_a_commit_can_then_be_a_variant_of_each(
    old: sa.Engine,
) -> None:
    upgrade_to(old, "0013")
    with old.begin() as conn:
        conn.execute(sa.text("SET search_path TO swingbot"))
        tree = conn.execute(
            sa.text(
                "INSERT INTO tree (name, url, branch, base_commit) VALUES ('linus', "
                "'/srv/linux', 'master', repeat('a', 40)) RETURNING id"
            )
        ).scalar_one()
        add = (
            "INSERT INTO variant (tree, commit, subject, tree_hash, kconfig, compiler, "
            "build_key, origin{more})"
            " VALUES (:tree, repeat('b', 40), 's', repeat('c', 40), 'k', 'gcc', repeat(:d, "
            "64), 'patch'{value})"
        )
        conn.execute(sa.text(add.format(more="", value="")), {"tree": tree, "d": "d"})
    upgrade(old)
    with old.begin() as conn:
        conn.execute(sa.text("SET search_path TO swingbot"))
        assert conn.execute(
            sa.text("SELECT t.trust, v.trust FROM variant v JOIN tree t ON t.id = v.tree")
        ).one() == ("trusted", "trusted")
        conn.execute(
            sa.text(add.format(more=", trust", value=", 'untrusted'")), {"tree": tree, "d": "e"}
        )
    with old.connect() as conn:
        conn.execute(sa.text("SET search_path TO swingbot"))
        with pytest.raises(sa.exc.IntegrityError, match="variant_once"):
            conn.execute(
                sa.text(add.format(more=", trust", value=", 'untrusted'")), {"tree": tree, "d": "f"}
            )


def test_boots_of_before_purposes_keep_key_and_perturbation_and_others_get_numbers_of_their_own(
    old: sa.Engine,
) -> None:
    upgrade_to(old, "0016")
    with old.begin() as conn:
        tree, testbox = make.a_tree(conn), make.a_testbox(conn)
        kernels = [make.a_kernel(conn, tree, n) for n in range(2)]
        comparison = make.a_comparison(conn, tree, kernels[0], kernels[1], [testbox], kind="gate")
        conn.execute(
            sa.text("UPDATE comparison SET first_k = 300, boots = 1 WHERE id = :c"),
            {"c": comparison},
        )
        boot = make.a_boot(conn, testbox, kernels[0], k=300, comparison=comparison)
        key = conn.execute(sa.text("SELECT key FROM orders WHERE kind = 'boot'")).scalar_one()
    upgrade(old)
    with old.begin() as conn:
        tx = PgTransaction(conn)
        (order,) = tx.orders.wanted(comparison=comparison)
        mine = BootKey(
            build_key=kernels[0].build_key,
            testbox=testbox.name,
            spec=testbox.spec,
            series="",
            k=300,
        )
        assert (str(mine), order.key, order.purpose) == (key, key, "search")
        numbers = BootNumbers(range(300, 301))
        found = tx.comparisons.get(comparison)
        assert found is not None
        assert (found.numbers, found.first_k) == (numbers, 300)
        of_kernel = (kernels[0].image, testbox.name, testbox.spec, "")
        assert [b.id for b in tx.boots.find(*of_kernel, numbers)] == [boot]
        assert tx.boots.find(*of_kernel, numbers._replace(purpose="gate")) == []
        variant = tx.variants.get(kernels[0].variant)
        assert tx.orders.ensure_boots([(mine, variant)], 0)[0].id == order.id
        other = (replace(mine, purpose="gate"), variant)
        assert tx.orders.ensure_boots([other], 0)[0].id != order.id
        with pytest.raises(sa.exc.IntegrityError, match="purpose"), conn.begin_nested():
            conn.execute(sa.text("UPDATE comparison SET purpose = 'Gate 2'"))


def test_swings_of_before_branches_were_patches_end_at_the_tip(old: sa.Engine) -> None:
    upgrade_to(old, "0018")
    with old.begin() as conn:
        tree, testbox = make.a_tree(conn), make.a_testbox(conn)
        kernels = [make.a_kernel(conn, tree, n) for n in range(2)]
        comparison = make.a_comparison(conn, tree, kernels[0], kernels[1], [testbox], kind="watch")
        make.a_row(conn, comparison, testbox)
        make.a_swing(conn, comparison, testbox, state="suspected")
    upgrade(old)
    with old.begin() as conn:
        assert [tuple(r) for r in conn.execute(sa.text("SELECT state, upto FROM swing"))] == [
            ("suspected", None)
        ]
        assert PgTransaction(conn).patches.branch(tree) == []
        conn.execute(sa.text("UPDATE swing SET state = 'known'"))


@pytest.mark.parametrize("wrong", ["state = 'lost'", "position = 0", "was = NULL"])
def test_patches_that_make_no_sense_are_refused(conn: sa.Connection, wrong: str) -> None:
    tree, tx = make.a_tree(conn), PgTransaction(conn)
    old, new = (
        Patch(commit=digit * 40, parent="", patch_id="p", subject="s", author="a") for digit in "12"
    )
    tx.patches.set_branch(tree, [BranchPatch(patch=new, state="same", was=old)])
    with pytest.raises(sa.exc.IntegrityError):
        conn.execute(sa.text(f"UPDATE branch_patch SET {wrong}"))


def test_builds_of_before_forecasts_have_none_and_take_one(old: sa.Engine) -> None:
    upgrade_to(old, "0021")
    with old.begin() as conn:
        kernel = make.a_kernel(conn, make.a_tree(conn), 0)
    upgrade(old)
    with old.begin() as conn:
        builds = PgTransaction(conn).builds
        assert kernel.build_key in builds.by_key([kernel.build_key])
        assert builds.forecasts([kernel.build_key]) == {}
        builds.put_forecasts({kernel.build_key: 300.0})
        with pytest.raises(sa.exc.IntegrityError), conn.begin_nested():
            builds.put_forecasts({kernel.build_key: -1.0})


def test_comparisons_of_before_experiments_have_two_arms(old: sa.Engine) -> None:
    upgrade_to(old, "0020")
    with old.begin() as conn:
        tree, testbox = make.a_tree(conn), make.a_testbox(conn)
        kernels = [make.a_kernel(conn, tree, n) for n in range(2)]
        comparison = make.a_comparison(conn, tree, kernels[0], kernels[1], [testbox], kind="watch")
        make.a_row(conn, comparison, testbox)
        make.a_swing(conn, comparison, testbox, state="noted")
    upgrade(old)
    with old.begin() as conn:
        tx = PgTransaction(conn)
        found = tx.comparisons.get(comparison)
        assert found is not None
        assert found.arms == base_and_head(kernels[0].variant, kernels[1].variant)
        assert (found.against, found.beside) == (("first",), ())
        (row,) = tx.comparisons.rows(comparison)
        assert (row.against, row.arm, row.reference) == ("first", 1, 0)
        assert conn.execute(sa.text("SELECT comparison FROM swing")).scalar() == comparison


def test_bisections_of_before_creeps_may_end_with_one(old: sa.Engine) -> None:
    upgrade_to(old, "0023")
    with old.begin() as conn:
        tree, testbox = make.a_tree(conn), make.a_testbox(conn)
        kernels = [make.a_kernel(conn, tree, n) for n in range(2)]
        bisection = make.a_bisection(conn, tree, testbox, kernels)
    upgrade(old)
    with old.begin() as conn:
        PgTransaction(conn).bisections.conclude(bisection, "creep", {"x": 1}, "little by little")
        status = conn.execute(sa.text("SELECT status FROM bisection")).scalar()
        assert status == "creep"
        with pytest.raises(sa.exc.IntegrityError), conn.begin_nested():
            conn.execute(sa.text("UPDATE bisection SET status = 'crept'"))


def test_comparisons_of_before_stated_looks_stated_one(old: sa.Engine) -> None:
    upgrade_to(old, "0025")
    with old.begin() as conn:
        tree, testbox = make.a_tree(conn), make.a_testbox(conn)
        kernels = [make.a_kernel(conn, tree, n) for n in range(2)]
        comparison = make.a_comparison(conn, tree, kernels[0], kernels[1], [testbox])
        conn.execute(sa.text("UPDATE comparison SET looks = 3"))
    upgrade(old)
    with old.begin() as conn:
        found = PgTransaction(conn).comparisons.get(comparison)
        assert found is not None and (found.looks, found.looks_stated) == (3, 1)
        with pytest.raises(sa.exc.IntegrityError), conn.begin_nested():
            conn.execute(sa.text("UPDATE comparison SET looks_stated = 0"))


def test_leases_of_before_tokens_get_one_when_they_are_renewed(old: sa.Engine) -> None:
    upgrade_to(old, "0033")
    with old.begin() as conn:
        tree, testbox = make.a_tree(conn), make.a_testbox(conn)
        order = make.an_order(conn, make.a_kernel(conn, tree, 0), testbox, k=0, series="c1")
        attempt = make.an_attempt(conn, order)
        conn.execute(
            sa.text(
                "INSERT INTO lease (testbox, attempt, holder, until)"
                " VALUES (:testbox, :attempt, 'lab1', clock_timestamp() + interval '295 s')"
            ),
            {"testbox": testbox.name, "attempt": attempt},
        )
        began = conn.execute(sa.text("SELECT extract(epoch FROM now())::bigint")).scalar_one()
    upgrade(old)
    with old.begin() as conn:
        held = Leases(conn).hold(attempt, "lab1", 300.0)
        assert isinstance(held, LeaseHeld) and held.fence >= began
        again = Leases(conn).hold(attempt, "lab1", 300.0)
        assert isinstance(again, LeaseHeld) and again.fence == held.fence
