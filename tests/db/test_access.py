"""What is kept of tokens and sessions, and the command that makes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot.core.access.roles import Role
from swingbot.core.access.tokens import digest
from swingbot.service.access import create_token, refuse_sign_in
from swingbot.service.ports.access import NewToken
from swingbot_db import read
from swingbot_db.store import PgTransaction
from tests.fakes.mail import brain_environment

TOKEN = "swingbot_" + "t" * 43


def make(conn: sa.Connection) -> PgTransaction:
    """A transaction that has made the token `TOKEN`."""
    tx = PgTransaction(conn)
    new = NewToken(who="Ada", role=Role.MODERATOR, digest=digest(TOKEN), by="root@host")
    create_token(tx.access, new)
    return tx


def test_sessions_that_are_over_are_swept(conn: sa.Connection) -> None:
    tx = make(conn)
    person = tx.access.holder(digest(TOKEN))
    assert person is not None
    for session in ("first", "second"):
        tx.access.begin_session(person, digest(session), 3600, 20)
        conn.execute(sa.text("UPDATE web_session SET ends_at = now() - interval '1 second'"))
    assert conn.execute(sa.text("SELECT count(*) FROM web_session")).scalar() == 1


def test_what_was_done_is_kept_and_refusals_are_forgotten_after_a_month(
    conn: sa.Connection,
) -> None:
    tx = make(conn)
    refuse_sign_in(tx.access, "192.0.2.9")
    conn.execute(sa.text("UPDATE access_event SET at = now() - interval '31 days'"))
    refuse_sign_in(tx.access, "192.0.2.10")
    assert [(event["act"], event["detail"]) for event in read.access_events(conn, 10)] == [
        ("refused", "from 192.0.2.10"),
        ("create", "for Ada, moderator"),
    ]


@pytest.fixture
def run(db_url: str, tmp_path: Path) -> Any:
    def call(*words: str) -> Any:
        return CliRunner().invoke(
            main, list(words), env=brain_environment(tmp_path / "state", db_url)
        )

    return call


def test_a_token_is_shown_once_and_only_its_digest_is_kept(run: Any, conn: sa.Connection) -> None:
    made = json.loads(
        run(
            "token",
            "create",
            "Ada Example",
            "--role",
            "moderator",
            "--for",
            "90d",
            "--note",
            "laptop",
            "--json",
        ).stdout
    )
    assert made["token"].startswith("swingbot_") and len(made["token"]) == 52
    person = PgTransaction(conn).access.holder(digest(made["token"]))
    assert person is not None and person.who == "Ada Example"
    everything = " ".join(
        str(row)
        for table in ("access_token", "access_event")
        for row in conn.execute(sa.text(f"SELECT * FROM {table}"))
    )
    assert (
        made["token"]
        not in everything + run("token", "list", "--json").stdout + run("token", "log").stdout
    )
    assert "Ada Example" in run("token", "list").stdout
    assert run("token", "revoke", str(made["id"])).exit_code == 0
    assert (
        "Ada Example" not in run("token", "list").stdout
        and "Ada Example" in run("token", "list", "--all").stdout
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("create", "<b>", "--role", "reader"), "is not a valid name"),
        (("create", "Ada", "--role", "reader", "--for", "soon"), "write 12h, 90d or 52w"),
        (("create", "Ada", "--role", "king"), "is not one of"),
        (("create", "Ada"), "Missing option '--role'"),
        (("revoke", "99"), "token 99 does not exist"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(
    run: Any, words: tuple[str, ...], sentence: str
) -> None:
    answer = run("token", *words)
    assert answer.exit_code == 2 and sentence in answer.stderr


def test_the_key_is_the_only_token_of_a_new_database(conn: sa.Connection) -> None:
    assert [(row["who"], row["role"], row["key"]) for row in read.tokens(conn)] == [
        ("operator", "operator", True)
    ]
