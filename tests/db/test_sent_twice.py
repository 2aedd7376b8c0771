"""A request that is sent twice with one Idempotency-Key is carried out once."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.app.cli import main
from swingbot.app.remote import connection
from swingbot.core.access.roles import Person, Role
from swingbot.web.access.once import AnswersOnce
from tests.asking import Serve, Site
from tests.fakes.store import MemoryStore
from tests.served import served

TABLE: Final[dict[str, Any]] = {"tree": "fake", "base": "base", "head": "tip"}


def post(site: Site, headers: dict[str, str], key: str, path: str, **sent: Any) -> httpx.Response:
    headers = {**headers, "Idempotency-Key": key}
    return site.web.client.post(path, json=sent, headers=headers)


def value(site: Site, query: str) -> Any:
    site.web.conn.rollback()
    return site.web.conn.execute(sa.text(query)).scalar_one()


def boots(site: Site) -> int:
    return int(value(site, "SELECT sum(boots) FROM comparison"))


def test_the_same_key_gives_the_same_answer_and_adds_boots_once(
    serve: Serve, tmp_path: Path
) -> None:
    site = serve()
    ada, bob = (site.web.token(who, Role.SUBMITTER) for who in ("Ada", "Bob"))
    first = post(site, ada, '"one"', "/compare", **TABLE)
    again = post(site, ada, "one", "/compare", **TABLE)
    assert first.status_code == again.status_code == 201
    assert again.content == first.content and again.json()["new"]
    assert again.headers["location"] == first.headers["location"]
    assert post(site, bob, "one", "/compare", **TABLE).json()["new"] is False, "it is Ada's key"
    more = site.web.token("Ada", Role.MODERATOR)  # may see other things
    assert post(site, more, "one", "/compare", **TABLE).json()["new"] is False
    path, before = f"/comparison/{first.json()['id']}/extend", boots(site)
    longer = [post(site, ada, "two", path, boots=2) for _ in range(3)]
    assert {answer.status_code for answer in longer} == {200}
    assert len({answer.content for answer in longer}) == 1 and boots(site) == before + 2
    other = post(site, ada, "two", path, boots=3)
    assert other.status_code == 422 and "another request of yours" in other.text
    assert post(site, ada, "one", path, boots=2).status_code == 422
    assert boots(site) == before + 2
    assert post(site, ada, "three", path, boots=2).status_code == 200
    assert boots(site) == before + 4
    with served(site.web.settings.db.url, tmp_path / "again", filled=False) as restarted:
        headers = {**ada, "Idempotency-Key": "two"}
        answer = restarted.client.post(path, json={"boots": 2}, headers=headers)
        assert answer.content == longer[0].content and boots(site) == before + 4


@pytest.mark.parametrize("key", ["", '"', '""', "a b", '"a"b', "x" * 101])
def test_a_malformed_key_is_refused(key: str, idle: Site, ada: dict[str, str]) -> None:
    answer = post(idle, ada, key, "/compare", **TABLE)
    assert answer.status_code == 400 and "Idempotency-Key must have" in answer.text
    assert value(idle, "SELECT count(*) FROM kept_answer") == 0


def test_a_refused_request_may_be_sent_again(serve: Serve) -> None:
    site = serve(SWINGBOT_WEB_OPEN_REQUESTS="1")
    ada = site.web.token("Ada", Role.SUBMITTER)
    assert post(site, ada, "a", "/compare", **TABLE | {"tree": "none"}).status_code == 400
    assert post(site, ada, "a", "/compare", **TABLE).status_code == 201
    other = TABLE | {"boots": 2}
    assert post(site, ada, "b", "/compare", **other).status_code == 429
    site.web.conn.execute(sa.text("UPDATE comparison SET status = 'done'"))
    site.web.conn.commit()
    assert post(site, ada, "b", "/compare", **other).status_code == 201


def test_what_was_carried_out_without_a_kept_answer_is_not_done_again(serve: Serve) -> None:
    """As if the service died between its change and its answer."""
    site = serve()
    ada = site.web.token("Ada", Role.SUBMITTER)
    id_ = post(site, ada, "t", "/compare", **TABLE).json()["id"]
    path = f"/comparison/{id_}/extend"
    assert post(site, ada, "x", path, boots=1).status_code == 200
    before = boots(site)
    site.web.conn.execute(sa.text("UPDATE kept_answer SET status = NULL, body = NULL"))
    site.web.conn.commit()
    again = post(site, ada, "x", path, boots=1)
    assert again.status_code == 409 and f"swingbot show {id_}" in again.text
    assert post(site, ada, "x", path, boots=2).status_code == 422
    same = post(site, ada, "t", "/compare", **TABLE)
    assert same.status_code == 200 and same.json()["id"] == id_
    assert boots(site) == before and value(site, "SELECT count(*) FROM comparison") == 1


def test_a_key_is_forgotten_after_a_day(serve: Serve) -> None:
    site = serve()
    ada = site.web.token("Ada", Role.SUBMITTER)
    id_ = post(site, ada, "t", "/compare", **TABLE).json()["id"]
    path = f"/comparison/{id_}/extend"
    post(site, ada, "x", path, boots=1)
    before = boots(site)
    site.web.conn.execute(sa.text("UPDATE kept_answer SET at = now() - interval '25 hours'"))
    site.web.conn.commit()
    assert post(site, ada, "x", path, boots=1).status_code == 200 and boots(site) == before + 1
    assert value(site, "SELECT count(*) FROM kept_answer") == 1


def test_a_key_whose_request_is_in_progress_gets_409() -> None:
    person = Person(who="Ada", role=Role.SUBMITTER, token=1)
    once = AnswersOnce(MemoryStore().transaction)

    async def both() -> list[httpx.Response]:
        begun, end, made = asyncio.Event(), asyncio.Event(), []

        async def make(person: Person) -> Response:
            made.append(person)
            begun.set()
            await end.wait()
            return JSONResponse({"made": len(made)}, 201)

        async def change(request: Request) -> Response:
            return await once.answer(request, person, make)

        app = Starlette(routes=[Route("/", change, methods=["POST"])])
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://lab") as client:
            headers = {"Idempotency-Key": "k"}
            first = asyncio.create_task(client.post("/", headers=headers))
            await begun.wait()
            second = await client.post("/", headers=headers)
            end.set()
            return [await first, second, await client.post("/", headers=headers)]

    first, second, third = asyncio.run(both())
    assert first.status_code == third.status_code == 201 and third.json() == {"made": 1}
    assert second.status_code == 409 and second.headers["retry-after"] == "1"


@contextmanager
def losing(port: int, lost: list[str]) -> Iterator[int]:
    """A proxy that loses the first answer to each request with a key; yields its port."""

    def carry(client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", port)) as service:
            request = client.makefile("rb")
            lines = []
            while (line := request.readline()).strip():
                lines.append(line)
            fields = dict(line.decode().lower().split(":", 1) for line in lines[1:])
            body = request.read(int(fields.get("content-length", "0")))
            service.sendall(b"".join(lines) + b"\r\n" + body)
            answer = service.makefile("rb").read()
            key = fields.get("idempotency-key")
            if key is not None and key not in lost:
                lost.append(key)
            else:
                client.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as door:

        def accept() -> None:
            while True:
                try:
                    client, _ = door.accept()
                except OSError:
                    return
                threading.Thread(target=carry, args=[client]).start()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield door.getsockname()[1]
        finally:
            door.shutdown(socket.SHUT_RDWR)
            thread.join(20)


def test_the_command_line_sends_again_what_got_no_answer_and_it_is_made_once(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_PAUSES", (0.0, 0.0))
    site, lost = serve(), list[str]()
    token = site.web.token("Ada", Role.SUBMITTER)["Authorization"].split()[1]
    with losing(site.web.port, lost) as port:
        env = {
            "SWINGBOT_URL": f"http://127.0.0.1:{port}",
            "SWINGBOT_TOKEN": token,
            "XDG_CONFIG_HOME": str(tmp_path),
        }

        def run(words: str) -> Result:
            return CliRunner().invoke(main, words.split(), env=env)

        asked = run("compare base tip --tree fake --yes")
        assert asked.exit_code == 0 and len(lost) == 1, asked.output
        before = boots(site)
        longer = run("extend c1 --boots 2 --yes")
        assert longer.exit_code == 0 and len(lost) == 2, longer.output
    assert value(site, "SELECT count(*) FROM comparison") == 1
    assert boots(site) == before + 2
