from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.core.access.uploads import UploadLimits
from swingbot.core.model.dispatch import DatabaseAway, attempt_of_token, token
from swingbot.service.order.worker_requests import WorkerRequests
from swingbot.web import limits
from swingbot.web.workers import exchange
from tests.contract.store.world import a_tree, a_variant
from tests.fakes.store import MemoryStore, MemoryTransaction
from tests.fakes.store.tables import Tables

SECRET = b"s" * 32
LOG = b"console\n"


class Attempts(WorkerRequests):
    """Attempt 12 runs, 13 was declared dead."""

    @property
    def db(self) -> Tables:
        with self.begin("test") as tx:
            assert isinstance(tx, MemoryTransaction)
            return tx.attempts.db

    @property
    def taken(self) -> dict[int, Mapping[str, Any]]:
        return {row.id: row.outcome for row in self.db.attempts.values() if row.outcome}


@pytest.fixture
def attempts() -> Attempts:
    memory = MemoryStore()
    with memory.transaction() as tx:
        for number in (7, 8):  # of orders
            memory.db.last_id["orders"] = number - 1
            order = tx.orders.ensure_build(a_variant(tx, a_tree(tx, f"t{number}"), number), 0)
            memory.db.last_id["attempt"] = number + 4
            tx.attempts.add(order.id, 1)
        tx.attempts.declare_dead(13, "its worker is gone")
    return Attempts(memory.transaction)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactDirectory:
    return ArtifactDirectory(tmp_path / "artifacts", limit=1000)


CAP = UploadLimits(files=3, size=1500)


@pytest.fixture
def client(store: ArtifactDirectory, attempts: Attempts) -> TestClient:
    return TestClient(Starlette(routes=list(exchange.routes(store, attempts, SECRET, CAP))))


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def bearer(attempt: int = 12) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(SECRET, attempt)}"}


def outcome(attempt: int = 12, **more: Any) -> dict[str, Any]:
    document = {
        "version": 1,
        "kind": "build",
        "order": f"o{attempt - 5}",
        "attempt": f"a{attempt}",
        "status": "failed",
        "reason": "error: x",
        "seconds": 2.5,
    }
    return document | {"files": {"build.log": {"sha256": sha(LOG), "size": len(LOG)}}} | more


def put_log(client: TestClient) -> None:
    assert client.put(f"/artifacts/{sha(LOG)}", content=LOG, headers=bearer()).status_code == 201


def test_a_file_comes_in_with_a_token_and_goes_out_to_everyone(client: TestClient) -> None:
    put_log(client)
    assert client.put(f"/artifacts/{sha(LOG)}", content=LOG, headers=bearer()).status_code == 200
    answer = client.get(f"/artifacts/{sha(LOG)}")
    assert answer.content == LOG
    assert client.head(f"/artifacts/{sha(LOG)}").status_code == 200
    assert client.head(f"/artifacts/{sha(b'other')}").status_code == 404


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer a12.00",
        "Basic " + token(SECRET, 12),
        "Bearer " + token(b"other secret", 12),
        "Bearer " + token(SECRET, 99),
    ],
)
def test_without_the_token_of_an_attempt_nothing_comes_in(
    client: TestClient, store: ArtifactDirectory, authorization: str
) -> None:
    assert (
        client.put(
            f"/artifacts/{sha(LOG)}", content=LOG, headers={"Authorization": authorization}
        ).status_code
        == 401
    )
    assert not store.has(sha(LOG))


def test_a_token_is_good_for_its_own_attempt_only(client: TestClient, attempts: Attempts) -> None:
    put_log(client)
    assert (
        client.put("/attempts/a12/outcome.json", json=outcome(), headers=bearer(13)).status_code
        == 401
    )
    assert client.get("/attempts/a12", headers=bearer(13)).status_code == 401
    assert attempts.taken == {}


def test_a_token_is_recognised_and_a_forged_one_is_not() -> None:
    assert attempt_of_token(SECRET, token(SECRET, 12)) == 12
    assert attempt_of_token(SECRET, token(SECRET, 12).replace("a12", "a13")) is None
    assert attempt_of_token(SECRET, token(SECRET, 12) + "0") is None


def test_wrong_bytes_too_many_bytes_and_wrong_names_are_refused(
    client: TestClient, store: ArtifactDirectory
) -> None:
    assert (
        client.put(f"/artifacts/{sha(LOG)}", content=b"other", headers=bearer()).status_code == 400
    )
    assert (
        client.put(
            f"/artifacts/{sha(b'x' * 1200)}", content=b"x" * 1200, headers=bearer()
        ).status_code
        == 413
    )
    assert client.put("/artifacts/zz", content=b"x", headers=bearer()).status_code == 400
    assert client.get("/artifacts/zz").status_code == 400
    assert not store.has(sha(LOG))


@pytest.mark.parametrize(
    ("name", "shown", "kind"),
    [
        ("console.log", 'inline; filename="console.log"', "text/plain; charset=utf-8"),
        ("results.tar", 'attachment; filename="results.tar"', "application/octet-stream"),
        ("x.html", 'attachment; filename="x.html"', "application/octet-stream"),
        ('a"b.log', f'attachment; filename="{sha(LOG)}"', "application/octet-stream"),
    ],
)
def test_a_browser_never_runs_what_a_kernel_printed(
    client: TestClient, name: str, shown: str, kind: str
) -> None:
    put_log(client)
    answer = client.get(f"/artifacts/{sha(LOG)}", params={"name": name})
    assert answer.headers["content-disposition"] == shown
    assert answer.headers["content-type"] == kind
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]


def test_an_outcome_is_taken_once_and_the_first_one_stands(
    client: TestClient, attempts: Attempts
) -> None:
    put_log(client)
    assert (
        client.put("/attempts/a12/outcome.json", json=outcome(), headers=bearer()).status_code
        == 201
    )
    assert (
        client.put("/attempts/a12/outcome.json", json=outcome(), headers=bearer()).status_code
        == 200
    )
    assert (
        client.put(
            "/attempts/a12/outcome.json", json=outcome(seconds=3), headers=bearer()
        ).status_code
        == 409
    )
    assert attempts.taken[12] == outcome()


def test_what_comes_after_an_attempt_was_given_up_is_kept_as_late(client: TestClient) -> None:
    put_log(client)
    assert (
        client.put("/attempts/a13/outcome.json", json=outcome(13), headers=bearer(13)).status_code
        == 202
    )


def test_the_files_come_first(client: TestClient, attempts: Attempts) -> None:
    answer = client.put("/attempts/a12/outcome.json", json=outcome(), headers=bearer())
    assert answer.status_code == 409
    assert answer.json()["missing"] == ["build.log"]
    assert attempts.taken == {}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]",
        b"\xff\xfe",
        b"[" * 100_000,
        json.dumps(outcome(status="up")).encode(),
        json.dumps(outcome(reason="x\0y")).encode(),
        json.dumps(outcome(reason="\ud800")).encode(),
        json.dumps(outcome(seconds=float("nan"))).encode(),
        json.dumps(outcome()).replace("2.5", "1e999").encode(),
    ],
)
def test_rubbish_is_refused_with_a_reason(
    client: TestClient, attempts: Attempts, body: bytes
) -> None:
    put_log(client)
    answer = client.put("/attempts/a12/outcome.json", content=body, headers=bearer())
    assert answer.status_code == 400
    assert answer.json()["detail"]
    assert attempts.taken == {}


def test_an_outcome_has_a_size_limit(client: TestClient) -> None:
    assert (
        client.put(
            "/attempts/a12/outcome.json",
            content=b" " * (limits.OUTCOME_BYTES + 1),
            headers=bearer(),
        ).status_code
        == 413
    )


def test_an_executor_can_ask_whether_it_is_still_wanted(client: TestClient) -> None:
    assert client.get("/attempts/a12", headers=bearer()).json() == {
        "attempt": "a12",
        "wanted": True,
    }
    assert client.get("/attempts/a13", headers=bearer(13)).json()["wanted"] is False


def test_a_database_that_is_away_is_answered_with_503(
    store: ArtifactDirectory,
) -> None:
    def away(name: str) -> MemoryTransaction:
        raise DatabaseAway("it does not answer")

    requests = WorkerRequests(away)  # type: ignore[arg-type]  # it returns nothing
    client = TestClient(Starlette(routes=list(exchange.routes(store, requests, SECRET, CAP))))
    answer = client.put(f"/artifacts/{sha(LOG)}", content=LOG, headers=bearer())
    assert (answer.status_code, answer.json()["detail"]) == (503, "it does not answer")


def test_a_full_disk_is_answered_with_507(
    client: TestClient, store: ArtifactDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    from swingbot.core.model.artifact import NoSpace

    def full(sha256: str) -> None:
        raise NoSpace("the disk is full")

    monkeypatch.setattr(store, "sink", full)
    answer = client.put(f"/artifacts/{sha(LOG)}", content=io.BytesIO(LOG).read(), headers=bearer())
    assert (answer.status_code, answer.json()["detail"]) == (507, "the disk is full")


def put(client: TestClient, content: bytes, *, pieces: bool = False) -> Any:
    return client.put(
        f"/artifacts/{sha(content)}",
        content=iter([content]) if pieces else content,
        headers=bearer(),
    )


def test_after_its_result_a_token_writes_nothing_more(
    client: TestClient, store: ArtifactDirectory
) -> None:
    put_log(client)
    assert (
        client.put("/attempts/a12/outcome.json", json=outcome(), headers=bearer()).status_code
        == 201
    )
    for content in (b"one more", LOG):
        answer = put(client, content)
        assert answer.status_code == 403 and "accepts nothing more" in answer.json()["detail"]
    assert not store.has(sha(b"one more"))


@pytest.mark.parametrize("pieces", [False, True])
def test_the_files_of_an_attempt_have_a_cap_of_bytes_together(
    client: TestClient, store: ArtifactDirectory, attempts: Attempts, pieces: bool
) -> None:
    assert put(client, b"a" * 900, pieces=pieces).status_code == 201
    answer = put(client, b"b" * 900, pieces=pieces)
    assert answer.status_code == 403 and "MiB, the limit of one attempt" in answer.json()["detail"]
    assert put(client, b"c" * 600, pieces=pieces).status_code == 201
    assert sum(attempts.db.uploads.values()) == 1500 and not store.has(sha(b"b" * 900))


def test_an_attempt_has_a_cap_of_files_and_the_same_file_counts_once(client: TestClient) -> None:
    for content in (b"1", b"2", b"2", b"3"):
        assert put(client, content).status_code < 300
    answer = put(client, b"4")
    assert (
        answer.status_code == 403 and "files, the limit of one attempt" in answer.json()["detail"]
    )


def test_what_is_too_large_is_refused_before_its_bytes_come(client: TestClient) -> None:
    answer = client.put(
        f"/artifacts/{sha(b'x')}", content=b"x", headers=bearer() | {"content-length": "5000000000"}
    )
    assert answer.status_code == 403


def test_files_on_their_way_at_once_are_few(store: ArtifactDirectory, attempts: Attempts) -> None:
    found = exchange.Exchange(
        store, attempts, SECRET, UploadLimits(open_files=3, open_files_each=2)
    )
    with found._opened(12), found._opened(12):
        with pytest.raises(exchange.NotTaken) as refused, found._opened(12):
            pass
        assert refused.value.status == 429
        with found._opened(13), pytest.raises(exchange.NotTaken) as refused, found._opened(14):
            pass
        assert refused.value.status == 503
    assert not found._open
