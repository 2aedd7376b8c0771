"""Run one machine under QEMU, and judge its kernel by console and results."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from swingbot_worker import InfraError, OrderError, process
from swingbot_worker.testbox import console
from swingbot_worker.testbox.driver import SPOILT_BOOTS, MachineFault, Request
from swingbot_worker.testbox.verdict import BootStatus, Verdict
from swingbot_worker.testbox.watch import LOOK_SECONDS, Stop, Watch, ended, tail

# A root file system, an initrd and the logs of one boot.
FREE_BYTES = 128 << 20
# Linux's messages, with and without a RAM disk, for an initramfs that its memory does not hold.
NO_ROOM = (
    "rootfs image is not initramfs (write error)",
    "Initramfs unpacking failed: write error",
)
# QEMU 7.2's messages for an image that is not a kernel. A message with the file name means that
# loading failed.
REFUSED_IMAGE = ("linux kernel too old", "without PVH ELF Note", "invalid kernel header")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """QEMU with `argv` for one request.

    It inherits `locks`, so the lease lasts until QEMU exits.
    """

    testbox: str
    argv: Sequence[str]
    locks: Sequence[int]
    request: Request

    def sound_run(self) -> tuple[Verdict, int]:
        """Repeat the boot while QEMU itself spoils it.

        Returns the verdict and the number of spoilt boots. Raises MachineFault if QEMU spoils too
        many boots.
        """
        boots = self.request.node.spoilt_boots
        for spoilt in range(boots):
            verdict = self._run()
            if not console.trapped_on_stale_code(self.request.console_text()):
                return verdict, spoilt
            if spoilt + 1 < boots:
                self.request.tell(
                    "QEMU executed a breakpoint that the kernel had already removed "
                    f"({verdict.reason}); booting again"
                )
        raise MachineFault(
            f"QEMU executed breakpoints that the kernel had removed in {SPOILT_BOOTS} consecutive "
            "boots; use QEMU 8.1 or later, which does not."
        )

    def _run(self) -> Verdict:
        """Run QEMU until it exits or is stopped, then judge its output."""
        request = self.request
        for path in (request.console, request.results):
            path.write_bytes(b"")
        watch = Watch(request.console, request.results, request.limits)
        stopped: Stop | None = None
        done: process.CompletedCommand | None = None

        def look(elapsed: float) -> None:
            if why := request.node.given_up():
                raise Stop(Verdict(status=BootStatus.LIMIT, reason=why))
            watch(elapsed)

        try:
            done = process.run(
                self.argv,
                timeout=request.limits.wall,
                log=self._log,
                start=process.Start(pass_fds=self.locks),
                watch=look,
                watch_seconds=LOOK_SECONDS,
            )
        except Stop as stop:
            stopped = stop
        return self._judge(done, stopped)

    @property
    def _log(self) -> Path:
        return self.request.out / "qemu.log"

    def _judge(self, done: process.CompletedCommand | None, stopped: Stop | None) -> Verdict:
        """Judge by the console, then the end marker. QEMU exits with 0 even if the guest panics."""
        text = self.request.console_text()
        if verdict := judged(text, self.testbox):
            return verdict
        if ended(self.request.results):
            return Verdict(status=BootStatus.UP)
        check_disk(self.request.out)  # QEMU does not report a failed write
        if stopped is not None and stopped.verdict is not None:
            return stopped.verdict
        last = console.last_line(text)
        after = f"last on the console: {last}" if last else "the console is empty"
        if done is None or done.timed_out:
            late = f"not done after {self.request.limits.wall:.0f} s; {after}"
            return Verdict(status=BootStatus.LIMIT, reason=late)
        # QEMU also exits with 0 if it is killed from outside.
        if done.rc != 0 or "terminating on signal" in tail(self._log):
            return self._failed(done.rc)
        check_room(text, self.testbox)
        return Verdict(
            status=BootStatus.PANICKED,
            reason=f"the machine reset or powered off before the job was done; {after}",
        )

    def _failed(self, rc: int) -> Verdict:
        """Return a verdict if QEMU cannot load the image.

        Raises InfraError for any other failure.
        """
        said = console.last_line(tail(self._log))
        if any(words in said for words in (*REFUSED_IMAGE, str(self.request.kernel.image))):
            why = f"QEMU cannot load this image: {said}"
            return Verdict(status=BootStatus.PANICKED, reason=why)
        raise InfraError(
            f"QEMU failed with status {rc} ({said or 'no output'}); see {self._log} and the qemu "
            f"settings of testbox {self.testbox}."
        )


def judged(console_text: str, testbox: str) -> Verdict | None:
    """Return what the kernel says of its own failure, if anything.

    Raises OrderError if it had no memory for its root file system: without `init` it panics.
    """
    verdict = console.judge(console_text)
    if verdict is not None and verdict.status is BootStatus.PANICKED:
        check_room(console_text, testbox)
    return verdict


def check_room(console_text: str, testbox: str) -> None:
    """Raise OrderError if the kernel had no memory for its root file system: not its fault."""
    if any(words in console_text for words in NO_ROOM):
        raise OrderError(
            f"The root file system of these jobs does not fit into the memory of {testbox}: the "
            "kernel needs three times its size; run fewer job files in one boot, or elsewhere."
        )


def check_disk(*folders: Path) -> None:
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(folder).free < FREE_BYTES:
            raise InfraError(
                f"The disk of {folder} has less than {FREE_BYTES >> 20} MiB free; free some space."
            )
