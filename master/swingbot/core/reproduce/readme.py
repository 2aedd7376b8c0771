"""README of a kit: what the report says, how to see it, and what is not in here."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from swingbot.core.reproduce.kit import SIDES, KitKernel, ReportKit
from swingbot.core.text.plain import clean, cut, wrap

WIDTH: Final = 78
LINE: Final = 400  # of a path or URL, which is never broken

Paragraphs = Iterator[list[str]]


def readme(kit: ReportKit) -> str:
    """The whole text, lines of at most 78 columns but for addresses and commands."""
    return laid_out(
        [
            ("", _head(kit)),
            ("The numbers again", _numbers(kit)),
            ("The kernels", _kernels(kit)),
            ("Where they ran", _where(kit)),
            ("Programs", _programs(kit)),
            ("On a machine of yours", _elsewhere(kit)),
            ("Files", _files(kit)),
            ("Not in here", _missing(kit)),
        ]
    )


def laid_out(sections: Sequence[tuple[str, Paragraphs]]) -> str:
    """Sections with their titles; one without a paragraph is left out."""
    lines: list[str] = []
    for title, paragraphs in sections:
        body = [line for paragraph in paragraphs for line in (*paragraph, "")]
        if body:
            lines += [*([title, "-" * len(title), ""] if title else []), *body]
    return "\n".join(lines).rstrip() + "\n"


def prose(text: str) -> list[str]:
    """A paragraph, wrapped."""
    return wrap(text, "", width=WIDTH)


def code(*lines: str) -> list[str]:
    """Lines as they are, indented."""
    return [f"    {line}" for line in lines]


def _head(kit: ReportKit) -> Paragraphs:
    title = cut(kit.subject, WIDTH)
    yield [title, "=" * len(title)]
    yield prose(
        f"Everything to see the numbers of swingbot's report {kit.id} on a machine of your own: the mail is mail.txt, {kit.page} has its latest state."
    )


def _numbers(kit: ReportKit) -> Paragraphs:
    if not kit.virtual:
        why = (
            "some of what it takes is missing"
            if any(boot.qemu for boot in kit.boots)
            else f"the boots were made on a machine, {kit.testbox}"
        )
        yield prose(
            f"They cannot be made with QEMU alone from here: {why}. See below for a machine of yours."
        )
        return
    yield code("./reproduce.sh")
    seconds = sum(boot.seconds for boot in kit.boots)
    yield prose(
        f"boots both kernels, {len(kit.boots)} boots in all, with the perturbations of ours, and prints each number beside the reported one. The boots took "
        f"{seconds:.0f} s here. It needs QEMU, GNU tar, awk and sha256sum, and writes to ./out alone. Exit status: 0 all numbers are the same, 3 some "
        "differ, 1 a boot failed. With --boots 1 it makes one boot of each kernel."
    )
    yield prose(
        f"We used {kit.qemu_version}. With another QEMU the levels may differ a little; the change should not. The command of the first boot:"
    )
    yield code(*folded(kit.boots[0].qemu))
    yield prose(
        "where initrd is rootfs/rootfs.cpio (whole, see Programs) followed by job/job.cpio."
    )


def folded(words: object) -> list[str]:
    """A command over several lines that a shell takes as one."""
    assert isinstance(words, (list, tuple))
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
            "kernels/culprit.patch is the commit as a mail for `git am`. To build one as we did, from a repository that has the parent:"
        )
    else:
        yield prose(f"There is no patch of it: {kit.no_patch}. To build one as we did:")
    yield code("./build.sh ~/linux parent /tmp/parent", "./build.sh ~/linux commit /tmp/commit")
    yield prose(
        "It says whether the image is the very one that was measured, which it is with the same compiler and linker. Then:"
    )
    yield code("./reproduce.sh --parent /tmp/parent/bzImage --commit /tmp/commit/bzImage")


def _how(kernel: KitKernel) -> list[str]:
    layout = f", layout {kernel.layout} (build.sh makes the usual one)" if kernel.layout else ""
    said = f"kconfig {kernel.kconfig}, {kernel.compiler_version}{layout}"
    return [*wrap(said, "  ", width=WIDTH), f"  image {kernel.image_sha256}"]


def _where(kit: ReportKit) -> Paragraphs:
    label = f" ({kit.label})" if kit.label else ""
    yield prose(
        f"Testbox {kit.testbox}{label}. The headline is {kit.metric}{f' in {kit.unit}' if kit.unit else ''} of this unit job:"
    )
    yield code(
        kit.unit_job.name,
        *(f"{name}={shlex.quote(value)}" for name, value in sorted(kit.unit_job.params.items())),
    )
    if kit.unit_job.cmdline:
        yield prose("The job asked for these words at the end of the kernel command line:")
        yield code(*wrap(kit.unit_job.cmdline, "", width=WIDTH - 4))
    if kit.unit_job.sysctl:
        yield prose("It set these sysctls for its runs, and job/run.sh does so too:")
        yield code(*(f"{name} = {value}" for name, value in sorted(kit.unit_job.sysctl.items())))
    if len(kit.unit_jobs) > 1:
        yield prose(
            f"Each boot ran {len(kit.unit_jobs)} unit jobs one after the other, as the kit does; numbers.tsv has what came of each."
        )


def _programs(kit: ReportKit) -> Paragraphs:
    if kit.rootfs is None:
        return
    yield prose(
        "rootfs/rootfs.cpio is the guest's whole root file system; rootfs/files.tsv names every file in it with its sha256 and the Debian package and version "
        "it is from. Their sources are at https://snapshot.debian.org/, `apt-get source PACKAGE=VERSION` brings them; what was compiled here has its source "
        "below job/programs."
    )
    if kit.rootfs.left_out:
        packages = sorted({gone.package for gone in kit.rootfs.left_out})
        names = ", ".join(f"/{gone.path}" for gone in kit.rootfs.left_out)
        yield prose(
            f"{names}: of Debian's {', '.join(packages)}, which is not free, so that we do not hand it on. In rootfs.cpio their places hold zeros. "
            "reproduce.sh takes these files from your machine, or asks its apt for that very version (component non-free), or takes them from "
            "the unpacked package that --programs names; then it checks that all bytes are those that were booted."
        )


def _elsewhere(kit: ReportKit) -> Paragraphs:
    program = kit.unit_job.program
    words = " and with the words above on its command line" if kit.unit_job.cmdline else ""
    yield prose(
        f"Boot each kernel there{words}, with {program} installed, and run `./reproduce.sh --here` as root: it runs job/run.sh, the same script as in our boots, "
        "once, and prints the numbers. Boots are what to repeat: runs of one boot share their page placement."
    )
    yield prose("With lkp-tests installed, job.yaml is the headline's job for `lkp run`.")


def _files(kit: ReportKit) -> Paragraphs:
    rows = [
        ("mail.txt, report.json", "the report, for people and for programs"),
        ("numbers.tsv", "boot, side, k, unit job, run, metric, value: all that was reported"),
        ("boots.tsv, boots/", "the boots; QEMU's arguments of each, one a line"),
        ("kernels/", "configuration and image of both, the patch"),
        ("rootfs/, job/", "what the boots got as initrd; job/run.sh and job/programs/ to read"),
        ("job.yaml", "for lkp-tests"),
        ("SHA256SUMS", "of all other files"),
    ]
    yield [
        line for name, words in rows for line in wrap(words, " " * 24, f"{name:24}", width=WIDTH)
    ]


def _missing(kit: ReportKit) -> Paragraphs:
    for line in (*kit.missing, *kit.notes):
        yield wrap(line, "  ", "- ", width=WIDTH)
