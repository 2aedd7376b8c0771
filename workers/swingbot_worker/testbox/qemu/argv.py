"""The QEMU command line of one boot. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs.contract.settings import joined
from swingbot_jobs.testbox.definition import QemuDriver, Testbox

PROGRAM = "qemu-system-x86_64"
PORT = "swingbot.results"
# panic=-1 with -no-reboot ends QEMU at once (with exit status 0); no address randomisation, so that
# equal boots are equal.
# Not quiet: boot messages take 0.01 guest seconds and show where a kernel hung.
CMDLINE = ("console=ttyS0", "panic=-1", "norandmaps", "mitigations=off", "printk.time=1")
# ioeventfd=off: otherwise the time at which QEMU reads the guest's data depends on the host, and
# equal boots differ.
RESULTS_DEVICE = "virtio-serial-pci,ioeventfd=off"
# Debian's package ovmf: the code, and the variables of a machine that never started.
OVMF = Path("/usr/share/OVMF")
OVMF_CODE, OVMF_VARS = OVMF / "OVMF_CODE_4M.fd", OVMF / "OVMF_VARS_4M.fd"
DISKS = {"nvme": "nvme,serial=swingbot,drive=disk", "virtio": "virtio-blk-pci,drive=disk"}
NICS = {"e1000e": "e1000e,netdev=lan", "virtio": "virtio-net-pci,netdev=lan"}
# Options of the kernel without which a machine does not come up.
EFI_NEEDED = ("EFI", "EFI_STUB")
# Untrusted patches run as root in the guest: QEMU must not start processes or gain privileges.
SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Host files of one boot."""

    image: Path
    initrd: Path
    console: Path
    results: Path


def kernel_cmdline(testbox: Testbox, delay_us: int, job: str = "") -> str:
    """Return the kernel command line; `delay_us` is this boot's perturbation, `job` the job's
    words.

    The job's words come last, because the kernel uses the last value of a repeated parameter.
    """
    ours = (*CMDLINE, f"swingbot.delay_us={delay_us}", *shlex.split(testbox.cmdline))
    return joined(*ours, job)


def qemu_argv(testbox: Testbox, files: Files, delay_us: int, cmdline: str = "") -> list[str]:
    """Return the arguments that boot `files.image` on `testbox`; `cmdline` are the job's words."""
    assert isinstance(testbox.driver, QemuDriver)
    return [
        PROGRAM,
        *("-machine", "q35"),
        *_clock(testbox.driver),
        *("-cpu", testbox.driver.cpu),
        *_processors(testbox),
        *("-m", f"{testbox.memory_mb}M"),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none"),
        *("-sandbox", SANDBOX),
        *(
            "-chardev",
            f"file,id=console,path={escaped(files.console)}",
            "-serial",
            "chardev:console",
        ),
        *("-chardev", f"file,id=results,path={escaped(files.results)}"),
        *("-device", RESULTS_DEVICE, "-device", f"virtserialport,chardev=results,name={PORT}"),
        *_hardware(testbox.driver),
        *("-kernel", str(files.image), "-initrd", str(files.initrd)),
        *("-append", kernel_cmdline(testbox, delay_us, cmdline)),
    ]


def _clock(driver: QemuDriver) -> list[str]:
    if driver.accel == "icount":
        # sleep=off: virtual time skips idle periods. Seed and date are fixed, independent of the
        # host.
        counted = f"shift={driver.icount_shift},align=off,sleep=off"
        return [
            "-accel",
            "tcg,thread=single",
            "-icount",
            counted,
            "-seed",
            "1",
            "-rtc",
            "base=2026-01-01T00:00:00,clock=vm",
        ]
    return ["-accel", {"tcg": "tcg,thread=multi", "kvm": "kvm"}[driver.accel]]


def _processors(testbox: Testbox) -> list[str]:
    """Return processors and, if there are several nodes, which of them and how much memory each
    has.

    A single processor is on node 0; the other nodes have memory alone.
    """
    nodes = testbox.nr_node or 1
    if nodes == 1:
        return ["-smp", str(testbox.nr_cpu)]
    sockets = min(nodes, testbox.nr_cpu)
    cores = testbox.nr_cpu // sockets
    argv = ["-smp", f"{testbox.nr_cpu},sockets={sockets},cores={cores},threads=1"]
    for node in range(nodes):
        cpus = f",cpus={node * cores}-{(node + 1) * cores - 1}" if node < sockets else ""
        argv += [
            *("-object", f"memory-backend-ram,id=node{node},size={testbox.memory_mb // nodes}M"),
            *("-numa", f"node,nodeid={node}{cpus},memdev=node{node}"),
        ]
    return argv


def _hardware(driver: QemuDriver) -> list[str]:
    """Return firmware, disk and network card. None of them leaves a file on the host."""
    argv: list[str] = []
    if driver.firmware == "uefi":
        flash = "if=pflash,format=raw"
        argv += [
            *("-drive", f"{flash},unit=0,readonly=on,file={OVMF_CODE}"),
            *("-drive", f"{flash},unit=1,snapshot=on,file={OVMF_VARS}"),
        ]
    if driver.disk != "none":
        # QEMU keeps what is written in a deleted file of TMPDIR
        empty = f"driver=null-co,read-zeroes=on,size={driver.disk_mb}M"
        argv += ["-drive", f"if=none,id=disk,snapshot=on,{empty}", "-device", DISKS[driver.disk]]
    if driver.nic != "none":
        argv += ["-netdev", "hubport,hubid=0,id=lan", "-device", NICS[driver.nic]]
    return argv


def escaped(path: Path) -> str:
    """Double the commas of a path, which separate values in QEMU's option lists."""
    return str(path).replace(",", ",,")


def facts(testbox: Testbox, delay_us: int, version: str) -> Mapping[str, str | int]:
    """Return the facts about the machine that QEMU emulates."""
    assert isinstance(testbox.driver, QemuDriver)
    return {
        "accel": testbox.driver.accel,
        "qemu_cpu": testbox.driver.cpu,
        "qemu_version": version,
        "perturbation_us": delay_us,
    }
