"""What is looked at on a box before an order leaves its idle system, so that our own faults are
told as such while the box is safe.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from swingbot_jobs.testbox import tuning
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_jobs.testbox.tuning import Tuning
from swingbot_worker import InfraError, OrderError, process
from swingbot_worker.testbox.kernel import Kernel, machine_of
from swingbot_worker.testbox.ssh.guest import NetworkCard
from swingbot_worker.testbox.ssh.idle_system import IdleSystemReport, space_needed

# A clock that is further off was never set: what is dated by it, such as certificates and logs, is
# of no use.
CLOCK_SECONDS = 24 * 3600


def check(name: str, kernel: Kernel, driver: SshDriver, home: IdleSystemReport) -> None:
    """Raise InfraError, with what to do, if this order cannot leave this idle system; OrderError if
    no kernel like this one can, on this box.
    """
    for why in problems(name, driver, home, time.time()):
        raise InfraError(why)
    if why := other_machine(name, home, os.uname().machine):
        raise InfraError(why)
    machine = machine_of(kernel.image.read_bytes())
    if machine is not None and home["machine"] and machine != home["machine"]:
        raise OrderError(
            f"The kernel was built for {machine}, but testbox {name} is {home['machine']}; order "
            "the boot on another testbox."
        )
    if missing := kernel.lacks(driver.kconfig_needed):
        lines = ", ".join(f"CONFIG_{option}=y" for option in missing)
        raise OrderError(
            f"The kernel lacks what testbox {name} needs: {lines}; add them to the tree's kernel "
            "configuration."
        )


def other_machine(name: str, home: IdleSystemReport, here: str) -> str:
    """The sentence for a box of another architecture than `here`, whose programs make up the root
    file system; empty if it is the same.
    """
    if home["machine"] in ("", here):
        return ""
    return f"Testbox {name} is a machine of {home['machine']}, but its root file system is made of this host's programs for {here}; drive it from one like it."


def problems(name: str, driver: SshDriver, home: IdleSystemReport, now: float) -> list[str]:
    """Return the problems that prevent any order, each with its remedy. Pure."""
    found = []
    if home["uid"] != "0":
        found.append(
            f"{driver.user} is not root on testbox {name}, as the driver ssh requires; set "
            "ssh.user to root."
        )
    clock = home.number("clock")
    if clock is not None and abs(clock - now) > CLOCK_SECONDS:
        found.append(
            f"The clock of testbox {name} is {abs(clock - now) / 86400:.0f} days off; set it, and "
            "let it follow NTP (timedatectl set-ntp true)."
        )
    if driver.enter == "kexec":
        found += _kexec_problems(name, home)
    if (
        driver.results == "network"
        and driver.network.how == "idle"
        and not (home["mac"] and home["address"])
    ):
        found.append(
            f"The network card of testbox {name} cannot be determined from its idle system; set "
            "ssh.network to its address."
        )
    return found


def _kexec_problems(name: str, home: IdleSystemReport) -> list[str]:
    if not home["kexec"]:
        return [
            f"kexec is not on testbox {name}; apt-get install kexec-tools there, or set ssh.enter "
            "to reboot."
        ]
    if home["lockdown"] not in ("", "none"):
        return [
            f"Testbox {name} is locked down ({home['lockdown']}) and takes no unsigned kernel; "
            "switch Secure Boot off, or set ssh.enter to reboot."
        ]
    if home["kexec_disabled"] == "1":
        return [
            f"kernel.kexec_load_disabled is 1 on testbox {name}; remove that from its sysctl "
            "settings and reboot it."
        ]
    return []


def check_space(
    name: str, home: IdleSystemReport, kernel: int, initrd: int, driver: SshDriver
) -> None:
    """Raise InfraError if kernel and initramfs (bytes) do not fit into the box's memory."""
    files, memory = space_needed(kernel, initrd)
    for what, there, needed in (
        (driver.workspace, home.number("space_kb"), files),
        ("its memory", home.number("available_kb"), files + memory),
    ):
        if there is not None and there < needed:
            raise InfraError(
                f"Testbox {name} has {there >> 10} MiB free in {what}, but {needed >> 10} MiB are "
                "needed; free some, or set ssh.workspace."
            )


def check_tuning(name: str, wanted: Tuning, printed: str) -> None:
    """Raise InfraError if the box's own system is not kept quiet as its file demands; `printed`:
    what the probe printed.
    """
    wrong = [finding for finding in tuning.findings(wanted, printed) if not finding.ok]
    if wrong:
        told = "; ".join(f"{finding.what}: {finding.found}" for finding in wrong[:3])
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise InfraError(
            f"The idle system of testbox {name} is not tuned as {wanted.name} says: {told}{more}; "
            f"{wrong[0].do}."
        )


def card(driver: SshDriver, home: IdleSystemReport) -> NetworkCard | None:
    """The card that results leave by; None where they leave by the console."""
    if driver.results != "network":
        return None
    if driver.network.how == "dhcp":
        return NetworkCard(mac=home["mac"], address="dhcp")
    if driver.network.how == "static":
        return NetworkCard(
            mac=home["mac"], address=driver.network.address, gateway=driver.network.gateway
        )
    return NetworkCard(mac=home["mac"], address=home["address"], gateway=home["gateway"])


def dead_console(name: str, errors: Path) -> str:
    """The sentence for a console on which the idle system was not heard."""
    said = errors.read_text(errors="replace").strip().splitlines() if errors.exists() else []
    why = f" (its command said: {said[-1][:200]})" if said else ""
    return (
        f"The console of testbox {name} does not show what its kernel prints{why}; see to "
        "ssh.console, and that the idle system's command line has the "
        "same console= as the testbox's cmdline."
    )


def run_here(argv: Sequence[str]) -> None:
    """Run the operator's command on this host."""
    done = process.output(list(argv), timeout=180.0)
    if done.rc != 0 or done.timed_out:
        last = next(
            (line.strip() for line in reversed(done.text.splitlines()) if line.strip()),
            "it said nothing",
        )
        raise InfraError(f"reboot_command ({argv[0]}) failed with status {done.rc}: {last[:300]}")


def quoted(argv: Sequence[str]) -> str:
    """The operator's command as the text that a shell on the box takes."""
    return f"PATH=$PATH:/usr/sbin:/sbin; {shlex.join(argv)}"
