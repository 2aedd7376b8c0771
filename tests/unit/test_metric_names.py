"""The budget of metric names: what a large machine needs, and what is left out beyond it."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable

from swingbot.core.limits import METRIC_NAMES
from swingbot.core.results.metric_names import MetricNames, within_budget
from swingbot_jobs import limits
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.reading.parse import parse_file, parse_results, parse_run
from swingbot_jobs.reading.result import ParsedRun, RunStatus
from tests.programs import PROGRAMS

CPUS, INTERRUPTS, NODES, ORDERS = 256, 640, 8, 11
# More than Linux 6.12 has on any machine.
VMSTAT, NODE_VMSTAT, MEMINFO, NODE_MEMINFO, EVENTS = 250, 180, 70, 50, 40


def twice(lines: Iterable[str]) -> str:
    """Two snapshots of a proc file."""
    text = "".join(f"{line}\n" for line in lines)
    return f"time: 1.00\n{text}time: 2.00\n{text}"


def of_nodes(line: str, counters: int) -> list[str]:
    return [
        text
        for node in range(NODES)
        for text in (f"node: {node}", *(line.format(n=n) for n in range(counters)))
    ]


def large_machine() -> dict[str, str]:
    """The files of a run on a machine with many CPUs, interrupts and nodes, padded as the kernel
    does (show_interrupts() and show_softirqs())."""
    head = " " * 12 + "".join(f"CPU{n:<8}" for n in range(CPUS))
    counts = "".join(f"{7:10} " for _ in range(CPUS))
    zones = [
        (0, "DMA"),
        (0, "DMA32"),
        *((n, z) for n in range(NODES) for z in ("Normal", "Movable")),
    ]
    free = " ".join(["5"] * ORDERS)
    return {
        "proc-vmstat": twice(f"counter_{n} 9" for n in range(VMSTAT)),
        "meminfo": twice(f"Gauge{n}: 9 kB" for n in range(MEMINFO)),
        "interrupts": twice(
            [head, *(f"{n}: {counts} PCI-MSI {n}-edge nic-{n}" for n in range(INTERRUPTS))]
            + [f"{kind}: {counts} Interrupts of kind {kind}" for kind in "ABCDEFGHIJKLMNOPQRST"]
        ),
        "softirqs": twice([head, *(f"KIND{n}: {counts}" for n in range(10))]),
        "buddyinfo": twice(f"Node {node}, zone {zone} {free}" for node, zone in zones),
        "numa-vmstat": twice(of_nodes("counter_{n} 9", NODE_VMSTAT)),
        "numa-numastat": twice(of_nodes("numa_{n} 9", 6)),
        "numa-meminfo": twice(
            f"Node {node} Gauge{n}: 9 kB" for node in range(NODES) for n in range(NODE_MEMINFO)
        ),
        "perf-stat": "".join(f"9,,event-{n},1000,50.00,,\n" for n in range(EVENTS)),
    }


def test_the_monitors_of_a_large_machine_use_less_than_half_of_the_budget() -> None:
    stdout = {"stdout": "average:9\n"}
    names = set(parse_run("will-it-scale", stdout | large_machine(), {}, PROGRAMS))
    assert {name.partition(".")[0] for name in names} >= large_machine().keys()
    # A profile and the calls of functions are as many as their readers let pass.
    asked = 2 * limits.RUN_METRICS
    for program in ("perf-stat-interval", "lock-contention", "vmstat"):
        raw = PROGRAMS[program].directory / "samples" / "guest.raw"
        found = parse_file(program, raw, PROGRAMS)["samples"]
        assert isinstance(found, dict)
        asked += len(found)
    assert len(names) + asked < METRIC_NAMES / 2


def results_of_large_machine(runs: int) -> io.BytesIO:
    out = io.BytesIO()
    files = {"stdout": "average:9\n", "rc": "0\n", "seconds": "3.00\n"} | large_machine()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for number in range(runs):
            for name, text in files.items():
                member = tarfile.TarInfo(f"j/{number}/{name}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
    out.seek(0)
    return out


def test_the_results_of_a_large_machine_are_read_whole() -> None:
    assert len(large_machine()["interrupts"]) > 3_700_000
    job = UnitJob(name="j", program="will-it-scale", params={}, runs=3)
    runs = parse_results(results_of_large_machine(3), [job], PROGRAMS)
    assert [(run.status, run.reason) for run in runs] == [("ok", None)] * 3
    names = {name for name in runs[-1].samples if name.startswith("interrupts.")}
    assert len(names) == INTERRUPTS + 20


def a_run(*names: str, number: int = 0, status: RunStatus = "ok") -> ParsedRun:
    samples = {name: [1.0] for name in names}
    return ParsedRun(unit_job="j", number=number, status=status, samples=samples)


def test_a_monitor_beyond_the_budget_is_left_out_with_the_reason() -> None:
    names = {"j": MetricNames(free=frozenset({"meminfo.old"}), counted=METRIC_NAMES - 2)}
    first, second = within_budget(
        [
            a_run("page-fault.per_process_ops", "meminfo.old", "meminfo.a", "vmstat.a", "vmstat.b"),
            a_run("meminfo.a", "vmstat.c", number=1),
        ],
        names,
        PROGRAMS,
    )
    assert set(first.samples) == {"page-fault.per_process_ops", "meminfo.old", "meminfo.a"}
    assert (
        first.reason
        == f"vmstat left out: it has 2 new metric names, and 1 of {METRIC_NAMES} are left"
    )
    assert first.status == "ok"
    assert set(second.samples) == {"meminfo.a", "vmstat.c"}


def test_a_run_of_which_all_was_left_out_has_failed() -> None:
    names = {"j": MetricNames(free=frozenset(), counted=METRIC_NAMES + 5)}
    (run,) = within_budget([a_run("perf-profile.self.a")], names, PROGRAMS)
    assert (run.status, run.samples) == ("failed", {})
    assert (
        run.reason
        == f"perf-profile left out: it has 1 new metric names, and 0 of {METRIC_NAMES} are left"
    )
    (empty,) = within_budget([a_run(status="missing")], names, PROGRAMS)
    assert empty.status == "missing"


def test_what_a_program_declares_by_name_is_always_kept() -> None:
    names = {"j": MetricNames(free=frozenset(), counted=METRIC_NAMES)}
    declared = [name for name in PROGRAMS["page-fault"].metrics if "*" not in name]
    (run,) = within_budget([a_run(*declared, "page-fault.own")], names, PROGRAMS)
    assert set(run.samples) == set(declared)
