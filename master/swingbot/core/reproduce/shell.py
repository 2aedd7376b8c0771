"""What the scripts of all kits share: parts of a POSIX shell script, and how values get into them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable
from typing import Final

from swingbot_jobs.contract.unit_job import UnitJob

# The same as the worker's own recipe; a test holds the two together.
BUILD_ENVIRONMENT: Final = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C",
    "TZ": "UTC",
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_USER": "swingbot",
    "KBUILD_BUILD_HOST": "swingbot",
    "KBUILD_BUILD_VERSION": "1",
    "LOCALVERSION": "",
}

HELPERS: Final = r"""say() { printf '%s\n' "$*"; }
fail() { printf 'reproduce.sh: %s\n' "$*" >&2; exit 1; }
absolute() { case $1 in /*) printf '%s\n' "$1" ;; *) printf '%s\n' "$PWD/$1" ;; esac; }
need() { command -v "$1" >/dev/null 2>&1 || fail "$1 is not here; $2"; }
digest() { sha256sum <"$1" | cut -d ' ' -f 1; }
"""

PROGRAMS: Final = r"""# numbers UNIT_JOB: what the program printed (standard input) as lines `metric value`
numbers() {
	case $1 in
@NUMBERS@
	*) cat >/dev/null ;;
	esac
}

# found SHA256 NAME: a program with these bytes: in --programs, on this machine, or out of a Debian package
found() {
	for sb_place in ${programs:+"$programs/$2" "$programs/usr/bin/$2"} "/usr/bin/$2" "$out/packages/usr/bin/$2"; do
		[ -f "$sb_place" ] && [ "$(digest "$sb_place")" = "$1" ] && { printf '%s\n' "$sb_place"; return 0; }
	done
	return 1
}

# fetch PACKAGE: try to get name_version_arch from this machine's apt
fetch() {
	command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || return 1
	sb_name=${1%%_*} sb_version=${1#*_}
	sb_version=${sb_version%_*}
	mkdir -p "$out/packages"
	(cd "$out/packages" && apt-get -qq download "$sb_name=$sb_version" && dpkg-deb -x "$sb_name"_*.deb .) >"$out/packages.log" 2>&1
}
"""

READ_RESULTS: Final = r"""# read_results DIRECTORY ID: `id unit_job run metric value` of every run below DIRECTORY
read_results() {
	for sb_run in "$1"/*/*/stdout; do
		[ -f "$sb_run" ] || continue
		sb_run=${sb_run%/stdout}
		sb_number=${sb_run##*/} sb_job=${sb_run%/*}
		sb_job=${sb_job##*/}
		numbers "$sb_job" <"$sb_run/stdout" | while read -r sb_metric sb_value; do
			printf '%s\t%s\t%s\t%s\t%s\n' "$2" "$sb_job" "$sb_number" "$sb_metric" "$sb_value"
		done
	done
}
"""

# make_kernel and what the image is, behind the checkout of the source.
MAKE: Final = r"""version=$($cc --version | sed -n 1p)
[ "$version" = "$said" ] || echo "build.sh: $cc is $version; ours was $said, so the image will differ" >&2
mkdir -p "$out/linux/$objects"
cp "$config" "$out/linux/$objects/.config"
make_kernel() {
	# shellcheck disable=SC2086 # a list of words is meant
	env -i @ENVIRONMENT@ HOME="$out" \
		make --no-print-directory -C "$out/linux" O="$objects" ARCH=x86_64 CC="$cc" HOSTCC="$cc" $llvm "$@"
}
make_kernel olddefconfig >"$out/build.log" 2>&1
make_kernel -j"$(nproc 2>/dev/null || echo 1)" bzImage >>"$out/build.log" 2>&1 || { tail -n 20 "$out/build.log" >&2; exit 1; }
cp "$out/linux/$objects/arch/x86/boot/bzImage" "$out/bzImage"
got=$(sha256sum <"$out/bzImage" | cut -d ' ' -f 1)
if [ "$got" = "$want" ]; then
	echo "$out/bzImage: the very image that was measured (sha256 $got)"
else
	echo "$out/bzImage: sha256 $got; the one that was measured has $want"
fi
"""


def environment() -> str:
    """The environment of a build as words for `env`."""
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in BUILD_ENVIRONMENT.items())


def object_directory(kconfig: str, compiler: str) -> str:
    """Below the source, as the worker names it: paths get into the image."""
    return f"o-{kconfig}-{compiler}-0"


def number_branches(jobs: Iterable[tuple[UnitJob, str]], programs: Collection[str]) -> str:
    """Branches of `numbers`, of each job whose `numbers.awk` is among the kit's files.

    `jobs` are unit jobs with the directory of their programs, `programs` paths in the kit.
    """
    return "\n".join(
        _branch(job, directory)
        for job, directory in jobs
        if f"{directory}/programs/{job.program}/numbers.awk" in programs
    )


def _branch(job: UnitJob, directory: str) -> str:
    """The program's awk with the parameters that the program was given, its metrics by full name."""
    given = " ".join(
        f"-v {shlex.quote(f'{name}={value}')}"
        for name, value in sorted(job.params.items())
        if "\\" not in value
    )
    script = f'"$kit/{directory}/programs/{job.program}/numbers.awk"'
    return f"\t{shlex.quote(job.name)}) awk {given} -f {script} | sed 's/^/{job.program}./' ;;".replace(
        "awk  -f", "awk -f"
    )


def filled(template: str, plain: dict[str, str], quoted: dict[str, str]) -> str:
    """`plain` are texts of ours, put in as they are; `quoted` may come from anywhere and become one word each."""
    values = {**plain, **{name: shlex.quote(value) for name, value in quoted.items()}}
    return re.sub(r"@([A-Z_]+)@", lambda match: values[match[1]], template)
