"""Judge a boot of a bare-metal testbox by its console and results. Pure."""

from __future__ import annotations

import re

from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_worker.testbox import console
from swingbot_worker.testbox.ssh.console_log import ConsoleReport
from swingbot_worker.testbox.verdict import BootStatus, Verdict

# With oops=panic every oops ends with this message; other panics have a different reason.
_OOPS_PANIC = re.compile(r"; Kernel panic - not syncing: Fatal exception$")


def judge(report: ConsoleReport, results: bool) -> Verdict | None:
    """Return the verdict, or None while the boot continues.

    `results` is True when the results have arrived.
    """
    if verdict := console.judge(report.text):
        panicked = verdict.status is BootStatus.PANICKED
        if panicked and verdict.reason and _OOPS_PANIC.search(verdict.reason):
            return Verdict(status=BootStatus.OOPSED, reason=_OOPS_PANIC.sub("", verdict.reason))
        return verdict if panicked or results or report.gone else None
    if results:
        return Verdict(status=BootStatus.UP)
    if report.no_card:
        return Verdict(
            status=BootStatus.HUNG,
            reason=(
                "the job ran, but the network of the kernel under test did not come up "
                f"({report.no_card})"
            ),
        )
    if report.gone:
        last = console.last_line(report.text)
        after = f"last on the console: {last}" if last else "the console is empty"
        when = "all results were sent" if report.done else "the job was done"
        return Verdict(
            status=BootStatus.PANICKED,
            reason=f"the machine reset or powered off before {when}; {after}",
        )
    return None


def silent(report: ConsoleReport, seconds: float) -> str:
    """Return the reason for a hang after `seconds` without console output."""
    last = console.last_line(report.text)
    when = "while the job ran" if report.up else "before the job began"
    return f"no sign of life for {seconds:.0f} s {when}; " + (
        f"last on the console: {last}" if last else "the console is empty"
    )


def never_began(name: str, driver: SshDriver) -> tuple[Verdict | None, str | None]:
    """Return (verdict, infrastructure failure) of a testbox that returned without boot messages.

    Exactly one of them is None.
    """
    if driver.enter == "reboot":
        return None, (
            f"Testbox {name} rebooted into its idle system instead of the kernel under test: "
            "reboot_command does not select the next boot; run it by hand, and check that the "
            "firmware boots the kernel that the command installs."
        )
    if driver.console is None:
        return Verdict(
            status=BootStatus.PANICKED,
            reason="the machine rebooted without sending results, and has no console to show why",
        ), None
    return Verdict(
        status=BootStatus.PANICKED,
        reason="the machine reset before the kernel under test printed anything",
    ), None
