"""Kits: names, texts, and what its scripts do with any of them.

QEMU is a shell script here, which prints what the image says; tests/e2e boots the real thing.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core import limits
from swingbot.core.reproduce import (
    Headline,
    Kit,
    KitArtifact,
    KitBoot,
    KitKernel,
    KitMember,
    KitPayload,
    KitRootfs,
    KitRun,
    ReportedChange,
    Row,
    members,
)
from swingbot.core.reproduce.lineage import Lineage, chain, lineages
from swingbot.core.reproduce.names import directory_names
from swingbot.core.reproduce.shell import BUILD_ENVIRONMENT
from swingbot.core.text.plain import columns
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_worker.kbuild import recipe
from swingbot_worker.order import Spec
from tests.kit_texts import texts

BIN = Path(sys.executable).parent
JOB = UnitJob(name="toy-1", program="toy", params={"size": "1"}, runs=2)
METRIC = "toy.ops"
NUMBERS_AWK = b'$1 == "ops" { print "ops", $2 }\n'
ROOTFS = b"root file system"
# Prints the first line of the image, twice, as two runs of the job; `dies` is a kernel that hangs.
QEMU = """#!/bin/sh
[ "$1" != --version ] || { echo 'QEMU emulator version 7.2.22'; exit; }
value=$(head -n 1 bzImage)
[ "$value" != dies ] || { : >console.log; mkdir none; tar -cf results.tar none; exit 0; }
for run in 0 1; do
	mkdir -p r/toy-1/$run
	echo "ops $value" >r/toy-1/$run/stdout
done
mkdir -p r/facts
: >r/facts/ended
cat initrd >r/facts/initrd
tar -C r -cf results.tar .
echo up >console.log
"""
HOSTILE = [
    "x'; touch hacked #",
    "$(touch hacked)",
    "`touch hacked`",
    "../../etc/passwd",
    "a\nb\tc",
    '"; touch hacked; "',
    "--no-such -rf /",
    "@KERNELS@ @TABLE@",
    "\x1b[31mred",
    "&|;<>*?[]{}!~%\\1\\n",
]

Files = Mapping[str, bytes]


def stored(content: bytes) -> KitArtifact:
    return KitArtifact(sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def a_row(name: str, title: str, value: bytes, **more: object) -> Row:
    kernel = KitKernel(
        name=name,
        commit=hashlib.sha1(title.encode()).hexdigest(),
        subject=f"mm: {title}",
        kconfig="vm-x86_64",
        compiler="gcc",
        compiler_version="gcc (Debian 12.2.0-14) 12.2.0",
        layout=0,
        image_sha256=stored(value).sha256,
        image=stored(value),
        config=stored(b"CONFIG_MMU=y\n"),
    )
    row = Row(title=title, kernel=kernel, start=kernel.commit)
    return replace(row, **more)  # type: ignore[arg-type]  # fields of a row


def a_boot(id: str, kernel: str, k: int, value: float, payload: int = 1) -> KitBoot:
    runs = [KitRun(unit_job=JOB.name, number=run, values={METRIC: value}) for run in range(2)]
    qemu = ("qemu-system-x86_64", "-kernel", "bzImage", "-append", f"swingbot.delay_us={k}")
    return KitBoot(id=id, kernel=kernel, k=k, seconds=3.0, qemu=qemu, runs=runs, payload=payload)


def a_payload(number: int, job: bytes, *, cmdline: str = "") -> KitPayload:
    return KitPayload(
        number=number,
        rootfs_number=1,
        rootfs=KitRootfs(
            whole=stored(ROOTFS).sha256,
            archive=stored(ROOTFS),
            files=[("usr/bin/toy", 4, "1" * 64, "-")],
        ),
        job=stored(job),
        programs={"run.sh": b"#!/bin/sh\n", "programs/toy/numbers.awk": NUMBERS_AWK},
        unit_jobs=[replace(JOB, cmdline=cmdline)],
    )


IMAGES: Files = {
    name: f"{value}\n".encode() for name, value in (("base", 100), ("fast", 110), ("dies", "dies"))
}
CONTENTS: Files = {
    stored(content).sha256: content
    for content in (*IMAGES.values(), b"CONFIG_MMU=y\n", ROOTFS, b"job one", b"job two")
}


def a_kit(titles: Sequence[str] = ("v6.1", "batch<<2", "gcc head")) -> Kit:
    """Three rows, the last of the first one's image, which was booted once for both."""
    base, fast, same = directory_names(titles)
    return Kit(
        id="e3",
        kind="experiment",
        created_at="2026-03-02T09:00:00Z",
        page="http://lab.example.org:8010/experiment/e3",
        tree="demo",
        url="https://git.example.org/linux.git",
        branch="mm",
        testbox="vm-icount",
        label="emulated",
        others=["lkp-box-1"],
        chosen=False,
        qemu_version="QEMU emulator version 7.2.22",
        json="{}\n",
        rows=[
            a_row(base, titles[0], IMAGES["base"]),
            a_row(fast, titles[1], IMAGES["fast"], settings=["kernel command line: nosmt"]),
            a_row(same, titles[2], IMAGES["base"]),
        ],
        boots=[
            a_boot("x1", base, 0, 100.0),
            a_boot("x2", fast, 0, 110.0, payload=2),
            a_boot("x1", same, 0, 100.0),
            a_boot("x4", fast, 1, 110.0, payload=2),
            a_boot("x3", base, 1, 100.0),
            a_boot("x3", same, 1, 100.0),
        ],
        payloads=[a_payload(1, b"job one"), a_payload(2, b"job two", cmdline="nosmt")],
        headlines=[
            Headline(
                unit_job=JOB.name,
                metric=METRIC,
                unit="ops/s",
                better="higher",
                level=None,
                levels={base: 100.0, fast: 110.0, same: 100.0},
                changes=[
                    ReportedChange(
                        kernel=fast,
                        reference=base,
                        words="the first row",
                        verdict="better",
                        change_pct=10.0,
                    ),
                    ReportedChange(
                        kernel=same,
                        reference=base,
                        words="the first row",
                        verdict="same",
                        change_pct=0.0,
                    ),
                ],
            )
        ],
    )


def written(kit: Kit, place: Path) -> Path:
    """The kit as a directory, with the QEMU of this file beside it."""
    for member in members(kit):
        path = place / "kit" / member.path
        path.parent.mkdir(parents=True, exist_ok=True)
        content = member.content
        path.write_bytes(
            CONTENTS[content.sha256] if isinstance(content, KitArtifact) else content.content
        )
        path.chmod(member.mode)
    qemu = place / "qemu"
    qemu.write_text(QEMU)
    qemu.chmod(0o755)
    return place / "kit"


def run(kit: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", kit / words[0], *words[1:]],
        cwd=kit.parent,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "QEMU": str(kit.parent / "qemu")},
    )


# --- names


@given(st.lists(st.text(max_size=80), max_size=30))
def test_directory_names_are_plain_unique_and_the_same_again(names: list[str]) -> None:
    found = directory_names(names)
    assert len(found) == len(names) and found == directory_names(names)
    assert len({name.lower() for name in found}) == len(found)
    for name in found:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,70}", name) and ".." not in name


def test_directory_names_can_be_read() -> None:
    given = ["v6.1", "batch<<2", "batch 2", "BATCH-2", "gcc head", "1/7", "../../etc", "", "日本"]
    assert directory_names(given) == [
        "v6.1",
        "batch-2",
        "batch-2-2",
        "BATCH-2-3",
        "gcc-head",
        "1-7",
        "etc",
        "kernel",
        "kernel-2",
    ]


# --- files


def test_equal_facts_make_equal_members() -> None:
    assert members(a_kit()) == members(a_kit())


def test_equal_images_are_one_file_under_two_names() -> None:
    found = {member.path: member for member in members(a_kit())}
    assert found["kernels/v6.1/bzImage"].same_as == "kernels/gcc-head/bzImage"
    assert found["kernels/gcc-head/bzImage"].same_as == ""
    assert found["kernels/batch-2/bzImage"].same_as == ""
    paths = list(found)
    assert all(paths.index(m.same_as) < paths.index(m.path) for m in found.values() if m.same_as)


def test_jobs_that_differ_are_kept_each_and_a_common_root_file_system_once() -> None:
    made = texts(a_kit())
    assert made["payloads.tsv"].splitlines() == [
        f"1\tjob\trootfs\t{stored(ROOTFS).sha256}",
        f"2\tjob-2\trootfs\t{stored(ROOTFS).sha256}",
    ]
    paths = [member.path for member in members(a_kit())]
    assert {"job/job.cpio", "job-2/job.cpio", "rootfs/rootfs.cpio"} <= set(paths)
    assert "rootfs-2/rootfs.cpio" not in paths


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_name_reaches_a_script_or_a_path(hostile: str) -> None:
    kit = a_kit(("v6.1", hostile, "gcc head"))
    plain = a_kit(("v6.1", "", "gcc head"))
    name = kit.rows[1].kernel.name
    kit = replace(
        kit, rows=[replace(row, kernel=replace(row.kernel, subject=hostile)) for row in kit.rows]
    )
    for path, text in texts(kit).items():
        assert re.fullmatch(r"[A-Za-z0-9._+/-]+", path) and ".." not in path
        if path.endswith(".sh") and path.count("/") == 0:
            own = text.replace(name, "kernel").replace(kit.rows[1].kernel.commit, "C")
            assert own == texts(plain)[path].replace(plain.rows[1].kernel.commit, "C")
    for path in ("kernels.tsv", "levels.tsv", "boots.tsv"):
        fields = {line.count("\t") for line in texts(kit)[path].splitlines()}
        assert len(fields) == 1, (path, texts(kit)[path])


def test_readme_names_every_kernel_what_is_missing_and_no_line_is_long() -> None:
    kit = a_kit(("v6.1", "ü" * 150 + "\x1b[31m\nX-Evil: 1", "gcc head"))
    lost = replace(kit.rows[2], trouble="it does not build: mm/x.c:1: error")
    text = texts(replace(kit, rows=[*kit.rows[:2], lost], missing=["rootfs.cpio: gone"]))["README"]
    assert "gcc head: kernels/gcc-head" in text
    assert "no boots: it does not build: mm/x.c:1: error" in text
    assert "- rootfs.cpio: gone" in text and "lkp-box-1" in text
    assert "kernel command line: nosmt" in text
    assert "\x1b" not in text and "\nX-Evil" not in text
    long = [
        line
        for line in text.splitlines()
        if columns(line) > 78 and not line.startswith("    ") and "://" not in line
    ]
    assert long == []


@pytest.mark.parametrize("name", ["reproduce.sh", "build.sh"])
def test_scripts_are_plain_posix_shell(name: str, tmp_path: Path) -> None:
    hostile = "x'; touch hacked #\n$(id)`id`@KIND@"
    kit = replace(a_kit(), qemu_version=hostile, testbox=hostile)
    rows = [replace(row, kernel=replace(row.kernel, compiler_version=hostile)) for row in kit.rows]
    for number, one in enumerate((a_kit(), replace(kit, rows=rows))):
        script = tmp_path / f"{number}-{name}"
        script.write_text(texts(one)[name])
        severity = "--severity=info" if number == 0 else "--severity=warning"
        done = subprocess.run(
            [str(BIN / "shellcheck"), "--shell=sh", severity, script],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout


# --- what the scripts do


def test_all_kernels_are_booted_and_their_levels_and_changes_stand_side_by_side(
    tmp_path: Path,
) -> None:
    kit = written(a_kit(), tmp_path)
    done = run(kit, "reproduce.sh")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "booting v6.1, k=0, repeating x1 (took 3 s originally)",
        "booting batch<<2, k=0, repeating x2 (took 3 s originally)",
        "gcc head, k=0: the same image as v6.1, so the same boot",
        "booting batch<<2, k=1, repeating x4 (took 3 s originally)",
        "booting v6.1, k=1, repeating x3 (took 3 s originally)",
        "gcc head, k=1: the same image as v6.1, so the same boot",
        "",
        "toy.ops of toy-1, ops/s, higher is better",
        "                  here      reported change here    reported  against",
        "v6.1               100           100",
        "batch<<2           110           110    +10.00 %    +10.00 %  v6.1 (the first row)",
        "gcc head           100           100     +0.00 %     +0.00 %  v6.1 (the first row)",
        "",
        "all 12 numbers of the repeated boots equal the reported ones",
    ]
    compared = (tmp_path / "out" / "compared.tsv").read_text().splitlines()
    assert len(compared) == 12
    assert compared[0].split("\t") == ["v6.1", "x1", "0", "toy-1", "0", METRIC, "100.0", "100"]
    facts = tmp_path / "out" / "batch-2" / "x2" / "results" / "facts"
    assert (facts / "initrd").read_bytes() == ROOTFS + b"job two"


def test_only_and_boots_choose(tmp_path: Path) -> None:
    kit = written(a_kit(), tmp_path)
    done = run(kit, "reproduce.sh", "--only", "batch<<2", "--only", "v6.1", "--boots", "1")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"booting (.*), k=(.)", done.stdout) == [("v6.1", "0"), ("batch<<2", "0")]
    assert "levels measured here use 2 of the 6 boots behind the reported ones" in done.stdout
    assert "all 4 numbers of the repeated boots equal the reported ones" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--only", "../x"),
            "kernel ../x is not in this kit; its kernels are: v6.1 batch-2 gcc-head",
        ),
        (("--boots", "0"), "--boots 0 is not a number of boots"),
        (("--image", "v6.1"), "--image v6.1 is not NAME=FILE"),
        (("--image", "v6.1=/nowhere"), "kernel image /nowhere does not exist"),
        (("--image", "other=/dev/null"), "kernel other is not in this kit"),
        (("--here",), "select the running kernel with --only"),
        (
            ("--here", "--only", "batch-2"),
            "this kernel was booted without nosmt; add it to the kernel command line and reboot",
        ),
    ],
)
def test_wrong_options_are_one_sentence(tmp_path: Path, words: Sequence[str], message: str) -> None:
    done = run(written(a_kit(), tmp_path), "reproduce.sh", *words)
    assert done.returncode == 1
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_an_image_of_ones_own_is_booted_and_its_difference_is_status_3(tmp_path: Path) -> None:
    kit = written(a_kit(), tmp_path)
    (tmp_path / "my $(id) image").write_text("105\n")
    done = run(kit, "reproduce.sh", "--boots", "1", "--image", "gcc-head=my $(id) image")
    assert done.returncode == 3, done.stderr
    assert "differs: toy.ops of toy-1, run 0, boot x1 of gcc-head: 100 reported, 105 here" in (
        done.stdout
    )
    assert re.search(r"gcc head +105 +100 +\+5.00 % +\+0.00 %", done.stdout)
    assert "2 of 6 numbers differ from the reported ones" in done.stdout


def test_a_boot_that_fails_is_status_1(tmp_path: Path) -> None:
    kit = written(a_kit(), tmp_path)
    (tmp_path / "image").write_text("dies\n")
    done = run(kit, "reproduce.sh", "--image", "v6.1=image")
    assert (done.returncode, "boot x1 did not complete" in done.stderr) == (1, True)


def test_a_kernel_without_boots_is_a_sentence(tmp_path: Path) -> None:
    kit = a_kit()
    boots = [boot for boot in kit.boots if boot.kernel != "gcc-head"]
    lost = replace(kit.rows[2], trouble="it does not build")
    place = written(replace(kit, rows=[*kit.rows[:2], lost], boots=boots), tmp_path)
    done = run(place, "reproduce.sh", "--only", "gcc head")
    assert done.returncode == 1
    assert (
        "none of the repeated boots has numbers; README lists the kernels without boots"
        in done.stdout
    )
    assert run(place, "reproduce.sh").returncode == 0


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_are_booted_like_others(tmp_path: Path, hostile: str) -> None:
    kit = written(a_kit(("v6.1", hostile, "gcc head")), tmp_path)
    done = run(kit, "reproduce.sh", "--boots", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.rglob("hacked*")) == []
    name = directory_names(["v6.1", hostile])[1]
    assert run(kit, "build.sh", "/nowhere", name, str(tmp_path / "b")).returncode == 1
    assert list(tmp_path.rglob("hacked*")) == []


def test_a_kit_whose_files_were_changed_is_not_run(tmp_path: Path) -> None:
    kit = written(a_kit(), tmp_path)
    (kit / "kernels.tsv").write_text("changed\n")
    assert "files of this kit were modified" in run(kit, "reproduce.sh").stderr


# --- patches


def test_a_patch_series_is_a_chain_of_patches() -> None:
    first_parents = {
        "base": ["base", "older"],
        "one": ["one", "base", "older"],
        "three": ["three", "two", "one", "base"],
        "other": ["other"] + [f"c{n}" for n in range(limits.KIT_COMMITS)] + ["base"],
    }
    known = lineages(first_parents)
    assert known == {
        "one": Lineage(below="base", commits=["one"]),
        "three": Lineage(below="one", commits=["two", "three"]),
    }
    assert chain("three", known) == ("base", ["one", "three"])
    assert chain("base", known) == ("base", [])
    assert chain("three", {"three": known["three"]}) == ("one", ["three"])


def git(place: Path, *words: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", "-C", place, *who, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_build_sh_applies_the_patches_where_the_commit_is_not_known(tmp_path: Path) -> None:
    """A real repository without the experiment's commits; what `make` gets to see is the patched
    source."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    git(theirs, "init", "--quiet")
    (theirs / "file").write_text("one\n")
    (theirs / "Makefile").write_text(
        "%:\n\tmkdir -p $(O)/arch/x86/boot; cp file $(O)/arch/x86/boot/bzImage\n"
    )
    git(theirs, "add", ".")
    git(theirs, "commit", "--quiet", "-m", "base")
    base = git(theirs, "rev-parse", "HEAD")
    subprocess.run(["git", "clone", "--quiet", theirs, ours], check=True)
    patches = []
    for word in ("two", "three"):
        (ours / "file").write_text(f"{word}\n")
        git(ours, "commit", "--quiet", "-a", "-m", word)
        patches.append(git(ours, "format-patch", "--stdout", "-1").encode() + b"\n")
    kit = a_kit()
    series = [f"kernels/batch-2/{number:04}.patch" for number in (1, 2)]
    rows = [
        replace(kit.rows[0], start=base),
        replace(kit.rows[1], patches=patches, series=series, start=base),
        kit.rows[2],
    ]
    place = written(replace(kit, rows=rows), tmp_path)
    done = run(place, "build.sh", str(theirs), "batch-2", str(tmp_path / "built"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "built" / "bzImage").read_text() == "three\n"
    done = run(place, "build.sh", str(theirs), "v6.1", str(tmp_path / "again"))
    assert (done.returncode, "has no commit" in done.stderr) == (1, True)
    assert run(place, "build.sh", str(theirs), "nothing", str(tmp_path / "x")).returncode == 2


def test_every_file_is_summed_once_and_the_sums_come_last() -> None:
    found = members(a_kit())
    assert len({member.path for member in found}) == len(found)
    sums = {
        path: sha256
        for sha256, path in (line.split("  ") for line in texts(a_kit())["SHA256SUMS"].splitlines())
    }
    assert found[-1].path == "SHA256SUMS"
    assert set(sums) == {member.path for member in found[:-1]}
    assert sums["kernels/v6.1/bzImage"] == stored(IMAGES["base"]).sha256


def test_build_sh_builds_as_the_worker_does() -> None:
    assert dict(recipe.ENVIRONMENT) == BUILD_ENVIRONMENT
    spec = Spec(repo="r", commit="b" * 40, kconfig="vm-x86_64", compiler="gcc", layout=0)
    made = recipe.make_argv(spec, Path("/out/linux"), jobs=3, ccache=False, targets=("bzImage",))
    script = texts(a_kit())["build.sh"]
    assert spec.object_directory in script
    words = {
        "/out/linux": '"$out/linux"',
        f"O={spec.object_directory}": 'O="$objects"',
        "CC=gcc": 'CC="$cc"',
        "HOSTCC=gcc": 'HOSTCC="$cc"',
    }
    for word in made:
        assert word == "-j3" or words.get(word, word) in script, word


def test_build_sh_builds_with_llvm_where_the_worker_did() -> None:
    kit = a_kit()
    rows = [replace(r, kernel=replace(r.kernel, compiler="clang-19")) for r in kit.rows]
    spec = Spec(repo="r", commit="b" * 40, kconfig="vm-x86_64", compiler="clang-19", layout=0)
    made = recipe.make_argv(spec, Path("/out/linux"), jobs=3, ccache=False, targets=("bzImage",))
    script = texts(replace(kit, rows=rows))["build.sh"]
    tools = [word for word in made if word.startswith("LLVM=") or "=l" in word]
    assert len(tools) == 10
    assert script.count(f"cc=clang-19 llvm='{' '.join(tools)}'") == 3
    assert '$llvm "$@"' in script
    assert texts(kit)["build.sh"].count("cc=gcc llvm=''") == 3


def test_what_is_kept_and_what_is_made_have_the_modes_that_they_need() -> None:
    modes = {member.path: member.mode for member in members(a_kit())}
    assert (modes["reproduce.sh"], modes["README"], modes["kernels/v6.1/bzImage"]) == (
        0o755,
        0o644,
        0o644,
    )
    assert KitMember(path="a", content=stored(b"x")).mode == 0o644


def test_the_kit_of_a_report_has_its_mail_and_says_so() -> None:
    kit = replace(a_kit(), id="r1", kind="report", subject="[demo] 9.3% worse", mail="Subject: x\n")
    made = texts(kit)
    assert made["mail.txt"] == "Subject: x\n" and "report.json" in made
    assert made["README"].startswith("[demo] 9.3% worse\n=") and "mail.txt is the" in made["README"]
    assert "mail.txt" not in texts(a_kit())
