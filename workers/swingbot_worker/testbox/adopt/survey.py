"""Survey a machine through its idle system, by one script that runs over SSH. Pure.

The script only reads. What it prints is untrusted: it is parsed under limits, and what is malformed
is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from swingbot_jobs.contract import fact_sheet, facts
from swingbot_jobs.contract.facts import Value
from swingbot_jobs.printable import printable
from swingbot_worker import InfraError
from swingbot_worker.testbox.ssh import idle_system
from swingbot_worker.testbox.ssh.idle_system import IdleSystemReport

# Baud of other lines than consoles, and of a console without options (Linux,
# Documentation/admin-guide/serial-console.rst).
SPEED: Final = 115200
DEFAULT_SPEED: Final = 9600
# Serial lines that are tried.
LINES: Final = 16
# /proc/tty/driver/serial has a line for each UART that could be; `unknown` means none. ipmitool on
# the machine asks its own BMC, without a password.
_SCRIPT: Final = r"""
say present "$(ls -d /sys/devices/system/cpu/cpu[0-9]* 2>/dev/null | wc -l)"
say lines "$(awk '/^[0-9]+: uart:/ && $2 != "uart:unknown" { sub(":", "", $1); print "ttyS" $1 }' \
	/proc/tty/driver/serial 2>/dev/null | tr '\n' ' ')"
say bmc_device "$(ls /sys/class/ipmi 2>/dev/null | head -n 1)"
say bmc_tool "$(command -v ipmitool)"
say bmc_address "$(timeout 30 ipmitool lan print 2>/dev/null |
	sed -n 's/^IP Address  *: *\([0-9.]*\)$/\1/p' | head -n 1)"
awk -F= 'function out() { if (kind != "") print "device " kind " " id " " driver }
	FNR == 1 { out(); kind = ""; id = driver = "-" }
	$1 == "DRIVER" { driver = $2 } $1 == "PCI_CLASS" { kind = $2 } $1 == "PCI_ID" { id = $2 }
	END { out() }' /sys/bus/pci/devices/*/uevent /dev/null 2>/dev/null
@FACTS@
say surveyed all
"""
_DEVICE: Final = re.compile(r"device ([0-9A-F]{5,6}) ([0-9A-F:]{9}|-) ([A-Za-z0-9_.-]{1,60})")
_LINE: Final = re.compile(r"tty[A-Za-z]{1,6}[0-9]{1,3}|hvc[0-9]{1,2}")
_OPTIONS: Final = re.compile(r"[0-9]{2,7}[a-z0-9]{0,4}")
_ADDRESS: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
# Base classes of PCI devices (include/linux/pci_ids.h)
STORAGE, NETWORK = 0x01, 0x02


@dataclass(frozen=True, slots=True, kw_only=True)
class PciDevice:
    """A device of the machine, and the driver of the idle system for it; empty if it has none."""

    base_class: int
    id: str  # vendor:device, hexadecimal
    driver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSurvey:
    """What the idle system says about its machine.

    `facts` are those that boots have, by their names in jobs/schema/facts.yaml.
    """

    home: IdleSystemReport
    facts: Mapping[str, Value]
    devices: tuple[PciDevice, ...]

    def number(self, name: str) -> int:
        """Return a fact as a number; 0 if it is not known."""
        value = self.facts.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    def text(self, name: str) -> str:
        """Return a fact as text; empty if it is not known."""
        value = self.facts.get(name)
        return "" if value is None else str(value)

    @property
    def consoles(self) -> dict[str, str]:
        """Serial lines that are consoles of the idle system, in order, with their options on its
        command line: `115200n8`, empty for the kernel's default.
        """
        words = [word[8:] for word in self.home["cmdline"].split() if word.startswith("console=")]
        named = (word.partition(",") for word in words)
        return {
            line: options if _OPTIONS.fullmatch(options) else ""
            for line, _, options in named
            if _LINE.fullmatch(line)
        }

    @property
    def console(self) -> str:
        """The last of these consoles; empty if there is none."""
        return next(reversed(self.consoles), "")

    @property
    def lines(self) -> tuple[str, ...]:
        """Serial lines: those that are its console, and the others that it has."""
        every = dict.fromkeys([*self.consoles, *self.home["lines"].split()])
        return tuple(line for line in every if _LINE.fullmatch(line))[:LINES]

    def options(self, line: str) -> str:
        """Return the options of a line as a console: ours if the idle system has none there."""
        return self.consoles.get(line, f"{SPEED}n8")

    @property
    def speed(self) -> int:
        """Baud of the console of the idle system, else that at which lines are written to."""
        digits = re.match(r"[0-9]+", self.options(self.console))
        return int(digits[0]) if digits else DEFAULT_SPEED

    @property
    def bmc_address(self) -> str:
        """The address of its BMC in the network; empty if it is not known."""
        address = self.home["bmc_address"]
        return address if _ADDRESS.fullmatch(address) and address != "0.0.0.0" else ""

    @property
    def card_driver(self) -> str:
        """The driver of the card that the controller reaches; empty if it is not known."""
        return self._cards.get(self.home["card"], "")

    @property
    def _cards(self) -> dict[str, str]:
        """The drivers of its network cards, by card."""
        cards = (card.partition(": ") for card in self.text("nic_driver").split(", "))
        return {card: driver for card, _, driver in cards}

    def drivers(self, base_class: int) -> tuple[str, ...]:
        """Return the drivers of its devices of a class; of virtio devices their own."""
        names = [one.driver for one in self.devices if one.base_class == base_class]
        if base_class == NETWORK:
            names += self._cards.values()
        return tuple(dict.fromkeys(name for name in names if name and name != "virtio-pci"))


def question(workspace: str) -> str:
    """Return the script of the survey; `workspace` is that of the driver."""
    every = fact_sheet.dump_command(file for fact in facts.known().values() for file in fact.files)
    return idle_system.question(workspace) + _SCRIPT.replace("@FACTS@", every)


def answer(name: str, text: str) -> MachineSurvey:
    """Parse the output of the script of testbox `name`.

    Raises InfraError if it is not that of the whole script.
    """
    home = idle_system.answer(text)
    if home["surveyed"] != "all":
        raise no_shell(name, text)
    found = fact_sheet.read(text)
    survey = MachineSurvey(home=home, facts=found, devices=_devices(text))
    missing = [word for word in ("nr_cpu", "memory_kb") if survey.number(word) < 1]
    if missing:
        raise InfraError(
            f"The idle system of testbox {name} does not say its {' and '.join(missing)}; is it"
            " Linux, with /proc and /sys mounted?"
        )
    return survey


def no_shell(name: str, text: str) -> InfraError:
    """Return the error for the output of a script that lacks the script's last line."""
    return InfraError(
        f"Testbox {name} did not answer as a shell does: the last line of the script is not in its"
        f" output ({_first_line(text)}); log in by hand, and see what the user's shell prints or"
        " refuses."
    )


def _devices(text: str) -> tuple[PciDevice, ...]:
    found = [match for line in text.split("\n") if (match := _DEVICE.fullmatch(line.strip()))]
    return tuple(
        PciDevice(
            base_class=int(match[1], 16) >> 16,
            id=match[2].lower(),
            driver="" if match[3] == "-" else match[3],
        )
        for match in found
    )


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text.split("\n") if line.strip()), "")
    return f"its first line: {printable(line[:100])!r}" if line else "it printed nothing"
