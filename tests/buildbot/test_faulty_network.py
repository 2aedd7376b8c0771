"""Results arrive once and whole although the network between worker and service misbehaves."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from swingbot.adapters import artifacts
from swingbot.core.model.dispatch import token
from swingbot_worker.executor.client import ExchangeClient, patiently
from tests.buildbot.faulty_proxy import Fault, faulty_proxy
from tests.buildbot.lab import Lab
from tests.buildbot.rows import add_build_order, attempt_row

FAULTS: tuple[Fault, ...] = ("refuse", "cut", "lose", "delay", "twice")


def outcome_of(lab: Lab, attempt: int, file: Path) -> tuple[str, str]:
    """The outcome with one file, and the file's sha256."""
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    document = {
        "version": 1,
        "kind": "build",
        "order": f"o{attempt_row(lab, attempt).order_id}",
        "attempt": f"a{attempt}",
        "status": "failed",
        "reason": "it does not compile",
        "seconds": 1.5,
        "files": {"build.log": {"sha256": sha256, "size": file.stat().st_size}},
    }
    return json.dumps(document), sha256


def deliver(client: ExchangeClient, attempt: int, file: Path, sha256: str, text: str) -> str:
    client.put_file(file, sha256)
    return client.put_outcome(f"a{attempt}", text)


def test_each_fault_at_each_request_costs_a_retry_and_nothing_else(
    lab: Lab, tmp_path: Path
) -> None:
    secret = artifacts.secret(lab.settings.secret_file)
    with lab.exchange():
        number = 0
        for fault in FAULTS:
            for before in range(3):  # HEAD and PUT of the file, PUT of the outcome
                number += 1
                file = tmp_path / f"log{number}"
                file.write_bytes(os.urandom(300_000))
                attempt = add_build_order(lab, f"{number:064x}", f"{number:040x}")
                text, sha256 = outcome_of(lab, attempt, file)
                faults: list[Fault] = ["pass" for _ in range(before)]
                faults.append(fault)
                with faulty_proxy(lab.settings.web.port, faults) as proxy:
                    client = ExchangeClient(proxy.url, token(secret, attempt))
                    answer = patiently(
                        lambda: deliver(client, attempt, file, sha256, text),  # noqa: B023
                        print,
                        120.0,
                    )
                assert fault in proxy.seen
                assert answer in ("delivered", "delivered before"), (fault, before)
                row = attempt_row(lab, attempt)
                assert (row.state, row.outcome, row.late) == ("ended", json.loads(text), None)
                with artifacts.ArtifactDirectory(lab.settings.artifacts).open(sha256) as stored:
                    assert stored.read() == file.read_bytes()


@pytest.mark.parametrize("fault", ["cut", "lose"])
def test_an_image_whose_response_is_lost_is_fetched_again(
    fault: Fault, lab: Lab, tmp_path: Path
) -> None:
    content = os.urandom(200_000)
    sha256 = hashlib.sha256(content).hexdigest()
    store = artifacts.ArtifactDirectory(lab.settings.artifacts)
    sink = store.sink(sha256)
    sink.write(content)
    sink.commit()
    attempt = add_build_order(lab)
    with lab.exchange(), faulty_proxy(lab.settings.web.port, [fault]) as proxy:
        client = ExchangeClient(
            proxy.url, token(artifacts.secret(lab.settings.secret_file), attempt)
        )
        patiently(lambda: client.get_file(sha256, tmp_path / "image"), print, 120.0)
    assert proxy.seen == [fault, "pass"]
    assert (tmp_path / "image").read_bytes() == content
