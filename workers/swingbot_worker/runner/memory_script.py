"""Shell text that gives the runs of a unit job the memory and the processors it asks for. Pure.

Everything happens between runs, and only in boots with such a job; a run sees one process more,
which moves itself into the cgroup and then becomes the program's `run`.
"""

from __future__ import annotations

import shlex
from typing import Final

from swingbot_jobs.contract import memory
from swingbot_jobs.contract.unit_job import UnitJob

# Files of cgroup v2: Documentation/admin-guide/cgroup-v2.rst; zram's devices:
# Documentation/admin-guide/blockdev/zram.rst. The limit is removed with the group, and the areas of
# a machine that has its own come back.
FUNCTIONS: Final = (
    r"""
# confine SWAP PROGRAM [FILE=VALUE ...]: for the runs that follow; SWAP `-` leaves it as it is
confine() {
	[ "$1" = - ] || {
		awk 'NR > 1 { print $1 }' /proc/swaps >swaps.held
		own_swap "$1"
	} 2>>confine.log
	shift
	[ $# -eq 1 ] || limit_run "$@"
}

# limit_run PROGRAM FILE=VALUE ...: a cgroup with these limits, and a `run` that enters it and has
# the policy of @POLICY@=...
limit_run() {
	sb_cgroups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[ -n "$sb_cgroups" ] || {
		sb_cgroups=$sb_work/cgroups
		mkdir -p "$sb_cgroups"
		mount -t cgroup2 cgroup2 "$sb_cgroups"
	}
	sb_group=$sb_cgroups/swingbot-run
	mkdir -p "$sb_group" "confined/$1"
	sb_confined=$1
	shift
	sb_policy=
	for sb_limit; do
		case $sb_limit in
		@POLICY@=*) sb_policy=${sb_limit#*=} ;;
		*)
			echo "+${sb_limit%%.*}" >"$sb_cgroups/cgroup.subtree_control"
			echo "${sb_limit#*=}" >"$sb_group/${sb_limit%%=*}"
			;;
		esac
	done
	sb_real=$sb_programs
	sb_programs=$sb_work/confined
	{
		echo '#!/bin/sh'
		echo "echo \$\$ >'$sb_group/cgroup.procs' || exit 125"
		[ "$sb_policy" != interleave ] || {
			echo '[ "${1:-}" = spread ] || exec numactl --interleave=all "$0" spread'
		}
		[ -z "$sb_policy" ] ||
			echo "awk 'NR == 1 { print \$2 }' /proc/\$\$/numa_maps >'$sb_work/@POLICY@'"
		echo "exec '$sb_real/$sb_confined/run'"
	} >"confined/$sb_confined/run"
	chmod +x "confined/$sb_confined/run"
} 2>>confine.log

# zswap_is Y|N: turn it on or off; sb_zswap is what it was. A kernel may lack it.
zswap_is() {
	sb_zswap=
	[ ! -e @ZSWAP@ ] || {
		sb_zswap=$(cat @ZSWAP@)
		echo "$1" >@ZSWAP@
	}
}

# own_swap none|zram|zswap|ramdisk|disk: make it the only swap area
own_swap() {
	[ ! -s swaps.held ] || swapoff -a
	sb_errors=$(dmesg | grep -c @ERROR@)
	sb_swap=
	case $1 in
	zram)
		[ -e /sys/class/zram-control ] || modprobe zram
		sb_zram=$(cat /sys/class/zram-control/hot_add) || return
		sb_swap=/dev/zram$sb_zram
		awk '$1 == "MemTotal:" { print $2 "K" }' /proc/meminfo >"/sys/block/zram$sb_zram/disksize"
		;;
	zswap | ramdisk)
		[ -e /dev/ram0 ] || modprobe brd
		sb_swap=/dev/ram0
		;;
	disk) sb_swap=/dev/vda ;;
	*) return ;;
	esac
	if [ "$1" = zswap ]; then zswap_is Y; else zswap_is N; fi
	mkswap "$sb_swap" >/dev/null && swapon "$sb_swap"
}

# memory_state UNIT_JOB NUMBER [NAME=FILE ...]: save what was in force in that run
memory_state() {
	sb_state=$1/$2
	mkdir -p "$sb_state"
	shift 2
	{
		for sb_limit; do
			sb_file=$sb_group/${sb_limit#*=}
			[ "${sb_limit#*=}" != @POLICY@ ] || sb_file=$sb_work/@POLICY@
			[ ! -r "$sb_file" ] || echo "${sb_limit%%=*} $(cat "$sb_file")"
		done
		awk -v zswap="$(cat @ZSWAP@)" '
			BEGIN {
				kinds["/dev/zram"] = "zram"
				kinds["/dev/ram"] = "ramdisk"
				kinds["/dev/vda"] = "disk"
			}
			NR > 1 {
				sub(/[0-9]+$/, "", $1)
				kind = ($1 in kinds) ? kinds[$1] : "other"
				if (zswap == "Y") kind = (kind == "ramdisk") ? "zswap" : kind " behind zswap"
			}
			END { print "@SWAP@", (NR > 2) ? "several" : (NR > 1) ? kind : "none" }
		' /proc/swaps
	} >"$sb_state/@STATE@" 2>/dev/null
	# of this run: those of earlier ones come before
	dmesg 2>/dev/null | grep @ERROR@ | tail -n "+$((sb_errors + 1))" >"$sb_state/@SWAP_ERROR@"
	sb_errors=$((sb_errors + $(grep -c . "$sb_state/@SWAP_ERROR@")))
	[ -s "$sb_state/@SWAP_ERROR@" ] || rm -f "$sb_state/@SWAP_ERROR@"
}

# set_free: undo `confine`
set_free() {
	[ -z "$sb_group" ] || {
		# with groups below it, of a program that was ended
		find "$sb_group" -depth -type d -exec rmdir {} \;
		rm -f "$sb_work/@POLICY@"
		sb_programs=$sb_real
		sb_group=
	}
	[ ! -e swaps.held ] || {
		[ -z "$sb_swap" ] || swapoff "$sb_swap"
		[ -z "$sb_zswap" ] || echo "$sb_zswap" >@ZSWAP@
		[ -z "$sb_zram" ] || echo "$sb_zram" >/sys/class/zram-control/hot_remove
		while read -r sb_area; do swapon "$sb_area"; done <swaps.held
		rm -f swaps.held
		sb_swap=
		sb_zram=
		sb_zswap=
	}
} 2>/dev/null
sb_errors=0
sb_group=
sb_swap=
sb_zram=
sb_zswap=
trap 'set_free; put_back' EXIT
""".replace("@SWAP@", memory.SWAP)
    .replace("@ZSWAP@", "/sys/module/zswap/parameters/enabled")
    .replace("@STATE@", memory.STATE)
    .replace("@SWAP_ERROR@", memory.SWAP_ERROR)
    .replace("@ERROR@", "-F -e '-error on swap-device '")
    .replace("@POLICY@", memory.POLICY)
)


def confined(job: UnitJob) -> list[str]:
    """Return the line that confines the runs of `job`; none if it asks for nothing."""
    limits = [f"{file}={value}" for file, value in memory.limits(job.params).items()]
    if policy := memory.policy(job.params):
        limits.append(f"{memory.POLICY}={policy}")
    words = [job.params.get(memory.SWAP) or "-", job.program, *limits]
    return [f"confine {shlex.join(words)}"] if memory.asked(job.params) else []


def state(job: UnitJob, number: int) -> list[str]:
    """Return the line that saves what was in force in a run; none if the job asks for nothing."""
    wanted = memory.asked(job.params)
    files = [
        f"{name}={memory.read_at(name, value)}"
        for name, value in wanted.items()
        if name != memory.SWAP
    ]
    return [f"memory_state {shlex.join([job.name, str(number), *files])}"] if wanted else []
