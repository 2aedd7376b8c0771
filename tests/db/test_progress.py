"""Who waits for a table or bisection gets each change by a stream, or by polling where a proxy
keeps streams back; streams have limits, take no connection to the database, and end with the
service."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import IO, Any, Final

import httpx
import pytest
import sqlalchemy as sa

from swingbot.app.remote import followed_progress
from swingbot.app.remote.connection import Connection
from swingbot.app.remote.followed_progress import FollowedProgress
from swingbot.app.remote.login import Login
from swingbot.core.access.roles import Role
from swingbot.core.model.answer_documents import ProgressOfARequest
from swingbot.core.model.document_version import HEADER, VERSION
from swingbot.web import limits
from swingbot.web.http import event_streams
from tests.fakes.stream_proxy import Fault, stream_proxy
from tests.served import Served, served

PATIENCE: Final = 120.0
ACCEPT: Final = {"Accept": "text/event-stream"}


@pytest.fixture
def web(db_url: str, tmp_path: Path) -> Iterator[Served]:
    with served(db_url, tmp_path) as running:
        yield running


def change(web: Served, assignment: str) -> None:
    web.conn.execute(
        sa.text(f"UPDATE comparison SET {assignment} WHERE id = :id"),
        {"id": web.lab.running_comparison},
    )
    web.conn.commit()


def grow(web: Served) -> None:
    change(web, "boots = boots + 1")


def end(web: Served) -> None:
    change(web, "status = 'done', ended_at = now()")


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def stream(web: Served, more: Mapping[str, str] = ACCEPT) -> Iterator[httpx.Response]:
    address = f"/comparison/c{web.lab.running_comparison}/progress"
    with web.client.stream("GET", address, headers={**ACCEPT, **more}) as answer:
        yield answer


def events(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    id = ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            id = value
        if name == "data":
            yield id, json.loads(value)


def begun(
    stack: ExitStack, web: Served, more: Mapping[str, str] = ACCEPT
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a stream after the first."""
    told = events(stack.enter_context(stream(web, more)).iter_lines())
    next(told)
    return told


def test_a_stream_has_each_state_once_and_ends_with_the_table(web: Served) -> None:
    id = f"c{web.lab.running_comparison}"
    with stream(web) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        told = events(answer.iter_lines())
        first, facts = next(told)
        polled = web.client.get(f"/comparison/{id}/progress.json").json()
        timeless = {"eta_seconds": None}
        assert facts | timeless == polled | timeless
        assert facts["status"] == "running" and not facts["over"]
        grow(web)
        second, grown = next(told)
        assert second != first and grown["words"] != facts["words"]
    grow(web)
    with stream(web, {"Last-Event-ID": second}) as answer:
        told = events(answer.iter_lines())
        third, facts = next(told)
        assert facts["words"] not in (grown["words"], polled["words"]), "what it had missed"
    with stream(web, {"Last-Event-ID": third}) as answer:
        lines = answer.iter_lines()
        assert next(lines) == ":", "nothing new, but a sign of life"
        end(web)
        ((last, over),) = events(lines)
        assert over["over"] and over["status"] == "done"
    with stream(web, {"Last-Event-ID": last}) as answer:
        assert answer.status_code == 204, "a browser comes again after any other answer"


@pytest.mark.parametrize(
    ("address", "status"),
    [("/comparison/c9999", 404), ("/comparison/x", 400), ("/bisection/c1", 400)],
)
def test_what_cannot_be_followed_is_refused_in_a_sentence(
    address: str, status: int, web: Served
) -> None:
    for path in ("progress", "progress.json"):
        answer = web.client.get(f"{address}/{path}", headers=ACCEPT)
        assert answer.status_code == status and answer.json()["detail"]


def test_a_person_has_a_few_streams_and_others_have_theirs(
    web: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = web.token("Ada", Role.READER)
    with ExitStack() as open_streams:
        kept = [begun(open_streams, web, ada) for _ in range(limits.PERSON_STREAMS)]
        with stream(web, ada) as refused:
            assert refused.status_code == 429 and refused.headers["retry-after"] == "60"
            sentence = json.loads(refused.read())["detail"]
        assert sentence.startswith(f"You follow {limits.PERSON_STREAMS} tables and bisections;")
        with ExitStack() as other:
            kept.append(begun(other, web))
            monkeypatch.setattr(limits, "STREAMS", limits.PERSON_STREAMS + 1)
            with stream(web, web.token("Bob", Role.READER)) as refused:
                assert refused.status_code == 429
                assert "7 streams are open" in json.loads(refused.read())["detail"]
    monkeypatch.undo()
    # a closed stream gives its place back
    until(lambda: _status(web, ada) == 200)


def _status(web: Served, headers: Mapping[str, str]) -> int:
    with stream(web, headers) as answer:
        return answer.status_code


def test_streams_hold_no_connection_and_no_thread(
    web: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    read = event_streams.EventStreams._read_on

    async def counted(streams: event_streams.EventStreams) -> None:
        reads.append(streams)
        await read(streams)

    monkeypatch.setattr(event_streams.EventStreams, "_read_on", counted)
    with ExitStack() as open_streams:
        first = begun(open_streams, web)
        threads = threading.active_count()
        more = [begun(open_streams, web) for _ in range(limits.PERSON_STREAMS - 1)]
        assert threading.active_count() <= threads + 1  # a page's may have begun
        assert len(reads) == 1, "one reads for all"
        until(lambda: web.engine.pool.checkedout() <= 1)  # type: ignore[attr-defined]
        grow(web)
        for one in (first, *more):
            next(one)


def test_streams_end_with_the_service(web: Served) -> None:
    with stream(web) as answer:
        told = events(answer.iter_lines())
        next(told)
        web.server.should_exit = True
        assert list(told) == [], "it ends as a body does, and is not cut"


LINE: Final = re.compile(r"\[[^]]+\] (c\d+ \S+ kernels, \S+ boots); .+")  # its time left


def waits(
    web: Served, env: Mapping[str, str], before_the_end: Callable[[], None] = lambda: None
) -> tuple[list[str], str]:
    """Let `swingbot wait` see the table grow and end; return what it says of it, and the table."""
    words = ("-m", "swingbot.app.cli", "wait", f"c{web.lab.running_comparison}")
    given = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
    with subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**given, **env},
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        said = [_line(process.stderr)]
        grow(web)
        said.append(_line(process.stderr))
        before_the_end()
        end(web)
        table, rest = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, rest
    return said, table


def _line(file: IO[str]) -> str:
    line = file.readline()
    match = LINE.fullmatch(line.rstrip())
    assert match, line
    return match[1]


def _restored(web: Served) -> None:
    change(web, "boots = boots - 1, status = 'running', ended_at = NULL")


@pytest.mark.parametrize("fault", ["passes", "buffers", "cuts"])
def test_who_waits_elsewhere_sees_what_the_host_sees(
    fault: Fault, web: Served, tmp_path: Path
) -> None:
    here = {
        "SWINGBOT_DB_URL": web.settings.db.url,
        "SWINGBOT_PATHS_STATE": str(web.settings.state),
        "SWINGBOT_WEB_PORT": str(web.port),
    }
    on_host = waits(web, here)
    _restored(web)
    with stream_proxy(web.port, fault) as proxy:

        def settled() -> None:
            if fault == "passes":
                until(proxy.alive.is_set)
            until(lambda: len(proxy.streams) > (fault == "cuts"))

        env = {"SWINGBOT_URL": proxy.url, "XDG_CONFIG_HOME": str(tmp_path)}
        from_elsewhere = waits(web, env, settled)
        streams, polls = list(proxy.streams), list(proxy.polls)
    assert from_elsewhere == on_host
    if fault == "passes":
        assert sum(polls) <= 1, "one may be under way; then the stream says it all"
    if fault == "cuts":
        assert "last-event-id" not in streams[0].lower() and "last-event-id" in streams[1].lower()
    if fault == "buffers":
        assert len(polls) >= 2, "at first, and for what grew"


def test_a_stream_that_falls_silent_is_left_for_polling(
    web: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_progress, "QUIET_SECONDS", 2.0)
    with stream_proxy(web.port, "stalls") as proxy:
        login = Login(url=proxy.url, token=None)
        address = f"/comparison/c{web.lab.running_comparison}/progress"
        progress = FollowedProgress(Connection(login), address)
        before = progress.now()["words"]
        until(lambda: progress.news(0.1) is None)  # the stream works
        grow(web)
        until(lambda: (progress.news(0.1) or {"words": before})["words"] != before)
        assert not any(proxy.polls[:1]) and any(proxy.polls)


@pytest.mark.parametrize("id", ["a\rX-Odd: 1", "\u2028", "x" * 60_000])
def test_no_id_of_a_stream_breaks_the_head_of_the_next_request(id: str, web: Served) -> None:
    document = json.dumps(
        web.client.get(f"/comparison/c{web.lab.running_comparison}/progress.json").json()
    )

    class Stranger(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            head += f"{HEADER}: {VERSION}\r\n\r\n"
            fields = "".join(f"n{n}: x\n" for n in range(10))
            self.request.sendall(f"{head}{fields}id: {id}\ndata: {document}\n\n".encode())

    with ThreadingTCPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            service = Connection(
                Login(url=f"http://127.0.0.1:{server.server_address[1]}", token=None)
            )
            found = list(service.events(ProgressOfARequest, "/x", "", 60.0))
        finally:
            server.shutdown()
    assert found[-1] == ("", json.loads(document)) and not any(found[:-1])
