"""README of a report's kit: what it contains, how to use it, and what is missing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from swingbot.core.reproduce.kit import SIDES, KitKernel, KitRootfs, ReportKit
from swingbot.core.text.plain import clean, cut, wrap

WIDTH: Final = 78
LINE: Final = 400  # maximum length of a path or URL, which is never wrapped

Paragraphs = Iterator[list[str]]


def readme(kit: ReportKit) -> str:
    """Return the text, wrapped at 78 columns except for addresses and commands."""
    return laid_out(
        [
            ("", _head(kit)),
            ("Reproduce the numbers", _numbers(kit)),
            ("The kernels", _kernels(kit)),
            ("Test environment", _where(kit)),
            ("Programs", programs([kit.rootfs] if kit.rootfs else [])),
            ("On your own machine", _elsewhere(kit)),
            ("Files", _files(kit)),
            ("What is missing", _missing(kit)),
        ]
    )


def laid_out(sections: Sequence[tuple[str, Paragraphs]]) -> str:
    """Join sections with their titles; empty sections are left out."""
    lines: list[str] = []
    for title, paragraphs in sections:
        body = [line for paragraph in paragraphs for line in (*paragraph, "")]
        if body:
            lines += [*([title, "-" * len(title), ""] if title else []), *body]
    return "\n".join(lines).rstrip() + "\n"


def prose(text: str) -> list[str]:
    """Wrap a paragraph."""
    return wrap(text, "", width=WIDTH)


def code(*lines: str) -> list[str]:
    """Indent lines without wrapping them."""
    return [f"    {line}" for line in lines]


def _head(kit: ReportKit) -> Paragraphs:
    title = cut(kit.subject, WIDTH)
    yield [title, "=" * len(title)]
    yield prose(
        f"This kit has everything needed to reproduce the numbers of swingbot report {kit.id}"
        f" on your own machine. mail.txt is the mail; {kit.page} has the current state of the"
        " report."
    )


def _numbers(kit: ReportKit) -> Paragraphs:
    if not kit.virtual:
        why = (
            "some of the required files are missing"
            if any(boot.qemu for boot in kit.boots)
            else f"the boots ran on a physical machine, {kit.testbox}"
        )
        yield prose(
            f'This kit cannot reproduce the numbers with QEMU: {why}. See "On your own'
            ' machine" below.'
        )
        return
    yield code("./reproduce.sh")
    seconds = sum(boot.seconds for boot in kit.boots)
    yield prose(
        f"boots both kernels, {len(kit.boots)} boots in total, with the original"
        " perturbations, and prints each number next to the reported one. The original boots"
        f" took {seconds:.0f} s. The script needs QEMU, GNU tar, awk and sha256sum, and writes only"
        " to ./out. Exit status: 0 if all numbers are equal, 3 if some differ, 1 if a boot failed."
        " With --boots 1 it boots each kernel once."
    )
    yield prose(
        f"The original boots used {kit.qemu_version}. With another version the levels may"
        " differ slightly; the change should not. The command of the first boot:"
    )
    yield code(*folded(kit.boots[0].qemu))
    yield prose(
        "where initrd is rootfs/rootfs.cpio (whole, see Programs) followed by job/job.cpio."
    )


def folded(words: Sequence[str]) -> list[str]:
    """Fold a command over several lines with backslashes."""
    lines, line = [], ""
    for word in map(shlex.quote, words):
        if line and len(line) + len(word) > WIDTH - 8:
            lines.append(f"{line} \\")
            line = f"  {word}"
        else:
            line = f"{line} {word}".strip() if not line.startswith("  ") else f"{line} {word}"
    return [*lines, line]


def _kernels(kit: ReportKit) -> Paragraphs:
    for side in SIDES:
        kernel = kit.kernels[side]
        yield [
            f"{side}: {kernel.commit}",
            *wrap(f'"{clean(kernel.subject)}"', "  ", width=WIDTH),
            *_how(kernel),
        ]
    yield prose(f"in tree {kit.tree}, branch {kit.branch}:")
    yield code(clean(kit.url)[:LINE])
    if kit.patch is not None:
        yield prose(
            "kernels/culprit.patch is the commit as a mail for `git am`. To build a kernel in"
            " the same way, from a repository that has the parent:"
        )
    else:
        yield prose(
            f"There is no patch of the commit: {kit.no_patch}. To build a kernel in the same way:"
        )
    yield code("./build.sh ~/linux parent /tmp/parent", "./build.sh ~/linux commit /tmp/commit")
    yield prose(
        "The script reports whether the image is identical to the measured one, which is the"
        " case with the same compiler and linker. Then:"
    )
    yield code("./reproduce.sh --parent /tmp/parent/bzImage --commit /tmp/commit/bzImage")


def _how(kernel: KitKernel) -> list[str]:
    return [*wrap(build_facts(kernel), "  ", width=WIDTH), f"  image {kernel.image_sha256}"]


def build_facts(kernel: KitKernel) -> str:
    """Describe the build of a kernel on one line."""
    layout = (
        f", layout {kernel.layout} (build.sh builds the default layout)" if kernel.layout else ""
    )
    return f"kconfig {kernel.kconfig}, {kernel.compiler_version or kernel.compiler}{layout}"


def _where(kit: ReportKit) -> Paragraphs:
    label = f" ({kit.label})" if kit.label else ""
    yield prose(
        f"Testbox {kit.testbox}{label}. The headline is"
        f" {kit.metric}{f' in {kit.unit}' if kit.unit else ''} of this unit job:"
    )
    yield code(
        kit.unit_job.name,
        *(f"{name}={shlex.quote(value)}" for name, value in sorted(kit.unit_job.params.items())),
    )
    if kit.unit_job.cmdline:
        yield prose("The job appended these options to the kernel command line:")
        yield code(*wrap(kit.unit_job.cmdline, "", width=WIDTH - 4))
    if kit.unit_job.sysctl:
        yield prose("It set these sysctls for its runs; job/run.sh sets them too:")
        yield code(*(f"{name} = {value}" for name, value in sorted(kit.unit_job.sysctl.items())))
    if len(kit.unit_jobs) > 1:
        yield prose(
            f"Each boot ran {len(kit.unit_jobs)} unit jobs one after the other, as the kit"
            " does; numbers.tsv has the results of each."
        )


def programs(systems: Sequence[KitRootfs]) -> Paragraphs:
    """Describe the programs of the root file systems of a kit, and those left out."""
    if not systems:
        return
    yield prose(
        "rootfs/rootfs.cpio is the guest's whole root file system; rootfs/files.tsv lists every"
        " file in it with its sha256 and its Debian package and version. The sources are at"
        " https://snapshot.debian.org/; `apt-get source PACKAGE=VERSION` downloads them. The"
        " sources of programs that swingbot compiled are below job/programs."
    )
    left_out = [omitted for system in systems for omitted in system.left_out]
    if left_out:
        packages = sorted({omitted.package for omitted in left_out})
        names = ", ".join(f"/{path}" for path in dict.fromkeys(one.path for one in left_out))
        yield prose(
            f"{names}: part of Debian's {', '.join(packages)} (section non-free), whose license"
            " restricts redistribution; rootfs.cpio has zeros in their place. reproduce.sh takes"
            " these files from your machine, downloads that exact version with apt (component"
            " non-free), or takes them from the unpacked package given with --programs. It then"
            " verifies that the archive is identical to the booted one."
        )


def _elsewhere(kit: ReportKit) -> Paragraphs:
    program = kit.unit_job.program
    words = " with the options above on its command line" if kit.unit_job.cmdline else ""
    yield prose(
        f"Install {program} on the machine, boot each kernel{words}, and run `./reproduce.sh"
        " --here` as root. It runs job/run.sh, the same script as in the original boots, once, and"
        " prints the numbers. Repeat boots rather than runs: the runs of one boot share their page"
        " placement."
    )
    yield prose(
        "If lkp-tests is installed, `lkp run job.yaml` runs the job of the headline metric."
    )


def _files(kit: ReportKit) -> Paragraphs:
    rows = [
        ("mail.txt, report.json", "the report as text and as JSON"),
        ("numbers.tsv", "boot, side, k, unit job, run, metric, value: all reported numbers"),
        ("boots.tsv, boots/", "the boots, and the QEMU arguments of each, one per line"),
        ("kernels/", "configuration and image of both kernels, the patch"),
        ("rootfs/, job/", "contents of the initrd; job/run.sh and job/programs/ for reading"),
        ("job.yaml", "the job for lkp-tests"),
        ("SHA256SUMS", "checksums of all other files"),
    ]
    yield [
        line for name, words in rows for line in wrap(words, " " * 24, f"{name:24}", width=WIDTH)
    ]


def _missing(kit: ReportKit) -> Paragraphs:
    for line in (*kit.missing, *kit.notes):
        yield wrap(line, "  ", "- ", width=WIDTH)
