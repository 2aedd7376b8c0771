"""One machine that QEMU makes: run to its end, or ended, and what its kernel did as far as its console and results tell."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from swingbot_worker import InfraError, process
from swingbot_worker.testbox import console
from swingbot_worker.testbox.driver import SPOILT_BOOTS, MachineFault, Request
from swingbot_worker.testbox.verdict import BootStatus, Verdict
from swingbot_worker.testbox.watch import CONSOLE_BYTES, LOOK_SECONDS, Stop, Watch, ended, tail

# A root file system, an initrd and the logs of one boot.
FREE_BYTES = 128 << 20
# What QEMU 7.2 says of an image that is no kernel; where it names the file, that is what it could not load.
REFUSED_IMAGE = ("linux kernel too old", "without PVH ELF Note", "invalid kernel header")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """QEMU started with `argv` for one request. It inherits `locks`: the lease lives as long as it does."""

    box: str
    argv: Sequence[str]
    locks: Sequence[int]
    request: Request

    def sound_run(self) -> tuple[Verdict, int]:
        """Run until a boot is not spoilt by QEMU itself; its verdict, and how many were. Raises Spoilt if too many are."""
        boots = self.request.node.spoilt_boots
        for spoilt in range(boots):
            verdict = self._run()
            if not console.trapped_on_stale_code(self._console()):
                return verdict, spoilt
            if spoilt + 1 < boots:
                self.request.tell(
                    f"QEMU ran a breakpoint that the kernel had taken away already ({verdict.reason}); booting again"
                )
        raise MachineFault(
            f"QEMU ran breakpoints that the kernel had taken away, {SPOILT_BOOTS} boots in a row; QEMU 8.1 and later do not."
        )

    def _run(self) -> Verdict:
        """Run QEMU to its end, or end it; then look at what it left."""
        request = self.request
        for path in (request.console, request.results):
            path.write_bytes(b"")
        watch = Watch(request.console, request.results, request.limits)
        stopped: Stop | None = None
        done: process.Completed | None = None

        def look(elapsed: float) -> None:
            if why := request.node.given_up():
                raise Stop(Verdict(status=BootStatus.TIMED_OUT, reason=why))
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
        _cut(request.console)
        return self._judge(done, stopped)

    @property
    def _log(self) -> Path:
        return self.request.out / "qemu.log"

    def _console(self) -> str:
        return self.request.console.read_text(errors="replace")

    def _judge(self, done: process.Completed | None, stopped: Stop | None) -> Verdict:
        """The console first, then the end marker, never the exit status: QEMU exits with 0 when the guest panics."""
        text = self._console()
        if told := console.judge(text):
            return told
        if ended(self.request.results):
            return Verdict(status=BootStatus.UP)
        check_disk(self.request.out)  # QEMU says nothing when a write fails
        if stopped is not None and stopped.verdict is not None:
            return stopped.verdict
        last = console.last_line(text)
        after = f"last on the console: {last}" if last else "the console is empty"
        if done is None or done.timed_out:
            late = f"not done after {self.request.limits.wall:.0f} s; {after}"
            return Verdict(status=BootStatus.TIMED_OUT, reason=late)
        # QEMU that is ended from outside exits with 0 too.
        if done.rc != 0 or "terminating on signal" in tail(self._log):
            return self._failed(done.rc)
        return Verdict(
            status=BootStatus.PANICKED,
            reason=f"the machine reset or switched itself off before the job was done; {after}",
        )

    def _failed(self, rc: int) -> Verdict:
        """QEMU gave up: an image that it cannot load is the kernel's fault, all else is ours."""
        said = console.last_line(tail(self._log))
        if any(words in said for words in (*REFUSED_IMAGE, str(self.request.kernel.image))):
            why = f"QEMU cannot load this image: {said}"
            return Verdict(status=BootStatus.PANICKED, reason=why)
        raise InfraError(
            f"QEMU failed with status {rc} ({said or 'it said nothing'}); see {self._log} and the qemu settings of testbox {self.box}."
        )


def check_disk(*folders: Path) -> None:
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(folder).free < FREE_BYTES:
            raise InfraError(
                f"The disk of {folder} has less than {FREE_BYTES >> 20} MiB left; make room."
            )


def _cut(path: Path) -> None:
    """Keep the beginning of a flooded console: the first words tell most."""
    if path.stat().st_size > CONSOLE_BYTES:
        with path.open("r+b") as file:
            file.truncate(CONSOLE_BYTES)
