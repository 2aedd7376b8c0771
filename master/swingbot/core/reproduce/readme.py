"""README of a kit: its kernels, the reported numbers, how to use it, what is missing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from swingbot.core.reproduce.kit import Headline, Kit, KitKernel, KitRootfs, Row
from swingbot.core.reproduce.tables import title
from swingbot.core.text.plain import clean, columns, cut, repository, wrap

WIDTH: Final = 78
LINE: Final = 400  # maximum length of a path or URL, which is never wrapped
_NAME = 24  # columns of a row's name in a table of this text
_AGAINST = 40  # columns of a verdict and its reference

Paragraphs = Iterator[list[str]]


def readme(kit: Kit) -> str:
    """Return the text, wrapped at 78 columns except for addresses and commands."""
    return _laid_out(
        [
            ("", _head(kit)),
            ("Reproduce the numbers", _numbers(kit)),
            ("Reported numbers", _reported(kit)),
            ("The kernels", _kernels(kit)),
            ("Build a kernel", _build(kit)),
            ("Test environment", _where(kit)),
            ("Programs", _programs([one.rootfs for one in kit.payloads if one.rootfs])),
            ("On your own machine", _elsewhere(kit)),
            ("Files", _files(kit)),
            ("What is missing", _missing(kit)),
        ]
    )


def _head(kit: Kit) -> Paragraphs:
    named = f"swingbot {kit.kind} {kit.id}: {len(kit.rows)} kernels on {kit.testbox}"
    heading = cut(kit.subject or named, WIDTH)
    yield [heading, "=" * len(heading)]
    yield _prose(
        f"This kit has everything needed to reproduce the numbers of swingbot {kit.kind} {kit.id}"
        f" on your own machine. Its page is {kit.page}."
        + (" mail.txt is the mail." if kit.mail else "")
    )
    if kit.others:
        yield _prose(
            f"It also ran on {', '.join(kit.others)}. This kit has only the boots on {kit.testbox};"
            f" `swingbot reproduce {kit.id} --testbox NAME` builds the kit of another testbox."
        )


def _numbers(kit: Kit) -> Paragraphs:
    if not kit.virtual:
        yield _prose(
            f'This kit cannot reproduce the numbers with QEMU: {_why_not(kit)}. See "On your own'
            ' machine" below.'
        )
        return
    each = {boot.id: boot for boot in kit.boots}
    seconds = sum(boot.seconds for boot in each.values())
    yield _code("./reproduce.sh")
    yield _prose(
        f"repeats {len(each)} boots with the original perturbations, compares all numbers,"
        " and prints the level and the change of each kernel, here and as reported. The original"
        f" boots took {seconds:.0f} s. The script needs QEMU, GNU tar, awk and sha256sum, and"
        " writes only to ./out; out/compared.tsv has every number. Exit status: 0 if all numbers"
        " are equal, 3 if some differ, 1 if a boot failed or a number is missing."
    )
    yield _prose(
        "With --boots 1 it boots each kernel once, with --only NAME it boots only one kernel."
        " NAME is a directory below kernels/ or the name of a kernel."
    )
    yield _prose(
        f"The original boots used {kit.qemu_version}. With another version the levels may differ"
        " slightly; the changes should not. The command of the first boot:"
    )
    yield _code(*_folded(kit.boots[0].qemu))
    yield _prose(
        "where initrd is rootfs/rootfs.cpio (whole, see Programs) followed by job/job.cpio;"
        " payloads.tsv lists the directories for the other boots."
    )


def _why_not(kit: Kit) -> str:
    if not kit.boots:
        return "no boot came up"
    if any(boot.qemu for boot in kit.boots):
        return "some of the required files are missing"
    return f"the boots ran on a physical machine, {kit.testbox}"


def _reported(kit: Kit) -> Paragraphs:
    for headline in kit.headlines:
        unit = f", {clean(headline.unit)}" if headline.unit else ""
        better = f", {headline.better} is better" if headline.better else ""
        yield _prose(f"{headline.metric}{unit}{better}, of {headline.unit_job}:")
        yield [line for row in kit.rows for line in _line(headline, row, kit)]
        if headline.level:
            yield _prose(
                f"The reported levels are of {headline.level}; reproduce.sh prints plain means."
            )


def _line(headline: Headline, row: Row, kit: Kit) -> Iterator[str]:
    level = headline.levels.get(row.kernel.name)
    first = f"    {_padded(title(row))} {'' if level is None else f'{level:.6g}':>12}"
    changes = [change for change in headline.changes if change.kernel == row.kernel.name]
    titles = {other.kernel.name: title(other) for other in kit.rows}
    if not changes:
        yield first.rstrip()
    for number, change in enumerate(changes):
        before = first if number == 0 else " " * columns(first)
        pct = "" if change.change_pct is None else f"{change.change_pct:+.1f}%"
        against = cut(f"{change.verdict}, against {titles[change.reference]}", _AGAINST)
        yield f"{before} {pct:>9}  {against}"


def _padded(text: str) -> str:
    shown = cut(text, _NAME)
    return shown + " " * (_NAME - columns(shown))


def _kernels(kit: Kit) -> Paragraphs:
    for row in kit.rows:
        yield _kernel(row)
    yield _prose(f"in tree {kit.tree}, branch {kit.branch}:")
    yield _code(clean(repository(kit.url))[:LINE])


def _kernel(row: Row) -> list[str]:
    kernel = row.kernel
    facts = [
        f'commit {kernel.commit} "{clean(kernel.subject)}"',
        _build_facts(kernel),
        *row.settings,
        *_patches(row),
        *([f"no boots: {row.trouble}"] if row.trouble else []),
    ]
    heading = wrap(f"{title(row)}: kernels/{kernel.name}", "  ", "", width=WIDTH)
    lines = [line for fact in facts for line in wrap(fact, "    ", "  ", width=WIDTH)]
    return [*heading, *lines, f"  image {kernel.image_sha256}"]


def _patches(row: Row) -> list[str]:
    if row.series:
        own = f"{len(row.patches)} of its own, " if row.patches else ""
        return [f"{own}{len(row.series)} in total on {row.start}: kernels/{row.kernel.name}/series"]
    return [f"no patches: {row.no_patches}"] if row.no_patches else []


def _build(kit: Kit) -> Paragraphs:
    name = kit.rows[0].kernel.name
    yield _prose(
        "To build a kernel in the same way, from a repository that has its commit or the commit to"
        " which its patches apply:"
    )
    yield _code(f"./build.sh ~/linux {name} /tmp/{name}")
    yield _prose(
        "The script reports whether the image is identical to the measured one, which is the case"
        " with the same compiler and linker. Then:"
    )
    yield _code(f"./reproduce.sh --image {name}=/tmp/{name}/bzImage")


def _where(kit: Kit) -> Paragraphs:
    label = f" ({kit.label})" if kit.label else ""
    yield _prose(f"Testbox {kit.testbox}{label}. Each kernel ran these unit jobs:")
    jobs = {job.name: job for payload in kit.payloads for job in payload.unit_jobs}
    for job in jobs.values():
        params = (f"{name}={shlex.quote(value)}" for name, value in sorted(job.params.items()))
        yield _code(job.name, *params)
    if len(kit.payloads) > 1:
        yield _prose(
            "Not all boots ran the same job. The last field of boots.tsv is a number in"
            " payloads.tsv, which names the directories of the job and of its root file system."
        )
    for payload in kit.payloads:
        for job in payload.unit_jobs:
            words = [
                *([f"kernel command line: {job.cmdline}"] if job.cmdline else []),
                *(f"sysctl {name} = {value}" for name, value in sorted(job.sysctl.items())),
            ]
            if words:
                yield _prose(f"{payload.directory}, {job.name} requests:")
                yield _code(*words)


def _elsewhere(kit: Kit) -> Paragraphs:
    names = sorted({job.program for payload in kit.payloads for job in payload.unit_jobs})
    yield _prose(
        f"Install {', '.join(names)} on the machine, boot a kernel with the options above on its"
        " command line, if there are any, and run `./reproduce.sh --here --only NAME` as root. It"
        " runs the job of that kernel once, with the same script as in the original boots, and"
        " prints the numbers. Repeat boots rather than runs: the runs of one boot share their page"
        " placement."
    )
    yield _prose("If lkp-tests is installed, `lkp run` can run the unit jobs in job/lkp.")


def _files(kit: Kit) -> Paragraphs:
    rows = [
        (f"{kit.kind}.json", f"the {kit.kind} as JSON, for programs"),
        *([("mail.txt", "the report as it was mailed")] if kit.mail else []),
        ("kernels.tsv", "directory, name, commit, sha256 of the image"),
        ("numbers.tsv", "boot, kernel, k, unit job, run, metric, value: all reported numbers"),
        (
            "levels.tsv",
            "the tables: unit job, metric, unit, better, kernel, name, level, reference,"
            " change in percent, verdict, kind of reference",
        ),
        ("boots.tsv, boots/", "the boots in order, and the QEMU arguments of each, one per line"),
        (
            "kernels/",
            "configuration and image of each kernel, its patches; equal files are hard links",
        ),
        ("rootfs/, job/", "contents of the initrd; job/run.sh and job/programs/ for reading"),
        (
            "payloads.tsv",
            "number, directory of the job, directory and sha256 of the root file system",
        ),
        ("SHA256SUMS", "checksums of all other files"),
    ]
    yield [
        line for name, words in rows for line in wrap(words, " " * 24, f"{name:24}", width=WIDTH)
    ]


def _missing(kit: Kit) -> Paragraphs:
    for line in (*kit.missing, *kit.notes):
        yield wrap(line, "  ", "- ", width=WIDTH)


# --- layout


def _laid_out(sections: Sequence[tuple[str, Paragraphs]]) -> str:
    """Join sections with their titles; empty sections are left out."""
    lines: list[str] = []
    for heading, paragraphs in sections:
        body = [line for paragraph in paragraphs for line in (*paragraph, "")]
        if body:
            lines += [*([heading, "-" * len(heading), ""] if heading else []), *body]
    return "\n".join(lines).rstrip() + "\n"


def _prose(text: str) -> list[str]:
    """Wrap a paragraph."""
    return wrap(text, "", width=WIDTH)


def _code(*lines: str) -> list[str]:
    """Indent lines without wrapping them."""
    return [f"    {line}" for line in lines]


def _folded(words: Sequence[str]) -> list[str]:
    """Fold a command over several lines with backslashes."""
    lines, line = [], ""
    for word in map(shlex.quote, words):
        if line and len(line) + len(word) > WIDTH - 8:
            lines.append(f"{line} \\")
            line = f"  {word}"
        else:
            line = f"{line} {word}".strip() if not line.startswith("  ") else f"{line} {word}"
    return [*lines, line]


def _build_facts(kernel: KitKernel) -> str:
    """Describe the build of a kernel on one line."""
    layout = (
        f", layout {kernel.layout} (build.sh builds the default layout)" if kernel.layout else ""
    )
    return f"kconfig {kernel.kconfig}, {kernel.compiler_version or kernel.compiler}{layout}"


def _programs(systems: Sequence[KitRootfs]) -> Paragraphs:
    """Describe the programs of the root file systems of a kit, and those left out."""
    if not systems:
        return
    yield _prose(
        "rootfs/rootfs.cpio is the guest's whole root file system; rootfs/files.tsv lists every"
        " file in it with its sha256 and its Debian package and version. The sources are at"
        " https://snapshot.debian.org/; `apt-get source PACKAGE=VERSION` downloads them. The"
        " sources of programs that swingbot compiled are below job/programs."
    )
    left_out = [omitted for system in systems for omitted in system.left_out]
    if left_out:
        packages = sorted({omitted.package for omitted in left_out})
        names = ", ".join(f"/{path}" for path in dict.fromkeys(one.path for one in left_out))
        yield _prose(
            f"{names}: part of Debian's {', '.join(packages)} (section non-free), whose license"
            " restricts redistribution; rootfs.cpio has zeros in their place. reproduce.sh takes"
            " these files from your machine, downloads that exact version with apt (component"
            " non-free), or takes them from the unpacked package given with --programs. It then"
            " verifies that the archive is identical to the booted one."
        )
