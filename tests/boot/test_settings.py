"""What a job sets for its boot, on real kernels: seen by its effect, and by its refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_results, read_results
from tests.boot import lab as labs
from tests.boot.lab import virtual_lab
from tests.contract.labs import ROOT, Lab, a_job

THP = "/sys/kernel/mm/transparent_hugepage/enabled"
SHOWS = f"""cat {THP}
cd /proc/sys
cat vm/swappiness net/ipv4/tcp_rmem vm/dirty_ratio vm/dirty_bytes kernel/pid_max
"""
# The largest process number that this may make shows the sysctl at work, not only its file.
COUNTS = 'for n in $(seq 400); do sh -c "echo \\$\\$"; done | sort -n | tail -n 1\n'
USUAL = ["always [madvise] never", "60", "4096\t131072\t6291456", "20", "0", "4096"]
NEVER = "transparent_hugepage=never"
FAULT = a_job("page-fault", mode="process", nr_task="1", cycles="1", size="33554432")


def shown(lab: Lab) -> dict[tuple[str, int], list[str]]:
    runs = read_results(lab.out / "results.tar").runs
    return {key: files["stdout"].splitlines() for key, files in runs.items()}


def named(name: str, job: dict[str, Any], **more: Any) -> dict[str, Any]:
    return job | {"name": name} | more


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(labs.PROVOKING, "shows", SHOWS)
    monkeypatch.setitem(labs.PROVOKING, "counts", COUNTS)


@pytest.mark.usefixtures("programs")
def test_words_and_sysctls_take_effect_and_sysctls_are_set_back(
    tmp_path: Path, base_kernel: Path
) -> None:
    sysctl = {"vm.swappiness": "5", "net.ipv4.tcp_rmem": "4096 65536 1048576"}
    sysctl |= {"vm.dirty_bytes": "1048576"}
    jobs = [
        named("before", a_job("shows"), cmdline=NEVER),
        named("set", a_job("shows", runs=2), cmdline=NEVER, sysctl=sysctl),
        named("few-ids", a_job("counts"), cmdline=NEVER, sysctl={"kernel.pid_max": "400"}),
        named("after", a_job("shows"), cmdline=NEVER),
    ]
    lab = virtual_lab(tmp_path, base_kernel)
    outcome = lab.boot(jobs)
    assert [(run["status"], run.get("reason")) for run in outcome["runs"]] == [("ok", None)] * 5
    said, never = shown(lab), "always madvise [never]"
    changed = [never, "5", "4096\t65536\t1048576", "0", "1048576", "4096"]
    assert said["set", 0] == said["set", 1] == changed
    assert said["before", 0] == said["after", 0] == [never, *USUAL[1:]]
    assert 300 < int(said["few-ids", 0][0]) < 400
    facts = outcome["facts"]
    assert facts["cmdline"].endswith(f" {NEVER}")
    assert (facts["thp_enabled"], facts["set.vm.swappiness"]) == ("never", 5)
    assert facts["set.net.ipv4.tcp_rmem"] == "4096 65536 1048576"
    assert facts["vm.swappiness"] == 60  # as the kernel made it: read before any unit job
    assert "cmdline_unknown" not in facts


def test_a_job_that_sets_nothing_boots_as_ever(tmp_path: Path, base_kernel: Path) -> None:
    lab = virtual_lab(tmp_path, base_kernel)
    facts = lab.boot([FAULT])["facts"]
    assert facts["thp_enabled"] == "madvise"
    assert not [name for name in facts if name.startswith(("set.", "cmdline_"))]


def test_what_the_kernel_does_not_take_makes_the_runs_invalid_and_no_others(
    tmp_path: Path, base_kernel: Path
) -> None:
    jobs = [
        named("absent", FAULT, sysctl={"vm.nothing": "1"}),
        named("rejected", FAULT, sysctl={"vm.swappiness": "9999"}),
        named("fixed", FAULT, sysctl={"kernel.osrelease": "7.0"}),
        named("fine", FAULT, sysctl={"vm.swappiness": "100"}),
    ]
    lab = virtual_lab(tmp_path, base_kernel)
    outcome = lab.boot(jobs)
    runs = {run["unit_job"]: (run["status"], run.get("reason")) for run in outcome["runs"]}
    release = outcome["facts"]["kernel_release"]
    refused = "the kernel did not take the value"
    assert runs == {
        "absent": ("invalid", "not as set: the kernel has no sysctl vm.nothing that can be read"),
        "rejected": ("invalid", f"not as set: vm.swappiness is 60, not 9999: {refused}"),
        "fixed": ("invalid", f"not as set: kernel.osrelease is {release}, not 7.0: {refused}"),
        "fine": ("ok", None),
    }
    parsed = parse_results(
        lab.out / "results.tar",
        [codec.typed(UnitJob, job) for job in jobs],
        load_programs(ROOT / "jobs" / "programs"),
        outcome["facts"],
    )
    assert {run.unit_job: (run.status, run.reason, bool(run.samples)) for run in parsed} == {
        name: (status, reason, status == "ok") for name, (status, reason) in runs.items()
    }


@pytest.mark.parametrize("word", ["transparent_hugepages=never", "transparent_hugepage=perhaps"])
def test_a_word_that_the_kernel_does_not_know_makes_the_runs_invalid(
    tmp_path: Path, base_kernel: Path, word: str
) -> None:
    lab = virtual_lab(tmp_path, base_kernel)
    outcome = lab.boot([FAULT | {"cmdline": f"nokaslr {word}"}])
    [run] = outcome["runs"]
    assert (run["status"], run["reason"]) == (
        "invalid",
        f"not as set: the kernel does not know the parameter or its value: {word}",
    )
    assert outcome["facts"]["cmdline_unknown"] == word


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ({"cmdline": "rdinit=/bin/sh"}, "the kernel parameter rdinit can't be set by a job"),
        ({"sysctl": {"kernel.panic": "0"}}, "the sysctl kernel.panic can't be set by a job"),
    ],
)
def test_an_order_for_what_no_job_may_set_is_not_booted(
    tmp_path: Path, base_kernel: Path, job: dict[str, Any], why: str
) -> None:
    lab = virtual_lab(tmp_path, base_kernel)
    outcome = lab.boot([FAULT | job])
    assert (outcome["status"], outcome["fault"]) == ("infra", "order")
    assert why in outcome["reason"]
    assert not (lab.out / "console.log").exists()
