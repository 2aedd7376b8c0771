"""The driver `ssh`: a bare-metal machine that idles in its own system and is driven from a
controller host.

Its file describes the machine under `ssh:`, which is read strictly, like the rest of the file.
Secrets stay in separate files: the keys name paths. Commands are lists of words and never pass
through a shell on the controller.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from swingbot_jobs.testbox.table import StrictTable

ENTER: Final = ("kexec", "reboot")
WHERE: Final = ("testbox", "controller")
RESULTS: Final = ("console", "network")
# Placeholders in the words of a reboot command.
PLACES: Final = ("{kernel}", "{initrd}", "{cmdline}")
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}")
_USER: Final = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_PATH: Final = re.compile(
    r"(?:/[A-Za-z0-9._+@:-]+)+"
)  # it is used in a shell script on the testbox
_OPTION: Final = re.compile(r"(?:CONFIG_)?([A-Z0-9_]{1,100})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """Source of the machine's console: a command that prints it continuously,
    or a serial device of the controller.
    """

    command: tuple[str, ...] = ()
    device: str = ""
    baud: int = 115200


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Commands for the power switch.

    `cycle` may be missing if `on` and `off` exist, `status` if the switch cannot report it.
    """

    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    cycle: tuple[str, ...] = ()
    status: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Source of the address of the kernel under test if results are sent over the network:
    `idle` uses the idle system's address.
    """

    how: str = "idle"  # idle, dhcp or static
    address: str = ""  # static: with prefix length, such as 192.0.2.17/24
    gateway: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SshDriver:
    """Access to the machine, and commands that drive it. Times in seconds of wall clock."""

    name: ClassVar[str] = "ssh"
    virtual: ClassVar[bool] = False

    host: str
    port: int = 22
    user: str = "root"
    key: str  # path of the private key on the controller
    known_hosts: str  # path of a file with the testbox's host key
    enter: str
    reboot_command: tuple[str, ...] = ()  # boots the kernel under test once, at the next reboot
    reboot_where: str = "testbox"
    console: Console | None = None
    results: str = "console"
    power: Power | None = None
    panic_seconds: int = 10  # a panicked kernel reboots after this
    return_seconds: float = 300.0  # from reset or power-on to SSH in the idle system, worst case
    workspace: str = "/run/swingbot"
    kconfig_needed: tuple[str, ...] = ()
    network: Address = field(default_factory=Address)
    # pattern of `uname -r` in the idle system, with * and ?; empty: not checked
    idle_release: str = ""

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


def parse(table: StrictTable) -> SshDriver:
    """Read the table `ssh` of a testbox file. Raises TestboxError with file and line."""
    default = SshDriver(host="", key="", known_hosts="", enter="")
    console = _console(table)
    driver = SshDriver(
        host=_matching(table, "host", _HOST, "a host name or an address"),
        port=table.whole("port", default.port, at_least=1),
        user=_matching(table, "user", _USER, "a user name", default.user),
        key=_path(table, "key"),
        known_hosts=_path(table, "known_hosts"),
        enter=_one_of(table, "enter", ENTER),
        reboot_command=_words(table, "reboot_command", must=False),
        reboot_where=_one_of(table, "reboot_where", WHERE, default.reboot_where),
        console=console,
        results=_one_of(table, "results", RESULTS, "console" if console else "network"),
        power=_power(table),
        panic_seconds=table.whole("panic_seconds", default.panic_seconds, at_least=1),
        return_seconds=table.number("return_seconds", default.return_seconds),
        workspace=_path(table, "workspace", default.workspace),
        kconfig_needed=parse_options(table),
        network=_network(table),
        idle_release=table.text("idle_release", ""),
    )
    table.done()
    _check(driver, table)
    return driver


def _check(driver: SshDriver, table: StrictTable) -> None:
    if driver.port > 65535:
        table.refuse("port", f"port is {driver.port}, must be at most 65535")
    if driver.enter == "reboot" and not driver.reboot_command:
        table.refuse(
            "enter",
            (
                "enter is reboot, which needs reboot_command: a command that makes the next boot"
                " use {kernel}, {initrd} and {cmdline}"
            ),
        )
    text = " ".join(driver.reboot_command)
    missing = [place for place in PLACES if place not in text]
    if driver.reboot_command and missing:
        table.refuse(
            "reboot_command",
            (
                f"reboot_command lacks {', '.join(missing)}; these placeholders are replaced by the"
                " files and words of the next boot"
            ),
        )
    if driver.results == "console" and driver.console is None:
        table.refuse(
            "results",
            "results is console, but console is none; set console, or use results: network",
        )


def _console(table: StrictTable) -> Console | None:
    if table.take("console") == "none":
        return None
    inner = table.table("console")
    console = Console(
        command=_words(inner, "command", must=False),
        device=_path(inner, "device") if inner.has("device") else "",
        baud=inner.whole("baud", 115200, at_least=50),
    )
    inner.done()
    if bool(console.command) == bool(console.device):
        table.refuse(
            "console",
            (
                "console must be none, or have one of command (words that print the console) and"
                " device (a serial line of this host)"
            ),
        )
    return console


def _power(table: StrictTable) -> Power | None:
    if table.take("power") == "none":
        return None
    inner = table.table("power")
    power = Power(
        **{name: _words(inner, name, must=False) for name in ("on", "off", "cycle", "status")}
    )
    inner.done()
    if not power.cycle and not (power.on and power.off):
        table.refuse("power", "power must be none, or have cycle, or both on and off")
    return power


def _network(table: StrictTable) -> Address:
    if not table.has("network") or table.take("network") in ("idle", "dhcp"):
        return Address(how=str(table.take("network", "idle")))
    inner = table.table("network")
    address = Address(
        how="static", address=inner.text("address"), gateway=inner.text("gateway", "")
    )
    inner.done()
    try:
        ipaddress.ip_interface(address.address)
        if "/" not in address.address:
            raise ValueError
        ipaddress.ip_address(address.gateway or "0.0.0.0")
    except ValueError:
        table.refuse(
            "network",
            (
                "network must be idle, dhcp, or have an address such as 192.0.2.17/24 and"
                " optionally a gateway such as 192.0.2.1"
            ),
        )
    return address


def parse_options(table: StrictTable) -> tuple[str, ...]:
    """Return the list `kconfig_needed`: options that must be built in, without CONFIG_."""
    given = table.take("kconfig_needed", [])
    if not isinstance(given, list):
        table.refuse(
            "kconfig_needed", ("kconfig_needed must be a list of options such as VIRTIO_NET")
        )
    matches = [_OPTION.fullmatch(option) if isinstance(option, str) else None for option in given]
    if None in matches:
        table.refuse(
            "kconfig_needed",
            (
                f"kconfig_needed has {given[matches.index(None)]!r}, must be options such as"
                " VIRTIO_NET; each must be built in (=y)"
            ),
        )
    return tuple(match[1] for match in matches if match)


def _words(table: StrictTable, key: str, *, must: bool) -> tuple[str, ...]:
    if not must and not table.has(key):
        table.take(key, ())
        return ()
    words = table.take(key)
    if (
        not isinstance(words, list)
        or not words
        or not all(isinstance(word, str) and word for word in words)
    ):
        table.refuse(key, f"{key} must be a list of words, all strings: no shell splits it")
    return tuple(words)


def _path(table: StrictTable, key: str, default: str | None = None) -> str:
    path = table.text(key, default)
    if not _PATH.fullmatch(path) or "/../" in f"{path}/":
        table.refuse(
            key,
            (
                f"{key} is {path!r}, must be an absolute path of letters, digits and '/', '.', '_',"
                " '-', '+', '@', ':'"
            ),
        )
    return path


def _one_of(table: StrictTable, key: str, known: Sequence[str], default: str | None = None) -> str:
    word = table.text(key, default)
    if word not in known:
        table.refuse(key, f"{key} is {word!r}; known are {', '.join(known)}")
    return word


def _matching(
    table: StrictTable, key: str, pattern: re.Pattern[str], what: str, default: str | None = None
) -> str:
    text = table.text(key, default)
    if not pattern.fullmatch(text):
        table.refuse(key, f"{key} is {text!r}, must be {what}")
    return text
