"""Propose options for a kernel from the drivers that the idle system of a machine uses.

The idea of the kernel's `make localmodconfig`: what is bound to a device is needed, with the
modules that it uses, and the makefiles of the kernel say which option builds it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

# Prints `driver NAME MODULE` for each driver that has a device, without MODULE for one that is
# built in, and `module NAME USER,USER,` for each loaded module. Keyboards and screens (USB, HID)
# are for the idle system.
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
[ ! -r /proc/modules ] || while read -r name _ _ users _; do
	echo "module $name $users"
done </proc/modules
echo drivers all
"""
MOST: Final = 2000  # drivers; a server has some 60
_DRIVER: Final = re.compile(r"driver ([A-Za-z0-9_.-]{1,60})(?: ([A-Za-z0-9_-]{1,60}))?")
_MODULE: Final = re.compile(r"module ([A-Za-z0-9_-]{1,60}) ([A-Za-z0-9_,-]{1,2000})")
_OBJECTS: Final = re.compile(r"obj-\$\(CONFIG_([A-Z0-9_]{1,100})\)[ \t]*[+:]?=([^#\n]{0,2000})")
_OBJECT: Final = re.compile(r"(?:^|[ \t])(?:[A-Za-z0-9_.-]+/)*([A-Za-z0-9_-]{1,60})\.o(?=[ \t]|$)")


def drivers(text: str) -> list[tuple[str, str]]:
    """Return drivers with a device and their modules, of one that is built in its own name."""
    found = [match for line in text.split("\n") if (match := _DRIVER.fullmatch(line.strip()))]
    return [(match[1], _plain(match[2] or match[1])) for match in found[:MOST]]


def modules_used(text: str) -> dict[str, tuple[str, ...]]:
    """Return the modules that each loaded module uses."""
    found = [match for line in text.split("\n") if (match := _MODULE.fullmatch(line.strip()))]
    used: dict[str, dict[str, None]] = {}
    for match in found[:MOST]:
        for user in filter(None, match[2].split(",")):
            used.setdefault(_plain(user), {})[_plain(match[1])] = None
    return {user: tuple(modules) for user, modules in used.items()}


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
    used: Iterable[tuple[str, str]],
    by_module: Mapping[str, tuple[str, ...]],
    config: str,
    uses: Mapping[str, Sequence[str]],
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return (option, driver) of drivers that a .config does not build in and of the modules that
    these use (`modules_used`), and the drivers that are no module of the kernel.

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
            for needed in _with_used(module, uses):
                options = by_module.get(needed, ())
                if options and not have.intersection(options):
                    wanted.setdefault(options[0], driver)
    return sorted(wanted.items()), sorted(set(unknown))


def _with_used(module: str, uses: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the module and all modules that it uses, directly or not."""
    found = {module: None}
    todo = [module]
    while todo:
        more = [one for one in uses.get(todo.pop(), ()) if one not in found]
        found |= dict.fromkeys(more)
        todo += more
    return list(found)


def _plain(name: str) -> str:
    return name.replace("-", "_")
