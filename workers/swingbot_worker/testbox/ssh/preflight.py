"""Checks that run before an order leaves the idle system of a testbox.

They report infrastructure failures while the testbox is still in a safe state.
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
from swingbot_worker.testbox.console import last_line
from swingbot_worker.testbox.kernel import Kernel, machine_of
from swingbot_worker.testbox.ssh.guest import NetworkCard
from swingbot_worker.testbox.ssh.idle_system import IdleSystemReport, space_needed

# A clock with a larger error was never set, and breaks certificates and log timestamps.
CLOCK_SECONDS = 24 * 3600


def check(name: str, kernel: Kernel, driver: SshDriver, home: IdleSystemReport) -> None:
    """Check that `kernel` can be booted from the idle system `home`.

    Raises InfraError with the remedy if the testbox is not ready, and OrderError if this kernel
    cannot run on the testbox at all.
    """
    for problem in problems(name, driver, home, time.time()):
        raise InfraError(problem)
    if problem := other_machine(name, home, os.uname().machine):
        raise InfraError(problem)
    machine = machine_of(kernel.image.read_bytes())
    if machine is not None and home["machine"] and machine != home["machine"]:
        raise OrderError(
            f"The kernel was built for {machine}, but testbox {name} is {home['machine']}; order "
            "the boot on another testbox."
        )
    kernel.refuse_lacking(driver.kconfig_needed, f"testbox {name}")


def other_machine(name: str, home: IdleSystemReport, host: str) -> str:
    """Return the error if the architecture of the testbox differs from that of this `host`.

    Returns the empty string if they match. The root file system contains programs of this host.
    """
    if home["machine"] in ("", host):
        return ""
    return (
        f"Testbox {name} has the architecture {home['machine']}, but its root file system contains "
        f"programs of this host, which is {host}; use a controller with the architecture of the "
        "testbox."
    )


def problems(name: str, driver: SshDriver, home: IdleSystemReport, now: float) -> list[str]:
    """Return the problems that prevent any order, each with its remedy. Pure."""
    sentences = []
    if home["uid"] != "0":
        sentences.append(
            f"{driver.user} is not root on testbox {name}, as the driver ssh requires; set "
            "ssh.user to root."
        )
    clock = home.number("clock")
    if clock is not None and abs(clock - now) > CLOCK_SECONDS:
        sentences.append(
            f"The clock of testbox {name} is {abs(clock - now) / 86400:.0f} days off; set it, and "
            "let it follow NTP (timedatectl set-ntp true)."
        )
    if driver.enter == "kexec":
        sentences += _kexec_problems(name, home)
    if (
        driver.results == "network"
        and driver.network.how == "idle"
        and not (home["mac"] and home["address"])
    ):
        sentences.append(
            f"The network card of testbox {name} cannot be determined from its idle system; set "
            "ssh.network to its address."
        )
    return sentences


def _kexec_problems(name: str, home: IdleSystemReport) -> list[str]:
    if not home["kexec"]:
        return [
            f"Testbox {name} has no kexec command; run apt-get install kexec-tools on it, or set "
            "ssh.enter to reboot."
        ]
    if home["lockdown"] not in ("", "none"):
        return [
            f"Testbox {name} is locked down ({home['lockdown']}) and rejects unsigned kernels; "
            "disable Secure Boot, or set ssh.enter to reboot."
        ]
    if home["kexec_disabled"] == "1":
        return [
            f"kernel.kexec_load_disabled is 1 on testbox {name}; remove it from the sysctl "
            "settings and reboot the testbox."
        ]
    return []


def check_space(
    name: str, home: IdleSystemReport, kernel: int, initrd: int, driver: SshDriver
) -> None:
    """Raise InfraError if kernel and initramfs (bytes) do not fit into the testbox's memory."""
    files, memory = space_needed(kernel, initrd)
    for what, free, needed in (
        (driver.workspace, home.number("space_kb"), files),
        ("its memory", home.number("available_kb"), files + memory),
    ):
        if free is not None and free < needed:
            raise InfraError(
                f"Testbox {name} has {free >> 10} MiB free in {what}, but {needed >> 10} MiB are "
                "needed; free some, or set ssh.workspace."
            )


def check_tuning(name: str, wanted: Tuning, printed: str) -> None:
    """Raise InfraError if the idle system does not match the tuning list `wanted`.

    `printed` is the output of the tuning probe.
    """
    failures = [finding for finding in tuning.findings(wanted, printed) if not finding.ok]
    if failures:
        details = "; ".join(f"{finding.what}: {finding.found}" for finding in failures[:3])
        more = f" and {len(failures) - 3} more" if len(failures) > 3 else ""
        raise InfraError(
            f"The idle system of testbox {name} does not match the tuning list {wanted.name}: "
            f"{details}{more}; {failures[0].do}."
        )


def card(driver: SshDriver, home: IdleSystemReport) -> NetworkCard | None:
    """Return the network card that sends the results; None if the console sends them."""
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
    """Return the error for a console that does not show the test line of the idle system.

    `errors` is the stderr file of the console command.
    """
    lines = errors.read_text(errors="replace").strip().splitlines() if errors.exists() else []
    why = f" (its command reported: {lines[-1][:200]})" if lines else ""
    return (
        f"The console of testbox {name} does not show kernel messages{why}; check ssh.console, "
        "and that the command line of the idle system has the same console= parameter as "
        "cmdline in the testbox file."
    )


def run_here(argv: Sequence[str]) -> None:
    """Run `reboot_command` on this host. Raises InfraError if it fails."""
    done = process.output(list(argv), timeout=180.0)
    if done.rc != 0 or done.timed_out:
        last = last_line(done.text) or "it printed nothing"
        raise InfraError(f"reboot_command ({argv[0]}) failed with status {done.rc}: {last}")


def quoted(argv: Sequence[str]) -> str:
    """Return `reboot_command` as a script for the shell of the testbox."""
    return f"PATH=$PATH:/usr/sbin:/sbin; {shlex.join(argv)}"
