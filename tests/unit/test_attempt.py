from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from swingbot_jobs.contract.orders import check_outcome
from swingbot_worker import InfraError
from swingbot_worker.executor import images
from swingbot_worker.executor.attempt_directory import attempts, open_place, prune, write
from swingbot_worker.executor.client import (
    ExchangeClient,
    RequestRefused,
    ServiceUnavailable,
    patiently,
)
from swingbot_worker.order import BuildOrder, Spec
from swingbot_worker.outcome import died

ORDER = BuildOrder(
    order="o7",
    attempt="a12",
    build_key="0" * 64,
    spec=Spec(repo="r", commit="0" * 40, kconfig="tiny", compiler="gcc", layout=0),
)


def test_an_infra_outcome_fits_the_contract_however_long_its_reason() -> None:
    assert check_outcome(died(ORDER, "x" * 5000, 1.0))["status"] == "infra"


def test_only_one_process_holds_a_place(tmp_path: Path) -> None:
    place = open_place(tmp_path, "a12")
    held = place.try_lock()
    assert held is not None
    assert place.try_lock() is None
    os.close(held)
    again = place.try_lock()
    assert again is not None
    os.close(again)


def test_delivered_attempts_are_forgotten_after_a_day_and_undelivered_ones_after_a_week(
    tmp_path: Path,
) -> None:
    delivered, kept = open_place(tmp_path, "a1"), open_place(tmp_path, "a2")
    write(delivered.delivered, "delivered\n")
    now = kept.root.stat().st_mtime
    assert prune(tmp_path, now + 23 * 3600) == []
    assert prune(tmp_path, now + 25 * 3600) == ["a1"]
    assert prune(tmp_path, now + 8 * 24 * 3600) == ["a2"]
    assert list(attempts(tmp_path).iterdir()) == []


def test_an_attempt_at_work_is_not_forgotten(tmp_path: Path) -> None:
    held = open_place(tmp_path, "a1").try_lock()
    assert held is not None
    assert prune(tmp_path, 2**33) == []
    os.close(held)


def exchange_that(answer: httpx.Response | Exception) -> ExchangeClient:
    """An exchange whose every request is answered in the same way."""

    def handle(request: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    made = ExchangeClient("http://exchange", "a12.token")
    made._http = httpx.Client(base_url="http://exchange", transport=httpx.MockTransport(handle))
    return made


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(507),
        httpx.Response(503, json={"detail": "x"}),
        httpx.Response(429),
        httpx.ConnectError("refused"),
    ],
)
def test_a_service_that_is_away_or_full_is_asked_again(answer: httpx.Response | Exception) -> None:
    with pytest.raises(ServiceUnavailable):
        exchange_that(answer).put_outcome("a12", "{}")


@pytest.mark.parametrize("status", [400, 401, 404, 413])
def test_a_refusal_is_final(status: int) -> None:
    with pytest.raises(RequestRefused, match=f"{status} because"):
        exchange_that(httpx.Response(status, json={"detail": "because"})).put_outcome("a12", "{}")


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (httpx.Response(201), "delivered"),
        (httpx.Response(200), "delivered before"),
        (httpx.Response(202), "delivered late"),
        (
            httpx.Response(409, json={"detail": "upload the files first", "missing": ["x"]}),
            "missing",
        ),
        (httpx.Response(409, json={"detail": "already has a different outcome"}), "superseded"),
    ],
)
def test_answers_to_an_outcome_are_distinguished(answer: httpx.Response, word: str) -> None:
    assert exchange_that(answer).put_outcome("a12", "{}") == word


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (httpx.Response(200, json={"wanted": False}), False),
        (httpx.Response(200, json={"wanted": True}), True),
        (httpx.Response(404), True),
        (httpx.Response(200, text="?"), True),
        (httpx.Response(200, json={"wanted": True, "lease": {"fence": "?"}}), True),
    ],
)
def test_in_doubt_an_attempt_is_wanted(answer: httpx.Response, wanted: bool) -> None:
    assert exchange_that(answer).ask("a12").wanted is wanted


def test_patience_waits_longer_each_time_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    said: list[str] = []
    clock = _clock(pauses)
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setattr("time.sleep", pauses.append)

    def away() -> None:
        raise ServiceUnavailable("no answer")

    with pytest.raises(ServiceUnavailable):
        patiently(away, said.append, 100.0)
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert len(said) == 1


def _clock(pauses: list[float]) -> Iterator[float]:
    while True:
        yield sum(pauses)


def test_an_image_with_other_bytes_than_asked_for_is_never_kept(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="different content"):
        images.fetch(
            tmp_path, "a" * 64, exchange_that(httpx.Response(200, content=b"evil")), print, 1.0
        )
    assert list((tmp_path / "images").iterdir()) == []


def test_images_used_longest_ago_are_forgotten_first_and_the_one_in_use_never(
    tmp_path: Path,
) -> None:
    for age, name in enumerate(["new", "middle", "old"]):
        (tmp_path / name).write_bytes(b"x" * 10)
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    assert images.prune(tmp_path, 20, keep=tmp_path / "old") == []
    assert images.prune(tmp_path, 20, keep=tmp_path / "new") == ["old"]
