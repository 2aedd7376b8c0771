"""Results over the network: the guest's own script behind busybox's nc, and the controller that
fetches them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from swingbot_worker import InfraError
from swingbot_worker.testbox.ssh import guest
from swingbot_worker.testbox.ssh.fetch import NotServing, fetch
from swingbot_worker.testbox.ssh.process import beside
from tests.lab.machine import free_port

CONTENT = bytes(range(256)) * 900


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Where a guest that has done its job serves CONTENT."""
    found = free_port()
    for entry in guest.entries("o1-a1-77", "secret", "network", None, found):
        path = tmp_path / entry.path
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            entry.content.decode()
            .replace("/ssh/", f"{tmp_path}/ssh/")
            .replace("/out/", f"{tmp_path}/out/")
            .replace("#!/bin/busybox", "#!/usr/bin/busybox")
        )
        path.chmod(0o755)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.tar").write_bytes(CONTENT)
    with beside(
        ["busybox", "nc", "-ll", "-p", str(found), "-e", str(tmp_path / "ssh" / "serve")],
        tmp_path / "log",
    ):
        give_up = time.monotonic() + 30
        while time.monotonic() < give_up:
            try:
                socket.create_connection(("127.0.0.1", found), timeout=5).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        yield found


def test_results_come_to_whoever_knows_the_secret_and_the_guest_is_notified(
    port: int, tmp_path: Path
) -> None:
    fetch("127.0.0.1", port, "o1-a1-77", "secret", tmp_path / "results")
    assert (tmp_path / "results").read_bytes() == CONTENT
    give_up = time.monotonic() + 30
    while not (tmp_path / "out" / "taken").exists() and time.monotonic() < give_up:
        time.sleep(0.05)
    assert (tmp_path / "out" / "taken").exists()


def test_a_wrong_secret_gets_nothing(port: int, tmp_path: Path) -> None:
    with pytest.raises(NotServing):
        fetch("127.0.0.1", port, "o1-a1-77", "guess", tmp_path / "results")
    assert not (tmp_path / "results").exists()
    assert not (tmp_path / "out" / "taken").exists()


def test_another_order_s_results_are_not_taken(port: int, tmp_path: Path) -> None:
    with pytest.raises(NotServing):
        fetch("127.0.0.1", port, "o2-a9-11", "secret", tmp_path / "results")
    assert not (tmp_path / "results").exists()


def answering(said: bytes) -> int:
    """The port of a server that says this once and hangs up."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        link, _ = server.accept()
        with link:
            link.recv(100)
            link.sendall(said)
        server.close()

    threading.Thread(target=serve, daemon=True).start()
    return int(server.getsockname()[1])


def test_an_ssh_server_in_its_place_is_the_idle_system(tmp_path: Path) -> None:
    with pytest.raises(NotServing) as raised:
        fetch("127.0.0.1", answering(b"SSH-2.0-OpenSSH_9.2p1\r\n"), "t", "s", tmp_path / "results")
    assert raised.value.idle


@pytest.mark.parametrize(
    "said", [b"", b"swingbot t\n", b"swingbot t -1\n", b"\xff" * 1000, b"swingbot t 9999\nshort"]
)
def test_nonsense_is_not_yet(said: bytes, tmp_path: Path) -> None:
    with pytest.raises(NotServing):
        fetch("127.0.0.1", answering(said), "t", "s", tmp_path / "results")


def test_more_than_the_cap_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="the limit is 256 MiB"):
        fetch("127.0.0.1", answering(b"swingbot t 999999999999\n"), "t", "s", tmp_path / "results")
