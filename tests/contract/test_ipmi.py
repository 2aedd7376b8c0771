"""Orders back to back over Serial-over-LAN: ipmitool and the BMC of Debian's openipmi are real.

The machine behind the BMC is only played (tests/fakes/played_testbox.py). BMCs of real machines may
answer in other words.
"""

from __future__ import annotations

import contextlib
import pty
import select
import shlex
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from swingbot_worker.testbox.ssh import bmc
from tests.contract.played import OUT, Testbox, hasten
from tests.lab.debs import debian_program

_LAN = """name "bmc"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  sol "tcp:127.0.0.1:{serial}" 115200
  chassis_control "{folder}/chassis"
  user 1 true "" "test" user 10 none md2 md5 straight
  user 2 true "swingbot" "secret" admin 10 none md2 md5 straight
"""
# It is asked `get power`; the machine is on.
_CHASSIS = """#!/bin/sh
echo power:1
"""
_MC = """mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
mc_add_fru_data 0x20 0 512 data {fru}
mc_enable 0x20
"""


def fru(board: str) -> str:
    """Return the data of a device with a board of that serial number, as `ipmi_sim` reads it.

    Format: IPMI Platform Management FRU Information Storage Definition 1.0, 8 and 11.
    """
    fields = b"".join(
        bytes([0xC0 | len(text)]) + text.encode() for text in ("Acme", "X11DPi", board, "PN-1", "")
    )
    body = bytes([0, 0, 0, 0]) + fields + b"\xc1"
    blocks = -(-(len(body) + 3) // 8)
    area = _summed((bytes([1, blocks]) + body).ljust(8 * blocks - 1, b"\0"))
    return " ".join(f"{byte:#x}" for byte in _summed(bytes([1, 0, 0, 1, 0, 0, 0])) + area)


def _summed(data: bytes) -> bytes:
    """Return `data` with the byte that makes its sum 0."""
    return data + bytes([-sum(data) & 0xFF])


@dataclass(frozen=True)
class Bmc:
    """A BMC and the words that reach it."""

    words: list[str]
    port: int

    def ipmitool(self, *words: str) -> list[str]:
        return [*self.words, *words]

    @property
    def console(self) -> list[str]:
        return [
            "script",
            "-q",
            "-f",
            "-c",
            shlex.join(self.ipmitool("sol", "activate")),
            "/dev/null",
        ]

    def says(self, *words: str) -> str:
        done = subprocess.run(
            self.ipmitool(*words), capture_output=True, text=True, timeout=30, check=False
        )
        return done.stdout + done.stderr


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def serial_line(output: Path) -> Iterator[int]:
    """Serve what is appended to `output` from now on, as QEMU serves a serial port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                with contextlib.suppress(OSError):
                    link, _ = server.accept()
                    with link, output.open("rb") as file:
                        file.seek(0, 2)
                        while not over.is_set():
                            link.sendall(file.read(4096))
                            time.sleep(0.02)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            over.set()
            thread.join()


@contextlib.contextmanager
def simulated(folder: Path, serial: int, board: str = "ZM19AS001") -> Iterator[Bmc]:
    ipmitool = debian_program("ipmitool")
    folder.mkdir()
    port = free_port(socket.SOCK_DGRAM)
    (folder / "lan").write_text(_LAN.format(port=port, serial=serial, folder=folder))
    (folder / "chassis").write_text(_CHASSIS)
    (folder / "chassis").chmod(0o755)
    (folder / "mc").write_text(_MC.format(fru=fru(board)))
    (folder / "password").write_text("secret")
    (folder / "state").mkdir()
    argv = [*debian_program("ipmi_sim"), "-n", "-p", "-c", "lan", "-f", "mc", "-s", "state"]
    # -C 3: this BMC does not say which cipher suites it has
    reach = ["-I", "lanplus", "-C", "3", "-H", "127.0.0.1", "-p", str(port), "-U", "swingbot"]
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen(argv, cwd=folder, stdout=log, stderr=log)
    try:
        made = Bmc([*ipmitool, *reach, "-f", str(folder / "password")], port)
        give_up = time.monotonic() + 30
        while "Chassis Power is" not in made.says(
            "-N", "1", "-R", "2", "chassis", "power", "status"
        ):
            assert time.monotonic() < give_up, (folder / "log").read_text()
        yield made
    finally:
        child.kill()
        child.wait()


@pytest.fixture
def rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Creates a testbox behind a BMC with the given keys of `console`."""
    hasten(monkeypatch, tmp_path / "box", quiet_seconds=8.0)
    monkeypatch.setattr(bmc, "RETRY_SECONDS", 1.0)
    with contextlib.ExitStack() as stack:

        def make(*, ends: bool) -> tuple[Testbox, Bmc]:
            testbox = Testbox(tmp_path / "box", "up", return_seconds=30)
            output = testbox.world.folder / "console"
            output.touch()
            made = stack.enter_context(
                simulated(tmp_path / "bmc", stack.enter_context(serial_line(output)))
            )
            console: dict[str, Any] = {"command": made.console}
            if ends:
                console["end"] = made.ipmitool("sol", "deactivate")
            testbox.describe(console=console)
            return testbox, made

        yield make


def left_by_a_killed_reader(reached: Bmc) -> None:
    """Activate a session, and kill its reader as a controller that dies does.

    ipmitool gets a terminal without `script`: it would outlive script where SIGHUP is ignored, and
    end its session.
    """
    ours, terminal = pty.openpty()
    argv = reached.ipmitool("sol", "activate")
    with (
        open(ours, "rb", buffering=0) as said,
        open(terminal, "rb", buffering=0) as tty,
        subprocess.Popen(argv, stdin=tty, stdout=tty) as reader,
    ):
        assert select.select([said], [], [], 30)[0]
        assert b"operational" in said.readline()
        reader.kill()


def test_orders_follow_each_other_over_one_session(rack: Any) -> None:
    testbox, reached = rack(ends=True)
    left_by_a_killed_reader(reached)
    for _ in range(3):
        outcome = testbox.boot()
        assert (outcome["status"], outcome["reason"]) == ("up", None), testbox.log
        assert testbox.phases == OUT
    assert "already de-activated" in reached.says("sol", "deactivate")


def test_a_session_that_nobody_ends_is_a_sentence_and_no_failure_of_the_testbox(
    rack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbox, reached = rack(ends=False)
    monkeypatch.setattr(bmc, "BUSY_SECONDS", 3.0)
    left_by_a_killed_reader(reached)
    outcome = testbox.boot()
    assert (outcome["status"], outcome.get("fault")) == ("infra", "limit"), outcome
    assert "held by another session" in outcome["reason"]
    assert "set ssh.console.end to a command that ends it" in outcome["reason"]
    assert testbox.phases == []


def test_the_bmc_s_firmware_and_boards_are_facts_of_each_boot(rack: Any, tmp_path: Path) -> None:
    testbox, reached = rack(ends=True)
    testbox.describe(inventory=inventory_of(reached))
    outcome = testbox.boot()
    assert outcome["status"] == "up", outcome
    found = bmc_facts(outcome)
    assert found["bmc.firmware_revision"] == "9.08"
    assert (found["bmc.fru0_board_mfg"], found["bmc.fru0_board_part_number"]) == ("Acme", "PN-1")
    assert "ZM19AS001" not in str(found) and not [name for name in found if "date" in name]
    with simulated(tmp_path / "other", 1, board="ZM19AS002") as other:
        testbox.describe(inventory=inventory_of(other))
        changed = bmc_facts(testbox.boot())
    assert [name for name in found if found[name] != changed[name]] == ["bmc.fru0_board_serial"]


def test_a_bmc_that_refuses_costs_the_facts_and_not_the_boot(rack: Any) -> None:
    testbox, reached = rack(ends=True)
    wrong = testbox.folder / "wrong"
    wrong.write_text("wrong")
    testbox.describe(inventory=[*reached.words[:-1], str(wrong), "mc", "info"])
    outcome = testbox.boot()
    assert (outcome["status"], bmc_facts(outcome)) == ("up", {})
    assert "of ssh.inventory failed with status 1: Error: Unable to establish" in testbox.log


def inventory_of(reached: Bmc) -> list[str]:
    ask = shlex.join(reached.words)
    return ["sh", "-c", f"{ask} mc info && {ask} fru print"]


def bmc_facts(outcome: dict[str, Any]) -> dict[str, str]:
    return {name: said for name, said in outcome["facts"].items() if name.startswith("bmc.")}
