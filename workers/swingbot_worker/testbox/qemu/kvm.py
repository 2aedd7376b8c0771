"""Check that KVM works on this host by booting a kernel, not by opening /dev/kvm.

On some hosts /dev/kvm can be opened and runs a boot sector, but a kernel hangs or QEMU aborts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from swingbot_jobs.testbox.definition import QemuDriver, Testbox
from swingbot_worker import InfraError, process
from swingbot_worker.testbox.qemu import argv
from swingbot_worker.testbox.watch import tail

# Without a root file system a kernel panics and QEMU exits, which takes a second or two even under
# TCG.
PROBE_SECONDS = 30.0


def check(testbox: Testbox, image: Path, cache: Path) -> None:
    """Raise InfraError unless a kernel has run under KVM on `testbox` since this host booted.

    If `image` does not boot without KVM either, the kernel may be bad, and the check proves
    nothing.
    """
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    known = cache / "kvm" / boot_id / testbox.name
    if not known.exists():
        if not (works := runs("kvm", testbox, image)) and not runs("tcg", testbox, image):
            return
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text("works" if works else "fails")
    if known.read_text() != "works":
        raise InfraError(
            f"Testbox {testbox.name} requires KVM, but a probe boot under KVM failed on this host; "
            f"set `accel: tcg`, or repair KVM and delete {known}."
        )


def runs(accel: str, testbox: Testbox, image: Path) -> bool:
    """Return whether `image` boots until it fails to find a root file system."""
    with tempfile.TemporaryDirectory() as work:
        console = Path(work, "console.log")
        ended = process.output(probe_argv(accel, testbox, image, console), timeout=PROBE_SECONDS)
        return not ended.timed_out and ended.rc == 0 and "Linux version" in tail(console)


def probe_argv(accel: str, testbox: Testbox, image: Path, console: Path) -> list[str]:
    assert isinstance(testbox.driver, QemuDriver)
    return [
        argv.PROGRAM,
        *(
            "-machine",
            "q35",
            "-accel",
            accel,
            "-cpu",
            testbox.driver.cpu,
            "-smp",
            str(testbox.nr_cpu),
            "-m",
            f"{testbox.memory_mb}M",
        ),
        *(
            "-nodefaults",
            "-no-user-config",
            "-no-reboot",
            "-display",
            "none",
            "-monitor",
            "none",
            "-sandbox",
            argv.SANDBOX,
        ),
        *(
            "-chardev",
            f"file,id=console,path={argv.escaped(console)}",
            "-serial",
            "chardev:console",
        ),
        *("-kernel", str(image), "-append", argv.kernel_cmdline(testbox, 0)),
    ]
