"""Propose options for a kernel from the drivers that the idle system of a machine uses.

The idea of the kernel's `make localmodconfig`: what is bound to a device is needed, and the
makefiles of the kernel say which option builds it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

# Prints `driver NAME MODULE` for each driver that has a device, without MODULE for one that is
# built in. Keyboards and screens (USB, HID) are for the idle system.
QUESTION: Final = r"""
for bus in acpi ipmi pci platform scsi virtio; do
	for driver in /sys/bus/$bus/devices/*/driver; do
		readlink -f "$driver"
	done
done 2>/dev/null | sort -u |
	while read -r driver; do
		module=$(readlink "$driver/module")
		echo "driver ${driver##*/} ${module##*/}"
	done
echo drivers all
"""
MOST: Final = 2000  # drivers; a server has some 60
_DRIVER: Final = re.compile(r"driver ([A-Za-z0-9_.-]{1,60})(?: ([A-Za-z0-9_-]{1,60}))?")
_OBJECTS: Final = re.compile(r"obj-\$\(CONFIG_([A-Z0-9_]{1,100})\)[ \t]*[+:]?=([^#\n]{0,2000})")
_OBJECT: Final = re.compile(r"(?:^|[ \t])(?:[A-Za-z0-9_.-]+/)*([A-Za-z0-9_-]{1,60})\.o(?=[ \t]|$)")


def drivers(text: str) -> list[tuple[str, str]]:
    """Return drivers with a device and their modules, of one that is built in its own name."""
    found = [match for line in text.split("\n") if (match := _DRIVER.fullmatch(line.strip()))]
    return [(match[1], _plain(match[2] or match[1])) for match in found[:MOST]]


def options_by_module(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return which options build a module, by its name with `_` for `-`.

    `lines` are those of makefiles that begin with `obj-$(CONFIG_`; one that is continued counts
    as far as it goes.
    """
    found: dict[str, dict[str, None]] = {}
    for line in lines:
        if match := _OBJECTS.match(line):
            for name in _OBJECT.findall(match[2]):
                found.setdefault(_plain(name), {})[match[1]] = None
    return {name: tuple(options) for name, options in found.items()}


def missing(
    used: Iterable[tuple[str, str]], by_module: Mapping[str, tuple[str, ...]], config: str
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return (option, driver) of drivers that a .config does not build in, and the drivers that
    are no module of the kernel.

    Of several options that build a module the first is taken, unless one of them is set.
    """
    have = set(re.findall(r"^CONFIG_([A-Z0-9_]+)=y$", config, re.MULTILINE))
    wanted: dict[str, str] = {}
    unknown = []
    for driver, module in used:
        options = by_module.get(module, ())
        if not options:
            unknown.append(driver)
        elif not have.intersection(options):
            wanted.setdefault(options[0], driver)
    return sorted(wanted.items()), sorted(set(unknown))


def _plain(name: str) -> str:
    return name.replace("-", "_")
