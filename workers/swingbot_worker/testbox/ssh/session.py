"""Run one order on one testbox, controlled by state_machine."""

from __future__ import annotations

import contextlib
import secrets
import shlex
import time
from dataclasses import dataclass, field
from pathlib import Path

from swingbot_jobs.limits import RESULT_ARCHIVE_BYTES
from swingbot_jobs.testbox import tuning
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.ssh import Console, SshDriver
from swingbot_worker import InfraError, limits, rootfs
from swingbot_worker.testbox import console
from swingbot_worker.testbox.driver import Fact, Request
from swingbot_worker.testbox.limits import silent
from swingbot_worker.testbox.ssh import (
    bmc,
    boot_verdict,
    console_log,
    enter,
    fetch,
    guest,
    idle_system,
    inventory,
    packer,
    power_switch,
    preflight,
)
from swingbot_worker.testbox.ssh.link import Link, LoginRefused, Unreachable
from swingbot_worker.testbox.ssh.state_machine import (
    Action,
    Event,
    State,
    TestboxProgress,
    Times,
    deadline,
    leased,
    step,
)
from swingbot_worker.testbox.verdict import BootStatus, Verdict
from swingbot_worker.testbox.watch import ended

LOOK_SECONDS = 0.5
# Pause between two SSH connection attempts.
KNOCK_SECONDS = 3.0
# Time within which a testbox leaves its idle system after the command.
LEAVE_SECONDS = 45.0
# A heartbeat is printed every 15 s while the job runs, but a console may delay or lose some lines.
QUIET_SECONDS = 90.0
MARKER_SECONDS = 20.0
# The lease must be valid for at least this long when the testbox is told to leave its idle system.
ENTER_SECONDS = 60.0


class _DidNotLeave(InfraError):
    """The testbox answers, but has not left its idle system."""


@dataclass(kw_only=True)
class Session:
    """One order on one testbox. The console output is appended to the file `raw`."""

    testbox: Testbox
    driver: SshDriver
    link: Link
    request: Request
    raw: Path
    token: str = field(init=False)  # identifies this boot
    secret: str = field(default_factory=lambda: secrets.token_hex(16))
    verdict: Verdict | None = None
    trouble: str | None = None  # an infrastructure failure, which overrides any verdict
    home: idle_system.IdleSystemReport | None = None  # the idle system before the boot, or after it
    cycled: int = 0  # number of power cycles that the switch reported as completed
    facts: dict[str, Fact] = field(default_factory=dict)
    bmc_busy: bmc.BmcBusy | None = None  # it did not cycle the power, and the testbox is lost
    _console: bmc.ConsoleSession = field(init=False)
    _leaving: bool = False  # the command to leave the idle system was sent
    _from: int = 0  # offset in `raw` of the output of this boot
    _changed: float = 0.0
    _size: int = 0
    _last: Exception | None = None  # why the last SSH attempt failed

    def __post_init__(self) -> None:
        self._console = bmc.ConsoleSession(
            self.driver.console or Console(), self.raw, self.request.fence
        )
        self.token = f"{self.request.order}-{self.request.attempt}-{secrets.token_hex(4)}"

    @property
    def log_file(self) -> Path:
        return self.request.out / "driver.log"

    def log(self, line: str) -> None:
        with self.log_file.open("a") as file:
            file.write(line + "\n")

    def run(self) -> TestboxProgress:
        """Run the order until the testbox is idle or lost, and return its final progress.

        Raises InfraError if the order could not start; the testbox is then in its idle system.
        """
        progress, act = leased(time.monotonic()), Action.LOOK
        began = progress.since
        while act not in (Action.DONE, Action.GIVE_UP):
            event = self._do(act, progress)
            now = time.monotonic()
            before, (progress, act) = progress.state, step(progress, event, now)
            self.log(f"{now - began:7.1f} s  {before} + {event} -> {progress.state}: {act}")
            if progress.state is not before:
                self._report_phase(progress)
        return progress

    def take(self, asked: inventory.Inventory) -> None:
        """Add what the BMC reports to the facts; why it does not, to the log."""
        try:
            self.facts |= asked.read()
        except InfraError as error:
            self.log(str(error))

    def _do(self, act: Action, progress: TestboxProgress) -> Event:
        if act is Action.ENTER:
            return self._enter()
        if act is Action.WATCH:
            return self._watch(progress)
        if act is Action.CYCLE:
            return self._cycle()
        if act is Action.REBOOT:
            with contextlib.suppress(Unreachable):
                self.link.command(enter.reboot())
            time.sleep(KNOCK_SECONDS)
        return self._look(progress)

    def _report_phase(self, progress: TestboxProgress) -> None:
        why = (
            self.trouble
            or (self.verdict.reason if self.verdict else None)
            or f"order {self.request.order}"
        )
        if progress.state is State.LOST:
            why = self.why_lost
        if progress.state is not State.LEASED:
            self.request.tell_phase(str(progress.state), why[:2000])

    @property
    def why_lost(self) -> str:
        """Explanation for a testbox that does not return to its idle system."""
        cycles = (
            f" Its power was cycled {self.cycled} times without effect: check that the power "
            "command switches this testbox."
            if self.cycled
            else ""
        )
        return f"{self._last or 'It does not return to its idle system.'}{cycles}"

    # --- the system that answers

    def _look(self, progress: TestboxProgress) -> Event:
        """Poll over SSH until a usable system answers or the deadline of the state expires."""
        began = time.monotonic()
        while time.monotonic() < deadline(progress, self._times()):
            event = self._knock()
            if event is Event.FOUND_IDLE and progress.entered is not None:
                self.facts["return_seconds"] = round(time.monotonic() - progress.since, 1)
            if event is Event.FOUND_IDLE or (
                event is Event.FOUND_STRANGE and not progress.rebooted
            ):
                return event
            if (
                progress.entered is None
                and not progress.cycles
                and time.monotonic() - began > KNOCK_SECONDS
                and power_switch.status(self.driver.power) == "off"
            ):
                self.log("the testbox is switched off")
                return Event.DEADLINE
            time.sleep(KNOCK_SECONDS)
        return Event.DEADLINE

    def _knock(self) -> Event | None:
        """Connect over SSH once and return the event for the system that answers.

        Returns None if no system answers, or if the testbox has not left its idle system yet.
        Raises LoginRefused if the first login is refused.
        """
        try:
            system = idle_system.answer(
                self.link.run(idle_system.question(self.driver.workspace), timeout=45.0)
            )
        except InfraError as error:
            if isinstance(error, LoginRefused) and self.home is None:
                raise
            self._last = error
            return None
        if why := idle_system.strange(system, self.driver):
            self.log(f"not the idle system: {why}")
            self._last = InfraError(
                f"Testbox {self.testbox.name} is not in its idle system: {why}."
            )
            return Event.FOUND_STRANGE
        if self._leaving and self.home is not None and system["boot_id"] == self.home["boot_id"]:
            self._last = _DidNotLeave(
                f"Testbox {self.testbox.name} is still in the idle system, which it should have"
                " left."
            )
            return None
        self.home = system
        return Event.FOUND_IDLE

    # --- into the kernel under test

    def _enter(self) -> Event:
        assert self.home is not None
        testbox, kernel = self.testbox, self.request.kernel
        preflight.check(testbox.name, kernel, self.driver, self.home)
        if testbox.tuning is not None:
            preflight.check_tuning(
                testbox.name, testbox.tuning, self.link.run(tuning.probe(testbox.tuning))
            )
        self._check_console()
        initrd, image = self._initrd(self.home), kernel.image.read_bytes()
        preflight.check_space(testbox.name, self.home, len(image), len(initrd), self.driver)
        delay = testbox.perturbation(self.request.k, self.request.purpose)
        panic, job = self.driver.panic_seconds, self.request.cmdline
        cmdline = guest.cmdline(testbox, self.token, panic, delay, job)
        began = time.monotonic()
        self._stage(image, initrd, cmdline)
        self.facts |= {
            "sending_seconds": round(time.monotonic() - began, 1),
            "entered_by": self.driver.enter,
            "idle_release": self.home["release"],
            **self.home.hardware,
        }
        self.request.node.ready()
        self.request.fence.hold(ENTER_SECONDS)
        self._from, self._leaving = self._changed_size(), True
        with contextlib.suppress(Unreachable):  # it may reboot before SSH disconnects
            self.link.command(
                enter.kexec_go(self.driver.workspace)
                if self.driver.enter == "kexec"
                else enter.reboot()
            )
        return Event.ENTERED

    def _initrd(self, home: idle_system.IdleSystemReport) -> bytes:
        """Return the initramfs: root file system, job, and the settings of this boot.

        The guest serves results on the port of the idle system's SSH server, because firewalls and
        port forwarding between controller and testbox already let it through.
        """
        card, port = preflight.card(self.driver, home), home.number("port") or self.driver.port
        settings = [*guest.entries(self.token, self.secret, self.driver.results, card, port)]
        if self.driver.results == "console":
            settings += packer.entries(self.request.cache)
        target, payload = self.raw.with_name("initrd.made"), self.request.payload
        rootfs.with_job(payload.system, [*payload.entries, *settings], target)
        return target.read_bytes()

    def _stage(self, kernel: bytes, initrd: bytes, cmdline: str) -> None:
        if self.driver.enter == "reboot" and self.driver.reboot_where == "controller":
            target = self.raw.with_name("initrd")
            target.write_bytes(initrd)
            preflight.run_here(
                enter.once(self.driver, str(self.request.kernel.image), str(target), cmdline)
            )
            return
        # A controller that was cut off may still be sending: each lease has files of its own.
        own = f"{self.driver.workspace}/{self.link.fence or 'by-hand'}"
        at = (f"{own}/kernel", f"{own}/initrd")
        self.link.command(f"rm -rf {shlex.quote(self.driver.workspace)}")
        for path, content in zip(at, (kernel, initrd), strict=True):
            self.link.put(path, content)
        load = (
            enter.kexec_load(at[0], at[1], cmdline)
            if self.driver.enter == "kexec"
            else preflight.quoted(enter.once(self.driver, at[0], at[1], cmdline))
        )
        self.link.command(load, timeout=180.0)

    def _check_console(self) -> None:
        """Print a test line on the console of the idle system and wait for it.

        Raises InfraError if it does not appear: such a console would not show a panic either.
        """
        if self.driver.console is None:
            return
        before, began = self._changed_size(), time.monotonic()
        self.link.run(enter.marker(self.token))
        give_up, printed = began + MARKER_SECONDS, time.monotonic()
        while f"marker {self.token}" not in self._text(before):
            if self._console.retry():
                give_up = min(began + bmc.BUSY_SECONDS, time.monotonic() + MARKER_SECONDS)
            if self._console.said and time.monotonic() - printed > KNOCK_SECONDS:
                self.link.run(enter.marker(self.token))  # the last one was printed to nobody
                printed = time.monotonic()
            if time.monotonic() > give_up:
                raise self._dead_console()
            time.sleep(LOOK_SECONDS)

    def _dead_console(self) -> InfraError:
        name, console = self.testbox.name, self.driver.console
        if console is not None and self._console.said:
            return bmc.BmcBusy(bmc.stays_busy(name, console, self._console.said))
        return InfraError(preflight.dead_console(name, self.raw.with_suffix(".err")))

    # --- in the kernel under test

    def _watch(self, progress: TestboxProgress) -> Event:
        """Watch the kernel under test until an event occurs."""
        knocked = time.monotonic()
        self._changed = time.monotonic()
        while True:
            time.sleep(LOOK_SECONDS)
            now = time.monotonic()
            self._changed_size()
            report = console_log.listen(self._text(self._from), self.token)
            if report.up and progress.state is State.BOOTING:
                return Event.UP
            if self._over(report):
                return Event.ENDED
            if not report.began and now - knocked > KNOCK_SECONDS:
                knocked = now
                if (event := self._returned_silently(progress)) is not None:
                    return event
            if self.driver.power is not None and (why := self.request.node.given_up()):
                self.verdict = Verdict(status=BootStatus.LIMIT, reason=why)
                return Event.DEADLINE
            if now > deadline(progress, self._times()):
                self.verdict = self._late(report)
                return Event.DEADLINE
            quiet = QUIET_SECONDS if report.up else self.request.limits.quiet_boot
            if self.driver.console is not None and now - self._changed > quiet:
                if self._console.retry():  # nobody listened to the kernel
                    self._changed = now
                    continue
                if not report.began:
                    self._still_there()
                usual = guest.BEAT_SECONDS if report.up else self.request.limits.usual_boot
                self.verdict = console.judge(report.text) or silent(
                    quiet, usual, boot_verdict.silent(report, quiet)
                )
                self._check_power()
                return Event.QUIET

    def _over(self, report: console_log.ConsoleReport) -> bool:
        """Return True and set `verdict` if the boot is over.

        The output of the kernel under test shows this, or that of the kernel which runs after it.
        """
        results = self.request.results
        if not ended(results) and (report.done or self.driver.console is None):
            self._take_results(report)
        verdict = boot_verdict.judge(report, ended(results))
        most = limits.CONSOLE_RESULTS_BYTES if report.done else limits.CONSOLE_BYTES
        if verdict is None and self._size - self._from > most:
            verdict = Verdict(
                status=BootStatus.LIMIT,
                reason=f"the console was flooded with more than {most >> 20} MiB",
            )
        self.verdict = verdict
        return verdict is not None

    def _take_results(self, report: console_log.ConsoleReport) -> None:
        if self.driver.results == "console":
            content = console_log.results(self._text(self._from), RESULT_ARCHIVE_BYTES)
            if content is not None:
                self.request.results.write_bytes(content)
        elif not report.no_card:
            try:
                fetch.fetch(
                    self.driver.host,
                    self.driver.port,
                    self.token,
                    self.secret,
                    self.request.results,
                )
            except fetch.NotServing:
                time.sleep(KNOCK_SECONDS if self.driver.console is None else LOOK_SECONDS)

    def _returned_silently(self, progress: TestboxProgress) -> Event | None:
        """Return the event if SSH answers before the kernel under test printed anything."""
        event = self._knock()
        if event is not None:
            self.verdict, self.trouble = boot_verdict.never_began(self.testbox.name, self.driver)
            return event
        if time.monotonic() - (progress.entered or 0.0) > LEAVE_SECONDS:
            self._still_there()
        return None

    def _still_there(self) -> None:
        """Raise InfraError if the testbox was last seen in the idle system it should have left."""
        if isinstance(self._last, _DidNotLeave):
            raise InfraError(
                f"{self._last} See driver.log; the command that enters the kernel under test has "
                "no effect."
            )

    def _late(self, report: console_log.ConsoleReport) -> Verdict:
        last = console.last_line(report.text)
        after = f"last on the console: {last}" if last else "the console is empty"
        reason = f"not done after {self.request.limits.wall:.0f} s; {after}"
        if self.driver.console is None:  # nothing else could show that it hangs
            return silent(self.request.limits.wall, self.request.limits.usual, reason)
        return Verdict(status=BootStatus.LIMIT, reason=reason)

    # --- the power switch

    def _check_power(self) -> None:
        try:
            state = power_switch.status(self.driver.power)
        except InfraError as error:
            self.log(str(error))
            return
        if state == "off":
            self.trouble = (
                f"Testbox {self.testbox.name} lost power while the order ran; check its fuse and "
                "its power switch."
            )

    def _cycle(self) -> Event:
        if self.driver.power is None:
            self._last = InfraError(
                f"Testbox {self.testbox.name} does not return to its idle system and has no power "
                "switch; reset it by hand."
            )
            return Event.NO_POWER
        try:
            power_switch.cycle(self.driver.power, self.request.fence)
        except InfraError as error:
            self._last = error
            self.bmc_busy = error if isinstance(error, bmc.BmcBusy) else None
            return Event.NO_POWER
        self.cycled += 1
        return Event.CYCLED

    # --- the console

    def _changed_size(self) -> int:
        size = self.raw.stat().st_size
        if size != self._size:
            self._size, self._changed = size, time.monotonic()
        return size

    def _text(self, start: int) -> str:
        with self.raw.open("rb") as file:
            file.seek(start)
            return file.read(64 << 20).decode(errors="replace")

    def kernel_text(self) -> str:
        """Return the console output of the kernel under test, cut at `CONSOLE_BYTES`."""
        return console_log.listen(self._text(self._from), self.token).text[: limits.CONSOLE_BYTES]

    def _times(self) -> Times:
        limits = self.request.limits
        # Without a console, only this deadline ends a boot, so it covers the whole order.
        return Times(
            booting=limits.wall,
            running=limits.wall,
            home=self.driver.return_seconds,
            panic=float(self.driver.panic_seconds),
        )
