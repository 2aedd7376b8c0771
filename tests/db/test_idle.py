"""`idle` is true only when nothing is open and no further round would do anything: looked at
after every transaction of whole stories."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot.service.lab.set_testboxes import drain
from swingbot.service.report import send
from swingbot.service.tick import tick
from swingbot.service.watch.trees import poll_tree
from swingbot_db import engine as engine_module
from swingbot_db import read
from swingbot_db.store import PgTransaction
from swingbot_db.store.incidents import Incidents
from tests import builders as make
from tests.fakelinux import FakeCommit, add_commits
from tests.fakes.brain import Brain

MOST_ROUNDS = 12  # until the loop has nothing to do but wait for the lab
_TABLES = (
    "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE "
    "n.nspname = 'swingbot' AND c.relkind = 'r' ORDER BY 1"
)
_ALL_REPORTED = "SELECT bool_and(EXISTS (SELECT FROM report WHERE incident = i.id)) FROM incident i"


def plain(n: int) -> tuple[FakeCommit, ...]:
    return (FakeCommit(),) * n


def look(brain: Brain) -> dict[str, Any]:
    with brain.engine.connect() as conn:
        return read.open_work(conn)


def tables(brain: Brain) -> dict[str, str | None]:
    """A digest of each table; None of an empty one."""
    digest = (
        "SELECT '{0}' AS name, md5(string_agg(t::text, '|' ORDER BY t::text)) AS md5 FROM {0} t"
    )
    with brain.engine.connect() as conn:
        names = conn.execute(sa.text(_TABLES)).scalars()
        found = conn.execute(sa.text(" UNION ALL ".join(map(digest.format, names))))
        return {row.name: row.md5 for row in found}


def go_quiet(brain: Brain) -> None:
    """Rounds until every change has been seen; one more must then leave every table as it is,
    whatever the lab has under way."""
    for _ in range(MOST_ROUNDS):
        tick(brain.lab)
        brain.send()
        if look(brain)["open"]["unseen"] == 0:
            break
    else:
        raise AssertionError("each round makes work for the next")
    before = tables(brain)
    tick(brain.lab)
    after = tables(brain)
    assert {name for name in before if before[name] != after[name]} == set()


def to_the_end(brain: Brain) -> None:
    for _ in range(400):
        go_quiet(brain)
        if brain.fake.work() == 0:
            break
    assert look(brain)["idle"], look(brain)["open"]


def at_each_commit(monkeypatch: pytest.MonkeyPatch, probe: Callable[[str], None]) -> None:
    """Call `probe` after every transaction of the brain, and around the hand-over of each mail."""

    def checkpoint(name: str) -> None:
        if not name.endswith("before commit"):
            probe(name)

    monkeypatch.setattr(engine_module, "checkpoint", checkpoint)
    monkeypatch.setattr(send, "checkpoint", checkpoint)


Story = tuple[tuple[str, ...], tuple[FakeCommit, ...], int]
STORIES: dict[str, Story] = {  # testboxes, commits on top of the base, mails
    "one culprit, measured on two testboxes": (
        ("vm-icount", "vm-tcg"),
        (*plain(3), FakeCommit(speed=88), *plain(4)),
        1,
    ),
    "two culprits": (
        ("vm-icount",),
        (*plain(2), FakeCommit(speed=90), *plain(3), FakeCommit(speed=75), *plain(1)),
        2,
    ),
    "a noisy testbox": (("vm-tcg",), (*plain(2), FakeCommit(speed=80), *plain(2)), 1),
    "nothing but an improvement": (("vm-icount",), (*plain(2), FakeCommit(speed=120)), 0),
    "no change": (("vm-icount",), plain(5), 0),
}


def begin(brain: Brain, testboxes: tuple[str, ...], made: tuple[FakeCommit, ...]) -> None:
    """The base is measured, and `made` are on the branch, which was not polled since."""
    base = brain.base
    brain.watch(base, testboxes=list(testboxes))
    to_the_end(brain)
    add_commits(brain.repo, made)


@pytest.mark.parametrize("story", STORIES)
def test_once_a_lab_is_idle_nothing_changes_any_more_and_every_mail_has_arrived(
    brain: Brain, monkeypatch: pytest.MonkeyPatch, story: str
) -> None:
    testboxes, made, mails = STORIES[story]
    begin(brain, testboxes, made)
    looks = 0
    at_first: tuple[str, int, dict[str, str | None]] | None = None

    def probe(name: str) -> None:
        nonlocal looks, at_first
        looks += 1
        if at_first is None and look(brain)["idle"]:
            at_first = (name, len(brain.mails), tables(brain))

    brain.poll()
    assert not look(brain)["idle"]
    at_each_commit(monkeypatch, probe)
    to_the_end(brain)
    assert looks > 100
    assert at_first == ("end round: after commit", mails, tables(brain))
    assert len(brain.mails) == mails


def test_two_queries_one_after_the_other_can_miss_a_mail(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why `idle` is one statement: here a report is drafted between a look at what is open and a
    look at the incidents."""
    testboxes, made, _ = STORIES["one culprit, measured on two testboxes"]
    begin(brain, testboxes, made)
    nothing_open, mails_at_rest = False, []

    def probe(name: str) -> None:
        nonlocal nothing_open
        with brain.engine.connect() as conn:
            if conn.execute(sa.text(_ALL_REPORTED)).scalar() and nothing_open:
                mails_at_rest.append(len(brain.mails))
            found = read.open_work(conn)["open"]
        nothing_open = sum(found.values()) == found["unseen"]

    brain.poll()
    at_each_commit(monkeypatch, probe)
    to_the_end(brain)
    assert (mails_at_rest[0], mails_at_rest[-1]) == (0, 1)


def test_what_a_person_does_is_open_until_the_loop_has_seen_it(brain: Brain) -> None:
    testboxes, made, _ = STORIES["no change"]
    begin(brain, testboxes, made)
    assert look(brain)["idle"]  # the branch has not been polled yet
    brain.poll()
    assert look(brain)["open"] == dict.fromkeys(look(brain)["open"], 0) | {"unseen": 1}
    to_the_end(brain)
    drain(brain.lab.transaction, "vm-icount", "a new fan")
    assert look(brain)["open"]["unseen"] == 1
    go_quiet(brain)
    assert look(brain)["idle"]


def test_a_new_tree_is_open_until_it_was_polled(brain: Brain) -> None:
    go_quiet(brain)
    assert look(brain)["idle"]
    with brain.lab.transaction("add") as tx, brain.engine.connect() as conn:
        assert isinstance(tx, PgTransaction)
        make.a_tree(tx.trees.conn, "new", polled_at=None)
        assert read.open_work(conn)["idle"]  # not committed yet
    go_quiet(brain)
    assert look(brain)["open"] == dict.fromkeys(look(brain)["open"], 0) | {"trees": 1}
    with brain.lab.transaction("read") as tx:
        (tree,) = tx.trees.all()
    poll_tree(brain.lab.transaction, brain.lab.tools.git, tree)  # a problem is an answer, too
    go_quiet(brain)
    assert look(brain)["idle"]


def test_a_round_that_failed_has_seen_nothing(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Incidents) -> list[int]:
        raise ValueError("the table is damaged")

    with monkeypatch.context() as patched:
        patched.setattr(Incidents, "to_report", broken)
        for why in ("a new fan", "a new disk"):
            drain(brain.lab.transaction, "vm-tcg", why)
            with pytest.raises(ExceptionGroup, match="the table is damaged"):
                tick(brain.lab)
            assert look(brain)["open"]["unseen"] > 0
        with pytest.raises(ExceptionGroup, match="the table is damaged"):
            tick(brain.lab)
        assert look(brain)["open"]["unseen"] == 1  # and not one more with each round
    go_quiet(brain)
    assert look(brain)["idle"]


def test_a_change_that_commits_while_a_round_runs_is_left_to_the_next_one(
    brain: Brain, engine: sa.Engine
) -> None:
    """Although its number is lower than that of one which the round saw."""
    go_quiet(brain)
    with engine.connect() as slow, slow.begin() as transaction:
        slow.execute(sa.text("UPDATE mail_switch SET why = 'slow'"))
        drain(brain.lab.transaction, "vm-tcg", "a new fan")
        with brain.lab.transaction("begin round") as tx:
            seen = tx.rounds.unseen()
        transaction.commit()
    with brain.lab.transaction("end round") as tx:
        left = [number for number in tx.rounds.unseen() if number not in seen]
        tx.rounds.mark_seen(seen)
        assert tx.rounds.unseen() == left
        assert left < seen
    assert not look(brain)["idle"]


def test_a_transaction_is_recorded_once_and_not_if_it_was_rolled_back(
    brain: Brain, engine: sa.Engine
) -> None:
    go_quiet(brain)
    with engine.connect() as conn:
        conn.execute(sa.text("UPDATE mail_switch SET why = 'no'"))
        conn.rollback()
        assert look(brain)["idle"]
        with conn.begin_nested() as savepoint:
            conn.execute(sa.text("UPDATE mail_switch SET why = 'no'"))
            savepoint.rollback()
        for why in ("a", "b"):
            conn.execute(sa.text("UPDATE mail_switch SET why = :why"), {"why": why})
        conn.commit()
        assert look(brain)["open"]["unseen"] == 1
        conn.execute(sa.text("UPDATE mail_switch SET why = 'another transaction'"))
        conn.commit()
        assert look(brain)["open"]["unseen"] == 2


def test_a_new_database_has_to_be_seen(conn: sa.Connection) -> None:
    assert read.open_work(conn)["open"] == {
        "trees": 0,
        "comparisons": 0,
        "swings": 0,
        "bisections": 0,
        "gates": 0,
        "orders": 0,
        "attempts": 0,
        "reports": 0,
        "unseen": 1,
    }


# -- the command -----------------------------------------------------------------------------------


def swingbot(brain: Brain, db_url: str, *words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(
        main,
        ["--state", str(brain.settings.state), *words],
        env={"SWINGBOT_DB_URL": db_url},
    )
    return done.exit_code, done.stdout, done.stderr


def test_a_script_can_wait_until_nothing_is_open(brain: Brain, db_url: str) -> None:
    testboxes, made, _ = STORIES["no change"]
    begin(brain, testboxes, made)
    brain.poll()
    tick(brain.lab)
    status, out, err = swingbot(brain, db_url, "wait", "--idle", "--timeout", "0")
    assert (status, out) == (1, "")
    assert "not idle after 0 s (comparisons: 1, orders: " in err
    assert "\nidle      no (comparisons: 1, orders: " in swingbot(brain, db_url, "status")[1]
    to_the_end(brain)
    assert swingbot(brain, db_url, "wait", "--idle") == (0, "idle: no open work\n", "")
    status, out, _ = swingbot(brain, db_url, "wait", "--idle", "--json")
    assert (status, json.loads(out)["idle"]) == (0, True)
    assert (
        json.loads(out).items()
        <= json.loads(swingbot(brain, db_url, "status", "--json")[1]).items()
    )
    assert "\nidle      yes\n" in swingbot(brain, db_url, "status")[1]


@pytest.mark.parametrize("words", [(), ("c1", "--idle"), ("--idle", "--exit-code")])
def test_what_to_wait_for_has_to_be_said_once(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(main, ["--state", str(tmp_path), "wait", *words])
    assert done.exit_code == 2
    assert "--idle" in done.stderr or "the ID of" in done.stderr
