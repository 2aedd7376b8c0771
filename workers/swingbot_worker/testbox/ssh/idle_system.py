"""Identify the system that runs on a testbox, by one script that runs over SSH. Pure."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from swingbot_jobs.limits import FACT_CHARACTERS
from swingbot_jobs.printable import printable
from swingbot_jobs.testbox import counters
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_worker.testbox.ssh import memory_modules
from swingbot_worker.testbox.ssh.guest import WORD

# Prints all properties that a boot or a check needs as `name=value` lines, in one connection.
_PROBE = r"""
say() { printf '%s=%s\n' "$1" "$2"; }
say boot_id "$(cat /proc/sys/kernel/random/boot_id)"
say release "$(uname -r)"
say machine "$(uname -m)"
say cmdline "$(tr '\n' ' ' </proc/cmdline)"
say clock "$(date +%s)"
say uid "$(id -u)"
say nr_cpu "$(getconf _NPROCESSORS_ONLN 2>/dev/null || grep -c ^processor /proc/cpuinfo)"
say memory_kb "$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo)"
say available_kb "$(sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo)"
PATH=$PATH:/usr/sbin:/sbin
say kexec "$(command -v kexec)"
say kexec_disabled "$(cat /proc/sys/kernel/kexec_load_disabled 2>/dev/null)"
say lockdown "$(sed -n 's/.*\[\(.*\)\].*/\1/p' /sys/kernel/security/lockdown 2>/dev/null)"
mkdir -p @WORKSPACE@ 2>/dev/null
say space_kb "$(df -Pk @WORKSPACE@ 2>/dev/null | awk 'NR == 2 { print $4 }')"
say space_kind "$(stat -f -c %T @WORKSPACE@ 2>/dev/null)"
say pcie_lanes "$(
	for one in /sys/bus/pci/devices/*; do
		[ -r "$one/current_link_width" ] || continue
		read -r class <"$one/class" && read -r lanes <"$one/current_link_width" || continue
		case $class:$lanes in
		*:0) ;; # it is part of the processor or chipset
		0x01*:* | 0x02*:*) printf '%s x%s, ' "${one##*/}" "$lanes" ;;
		esac
	done 2>/dev/null
)"
client=${SSH_CLIENT%% *}
say port "${SSH_CONNECTION##* }"
card=$(ip -o route get "$client" 2>/dev/null | sed -n 's/.* dev \([^ ]*\).*/\1/p')
say card "$card"
say mac "$(cat "/sys/class/net/$card/address" 2>/dev/null)"
say address "$(
	ip -o -4 addr show dev "$card" scope global 2>/dev/null | awk 'NR == 1 { print $4 }'
)"
say gateway "$(
	ip -o -4 route show default dev "$card" 2>/dev/null |
		sed -n 's/.* via \([^ ]*\).*/\1/p' | head -n 1
)"
"""
LENGTH: Final = 4000  # characters of a property
_LENGTHS: Final = {"smbios": memory_modules.HEX_CHARACTERS}


@dataclass(frozen=True, slots=True)
class IdleSystemReport:
    """Properties of the running system as printed, without control characters; a missing one is
    the empty string."""

    said: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.said.get(name, "")

    @property
    def dimms(self) -> str:
        """The machine's memory modules; empty if its firmware does not say."""
        return memory_modules.described(self["smbios"])

    @property
    def hardware(self) -> dict[str, str]:
        """What only the idle system sees of the hardware, as facts of a boot."""
        lanes = self["pcie_lanes"].strip(", ")[:FACT_CHARACTERS]
        said = {"dimms": self.dimms, "pcie_lanes": lanes}
        return {name: value for name, value in said.items() if value}

    def number(self, name: str) -> int | None:
        """Return a property as a number; None if it is missing or not a decimal number."""
        value = self[name]
        return int(value) if value.isascii() and value.isdecimal() and len(value) < 16 else None


def question(workspace: str) -> str:
    """Return the script that prints the properties; `workspace` is created if it is missing."""
    return _PROBE.replace("@WORKSPACE@", workspace) + counters.SCRIPT + memory_modules.SCRIPT


def answer(text: str) -> IdleSystemReport:
    """Parse the output of the script. Other lines, such as a login banner, are ignored."""
    return IdleSystemReport(
        {
            match[1]: printable(match[2][: _LENGTHS.get(match[1], LENGTH)], " ")
            for line in text.splitlines()
            if (match := re.fullmatch(r"([a-z_]{1,20})=(.*)", line.strip()))
        }
    )


def strange(idle: IdleSystemReport, driver: SshDriver) -> str | None:
    """Return why the running system is not the idle system, or None if it is."""
    if f"{WORD}=" in idle["cmdline"]:
        return f"it runs a kernel that was started for an order ({_word(idle['cmdline'])})"
    if driver.idle_release and not fnmatch.fnmatchcase(idle["release"], driver.idle_release):
        release = f"Linux {idle['release']}" if idle["release"] else "an unknown Linux release"
        return f"it runs {release}, but its idle system has {driver.idle_release}"
    return None


def _word(cmdline: str) -> str:
    return next((word for word in cmdline.split() if word.startswith(f"{WORD}=")), WORD)[:100]


def space_needed(kernel: int, initrd: int) -> tuple[int, int]:
    """Return the KiB that a boot needs: in the workspace, and in memory in addition to it.

    `kernel` and `initrd` are sizes in bytes. kexec copies both files, and the kernel under test
    unpacks the initramfs.
    """
    files = (kernel + initrd) // 1024 + 4096
    return files, files + 65536
