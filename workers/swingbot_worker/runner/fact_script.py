"""Shell text that records the facts of a boot in the guest, and applies the demands of its jobs.
Pure.

The files of the fact list are sent unchanged. One `grep` before the first run and one after the
last read them, outside of the measured time. `swingbot_jobs.contract.fact_sheet` interprets them.
On vm-icount, time is instructions, and one process that reads a hundred files needs fewer than a
hundred processes that read one each.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from swingbot_jobs.contract import facts, memory
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
from swingbot_worker.runner import memory_script

# Lines per file: enough for the first CPU of /proc/cpuinfo and for all of /proc/meminfo.
LINES: Final = 80

# Two sysctls for one limit: the kernel sets the second to 0 when the first is written, and rejects
# 0 for the first (mm/page-writeback.c, mm/util.c).
_PAIRS: Final = (
    ("vm.dirty_bytes", "vm.dirty_ratio"),
    ("vm.dirty_background_bytes", "vm.dirty_background_ratio"),
    ("vm.overcommit_kbytes", "vm.overcommit_ratio"),
)
_CLEARED: Final = dict(_PAIRS) | {second: first for first, second in _PAIRS}
_FUNCTIONS: Final = r"""
# fact NAME VALUE: record a fact unless its value is empty
fact() {
	[ -z "$2" ] || printf '%s\n' "$2" >"facts/$1"
}

# dump FILE...: print `path:line` for each file that exists
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

# facts_again: record the facts that may have changed
facts_again() {
	dump @AGAIN@ >facts/@AFTER@
}
"""
_CMDLINE: Final = r"""
# check_cmdline WORD...: record the words that the kernel does not know and has passed to init
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
# hold VALUE FILE...: write VALUE to each file and save its previous content
hold() {
	sb_value=$1
	shift
	for sb_file; do
		[ -w "$sb_file" ] || continue
		# not `read`, which reads single bytes: a sysctl returns only its first byte
		sb_was=$(head -n 1 "$sb_file")
		case $sb_was in *\[*\]*) sb_was=${sb_was#*\[} && sb_was=${sb_was%%\]*} ;; esac
		[ "$sb_was" = "$sb_value" ] || {
			printf '%s\n' "$sb_value" >"$sb_file"
			printf '%s %s\n' "$sb_file" "$sb_was" >>held
		} 2>/dev/null
	done
}

# note FILE: save its content, which the next write may change
note() {
	[ ! -r "$1" ] || printf '%s %s\n' "$1" "$(head -n 1 "$1")" >>held
}

# put_back: restore the saved content, the last file first
put_back() {
	[ -e held ] || return 0
	sed '1!G;h;$!d' held | while read -r sb_file sb_was; do
		printf '%s\n' "$sb_was" >"$sb_file"
	done 2>/dev/null
	rm -f held
}

# look NAME UNIT_JOB NUMBER FILE...: save the current content of these files in that run
look() {
	sb_at=$2/$3
	sb_name=$1
	shift 3
	mkdir -p "$sb_at"
	dump "$@" >"$sb_at/$sb_name"
}

# seen UNIT_JOB NUMBER: send the files saved after the run, which has been sent already
seen() {
	send "$1/$2"
	rm -rf "$1"
}
trap put_back EXIT
"""


def functions(unit_jobs: Sequence[UnitJob]) -> str:
    """Return the shell functions `fact`, `facts` and `facts_again`, and those that demands need."""
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
    asked = any(memory.asked(job.params) for job in unit_jobs)
    held = asked or any(job.demand or job.sysctl for job in unit_jobs)
    return (
        text
        + (_HOLD if held else "")
        + (memory_script.FUNCTIONS if asked else "")
        + _check_cmdline(unit_jobs)
    )


def _check_cmdline(unit_jobs: Sequence[UnitJob]) -> str:
    words = handed_on(cmdline_of(unit_jobs))
    if not words:
        return ""
    return f"{_CMDLINE.replace('@UNKNOWN@', CMDLINE_UNKNOWN)}check_cmdline {shlex.join(words)}\n"


def _words(files: Sequence[str] | dict[str, None]) -> str:
    """Join the files. Globs are not quoted, so that the guest's shell expands them."""
    return " \\\n\t\t".join(files)


def demanded(job: UnitJob, number: int, run: str) -> list[str]:
    """Return the lines of one run: `run` between two readings of the demanded and set files, and
    before one of the memory that it had.
    """
    files = [*facts.files_of(job.demand), *map(_file_of, job.sysctl)]
    files = list(dict.fromkeys(files))
    place = f"{shlex.quote(job.name)} {number}"
    before, after = (
        [f"look {name} {place} {' '.join(files)}"] if files else []
        for name in (RUN_BEFORE, RUN_AFTER)
    )
    after = [*after, *memory_script.state(job, number)]
    return [*before, run, *after, f"seen {place}"] if after else [run]


def held(job: UnitJob) -> list[str]:
    """Return the lines that set a unit job's demands and sysctls before its runs."""
    demands = [f"hold {shlex.quote(value)} {file}" for file, value in facts.settings(job.demand)]
    return [*demands, *(line for name in job.sysctl for line in _set(name, job.sysctl[name]))]


def _set(name: str, value: str) -> list[str]:
    """Return the lines that set one sysctl, and save the one that the kernel clears with it."""
    file, other = _file_of(name), _CLEARED.get(name)
    noted = [f"note {_file_of(other)}"] if other else []
    return [*noted, f"hold {shlex.quote(value)} {file}"]


def _file_of(sysctl: str) -> str:
    return f"{PROC_SYS}{sysctl_path(sysctl)}"
