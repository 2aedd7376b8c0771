"""What is run on a box, or on the controller, to leave the idle system: shell text and argument
lists. Pure.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from swingbot_jobs.testbox.ssh import SshDriver

# It has to outlive the SSH connection that starts it, and give that time to end.
_LATER = "nohup setsid sh -c {} >/dev/null 2>&1 </dev/null &"


def kexec_load(kernel: str, initrd: str, cmdline: str) -> str:
    """Load the kernel under test beside the running one, by whichever of the two system calls the
    idle kernel allows; then the files may go.
    """
    load = f"-l {shlex.quote(kernel)} --initrd={shlex.quote(initrd)} --command-line={shlex.quote(cmdline)}"
    return f"PATH=$PATH:/usr/sbin:/sbin; kexec -c {load} 2>/dev/null || kexec -s {load}"


def kexec_go(workspace: str) -> str:
    """Put the disks to rest and jump.

    If the jump fails, reset: a system with its disks at rest is of no use.
    """
    rest = (
        "sleep 1; sync; echo u >/proc/sysrq-trigger; sleep 1; kexec -e; echo b >/proc/sysrq-trigger"
    )
    return f"PATH=$PATH:/usr/sbin:/sbin; rm -rf {shlex.quote(workspace)}; {_LATER.format(shlex.quote(rest))}"


def reboot() -> str:
    """Reboot the system that answers, the polite way and, should that not be done after a minute,
    the other one.
    """
    rest = "sleep 1; systemctl reboot || reboot; sleep 60; sync; echo b >/proc/sysrq-trigger"
    return f"PATH=$PATH:/usr/sbin:/sbin; {_LATER.format(shlex.quote(rest))}"


def once(driver: SshDriver, kernel: str, initrd: str, cmdline: str) -> Sequence[str]:
    """The box's own command that makes the next boot one of the kernel under test, with its places
    filled in.
    """
    filled = []
    for word in driver.reboot_command:
        for place, value in (("{kernel}", kernel), ("{initrd}", initrd), ("{cmdline}", cmdline)):
            word = word.replace(place, value)
        filled.append(word)
    return filled


def marker(token: str) -> str:
    """Say something on the console of the idle system that we then look for."""
    return f"echo '<2>swingbot: marker {token}' >/dev/kmsg"
