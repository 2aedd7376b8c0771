"""A real master and two real build workers: what they announce, and who builds what."""

from __future__ import annotations

import hashlib
import json
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from swingbot.app import buildmaster
from swingbot.app.settings import BuildSection
from swingbot_db import read
from swingbot_worker.kbuild.probe_compilers import probe
from tests.buildbot.lab import Lab, eventually
from tests.buildbot.rows import add_attempt, add_build_order, attempt_row, dispatch_row

OLD = "builder-old"


@pytest.fixture
def two(make_lab: Callable[..., Lab]) -> Lab:
    """A lab with two build workers."""
    lab = make_lab()
    lab.settings = replace(lab.settings, build=BuildSection(workers=f"builder, {OLD}"))
    buildmaster.make_secrets(lab.settings)
    return lab


def add_builds(lab: Lab, compiler: str, number: int) -> list[int]:
    """Attempts at kernels of that compiler; each ends at once, for want of its kconfig."""
    keys = [hashlib.sha256(f"{compiler} {n}".encode()).hexdigest() for n in range(number)]
    return [add_build_order(lab, key, key[:40], compiler) for key in keys]


def ended(lab: Lab, attempts: list[int]) -> bool:
    return all(attempt_row(lab, one).state == "ended" for one in attempts)


def worker_of(lab: Lab, attempt: int) -> str:
    """The worker that carried out the build of an attempt."""
    number = dispatch_row(lab, attempt).bb_number
    workerid = api(lab, f"builders/kernel/builds/{number}")["builds"][0]["workerid"]
    return str(api(lab, f"workers/{workerid}")["workers"][0]["name"])


def api(lab: Lab, path: str) -> Any:
    url = f"http://127.0.0.1:{lab.settings.buildbot_www_port}/api/v2/{path}"
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.load(answer)


def announced(lab: Lab) -> list[dict[str, Any]]:
    with lab.engine.connect() as conn:
        return read.list_compilers(conn)


def test_each_build_worker_announces_the_compilers_of_its_host(two: Lab) -> None:
    two.start_all()
    here = {(one.name, one.version, one.problem) for one in probe()}
    assert here
    for worker in ("builder", OLD):
        rows = [row for row in announced(two) if row["worker"] == worker]
        assert {(row["name"], row["version"], row["problem"]) for row in rows} == here


def test_a_kernel_is_built_by_a_worker_that_has_its_compiler(two: Lab) -> None:
    with two.exchange():
        two.start_all()
        two.sql("DELETE FROM worker_compiler WHERE worker = 'builder' AND name = 'gcc'")
        attempts = add_builds(two, "gcc", 4)
        eventually("all were built", lambda: ended(two, attempts), 180)
        eventually(
            "their builds are noted",
            lambda: all(dispatch_row(two, one).state == "over" for one in attempts),
        )
        assert {worker_of(two, one) for one in attempts} == {OLD}


def test_the_next_attempt_at_a_kernel_goes_to_another_worker(two: Lab) -> None:
    with two.exchange():
        two.start_all()
        (first,) = add_builds(two, "gcc", 1)
        eventually("it was tried", lambda: ended(two, [first]), 180)
        eventually("it is over", lambda: dispatch_row(two, first).state == "over")
        order = attempt_row(two, first).order_id
        again = add_attempt(two, order, "kernel", 2)
        eventually("it was tried again", lambda: ended(two, [again]), 180)
        eventually("that is over", lambda: dispatch_row(two, again).state == "over")
        assert {worker_of(two, one) for one in (first, again)} == {"builder", OLD}


def test_a_kernel_waits_for_its_worker_and_others_pass_it(two: Lab) -> None:
    with two.exchange():
        two.start_all()
        two.kill(f"worker-{OLD}")
        two.sql(
            "INSERT INTO worker_compiler (worker, name, version) VALUES (:w, 'gcc-99', '99')",
            w=OLD,
        )
        (waits,) = add_builds(two, "gcc-99", 1)
        eventually("the first is placed", lambda: dispatch_row(two, waits).state == "placed")
        passes = add_builds(two, "gcc", 2)
        eventually("the others were built", lambda: ended(two, passes), 180)
        assert dispatch_row(two, waits).bb_number is None
        # It comes back without that compiler: no worker has it, and the one that takes the order
        # reports this.
        two.start(f"worker-{OLD}")
        eventually("the first was tried", lambda: ended(two, [waits]), 180)
    assert attempt_row(two, waits).outcome["status"] == "infra"
    assert "gcc-99" not in {row["name"] for row in announced(two)}
