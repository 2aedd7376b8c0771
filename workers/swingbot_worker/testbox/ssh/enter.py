"""Commands that leave the idle system, run on the testbox or on the controller. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from swingbot_jobs.testbox.ssh import SshDriver

# Runs a command in the background, so that it outlives the SSH connection that starts it.
_LATER = "nohup setsid sh -c {} >/dev/null 2>&1 </dev/null &"

# Exit statuses of a fenced script that did nothing: another command is under way, or a controller
# with a later lease was here.
BUSY, FENCED = 75, 76
# Seconds to wait for another command.
LOCK_SECONDS = 20
# The highest token is kept on a disk if the idle system has one, otherwise until it ends.
_FENCED_SCRIPT = r"""
command -v flock >/dev/null || { echo 'it has no program flock; install util-linux'; exit 1; }
fence=
for place in @PLACES@; do
	if mkdir -p "$place" 2>/dev/null && : 2>/dev/null >>"$place/lock"; then
		fence=$place
		break
	fi
done
[ -n "$fence" ] || { echo 'no directory for the token of the lease is writable: @PLACES@'; exit 1; }
exec 9>>"$fence/lock"
flock -w @WAIT@ 9 || { echo 'another command of a controller is under way'; exit @BUSY@; }
seen=$(cat "$fence/token" 2>/dev/null)
case $seen in '' | *[!0-9]*) seen=0 ;; esac
[ @TOKEN@ -ge "$seen" ] || { echo "$seen $fence/token"; exit @FENCED@; }
[ @TOKEN@ -eq "$seen" ] || {
	echo @TOKEN@ >"$fence/new" && sync "$fence/new" &&
		mv "$fence/new" "$fence/token" && sync "$fence"
} || { echo "$fence/token cannot be written"; exit 1; }
"""


def fenced(script: str, token: int, places: Sequence[str]) -> str:
    """Return `script` for the controller whose lease has `token`.

    It runs only if no greater token was seen in the first writable directory of `places`, and
    records its own. A lock is held until the last process of `script` has ended, or the machine has
    left the idle system: a later controller cannot come between the check and its effect.
    """
    values = {
        "@PLACES@": shlex.join(places),
        "@WAIT@": str(LOCK_SECONDS),
        "@BUSY@": str(BUSY),
        "@FENCED@": str(FENCED),
        "@TOKEN@": str(token),
    }
    check = _FENCED_SCRIPT
    for name, value in values.items():
        check = check.replace(name, value)
    return f"{check}{script}"


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
