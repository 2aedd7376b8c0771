"""Heartbeats: who hangs, whatever the date does, and what systemd's watchdog gets."""

from __future__ import annotations

import dataclasses
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from swingbot.adapters import part_heartbeat, progress
from swingbot.adapters import process as commands
from swingbot.adapters.part_heartbeat import PartHeartbeat, beating, beats
from swingbot.app.settings import SettingsError, load
from swingbot.core.keep.health import PartBeat, hung
from swingbot.service.checkpoint import checkpoint
from swingbot_db.probe import NoAnswer, ask
from swingbot_jobs.contract.heartbeat import Beat, decode, encode
from swingbot_worker.heartbeat import WorkerHeartbeat
from tests.buildbot.ports import free_ports


def silent(part: str, reporter: str | None = None, age: float = 60.0) -> PartBeat:
    return PartBeat(part=part, age_seconds=age, reporter=reporter)


def test_the_longest_silence_comes_first_and_a_fresh_part_does_not_hang() -> None:
    all_ = [silent("web", age=31), silent("loop", age=80), silent("smtpd", age=2)]
    assert [beat.part for beat in hung(all_, 30)] == ["loop", "web"]


def test_a_silent_reporter_does_not_accuse_those_it_reports_on() -> None:
    both = [silent("up"), silent("postgres", reporter="up")]
    assert [beat.part for beat in hung(both, 30)] == ["up"]
    fresh = [silent("up", age=0), silent("postgres", reporter="up")]
    assert [beat.part for beat in hung(fresh, 30)] == ["postgres"]


def test_a_heartbeat_has_one_length_and_reads_back() -> None:
    long = Beat(monotonic=9e9, pid=4194304, boot_id="x" * 36, reporter="buildbot-master")
    short = Beat(monotonic=0.0, pid=1, boot_id="-")
    busy = Beat(monotonic=9.0, pid=1, boot_id="-", began=2.5, step="judge comparisons")
    assert decode(encode(busy)) == busy
    assert decode(encode(long)) == long
    assert decode(encode(short)) == short
    assert len(encode(long)) == len(encode(short))
    for content in (b"", b"1 2 3", b"x 1 - -", b"\xff\xff\xff\xff"):
        with pytest.raises(ValueError, match=r".*"):
            decode(content)


def test_a_part_and_a_worker_write_the_same(tmp_path: Path) -> None:
    PartHeartbeat(tmp_path, "web").beat()
    worker = tmp_path / "workers" / "builder"
    worker.mkdir(parents=True)
    WorkerHeartbeat(worker).beat()
    found = beats(tmp_path)
    assert [beat.part for beat in found] == ["web", "worker-builder"]
    assert all(beat.age_seconds < 30 and beat.pid == os.getpid() for beat in found)
    WorkerHeartbeat(worker).end()
    part_heartbeat.drop(tmp_path, "web")
    assert beats(tmp_path) == []


def test_the_date_of_the_host_does_not_matter(tmp_path: Path) -> None:
    PartHeartbeat(tmp_path, "web").beat()
    file = tmp_path / "heartbeats" / "web"
    for year in (-365 * 86400, 365 * 86400):
        os.utime(file, (time.time() + year,) * 2)
        assert beats(tmp_path)[0].age_seconds < 30


def test_after_a_reboot_a_heartbeat_is_old_and_its_process_is_another(tmp_path: Path) -> None:
    PartHeartbeat(tmp_path, "web").beat()
    file = tmp_path / "heartbeats" / "web"
    before = decode(file.read_bytes())
    file.write_bytes(encode(dataclasses.replace(before, boot_id="another", monotonic=9e9)))
    os.utime(file, (time.time() - 1000,) * 2)
    (beat,) = beats(tmp_path)
    assert beat.age_seconds > 900
    assert beat.pid is None


def test_hostile_files_are_not_heartbeats(tmp_path: Path) -> None:
    place = tmp_path / "heartbeats"
    (place / "directory").mkdir(parents=True)
    (place / "binary").write_bytes(os.urandom(100))
    (place / "huge").write_bytes(b"1 " * 1_000_000)
    (place / "loop").symlink_to(place / "loop")
    assert beats(tmp_path) == []


def test_a_removed_file_is_written_again(tmp_path: Path) -> None:
    heart = PartHeartbeat(tmp_path, "web")
    heart.beat()
    part_heartbeat.forget(tmp_path)
    heart.beat()
    assert [beat.part for beat in beats(tmp_path)] == ["web"]
    heart.end()
    assert beats(tmp_path) == []


def test_a_part_works_although_its_state_directory_cannot_be_written(tmp_path: Path) -> None:
    PartHeartbeat(tmp_path / "none" / "here", "web").beat()


def test_the_loop_has_no_heartbeat_while_it_is_stalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_heartbeat, "BEAT_SECONDS", 0.1)
    stalled = threading.Event()
    with beating(PartHeartbeat(tmp_path, "loop"), stalled.is_set):
        first = _written(tmp_path, 0.0)
        second = _written(tmp_path, first)
        stalled.set()
        time.sleep(0.3)  # three beats
        last = _monotonic(tmp_path)
        time.sleep(0.3)  # three beats
        assert second <= _monotonic(tmp_path) == last
    assert beats(tmp_path) == [], "it ended in order"


def _monotonic(state: Path) -> float:
    try:
        return decode((state / "heartbeats" / "loop").read_bytes()).monotonic
    except (OSError, ValueError):
        return 0.0


def _written(state: Path, after: float) -> float:
    end = time.monotonic() + 60
    while _monotonic(state) <= after:
        assert time.monotonic() < end
        time.sleep(0.05)
    return _monotonic(state)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """The clock of `progress`, and the checkpoints of this process observed as in the loop."""
    from swingbot.service import checkpoint as module

    found = Clock()
    monkeypatch.setattr(progress, "_now", found)
    module.on_checkpoint(progress.committed)
    progress.committed()
    yield found
    module._observers.remove(progress.committed)
    monkeypatch.undo()
    progress.committed()


SIGNS: dict[str, Callable[[], object]] = {
    "a checkpoint": lambda: checkpoint("x"),
    "the end of a child process": lambda: commands.run(["true"], timeout=60),
    "the end of a statement": progress.statement_over,
    "a chunk of a file": progress.made,
}


@pytest.mark.parametrize("sign", SIGNS)
def test_a_sign_of_work_is_no_stall(sign: str, clock: Clock) -> None:
    clock.now += 25.1
    assert progress.stalled(25)
    SIGNS[sign]()
    clock.now += 24.9
    assert not progress.stalled(25)
    clock.now += 0.2
    assert progress.stalled(25)


def test_waiting_for_a_child_or_a_statement_is_no_stall_within_its_limit(clock: Clock) -> None:
    with progress.waiting(600):
        with progress.waiting(60):
            clock.now += 59
        clock.now += 500
        assert not progress.stalled(25)
        clock.now += 100
        assert progress.stalled(25), "its limit has passed"
    assert not progress.stalled(25)
    progress.statement_begun()
    clock.now += progress.STATEMENT_SECONDS - 1
    assert not progress.stalled(25)
    clock.now += 27
    assert progress.stalled(25)


def test_a_long_judgement_is_no_stall_and_endless_queries_are(clock: Clock) -> None:
    for _ in range(40):
        clock.now += 20
        progress.statement_begun()
        progress.statement_over()
        assert not progress.stalled(25)
    for _ in range(6):
        clock.now += 20
        progress.statement_over()
    assert progress.stalled(25), "nothing was committed for 15 minutes"


def test_a_database_that_accepts_and_says_nothing_is_given_up(tmp_path: Path) -> None:
    # As a server under SIGSTOP: the kernel completes connections that no process reads.
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / ".s.PGSQL.5432"))
        server.listen(5)
        with pytest.raises(NoAnswer, match=r"no answer within 0\.5 s"):
            ask(f"postgresql+psycopg2://x@/y?host={tmp_path}", seconds=0.5)
    with pytest.raises(NoAnswer, match="refused"):
        ask(f"postgresql+psycopg2://x@/y?host={tmp_path}")


def test_systemd_hears_that_a_part_is_ready_and_then_each_heartbeat(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        argv = [sys.executable, "-m", "swingbot.app.cli", "smtpd"]
        argv += ["--smtp-port", str(free_ports(1))]
        env = {name: text for name, text in os.environ.items() if not name.startswith("SWINGBOT_")}
        env |= {
            "NOTIFY_SOCKET": str(tmp_path / "notify"),
            "SWINGBOT_PATHS_STATE": str(tmp_path / "state"),
        }
        (tmp_path / "state").mkdir()
        with subprocess.Popen(argv, env=env) as part:
            try:
                assert _heard(manager, 120) == b"READY=1\nWATCHDOG=1"
                assert _heard(manager, 60) == b"WATCHDOG=1"
                part.send_signal(signal.SIGSTOP)
                while _heard(manager, 0.5):
                    pass  # sent before it stopped
                assert _heard(manager, 6) == b"", "a stopped part does not answer the watchdog"
                part.send_signal(signal.SIGCONT)
                assert _heard(manager, 60) == b"WATCHDOG=1"
                part.terminate()
                assert part.wait(60) == 0
                assert beats(tmp_path / "state") == []
            finally:
                part.kill()


def _heard(manager: socket.socket, seconds: float) -> bytes:
    return manager.recv(1000) if select.select([manager], [], [], seconds)[0] else b""


@pytest.mark.parametrize(("hung_", "restart"), [("1", "90"), ("91", "90"), ("nan", "90")])
def test_limits_that_would_kill_a_healthy_part_are_refused(hung_: str, restart: str) -> None:
    with pytest.raises(SettingsError, match=r"health\.hung_seconds"):
        load(
            environ={
                "SWINGBOT_HEALTH_HUNG_SECONDS": hung_,
                "SWINGBOT_HEALTH_RESTART_SECONDS": restart,
            }
        )
