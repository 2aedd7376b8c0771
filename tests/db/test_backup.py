"""A backup taken while work goes on is enough to go on from: same culprit, nothing counted or
mailed twice."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.adapters.maildir import deliver
from swingbot.app.cli import main
from swingbot.app.keep.backup import KeepError, backup
from swingbot.app.keep.restore import restore
from swingbot.app.keep.verify import verify
from swingbot.app.settings import Settings, load
from swingbot.core.keep.manifest import BadBackup, read_manifest, read_sums
from swingbot.service.order.worker_requests import WorkerRequests
from swingbot.service.tick import tick
from swingbot_db.engine import make_engine
from swingbot_db.store import transactions
from tests import builders as make
from tests.fakelinux import make_fakelinux
from tests.fakes.artifacts import stored
from tests.fakes.brain import Brain, make_brain
from tests.fakes.mail import brain_environment, running_smtpd
from tests.half_way import COMMITS, CULPRIT, in_the_middle, value

_TWICE = (
    "SELECT count(*) - count(DISTINCT (image_sha256, testbox, spec, series, purpose, k)) + "
    "count(*) - count(DISTINCT order_id) FROM boot"
)


def quiet(line: str) -> None:
    pass


def to_its_end(brain: Brain) -> None:
    """Work until the report is written; whether it leaves is another question."""
    for _ in range(400):
        tick(brain.lab)
        if brain.fake.work() == 0 and brain.count("report"):
            return
    raise AssertionError("no report was written")


def test_a_restored_service_finds_the_same_culprit_and_mails_nobody_by_itself(
    tmp_path: Path, db_url: str, empty_url: str
) -> None:
    repo = tmp_path / "linux"
    base, *made = make_fakelinux(repo, COMMITS)
    settings = load(environ=brain_environment(tmp_path / "state", db_url))
    engine = make_engine(db_url)
    brain = make_brain(settings, engine, repo)
    with running_smtpd(settings):
        brain.watch(base)
        in_the_middle(brain)
        running = value(
            engine, "SELECT id FROM attempt WHERE state = 'running' ORDER BY id LIMIT 1"
        )
        boots = brain.count("boot")
        backup(settings, engine, tmp_path / "kept", quiet)
        brain.run()
    assert [brain.facts("i")["culprit"]["commit"]] == [made[CULPRIT - 1]]
    assert len(brain.mails) == 1
    engine.dispose()

    new = load(environ=brain_environment(tmp_path / "restored", empty_url))
    done = restore(new, tmp_path / "kept", quiet)
    assert done["changed"]["attempts"] >= 1
    engine = make_engine(empty_url)
    again = make_brain(new, engine, repo)
    assert again.count("boot") == boots
    assert value(engine, f"SELECT state FROM attempt WHERE id = {running}") == "dead"
    with running_smtpd(new):
        to_its_end(again)
        for _ in range(5):
            again.fake.work()
            tick(again.lab)
        assert (
            again.mails == []
        )  # stopped: this database does not know that the mail was sent after the backup
        assert again.count("boot") > boots
        assert value(engine, _TWICE) == 0
        incident = value(engine, "SELECT id FROM incident")
        assert again.facts("i", int(str(incident)))["culprit"]["commit"] == made[CULPRIT - 1]
        assert str(value(engine, "SELECT why FROM mail_switch")).startswith(
            "restored from the backup of "
        )
    assert (
        int(
            str(
                value(
                    engine,
                    (
                        "SELECT min(id) FROM attempt WHERE state = 'ended' AND created_at > "
                        "(SELECT at FROM mail_switch)"
                    ),
                )
            )
        )
        > 100_000
    )
    engine.dispose()


def a_state(tmp_path: Path, db_url: str) -> Settings:
    """A state directory with two raw results, a mirror with one ref and a mail."""
    settings = load(environ=brain_environment(tmp_path / "state", db_url))
    store = ArtifactDirectory(settings.artifacts)
    stored(store, b"console\n" * 1000)
    stored(store, os.urandom(5000))
    deliver(settings.maildir, b"From: a@example.org\nMessage-ID: <r1.first.1@x>\n\nhello\n")
    repo = tmp_path / "linux"
    make_fakelinux(repo, 1)
    subprocess.run(
        ["git", "clone", "--quiet", "--mirror", str(repo), str(settings.mirror)], check=True
    )
    (settings.state / "secret").write_text("00" * 32 + "\n")
    return settings


def test_mails_that_may_have_left_are_unknown_and_those_that_waited_are_held(
    tmp_path: Path, db_url: str, engine: sa.Engine, conn: sa.Connection, empty_url: str
) -> None:
    settings = a_state(tmp_path, db_url)
    tree = make.a_tree(conn)
    reports = {}
    for number, state in enumerate(("sending", "queued", "sent", "held", "dropped")):
        incident = make.an_incident(conn, tree, make.a_kernel(conn, tree, number))
        reports[state] = make.a_report(conn, incident, state=state)
    backup(settings, engine, tmp_path / "kept", quiet)
    done = restore(
        load(environ=brain_environment(tmp_path / "new", empty_url)), tmp_path / "kept", quiet
    )
    assert (done["changed"]["mails in doubt"], done["changed"]["mails held"]) == (1, 1)
    restored = make_engine(empty_url)
    with restored.connect() as there:
        states = {
            row.id: row.state for row in there.execute(sa.text("SELECT id, state FROM report"))
        }
        assert there.execute(sa.text("SELECT stopped FROM mail_switch")).scalar_one() is True
        last = max(reports.values())
        # links in mails stay true
        assert (
            there.execute(
                sa.text("SELECT nextval(pg_get_serial_sequence('swingbot.report', 'id'))")
            ).scalar_one()
            > last + 900
        )
    restored.dispose()
    assert {before: states[number] for before, number in reports.items()} == {
        "sending": "unknown",
        "queued": "held",
        "sent": "sent",
        "held": "held",
        "dropped": "dropped",
    }


def test_what_is_restored_is_what_was_there(
    tmp_path: Path, db_url: str, engine: sa.Engine, conn: sa.Connection, empty_url: str
) -> None:
    settings = a_state(tmp_path, db_url)
    testbox = make.a_testbox(conn, reason="a \\ back-slash,\ta tab and a\nnew line, NULL as \\N")
    tree = make.a_tree(conn)
    make.a_boot(
        conn, testbox, make.a_kernel(conn, tree, 0), values={make.METRIC: [1.0, 1e-300, 0.1]}
    )
    backup(settings, engine, tmp_path / "kept", quiet)
    new = load(environ=brain_environment(tmp_path / "new", empty_url))
    restore(new, tmp_path / "kept", quiet)
    for query in (
        "SELECT reason FROM testbox",
        "SELECT array_agg(value ORDER BY run, seq) FROM sample",
        "SELECT facts::text FROM boot",
    ):
        restored = make_engine(empty_url)
        assert value(restored, query) == value(engine, query)
        restored.dispose()
    for part in ("artifacts", "maildir/new"):
        before = {
            path.relative_to(settings.state): path.read_bytes()
            for path in sorted((settings.state / part).rglob("*"))
            if path.is_file()
        }
        after = {
            path.relative_to(new.state): path.read_bytes()
            for path in sorted((new.state / part).rglob("*"))
            if path.is_file()
        }
        assert before == after and before
    tips = [
        subprocess.run(["git", "-C", str(one), "show-ref"], capture_output=True, check=True).stdout
        for one in (settings.mirror, new.mirror)
    ]
    assert tips[0] == tips[1] and b"refs/heads/main" in tips[0]
    assert not (
        new.state / "secret"
    ).exists()  # tokens of the old service's attempts are worth nothing here


def test_a_token_of_before_the_restore_opens_nothing_after_it(
    tmp_path: Path, db_url: str, engine: sa.Engine, conn: sa.Connection, empty_url: str
) -> None:
    settings = a_state(tmp_path, db_url)
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    order = make.an_order(conn, make.a_kernel(conn, tree, 0), testbox, state="running")
    attempt = make.an_attempt(conn, order)
    backup(settings, engine, tmp_path / "kept", quiet)
    restore(load(environ=brain_environment(tmp_path / "new", empty_url)), tmp_path / "kept", quiet)
    restored = make_engine(empty_url)
    # it is dead: what it still brings is late, never counted
    assert WorkerRequests(transactions(restored)).wanted(attempt) is False
    assert value(restored, f"SELECT state FROM orders WHERE id = {order}") == "ready"
    assert value(restored, f"SELECT budget FROM orders WHERE id = {order}") == 4
    restored.dispose()


@pytest.mark.parametrize("broken", ["artifact", "missing artifact", "table", "mail", "mirror"])
def test_damage_is_found_and_not_restored(
    tmp_path: Path, db_url: str, engine: sa.Engine, empty_url: str, broken: str
) -> None:
    settings = a_state(tmp_path, db_url)
    kept = tmp_path / "kept"
    backup(settings, engine, kept, quiet)
    assert verify(kept, quiet) == []
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=kept, check=True)
    pattern = {
        "artifact": "artifacts/??/*.zst",
        "missing artifact": "artifacts/??/*.zst",
        "table": "database/tree.copy.zst",
        "mail": "mail/new/*",
        "mirror": "mirror.git/packed-refs",
    }[broken]
    victim = next(kept.glob(pattern))
    if broken == "missing artifact":
        victim.unlink()
    else:
        content = bytearray(victim.read_bytes())
        content[len(content) // 2] ^= 1
        victim.chmod(0o600)
        victim.write_bytes(bytes(content))
    problem = f"{victim} is {'missing' if broken == 'missing artifact' else 'damaged'}"
    assert verify(kept, quiet) == [problem]
    target = tmp_path / "new"
    with pytest.raises(KeepError, match=re.escape(f"the backup has 1 problem: {problem}; ")):
        restore(load(environ=brain_environment(target, empty_url)), kept, quiet)
    assert not target.exists()


def test_nothing_that_is_there_is_written_over(
    tmp_path: Path, db_url: str, engine: sa.Engine, empty_url: str
) -> None:
    settings = a_state(tmp_path, db_url)
    with pytest.raises(KeepError, match="is inside the state directory"):
        backup(settings, engine, settings.state / "kept", quiet)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.tex").write_text("x")
    with pytest.raises(KeepError, match="is not empty; choose a new directory for each"):
        backup(settings, engine, tmp_path / "precious", quiet)
    kept = tmp_path / "kept"
    backup(settings, engine, kept, quiet)
    with pytest.raises(KeepError, match="is not empty"):
        restore(load(environ=brain_environment(tmp_path / "precious", empty_url)), kept, quiet)
    with pytest.raises(KeepError, match="already contains table swingbot"):
        restore(load(environ=brain_environment(tmp_path / "new", db_url)), kept, quiet)


def test_an_interrupted_backup_is_not_taken_for_whole(
    tmp_path: Path, db_url: str, engine: sa.Engine, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = a_state(tmp_path, db_url)
    kept = tmp_path / "kept"

    def full_disk(*_: object) -> None:
        raise OSError(errno.ENOSPC, "the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("swingbot.app.keep.backup.write_json", full_disk)  # the last step
        with pytest.raises(OSError, match="the disk is full"):
            backup(settings, engine, kept, quiet)
    new = load(environ=brain_environment(tmp_path / "new", empty_url))
    for check in (True, False):
        with pytest.raises(BadBackup, match="is not a whole swingbot backup"):
            restore(new, kept, quiet, check=check)
    with pytest.raises(BadBackup, match="is not a whole swingbot backup"):
        verify(kept, quiet)
    with pytest.raises(KeepError, match="is not empty"):
        backup(settings, engine, kept, quiet)
    backup(settings, engine, tmp_path / "next", quiet)
    listed = tmp_path / "next" / "SHA256SUMS"
    listed.write_text("".join(listed.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(BadBackup, match="files, but the backup has"):
        restore(new, tmp_path / "next", quiet, check=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 9}, "has backup format 9"),
        (
            {"tables": [{"name": "../x", "columns": [], "rows": 0}]},
            "name: '../x' is not a table that",
        ),
        ({"sequences": {"boot_id_seq": "1); DROP"}}, "sequences.boot_id_seq: '1\\); DROP' is not"),
        ({"tables": 7}, "is not the manifest"),
        ({"more": 1}, "is not the manifest"),
    ],
)
def test_a_manifest_that_leads_elsewhere_is_refused(
    change: dict[str, object], message: str
) -> None:
    sound = {
        "format": 3,
        "taken_at": "2026-01-02T03:04:05+00:00",
        "revision": "0001",
        "tables": [],
        "sequences": {},
        "secrets": [],
        "files": 0,
        "size": 0,
    }
    assert read_manifest(json.loads(json.dumps(sound)), "m").revision == "0001"
    with pytest.raises(BadBackup, match=message):
        read_manifest(sound | change, "m")


@pytest.mark.parametrize(
    "path",
    [
        "mail/../x",
        "mail/new/../../x",
        "mail/new/.x",
        "artifacts/ab/cd",
        "database/../x",
        "mirror.git/../x",
        "/etc/passwd",
        "manifest.json",
    ],
)
def test_a_list_of_files_that_leads_elsewhere_is_refused(path: str) -> None:
    sound = f"{'0' * 64}  mail/new/1790000000.M1P2.host\n"
    assert list(read_sums(sound, "m")) == ["mail/new/1790000000.M1P2.host"]
    with pytest.raises(BadBackup, match="cannot be in a backup"):
        read_sums(f"{sound}{'0' * 64}  {path}\n", "m")


def run(settings: Settings, *words: str) -> Result:
    environment = {
        "SWINGBOT_DB_URL": settings.db.url,
        "SWINGBOT_PATHS_STATE": str(settings.state),
        "SWINGBOT_CONFIG": "",
    }
    return CliRunner().invoke(main, list(words), env=environment, catch_exceptions=False)


def test_the_commands_say_what_they_did(
    tmp_path: Path, db_url: str, fresh_databases: Callable[[], str], empty_url: str
) -> None:
    settings = a_state(tmp_path, db_url)
    kept = str(tmp_path / "kept")
    made = run(settings, "backup", kept)
    assert made.exit_code == 0
    assert "it does not contain the settings file and secrets (secret" in made.output
    assert "artifacts: 2 files" in made.output
    assert ": intact" in run(settings, "backup", kept, "--verify").output
    restored = run(
        load(environ=brain_environment(tmp_path / "x", empty_url)),
        "restore",
        kept,
        "--state",
        str(tmp_path / "new"),
    )
    assert restored.exit_code == 0
    assert "mail is stopped" in restored.output
    missing = run(settings, "backup", str(tmp_path / "none"), "--verify")
    assert missing.exit_code == 2
    assert "is not a whole swingbot backup" in missing.output
