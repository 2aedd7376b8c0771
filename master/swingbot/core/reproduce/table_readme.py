"""README of a table's kit: its kernels, what was reported of them, how to see it, and what is not in here."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from swingbot.core.reproduce.kit import Headline, KitOmission, Row, TableKit
from swingbot.core.reproduce.readme import LINE, WIDTH, Paragraphs, code, folded, laid_out, prose
from swingbot.core.reproduce.tables import title
from swingbot.core.text.plain import clean, columns, cut, wrap

_NAME = 24  # columns of a row's name in a table of this text
_MOST_SETTINGS = 40  # columns that are left for words in a table
_CHANGES = ("worse", "better", "changed")


def readme(kit: TableKit) -> str:
    """The whole text, lines of at most 78 columns but for addresses and commands."""
    return laid_out(
        [
            ("", _head(kit)),
            ("The numbers again", _numbers(kit)),
            ("What was reported", _reported(kit)),
            ("The kernels", _kernels(kit)),
            ("Build one", _build(kit)),
            ("Where they ran", _where(kit)),
            ("Programs", _programs(kit)),
            ("On a machine of yours", _elsewhere(kit)),
            ("Files", _files(kit)),
            ("Not in here", _missing(kit)),
        ]
    )


def _head(kit: TableKit) -> Paragraphs:
    heading = cut(f"swingbot {kit.kind} {kit.id}: {len(kit.rows)} kernels on {kit.testbox}", WIDTH)
    yield [heading, "=" * len(heading)]
    yield prose(
        f"Everything to see the numbers of swingbot's {kit.kind} {kit.id} on a machine of your"
        f" own; {kit.page} is its page."
    )
    if kit.others:
        yield prose(
            f"It also ran on {', '.join(kit.others)}. This kit has the boots on {kit.testbox} alone;"
            f" `swingbot reproduce {kit.id} --testbox NAME` makes one of another testbox."
        )


def _numbers(kit: TableKit) -> Paragraphs:
    if not kit.virtual:
        yield prose(
            f"They cannot be made with QEMU alone from here: {_why_not(kit)}. See below for a"
            " machine of yours."
        )
        return
    each = {boot.id: boot for boot in kit.boots}
    seconds = sum(boot.seconds for boot in each.values())
    yield code("./reproduce.sh")
    yield prose(
        f"makes {len(each)} boots with the perturbations of ours, compares number by number, and"
        f" prints the level of each kernel and its change, here and as reported. The boots took"
        f" {seconds:.0f} s here. It needs QEMU, GNU tar, awk and sha256sum, and writes to ./out"
        " alone; out/compared.tsv has every number. Exit status: 0 all numbers are the same, 3 some"
        " differ, 1 a boot failed or a number is missing."
    )
    yield prose(
        "With --boots 1 it makes one boot of each kernel, with --only NAME those of one kernel."
        " NAME is a directory below kernels/, or a kernel's own name."
    )
    yield prose(
        f"We used {kit.qemu_version}. With another QEMU the levels may differ a little; the changes"
        " should not. The command of the first boot:"
    )
    yield code(*folded(kit.boots[0].qemu))
    yield prose(
        "where initrd is rootfs/rootfs.cpio (whole, see Programs) followed by job/job.cpio;"
        " payloads.tsv has the directories for the other boots."
    )


def _why_not(kit: TableKit) -> str:
    if not kit.boots:
        return "no boot came up"
    if any(boot.qemu for boot in kit.boots):
        return "some of what it takes is missing"
    return f"the boots were made on a machine, {kit.testbox}"


def _reported(kit: TableKit) -> Paragraphs:
    for headline in kit.headlines:
        unit = f", {clean(headline.unit)}" if headline.unit else ""
        better = f", {headline.better} is better" if headline.better else ""
        yield prose(f"{headline.metric}{unit}{better}, of {headline.unit_job}:")
        yield [line for row in kit.rows for line in _line(headline, row, kit)]
        if headline.level:
            yield prose(f"The reported levels are of {headline.level}; those here are plain means.")


def _line(headline: Headline, row: Row, kit: TableKit) -> Iterator[str]:
    level = headline.levels.get(row.kernel.name)
    first = f"    {_padded(title(row))} {'' if level is None else f'{level:.6g}':>12}"
    changes = [change for change in headline.changes if change.kernel == row.kernel.name]
    titles = {other.kernel.name: title(other) for other in kit.rows}
    if not changes:
        yield first.rstrip()
    for number, change in enumerate(changes):
        before = first if number == 0 else " " * columns(first)
        pct = "" if change.change_pct is None else f"{change.change_pct:+.1f} %"
        against = cut(f"{change.verdict}, against {titles[change.reference]}", _MOST_SETTINGS)
        yield f"{before} {pct:>9}  {against}"


def _padded(text: str) -> str:
    shown = cut(text, _NAME)
    return shown + " " * (_NAME - columns(shown))


def _kernels(kit: TableKit) -> Paragraphs:
    for row in kit.rows:
        yield _kernel(row)
    yield prose(f"in tree {kit.tree}, branch {kit.branch}:")
    yield code(clean(kit.url)[:LINE])


def _kernel(row: Row) -> list[str]:
    kernel = row.kernel
    layout = f", layout {kernel.layout} (build.sh makes the usual one)" if kernel.layout else ""
    facts = [
        f'commit {kernel.commit} "{clean(kernel.subject)}"',
        f"kconfig {kernel.kconfig}, {kernel.compiler_version or kernel.compiler}{layout}",
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
        return [f"{own}{len(row.series)} in all on {row.start}: kernels/{row.kernel.name}/series"]
    return [f"no patches: {row.no_patches}"] if row.no_patches else []


def _build(kit: TableKit) -> Paragraphs:
    name = kit.rows[0].kernel.name
    yield prose(
        "To build a kernel as we did, from a repository that has its commit, or the one that its"
        " patches apply to:"
    )
    yield code(f"./build.sh ~/linux {name} /tmp/{name}")
    yield prose(
        "It says whether the image is the very one that was measured, which it is with the same"
        " compiler and linker. Then:"
    )
    yield code(f"./reproduce.sh --image {name}=/tmp/{name}/bzImage")


def _where(kit: TableKit) -> Paragraphs:
    label = f" ({kit.label})" if kit.label else ""
    yield prose(f"Testbox {kit.testbox}{label}. Each kernel was booted for these unit jobs:")
    jobs = {job.name: job for payload in kit.payloads for job in payload.unit_jobs}
    for job in jobs.values():
        params = (f"{name}={shlex.quote(value)}" for name, value in sorted(job.params.items()))
        yield code(job.name, *params)
    if len(kit.payloads) > 1:
        yield prose(
            "The boots did not all get the same job: the last field of boots.tsv is a number in"
            " payloads.tsv, which names the directories of the job and of its root file system."
        )
    for payload in kit.payloads:
        for job in payload.unit_jobs:
            words = [
                *([f"kernel command line: {job.cmdline}"] if job.cmdline else []),
                *(f"sysctl {name} = {value}" for name, value in sorted(job.sysctl.items())),
            ]
            if words:
                yield prose(f"{payload.directory}, {job.name} asked for:")
                yield code(*words)


def _programs(kit: TableKit) -> Paragraphs:
    if not any(payload.rootfs for payload in kit.payloads):
        return
    yield prose(
        "rootfs/rootfs.cpio is the guest's whole root file system; rootfs/files.tsv names every"
        " file in it with its sha256 and the Debian package and version it is from. Their sources"
        " are at https://snapshot.debian.org/, `apt-get source PACKAGE=VERSION` brings them; what"
        " was compiled here has its source below job/programs."
    )
    gone = _left_out(kit)
    if gone:
        packages = sorted({one.package for one in gone})
        names = ", ".join(f"/{path}" for path in dict.fromkeys(one.path for one in gone))
        yield prose(
            f"{names}: of Debian's {', '.join(packages)}, which is not free, so that we do not hand"
            " it on. In rootfs.cpio their places hold zeros. reproduce.sh takes these files from"
            " your machine, or asks its apt for that very version (component non-free), or takes"
            " them from the unpacked package that --programs names; then it checks that all bytes"
            " are those that were booted."
        )


def _left_out(kit: TableKit) -> list[KitOmission]:
    return [one for payload in kit.payloads if payload.rootfs for one in payload.rootfs.left_out]


def _elsewhere(kit: TableKit) -> Paragraphs:
    programs = sorted({job.program for payload in kit.payloads for job in payload.unit_jobs})
    yield prose(
        f"Boot a kernel there with the words above on its command line, if there are any, and with"
        f" {', '.join(programs)} installed, and run `./reproduce.sh --here --only NAME` as root: it"
        " runs the job of that kernel once, the same script as in our boots, and prints the"
        " numbers. Boots are what to repeat: runs of one boot share their page placement."
    )
    yield prose("With lkp-tests installed, job/lkp has the unit jobs for `lkp run`.")


def _files(kit: TableKit) -> Paragraphs:
    rows = [
        (f"{kit.kind}.json", f"the {kit.kind} as JSON, for programs"),
        ("kernels.tsv", "directory, own name, commit, sha256 of the image"),
        ("numbers.tsv", "boot, kernel, k, unit job, run, metric, value: all that was reported"),
        (
            "levels.tsv",
            "the tables: unit job, metric, unit, better, kernel, own name, level, reference,"
            " change in per cent, verdict, what the reference is",
        ),
        ("boots.tsv, boots/", "the boots in turn; QEMU's arguments of each, one a line"),
        ("kernels/", "configuration and image of each kernel, its patches; equal files are links"),
        ("rootfs/, job/", "what the boots got as initrd; job/run.sh and job/programs/ to read"),
        ("payloads.tsv", "number, directory of the job, directory and sha256 of the root files"),
        ("SHA256SUMS", "of all other files"),
    ]
    yield [
        line for name, words in rows for line in wrap(words, " " * 24, f"{name:24}", width=WIDTH)
    ]


def _missing(kit: TableKit) -> Paragraphs:
    for line in (*kit.missing, *kit.notes):
        yield wrap(line, "  ", "- ", width=WIDTH)
