"""What the head of an answer tells programs: a validator, a problem, what is left of a quota."""

from __future__ import annotations

from pathlib import Path

import httpx
import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot.core.access.roles import Role
from tests.asking import Serve, Site


def test_a_document_that_did_not_change_is_not_sent_again(serve: Serve) -> None:
    site = serve(SWINGBOT_WEB_READ="token")
    ada, bob = (site.web.token(who, Role.READER) for who in ("Ada", "Bob"))
    client, path = site.web.client, "/trees.json"
    first = client.get(path, headers=ada)
    tag = first.headers["etag"]
    assert tag.startswith('W/"') and first.headers["vary"] == "Authorization, Cookie"
    assert "private" in first.headers["cache-control"]
    for wanted in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        again = client.get(path, headers={**ada, "If-None-Match": wanted})
        assert again.status_code == 304 and again.content == b"" and again.headers["etag"] == tag
        assert "content-type" not in again.headers
    for other in ('"other"', tag[:-2] + '"', tag.strip('"'), '"' * 500, ""):
        assert client.get(path, headers={**ada, "If-None-Match": other}).status_code == 200
    refused = client.get(path, headers={"If-None-Match": tag})
    assert refused.status_code == 401 and "etag" not in refused.headers
    assert client.get(path, headers={**bob, "If-None-Match": tag}).status_code == 304
    site.web.conn.execute(sa.text("UPDATE tree SET branch = 'other'"))
    site.web.conn.commit()
    changed = client.get(path, headers={**ada, "If-None-Match": tag})
    assert changed.status_code == 200 and changed.headers["etag"] != tag


def test_pages_secrets_and_errors_have_no_validator(idle: Site) -> None:
    reader = idle.web.token("Reader", Role.READER)
    for path in ("/trees", "/tokens.json", "/login.json", "/none.json"):
        answer = idle.web.client.get(path, headers={**reader, "If-None-Match": "*"})
        assert answer.status_code != 304 and "etag" not in answer.headers, path


def test_an_error_is_a_problem_with_the_sentence_that_the_command_prints(
    idle: Site, ada: dict[str, str], tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{idle.web.port}"
    env = {
        "SWINGBOT_URL": url,
        "SWINGBOT_TOKEN": ada["Authorization"].split()[1],
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    for words, answer in (
        ("show c99", idle.web.client.get("/comparison/c99.json")),
        ("compare base tip --tree none", idle.json(ada, tree="none")),
        (
            "extend c99 --boots 2",
            idle.web.client.post("/comparison/c99/extend", json={"boots": 2}, headers=ada),
        ),
    ):
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert problem.keys() == {"type", "title", "status", "detail"}
        assert problem["status"] == answer.status_code >= 400
        printed = CliRunner().invoke(main, words.split(), env=env)
        assert problem["detail"].splitlines()[0] in printed.output, printed.output


def test_an_answer_says_what_is_left_of_the_quota(serve: Serve) -> None:
    site = serve(SWINGBOT_WEB_OPEN_REQUESTS="1", SWINGBOT_WEB_TESTBOX_MINUTES="100")
    ada, root = (
        site.web.token(who, role)
        for who, role in (("Ada", Role.SUBMITTER), ("Root", Role.OPERATOR))
    )

    def left(answer: httpx.Response | None = None, **keys: object) -> dict[str, int]:
        answer = answer or site.json(ada, **keys)
        assert '"testbox-seconds";q=6000;w=86400' in answer.headers["ratelimit-policy"]
        items = answer.headers["ratelimit"].split(", ")
        return {name.strip('"'): int(rest) for name, rest in (one.split(";r=") for one in items)}

    before, queued = left(dry_run=True), left()
    assert before == {"open-requests": 1, "requests": 200, "testbox-seconds": 6000}
    assert queued["open-requests"] == 0 and queued["requests"] == 199
    assert 0 < queued["testbox-seconds"] < 6000
    assert left(boots=3) == queued, "a refused request takes nothing"
    assert "ratelimit" not in site.json(root, dry_run=True).headers
    client = site.web.client
    assert left(client.get("/login.json", headers=ada)) == queued
    assert "ratelimit" not in client.get("/login.json", headers=root).headers
    assert "ratelimit" not in client.get("/login.json").headers
