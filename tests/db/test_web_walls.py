"""The walls around the web service, by real HTTP: how often, how much, how slowly, and who may
read."""

from __future__ import annotations

import hashlib
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from swingbot.adapters.artifacts import ArtifactDirectory, secret
from swingbot.app import web as app_web
from swingbot.core.access.roles import Role
from swingbot.core.model.dispatch import token
from swingbot.web import limits
from tests.served import Served, served

Serve = Callable[..., Served]


@pytest.fixture
def serve(db_url: str, tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda **environment: stack.enter_context(served(db_url, tmp_path, **environment))


def raw(site: Served, *pieces: bytes) -> bytes:
    """What comes back for these bytes, until the service closes the connection."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as connection:
        for piece in pieces:
            connection.sendall(piece)
        answer = b""
        try:
            while chunk := connection.recv(1 << 16):
                answer += chunk
        except ConnectionResetError:
            pass
        return answer


HEAD = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"


def test_a_client_that_took_its_processor_time_has_to_wait_and_learns_how_long(
    serve: Serve,
) -> None:
    site = serve(SWINGBOT_WEB_RATE="0.06")
    answers = [site.client.get("/robots.txt") for _ in range(30)]
    assert answers[0].status_code == 200
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.headers["x-content-type-options"] == "nosniff"
    assert site.client.get("/healthz").status_code == 200, "a monitor may share the address"


@pytest.mark.parametrize(("proxies", "limited"), [("", True), ("127.0.0.0/8", False)])
def test_a_forwarded_address_counts_only_from_a_proxy_that_settings_name(
    serve: Serve, proxies: str, limited: bool
) -> None:
    site = serve(SWINGBOT_WEB_RATE="0.06", SWINGBOT_WEB_PROXIES=proxies)
    answers = [
        site.client.get("/robots.txt", headers={"x-forwarded-for": f"192.0.2.{n}"}).status_code
        for n in range(30)
    ]
    assert (429 in answers) is limited


def test_a_worker_with_its_token_is_never_asked_to_wait(serve: Serve) -> None:
    site = serve(SWINGBOT_WEB_RATE="0.06")
    attempt = running(site)
    assert {
        site.client.get(f"/attempts/a{attempt}", headers=bearer(site, attempt)).status_code
        for _ in range(30)
    } == {200}


def test_a_body_has_a_size_whether_it_says_so_or_comes_in_pieces(serve: Serve) -> None:
    site = serve()
    assert raw(site, HEAD + b"Content-Length: 99999999999\r\n\r\n").startswith(b"HTTP/1.1 413 ")
    piece = b"4000\r\n" + b"a" * 0x4000 + b"\r\n"
    assert raw(site, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[piece] * 5).startswith(
        b"HTTP/1.1 413 "
    )
    assert raw(
        site, b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    ).startswith(b"HTTP/1.1 413 ")
    assert site.client.get("/healthz").status_code == 200


def test_what_comes_too_slowly_is_not_waited_for(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(limits, "IDLE_SECONDS", 1)
    monkeypatch.setattr(limits, "PIECE_SECONDS", 0.3)
    site = serve()
    assert raw(site, b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ") == b"", (
        "a head that never ends"
    )
    assert raw(site, b"") == b"", "a connection that says nothing"
    assert raw(site, HEAD + b"Content-Length: 20\r\n\r\nkey=").startswith(b"HTTP/1.1 408 ")
    assert (
        raw(site, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT").count(b"HTTP/1.1 ")
        == 1
    ), "the second head on the same connection"


def test_a_head_has_a_size(serve: Serve) -> None:
    assert raw(
        serve(), b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 100_000
    ).startswith(b"HTTP/1.1 400 ")


def test_who_takes_no_answer_is_let_go(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STALL_SECONDS", 0.3)
    site = serve()
    content = b"\0" * (40 << 20)
    store = ArtifactDirectory(site.settings.artifacts)
    sink = store.sink(hashlib.sha256(content).hexdigest())
    sink.write(content)
    sink.commit()
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as connection:
        connection.sendall(
            (
                f"GET /artifacts/{hashlib.sha256(content).hexdigest()} HTTP/1.1\r\nHost: "
                f"localhost\r\n\r\n"
            ).encode()
        )
        assert connection.recv(1, socket.MSG_PEEK) == b"H", "the answer has begun"
        assert site.client.get("/healthz").status_code == 200, "others are answered meanwhile"
        site.client.close()
        end = time.monotonic() + 60
        while site.server.server_state.connections:
            assert time.monotonic() < end, "the connection is kept"
            time.sleep(0.05)


def test_pages_are_open_by_default_and_for_readers_alone_by_setting(serve: Serve) -> None:
    site = serve(SWINGBOT_WEB_READ="token")
    page = site.client.get("/comparisons", headers={"accept": "text/html,*/*;q=0.8"})
    assert (page.status_code, page.headers["location"]) == (303, "/login?next=/comparisons")
    assert site.client.get("/comparisons").status_code == 401, (
        "a program does not get the sign-in page instead"
    )
    asked = site.client.get("/comparisons.json")
    assert (
        asked.status_code == 401
        and asked.headers["www-authenticate"] == "Bearer"
        and "requires a token" in asked.json()["detail"]
    )
    for path in ("/login", "/healthz", "/robots.txt", "/favicon.ico", "/static/style.css"):
        assert site.client.get(path).status_code == 200, path
    reader = site.token("Rea", Role.READER)
    for path in (
        "/",
        "/comparisons",
        "/comparisons.json",
        f"/raw/c{site.lab.comparison}/",
        "/moderation",
    ):
        assert (
            site.client.get(path).status_code != 200
            and site.client.get(path, headers=reader).status_code == 200
        ), path
    assert (
        site.client.get("/", headers={"Authorization": "Bearer swingbot_" + "x" * 43}).status_code
        == 401
    )


def test_raw_data_alone_can_be_kept_for_readers_and_workers(serve: Serve) -> None:
    site = serve(SWINGBOT_WEB_RAW="token")
    assert site.client.get("/comparisons").status_code == 200
    reader, attempt = site.token("Rea", Role.READER), running(site)
    kit = f"/report/r{site.lab.report}/reproduce.json"  # there is none in this lab
    for path in (
        f"/raw/c{site.lab.comparison}/",
        f"/raw/c{site.lab.comparison}/samples.csv",
        kit,
    ):
        assert site.client.get(path, headers={"accept": "application/json"}).status_code == 401, (
            path
        )
        assert site.client.get(path, headers=reader).status_code == (404 if path == kit else 200), (
            path
        )
    missing = f"/artifacts/{'0' * 64}"
    assert [
        site.client.get(missing, headers=headers).status_code
        for headers in ({}, reader, bearer(site, attempt))
    ] == [401, 404, 404]


def test_metrics_are_switched_off_or_kept_by_a_setting(serve: Serve) -> None:
    site = serve(SWINGBOT_WEB_METRICS="token")
    assert site.client.get("/metrics").status_code == 401
    assert (
        site.client.get("/metrics", headers=site.token("prometheus", Role.READER)).status_code
        != 401
    )


def test_the_list_of_what_benchmarks_measure_is_a_page_though_it_has_the_address_of_the_figures(
    serve: Serve,
) -> None:
    page = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    site = serve(SWINGBOT_WEB_METRICS="off")
    assert "page-fault.per_process_ops" in site.client.get("/metrics", headers=page).text


def test_figures_that_are_open_open_no_page(serve: Serve) -> None:
    page = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    site = serve(SWINGBOT_WEB_READ="token", SWINGBOT_WEB_METRICS="open")
    assert "swingbot_orders" in site.client.get("/metrics").text
    assert site.client.get("/metrics", headers=page).status_code == 401


def test_metrics_that_are_off_are_not_there(serve: Serve) -> None:
    answer = serve(SWINGBOT_WEB_METRICS="off").client.get("/metrics")
    assert answer.status_code == 404 and "disabled" in answer.text


def running(site: Served) -> int:
    return int(
        site.conn.execute(
            sa.text("SELECT min(id) FROM attempt WHERE state = 'running'")
        ).scalar_one()
    )


def bearer(site: Served, attempt: int) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(secret(site.settings.secret_file), attempt)}"}


def put(site: Served, attempt: int, content: bytes, *, pieces: bool = False) -> httpx.Response:
    body = iter([content[:5], content[5:]]) if pieces else content
    return site.client.put(
        f"/artifacts/{hashlib.sha256(content).hexdigest()}",
        content=body,
        headers=bearer(site, attempt),
    )


def outcome_of(site: Served, attempt: int, **more: Any) -> dict[str, Any]:
    row = site.conn.execute(
        sa.text(
            "SELECT o.id, o.kind FROM attempt a JOIN orders o ON o.id = a.order_id WHERE a.id = :id"
        ),
        {"id": attempt},
    ).one()
    ended = {"status": "infra", "reason": "x", "seconds": 1.0, "files": {}}
    return {
        "version": 1,
        "kind": row.kind,
        "order": f"o{row.id}",
        "attempt": f"a{attempt}",
        **ended,
        **more,
    }


def tell(site: Served, attempt: int, **more: Any) -> int:
    answer = site.client.put(
        f"/attempts/a{attempt}/outcome.json",
        json=outcome_of(site, attempt, **more),
        headers=bearer(site, attempt),
    )
    return answer.status_code


def test_an_attempts_token_brings_one_result_and_then_nothing(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_web, "UPLOADS", replace(app_web.UPLOADS, files=2, size=1 << 20))
    site = serve()
    attempt = running(site)
    assert put(site, attempt, b"a console log").status_code == 201
    assert put(site, attempt, b"b" * (1 << 20), pieces=True).status_code == 403, (
        "over the cap of bytes, found while it came"
    )
    assert put(site, attempt, b"c" * 1000, pieces=True).status_code == 201
    refused = put(site, attempt, b"one too many")
    assert (
        refused.status_code == 403
        and "2 files, the limit of one attempt" in refused.json()["detail"]
    )
    assert [tell(site, attempt) for _ in range(2)] == [201, 200]
    assert tell(site, attempt, reason="another") == 409
    after = put(site, attempt, b"d")
    assert after.status_code == 403 and "accepts nothing more" in after.json()["detail"]
    assert list((site.settings.artifacts / "incoming").iterdir()) == []


def test_a_superseded_attempt_brings_its_late_result_once_and_it_does_not_count(
    serve: Serve,
) -> None:
    site = serve()
    attempt = running(site)
    site.conn.execute(
        sa.text("UPDATE attempt SET state = 'dead', ended_at = now() WHERE id = :id"),
        {"id": attempt},
    )
    site.conn.commit()
    assert put(site, attempt, b"late log").status_code == 201
    assert tell(site, attempt) == 202
    assert put(site, attempt, b"later log").status_code == 403
    row = site.conn.execute(
        sa.text("SELECT state, outcome, late IS NOT NULL AS kept FROM attempt WHERE id = :id"),
        {"id": attempt},
    ).one()
    assert (row.state, row.outcome, row.kept) == ("dead", None, True)


def test_a_stranger_costs_a_sentence(serve: Serve) -> None:
    site = serve()
    for method, path in (
        ("PUT", f"/artifacts/{'0' * 64}"),
        ("PUT", "/attempts/a1/outcome.json"),
        ("POST", "/moderation/r1"),
        ("POST", "/incident/i1"),
    ):
        answer = site.client.request(
            method, path, content=b"x", headers={"accept": "application/json"}
        )
        assert answer.status_code in (401, 403) and answer.json()["detail"], path
