"""The `command` driver: a program of the operator boots the machine.

It is started with this environment: SWINGBOT_IMAGE (path of the kernel), SWINGBOT_K (number of the
boot among those of its purpose), SWINGBOT_PURPOSE (what the boot is for), SWINGBOT_ORDER (path of the
order, JSON), SWINGBOT_JOB (folder with the generated run.sh and programs/), SWINGBOT_OUT (folder to
write to). It writes results.tar and console.log into SWINGBOT_OUT and exits with 0 up, 10 panicked,
11 oopsed, 12 hung, 13 timed out; anything else is the lab's fault.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from swingbot_jobs.testbox.box import CommandDriver
from swingbot_worker import InfraError, lease, process
from swingbot_worker.testbox import console
from swingbot_worker.testbox.request import Boot, Request
from swingbot_worker.testbox.verdict import BootStatus, Verdict
from swingbot_worker.testbox.watch import tail

EXITS = {
    0: BootStatus.UP,
    10: BootStatus.PANICKED,
    11: BootStatus.OOPSED,
    12: BootStatus.HUNG,
    13: BootStatus.TIMED_OUT,
}


def boot(request: Request) -> Boot:
    """Let the operator's program boot the machine once. Raises InfraError if it says that the lab failed."""
    assert isinstance(request.box.driver, CommandDriver)
    log = request.out / "driver.log"
    with (
        lease.one_boot(
            request.site.cache, request.box.name, tell=request.tell, patience=request.patience
        ) as lock,
        tempfile.TemporaryDirectory(prefix="swingbot-boot-") as work,
    ):
        env = os.environ | _environment(request, Path(work))
        request.tell_phase("booting", "the operator's driver starts")
        done = process.run(
            request.box.driver.argv, timeout=request.limits.wall, log=log, env=env, pass_fds=[lock]
        )
    if done.timed_out:
        return Boot(
            verdict=Verdict(
                status=BootStatus.TIMED_OUT, reason=f"not done after {request.limits.wall:.0f} s"
            )
        )
    if done.rc not in EXITS:
        said = console.last_line(tail(log)) or "it said nothing"
        raise InfraError(
            f"The driver of testbox {request.box.name} ended with status {done.rc} ({said}); see {log}."
        )
    return Boot(verdict=_verdict(EXITS[done.rc], request))


def _environment(request: Request, work: Path) -> dict[str, str]:
    order = work / "order.json"
    order.write_text(
        json.dumps({key: value for key, value in request.order.items() if key != "exchange"})
    )  # the token is not for it
    for entry in request.job_entries(alone=False):
        path = work / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(entry.content)
        path.chmod(entry.mode & 0o777)
    return {
        "SWINGBOT_IMAGE": str(request.image),
        "SWINGBOT_K": str(request.k),
        "SWINGBOT_PURPOSE": request.purpose,
        "SWINGBOT_ORDER": str(order),
        "SWINGBOT_JOB": str(work / "job"),
        "SWINGBOT_OUT": str(request.out),
    }


def _verdict(status: BootStatus, request: Request) -> Verdict:
    if status is BootStatus.UP:
        if not request.results.is_file():
            raise InfraError(
                f"The driver of testbox {request.box.name} said that the boot is up but left no results.tar in SWINGBOT_OUT."
            )
        return Verdict(status=status)
    text = request.console.read_text(errors="replace") if request.console.is_file() else ""
    told = console.judge(text)
    return Verdict(
        status=status,
        reason=(told.reason if told else console.last_line(text)) or f"the driver said {status}",
    )
