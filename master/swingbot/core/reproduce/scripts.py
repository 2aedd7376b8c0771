"""The two POSIX shell scripts of a kit: one boots its kernels, the other builds one.

The scripts do not contain names of rows. They identify a row by the directory of its kernel and
read its name from `kernels.tsv` as data.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Final

from swingbot.core.reproduce import shell
from swingbot.core.reproduce.kit import Kit, KitKernel, KitPayload, Row
from swingbot_jobs.contract.compiler import llvm_variables
from swingbot_jobs.contract.unit_job import UnitJob

_REPRODUCE: Final = (
    r"""#!/bin/sh
# Boots the kernels of @KIND@ @ID@ again and prints the numbers next to the reported ones.
# Needs QEMU (qemu-system-x86_64), GNU tar, awk and sha256sum. Needs neither swingbot nor root, and no
# network unless README says so.
usage='usage: ./reproduce.sh [options]
  --only NAME        only this kernel; may be given several times (kernels.tsv lists the names)
  --boots N          only the first N boots of each kernel
  --image NAME=FILE  boot this bzImage as kernel NAME: your own build (build.sh)
  --programs DIR     directory of programs that are not in this kit (see README)
  --out DIR          directory for consoles and results (default: ./out)
  --here             no QEMU: run the job once on this machine, under the running kernel; as root'
set -u
export LC_ALL=C
kit=$(cd "$(dirname "$0")" && pwd) || exit 1
out=$PWD/out boots=999999 only='' programs='' here=''
virtual=@VIRTUAL@ testbox=@TESTBOX@

"""
    + shell.HELPERS
    + r"""
# row NAME: the line of kernels.tsv with this directory, else with this name
row() {
	SB_NAME=$1 awk -F '\t' '
		$1 "" == ENVIRON["SB_NAME"] "" { line = NR; exit }
		$2 "" == ENVIRON["SB_NAME"] "" && !line { line = NR }
		END { if (line) print line }' "$kit/kernels.tsv"
}
# row_named NAME: the same for a name from the command line
row_named() {
	sb_line=$(row "$1")
	[ -n "$sb_line" ] || fail "kernel $1 is not in this kit; its kernels are: $(cut -f 1 "$kit/kernels.tsv" | paste -s -d ' ' -)"
	printf '%s\n' "$sb_line"
}
# field FILE LINE NUMBER: print one field of a table of this kit
field() { sed -n "$2p" "$kit/$1" | cut -f "$3"; }

while [ $# -gt 0 ]; do
	case $1 in
	--here) here=yes ;;
	-h | --help) say "$usage"; exit 0 ;;
	--only | --boots | --image | --programs | --out)
		[ $# -gt 1 ] || { say "$usage" >&2; exit 2; }
		case $1 in
		--only)
			sb_row=$(row_named "$2") || exit 1
			only="$only $sb_row "
			;;
		--boots) boots=$2 ;;
		--image)
			case $2 in *?=?*) ;; *) fail "--image $2 is not NAME=FILE" ;; esac
			sb_row=$(row_named "${2%%=*}") || exit 1
			sb_image=$(absolute "${2#*=}")
			[ -f "$sb_image" ] || fail "kernel image $sb_image does not exist"
			eval "image_$sb_row=\$sb_image"
			;;
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
# wanted ROW: whether --only includes this kernel
wanted() { case $only in '' | *" $1 "*) return 0 ;; esac; return 1; }

"""
    + shell.PROGRAMS
    + r"""
# cmdline_words PAYLOAD: kernel command line options of the job, one per line
cmdline_words() {
	case $1 in
@CMDLINES@
	*) set -- ;;
	esac
	[ $# -eq 0 ] || printf '%s\n' "$@"
}

# make_initrd PAYLOAD FILE: write the booted root file system followed by the job
make_initrd() {
	sb_rootfs=$kit/$(field payloads.tsv "$1" 3) sb_whole=$(field payloads.tsv "$1" 4)
	cp "$sb_rootfs/rootfs.cpio" "$2" || fail "cannot write $2"
	chmod u+w "$2"
	if [ -f "$sb_rootfs/left-out" ]; then
		while read -r sb_path sb_offset _ sb_sum sb_package; do
			sb_program=$(find_program "$sb_sum" "${sb_path##*/}") ||
				{ fetch "$sb_package"; sb_program=$(find_program "$sb_sum" "${sb_path##*/}"); } ||
				fail "/$sb_path is part of Debian's $sb_package, which is non-free and not in this kit: download that exact version," \
					"unpack it (dpkg-deb -x) and give the directory with --programs"
			dd if="$sb_program" of="$2" bs=4 seek=$((sb_offset / 4)) conv=notrunc 2>/dev/null || fail "cannot write $2"
		done <"$sb_rootfs/left-out" || exit 1
	fi
	[ "$(digest "$2")" = "$sb_whole" ] || fail "the root file system is not the one that was booted (sha256 $sb_whole)"
	cat "$kit/$(field payloads.tsv "$1" 2)/job.cpio" >>"$2" || fail "cannot write $2"
}

# boot ID DIRECTORY IMAGE SECONDS PAYLOAD: boot once; the console and results go to DIRECTORY below out
boot() {
	sb_id=$1 sb_into=$out/$2 sb_limit=$((600 + 20 * $4))
	rm -rf "${out:?}/$2"
	mkdir -p "$sb_into/results" || fail "cannot create $sb_into"
	ln -s "$3" "$sb_into/bzImage" || fail "cannot write $sb_into"
	make_initrd "$5" "$sb_into/initrd"
	set --
	while IFS= read -r sb_word; do set -- "$@" "$sb_word"; done <"$kit/boots/$sb_id.qemu"
	shift
	set -- "$qemu" "$@"
	command -v timeout >/dev/null 2>&1 && set -- timeout -s KILL "$sb_limit" "$@"
	(cd "$sb_into" && exec "$@" </dev/null >qemu.log 2>&1) || fail "QEMU failed in boot $sb_id; see $sb_into/qemu.log"
	rm -f "$sb_into/initrd"
	tar -x -i -f "$sb_into/results.tar" -C "$sb_into/results" >"$sb_into/tar.log" 2>&1
	[ -f "$sb_into/results/facts/ended" ] || fail "boot $sb_id did not complete; the end of its console: $(tail -n 3 "$sb_into/console.log")"
}

"""
    + shell.READ_RESULTS
    + r"""
# payloads: payload numbers of the boots of the selected kernels
payloads() {
	while read -r _ sb_kernel _ _ sb_payload; do
		wanted "$(row "$sb_kernel")" && say "$sb_payload"
	done <"$kit/boots.tsv" | sort -un
}

# run_here PAYLOAD: run its job under the running kernel
run_here() {
	sb_here=$out/here/$1 sb_jobs=$kit/$(field payloads.tsv "$1" 2)
	[ -f "$sb_jobs/run.sh" ] || fail "this kit has no job to run; README says what is missing"
	cmdline_words "$1" | while IFS= read -r sb_word; do
		tr ' ' '\n' </proc/cmdline | grep -qxF -e "$sb_word" ||
			fail "this kernel was booted without $sb_word; add it to the kernel command line and reboot"
	done || exit 1
	mkdir -p "$sb_here/results" "$sb_here/work" || fail "cannot create $sb_here"
	# needs a shell in between: if the parent of the job is init, the job ends all other processes
	(SWINGBOT_PROGRAMS=$sb_jobs/programs SWINGBOT_WORK=$sb_here/work sh -c 'sh "$0"; exit' "$sb_jobs/run.sh" 3>"$sb_here/results.tar")
	tar -x -i -f "$sb_here/results.tar" -C "$sb_here/results" || fail "the job wrote no results; install the programs that README names"
	read_results "$sb_here/results" here >>"$out/here.tsv"
}

mkdir -p "$out" || fail "cannot create $out"
need awk 'install mawk or gawk'
need tar 'install GNU tar'
: >"$out/here.tsv"
if [ -n "$here" ]; then
	sb_payloads=$(payloads)
	[ -n "$sb_payloads" ] || fail 'this kit has no boots of these kernels; README says why'
	[ -n "$only" ] || [ "$(say "$sb_payloads" | wc -l)" -le @PARTS@ ] ||
		fail 'the kernels of this kit ran different jobs; select the running kernel with --only'
	for sb_payload in $sb_payloads; do run_here "$sb_payload"; done
	say "on this machine, under $(uname -r):"
	awk -F '\t' '{ printf "  %-50s run %s  %-34s %.10g\n", $2, $3, $4, $5 }' "$out/here.tsv"
	[ -s "$out/here.tsv" ] || fail "no run produced a number; see $out/here"
	exit
fi
[ "$virtual" = yes ] || fail "QEMU cannot repeat these boots (testbox $testbox); boot each kernel on your machine and run this script with --here --only NAME"
need sha256sum 'install coreutils'
(cd "$kit" && sha256sum --quiet -c SHA256SUMS >/dev/null 2>&1) || fail "files of this kit were modified: sha256sum -c SHA256SUMS lists them"
qemu=${QEMU:-$(sed -n 1p "$kit"/boots/@FIRST@.qemu)}
need "$qemu" "install it (Debian: qemu-system-x86), or set the variable QEMU to its path"
ours=@QEMU@
version=$("$qemu" --version | sed -n 1p)
[ "$version" = "$ours" ] || say "Your QEMU is $version; the original boots used $ours. Levels may differ slightly; the changes should not."

# repeated ID SUM: the directory of a boot that was already repeated with the image of this checksum
repeated() { awk -F '\t' -v id="$1" -v sum="$2" '$1 == id && $2 "" == sum "" { print $3; exit }' "$out/made.tsv"; }

: >"$out/made.tsv"
while read -r sb_boot sb_kernel sb_k sb_seconds sb_payload; do
	sb_row=$(row "$sb_kernel")
	wanted "$sb_row" || continue
	eval "sb_done=\${count_${sb_row}_$sb_payload:-0}"
	# shellcheck disable=SC2154 # set by eval
	[ "$sb_done" -lt "$boots" ] || continue
	eval "count_${sb_row}_$sb_payload=$((sb_done + 1))"
	eval "sb_image=\${image_$sb_row:-\$kit/kernels/\$sb_kernel/bzImage}"
	[ -f "$sb_image" ] || fail "kernel $sb_image does not exist; build it with build.sh and give it with --image $sb_kernel=FILE"
	sb_image_sum=$(digest "$sb_image") sb_title=$(field kernels.tsv "$sb_row" 2)
	sb_directory=$(repeated "$sb_boot" "$sb_image_sum")
	if [ -n "$sb_directory" ]; then
		say "$sb_title, k=$sb_k: the same image as ${sb_directory%/*}, so the same boot"
	else
		say "booting $sb_title, k=$sb_k, repeating $sb_boot (took $sb_seconds s originally)"
		sb_directory=$sb_kernel/$sb_boot
		boot "$sb_boot" "$sb_directory" "$sb_image" "$sb_seconds" "$sb_payload"
		printf '%s\t%s\t%s\n' "$sb_boot" "$sb_image_sum" "$sb_directory" >>"$out/made.tsv"
	fi
	read_results "$out/$sb_directory/results" "$sb_boot" | sed "s/^/$sb_kernel	/" >>"$out/here.tsv"
done <"$kit/boots.tsv"
say ''
SB_COMPARED=$out/compared.tsv awk -F '\t' '@TABLE@' table=here "$out/here.tsv" table=numbers "$kit/numbers.tsv" table=levels "$kit/levels.tsv"
"""
)

# Exit status 3 if a number differs, 1 if one is missing. `compared.tsv` has every number, reported
# and measured here.
_TABLE: Final = r"""
function off(a, b, d) { d = a - b; if (d < 0) d = -d; if (b < 0) b = -b; return b > 0 ? d / b : d }
function pct(value) { return value == "" ? "" : sprintf("%+.2f %%", value) }
function sum_up(key, part) {
	for (key in runs) {
		split(key, part, SUBSEP)
		sum[part[1], part[3], part[4]] += total[key] / runs[key]; count[part[1], part[3], part[4]]++
	}
	summed = 1
}
function level(kernel, job, metric) {
	return (kernel, job, metric) in count ? sum[kernel, job, metric] / count[kernel, job, metric] : ""
}
BEGIN { compared = ENVIRON["SB_COMPARED"]; printf "" > compared }
table == "here" { here[$1, $2, $3, $4, $5] = $6; boot[$1, $2] = 1; next }
table == "numbers" {
	if (!(($2, $1) in counted)) { counted[$2, $1] = 1; ours++ }
	if (!(($2, $1) in boot)) next
	all++
	name = $6 " of " $4 ", run " $5 ", boot " $1 " of " $2
	if (!(($2, $1, $4, $5, $6) in here)) { missing++; if (missing <= 20) print "missing: " name; next }
	got = here[$2, $1, $4, $5, $6]
	printf "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", $2, $1, $3, $4, $5, $6, $7, got > compared
	apart = off(got, $7)
	if (apart > 1e-12) {
		differ++
		if (differ <= 20) printf "differs: %s: %.10g reported, %.10g here\n", name, $7, got
		if (apart > most) { most = apart; worst = name }
	}
	total[$2, $1, $4, $6] += got; runs[$2, $1, $4, $6]++
	next
}
!summed { sum_up() }
{
	if (job != $1 || metric != $2) {
		job = $1; metric = $2; last = ""
		printf "%s%s of %s%s%s\n", shown++ ? "\n" : "", metric, job, $3 == "-" ? "" : ", " $3, $4 == "-" ? "" : ", " $4 " is better"
		printf "%*s %13s %13s %11s %11s  %s\n", length($6), "", "here", "reported", "change here", "reported", "against"
	}
	now = level($5, job, metric); from = level($8, job, metric)
	title[$5] = $6; sub(/ +$/, "", title[$5])
	against = $8 in title ? title[$8] : $8
	change = now != "" && from != "" && from != 0 ? 100 * (now / from - 1) : ""
	line = sprintf("%s %13s %13s %11s %11s  %s", $6,
		$5 == last || now == "" ? "" : sprintf("%.8g", now),
		$5 == last || $7 == "-" ? "" : sprintf("%.8g", $7),
		pct(change), $9 == "-" ? "" : pct($9),
		$8 == "-" ? "" : against " (" $11 ")" ($10 == "invalid" ? ": not compared" : ""))
	sub(/ +$/, "", line); print line
	last = $5
}
END {
	for (key in boot) made++
	if (shown) print ""
	if (made && made < ours) printf "levels measured here use %d of the %d boots behind the reported ones\n", made, ours
	if (all && !missing && !differ) printf "all %d numbers of the repeated boots equal the reported ones\n", all
	else if (all) {
		note = differ ? sprintf(" (largest difference: %s, %.2g%%)", worst, 100 * most) : ""
		printf "%d of %d numbers differ from the reported ones%s; %d are missing\n", differ, all, note, missing
	} else print "none of the repeated boots has numbers; README lists the kernels without boots"
	exit !all || missing ? 1 : differ ? 3 : 0
}
"""

_BUILD: Final = (
    r"""#!/bin/sh
# Builds one kernel of @KIND@ @ID@ again and reports whether the image is identical.
# usage: ./build.sh LINUX NAME OUT        LINUX: a git repository with its commit, or with the commit to which its patches apply
set -eu
[ $# -eq 3 ] || { echo 'usage: ./build.sh LINUX NAME OUT (kernels.tsv lists the names)' >&2; exit 2; }
kit=$(cd "$(dirname "$0")" && pwd)
linux=$1 name=$2
case $name in
@KERNELS@
*) echo "build.sh: kernel $name is not in this kit; the first column of kernels.tsv lists the names" >&2; exit 2 ;;
esac
config=$kit/kernels/$name/config
[ -f "$config" ] || { echo "build.sh: this kit has no configuration of $name" >&2; exit 1; }
mkdir -p "$3"
out=$(cd "$3" && pwd)
has_commit() { git -C "$linux" cat-file -e "$1^{commit}" 2>/dev/null; }
checkout() { git -C "$linux" worktree add --quiet --force --detach "$out/linux" "$1"; }
if has_commit "$commit"; then
	checkout "$commit"
elif [ -f "$kit/kernels/$name/series" ] && has_commit "$start"; then
	checkout "$start"
	while IFS= read -r patch; do
		git -C "$out/linux" apply "$kit/$patch"
	done <"$kit/kernels/$name/series"
else
	echo "build.sh: $linux has no commit $commit, nor a commit to which patches of this kit apply; README names the repository" >&2
	exit 1
fi
"""
    + shell.MAKE
)


def reproduce(kit: Kit) -> str:
    """Return the text of reproduce.sh."""
    quoted = {"TESTBOX": kit.testbox, "QEMU": kit.qemu_version}
    plain = {
        "KIND": kit.kind,
        "ID": kit.id,
        "NUMBERS": _numbers(kit),
        "CMDLINES": "\n".join(_cmdline(payload) for payload in kit.payloads),
        "VIRTUAL": "yes" if kit.virtual else "no",
        "FIRST": kit.boots[0].id if kit.boots else "none",
        "PARTS": str(_most_payloads(kit)),
        "TABLE": _TABLE,
    }
    return shell.filled(_REPRODUCE, plain, quoted)


def _numbers(kit: Kit) -> str:
    """Return the branches of each unit job once, with the programs of its first payload."""
    jobs: dict[str, tuple[UnitJob, str]] = {}
    for payload in kit.payloads:
        for job in payload.unit_jobs:
            jobs.setdefault(job.name, (job, payload.directory))
    paths = {f"{payload.directory}/{path}" for payload in kit.payloads for path in payload.programs}
    return shell.number_branches(jobs.values(), paths)


def _cmdline(payload: KitPayload) -> str:
    words = dict.fromkeys(word for job in payload.unit_jobs for word in job.cmdline.split())
    return f"\t{payload.number}) set -- {shlex.join(words)} ;;"


def _most_payloads(kit: Kit) -> int:
    """Return the largest number of payloads that the boots of one row have."""
    of_row: dict[str, set[int]] = {}
    for boot in kit.boots:
        of_row.setdefault(boot.kernel, set()).add(boot.payload)
    return max(map(len, of_row.values()), default=0)


def build(kit: Kit) -> str:
    """Return the text of build.sh."""
    plain = {
        "KIND": kit.kind,
        "ID": kit.id,
        "KERNELS": "\n".join(_kernels(kit.rows)),
        "ENVIRONMENT": shell.environment(),
    }
    return shell.filled(_BUILD, plain, {})


def _kernels(rows: Iterable[Row]) -> Iterable[str]:
    for row in rows:
        values = {"commit": row.kernel.commit, "start": row.start, **_build_facts(row.kernel)}
        words = " ".join(f"{name}={shlex.quote(value)}" for name, value in values.items())
        yield f"{shlex.quote(row.kernel.name)}) {words} ;;"


def _build_facts(kernel: KitKernel) -> dict[str, str]:
    return {
        "want": kernel.image_sha256,
        "objects": shell.object_directory(kernel.kconfig, kernel.compiler),
        "cc": kernel.compiler,
        "llvm": " ".join(llvm_variables(kernel.compiler)),
        "said": kernel.compiler_version,
    }
