"""Leases of host and testboxes."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from swingbot_worker import InfraError, lease


def refused(take: object) -> bool:
    """Whether the lease cannot be had now."""
    try:
        with take:  # type: ignore[attr-defined]
            return False
    except InfraError:
        return True


def test_builds_share_the_host(tmp_path: Path) -> None:
    with lease.shared(tmp_path):
        assert not refused(lease.shared(tmp_path, patience=0))


def test_a_build_and_a_measured_boot_exclude_each_other(tmp_path: Path) -> None:
    with lease.shared(tmp_path):
        assert refused(lease.exclusive(tmp_path, patience=0))
    with lease.exclusive(tmp_path):
        assert refused(lease.shared(tmp_path, patience=0))
        assert refused(lease.exclusive(tmp_path, patience=0))
    assert not refused(lease.exclusive(tmp_path, patience=0))


def test_a_waiting_boot_goes_before_later_builds(tmp_path: Path) -> None:
    got, done, waiting = threading.Event(), threading.Event(), threading.Event()

    def measured_boot() -> None:
        with lease.exclusive(tmp_path, tell=lambda line: waiting.set()):
            got.set()
            done.wait(10)

    boot = threading.Thread(target=measured_boot)
    with lease.shared(tmp_path):
        boot.start()
        assert waiting.wait(10)
        assert refused(lease.shared(tmp_path, patience=0))
    assert got.wait(10)
    done.set()
    boot.join()


def test_a_testbox_runs_one_boot_at_a_time_and_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    with lease.for_testboxes(tmp_path, ["vm-icount"]):
        assert refused(lease.for_testboxes(tmp_path, ["vm-icount"], patience=0, tell=said.append))
        assert not refused(lease.for_testboxes(tmp_path, ["vm-tcg"], patience=0))
    assert said == ["Waiting: testbox vm-icount is busy with another boot."]


def test_giving_up_names_the_lock_to_look_at(tmp_path: Path) -> None:
    with (
        lease.for_testboxes(tmp_path, ["box"]),
        pytest.raises(InfraError, match=r"testboxes/box\.lease"),
        lease.for_testboxes(tmp_path, ["box"], patience=0),
    ):
        pass


def test_a_lease_lives_as_long_as_the_process_it_was_handed_to(tmp_path: Path) -> None:
    with lease.for_testboxes(tmp_path, ["box"]) as [fd]:
        kept = os.dup(fd)
    assert refused(lease.for_testboxes(tmp_path, ["box"], patience=0))
    os.close(kept)
    assert not refused(lease.for_testboxes(tmp_path, ["box"], patience=0))
