"""The memory that a job asks for: its limit, its swap area, and what it demands of a run."""

from __future__ import annotations

import io
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from swingbot_jobs import codec
from swingbot_jobs.contract import memory
from swingbot_jobs.contract.kconfig import load_kconfigs
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.expand import expand
from swingbot_jobs.language.job import JobError
from swingbot_jobs.language.kconfig_needs import kconfig_needs
from swingbot_jobs.reading.parse import parse_results
from swingbot_jobs.testbox.definition import LkpEngine, QemuDriver
from swingbot_jobs.testbox.file import load_all
from swingbot_worker import runner
from swingbot_worker.readers.run_status import runs_of, settings_read
from swingbot_worker.runner import memory_script
from tests.contract.labs import ROOT
from tests.programs import PROGRAMS
from tests.unit.test_parse_results import a_run, results_of

TESTBOX = replace(
    load_all(ROOT / "workers" / "testboxes")["vm-icount"],
    name="vm-mm",
    memory_mb=256,
    driver=QemuDriver(accel="icount", disk="virtio"),
)
LIMITED = UnitJob(
    name="j-1",
    program="page-fault",
    params={"nr_task": "1", "mode": "process", "memory_max": "67108865", "swap": "zram"},
    runs=1,
)
OURS = "memory_max 67108864\nswap zram\n"
LINE = "[    4.47] Memory cgroup out of memory: Killed process 105 (page-fault) total-vm:1kB"

FAILED = "[    9.1] Write-error on swap-device (254:0:16)"


def jobs(text: str, **overrides: str) -> list[UnitJob]:
    return expand(text, "jobs/j.yaml", TESTBOX, PROGRAMS, overrides)


def vmstat(counter: str, before: int, after: int) -> str:
    return f"time: 1.00\n{counter} {before}\ntime: 2.00\n{counter} {after}\n"


def test_limit_and_swap_are_axes_of_every_benchmark_and_part_of_its_name() -> None:
    for program in ("hackbench", "memcg"):
        found = jobs(f"{program}:\nmemory_max: [64M, 25%]\nswap: [none, zram]\n")
        assert [job.name for job in found] == [
            "j-64M-none",
            "j-64M-zram",
            "j-25%-none",
            "j-25%-zram",
        ]
        assert {job.params["memory_max"] for job in found} == {"67108864"}
    (plain,) = jobs("memcg:\n")
    assert not memory.asked(plain.params)
    (job,) = jobs("memcg:\n", memory_max="1M", swap="none")
    assert memory.asked(job.params) == {"memory_max": "1048576", "swap": "none"}
    with pytest.raises(
        JobError, match="swap 'zrom': must be one of none, zram, zswap, ramdisk, disk"
    ):
        jobs("page-fault:\nswap: zrom\n")


def test_lkps_cgroup2_sets_files_of_the_cgroup_of_the_run() -> None:
    text = """hackbench:
cgroup2: {memory.high: 90%, memory.low: 50%, memory.max: max, io.max: , pids.max: 10000}
kernel_cmdline: systemd.unified_cgroup_hierarchy=1
"""
    (job,) = jobs(text)
    assert (job.name, job.cmdline) == ("j-90%-50%-max-10000", "")
    limits = {"memory.high": "241590272", "memory.low": "134217728", "memory.max": "max"}
    assert memory.limits(job.params) == limits | {"pids.max": "10000"}
    assert memory.kconfig_needed(job.params) == ("MEMCG", "CGROUP_PIDS")
    words = " ".join(f"{file}={value}" for file, value in memory.limits(job.params).items())
    assert memory_script.confined(job) == [f"confine - hackbench {words}"]
    assert "memory.high" not in job.command
    state = "".join(f"{file} {value}\n" for file, value in memory.limits(job.params).items())
    assert memory.unlike(job.params, state) is None
    assert "pids.max was max, not 10000" in (
        memory.unlike(job.params, state.replace("pids.max 10000", "pids.max max")) or ""
    )
    with pytest.raises(JobError, match=r"memory_max and cgroup2's memory.max are one limit"):
        jobs(f"{text}memory_max: 64M\n")


def test_processors_nodes_and_huge_pages_are_axes_too() -> None:
    text = "page-fault:\ncpus: ['0', '0,1']\nnuma: [interleave, bind:1]\nhugepages: 16\n"
    found = jobs(text)
    assert [job.name for job in found] == [
        "j-0-16-interleave",
        "j-0-16-bind:1",
        "j-0_1-16-interleave",
        "j-0_1-16-bind:1",
    ]
    spread, bound = found[:2]
    assert memory_script.confined(spread) == [
        "confine - page-fault cpuset.cpus=0 policy=interleave"
    ]
    assert memory_script.confined(bound) == ["confine - page-fault cpuset.cpus=0 cpuset.mems=1"]
    assert memory_script.state(spread, 0) == [
        "memory_state j-0-16-interleave 0 cpus=cpuset.cpus.effective numa=policy"
    ]
    assert bound.sysctl == {"vm.nr_hugepages": "16"}
    assert "sysctl" not in codec.plain(jobs("page-fault:\n")[0])
    assert kconfig_needs([spread, bound], PROGRAMS) == {
        "program page-fault": (),
        "cpus: 0": ("CPUSETS",),
        "numa: interleave": ("NUMA", "PROC_PAGE_MONITOR"),
        "numa: bind:1": ("CPUSETS", "NUMA"),
        "hugepages: 16": ("HUGETLBFS",),
        "sysctl vm.nr_hugepages": ("HUGETLBFS",),
    }


def test_what_a_job_demands_needs_options_too() -> None:
    kconfigs = load_kconfigs(ROOT / "workers" / "kconfig")
    found = jobs('page-fault:\ndemand: {lru_gen: "7", vmstat.thp_fault_alloc: ">=9", smt: "on"}\n')
    needs = kconfig_needs(found, PROGRAMS)
    assert needs == {
        "program page-fault": (),
        "demand lru_gen: 7": ("LRU_GEN",),
        "demand vmstat.thp_fault_alloc: >=9": ("VM_EVENT_COUNTERS", "TRANSPARENT_HUGEPAGE"),
    }
    assert kconfigs.refusal("vm-x86_64+mm", needs) is None
    assert kconfigs.refusal("vm-x86_64", needs) == (
        "kernel configuration vm-x86_64 lacks options that demand lru_gen: 7 needs:"
        " CONFIG_LRU_GEN=y; add the fragment mm to the kernel configuration of the tree or the"
        " testbox"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cpus: 0-\n", "cpus '0-'"),
        ("numa: bind\n", "numa 'bind'"),
        ("hugepages: 2M\n", "hugepages '2M'"),
        (
            "numa: bind:0\ncgroup2: {cpuset.mems: 1}\n",
            "numa and cgroup2's cpuset.mems are one limit",
        ),
        ("hugepages: 4\nsysctl: {vm.nr_hugepages: 5}\n", "hugepages is the sysctl vm.nr_hugepages"),
    ],
)
def test_places_that_make_no_sense_are_refused(text: str, says: str) -> None:
    with pytest.raises(JobError) as error:
        jobs(f"page-fault:\n{text}")
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "cpus: 0-1\n",
            "testbox vm-mm has no processor 1, which unit job j-0-1 asks for: it has 1",
        ),
        ("numa: bind:0,2\n", "testbox vm-mm has no node 2, which unit job j-bind:0_2 asks for"),
        ("hugepages: 128\n", "the 128 huge pages of unit job j-128, 256 MiB, do not fit into the"),
    ],
)
def test_a_testbox_refuses_places_that_it_lacks(text: str, says: str) -> None:
    with pytest.raises(ValueError) as error:
        replace(TESTBOX, nr_node=2).check_settings(jobs(f"page-fault:\n{text}"), "trusted")
    assert says in str(error.value)


def test_lkps_cpuset_jobs_calculate_with_the_nodes_of_the_testbox() -> None:
    text = """nr_node: $(echo /sys/devices/system/node/node* | wc -w)
cgroup: {cpuset.mems: "0-$((nr_node-1))", cpuset.cpus: "0-$((nr_cpu-1))"}
hackbench:
"""
    (job,) = expand(text, "jobs/j.yaml", replace(TESTBOX, nr_node=2), PROGRAMS)
    assert memory.limits(job.params) == {"cpuset.mems": "0-1", "cpuset.cpus": "0-0"}
    with pytest.raises(JobError, match="the testbox determines the number of NUMA nodes"):
        jobs("nr_node: 2\nhackbench:\n")


@pytest.mark.parametrize(
    ("params", "state", "why"),
    [
        ({"cpus": "0,1"}, "cpus 0-1\n", None),
        ({"cpus": "0,1"}, "cpus 0\n", "not as set: cpus was 0, not 0,1"),
        ({"numa": "bind:1"}, "numa 1\n", None),
        ({"numa": "bind:1"}, "numa 0-1\n", "not as set: numa was bind:0-1, not bind:1"),
        ({"numa": "interleave"}, "numa interleave:0-1\n", None),
        ({"numa": "interleave"}, "numa default\n", "not as set: numa was local, not interleave"),
        ({"numa": "local"}, "numa default\n", None),
        ({"numa": "local"}, "numa prefer:1\n", "not as set: numa was prefer:1, not local"),
        ({"cpus": "0"}, "", "not as set: cpus could not be set to 0"),
    ],
)
def test_places_are_compared_with_what_was_in_force(
    params: dict[str, str], state: str, why: str | None
) -> None:
    assert memory.unlike(params, state) == why


def test_a_share_of_memory_is_one_of_the_limit() -> None:
    (whole,) = jobs("anon-touch:\n  size: 150%\nswap: zram\n")
    (half,) = jobs("anon-touch:\n  size: 150%\nswap: zram\nmemory_max: 50%\n")
    assert int(whole.params["size"]) == 384 << 20 == 2 * int(half.params["size"])
    (odd,) = jobs("anon-touch:\n  size: 33.3%\n")
    assert int(odd.params["size"]) == (256 << 20) * 333 // 1000 // 4096 * 4096


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("  size: 150%\n", "size 384 MiB = 384 MiB, is larger than 256 MiB of memory"),
        ("  size: 100M\nmemory_max: 64M\n", "is larger than 64 MiB of memory on testbox vm-mm"),
        ("  size: 100M\nmemory_max: 64M\nswap: none\n", "or give the job an area with swap: zram"),
        ("  size: 600M\nswap: zram\n", "is larger than 256 MiB of memory and 256 MiB of zram"),
        (
            "  size: 96M\nmemory_max: 48M\nswap: ramdisk\n",
            "and 4 MiB of ramdisk on testbox vm-mm: choose a smaller one, or give the RAM disk more"
            " KiB with kernel_cmdline: brd.rd_size=...",
        ),
        (
            "  size: 300M\nmemory_max: 56M\nswap: ramdisk\nkernel_cmdline: brd.rd_size=409600\n",
            "is larger than 56 MiB of memory and 200 MiB of ramdisk on testbox vm-mm: choose a",
        ),
        (
            "  size: 300M\nswap: ramdisk\nkernel_cmdline: brd.rd_size=409600\n",
            "is larger than 256 MiB of memory on testbox vm-mm: choose a smaller one",
        ),
        (
            "  size: 96M\nmemory_max: 48M\nswap: zswap\nkernel_cmdline: brd.rd_size=40960\n",
            "is larger than 48 MiB of memory and 40 MiB of zswap",
        ),
    ],
)
def test_a_working_set_without_a_place_is_refused_with_the_arithmetic(text: str, says: str) -> None:
    with pytest.raises(JobError) as error:
        jobs(f"anon-touch:\n{text}")
    assert says in str(error.value)
    assert str(error.value).startswith("jobs/j.yaml:1: the working set, ")


def test_a_ram_disk_is_as_large_as_the_boot_makes_it() -> None:
    words = "kernel_cmdline: nokaslr brd.rd_size=4 brd.rd_size=49152\n"
    found = jobs(f"anon-touch:\n  size: 96M\nmemory_max: 48M\nswap: [ramdisk, zswap]\n{words}")
    assert [memory.kconfig_needed({"swap": job.params["swap"]}) for job in found] == [
        ("SWAP", "BLK_DEV_RAM"),
        ("SWAP", "ZSWAP", "BLK_DEV_RAM"),
    ]


def test_a_working_set_that_the_job_leaves_to_the_program_is_not_known() -> None:
    jobs("stress-ng:\n  test: brk\n")
    jobs("stress-ng:\n  test: mmap\n  bytes: 64M\n")
    with pytest.raises(JobError, match="bytes 300 MiB = 300 MiB, is larger than 256 MiB"):
        jobs("stress-ng:\n  test: mmap\n  bytes: 300M\n")
    with pytest.raises(JobError, match="nr_task .* x size 128 MiB = 384 MiB, is larger than 256 M"):
        jobs("page-fault:\n  nr_task: 3\n")


def test_files_that_a_disk_has_too_need_no_place_in_memory() -> None:
    text = "page-cache:\n  test: read\n  size: 96M\n  fs: {}\nmemory_max: 48M\n"
    (job,) = jobs(text.format("ext4"))
    needed = kconfig_needs([job], PROGRAMS)["program page-cache"]
    assert needed == ("TMPFS", "BLK_DEV_RAM", "EXT4_FS")
    with pytest.raises(JobError, match="size 96 MiB = 96 MiB, is larger than 48 MiB of memory"):
        jobs(text.format("tmpfs"))


def test_a_testbox_refuses_what_it_cannot_give() -> None:
    on_disk = jobs("page-fault:\nswap: disk\n")
    TESTBOX.check_settings(on_disk, "trusted")
    diskless = replace(TESTBOX, driver=QemuDriver(accel="icount"))
    with pytest.raises(ValueError, match="testbox vm-mm has no disk to swap to; use swap: zram"):
        diskless.check_settings(on_disk, "trusted")
    by_lkp = replace(TESTBOX, lkp=LkpEngine(src="/lkp"))
    with pytest.raises(ValueError, match="runs jobs with lkp, which does not support swap; use"):
        by_lkp.check_settings(on_disk, "trusted")


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (OURS, None),
        ("", "not as set: memory_max could not be set to 67108864"),
        ("memory_max max\nswap zram\n", "not as set: memory_max was max, not 67108864"),
        ("memory_max 67108864\nswap none\n", "not as set: swap was none, not zram"),
    ],
)
def test_runs_without_the_memory_asked_for_are_invalid(state: str, why: str | None) -> None:
    tar = a_run(0, {memory.STATE: state, "facts-before": ""})
    (run,) = parse_results(io.BytesIO(tar), [LIMITED], PROGRAMS)
    assert (run.status, run.reason) == (("invalid", why) if why else ("ok", None))
    (said,) = runs_of([LIMITED], results_of(tar), {})
    assert (said["status"], said.get("reason")) == (run.status, run.reason)
    facts = settings_read([LIMITED], results_of(tar))
    assert facts.get("set.swap", "") == memory.in_force(state).get("swap", "")


@pytest.mark.parametrize(
    ("wanted", "before", "after", "why"),
    [
        (">=1000", 5, 1005, None),
        (">=1000", 5, 5, "no reclaim happened: 0 pages scanned (vmstat.pgscan_anon >=1000)"),
        (">=1000", 5, 905, "too little reclaim: 900 pages scanned (vmstat.pgscan_anon >=1000)"),
        ("<1", 5, 6, "too much reclaim: 1 page scanned (vmstat.pgscan_anon <1)"),
        ("7", 5, 6, "another amount of reclaim: 1 page scanned (vmstat.pgscan_anon 7)"),
        (">=1000", 5, 4, "vmstat.pgscan_anon is unknown in this run; >=1000 is required"),
    ],
)
def test_a_run_that_does_too_little_is_invalid(
    wanted: str, before: int, after: int, why: str | None
) -> None:
    (job,) = jobs(f'page-fault:\ndemand: {{vmstat.pgscan_anon: "{wanted}"}}\n')
    job = replace(job, name="j-1")
    tar = a_run(0, {memory.VMSTAT: vmstat("pgscan_anon", before, after)})
    (run,) = parse_results(io.BytesIO(tar), [job], PROGRAMS)
    assert run.status == ("invalid" if why else "ok")
    assert (run.reason or "").startswith(why or "")
    (said,) = runs_of([job], results_of(tar), {})
    assert (said["status"], said.get("reason")) == (run.status, run.reason)


@pytest.mark.parametrize(
    ("counter", "says"),
    [
        ("numa_hint_faults", "no NUMA balancing happened: 0 faults"),
        ("numa_hit", "no numa_hit happened: it grew by 0"),  # where pages came from
        ("pgscan_direct_throttle", "no throttling of reclaim happened: 0 times"),
        ("compact_stall", "no compact_stall happened: it grew by 0"),
        ("thp_collapse_alloc", "no collapse happened: 0 huge pages"),
        ("compact_isolated", "no compaction happened: 0 pages isolated"),
    ],
)
def test_a_counter_is_called_what_it_counts(counter: str, says: str) -> None:
    why = memory.too_little({f"vmstat.{counter}": ">0"}, vmstat(counter, 3, 3))
    assert why == f"{says} (vmstat.{counter} >0)"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"rc": "137\n", memory.OOM: f"{LINE}\n"}, f"the OOM killer ended it: {LINE}"),
        (
            {memory.VMSTAT: vmstat("oom_kill", 0, 1)},
            "the OOM killer ended a process during it",
        ),
        ({memory.OOM: f"{LINE}\n"}, f"the OOM killer ended a process during it: {LINE}"),
        ({memory.SWAP_ERROR: f"x\n{FAILED}\n"}, f"its swap area failed: {FAILED}"),
    ],
)
def test_a_run_in_which_the_oom_killer_struck_has_no_number(
    changes: dict[str, str], why: str
) -> None:
    job = replace(LIMITED, params={"nr_task": "1", "mode": "process"})
    tar = a_run(0, changes)
    (run,) = parse_results(io.BytesIO(tar), [job], PROGRAMS)
    assert (run.status, run.reason, run.samples) == ("failed", why, {})
    (said,) = runs_of([job], results_of(tar), {})
    assert (said["status"], said["reason"]) == ("failed", why)


@pytest.mark.parametrize(
    ("alone", "rc", "count", "saved"),
    [(True, 1, 0, [LINE]), (True, 0, 1, [LINE]), (True, 0, 0, []), (False, 1, 1, [])],
)
def test_on_a_shared_machine_the_oom_killer_ends_processes_of_others(
    tmp_path: Path, alone: bool, rc: int, count: int, saved: list[str]
) -> None:
    (tmp_path / "rc").write_text(f"{rc}\n")
    (tmp_path / memory.VMSTAT).write_text(vmstat("oom_kill", 3, 3 + count))
    dmesg = tmp_path / "dmesg"
    dmesg.write_text(f"#!/bin/sh\necho '{LINE}'\n")
    dmesg.chmod(0o755)
    functions, call, _ = runner.script([LIMITED], alone=alone).partition("\nfacts\n")
    assert call
    subprocess.run(
        ["sh", "-c", f"{functions}\ntrap - EXIT\nsb_at={tmp_path}\noom_line"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SWINGBOT_WORK": str(tmp_path / "work")},
        cwd=tmp_path,
        check=False,
    )
    oom = tmp_path / "oom"
    assert (oom.read_text().splitlines() if oom.exists() else []) == saved


def test_a_failing_swap_area_is_of_the_run_in_which_it_failed(tmp_path: Path) -> None:
    (tmp_path / "dmesg").write_text("#!/bin/sh\ncat log\n")
    (tmp_path / "dmesg").chmod(0o755)
    earlier = f"{FAILED.replace('9', '1')}\n"
    script = f"""put_back() {{ :; }}
{memory_script.FUNCTIONS}
echo '{earlier}' >log
own_swap none
memory_state job 0
echo '{FAILED}' >>log
memory_state job 1
memory_state job 2
"""
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["sh", "-c", script], cwd=tmp_path, env=env, check=False, timeout=60)
    said = {path.parent.name: path.read_text() for path in tmp_path.rglob(memory.SWAP_ERROR)}
    assert said == {"1": f"{FAILED}\n"}


def test_only_a_boot_with_such_a_job_has_the_functions() -> None:
    plain = runner.script([replace(LIMITED, params={"nr_task": "1"})], alone=True)
    assert "confine" not in plain and "memory_state" not in plain
    script = runner.script([LIMITED], alone=True)
    calls = script.partition("\nprobe_monitors\n")[2].splitlines()
    assert [line.partition(" ")[0] for line in calls[:5]] == [
        "confine",
        "one_run",
        "memory_state",
        "seen",
        "set_free",
    ]
    assert calls[0] == "confine zram page-fault memory.max=67108865"


@pytest.mark.parametrize(
    ("areas", "zswap", "is_"),
    [
        ("", "N", "none"),
        ("/dev/zram1 partition 480860 0 -2\n", "N", "zram"),
        ("/dev/vda partition 480860 0 -2\n", "N", "disk"),
        ("/dev/vda partition 480860 0 -2\n", "Y", "disk behind zswap"),
        ("/dev/ram0 partition 480860 0 -2\n", "Y", "zswap"),
        ("/dev/ram0 partition 480860 0 -2\n", "N", "ramdisk"),
        ("/swapfile file 480860 0 -2\n", "N", "other"),
        ("/dev/zram1 partition 4 0 -2\n/dev/vda partition 4 0 -3\n", "N", "several"),
    ],
)
def test_the_swap_area_in_force_is_read_from_proc_swaps(
    tmp_path: Path, areas: str, zswap: str, is_: str
) -> None:
    enabled = tmp_path / "enabled"
    enabled.write_text(f"{zswap}\n")
    swaps = tmp_path / "swaps"
    swaps.write_text(f"Filename Type Size Used Priority\n{areas}")
    functions = memory_script.FUNCTIONS.replace("/proc/swaps", str(swaps))
    functions = functions.replace("/sys/module/zswap/parameters/enabled", str(enabled))
    script = f"put_back() {{ :; }}\n{functions}\nmemory_state job 0\n"
    busybox = shutil.which("busybox")
    assert busybox
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    (tmp_path / "awk").symlink_to(busybox)
    subprocess.run([busybox, "sh", "-c", script], cwd=tmp_path, env=env, check=True, timeout=60)
    assert memory.in_force((tmp_path / "job" / "0" / memory.STATE).read_text()) == {"swap": is_}
