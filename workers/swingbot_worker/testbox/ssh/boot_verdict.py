"""What a boot of a bare-metal testbox came to, from what its console said and whether its results came. Pure; the words are the qemu driver's."""

from __future__ import annotations

import re

from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_worker.testbox import console
from swingbot_worker.testbox.ssh.console_log import ConsoleReport
from swingbot_worker.testbox.verdict import BootStatus, Verdict

# Our oops=panic makes every oops end in this; a panic of the kernel's own has another word behind it.
_OURS = re.compile(r"; Kernel panic - not syncing: Fatal exception$")


def judge(said: ConsoleReport, results: bool) -> Verdict | None:
    """The verdict once there is one: panicked or oopsed, up with results, or reset before the job was done."""
    if told := console.judge(said.text):
        if told.status is BootStatus.PANICKED and told.reason and _OURS.search(told.reason):
            return Verdict(status=BootStatus.OOPSED, reason=_OURS.sub("", told.reason))
        return told if told.status is BootStatus.PANICKED or results or said.gone else None
    if results:
        return Verdict(status=BootStatus.UP)
    if said.no_card:
        return Verdict(
            status=BootStatus.HUNG,
            reason=f"the job ran, but the network of the kernel under test did not come up ({said.no_card})",
        )
    if said.gone:
        last = console.last_line(said.text)
        after = f"last on the console: {last}" if last else "the console is empty"
        when = "its results were out" if said.done else "the job was done"
        return Verdict(
            status=BootStatus.PANICKED,
            reason=f"the machine reset or switched itself off before {when}; {after}",
        )
    return None


def silent(said: ConsoleReport, seconds: float) -> str:
    """The reason of a hang."""
    last = console.last_line(said.text)
    when = "while the job ran" if said.up else "before the job began"
    return f"no sign of life for {seconds:.0f} s {when}; " + (
        f"last on the console: {last}" if last else "the console is empty"
    )


def never_began(name: str, driver: SshDriver) -> tuple[Verdict | None, str | None]:
    """(verdict, fault of ours) of a box that is back in its idle system without a word of the kernel under test."""
    if driver.enter == "reboot":
        return None, (
            f"Testbox {name} rebooted into its idle system instead of the kernel under test: reboot_command does not decide what boots next; "
            "try it by hand, and see that the firmware starts from where it puts the kernel."
        )
    if driver.console is None:
        return Verdict(
            status=BootStatus.PANICKED,
            reason="the machine came back without results; it has no console that could tell more",
        ), None
    return Verdict(
        status=BootStatus.PANICKED,
        reason="the machine reset before the kernel under test printed a word",
    ), None
