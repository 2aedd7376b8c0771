"""The two POSIX shell scripts of a report's kit.

build.sh builds one of the kernels; reproduce.sh boots both and compares the numbers.
"""

from __future__ import annotations

import shlex
from typing import Final

from swingbot.core.reproduce import shell
from swingbot.core.reproduce.kit import SIDES, ReportKit
from swingbot_jobs.contract.compiler import llvm_variables
from swingbot_jobs.contract.unit_job import UnitJob

_REPRODUCE: Final = (
    r"""#!/bin/sh
# Boots both kernels of report @REPORT@ again and prints the numbers next to the reported ones.
# Needs QEMU (qemu-system-x86_64), GNU tar, awk and sha256sum. Needs neither swingbot nor root, and no
# network unless README says so.
usage='usage: ./reproduce.sh [options]
  --boots N        only the first N boots of each side (there are @PAIRS@)
  --only SIDE      only the parent, or only the commit
  --parent IMAGE   boot this bzImage as the parent, --commit IMAGE as the commit: your own builds (build.sh)
  --programs DIR   directory of programs that are not in this kit (see README)
  --out DIR        directory for consoles and results (default: ./out)
  --here           no QEMU: run the job once on this machine, under the running kernel; as root'
set -u
export LC_ALL=C
kit=$(cd "$(dirname "$0")" && pwd) || exit 1
out=$PWD/out boots=999999 only='' parent=$kit/kernels/parent/bzImage commit=$kit/kernels/commit/bzImage programs='' here=''
virtual=@VIRTUAL@ unit_job=@UNIT_JOB@ metric=@METRIC@ unit=@UNIT@

"""
    + shell.HELPERS
    + r"""
while [ $# -gt 0 ]; do
	case $1 in
	--here) here=yes ;;
	-h | --help) say "$usage"; exit 0 ;;
	--boots | --only | --parent | --commit | --programs | --out)
		[ $# -gt 1 ] || { say "$usage" >&2; exit 2; }
		case $1 in
		--boots) boots=$2 ;;
		--only) only=$2 ;;
		--parent) parent=$(absolute "$2") ;;
		--commit) commit=$(absolute "$2") ;;
		--programs) programs=$(absolute "$2") ;;
		--out) out=$(absolute "$2") ;;
		esac
		shift
		;;
	*) say "$usage" >&2; exit 2 ;;
	esac
	shift
done
case $boots in '' | *[!0-9]* | 0) fail "--boots $boots is not a number of boots" ;; esac
case $only in '' | parent | commit) ;; *) fail "--only $only is neither parent nor commit" ;; esac

"""
    + shell.PROGRAMS
    + r"""
# make_initrd: write the booted root file system followed by the job
make_initrd() {
	cp "$kit/rootfs/rootfs.cpio" "$out/initrd" || fail "cannot write $out/initrd"
	chmod u+w "$out/initrd"
	if [ -f "$kit/rootfs/left-out" ]; then
		while read -r sb_path sb_offset _ sb_sum sb_package; do
			sb_program=$(find_program "$sb_sum" "${sb_path##*/}") ||
				{ fetch "$sb_package"; sb_program=$(find_program "$sb_sum" "${sb_path##*/}"); } ||
				fail "/$sb_path is part of Debian's $sb_package, which is non-free and not in this kit: download that exact version," \
					"unpack it (dpkg-deb -x) and give the directory with --programs"
			dd if="$sb_program" of="$out/initrd" bs=4 seek=$((sb_offset / 4)) conv=notrunc 2>/dev/null || fail "cannot write $out/initrd"
		done <"$kit/rootfs/left-out" || exit 1
	fi
	[ "$(digest "$out/initrd")" = @ROOTFS@ ] || fail "the root file system is not the one that was booted (sha256 @ROOTFS@)"
	cat "$kit/job/job.cpio" >>"$out/initrd" || fail "cannot write $out/initrd"
}

# boot ID SIDE SECONDS: boot once; the console and results go to out/ID
boot() {
	sb_image=$parent
	[ "$2" = parent ] || sb_image=$commit
	[ -f "$sb_image" ] || fail "kernel $sb_image does not exist; build it with build.sh"
	rm -rf "${out:?}/$1"
	mkdir -p "$out/$1/results" || fail "cannot create $out/$1"
	ln -s "$sb_image" "$out/$1/bzImage" && ln -s ../initrd "$out/$1/initrd"
	sb_id=$1 sb_limit=$((600 + 20 * $3))
	set --
	while IFS= read -r sb_word; do set -- "$@" "$sb_word"; done <"$kit/boots/$sb_id.qemu"
	shift
	set -- "$qemu" "$@"
	command -v timeout >/dev/null 2>&1 && set -- timeout -s KILL "$sb_limit" "$@"
	(cd "$out/$sb_id" && exec "$@" </dev/null >qemu.log 2>&1) || fail "QEMU failed in boot $sb_id; see $out/$sb_id/qemu.log"
	tar -x -i -f "$out/$sb_id/results.tar" -C "$out/$sb_id/results" >"$out/$sb_id/tar.log" 2>&1
	[ -f "$out/$sb_id/results/facts/ended" ] || fail "boot $sb_id did not complete; the end of its console: $(tail -n 3 "$out/$sb_id/console.log")"
}

"""
    + shell.READ_RESULTS
    + r"""
run_here() {
@CHECK_CMDLINE@	mkdir -p "$out/here/results" "$out/here/work" || fail "cannot create $out/here"
	# needs a shell in between: if the parent of the job is init, the job ends all other processes
	(SWINGBOT_PROGRAMS=$kit/job/programs SWINGBOT_WORK=$out/here/work sh -c 'sh "$0"; exit' "$kit/job/run.sh" 3>"$out/here/results.tar")
	tar -x -i -f "$out/here/results.tar" -C "$out/here/results" || fail "the job wrote no results; install the programs that README names"
	read_results "$out/here/results" here >"$out/here.tsv"
	say "on this machine, under $(uname -r):"
	awk -F '\t' '{ printf "  %-50s run %s  %-34s %.10g\n", $2, $3, $4, $5 }' "$out/here.tsv"
	[ -s "$out/here.tsv" ] || fail "no run produced a number; see $out/here/results"
}

mkdir -p "$out" || fail "cannot create $out"
need awk 'install mawk or gawk'
need tar 'install GNU tar'
if [ -n "$here" ]; then run_here; exit; fi
[ "$virtual" = yes ] || fail "these boots ran on a physical machine, @TESTBOX@, not in QEMU; boot each kernel on your machine and run this script with --here"
need sha256sum 'install coreutils'
(cd "$kit" && sha256sum --quiet -c SHA256SUMS >/dev/null 2>&1) || fail "files of this kit were modified: sha256sum -c SHA256SUMS lists them"
qemu=${QEMU:-$(sed -n 1p "$kit"/boots/@FIRST@.qemu)}
need "$qemu" "install it (Debian: qemu-system-x86), or set the variable QEMU to its path"
ours=@QEMU@
version=$("$qemu" --version | sed -n 1p)
[ "$version" = "$ours" ] || say "Your QEMU is $version; the report used $ours. Levels may differ slightly; the change should not."

make_initrd
: >"$out/here.tsv"
for sb_side in parent commit; do eval "sb_count_$sb_side=0"; done
while read -r sb_boot sb_side sb_k sb_seconds; do
	[ -z "$only" ] || [ "$only" = "$sb_side" ] || continue
	eval "sb_done=\$sb_count_$sb_side"
	# shellcheck disable=SC2154 # set by eval
	[ "$sb_done" -lt "$boots" ] || continue
	eval "sb_count_$sb_side=$((sb_done + 1))"
	say "booting the $sb_side, k=$sb_k, repeating $sb_boot (took $sb_seconds s originally)"
	boot "$sb_boot" "$sb_side" "$sb_seconds"
	read_results "$out/$sb_boot/results" "$sb_boot" >>"$out/here.tsv"
done <"$kit/boots.tsv"
rm -f "$out/initrd"
say ''
awk -F '\t' -v unit_job="$unit_job" -v metric="$metric" -v unit="$unit" -v better=@BETTER@ -v reported=@CHANGE@ '@TABLE@' "$out/here.tsv" "$kit/numbers.tsv"
"""
)

_CHECK_CMDLINE: Final = r"""	for sb_word in @WORDS@; do
		tr ' ' '\n' </proc/cmdline | grep -qxF -e "$sb_word" ||
			fail "this kernel was booted without $sb_word; add it to the kernel command line and reboot"
	done
"""

# First file: numbers measured here. Second: reported numbers. Exit status 3 if a number differs, 1
# if one is missing.
_TABLE: Final = r"""
function off(a, b, d) { d = a - b; if (d < 0) d = -d; if (b < 0) b = -b; return b > 0 ? d / b : d }
function words(pct, text) {
	text = sprintf("%.1f%%", pct < 0 ? -pct : pct)
	if (better == "") return text (pct < 0 ? " lower" : " higher")
	return text ((pct < 0) == (better == "higher") ? " worse" : " better")
}
FNR == NR { here[$1, $2, $3, $4] = $5; boot[$1] = 1; next }
!($1 in boot) { next }
{
	all++
	if (!(($1, $4, $5, $6) in here)) { missing++; print "missing: " $6 " of " $4 ", run " $5 ", boot " $1; next }
	got = here[$1, $4, $5, $6]
	apart = off(got, $7)
	if (apart > 1e-12) { differ++; if (apart > most) { most = apart; worst = $6 " of boot " $1 } }
	if ($4 != unit_job || $6 != metric) next
	if (!shown++) printf "%s of %s\n%-8s %-6s %4s %4s %14s %14s\n", metric, unit_job, "side", "boot", "k", "run", "reported", "here"
	note = "equal"
	if (apart > 1e-12) note = sprintf("%.2g%% apart", 100 * apart)
	printf "%-8s %-6s %4s %4s %14.10g %14.10g  %s\n", $2, $1, $3, $5, $7, got, note
	sum[$2, $1] += got; runs[$2, $1]++; side_of[$1] = $2
}
END {
	for (id in side_of) { side = side_of[id]; level[side] += sum[side, id] / runs[side, id]; count[side]++ }
	if (count["parent"] && count["commit"]) {
		base = level["parent"] / count["parent"]; head = level["commit"] / count["commit"]
		note = reported == "" ? "" : ", " words(reported) " in the report"
		printf "\nparent %.5g, commit %.5g %s: %s here%s\n", base, head, unit, words(100 * (head / base - 1)), note
	}
	if (all && !missing && !differ) printf "all %d numbers of the repeated boots equal the reported ones\n", all
	else if (all) {
		note = differ ? sprintf(" (largest difference: %s, %.2g%%)", worst, 100 * most) : ""
		printf "%d of %d numbers differ from the reported ones%s; %d are missing\n", differ, all, note, missing
	} else print "no boot was repeated"
	exit !all || missing ? 1 : differ ? 3 : 0
}
"""

_BUILD: Final = (
    r"""#!/bin/sh
# Builds one of the two kernels of report @REPORT@ again and reports whether the image is identical.
# usage: ./build.sh LINUX parent|commit OUT        LINUX: a git repository that has the commit (or, for the commit, its parent)
set -eu
[ $# -eq 3 ] || { echo 'usage: ./build.sh LINUX parent|commit OUT' >&2; exit 2; }
kit=$(cd "$(dirname "$0")" && pwd)
linux=$1 side=$2
parent=@PARENT@ commit=@COMMIT@
case $side in
parent) config=$kit/kernels/parent/config want=@PARENT_IMAGE@ objects=@PARENT_OBJECTS@ cc=@PARENT_CC@ llvm=@PARENT_LLVM@ said=@PARENT_VERSION@ ;;
commit) config=$kit/kernels/commit/config want=@COMMIT_IMAGE@ objects=@COMMIT_OBJECTS@ cc=@COMMIT_CC@ llvm=@COMMIT_LLVM@ said=@COMMIT_VERSION@ ;;
*) echo 'build.sh: give parent or commit' >&2; exit 2 ;;
esac
[ -f "$config" ] || { echo "build.sh: this kit has no configuration of the $side" >&2; exit 1; }
mkdir -p "$3"
out=$(cd "$3" && pwd)
checkout() { git -C "$linux" worktree add --quiet --force --detach "$out/linux" "$1"; }
if [ "$side" = parent ]; then
	checkout "$parent"
elif git -C "$linux" cat-file -e "$commit^{commit}" 2>/dev/null; then
	checkout "$commit"
else
	[ -f "$kit/kernels/culprit.patch" ] || { echo "build.sh: $linux has no commit $commit, and this kit has no patch" >&2; exit 1; }
	checkout "$parent"
	git -C "$out/linux" apply "$kit/kernels/culprit.patch"
fi
"""
    + shell.MAKE
)


def reproduce(kit: ReportKit) -> str:
    """Return the text of reproduce.sh."""
    pairs = max((sum(boot.kernel == side for boot in kit.boots) for side in SIDES), default=0)
    quoted = {
        "UNIT_JOB": kit.unit_job.name,
        "METRIC": kit.metric,
        "UNIT": kit.unit,
        "QEMU": kit.qemu_version,
        "BETTER": kit.better or "",
        "CHANGE": "" if kit.change_pct is None else repr(kit.change_pct),
    }
    plain = {
        "REPORT": kit.id,
        "PAIRS": str(pairs),
        "NUMBERS": shell.number_branches(
            [(job, "job") for job in kit.unit_jobs], [f"job/{path}" for path in kit.programs]
        ),
        "ROOTFS": kit.rootfs.whole if kit.rootfs else "unknown",
        "VIRTUAL": "yes" if kit.virtual else "no",
        "TESTBOX": kit.testbox,
        "FIRST": kit.boots[0].id if kit.boots else "none",
        "TABLE": _TABLE,
        "CHECK_CMDLINE": _check_cmdline(kit.unit_job),
    }
    return shell.filled(_REPRODUCE, plain, quoted)


def _check_cmdline(job: UnitJob) -> str:
    """Return lines that exit unless the running kernel was booted with the options of the job."""
    if not job.cmdline:
        return ""
    return _CHECK_CMDLINE.replace("@WORDS@", shlex.join(job.cmdline.split()))


def build(kit: ReportKit) -> str:
    """Return the text of build.sh."""
    quoted = {"PARENT": kit.kernels["parent"].commit, "COMMIT": kit.kernels["commit"].commit}
    for side in SIDES:
        kernel = kit.kernels[side]
        quoted[f"{side.upper()}_IMAGE"] = kernel.image_sha256
        quoted[f"{side.upper()}_OBJECTS"] = shell.object_directory(kernel.kconfig, kernel.compiler)
        quoted[f"{side.upper()}_CC"] = kernel.compiler
        quoted[f"{side.upper()}_LLVM"] = " ".join(llvm_variables(kernel.compiler))
        quoted[f"{side.upper()}_VERSION"] = kernel.compiler_version
    plain = {"REPORT": kit.id, "ENVIRONMENT": shell.environment()}
    return shell.filled(_BUILD, plain, quoted)
