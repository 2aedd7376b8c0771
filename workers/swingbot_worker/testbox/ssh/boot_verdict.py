"""Judge a boot of a bare-metal testbox by its console and results. Pure."""

from __future__ import annotations

import re

from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_worker.testbox import console
from swingbot_worker.testbox.ssh.console_log import ConsoleReport
from swingbot_worker.testbox.verdict import BootStatus, Verdict

# With oops=panic every oops ends with this message; other panics have a different reason.
_OURS = re.compile(r"; Kernel panic - not syncing: Fatal exception$")


def judge(said: ConsoleReport, results: bool) -> Verdict | None:
    """Return the verdict, or None while the boot continues."""
    if told := console.judge(said.text):
        if told.status is BootStatus.PANICKED and told.reason and _OURS.search(told.reason):
            return Verdict(status=BootStatus.OOPSED, reason=_OURS.sub("", told.reason))
        return told if told.status is BootStatus.PANICKED or results or said.gone else None
    if results:
        return Verdict(status=BootStatus.UP)
    if said.no_card:
        return Verdict(
            status=BootStatus.HUNG,
            reason=(
                "the job ran, but the network of the kernel under test did not come up "
                f"({said.no_card})"
            ),
        )
    if said.gone:
        last = console.last_line(said.text)
        after = f"last on the console: {last}" if last else "the console is empty"
        when = "its results were out" if said.done else "the job was done"
        return Verdict(
            status=BootStatus.PANICKED,
            reason=f"the machine reset or powered off before {when}; {after}",
        )
    return None


def silent(said: ConsoleReport, seconds: float) -> str:
    """Return the reason of a hang."""
    last = console.last_line(said.text)
    when = "while the job ran" if said.up else "before the job began"
    return f"no sign of life for {seconds:.0f} s {when}; " + (
        f"last on the console: {last}" if last else "the console is empty"
    )


def never_began(name: str, driver: SshDriver) -> tuple[Verdict | None, str | None]:
    """Return (verdict, infrastructure failure) of a testbox that returned without any boot
    messages.
    """
    if driver.enter == "reboot":
        return None, (
            f"Testbox {name} rebooted into its idle system instead of the kernel under test: "
            "reboot_command does not select the next boot; "
            "try it by hand, and check that the firmware boots the kernel that it installs."
        )
    if driver.console is None:
        return Verdict(
            status=BootStatus.PANICKED,
            reason="the machine came back without results, and has no console to show why",
        ), None
    return Verdict(
        status=BootStatus.PANICKED,
        reason="the machine reset before the kernel under test printed anything",
    ), None
