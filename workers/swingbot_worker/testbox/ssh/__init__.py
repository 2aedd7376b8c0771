"""The `ssh` driver: iron that idles in its own system, driven from here.

For an order the box is given kernel, root file system and job over SSH, leaves its idle system by kexec or by a reboot, runs the job from
memory, gives the results out over its console or network, and reboots. Nothing of ours stays on it, and no disk of it is touched.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_worker import InfraError, engine, lease, rootfs
from swingbot_worker.rootfs import cpio
from swingbot_worker.testbox.request import Boot, Fact, Request
from swingbot_worker.testbox.ssh import guest, preflight, switch
from swingbot_worker.testbox.ssh.check import check
from swingbot_worker.testbox.ssh.drive import Drive
from swingbot_worker.testbox.ssh.idle import Idle
from swingbot_worker.testbox.ssh.link import Link
from swingbot_worker.testbox.ssh.process import beside
from swingbot_worker.testbox.ssh.way import State, Way
from swingbot_worker.testbox.verdict import BootStatus

__all__ = ["boot", "check"]
# These verdicts stand by themselves even if the box never comes back; of a silent one nobody knows whether kernel or box is at fault.
_EVIDENT = (BootStatus.UP, BootStatus.PANICKED, BootStatus.OOPSED)


def boot(request: Request) -> Boot:
    """Boot once on a box of iron. Raises InfraError for whatever is ours; the box is in its idle system then, or the phase `lost` was told."""
    assert isinstance(request.box.driver, SshDriver)
    link = Link(request.box.name, request.box.driver)
    link.check_files()
    made = engine.prepare(request.box, request.unit_jobs, request.site)
    entries = request.job_entries(alone=True)
    (request.out / "job.cpio").write_bytes(cpio.archive(cpio.with_parents(entries)))
    shutil.copyfile(made.record, request.out / rootfs.RECORD)
    request.results.write_bytes(b"")
    with (
        _lease(request),
        tempfile.TemporaryDirectory(prefix="swingbot-iron-") as work,
        _console(request.box.driver, Path(work, "console")) as raw,
    ):
        drive = _drive(request, request.box.driver, link, made, entries, raw)
        try:
            way = drive.run()
        finally:
            request.console.write_text(drive.kernel_text())
    return _boot(request, drive, way, made)


@contextlib.contextmanager
def _lease(request: Request) -> Iterator[None]:
    if request.node is not None:  # its cluster holds it
        yield
        return
    with lease.one_boot(
        request.site.cache, request.box.name, tell=request.tell, patience=request.patience
    ):
        yield


def _drive(
    request: Request,
    driver: SshDriver,
    link: Link,
    made: rootfs.Rootfs,
    entries: list[cpio.Entry],
    raw: Path,
) -> Drive:
    token, secret = (
        f"{request.order['order']}-{request.order['attempt']}-{secrets.token_hex(4)}",
        secrets.token_hex(16),
    )

    def initrd_of(home: Idle) -> bytes:
        target, card = raw.with_name("initrd.made"), preflight.card(driver, home)
        # Where its SSH server listens is where the way in leads, through whatever stands between.
        rootfs.with_job(
            made,
            [
                *entries,
                *guest.entries(
                    token, secret, driver.results, card, home.number("port") or driver.port
                ),
            ],
            target,
        )
        return target.read_bytes()

    def log(line: str) -> None:
        with (request.out / "driver.log").open("a") as file:
            file.write(line + "\n")

    return Drive(
        request=request,
        driver=driver,
        link=link,
        raw=raw,
        token=token,
        secret=secret,
        initrd_of=initrd_of,
        log=log,
    )


@contextlib.contextmanager
def _console(driver: SshDriver, raw: Path) -> Iterator[Path]:
    raw.touch()
    with (
        beside(switch.console_argv(driver.console), raw)
        if driver.console
        else contextlib.nullcontext()
    ):
        yield raw


def _boot(request: Request, drive: Drive, way: Way, made: rootfs.Rootfs) -> Boot:
    verdict, name = drive.verdict, request.box.name
    if drive.trouble:
        raise InfraError(drive.trouble)
    if verdict is None or (way.state is State.LOST and verdict.status not in _EVIDENT):
        raise InfraError(
            f"Testbox {name} is lost: {drive.why_lost} Its order says nothing about the kernel; see {request.out / 'driver.log'}."
        )
    box_facts: dict[str, Fact] = {
        "perturbation_us": request.delay_us,
        "rootfs": made.key,
    }
    return Boot(verdict=verdict, facts={**made.facts, **box_facts, **drive.facts})
