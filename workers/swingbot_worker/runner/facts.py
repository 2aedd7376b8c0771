"""What the runner notes of a boot in the guest, and what it sets there because a job demands it. Pure: makes shell text.

The files that the list of facts names are sent as they are, found by one `grep` before the first run and one after the last, outside
of every run's time; what they mean is worked out where they are read (`swingbot_jobs.contract.fact_sheet`). On vm-icount time is instructions, and one process
that reads a hundred files costs less than a hundred that read one.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from swingbot_jobs.contract import facts
from swingbot_jobs.contract.fact_sheet import (
    AFTER,
    BEFORE,
    CMDLINE_UNKNOWN,
    NOTES,
    PROC_SYS,
    RUN_AFTER,
    RUN_BEFORE,
)
from swingbot_jobs.contract.settings import handed_on, sysctl_path
from swingbot_jobs.contract.unit_job import UnitJob, cmdline_of

# Lines of one file: enough for the first CPU of /proc/cpuinfo and for all of /proc/meminfo.
LINES: Final = 80

# Two sysctls for one limit: the kernel sets the second to 0 when the first is written, and refuses
# a 0 in the first (mm/page-writeback.c, mm/util.c).
_PAIRS: Final = (
    ("vm.dirty_bytes", "vm.dirty_ratio"),
    ("vm.dirty_background_bytes", "vm.dirty_background_ratio"),
    ("vm.overcommit_kbytes", "vm.overcommit_ratio"),
)
_CLEARED: Final = dict(_PAIRS) | {second: first for first, second in _PAIRS}
_FUNCTIONS: Final = r"""
# fact NAME VALUE: a missing value is no fact
fact() {
	[ -z "$2" ] || printf '%s\n' "$2" >"facts/$1"
}

# dump FILE...: `path:line` of each that there is
dump() {
	grep -s -m @LINES@ . "$@" /dev/null
}

facts() {
	probe_events
	dump @FILES@ >facts/@BEFORE@
	od -An -v -tx1 /sys/kernel/notes >facts/@NOTES@ 2>/dev/null || rm -f facts/@NOTES@
	clock
	fact ready_seconds "$(seconds "$sb_now")"
	send facts
	rm -f facts/*
}

# facts_again: what may have changed meanwhile
facts_again() {
	dump @AGAIN@ >facts/@AFTER@
}
"""
_CMDLINE: Final = r"""
# check_cmdline WORD...: those that the kernel does not know, and has handed to init, become a fact
check_cmdline() {
	sb_unknown=
	for sb_word; do
		cat /proc/1/environ /proc/1/cmdline 2>/dev/null | tr '\000' '\n' |
			grep -qxF -e "$sb_word" || continue
		sb_unknown="$sb_unknown $sb_word"
	done
	fact @UNKNOWN@ "${sb_unknown# }"
}
"""
_HOLD: Final = r"""
# hold VALUE FILE...: write VALUE to each, and remember what was there
hold() {
	sb_value=$1
	shift
	for sb_file; do
		[ -w "$sb_file" ] || continue
		sb_was=$(head -n 1 "$sb_file") # not `read`: a shell reads bytes one by one, and a sysctl gives only the first of them
		case $sb_was in *\[*\]*) sb_was=${sb_was#*\[} && sb_was=${sb_was%%\]*} ;; esac
		[ "$sb_was" = "$sb_value" ] || {
			printf '%s\n' "$sb_value" >"$sb_file"
			printf '%s %s\n' "$sb_file" "$sb_was" >>held
		} 2>/dev/null
	done
}

# note FILE: remember what is there, for what is written next may change it
note() {
	[ ! -r "$1" ] || printf '%s %s\n' "$1" "$(head -n 1 "$1")" >>held
}

# put_back: what was there before, the last one first
put_back() {
	[ -e held ] || return 0
	sed '1!G;h;$!d' held | while read -r sb_file sb_was; do
		printf '%s\n' "$sb_was" >"$sb_file"
	done 2>/dev/null
	rm -f held
}

# look NAME UNIT_JOB NUMBER FILE...: what they say now becomes a file of that run
look() {
	sb_at=$2/$3
	sb_name=$1
	shift 3
	mkdir -p "$sb_at"
	dump "$@" >"$sb_at/$sb_name"
}

# seen UNIT_JOB NUMBER: send what was looked at after the run, which was sent before
seen() {
	send "$1/$2"
	rm -rf "$1"
}
trap put_back EXIT
"""


def functions(unit_jobs: Sequence[UnitJob]) -> str:
    """The shell functions `fact`, `facts` and `facts_again`, and those that demands need if there are any."""
    every = [fact for fact in facts.known().values() if fact.files]
    filled = {
        "@LINES@": str(LINES),
        "@FILES@": _words(dict.fromkeys(file for fact in every for file in fact.files)),
        "@AGAIN@": _words(
            dict.fromkeys(file for fact in every if fact.again for file in fact.files)
        ),
        "@BEFORE@": BEFORE,
        "@AFTER@": AFTER,
        "@NOTES@": NOTES,
    }
    text = _FUNCTIONS
    for name, value in filled.items():
        text = text.replace(name, value)
    held = any(job.demand or job.sysctl for job in unit_jobs)
    return text + (_HOLD if held else "") + _check_cmdline(unit_jobs)


def _check_cmdline(unit_jobs: Sequence[UnitJob]) -> str:
    words = handed_on(cmdline_of(unit_jobs))
    if not words:
        return ""
    return f"{_CMDLINE.replace('@UNKNOWN@', CMDLINE_UNKNOWN)}check_cmdline {shlex.join(words)}\n"


def _words(files: Sequence[str] | dict[str, None]) -> str:
    """Globs are not quoted: the guest's shell fills them in."""
    return " \\\n\t\t".join(files)


def demanded(job: UnitJob, number: int, run: str) -> list[str]:
    """The lines of one run: `run` itself, between two looks at what is demanded or set."""
    files = [*facts.files_of(job.demand), *map(_file_of, job.sysctl)]
    files = list(dict.fromkeys(files))
    if not files:
        return [run]
    place = f"{shlex.quote(job.name)} {number}"
    looks = [f"look {name} {place} {' '.join(files)}" for name in (RUN_BEFORE, RUN_AFTER)]
    return [looks[0], run, looks[1], f"seen {place}"]


def held(job: UnitJob) -> list[str]:
    """The lines before the runs of a unit job that set what it demands, and its sysctls."""
    demands = [f"hold {shlex.quote(value)} {file}" for file, value in facts.settings(job.demand)]
    return [*demands, *(line for name in job.sysctl for line in _set(name, job.sysctl[name]))]


def _set(name: str, value: str) -> list[str]:
    """The lines that set one sysctl. What the kernel clears with it is noted, to be set back."""
    file, other = _file_of(name), _CLEARED.get(name)
    noted = [f"note {_file_of(other)}"] if other else []
    return [*noted, f"hold {shlex.quote(value)} {file}"]


def _file_of(sysctl: str) -> str:
    return f"{PROC_SYS}{sysctl_path(sysctl)}"
