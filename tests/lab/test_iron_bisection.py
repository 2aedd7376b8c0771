"""A bisection whose boots are those of a machine of iron, once by kexec and once by whole reboots,
with a panic in the middle.

What it prints is the transcript: `pytest -s tests/lab/test_iron_bisection.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from swingbot.app.tcp_ports import free_ports
from tests.contract.labs import ROOT
from tests.demo.demo import Clock, Service, follow, set_branch
from tests.demo.tree import Series, make_series
from tests.kernels import demo_repository
from tests.lab.iron import CMDLINE, Iron
from tests.lab.machine import tell_qemu

pytestmark = pytest.mark.timeout(7200)
TREE = "iron"
# The tree itself is watched on a virtual testbox: only what is asked for here takes the machine's
# time.
WATCHED_ON = "vm-icount"
SEED, COMMITS = 2, 8
PANICS_AFTER = 3  # boots


@dataclass(frozen=True)
class Lab:
    service: Service
    series: Series
    clock: Clock
    testbox: Iron

    def bisect(self, testbox: str) -> Any:
        """The bisection of the whole series on this testbox, when it is over.

        It, and what was asked about it, is printed.
        """
        job = (
            "--job",
            "vm-page-fault.yaml",
            "--metric",
            str(self.series.metric),
            "--testbox",
            testbox,
        )
        started = json.loads(
            self.service.ask(
                "bisect",
                "start",
                f"{self.series.base}..{self.series.branch}",
                "--tree",
                TREE,
                *job,
                "--json",
            )
        )
        panicked: list[object] = []

        def over() -> bool:
            shown = self.shown(started["id"])
            if shown["boots"] >= PANICS_AFTER and not panicked:
                panicked.append(
                    self.testbox.meanwhile(
                        " up\r", lambda: tell_qemu(self.testbox.machine.folder, "inject-nmi")
                    )
                )
            return bool(shown["status"] != "running")

        follow(self.clock, self.service, testbox, over)
        for words in (
            ("show", started["id"]),
            ("bisect", "explain", started["id"]),
            ("testbox", "show", testbox),
        ):
            print(f"$ swingbot {' '.join(words)}\n{self.service.ask(*words)}")
        return self.shown(started["id"])

    def shown(self, number: str) -> Any:
        return self.service.facts(f"bisection/{number}")


def names_of(testbox: Iron) -> tuple[str, str]:
    """Entered by kexec, and by whole reboots.

    Names of this machine's own, for a boot outlives a service that is killed.
    """
    return f"{testbox.name}-kexec", f"{testbox.name}-reboot"


def as_testboxes(testbox: Iron) -> Path:
    """The machine twice, entered by kexec and by whole reboots: the directory that is the service's
    `paths.workers`.
    """
    panics = {"cmdline": f"{CMDLINE} unknown_nmi_panic"}
    testbox.describe(panics)
    by_kexec = json.loads(testbox.file.read_text())
    testbox.by_reboot(panics)
    by_reboot = json.loads(testbox.file.read_text())
    testbox.file.unlink()
    for name, described in zip(names_of(testbox), (by_kexec, by_reboot), strict=True):
        (testbox.file.parent / f"{name}.yaml").write_text(
            json.dumps(described | {"name": name, "tbox_group": name})
        )
    (testbox.file.parent / f"{WATCHED_ON}.yaml").symlink_to(
        ROOT / "workers" / "testboxes" / f"{WATCHED_ON}.yaml"
    )
    (testbox.site.workers / "kconfig").symlink_to(ROOT / "workers" / "kconfig")
    return testbox.site.workers


@pytest.fixture(scope="module")
def threads() -> str:
    return "multi"


@pytest.fixture
def lab(testbox: Iron, tmp_path: Path) -> Iterator[Lab]:
    """A service whose testboxes are that machine, and whose tree has the series."""
    repo, clock = demo_repository(testbox.site), Clock()
    series = make_series(repo, SEED, "delay", count=COMMITS, progress=clock.say)
    watched = f"{series.branch}-base"
    set_branch(repo, watched, series.base)
    state, port = tmp_path / "state", free_ports(8600, 4)
    state.mkdir()
    settings = {
        "PATHS_STATE": state,
        "PATHS_WORKERS": as_testboxes(testbox),
        "WEB_PORT": port,
        "TESTBOXES_SCREENING_BOOTS": 0,
        "TESTBOXES_IDLE_AA_MINUTES": 0,
    }
    service = Service(
        state=state,
        port=port,
        environment={
            **os.environ,
            **{f"SWINGBOT_{name}": str(value) for name, value in settings.items()},
        },
    )
    try:
        service.start()
        service.ask(
            "tree",
            "add",
            TREE,
            str(repo),
            "--branch",
            watched,
            "--base",
            series.base,
            "--testbox",
            WATCHED_ON,
            "--job",
            "vm-page-fault.yaml",
        )
        yield Lab(service, series, clock, testbox)
    finally:
        service.stop()


def test_a_bisection_by_kexec_and_by_reboot_goes_on_after_a_panic_and_names_the_culprit(
    lab: Lab, testbox: Iron
) -> None:
    for name in names_of(testbox):
        said = lab.bisect(name)
        assert said["status"] == "culprit", said
        assert said["culprit"]["commit"] == lab.series.culprit
        assert said["probability"] >= 0.99
        assert "panicked" in [
            boot["outcome"] for point in said["points"] for boot in point["observations"]
        ]
        assert lab.service.facts(f"testbox/{name}")["state"] == "active", (
            "a kernel that panics counts as a testbox that fails"
        )
    assert "swingbot=" not in testbox.machine.ssh("cat /proc/cmdline")
