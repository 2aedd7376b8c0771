"""The driver `command`: a program of the operator boots the machine.

It is started with this environment: SWINGBOT_IMAGE (path of the kernel), SWINGBOT_K (number of the
boot among those of its purpose), SWINGBOT_PURPOSE (what the boot is for), SWINGBOT_CMDLINE (the
job's words, which go to the end of the kernel command line; empty unless `can_set` of the testbox
file has cmdline), SWINGBOT_ORDER (path of the order, JSON), SWINGBOT_JOB (folder with the generated
run.sh and programs/), SWINGBOT_OUT (folder to write to), SWINGBOT_FENCE (fencing token of the
lease, unset for a boot by hand: a program that has seen a greater one at the testbox must not touch
it). It writes results.tar and console.log into SWINGBOT_OUT and exits with 0 up, 10 panicked, 11
oopsed, 12 hung, 13 stopped by a limit; any other status is an infrastructure failure.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs.testbox.definition import CommandDriver, Testbox
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_worker import InfraError, process
from swingbot_worker.testbox import console, fence, host, payload
from swingbot_worker.testbox.driver import Boot, Job, Payload, Request
from swingbot_worker.testbox.verdict import BootStatus, Verdict
from swingbot_worker.testbox.watch import LOOK_SECONDS, Stop, flooded, tail

EXITS = {
    0: BootStatus.UP,
    10: BootStatus.PANICKED,
    11: BootStatus.OOPSED,
    12: BootStatus.HUNG,
    13: BootStatus.LIMIT,
}
# The lease must be valid for at least this long when the operator's program starts.
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class OperatorCommand:
    """Boots `testbox` with the operator's program."""

    testbox: Testbox
    how: CommandDriver

    def payload(self, job: Job) -> Payload:
        return payload.beside_others(self.testbox, job)

    def boot(self, request: Request) -> Boot:
        log = request.out / "driver.log"
        with (
            request.lease() as locks,
            tempfile.TemporaryDirectory(prefix="swingbot-boot-") as work,
        ):
            start = process.Start(
                env=os.environ | _environment(request, Path(work)), pass_fds=locks
            )
            request.fence.hold(START_SECONDS)
            request.tell_phase("booting", "the operator's driver starts")
            done = self._run(request, log, start)
        if (flood := _flood(request, log)) is not None:
            return Boot(verdict=console.judge(request.console_text()) or flood)
        if done is None or done.timed_out:
            late = f"not done after {request.limits.wall:.0f} s"
            return Boot(verdict=Verdict(status=BootStatus.LIMIT, reason=late))
        if done.rc not in EXITS:
            said = console.last_line(tail(log)) or "no output"
            raise InfraError(
                f"The driver of testbox {self.testbox.name} exited with status {done.rc} ({said}); "
                f"see {log}."
            )
        return Boot(verdict=_verdict(EXITS[done.rc], self.testbox.name, request))

    def _run(
        self, request: Request, log: Path, start: process.Start
    ) -> process.CompletedCommand | None:
        """Run the program; return None if it was stopped because it left too much."""

        def look(_: float) -> None:
            if _flood(request, log) is not None:
                raise Stop(None)

        try:
            return process.run(
                self.how.argv,
                timeout=request.limits.wall,
                log=log,
                start=start,
                watch=look,
                watch_seconds=LOOK_SECONDS,
            )
        except Stop:
            return None

    def check(self) -> list[TuningFinding]:
        return [host.has_program(self.how.argv[0])]


def _flood(request: Request, log: Path) -> Verdict | None:
    return flooded(request.console, request.results, log)


def _environment(request: Request, work: Path) -> dict[str, str]:
    order = work / "order.json"
    order.write_text(json.dumps(request.document))
    for entry in request.payload.entries:
        path = work / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(entry.content)
        path.chmod(entry.mode & 0o777)
    return {
        "SWINGBOT_IMAGE": str(request.kernel.image),
        "SWINGBOT_K": str(request.k),
        "SWINGBOT_PURPOSE": request.purpose,
        "SWINGBOT_ORDER": str(order),
        "SWINGBOT_CMDLINE": request.cmdline,
        "SWINGBOT_JOB": str(work / "job"),
        "SWINGBOT_OUT": str(request.out),
        **fence.environment(request.fence),
    }


def _verdict(status: BootStatus, name: str, request: Request) -> Verdict:
    if status is BootStatus.UP:
        if not request.results.is_file():
            raise InfraError(
                f"The driver of testbox {name} exited with status 0 (up) but left no results.tar "
                "in SWINGBOT_OUT."
            )
        return Verdict(status=status)
    text = request.console_text()
    verdict = console.judge(text)
    return Verdict(
        status=status,
        reason=(verdict.reason if verdict else console.last_line(text))
        or f"the driver reported {status}",
    )
