"""The driver `ssh`: a bare-metal testbox that idles in its own system, driven from here.

For an order the box is given kernel, root file system and job over SSH, leaves its idle system by kexec or by a reboot, runs the job from
memory, gives the results out over its console or network, and reboots. Nothing of ours stays on it, and no disk of it is touched.
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
from swingbot_worker.testbox.ssh import check, power_switch
from swingbot_worker.testbox.ssh.link import Link
from swingbot_worker.testbox.ssh.process import beside
from swingbot_worker.testbox.ssh.session import Session
from swingbot_worker.testbox.ssh.state_machine import State, TestboxProgress
from swingbot_worker.testbox.verdict import BootStatus

# These verdicts stand by themselves even if the box never comes back; of a silent one nobody knows whether kernel or box is at fault.
_EVIDENT = (BootStatus.UP, BootStatus.PANICKED, BootStatus.OOPSED)


@dataclass(frozen=True, slots=True)
class Ssh:
    """Boots the bare-metal testbox `box`."""

    box: Testbox
    how: SshDriver

    def payload(self, job: Job) -> Payload:
        return payload.in_guest(self.box, job)

    def boot(self, request: Request) -> Boot:
        link = Link(self.box.name, self.how)
        link.check_files()
        payload.keep(request.payload, request.out)
        request.results.write_bytes(b"")
        with (
            request.lease(),
            tempfile.TemporaryDirectory(prefix="swingbot-ssh-") as work,
            self._console(Path(work, "console")) as raw,
        ):
            session = Session(box=self.box, driver=self.how, link=link, request=request, raw=raw)
            try:
                way = session.run()
            finally:
                request.console.write_text(session.kernel_text())
        return self._ended(request, session, way)

    def check(self) -> list[TuningFinding]:
        return check.check(self.box, self.how)

    @contextlib.contextmanager
    def _console(self, raw: Path) -> Iterator[Path]:
        """A file that grows with whatever the console prints."""
        raw.touch()
        with (
            beside(power_switch.console_argv(self.how.console), raw)
            if self.how.console
            else contextlib.nullcontext()
        ):
            yield raw

    def _ended(self, request: Request, session: Session, way: TestboxProgress) -> Boot:
        verdict = session.verdict
        if session.trouble:
            raise InfraError(session.trouble)
        if verdict is None or (way.state is State.LOST and verdict.status not in _EVIDENT):
            raise InfraError(
                f"Testbox {self.box.name} is lost: {session.why_lost} Its order says nothing about the kernel; see {session.log_file}."
            )
        rootfs = request.payload.system
        facts: dict[str, Fact] = {
            "perturbation_us": self.box.perturbation(request.k, request.purpose),
            "rootfs": rootfs.key,
        }
        return Boot(verdict=verdict, facts={**rootfs.facts, **facts, **session.facts})
