"""Retention: which files the rules remove, which files always stay, and what is reported."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from starlette.testclient import TestClient

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.app.cli import main
from swingbot.app.keep.backup import KeepError, alone
from swingbot.app.keep.retain import Retained, due, retain
from swingbot.app.settings import Settings, load
from swingbot.core.keep.retention import FileReference, StoredFile, judge, merged
from swingbot.core.model.artifact import Gone
from swingbot.service.clock_watch import SteadyClock
from swingbot.service.tick import tick
from swingbot.web.app import make_app
from swingbot_db import keep, read
from tests import builders as make
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.artifacts import stored
from tests.fakes.brain import Brain, make_brain
from tests.fakes.kernels import kept_by
from tests.fakes.mail import brain_environment, running_smtpd

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAYS = {"kernels": 30.0, "debug": 30.0, "rootfs": 0.0, "results": 0.0, "logs": 10.0, "kits": 30.0}


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def named(name: str, days: float, held: str | None = None) -> FileReference:
    return FileReference(sha256="a", name=name, used=ago(days), held=held)


def fate(*namings: FileReference, modified: float = 1000.0) -> tuple[str, bool]:
    (verdict,) = judge(
        [StoredFile(key="a", size=7, modified=ago(modified))], merged(namings), DAYS, NOW
    )
    return verdict.kind, verdict.goes


@pytest.mark.parametrize(
    ("namings", "expected"),
    [
        ([named("console.log", 11)], ("logs", True)),
        ([named("console.log", 9)], ("logs", False)),
        ([named("console.log", 900, "incident i1")], ("logs", False)),
        ([named("console.log", 900, "o3 is open")], ("logs", False)),
        ([named("results.tar", 9000)], ("results", False)),  # 0 days: for ever
        ([named("config", 9000)], ("records", False)),
        ([named("something new", 9000)], ("records", False)),
        ([named("bzImage", 31)], ("kernels", True)),
        ([named("bzImage", 900), named("bzImage", 29)], ("kernels", False)),  # its last use counts
        ([named("bzImage", 900), named("bzImage", 900, "b1 is under way")], ("kernels", False)),
        # one naming that keeps it is enough
        ([named("console.log", 900), named("results.tar", 900)], ("results", False)),
        ([], ("orphans", True)),
    ],
)
def test_a_file_stays_as_long_as_any_naming_of_it_says(
    namings: Sequence[FileReference], expected: tuple[str, bool]
) -> None:
    assert fate(*namings) == expected
    assert fate(*reversed(namings)) == expected


def test_a_file_whose_outcome_may_still_come_is_no_orphan() -> None:
    assert fate(modified=0.9) == ("orphans", False)
    assert fate(modified=1.1) == ("orphans", True)


def test_a_file_that_came_again_is_young_however_old_its_boots_are() -> None:
    assert fate(named("bzImage", 900), modified=3) == ("kernels", False)


@pytest.fixture
def settings(tmp_path: Path, db_url: str) -> Settings:
    environment = brain_environment(tmp_path / "state", db_url)
    return load(
        environ=environment
        | {
            "SWINGBOT_RETENTION_LOGS_DAYS": "10",
            "SWINGBOT_RETENTION_KERNELS_DAYS": "30",
            "SWINGBOT_RETENTION_DEBUG_DAYS": "30",
        }
    )


def aged(settings: Settings, days: float) -> None:
    """Let all stored files be from so many days ago."""
    for file in ArtifactDirectory(settings.artifacts).stored():
        when = ago(days).timestamp()
        os.utime(settings.artifacts / file.path, (when, when))


def files_of(conn: sa.Connection, table: str, row: int | str, files: dict[str, str]) -> None:
    key = "build_key" if table == "kernel_build" else "id"
    document = json.dumps({name: {"sha256": sha256, "size": 1} for name, sha256 in files.items()})
    conn.execute(
        sa.text(f"UPDATE {table} SET files = CAST(:files AS jsonb) WHERE {key} = :row"),
        {"files": document, "row": row},
    )


def test_what_was_reported_and_what_is_under_way_stays_whatever_its_age(
    settings: Settings, engine: sa.Engine, conn: sa.Connection
) -> None:
    store = ArtifactDirectory(settings.artifacts)
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    kernels = [make.a_kernel(conn, tree, n) for n in range(5)]
    reported = make.a_comparison(conn, tree, kernels[0], kernels[1], [testbox], status="done")
    bisection = make.a_bisection(conn, tree, testbox, kernels[:3], status="culprit", conclusion={})
    incident = make.an_incident(conn, tree, kernels[1], bisections=[bisection])
    conn.execute(
        sa.text("UPDATE incident SET comparison = :c WHERE id = :i"), {"c": reported, "i": incident}
    )
    under_way = make.a_comparison(conn, tree, kernels[2], kernels[3], [testbox], status="running")
    over = make.a_comparison(conn, tree, kernels[3], kernels[4], [testbox], status="done")
    logs = {}
    for what, kernel, comparison in (
        ("base", 0, reported),
        ("head", 1, reported),
        ("under way", 2, under_way),
        ("over", 4, over),
    ):
        boot = make.a_boot(
            conn,
            testbox,
            kernels[kernel],
            values={make.METRIC: [1.0]},
            comparison=comparison,
            at=ago(400),
        )
        logs[what] = stored(store, f"console of {what}".encode())
        files_of(
            conn,
            "boot",
            boot,
            {
                "console.log": logs[what],
                "results.tar": stored(store, f"results of {what}".encode()),
            },
        )
    conn.execute(sa.text("UPDATE attempt SET ingested_at = ended_at"))
    aged(settings, 400)
    done = retain(settings, engine, NOW, really=True)
    assert {what for what, sha256 in logs.items() if not store.has(sha256)} == {"over"}
    assert done.totals["logs"].goes == 1
    assert done.totals["logs"].stays == {"reported in an incident": 2, "somebody waits for it": 1}
    assert done.totals["results"].stays["kept for ever"] == 1
    with pytest.raises(
        Gone,
        match=(
            r"pruned on 2026-06-01 by the rule retention\.logs_days = 10: last used on "
            r"2025-04-27"
        ),
    ):
        store.open(logs["over"])


def test_a_dry_run_removes_nothing_and_says_the_same(
    settings: Settings, engine: sa.Engine, conn: sa.Connection
) -> None:
    store = ArtifactDirectory(settings.artifacts)
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    boot = make.a_boot(
        conn, testbox, make.a_kernel(conn, tree, 0), values={make.METRIC: [1.0]}, at=ago(400)
    )
    files_of(conn, "boot", boot, {"console.log": stored(store, b"console")})
    stored(store, b"no row refers to this")
    aged(settings, 400)
    before = sorted(file.path for file in store.stored())
    dry = retain(settings, engine, NOW, really=False)
    assert sorted(file.path for file in store.stored()) == before
    wet = retain(settings, engine, NOW, really=True)
    assert {kind: (total.goes, total.goes_size) for kind, total in dry.totals.items()} == {
        kind: (total.goes, total.goes_size) for kind, total in wet.totals.items()
    }
    assert (dry.totals["logs"].goes, dry.totals["orphans"].goes) == (1, 1)
    assert wet.freed == sum(total.goes_size for total in dry.totals.values()) > 0
    again = retain(settings, engine, NOW, really=True)
    assert again.freed == 0
    assert again.pruned_before == 1  # an orphan leaves no record: no row refers to it


def test_names_that_only_untrusted_kernels_reported_go_with_their_kernels(
    settings: Settings, engine: sa.Engine, conn: sa.Connection
) -> None:
    settings.state.mkdir()
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    own = {"old": 400, "young": 20, "held": 400, "trusted": 400}
    boots = {}
    for number, (name, days) in enumerate(own.items()):
        kernel = make.a_kernel(conn, tree, number)
        values = {make.METRIC: [1.0, 2.0], f"meminfo.{name}": [3.0, 4.0]}
        boots[name] = make.a_boot(conn, testbox, kernel, values=values, at=ago(days))
        if name != "trusted":
            conn.execute(
                sa.text("UPDATE variant SET trust = 'untrusted' WHERE id = :v"),
                {"v": kernel.variant},
            )
            conn.execute(
                sa.text("UPDATE measured_metric SET trusted = false WHERE metric = :m"),
                {"m": f"meminfo.{name}"},
            )
        if name == "held":
            waiting = make.a_comparison(conn, tree, kernel, kernel, [testbox], status="running")
            conn.execute(
                sa.text(
                    "INSERT INTO want (order_id, comparison)"
                    " SELECT order_id, :c FROM boot WHERE id = :b"
                ),
                {"c": waiting, "b": boots[name]},
            )

    def names() -> set[str]:
        query = "SELECT metric FROM measured_metric WHERE metric LIKE 'meminfo.%'"
        return {name.partition(".")[2] for name in conn.execute(sa.text(query)).scalars()}

    assert retain(settings, engine, NOW, really=False).names == 1
    assert names() == own.keys()
    assert retain(settings, engine, NOW, really=True).names == 1
    assert names() == own.keys() - {"old"}
    samples = sa.text("SELECT count(*) FROM sample s JOIN run r ON r.id = s.run WHERE r.boot = :b")
    counts = {name: conn.execute(samples, {"b": boot}).scalar_one() for name, boot in boots.items()}
    assert counts == {"old": 2, "young": 4, "held": 4, "trusted": 4}
    assert retain(settings, engine, NOW, really=True).names == 0


def test_names_that_a_broken_monitor_made_up_go_once_no_kept_boot_has_them(
    settings: Settings, engine: sa.Engine, conn: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.state.mkdir()
    tree, testbox, still = make.a_tree(conn), make.a_testbox(conn), make.a_testbox(conn, "still")
    made_up = {f"meminfo.made-up-{n}": [1.0, 2.0] for n in range(6)}
    own = f"{make.METRIC}-of-once"  # of the benchmark: kept whatever its age
    kernel = make.a_kernel(conn, tree, 0)
    broken = make.a_boot(conn, testbox, kernel, values={own: [1.0], **made_up}, at=ago(400))
    held = {"meminfo.held": [1.0]}
    reported = make.a_boot(conn, testbox, make.a_kernel(conn, tree, 1), values=held, at=ago(400))
    make.a_boot(conn, still, kernel, values=made_up, at=ago(400))  # of a job that runs no more
    waiting = make.a_comparison(conn, tree, kernel, kernel, [testbox], status="running")
    conn.execute(
        sa.text(
            "INSERT INTO want (order_id, comparison) SELECT order_id, :c FROM boot WHERE id = :b"
        ),
        {"c": waiting, "b": reported},
    )
    # the kernel is in use: its boots are not kept for that
    make.a_boot(conn, testbox, kernel, values={make.METRIC: [1.0]}, k=1, at=ago(1))

    def names() -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for row in conn.execute(sa.text("SELECT testbox, metric FROM measured_metric")):
            found.setdefault(row.testbox, set()).add(row.metric)
        return found

    before = names()
    assert retain(settings, engine, NOW, really=True).names == 0  # far from the budget
    monkeypatch.setattr(keep, "METRIC_NAMES", 8)
    assert retain(settings, engine, NOW, really=False).names == len(made_up)
    assert names() == before
    assert retain(settings, engine, NOW, really=True).names == len(made_up)
    assert names()[testbox.name] == {make.METRIC, own, *held}
    assert names()["still"] == set(made_up)
    left = sa.text("SELECT count(*) FROM sample s JOIN run r ON r.id = s.run WHERE r.boot = :b")
    assert conn.execute(left, {"b": broken}).scalar_one() == 1
    assert retain(settings, engine, NOW, really=True).names == 0


def test_an_attempt_that_is_not_taken_in_yet_keeps_what_it_brought(
    settings: Settings, engine: sa.Engine, conn: sa.Connection
) -> None:
    store = ArtifactDirectory(settings.artifacts)
    order = make.an_order(
        conn, make.a_kernel(conn, make.a_tree(conn), 0), make.a_testbox(conn), state="running"
    )
    attempt = make.an_attempt(conn, order)
    brought = stored(store, b"console of a boot that is not ingested yet")
    outcome = json.dumps({"files": {"console.log": {"sha256": brought, "size": 1}}})
    change = (
        "UPDATE attempt SET state = 'ended', outcome = CAST(:o AS jsonb), ended_at = :at, "
        "ingested_at = NULL WHERE id = :a"
    )
    conn.execute(
        sa.text("UPDATE orders SET state = 'done', ended_at = now() WHERE id = :o"), {"o": order}
    )
    conn.execute(sa.text(change), {"o": outcome, "at": ago(300), "a": attempt})
    aged(settings, 300)
    retain(settings, engine, NOW, really=True)
    assert store.has(brought)
    conn.execute(sa.text("UPDATE attempt SET ingested_at = now() WHERE id = :a"), {"a": attempt})
    retain(settings, engine, NOW, really=True)
    assert not store.has(brought)


def test_a_root_file_system_is_as_old_as_the_last_boot_that_names_its_record(
    settings: Settings, engine: sa.Engine, conn: sa.Connection
) -> None:
    store = ArtifactDirectory(settings.artifacts)
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    kept = {}
    for number, days in enumerate((1000, 20)):
        archive = stored(store, f"cpio {number}".encode())
        record = stored(store, json.dumps({"archive": archive, "whole": "0" * 64}).encode())
        boot = make.a_boot(
            conn,
            testbox,
            make.a_kernel(conn, tree, number),
            values={make.METRIC: [1.0]},
            at=ago(days),
        )
        files_of(conn, "boot", boot, {"rootfs.json": record})
        kept[days] = archive
    aged(settings, 1000)
    retain(settings, engine, NOW, really=True)
    assert (store.has(kept[1000]), store.has(kept[20])) == (False, True)


def page(settings: Settings, engine: sa.Engine, path: str) -> tuple[int, str]:
    app = make_app(settings, engine, read, kept_by(ArtifactDirectory(settings.artifacts).open))
    answer = TestClient(app, raise_server_exceptions=False).get(path)
    return answer.status_code, answer.text


def test_pages_say_when_and_by_which_rule_a_file_went(
    settings: Settings, engine: sa.Engine, conn: sa.Connection
) -> None:
    store = ArtifactDirectory(settings.artifacts)
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    boot = make.a_boot(
        conn, testbox, make.a_kernel(conn, tree, 0), values={make.METRIC: [1.0]}, at=ago(400)
    )
    files_of(conn, "boot", boot, {"console.log": stored(store, b"console")})
    aged(settings, 400)
    retain(settings, engine, NOW, really=True)
    status, text = page(settings, engine, f"/raw/x{boot}/console.log")
    assert status == 410
    assert "was pruned on 2026-06-01 by the rule retention.logs_days = 10" in text
    status, text = page(settings, engine, f"/raw/x{boot}/")
    assert status == 200
    assert "pruned on 2026-06-01 by the rule retention.logs_days = 10" in text
    assert page(settings, engine, f"/boot/x{boot}")[0] == 200


def test_backup_and_retention_never_work_at_the_same_time(
    settings: Settings, engine: sa.Engine
) -> None:
    settings.state.mkdir()
    with (
        alone(settings),
        pytest.raises(KeepError, match="another backup or retention run is using"),
    ):
        retain(settings, engine, NOW, really=True)


def test_the_daily_run_is_made_when_it_is_switched_on_and_a_day_has_passed(
    settings: Settings, engine: sa.Engine, tmp_path: Path, db_url: str
) -> None:
    settings.state.mkdir()
    assert not due(settings, NOW, SteadyClock())
    on = load(
        environ=brain_environment(tmp_path / "state", db_url)
        | {"SWINGBOT_RETENTION_ENABLED": "true"}
    )
    assert due(on, NOW, SteadyClock())
    retain(on, engine, NOW, really=True)
    assert not due(on, NOW + timedelta(hours=23), SteadyClock())
    assert due(on, NOW + timedelta(hours=24), SteadyClock())
    (on.state / "retention.json").write_text("{")
    assert due(on, NOW, SteadyClock())


def test_the_command_shows_each_class_and_does_nothing_without_an_option(
    settings: Settings, engine: sa.Engine, conn: sa.Connection
) -> None:
    store = ArtifactDirectory(settings.artifacts)
    orphan = stored(store, b"x" * 3000)
    aged(settings, 400)
    environment = {
        "SWINGBOT_DB_URL": settings.db.url,
        "SWINGBOT_PATHS_STATE": str(settings.state),
        "SWINGBOT_CONFIG": "",
    }

    def run(*words: str) -> Any:
        return CliRunner().invoke(
            main, ["retention", *words], env=environment, catch_exceptions=False
        )

    shown = run()
    assert shown.exit_code == 0
    assert "would free" in shown.output
    assert store.has(orphan)
    assert json.loads(run("--json").output)["classes"]["orphans"]["goes_files"] == 1
    assert "freed" in run("--prune").output
    assert not store.has(orphan)


# -- a kernel that went and is needed again --------------------------------------------------------


def pruned(brain: Brain) -> Retained:
    aged(brain.settings, 400)
    now = datetime.now(UTC) + timedelta(days=400)
    return retain(brain.settings, brain.engine, now, really=True)


def a_brain(tmp_path: Path, settings: Settings, engine: sa.Engine) -> tuple[Brain, str]:
    base, *_ = make_fakelinux(tmp_path / "linux", [FakeCommit()])
    brain = make_brain(settings, engine, tmp_path / "linux")
    with running_smtpd(settings):
        brain.watch(base)
        brain.run()
    with engine.begin() as conn:
        conn.execute(sa.text("UPDATE tree SET state = 'removed'"))
    return brain, base


def want_one_boot_more(brain: Brain) -> None:
    with brain.engine.begin() as conn:
        conn.execute(sa.text("UPDATE tree SET state = 'watched'"))
        # no pause before another
        conn.execute(
            sa.text(
                "UPDATE attempt SET created_at = created_at - interval '1 hour', "
                "ended_at = ended_at - interval '1 hour'"
            )
        )
        conn.execute(
            sa.text(
                "INSERT INTO comparison (kind, tree, first_k, boots) SELECT 'asked', "
                "tree, first_k + 1000, 1 FROM comparison LIMIT 1"
            )
        )
        conn.execute(
            sa.text(
                "INSERT INTO comparison_arm (comparison, arm, name, variant) SELECT (SELECT "
                "max(id) FROM comparison), arm, name, variant"
                " FROM comparison_arm WHERE comparison = (SELECT min(id) FROM comparison)"
            )
        )
        conn.execute(
            sa.text(
                "INSERT INTO comparison_part (comparison, testbox, spec) SELECT (SELECT "
                "max(id) FROM comparison), testbox, spec FROM comparison_part LIMIT 1"
            )
        )


def until_quiet(brain: Brain) -> None:
    for _ in range(20):
        tick(brain.lab)
        if (
            brain.fake.work() == 0
            and brain.count("orders WHERE state IN ('waiting', 'ready', 'running')") == 0
        ):
            return


def test_a_pruned_kernel_that_is_needed_again_is_built_again(
    tmp_path: Path, settings: Settings, engine: sa.Engine
) -> None:
    brain, _ = a_brain(tmp_path, settings, engine)
    boots = brain.count("boot")
    builds = [done for done in brain.fake.done if done[0] == "build"]
    assert pruned(brain).totals["kernels"].goes == 2
    want_one_boot_more(brain)
    until_quiet(brain)
    assert [done for done in brain.fake.done if done[0] == "build"] == builds + builds
    assert brain.count("boot") == boots + 2
    assert brain.count("comparison WHERE status = 'done'") == 2


def test_a_kernel_that_cannot_be_made_the_same_again_ends_its_orders(
    tmp_path: Path, settings: Settings, engine: sa.Engine
) -> None:
    brain, _ = a_brain(tmp_path, settings, engine)
    pruned(brain)
    want_one_boot_more(brain)
    brain.fake.compiled_by = "another compiler of the same name"
    until_quiet(brain)
    with engine.connect() as conn:
        reasons = (
            conn.execute(
                sa.text(
                    "SELECT DISTINCT reason FROM orders WHERE kind = 'boot' AND state = 'failed'"
                )
            )
            .scalars()
            .all()
        )
    assert len(reasons) == 1
    assert "was pruned on" in reasons[0]
    assert "the rebuild did not give the same image" in reasons[0]
    assert len([done for done in brain.fake.done if done[0] == "build"]) == 4
