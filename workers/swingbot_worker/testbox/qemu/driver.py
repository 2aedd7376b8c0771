"""The driver `qemu`: one boot of a virtual testbox on this host."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs.testbox import counters
from swingbot_jobs.testbox.definition import QemuDriver, Testbox
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_worker import InfraError, OrderError
from swingbot_worker.answers import Answers
from swingbot_worker.rootfs import with_job
from swingbot_worker.testbox import host, payload
from swingbot_worker.testbox.driver import Boot, Job, Payload, Request
from swingbot_worker.testbox.kernel import Kernel
from swingbot_worker.testbox.qemu import argv, kvm
from swingbot_worker.testbox.qemu.machine import Machine, check_disk

# Files of killed boots older than this are deleted.
SCRATCH_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Qemu:
    """Boots the virtual testbox `testbox` on this host."""

    testbox: Testbox
    how: QemuDriver

    def payload(self, job: Job) -> Payload:
        return payload.in_guest(self.testbox, job)

    def boot(self, request: Request) -> Boot:
        check_disk(request.out, request.cache)
        self._check_firmware(request.kernel)
        rootfs, version = request.payload.system, _version(request.cache)
        delay = self.testbox.perturbation(request.k, request.purpose)
        repeatable = self._argv(request, _NAMES, delay)
        (request.out / "qemu.json").write_text(json.dumps(repeatable, indent=1) + "\n")
        payload.keep(request.payload, request.out)
        with tempfile.TemporaryDirectory(dir=_scratch(request.cache), prefix="boot-") as work:
            files = argv.Files(
                image=request.kernel.image,
                initrd=Path(work, "initrd"),
                console=request.console,
                results=request.results,
            )
            with_job(rootfs, request.payload.entries, files.initrd)
            with request.lease() as locks:
                if self.how.accel == "kvm":
                    kvm.check(self.testbox, request.kernel.image, request.cache)
                request.node.ready()
                # No phase between the two: a report while the guest runs would disturb its host.
                request.tell_phase("booting", "QEMU starts")
                verdict, spoilt = Machine(
                    testbox=self.testbox.name,
                    argv=self._argv(request, files, delay),
                    locks=locks,
                    request=request,
                ).sound_run()
                request.tell_phase("idle", "QEMU has ended")
        facts = {
            **rootfs.facts,
            **argv.facts(self.testbox, delay, version),
            "rootfs": rootfs.key,
            "boots_spoilt_by_qemu": spoilt,
        }
        return Boot(verdict=verdict, facts=facts)

    def check(self) -> list[TuningFinding]:
        found = [host.has_program(argv.PROGRAM)]
        if self.how.firmware == "uefi":
            found.append(_firmware())
        if not _has_pmu(self.how):
            found.append(TuningFinding(what="perf-stat", ok=True, found=counters.lacking(())))
        return found

    def _check_firmware(self, kernel: Kernel) -> None:
        """Raise OrderError if `kernel` cannot start from UEFI, InfraError if OVMF is missing."""
        if self.how.firmware != "uefi":
            return
        if missing := kernel.lacks(argv.EFI_NEEDED):
            lines = ", ".join(f"CONFIG_{option}=y" for option in missing)
            raise OrderError(
                f"Testbox {self.testbox.name} starts from UEFI, and the kernel lacks {lines}; "
                "build it with a configuration for hardware, such as server-x86_64."
            )
        if not (finding := _firmware()).ok:
            raise InfraError(f"{finding.found}; {finding.do}.")

    def _argv(self, request: Request, files: argv.Files, delay: int) -> list[str]:
        arguments = argv.qemu_argv(self.testbox, files, delay, request.cmdline)
        return [*arguments, *request.node.devices]


# File names without directories, for arguments that can be reused elsewhere.
_NAMES = argv.Files(
    image=Path("bzImage"),
    initrd=Path("initrd"),
    console=Path("console.log"),
    results=Path("results.tar"),
)


def _has_pmu(how: QemuDriver) -> bool:
    """Return whether QEMU may give the machine a PMU: with KVM, by default to `host` and `max`."""
    model, *properties = how.cpu.split(",")
    pmu = model in ("host", "max")
    for one in properties:
        name, _, value = one.lstrip("+-").partition("=")
        if name == "pmu":
            pmu = value in ("on", "yes", "true") if value else not one.startswith("-")
    return how.accel == "kvm" and pmu


def _firmware() -> TuningFinding:
    there = argv.OVMF_CODE.is_file() and argv.OVMF_VARS.is_file()
    return TuningFinding(
        what="UEFI firmware",
        ok=there,
        found=str(argv.OVMF_CODE) if there else f"{argv.OVMF_CODE} does not exist",
        do="" if there else "install the Debian package ovmf on the worker's host",
    )


def _scratch(cache: Path) -> Path:
    folder = cache / "boots"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_mtime > SCRATCH_SECONDS:
                shutil.rmtree(old, ignore_errors=True)
    return folder


def _version(cache: Path) -> str:
    program = Path(shutil.which(argv.PROGRAM) or argv.PROGRAM)
    return Answers(cache).of_command([program, "--version"], [program]).text.partition("\n")[0]
