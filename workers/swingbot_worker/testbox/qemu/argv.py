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
# panic=-1 with -no-reboot ends QEMU at once (with exit status 0); no address randomisation, so that equal boots are equal.
# Not quiet: the boot text costs 0.01 guest seconds and is all that tells where a kernel hung.
CMDLINE = ("console=ttyS0", "panic=-1", "norandmaps", "mitigations=off", "printk.time=1")
# ioeventfd=off: else QEMU's main loop takes what the guest sends whenever the host lets it run, and equal boots differ.
RESULTS_DEVICE = "virtio-serial-pci,ioeventfd=off"
# Untrusted patches run as root in there: QEMU itself starts nothing and gains nothing.
SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where one boot reads and writes on the host."""

    image: Path
    initrd: Path
    console: Path
    results: Path


def kernel_cmdline(box: Testbox, delay_us: int, job: str = "") -> str:
    """The kernel's command line; `delay_us` is this boot's perturbation, `job` the job's words.

    The job's words come last: of a parameter that is set twice, the kernel takes the last value.
    """
    ours = (*CMDLINE, f"swingbot.delay_us={delay_us}", *shlex.split(box.cmdline))
    return joined(*ours, job)


def qemu_argv(box: Testbox, files: Files, delay_us: int, cmdline: str = "") -> list[str]:
    """Arguments that boot `files.image` once on `box`; `cmdline` are the job's words."""
    assert isinstance(box.driver, QemuDriver)
    return [
        PROGRAM,
        *("-machine", "q35"),
        *_clock(box.driver),
        *("-cpu", box.driver.cpu),
        *("-smp", str(box.nr_cpu)),
        *("-m", f"{box.memory_mb}M"),
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
        *("-kernel", str(files.image), "-initrd", str(files.initrd)),
        *("-append", kernel_cmdline(box, delay_us, cmdline)),
    ]


def _clock(driver: QemuDriver) -> list[str]:
    if driver.accel == "icount":
        # sleep=off: virtual time jumps over idle periods. The fixed seed and date keep the host's out.
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


def escaped(path: Path) -> str:
    """A comma ends a value in QEMU's option lists; doubled it stands for itself."""
    return str(path).replace(",", ",,")


def facts(box: Testbox, delay_us: int, version: str) -> Mapping[str, str | int]:
    """What is worth knowing of the machine that QEMU makes."""
    assert isinstance(box.driver, QemuDriver)
    return {
        "accel": box.driver.accel,
        "qemu_cpu": box.driver.cpu,
        "qemu_version": version,
        "perturbation_us": delay_us,
    }
