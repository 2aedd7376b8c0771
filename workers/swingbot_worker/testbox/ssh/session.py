"""One order on one box: does what the way (way.py) says next, and tells it what happened."""

from __future__ import annotations

import contextlib
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path

from swingbot_jobs.testbox import tuning
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_worker import InfraError, rootfs
from swingbot_worker.testbox import console
from swingbot_worker.testbox.driver import Fact, Request
from swingbot_worker.testbox.ssh import (
    boot_verdict,
    console_log,
    enter,
    fetch,
    guest,
    idle_system,
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
from swingbot_worker.testbox.watch import CONSOLE_BYTES, RESULTS_BYTES, ended

LOOK_SECONDS = 0.5
# Between two attempts over SSH at a box that is on its way.
KNOCK_SECONDS = 3.0
# A box that was told to leave its idle system has done so after this, or something is wrong.
LEAVE_SECONDS = 45.0
# Signs of life come every 15 s while the job runs; a console is late or loses a line now and then.
QUIET_SECONDS = 90.0
MARKER_SECONDS = 20.0
# Of a console on which results are printed: far more than a serial line carries within any
# deadline.
FRAMES_BYTES = 32 << 20


class _DidNotLeave(InfraError):
    """The box answers, and has not gone anywhere."""


@dataclass(kw_only=True)
class Session:
    """One order on one box. `raw` grows with whatever the console prints."""

    box: Testbox
    driver: SshDriver
    link: Link
    request: Request
    raw: Path
    token: str = field(init=False)  # tells this boot from any other
    secret: str = field(default_factory=lambda: secrets.token_hex(16))
    verdict: Verdict | None = None
    trouble: str | None = None  # a fault of the lab that counts more than any verdict
    home: idle_system.IdleSystemReport | None = None  # the idle system that we left
    cycled: int = 0  # how often the power switch said that it had done so
    facts: dict[str, Fact] = field(default_factory=dict)
    _left: bool = False  # it was told to leave its idle system
    _from: int = 0  # where in `raw` this order begins
    _changed: float = 0.0
    _size: int = 0
    _last: Exception | None = None  # why nobody answered

    def __post_init__(self) -> None:
        self.token = f"{self.request.order}-{self.request.attempt}-{secrets.token_hex(4)}"

    @property
    def log_file(self) -> Path:
        return self.request.out / "driver.log"

    def log(self, line: str) -> None:
        with self.log_file.open("a") as file:
            file.write(line + "\n")

    def run(self) -> TestboxProgress:
        """To the end of the way.

        Raises InfraError if the order could not begin; the box is in its idle system then, or was
        never out of it.
        """
        way, act = leased(time.monotonic()), Action.LOOK
        began = way.since
        while act not in (Action.DONE, Action.GIVE_UP):
            event = self._do(act, way)
            now = time.monotonic()
            before, (way, act) = way.state, step(way, event, now)
            self.log(f"{now - began:7.1f} s  {before} + {event} -> {way.state}: {act}")
            if way.state is not before:
                self._tell(way)
        return way

    def _do(self, act: Action, way: TestboxProgress) -> Event:
        if act is Action.ENTER:
            return self._enter()
        if act is Action.WATCH:
            return self._watch(way)
        if act is Action.CYCLE:
            return self._cycle()
        if act is Action.REBOOT:
            with contextlib.suppress(Unreachable):
                self.link.run(enter.reboot())
            time.sleep(KNOCK_SECONDS)
        return self._look(way)

    def _tell(self, way: TestboxProgress) -> None:
        why = (
            self.trouble
            or (self.verdict.reason if self.verdict else None)
            or f"order {self.request.order}"
        )
        if way.state is State.LOST:
            why = self.why_lost
        if way.state is not State.LEASED:
            self.request.tell_phase(str(way.state), why[:2000])

    @property
    def why_lost(self) -> str:
        """The last sentences about a box that does not come back."""
        tried = (
            f" Its power was cycled {self.cycled} times without effect: check that the power "
            "command switches this testbox."
            if self.cycled
            else ""
        )
        return f"{self._last or 'It does not return.'}{tried}"

    # --- who answers

    def _look(self, way: TestboxProgress) -> Event:
        """Until somebody answers whom the way can use, or the state has lasted too long."""
        began = time.monotonic()
        while time.monotonic() < deadline(way, self._times()):
            found = self._knock()
            if found is Event.FOUND_IDLE and way.entered is not None:
                self.facts["return_seconds"] = round(time.monotonic() - way.since, 1)
            if found is Event.FOUND_IDLE or (found is Event.FOUND_STRANGE and not way.rebooted):
                return found
            if (
                way.entered is None
                and not way.cycles
                and time.monotonic() - began > KNOCK_SECONDS
                and power_switch.status(self.driver.power) == "off"
            ):
                self.log("it is switched off")
                return Event.DEADLINE
            time.sleep(KNOCK_SECONDS)
        return Event.DEADLINE

    def _knock(self) -> Event | None:
        """Who answers over SSH: the idle system (not the one we left, before it has left), a
        strange kernel, or nobody.
        """
        try:
            found = idle_system.answer(
                self.link.run(idle_system.question(self.driver.workspace), timeout=45.0)
            )
        except InfraError as error:
            if isinstance(error, LoginRefused) and self.home is None:
                raise
            self._last = error
            return None
        if why := idle_system.strange(found, self.driver):
            self.log(f"strange kernel: {why}")
            self._last = InfraError(f"Testbox {self.box.name} is not in its idle system: {why}.")
            return Event.FOUND_STRANGE
        if self._left and self.home is not None and found["boot_id"] == self.home["boot_id"]:
            self._last = _DidNotLeave(
                f"Testbox {self.box.name} is still in the idle system that it should have left."
            )
            return None
        self.home = found
        return Event.FOUND_IDLE

    # --- into the kernel under test

    def _enter(self) -> Event:
        assert self.home is not None
        box, kernel = self.box, self.request.kernel
        preflight.check(box.name, kernel, self.driver, self.home)
        if box.tuning is not None:
            preflight.check_tuning(box.name, box.tuning, self.link.run(tuning.probe(box.tuning)))
        self._check_console()
        initrd, image = self._initrd(self.home), kernel.image.read_bytes()
        preflight.check_space(box.name, self.home, len(image), len(initrd), self.driver)
        delay = box.perturbation(self.request.k, self.request.purpose)
        panic, job = self.driver.panic_seconds, self.request.cmdline
        cmdline = guest.cmdline(box, self.token, panic, delay, job)
        began = time.monotonic()
        self._stage(image, initrd, cmdline)
        self.facts |= {
            "sending_seconds": round(time.monotonic() - began, 1),
            "entered_by": self.driver.enter,
            "idle_release": self.home["release"],
        }
        self.request.node.ready()
        self._from, self._left = self._changed_size(), True
        with contextlib.suppress(Unreachable):  # it may be gone before SSH has said good-bye
            self.link.run(
                enter.kexec_go(self.driver.workspace)
                if self.driver.enter == "kexec"
                else enter.reboot()
            )
        return Event.ENTERED

    def _initrd(self, home: idle_system.IdleSystemReport) -> bytes:
        """Root file system, job and what this boot needs to know; its SSH server listens where the
        way in leads, through whatever stands between.
        """
        card, port = preflight.card(self.driver, home), home.number("port") or self.driver.port
        known = guest.entries(self.token, self.secret, self.driver.results, card, port)
        target, payload = self.raw.with_name("initrd.made"), self.request.payload
        rootfs.with_job(payload.system, [*payload.entries, *known], target)
        return target.read_bytes()

    def _stage(self, kernel: bytes, initrd: bytes, cmdline: str) -> None:
        if self.driver.enter == "reboot" and self.driver.reboot_where == "controller":
            target = self.raw.with_name("initrd")
            target.write_bytes(initrd)
            preflight.run_here(
                enter.once(self.driver, str(self.request.kernel.image), str(target), cmdline)
            )
            return
        at = (f"{self.driver.workspace}/kernel", f"{self.driver.workspace}/initrd")
        for path, content in zip(at, (kernel, initrd), strict=True):
            self.link.put(path, content)
        load = (
            enter.kexec_load(at[0], at[1], cmdline)
            if self.driver.enter == "kexec"
            else preflight.quoted(enter.once(self.driver, at[0], at[1], cmdline))
        )
        self.link.run(load, timeout=180.0)

    def _check_console(self) -> None:
        """Say something on the idle system's console and wait for it: a console that shows nothing
        tells of no panic either.
        """
        if self.driver.console is None:
            return
        before = self._changed_size()
        self.link.run(enter.marker(self.token))
        give_up = time.monotonic() + MARKER_SECONDS
        while f"marker {self.token}" not in self._text(before):
            if time.monotonic() > give_up:
                raise InfraError(
                    preflight.dead_console(self.box.name, self.raw.with_suffix(".err"))
                )
            time.sleep(LOOK_SECONDS)

    # --- in the kernel under test

    def _watch(self, way: TestboxProgress) -> Event:
        """Until something happens that matters to the way."""
        knocked = time.monotonic()
        self._changed = time.monotonic()
        while True:
            time.sleep(LOOK_SECONDS)
            now = time.monotonic()
            self._changed_size()
            said = console_log.listen(self._text(self._from), self.token)
            if said.up and way.state is State.BOOTING:
                return Event.UP
            if self._over(said):
                return Event.ENDED
            if not said.began and now - knocked > KNOCK_SECONDS:
                knocked = now
                if (found := self._home_without_a_word(way)) is not None:
                    return found
            if self.driver.power is not None and (why := self.request.node.given_up()):
                self.verdict = Verdict(status=BootStatus.TIMED_OUT, reason=why)
                return Event.DEADLINE
            if now > deadline(way, self._times()):
                self.verdict = self._late(said)
                return Event.DEADLINE
            quiet = QUIET_SECONDS if said.up else self.request.limits.quiet_boot
            if self.driver.console is not None and now - self._changed > quiet:
                if not said.began:
                    self._still_there()
                self.verdict = console.judge(said.text) or Verdict(
                    status=BootStatus.HUNG, reason=boot_verdict.silent(said, quiet)
                )
                self._check_power()
                return Event.QUIET

    def _over(self, said: console_log.ConsoleReport) -> bool:
        """Whether the kernel under test is through, by its own words or by those of the one that
        came after; then `verdict` is set.
        """
        results = self.request.results
        if not ended(results) and (said.done or self.driver.console is None):
            self._take_results(said)
        told = boot_verdict.judge(said, ended(results))
        most = FRAMES_BYTES if said.done else CONSOLE_BYTES
        if told is None and self._size - self._from > most:
            told = Verdict(
                status=BootStatus.TIMED_OUT,
                reason=f"the console was flooded with more than {most >> 20} MiB",
            )
        self.verdict = told
        return told is not None

    def _take_results(self, said: console_log.ConsoleReport) -> None:
        if self.driver.results == "console":
            content = console_log.results(self._text(self._from), RESULTS_BYTES)
            if content is not None:
                self.request.results.write_bytes(content)
        elif not said.no_card:
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

    def _home_without_a_word(self, way: TestboxProgress) -> Event | None:
        """Whether SSH answers although no kernel under test was ever heard of."""
        found = self._knock()
        if found is not None:
            self.verdict, self.trouble = boot_verdict.never_began(self.box.name, self.driver)
            return found
        if time.monotonic() - (way.entered or 0.0) > LEAVE_SECONDS:
            self._still_there()
        return None

    def _still_there(self) -> None:
        """Raise InfraError if the box was last seen in the idle system that it should have left."""
        if isinstance(self._last, _DidNotLeave):
            raise InfraError(
                f"{self._last} See driver.log; the command that enters the kernel under test has "
                "no effect."
            )

    def _late(self, said: console_log.ConsoleReport) -> Verdict:
        last = console.last_line(said.text)
        after = f"last on the console: {last}" if last else "the console is empty"
        return Verdict(
            status=BootStatus.TIMED_OUT,
            reason=f"not done after {self.request.limits.wall:.0f} s; {after}",
        )

    # --- the power switch

    def _check_power(self) -> None:
        try:
            state = power_switch.status(self.driver.power)
        except InfraError as error:
            self.log(str(error))
            return
        if state == "off":
            self.trouble = f"Testbox {self.box.name} lost power while the order ran; check its fuse and its power switch."

    def _cycle(self) -> Event:
        if self.driver.power is None:
            self._last = InfraError(
                f"Testbox {self.box.name} does not return, and has no power switch; reset it by "
                "hand."
            )
            return Event.NO_POWER
        try:
            power_switch.cycle(self.driver.power)
        except InfraError as error:
            self._last = error
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
        """What the kernel under test printed, as far as it is worth keeping."""
        return console_log.listen(self._text(self._from), self.token).text[:CONSOLE_BYTES]

    def _times(self) -> Times:
        limits = self.request.limits
        # The network's quiet boot, too, is covered: without a console nothing else ends it.
        return Times(
            booting=limits.wall,
            running=limits.wall,
            home=self.driver.return_seconds,
            panic=float(self.driver.panic_seconds),
        )
