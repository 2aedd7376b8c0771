"""The part of the generated script that calls LKP. swingbot's own variables begin with sb_."""

from __future__ import annotations

from typing import Final

# `lkp run` always exits with status 0, numbers its results from 0 to 99 and then refuses to run.
# Therefore the result of a run is the one that LKP's link points to afterwards, and it is deleted
# once it has been sent.
LKP: Final = r"""
export LKP_SRC=@SRC@
export USER="${USER:-root}" HOME="${HOME:-/root}"
sb_lkp_jobs=${SWINGBOT_LKP_JOBS:-${0%/*}/lkp} # job files are in this script's directory
sb_lkp=${SWINGBOT_LKP_ROOT:-/lkp}
sb_problem=

# problem TEXT: infrastructure failure; nothing is run
problem() {
	[ -n "$sb_problem" ] || sb_problem=$1
	fact engine_problem "$sb_problem"
}

# check_lkp PROGRAM: check that the installed lkp-tests can run it
check_lkp() {
	if [ ! -f "$LKP_SRC/bin/lkp" ]; then
		problem "lkp-tests is not at $LKP_SRC of the testbox; install it there, or change lkp.src"
	elif ! command -v ruby >/dev/null; then
		problem "the testbox has no Ruby, which lkp-tests needs; run 'lkp install' there"
	elif [ ! -f "$LKP_SRC/programs/$1/run" ]; then
		problem "the lkp-tests at $LKP_SRC has no programs/$1/run; \
versions before March 2026 have a different layout"
	elif [ ! -x "$LKP_SRC/bin/event/wakeup" ]; then
		problem "bin/event/wakeup of the lkp-tests at $LKP_SRC is not compiled; \
run 'make -C $LKP_SRC/bin/event'"
	elif [ ! -d "$sb_lkp/benchmarks/$1" ]; then
		problem "LKP's benchmark is not in $sb_lkp/benchmarks/$1 of the testbox; \
run 'lkp install' for it there"
	fi
}

# lkp_ready: succeeds if LKP can run; records its version as a fact
lkp_ready() {
	[ "$PPID" != 1 ] || {
		hostname -F /etc/hostname
		ln -sfn /proc/self/fd /dev/fd
	}
	sb_wanted=@COMMIT@
	sb_found=$(git -C "$LKP_SRC" -c "safe.directory=$LKP_SRC" rev-parse HEAD 2>/dev/null)
	[ -z "$sb_found" ] || {
		fact version.lkp-tests "$sb_found"
		case $sb_found in
		"$sb_wanted"*) ;;
		*) problem "the lkp-tests at $LKP_SRC is $sb_found, not $sb_wanted" ;;
		esac
	}
	[ -f "$LKP_SRC/hosts/$(hostname)" ] || problem "LKP does not know the host $(hostname): \
run 'lkp install' on the testbox, which writes hosts/$(hostname)"
	mkdir -p "$sb_lkp/paths" 2>/dev/null ||
		problem "the directory $sb_lkp of the testbox is not writable; \
LKP needs it, and must run as root"
	[ -z "$sb_problem" ]
}

# keep FILE NAME: copy one of LKP's files into the run, unless it exceeds the limit for files of a
# run
keep() {
	[ -s "$1" ] || return 0
	if [ "$(wc -c <"$1")" -gt 1000000 ]; then
		echo "${1##*/} has $(wc -c <"$1") bytes and was omitted" >>"$sb_at/lkp.left_out"
	else
		cp "$1" "$sb_at/$2"
	fi
}

# collect PROGRAM: copy the result root except for the matrices, where missing values are 0
collect() {
	for sb_file in "$sb_root"/*; do
		case ${sb_file##*/} in
		matrix* | *.csv | *.csv.gz) ;;
		"$1" | *[!A-Za-z0-9._-]*) ;;
		*) [ ! -f "$sb_file" ] || keep "$sb_file" "lkp.${sb_file##*/}" ;;
		esac
	done
	keep "$sb_root/$1" stdout
	keep "$sb_root/$1.time" time
	echo "$sb_root" >"$sb_at/lkp.result_root"
}

# lkp_run UNIT_JOB NUMBER LIMIT PROGRAM: one `lkp run`; its result is sent as soon as it ends
lkp_run() {
	sb_at=$1/$2
	mkdir -p "$sb_at"
	echo lkp >"$sb_at/engine"
	rm -f result
	# by this key LKP distinguishes a job without axes from one that has to be split
	{
		echo "arch: $(uname -m)"
		cat "$sb_lkp_jobs/$1.yaml"
	} >"$sb_at/lkp.asked.yaml"
	clock
	sb_began=$sb_now
	timeout -s KILL "$3" "$LKP_SRC/bin/lkp" run -o "$PWD/result"@SETTINGS@ \
		"$PWD/$sb_at/lkp.asked.yaml" \
		>"$sb_at/lkp.output" 2>"$sb_at/lkp.stderr" </dev/null 3>&-
	sb_rc=$?
	clock
	# drop the warnings that LKP repeats in each run: the last lines are those of the test
	grep -vE ' WARN -- |: warning: ' "$sb_at/lkp.stderr" >"$sb_at/stderr"
	sb_root=$(readlink result)
	if [ -n "$sb_root" ] && [ -d "$sb_root" ]; then
		collect "$4"
		sb_said=$(sed -n 's/^test\..*\.exit_code\.\([0-9]*\):.*/\1/p' "$sb_root/last_state" \
			2>/dev/null | head -n 1)
		[ "$sb_rc" != 0 ] || sb_rc=${sb_said:-0}
	else
		sb_said=$(cat "$sb_at/stderr" "$sb_at/lkp.output" | grep -m 1 -iE 'error|errno|fail' |
			cut -c 1-300)
		echo "lkp run left no result: ${sb_said:-it printed no reason}" >>"$sb_at/stderr"
		[ "$sb_rc" != 0 ] || sb_rc=1
	fi
	echo "$sb_rc" >"$sb_at/rc"
	sweep
	seconds "$((sb_now - sb_began))" >"$sb_at/seconds"
	send "$sb_at"
	case $sb_root in */result/*/[0-9] | */result/*/[0-9][0-9]) rm -rf "$sb_root" ;; esac
	rm -rf "${sb_at%/*}" result
}
"""
