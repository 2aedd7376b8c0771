"""The driver `ssh`: a bare-metal testbox that waits for orders in its idle system.

For an order, the testbox gets kernel, root file system and job over SSH, leaves its idle system by
kexec or reboot, runs the job from memory, sends the results over its console or network, and
reboots. Nothing remains on it, and nothing but the fencing token is written to its disks.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_worker import InfraError
from swingbot_worker.testbox import payload
from swingbot_worker.testbox.driver import Boot, Fact, Job, Payload, Request
from swingbot_worker.testbox.fence import Fence
from swingbot_worker.testbox.ssh import bmc, check, inventory, power_switch
from swingbot_worker.testbox.ssh.link import Link
from swingbot_worker.testbox.ssh.process import beside
from swingbot_worker.testbox.ssh.session import Session
from swingbot_worker.testbox.ssh.state_machine import State, TestboxProgress
from swingbot_worker.testbox.verdict import BootStatus

# These verdicts are valid even if the testbox never returns. For a silent boot, either kernel or
# testbox may be at fault.
_EVIDENT = (BootStatus.UP, BootStatus.PANICKED, BootStatus.OOPSED)


@dataclass(frozen=True, slots=True)
class Ssh:
    """Boots the bare-metal testbox `testbox`."""

    testbox: Testbox
    how: SshDriver

    def payload(self, job: Job) -> Payload:
        return payload.in_guest(self.testbox, job)

    def boot(self, request: Request) -> Boot:
        link = Link(self.testbox.name, self.how, request.fence.token)
        link.check_files()
        payload.keep(request.payload, request.out)
        request.results.write_bytes(b"")
        with (
            request.lease(),
            tempfile.TemporaryDirectory(prefix="swingbot-ssh-") as work,
            self._console(Path(work, "console"), request.fence) as raw,
            self._inventory() as asked,
        ):
            session = Session(
                testbox=self.testbox,
                driver=self.how.for_boot(request.k, request.purpose),
                link=link,
                request=request,
                raw=raw,
            )
            try:
                progress = session.run()
                if asked is not None:
                    session.take(asked)
            finally:
                request.console.write_bytes(session.kernel_text().encode())
        return self._ended(request, session, progress)

    @contextlib.contextmanager
    def _inventory(self) -> Iterator[inventory.Inventory | None]:
        """Ask the BMC beside the order, if there is a command for that."""
        if not self.how.inventory:
            yield None
            return
        with inventory.asked(self.how.inventory) as asked:
            yield asked

    def check(self) -> list[TuningFinding]:
        return check.check(self.testbox, self.how)

    @contextlib.contextmanager
    def _console(self, raw: Path, fence: Fence) -> Iterator[Path]:
        """Yield a file to which the console's output is appended, and leave no session behind."""
        raw.touch()
        if self.how.console is None:
            yield raw
            return
        try:
            with beside(power_switch.console_argv(self.how.console), raw):
                yield raw
        finally:
            if self.how.console.end:
                with contextlib.suppress(InfraError):  # the session is another controller's
                    fence.hold(bmc.END_SECONDS)
                    bmc.end(self.how.console)

    def _ended(self, request: Request, session: Session, progress: TestboxProgress) -> Boot:
        verdict = session.verdict
        if session.trouble:
            raise InfraError(session.trouble)
        if session.bmc_busy is not None:
            raise session.bmc_busy
        if verdict is None or (progress.state is State.LOST and verdict.status not in _EVIDENT):
            raise InfraError(
                f"Testbox {self.testbox.name} is lost: {session.why_lost} The order has no verdict "
                f"about the kernel; see {session.log_file}."
            )
        rootfs = request.payload.system
        facts: dict[str, Fact] = {
            "perturbation_us": self.testbox.perturbation(request.k, request.purpose),
            "rootfs": rootfs.key,
        }
        return Boot(verdict=verdict, facts={**rootfs.facts, **facts, **session.facts})
