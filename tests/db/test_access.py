"""Tokens and sessions in a real database, and the command that makes them."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot.core.access.roles import Role
from swingbot.core.access.tokens import digest
from swingbot_db import access
from swingbot_db.access import Access
from tests.fakes.mail import brain_environment

TOKEN = "swingbot_" + "t" * 43
SESSION = digest("a session")


def make(conn: sa.Connection, *, life: timedelta | None = None, role: Role = Role.MODERATOR) -> int:
    return access.create(
        conn, who="Ada", role=role, digest=digest(TOKEN), life=life, note=None, by="root@host"
    )


def test_a_token_is_found_by_its_digest_until_it_is_revoked(conn: sa.Connection) -> None:
    number = make(conn)
    person = access.holder(conn, digest(TOKEN))
    assert person is not None and (person.who, person.role, person.token) == (
        "Ada",
        Role.MODERATOR,
        number,
    )
    assert access.holder(conn, digest("another")) is None
    assert access.revoke(conn, number, by="root@host") == "Ada"
    assert access.holder(conn, digest(TOKEN)) is None
    with pytest.raises(access.NoSuchToken, match="is already revoked"):
        access.revoke(conn, number, by="root@host")
    with pytest.raises(access.NoSuchToken, match="token 99 does not exist"):
        access.revoke(conn, 99, by="root@host")


def test_a_token_that_has_expired_is_good_no_more_and_neither_are_its_sessions(
    conn: sa.Connection, engine: sa.Engine
) -> None:
    number, keeper = make(conn, life=timedelta(days=1)), Access(engine)
    person = keeper.holder(digest(TOKEN))
    assert person is not None
    keeper.begin(person, SESSION, 3600, "192.0.2.1")
    assert keeper.of_session(SESSION) == person
    conn.execute(
        sa.text("UPDATE access_token SET expires_at = now() WHERE id = :id"), {"id": number}
    )
    assert keeper.holder(digest(TOKEN)) is None and keeper.of_session(SESSION) is None


def test_a_session_ends_by_time_by_hand_and_with_its_token(
    conn: sa.Connection, engine: sa.Engine
) -> None:
    number, keeper = make(conn), Access(engine)
    person = keeper.holder(digest(TOKEN))
    assert person is not None
    keeper.begin(person, SESSION, 3600, "192.0.2.1")
    conn.execute(sa.text("UPDATE web_session SET ends_at = now()"))
    assert keeper.of_session(SESSION) is None
    keeper.begin(person, digest("second"), 3600, "192.0.2.1")
    assert conn.execute(sa.text("SELECT count(*) FROM web_session")).scalar() == 1, (
        "what is over is swept"
    )
    keeper.end(digest("second"))
    assert keeper.of_session(digest("second")) is None
    keeper.begin(person, digest("third"), 3600, "192.0.2.1")
    access.revoke(conn, number, by="root@host")
    assert keeper.of_session(digest("third")) is None


def test_the_operators_key_is_a_token_that_can_be_revoked(conn: sa.Connection) -> None:
    person = access.holder(conn, None)
    assert person is not None and (person.who, person.role) == ("operator", Role.OPERATOR)
    access.revoke(conn, person.token, by="root@host")
    assert access.holder(conn, None) is None


def test_what_was_done_is_kept_and_refusals_are_forgotten_after_a_month(
    conn: sa.Connection, engine: sa.Engine
) -> None:
    make(conn)
    keeper = Access(engine)
    keeper.refused("192.0.2.9")
    conn.execute(sa.text("UPDATE access_event SET at = now() - interval '31 days'"))
    keeper.refused("192.0.2.10")
    assert [(event["act"], event["detail"]) for event in access.events(conn, 10)] == [
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
    person = access.holder(conn, digest(made["token"]))
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
    assert [(row["who"], row["role"], row["key"]) for row in access.tokens(conn)] == [
        ("operator", "operator", True)
    ]
