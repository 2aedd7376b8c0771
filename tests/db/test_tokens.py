"""Tokens over the web: their end is explained, a page lists and revokes them, and some are for
tables of a few trees only."""

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
from swingbot.core.model import ids
from swingbot.service.access import create_token
from swingbot.service.ports.access import NewToken
from swingbot.web.api.operations import OPERATIONS
from swingbot_db.store import transactions
from tests.asking import Serve, Site
from tests.fakes.mail import brain_environment

COST: dict[str, Any] = {"dry_run": True}


def only_for(site: Site, *trees: str) -> dict[str, str]:
    """Headers with a submitter's token for tables of `trees`."""
    text = "swingbot_" + digest(" ".join(trees))[:43]
    new = NewToken(who="ci", role=Role.SUBMITTER, digest=digest(text), trees=trees, by="test")
    with transactions(site.web.engine)("token") as tx:
        create_token(tx.access, new)
    return {"Authorization": f"Bearer {text}"}


def test_an_expired_token_says_when_it_expired_and_who_makes_another(serve: Serve) -> None:
    site = serve()
    ada = site.web.token("Ada Example", Role.SUBMITTER)
    assert site.json(ada, **COST).status_code == 200
    expire = "UPDATE access_token SET expires_at = '2026-03-01 12:00Z' WHERE who = 'Ada Example'"
    site.web.conn.execute(sa.text(expire))
    site.web.conn.commit()
    for _ in range(8):  # who has it did not guess it
        answer = site.json(ada, **COST)
        assert answer.status_code == 401
        assert "of Ada Example expired on 2026-03-01 at 12:00 UTC" in answer.json()["detail"]
        assert "ask an operator for another one" in answer.json()["detail"]
    page = site.web.client.post("/login", data={"key": ada["Authorization"].split()[1]})
    assert page.status_code == 401 and "expired on 2026-03-01" in page.text


def test_the_last_use_is_recorded_once_a_minute(serve: Serve) -> None:
    site = serve()
    ada = site.web.token("Ada", Role.READER)

    def used() -> list[tuple[Any, Any]]:
        site.web.conn.rollback()
        query = "SELECT used_at, xmin::text FROM access_token WHERE who = 'Ada'"
        return [tuple(row) for row in site.web.conn.execute(sa.text(query))]

    def read() -> None:
        answer = site.web.client.get("/tokens.json", headers=ada)
        assert [row["who"] for row in answer.json()] == ["Ada"]

    assert used()[0][0] is None
    read()
    first = used()
    assert first[0][0] is not None
    read()
    assert used() == first, "the row was written again"
    site.web.conn.execute(
        sa.text("UPDATE access_token SET used_at = used_at - interval '61 seconds'")
    )
    site.web.conn.commit()
    read()
    assert used()[0][0] >= first[0][0]


def test_a_person_sees_and_revokes_their_own_tokens_and_an_operator_all(serve: Serve) -> None:
    site = serve()
    web = site.web
    ada, bob = (web.token(who, Role.SUBMITTER) for who in ("Ada", "Bob"))
    root = web.token("Root", Role.OPERATOR)

    def tokens(headers: dict[str, str], query: str = "") -> dict[str, Any]:
        answer = web.client.get(f"/tokens.json{query}", headers=headers)
        return {row["who"]: row for row in answer.json()}

    def revoke(headers: dict[str, str], number: object) -> Any:
        return web.client.post(f"/tokens/{number}/revoke", headers=headers, follow_redirects=False)

    assert web.client.get("/tokens.json").status_code == 401
    assert "Sign in" in web.client.get("/tokens").text
    assert tokens(ada).keys() == {"Ada"} and tokens(root).keys() == {
        "operator",
        "Ada",
        "Bob",
        "Root",
    }
    own, other = tokens(ada)["Ada"]["id"], tokens(bob)["Bob"]["id"]
    refused = revoke(ada, other)
    assert refused.status_code == 403 and "only its owner or an operator" in refused.text
    assert revoke({}, other).status_code == 401
    assert revoke(root, 999).status_code == 404 and revoke(root, "x").status_code == 400
    assert tokens(root)["Bob"]["good"]
    assert revoke(ada, own).status_code == 303
    answer = web.client.get("/tokens.json", headers=ada)
    assert answer.status_code == 401 and "was revoked" in answer.json()["detail"]
    assert "by Ada (pages)" in answer.json()["detail"]
    assert revoke(root, other).status_code == 303
    assert tokens(root).keys() == {"operator", "Root"}
    assert not tokens(root, "?over=1")["Bob"]["good"]


def test_every_change_needs_a_valid_token_then_its_role(serve: Serve) -> None:
    site = serve()
    ended = {}
    for column in ("expires_at", "revoked_at"):
        ended[column] = site.web.token(column, Role.OPERATOR)
        past = f"UPDATE access_token SET {column} = '2026-03-01 12:00Z' WHERE who = '{column}'"
        site.web.conn.execute(sa.text(past))
        site.web.conn.commit()
    reader = site.web.token("Rea", Role.READER)
    changes = [one for one in OPERATIONS if one.role not in (None, Role.READER)]
    assert changes
    for one in changes:
        path = one.path.replace("{id}", f"{ids.LETTERS.get(one.path.split('/')[1], 'x')}1")
        for headers, status in (
            *((token, 401) for token in ({}, *ended.values())),
            ({"Authorization": "Basic eDp5"}, 401),
            (reader, 403),
        ):
            body: dict[str, str] | None = None if one.method == "GET" else {}
            answer = site.web.client.request(one.method, path, json=body, headers=headers)
            said = (path, headers, answer.text)
            assert answer.status_code == status and answer.json()["detail"], said
            challenge = "Bearer" if status == 401 else None
            assert answer.headers.get("www-authenticate") == challenge, said


def test_a_signed_in_person_revokes_a_token_by_its_form(serve: Serve) -> None:
    site = serve()
    key = site.web.token("Ada", Role.SUBMITTER)["Authorization"].split()[1]
    other = site.web.token("Ada", Role.READER)
    site.web.token("Ada", Role.MODERATOR)
    site.web.client.post("/login", data={"key": key, "next": "/tokens"})
    page = site.web.client.get("/tokens").text
    assert "(in use here)" in page and page.count("/revoke") == 2
    assert "with a token of the role moderator" in page
    number = site.web.client.get("/tokens.json", headers=other).json()[1]["id"]
    address = f"/tokens/{number}/revoke"
    assert site.web.client.post(address, data={}).status_code == 403, "without the form's token"
    field = page.partition('name="token" value="')[2].partition('"')[0]
    assert "valid ones" in site.web.client.get("/tokens?over=1").text
    assert site.web.client.post(address, data={"token": field}).status_code == 303
    assert site.web.client.get("/tokens").text.count("/revoke") == 1


def test_a_token_of_a_few_trees_is_for_their_tables_only(serve: Serve) -> None:
    site = serve()
    inside, outside = only_for(site, "mm", "fake"), only_for(site, "mm")
    queued = site.json(inside)
    assert queued.status_code == 201, queued.text
    id = queued.json()["id"]
    refused = "ci's token is only for requests of mm, not of fake"
    more: dict[str, Any] = {"boots": 1, "dry_run": True}
    post = site.web.client.post
    for answer in (
        site.json(outside, **COST),
        site.json(outside),
        post("/experiment", json={"tree": "fake", "head": "tip"}, headers=outside),
        post(f"/comparison/{id}/extend", json=more, headers=outside),
        post(f"/comparison/{id}/cancel", headers=outside),
    ):
        assert answer.status_code == 403 and refused in answer.json()["detail"], answer.text
    assert post(f"/comparison/{id}/extend", json=more, headers=inside).status_code == 200
    assert post(f"/comparison/{id}/cancel", headers=inside).json()["was"] in ("waiting", "running")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--role", "submitter", "--tree", "none"), "tree 'none' does not exist"),
        (("--role", "moderator", "--tree", "fake"), "--tree limits the role submitter only"),
        (("--role", "submitter", "--for", "always"), "or never"),
        (("--role", "reader", "--trust"), "--trust is for tokens that send commits"),
        (("--role", "submitter", "--trust", "--group", "g"), "not for the role reader, nor with"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(
    db_url: str, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    env = brain_environment(tmp_path / "state", db_url)
    said = CliRunner().invoke(main, ["token", "create", "ci", *words], env=env)
    assert said.exit_code == 2 and sentence in said.stderr


def test_a_token_lasts_90_days_unless_told_otherwise(serve: Serve, tmp_path: Path) -> None:
    site = serve()
    env = brain_environment(tmp_path / "state", str(site.web.settings.db.url))

    def create(*words: str) -> Any:
        said = CliRunner().invoke(
            main, ["token", "create", "ci", "--role", "submitter", *words, "--json"], env=env
        )
        return json.loads(said.stdout)

    made = create("--tree", "fake", "--trust")
    assert made["expires_at"] is not None and made["trees"] == ["fake"] and made["vouches"]
    other = create("--for", "never")
    assert other["expires_at"] is None and not other["vouches"]
    query = "SELECT round(extract(epoch FROM expires_at - made_at) / 86400) FROM access_token"
    days = site.web.conn.execute(sa.text(f"{query} WHERE id = {made['id']}")).scalar()
    assert days == 90
    shown = CliRunner().invoke(main, ["token", "list"], env=env).stdout
    assert "TREES" in shown and "fake" in shown and "never" not in shown
    assert shown.count("own commits") == 1
    log = CliRunner().invoke(main, ["token", "log"], env=env).stdout
    assert "for ci, submitter, trees fake, vouches for its commits" in log
