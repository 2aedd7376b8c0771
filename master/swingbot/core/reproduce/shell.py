"""Parts of a POSIX shell script that the scripts of all kits share, and their substitution."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable
from typing import Final

from swingbot_jobs.contract.unit_job import UnitJob

# Must equal the environment that the worker builds with; a test compares the two.
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
need() { command -v "$1" >/dev/null 2>&1 || fail "$1 is not installed; $2"; }
digest() { sha256sum <"$1" | cut -d ' ' -f 1; }
"""

PROGRAMS: Final = r"""# numbers UNIT_JOB: convert the output of the program (standard input) to lines `metric value`
numbers() {
	case $1 in
@NUMBERS@
	*) cat >/dev/null ;;
	esac
}

# find_program SHA256 NAME: the path of a program with this checksum, from --programs, this machine
# or a downloaded Debian package
find_program() {
	for sb_place in ${programs:+"$programs/$2" "$programs/usr/bin/$2"} "/usr/bin/$2" "$out/packages/usr/bin/$2"; do
		[ -f "$sb_place" ] && [ "$(digest "$sb_place")" = "$1" ] && { printf '%s\n' "$sb_place"; return 0; }
	done
	return 1
}

# fetch PACKAGE: try to download name_version_arch with apt
fetch() {
	command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || return 1
	sb_name=${1%%_*} sb_version=${1#*_}
	sb_version=${sb_version%_*}
	mkdir -p "$out/packages"
	(cd "$out/packages" && apt-get -qq download "$sb_name=$sb_version" && dpkg-deb -x "$sb_name"_*.deb .) >"$out/packages.log" 2>&1
}
"""

READ_RESULTS: Final = r"""# read_results DIRECTORY ID: print `id unit_job run metric value` for every run below DIRECTORY
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

# Builds the kernel and compares its image; follows the checkout of the source.
MAKE: Final = r"""version=$($cc --version | sed -n 1p)
[ "$version" = "$said" ] || echo "build.sh: $cc is $version, but the original build used $said; the image will differ" >&2
mkdir -p "$out/linux/$objects"
cp "$config" "$out/linux/$objects/.config"
make_kernel() {
	# shellcheck disable=SC2086 # word splitting is intended
	env -i @ENVIRONMENT@ HOME="$out" \
		make --no-print-directory -C "$out/linux" O="$objects" ARCH=x86_64 CC="$cc" HOSTCC="$cc" $llvm "$@"
}
make_kernel olddefconfig >"$out/build.log" 2>&1
make_kernel -j"$(nproc 2>/dev/null || echo 1)" bzImage >>"$out/build.log" 2>&1 || { tail -n 20 "$out/build.log" >&2; exit 1; }
cp "$out/linux/$objects/arch/x86/boot/bzImage" "$out/bzImage"
got=$(sha256sum <"$out/bzImage" | cut -d ' ' -f 1)
if [ "$got" = "$want" ]; then
	echo "$out/bzImage: identical to the measured image (sha256 $got)"
else
	echo "$out/bzImage: sha256 $got differs from the measured image ($want)"
fi
"""


def environment() -> str:
    """Return the environment of a build as arguments for `env`."""
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in BUILD_ENVIRONMENT.items())


def object_directory(kconfig: str, compiler: str) -> str:
    """Return the object directory below the source, named as on the worker: the image contains
    paths.
    """
    return f"o-{kconfig}-{compiler}-0"


def number_branches(jobs: Iterable[tuple[UnitJob, str]], programs: Collection[str]) -> str:
    """Return the branches of `numbers` for each job whose `numbers.awk` is in the kit.

    `jobs` are unit jobs with the directory of their programs, `programs` paths in the kit.
    """
    return "\n".join(
        _branch(job, directory)
        for job, directory in jobs
        if f"{directory}/programs/{job.program}/numbers.awk" in programs
    )


def _branch(job: UnitJob, directory: str) -> str:
    """Return the branch of one job: its awk script with the parameters of the program."""
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
    """Fill in a template.

    `plain` values are trusted and inserted unchanged. `quoted` values are not trusted; each becomes
    one quoted word.
    """
    values = {**plain, **{name: shlex.quote(value) for name, value in quoted.items()}}
    return re.sub(r"@([A-Z_]+)@", lambda match: values[match[1]], template)
