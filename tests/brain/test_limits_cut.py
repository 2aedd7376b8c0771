"""The lab with every time limit of ours cut to a hundredth: real builds, boots and runs end at
them, work is retried or given up, and nothing says anything about a kernel."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from swingbot_jobs import codec
from swingbot_jobs.contract import deadline
from swingbot_jobs.testbox.boot_time import boot_limit
from swingbot_worker import kbuild, runner, testbox
from swingbot_worker.order import BootOrder, BuildOrder
from swingbot_worker.testbox import limits
from tests.contract.labs import Lab, played_lab, programs_in
from tests.fakelinux import FakeCommit
from tests.fakes.lab import Dispatched, FakeLab
from tests.fakes.loop import Loop
from tests.fakes.memory_brain import MemoryBrain
from tests.table_requests import compare

# What healthy work takes is no limit, nor is the interval of a heartbeat.
DURATIONS = re.compile("EXTRA|UNSAID|MONITOR|LKP|SENDING|BEAT|USUAL|TICK")
VERDICT = re.compile(
    r"does not (build|boot)|panick|\bhung\b|oops|no kernel|slower|worse|regress|came up", re.I
)


def cut_all(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Divide every limit in seconds by 100; their names."""
    names = set()
    for module, content in list(sys.modules.items()):
        if not module.startswith("swingbot"):
            continue
        for name, number in list(vars(content).items()):
            if not name.endswith("_SECONDS") or DURATIONS.search(name):
                continue
            if isinstance(number, int | float):
                less = number / 100 if isinstance(number, float) else max(1, number // 100)
                monkeypatch.setattr(content, name, less)
                names.add(name)
    cut_runs(monkeypatch)
    monkeypatch.setattr(limits, "boot_limit", lambda *what: boot_limit(*what) / 100)
    return names


def cut_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortest limit of a run that `timeout` takes for one."""
    monkeypatch.setattr(runner, "run_limit", lambda *what: max(1, deadline.run_limit(*what) // 100))


@dataclass(kw_only=True)
class WorkingLab(FakeLab):
    """A lab whose builds or boots are those of the worker."""

    repo: Path
    played: Lab
    real: str  # builds or boots

    def _build(self, order: Dispatched) -> dict[str, Any]:
        if self.real != "builds":
            return super()._build(order)
        site = self.played.site
        given = kbuild.order_by_hand(
            site, repo=str(self.repo), commit=order.commit, kconfig="tiny", compiler="gcc", layout=0
        )
        given |= {"order": f"o{order.order}", "attempt": f"a{order.attempt}"}
        given |= {"deadline_seconds": 36.0}
        outcome = kbuild.build(BuildOrder.from_json(given), self.played.out, site)
        if outcome["status"] == "built":
            return super()._build(order)  # an image for boots that are only played
        return self._taken(outcome, self.played.out)

    def _boot(self, order: Dispatched) -> dict[str, Any]:
        if self.real != "boots":
            return super()._boot(order)
        document = self.played.order([codec.plain(job) for job in order.unit_jobs])
        outcome = testbox.boot(BootOrder.from_json(document), self.played.out, self.played.site)
        return self._taken(outcome, self.played.out)

    def _taken(self, outcome: Mapping[str, Any], out: Path) -> dict[str, Any]:
        files = {name: self._store((out / name).read_bytes()) for name in outcome["files"]}
        own = ("status", "reason", "fault", "facts", "kernel_build")
        return {**{key: outcome[key] for key in own if key in outcome}, "files": files}


def working(brain: Loop, folder: Path, real: str) -> None:
    lab = played_lab(folder)
    kconfig = lab.site.workers / "kconfig"
    kconfig.mkdir()
    (kconfig / "tiny.config").write_text("CONFIG_64BIT=y\n")
    programs_in(lab.site.jobs, {"page-fault": "echo begins; exec sleep 20\n"})
    old = brain.fake
    brain.fake = WorkingLab(
        desk=old.desk,
        artifacts=old.artifacts,
        state=old.state,
        repo=brain.repo,
        played=lab,
        real=real,
    )


def compare_within_cut_limits(
    brain: Loop,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    real: str,
    cut: Callable[[pytest.MonkeyPatch], object],
) -> None:
    """Compare two slow kernels in a lab whose limits are cut."""
    base = brain.base
    made = brain.commit(FakeCommit(kind="slow"), FakeCommit(kind="slow", speed=70))
    folder.mkdir()
    working(brain, folder, real)
    brain.watch(base)
    compare(brain.lab, base, made[1], boots=1)
    cut(monkeypatch)
    brain.run()


def said(brain: MemoryBrain) -> str:
    """All that is stored about the work, and all mails."""
    db = brain.store.db
    rows = (db.orders, db.attempts, db.comparisons, db.bisections)
    return "\n".join(
        [repr(row) for table in rows for row in table.values()]
        + [letter.as_string() for letter in brain.letters]
    )


@pytest.mark.parametrize(
    ("real", "cut", "ended_by"),
    [
        ("builds", cut_all, r"The build was stopped|took longer|could not be"),
        ("boots", cut_all, r"A limit ended the boot: not done after"),
        ("boots", cut_runs, r"its limit is too short"),
    ],
    ids=["builds", "boots", "runs"],
)
def test_work_that_our_limits_end_says_nothing_about_a_kernel(
    brain: MemoryBrain,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    real: str,
    cut: Callable[[pytest.MonkeyPatch], object],
    ended_by: str,
) -> None:
    compare_within_cut_limits(brain, tmp_path / "worker", monkeypatch, real, cut)
    db = brain.store.db
    assert not [row for row in db.builds.values() if row.build.image_sha256 is None]
    assert {row.outcome for row in db.boots.values()} <= {"up"}
    assert brain.mails == []
    lost = [row.order for row in db.orders.values() if row.order.state == "failed"]
    assert lost and all(re.search(ended_by, order.reason or "") for order in lost if order.reason)
    assert not VERDICT.search(said(brain)), VERDICT.findall(said(brain))


def test_the_limits_that_are_cut_are_those_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"BUILD_IDLE_SECONDS", "BUILD_SPIN_CPU_SECONDS", "KERNEL_READER_SECONDS"} <= cut_all(
        monkeypatch
    )
