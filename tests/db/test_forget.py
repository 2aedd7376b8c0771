"""`swingbot forget`: everything that a boot or kernel caused goes, and what counts it says so."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from swingbot.adapters import limits
from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.adapters.git import Mirror
from swingbot.app.cli import main
from swingbot.app.keep.retain import retain
from swingbot.app.settings import Settings, load
from swingbot.core.model.artifact import Gone
from swingbot.service.ports import GitError
from swingbot_db import read
from tests import builders as make
from tests.fakes.artifacts import stored
from tests.fakes.mail import brain_environment

NAMES = [f"guest.name_{n}" for n in range(40)]


@pytest.fixture
def settings(tmp_path: Path, db_url: str) -> Settings:
    (tmp_path / "state").mkdir()
    return load(environ=brain_environment(tmp_path / "state", db_url))


def swingbot(settings: Settings, db_url: str, *words: str) -> Result:
    environment = brain_environment(settings.state, db_url)
    return CliRunner().invoke(main, list(words), env=environment)


def count(engine: sa.Engine, table: str) -> int:
    with engine.connect() as conn:
        return int(conn.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one())


def a_comparison_of_a_guest(
    engine: sa.Engine, settings: Settings, **more: Any
) -> tuple[make.Kernel, int, int]:
    """A kernel, its boot with names that it made up, and the comparison that wanted both."""
    file = stored(ArtifactDirectory(settings.artifacts), b"what the guest printed")
    with engine.begin() as conn:
        tree, testbox = make.a_tree(conn), make.a_testbox(conn)
        base, head = make.a_variant(conn, tree, 0), make.a_variant(conn, tree, 1, **more)
        comparison = make.a_comparison(conn, tree, base, head, [testbox])
        for kernel in (base, head):
            make.a_kernel_build(conn, kernel, comparison=comparison)
        values = {make.METRIC: [3.0]}
        make.a_boot(conn, testbox, base, values=values, comparison=comparison)
        boot = make.a_boot(
            conn,
            testbox,
            head,
            values=values | {name: [1.0] for name in NAMES},
            comparison=comparison,
        )
        conn.execute(
            sa.text("UPDATE boot SET files = CAST(:files AS jsonb) WHERE id = :boot"),
            {"boot": boot, "files": json.dumps({"console.log": {"sha256": file, "size": 22}})},
        )
        for metric in (make.METRIC, *NAMES):
            make.a_row(conn, comparison, testbox, metric)
    return head, boot, comparison


def test_a_boot_is_forgotten_with_its_names_rows_and_files_after_they_were_shown(
    settings: Settings, db_url: str, engine: sa.Engine
) -> None:
    _, boot, comparison = a_comparison_of_a_guest(engine, settings)
    kit = settings.state / "reproductions" / f"c{comparison}-0123.tar.gz"
    kit.parent.mkdir()
    kit.write_bytes(b"with what the guest printed")
    shown = swingbot(settings, db_url, "forget", f"x{boot}")
    assert shown.exit_code == 0, shown.output
    assert f"{len(NAMES)} names" in shown.output
    assert f"{len(NAMES) + 1} rows" in shown.output
    assert f"shown as removed on: c{comparison}" in shown.output
    assert count(engine, "measured_metric") == len(NAMES) + 1, "nothing went yet"

    done = swingbot(settings, db_url, "forget", f"x{boot}", "--yes", "--reason", "made up names")
    assert done.exit_code == 0, done.output
    assert [count(engine, table) for table in ("boot", "run", "sample", "measured_metric")] == [
        1,
        1,
        1,
        1,
    ], "of the other kernel"
    assert count(engine, "comparison_row") == 1
    with pytest.raises(Gone, match="was removed"):
        ArtifactDirectory(settings.artifacts).open(stored_name(b"what the guest printed"))
    assert not kit.exists()
    with engine.connect() as conn:
        table = read.table(conn, f"c{comparison}")
        (event,) = read.access_events(conn, 10)
        json.dumps(read.status(conn))
    (row,) = table["rows"]
    assert (row["verdict"], row["change_pct"]) == ("invalid", None)
    assert f"x{boot} was removed by " in str(row["reason"])
    assert "made up names" in str(table["reason"])
    assert (event["act"], f"{len(NAMES)} names" in event["detail"]) == ("forget", True)
    again = swingbot(settings, db_url, "forget", f"x{boot}", "--yes")
    assert again.exit_code == 2
    assert "does not exist" in again.output


def test_what_a_report_or_another_request_counts_is_named_and_needs_force(
    settings: Settings, db_url: str, engine: sa.Engine
) -> None:
    head, boot, comparison = a_comparison_of_a_guest(engine, settings)
    with engine.begin() as conn:
        tree = conn.execute(sa.text("SELECT id FROM tree")).scalar_one()
        testbox = make.a_testbox(conn)
        other = make.a_variant(conn, tree, 2)
        bisection = make.a_bisection(conn, tree, testbox, [other, head], status="culprit")
        incident = make.an_incident(conn, tree, head, bisections=[bisection], comparison=comparison)
        report = make.a_report(conn, incident, state="sent")
        conn.execute(
            sa.text(
                "INSERT INTO want (order_id, bisection) SELECT order_id, :b FROM boot WHERE id = :x"
            ),
            {"b": bisection, "x": boot},
        )
    refused = swingbot(settings, db_url, "forget", f"x{boot}", "--yes")
    assert refused.exit_code == 2
    for named in (f"r{report} (sent)", f"i{incident} (open)", f"c{comparison}", f"b{bisection}"):
        assert named in refused.output
    assert count(engine, "boot") == 2
    forced = swingbot(settings, db_url, "forget", f"x{boot}", "--yes", "--force")
    assert forced.exit_code == 0, forced.output
    with engine.connect() as conn:
        assert "was removed" in str(read.report(conn, f"r{report}")["reason"])
        assert "was removed" in str(read.bisection(conn, f"b{bisection}")["reason"])
        assert read.incident(conn, f"i{incident}")["history"][-1]["act"] == "removed"


def test_what_is_under_way_is_cancelled_first(
    settings: Settings, db_url: str, engine: sa.Engine
) -> None:
    _, boot, comparison = a_comparison_of_a_guest(engine, settings)
    with engine.begin() as conn:
        conn.execute(sa.text("UPDATE comparison SET status = 'running', ended_at = NULL"))
    refused = swingbot(settings, db_url, "forget", f"x{boot}", "--yes", "--force")
    assert refused.exit_code == 2
    assert f"is needed by c{comparison}, which is under way: cancel it first" in refused.output
    assert count(engine, "boot") == 2


def test_a_patched_kernel_goes_with_its_build_boots_and_objects(
    settings: Settings, db_url: str, engine: sa.Engine
) -> None:
    mirror = Mirror(settings.mirror)
    base = commit_of(mirror, b"int a;\n")
    patched = commit_of(mirror, b"int b;\n", base)
    mirror.keep(base)
    mirror.keep(patched)
    head, _, _ = a_comparison_of_a_guest(engine, settings)
    with engine.begin() as conn:
        conn.execute(
            sa.text("UPDATE variant SET commit = :commit, origin = 'patch' WHERE id = :id"),
            {"commit": patched, "id": head.variant},
        )
    done = swingbot(settings, db_url, "forget", f"v{head.variant}", "--yes", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.output)
    assert (document["counts"]["boots"], document["counts"]["orders"]) == (1, 2)
    assert document["objects"] == 3, "commit, tree and blob"
    assert [count(engine, table) for table in ("boot", "kernel_build", "orders", "attempt")] == [
        1,
        1,
        2,
        2,
    ]
    assert mirror.facts(base).subject == "x"
    with pytest.raises(GitError):
        mirror.facts(patched)
    with engine.connect() as conn:
        assert read.variant(conn, f"v{head.variant}")["build"] is None


def test_objects_of_a_request_under_way_stay_until_it_is_over(
    settings: Settings, db_url: str, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FORGET_SECONDS", 0.3)
    mirror = Mirror(settings.mirror)
    base = commit_of(mirror, b"int a;\n")
    patched, again = (commit_of(mirror, text, base) for text in (b"int b;\n", b"int c;\n"))
    for commit in (base, patched, again):
        mirror.keep(commit)
    head, _, _ = a_comparison_of_a_guest(engine, settings)
    with engine.begin() as conn:
        tree = conn.execute(sa.text("SELECT min(id) FROM tree")).scalar_one()
        tail = make.a_variant(conn, tree, 2)
        make.a_kernel_build(conn, tail)
        for kernel, commit in ((head, patched), (tail, again)):
            conn.execute(
                sa.text("UPDATE variant SET commit = :commit, origin = 'patch' WHERE id = :id"),
                {"commit": commit, "id": kernel.variant},
            )
    with mirror.quarantine() as aside:
        for kernel in (head, tail):
            words = ("forget", f"v{kernel.variant}", "--yes", "--force")
            told = swingbot(settings, db_url, *words)
            assert "its git objects go with the daily" in told.output, told.output
        # what the request finds in the mirror is not written again
        aside._git("hash-object", "-w", "--stdin", stdin=b"int b;\n")
        assert not list(aside._aside.path.rglob("??/*"))
    assert mirror.facts(patched) and mirror.facts(again)
    with engine.begin() as conn:
        make.an_order(conn, tail)
    retain(settings, engine, datetime.now(UTC), really=True)
    with pytest.raises(GitError):
        mirror.facts(patched)
    assert mirror.facts(again).parents == (base,)
    assert not list((mirror.path / "swingbot-forgotten").iterdir())


def commit_of(mirror: Mirror, content: bytes, *parents: str) -> str:
    """A commit of one file, written as swingbot writes those of patches."""
    blob = mirror._git("hash-object", "-w", "--stdin", stdin=content).strip()
    tree = mirror._git("mktree", stdin=f"100644 blob {blob}\ta.c\n".encode()).strip()
    who = {
        f"GIT_{role}_{part}": "x@y.z"
        for role in ("AUTHOR", "COMMITTER")
        for part in ("NAME", "EMAIL")
    }
    given = [word for parent in parents for word in ("-p", parent)]
    return mirror._git("commit-tree", tree, *given, "-m", "x", env=who).strip()


def stored_name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
