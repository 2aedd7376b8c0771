"""Keys of LKP's job files that are not parameters: those accepted as remarks,
and those refused because ignoring them would be wrong.

Dropping a key silently changes the measurement, so each key without effect is listed here with its
reason.
"""

from __future__ import annotations

import re
from typing import Final

# Keys that describe a job and change nothing about its runs.
REMARKS: Final = frozenset(
    {"suite", "testcase", "category", "description", "title", "author", "mail_to", "mail_cc"}
)
# Requirements on a testbox; `need_memory` and `need_cpu` are checked, the others are for people.
NEEDS: Final = re.compile(r"need_\w+")
# Keys in LKP's own files that have no effect here, and why that is correct.
WITHOUT_EFFECT: Final = {
    "set_nic_irq_affinity": (
        "it spreads the interrupts of a network card; cs-localhost uses loopback"
    ),
    "setup-net-buffer": "lkp-tests no longer has this program and ignores the key too",
    "perf-profile.delay": "a profile covers a separate run from its first second",
}
# Keys that LKP acts upon and swingbot does not. An error is better than measuring something else.
NOT_HERE: Final = {
    "kconfig": "the tree's settings choose the kernel configuration",
    "commit": "swingbot chooses the commits",
    "compiler": "the tree's settings choose the compiler",
    "rootfs": "the testbox's root file system is always the same",
    "boot_params": "kernel_cmdline adds words to the kernel command line",
    "testbox": "orders choose the testbox",
    "tbox_group": "orders choose the testbox",
    "nr_cpu": "the testbox's file says how many CPUs there are",
    "memory": "the testbox's file says how much memory there is",
    "nr_node": "the testbox determines the number of NUMA nodes",
}
# Keys that need one of LKP's wrappers around programs, which swingbot lacks.
NEEDS_WRAPPER: Final = {
    "nr_instances": "which starts several instances",
    "nr_threads_by_instance": "which starts several instances",
    "cpu_node_bind": "which binds to NUMA nodes",
    "mem_node_bind": "which binds to NUMA nodes",
}
# Names of LKP's programs that prepare a machine and that jobs of any benchmark may name.
_SETUPS: Final = """
acpi_cpufreq aspm block_queue chrt cooling_device cpufreq cpuidle_cstate cpuoffline
damon-reclaim daxctl debug-setup dirty_thresh disk drop_caches eatmem env fragment fs fs1 fs2 fuse
intel_powerclamp intel_pstate iosched md memory-hotplug migratepages migration_path msr net-buffer
nic numactl nvdimm pepc pipe_user_pages_soft quiet-network ramdisk random_migration resctrl
sanity-check sched_domain sched_feature sleep_after_boot stop_daemons stop_service swap
swapin_setup swapon taskset ucode x86_energy_perf_policy
"""
# Names of LKP's monitors. Those that swingbot has too are programs and are looked up first.
_MONITORS: Final = """
bdi_dev_mapping blktrace boot-meminfo boot-slabinfo boot-time bpftrace buddyinfo cpufreq-stats
cpuidle diskstats energy ethtool ftrace heartbeat interrupts iostat kmemleak kmsg kvm lock_stat
meminfo memmap mountstats mpstat nfsstat numa-meminfo numa-numastat numa-vmstat numainfo
oom-killer pagetypeinfo perf-c2c perf-mem perf-node perf-probe perf-profile perf-sched perf-stat
pmeter proc-stat proc-vmstat sar sched_debug slabinfo softirqs stack syscalls thermal top toplev
trace-cmd turbostat uptime vmstat watchdog zoneinfo
"""
SETUPS: Final = frozenset(_SETUPS.split())
MONITORS: Final = frozenset(_MONITORS.split())


def refusal(key: str) -> str | None:
    """Return why a known key of LKP is refused; None for one that is not in the lists."""
    if key in NOT_HERE:
        return f"{key} would have no effect here: {NOT_HERE[key]}; remove it"
    if key in NEEDS_WRAPPER:
        return (
            f"{key} needs LKP's program run-test, {NEEDS_WRAPPER[key]},"
            " which swingbot lacks: remove the key, or run this job with LKP"
        )
    if key in SETUPS:
        return (
            f"{key} needs LKP's program of that name, which swingbot lacks;"
            " remove it, or run this job with LKP"
        )
    if key in MONITORS:
        return f"{key} needs LKP's monitor of that name, which swingbot lacks; remove it"
    return None
