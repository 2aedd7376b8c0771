"""The driver `ssh`: a bare-metal machine that idles in its own system and is driven from a
controller host.

Its file describes the machine under `ssh:`, which is read strictly, like the rest of the file.
Secrets stay in separate files: the keys name paths. Commands are lists of words and never pass
through a shell on the controller.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final

from swingbot_jobs.codec import Required, at_least, at_most, matches, one_of
from swingbot_jobs.contract.kconfig import OPTION, bare
from swingbot_jobs.contract.orders import SCREEN
from swingbot_jobs.testbox.table import AbsolutePath, Seconds, read, refuse, words
from swingbot_jobs.yaml_lines import LocatedValue

ENTER: Final = ("kexec", "reboot")
WHERE: Final = ("testbox", "controller")
RESULTS: Final = ("console", "network")
# Placeholders in the words of a reboot command.
PLACES: Final = ("{kernel}", "{initrd}", "{cmdline}")
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}")
_USER: Final = re.compile(r"[a-z_][a-z0-9_-]{0,31}")


Words = Annotated[tuple[str, ...], words]
Options = tuple[
    Annotated[str, matches(OPTION, "an option such as VIRTIO_NET, which must be built in (=y)")],
    ...,
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """Source of the machine's console: a command that prints it continuously,
    or a serial device of the controller.

    `end` ends a session that the command has left, or an earlier one that is still active.
    """

    command: Words = ()
    end: Words = ()
    device: AbsolutePath = ""
    baud: Annotated[int, at_least(50)] = 115200


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Commands for the power switch.

    `cycle` may be missing if `on` and `off` exist, `status` if the switch cannot report it.
    """

    on: Words = ()
    off: Words = ()
    cycle: Words = ()
    status: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Source of the address of the kernel under test if results are sent over the network:
    `idle` uses the idle system's address.
    """

    how: str = "idle"  # idle, dhcp or static
    address: str = ""  # static: with prefix length, such as 192.0.2.17/24
    gateway: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Static:
    """The address in a testbox file."""

    address: str
    gateway: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SshDriver:
    """Access to the machine, and commands that drive it. Times in seconds of wall clock."""

    name: ClassVar[str] = "ssh"
    virtual: ClassVar[bool] = False

    host: Annotated[str, matches(_HOST, "a host name or an address")]
    port: Annotated[int, at_least(1), at_most(65535)] = 22
    user: Annotated[str, matches(_USER, "a user name")] = "root"
    key: AbsolutePath  # of the private key on the controller
    known_hosts: AbsolutePath  # of a file with the testbox's host key
    enter: Annotated[str, one_of(*ENTER)]
    reboot_command: Words = ()  # boots the kernel under test once, at the next reboot
    reboot_where: Annotated[str, one_of(*WHERE)] = "testbox"
    console: Required[Console | None] = None
    results: Annotated[str, one_of(*RESULTS)] = "console"
    power: Required[Power | None] = None
    inventory: Words = ()  # prints what the BMC reports of the hardware, in lines `name: value`
    panic_seconds: Annotated[int, at_least(1)] = 10  # a panicked kernel reboots after this
    return_seconds: Seconds = 300.0  # from reset or power-on to SSH in the idle system, worst case
    workspace: AbsolutePath = "/run/swingbot"
    kconfig_needed: Options = ()
    network: Address = field(default_factory=Address)
    # pattern of `uname -r` in the idle system, with * and ?; empty: not checked
    idle_release: str = ""

    @property
    def takes_turns(self) -> bool:
        """Return whether boots of a long screening can be entered in both ways."""
        return self.enter == "kexec" and bool(self.reboot_command)

    def for_boot(self, k: int, purpose: str) -> SshDriver:
        """Return the driver of the k-th boot for this purpose.

        Boots of a long screening take turns, which mirror: twice kexec, four times reboot, twice
        kexec. Neither a drift over the night nor the order within a pair favours one of them.
        """
        if purpose == SCREEN and self.takes_turns and k // 2 % 4 in (1, 2):
            return replace(self, enter="reboot")
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the public facts: neither addresses nor the words of commands,
        which may name other machines and files.
        """
        kind = "none" if self.console is None else "command" if self.console.command else "device"
        shown = {
            name: getattr(self, name)
            for name in ("enter", "results", "panic_seconds", "return_seconds", "idle_release")
        }
        return shown | {
            "console": kind,
            "power": self.power is not None,
            "kconfig_needed": list(self.kconfig_needed),
        }


def parse(table: LocatedValue) -> SshDriver:
    """Read the table `ssh` of a testbox file. Raises TestboxError with file and line."""
    given: dict[str, Any] = dict(table.table or {})
    for key in ("console", "power"):
        if key in given and given[key].text == "none":
            given[key] = None
    network = _network(table, given.pop("network", None))
    driver = read(SshDriver, replace(table, content=given), "ssh")
    driver = replace(driver, network=network, kconfig_needed=bare(driver.kconfig_needed))
    if "results" not in given and driver.console is None:
        driver = replace(driver, results="network")
    _check(driver, table)
    return driver


def _check(driver: SshDriver, table: LocatedValue) -> None:
    console, power = driver.console, driver.power
    if driver.enter == "reboot" and not driver.reboot_command:
        refuse(
            table,
            "enter is reboot, which needs reboot_command: a command that makes the next boot"
            " use {kernel}, {initrd} and {cmdline}",
            "enter",
        )
    text = " ".join(driver.reboot_command)
    missing = [place for place in PLACES if place not in text]
    if driver.reboot_command and missing:
        refuse(
            table,
            f"reboot_command lacks {', '.join(missing)}; these placeholders are replaced by the"
            " files and words of the next boot",
            "reboot_command",
        )
    if console is not None and bool(console.command) == bool(console.device):
        refuse(
            table,
            "console must be none, or have one of command (words that print the console) and"
            " device (a serial line of this host)",
            "console",
        )
    if console is not None and console.end and not console.command:
        refuse(
            table, "console.end ends the session of console.command, which is missing", "console"
        )
    if driver.results == "console" and console is None:
        refuse(
            table,
            "results is console, but console is none; set console, or use results: network",
            "results",
        )
    if power is not None and not power.cycle and not (power.on and power.off):
        refuse(table, "power must be none, or have cycle, or both on and off", "power")


def _network(table: LocatedValue, given: LocatedValue | None) -> Address:
    if given is None or given.text in ("idle", "dhcp"):
        return Address(how=given.text if given and given.text else "idle")
    static = read(_Static, given, "ssh.network")
    try:
        ipaddress.ip_interface(static.address)
        if "/" not in static.address:
            raise ValueError
        ipaddress.ip_address(static.gateway or "0.0.0.0")
    except ValueError:
        refuse(
            table,
            "network must be idle, dhcp, or have an address such as 192.0.2.17/24 and"
            " optionally a gateway such as 192.0.2.1",
            "network",
        )
    return Address(how="static", address=static.address, gateway=static.gateway)
