"""What the runner notes of a boot in the guest: a shell function that writes one file a fact, before the first run and outside its time. Pure."""

from __future__ import annotations

from typing import Final

# Stands before everything that calls `fact`. Only busybox, and few processes: the boot's time on vm-icount is instructions.
FACTS: Final = r"""
# fact NAME VALUE: a missing value is no fact
fact() {
	[ -z "$2" ] || printf '%s\n' "$2" >"facts/$1"
}

# first FILE: its first line, nothing if there is no such file
first() {
	[ ! -r "$1" ] || head -n 1 "$1"
}

# chosen FILE: the word in brackets, as sysfs marks the choice that is in force
chosen() {
	[ ! -r "$1" ] || sed 's/.*\[\(.*\)\].*/\1/' "$1"
}

facts() {
	probe_events
	fact kernel_release "$(uname -r)"
	fact kernel_version "$(uname -v)"
	fact cmdline "$(first /proc/cmdline)"
	fact cpu_model "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
	fact nr_cpu "$(nproc)"
	fact memory_kb "$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)"
	fact thp_enabled "$(chosen /sys/kernel/mm/transparent_hugepage/enabled)"
	fact thp_defrag "$(chosen /sys/kernel/mm/transparent_hugepage/defrag)"
	fact clocksource "$(first /sys/devices/system/clocksource/clocksource0/current_clocksource)"
	fact governor "$(first /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor)"
	fact microcode "$(sed -n 's/^microcode[^:]*: //p' /proc/cpuinfo | head -n 1)"
	fact mitigations "$(cd /sys/devices/system/cpu/vulnerabilities 2>/dev/null && grep . -- * | grep -v ':Not affected$' | tr '\n' ';')"
	clock
	fact ready_seconds "$(seconds "$sb_now")"
	send facts
	rm -f facts/*
}
"""
