"""Commands that leave the idle system, run on the testbox or on the controller. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from swingbot_jobs.testbox.ssh import SshDriver

# Runs a command in the background, so that it outlives the SSH connection that starts it.
_LATER = "nohup setsid sh -c {} >/dev/null 2>&1 </dev/null &"


def kexec_load(kernel: str, initrd: str, cmdline: str) -> str:
    """Return the script that loads the kernel under test.

    It tries both kexec system calls, because the idle kernel may allow only one of them. The files
    can be removed afterwards.
    """
    load = (
        f"-l {shlex.quote(kernel)} --initrd={shlex.quote(initrd)} "
        f"--command-line={shlex.quote(cmdline)}"
    )
    return f"PATH=$PATH:/usr/sbin:/sbin; kexec -c {load} 2>/dev/null || kexec -s {load}"


def kexec_go(workspace: str) -> str:
    """Return the script that remounts all file systems read-only and executes the loaded kernel.

    If kexec fails, the script resets the machine, because a system with read-only disks is not
    usable.
    """
    command = (
        "sleep 1; sync; echo u >/proc/sysrq-trigger; sleep 1; kexec -e; echo b >/proc/sysrq-trigger"
    )
    return (
        f"PATH=$PATH:/usr/sbin:/sbin; rm -rf {shlex.quote(workspace)}; "
        f"{_LATER.format(shlex.quote(command))}"
    )


def reboot() -> str:
    """Return the script that reboots the running system, by force after a minute."""
    command = "sleep 1; systemctl reboot || reboot; sleep 60; sync; echo b >/proc/sysrq-trigger"
    return f"PATH=$PATH:/usr/sbin:/sbin; {_LATER.format(shlex.quote(command))}"


def once(driver: SshDriver, kernel: str, initrd: str, cmdline: str) -> Sequence[str]:
    """Return `reboot_command`, which selects the kernel under test for the next boot only.

    Replaces its placeholders {kernel}, {initrd} and {cmdline}.
    """
    argv = []
    for word in driver.reboot_command:
        for placeholder, value in (
            ("{kernel}", kernel),
            ("{initrd}", initrd),
            ("{cmdline}", cmdline),
        ):
            word = word.replace(placeholder, value)
        argv.append(word)
    return argv


def marker(token: str) -> str:
    """Return the script that prints a test line on the console of the idle system."""
    return f"echo '<2>swingbot: marker {token}' >/dev/kmsg"
