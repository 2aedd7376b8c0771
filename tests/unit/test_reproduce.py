"""The kit of a report: its texts, its scripts, and that equal facts make equal bytes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from swingbot.core.reproduce import (
    KitArtifact,
    KitBoot,
    KitKernel,
    KitMember,
    KitOmission,
    KitRootfs,
    KitRun,
    ReportKit,
    members,
)
from swingbot.core.reproduce.kit import Side
from swingbot.core.reproduce.lkp_job import text as lkp_job
from swingbot.core.reproduce.shell import BUILD_ENVIRONMENT
from swingbot.core.text.plain import columns
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_worker.kbuild import recipe
from swingbot_worker.order import Spec
from tests.kit_texts import texts

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
JOB = UnitJob(
    name="netperf-1",
    program="netperf",
    params={"nr_threads": "1", "test": "UDP_STREAM", "cluster": "cs-localhost"},
    runs=2,
)
SCRIPTS = ("reproduce.sh", "build.sh")
METRIC = "netperf.Throughput_Mbps"


def an_artifact(text: str) -> KitArtifact:
    return KitArtifact(sha256=hashlib.sha256(text.encode()).hexdigest(), size=len(text))


def a_kernel(side: Side) -> KitKernel:
    return KitKernel(
        name=side,
        commit={"parent": "a", "commit": "b"}[side] * 40,
        subject=f"mm: the {side}",
        kconfig="vm-x86_64",
        compiler="gcc",
        compiler_version="gcc (Debian 12.2.0-14) 12.2.0",
        layout=0,
        image_sha256=an_artifact(side).sha256,
        image=an_artifact(side),
        config=an_artifact("CONFIG_MMU=y\n"),
    )


def a_boot(number: int, side: Side, k: int, value: float) -> KitBoot:
    argv = (
        "qemu-system-x86_64",
        "-kernel",
        "bzImage",
        "-initrd",
        "initrd",
        "-append",
        f"console=ttyS0 swingbot.delay_us={k}",
    )
    return KitBoot(
        id=f"x{number}",
        kernel=side,
        k=k,
        seconds=4.2,
        qemu=argv,
        runs=[KitRun(unit_job=JOB.name, number=0, values={METRIC: value})],
    )


def a_kit() -> ReportKit:
    return ReportKit(
        id="r1",
        created_at="2026-03-02T09:00:00Z",
        subject="[demo:mm] [mm] bbbbbbbbbbbb: netperf.Throughput_Mbps 9.3% worse",
        page="http://lab.example.org:8010/report/r1",
        tree="demo",
        url="https://git.example.org/linux.git",
        branch="mm",
        mail="Subject: x\n\nbody\n",
        json="{}\n",
        testbox="vm-icount",
        label="emulated",
        unit_job=JOB,
        unit_jobs=[JOB],
        metric=METRIC,
        unit="Mbit/s",
        better="higher",
        change_pct=-9.3,
        interval_pct=(-9.6, -9.1),
        qemu_version="QEMU emulator version 7.2.22",
        kernels={"parent": a_kernel("parent"), "commit": a_kernel("commit")},
        boots=[
            a_boot(1, "parent", 0, 2262.25),
            a_boot(3, "parent", 1, 2261.5),
            a_boot(2, "commit", 0, 2051.125),
            a_boot(4, "commit", 1, 2050.5),
        ],
        rootfs=KitRootfs(
            whole="0" * 64,
            archive=an_artifact("rootfs"),
            files=[
                ("usr/bin/busybox", 9, "1" * 64, "busybox 1:1.35"),
                ("usr/bin/netperf", 5, "2" * 64, "netperf_2.7.0-0.1_amd64"),
            ],
            left_out=[
                KitOmission(
                    path="usr/bin/netperf",
                    offset=400,
                    size=5,
                    sha256="2" * 64,
                    package="netperf_2.7.0-0.1_amd64",
                )
            ],
        ),
        job=an_artifact("job"),
        programs={
            "run.sh": b"#!/bin/sh\n",
            "programs/netperf/numbers.awk": (
                ROOT / "jobs/programs/netperf/numbers.awk"
            ).read_bytes(),
        },
        patch=b"From bbbb\n",
    )


def test_equal_facts_make_equal_members_whatever_the_order_they_were_found_in() -> None:
    kit = a_kit()
    assert members(kit) == members(a_kit())
    shuffled = replace(
        kit, programs={path: kit.programs[path] for path in reversed(list(kit.programs))}
    )
    assert members(shuffled) == members(kit)


def test_every_file_is_summed_once_and_the_sums_come_last() -> None:
    found = members(a_kit())
    assert len({member.path for member in found}) == len(found)
    sums = {
        path: sha256
        for sha256, path in (line.split("  ") for line in texts(a_kit())["SHA256SUMS"].splitlines())
    }
    assert found[-1].path == "SHA256SUMS"
    assert set(sums) == {member.path for member in found[:-1]}
    assert sums["kernels/parent/bzImage"] == an_artifact("parent").sha256


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_plain_posix_shell(name: str, tmp_path: Path) -> None:
    hostile = "x'; touch /tmp/hacked #\n$(id)`id`@REPORT@"
    kit = a_kit()
    kit = replace(
        kit,
        qemu_version=hostile,
        kernels={
            side: replace(kernel, compiler_version=hostile) for side, kernel in kit.kernels.items()
        },
    )
    for number, one in enumerate((a_kit(), kit)):
        script = tmp_path / f"{number}-{name}"
        script.write_text(texts(one)[name])
        done = subprocess.run(
            [
                str(BIN / "shellcheck"),
                "--shell=sh",
                "--severity=info" if number == 0 else "--severity=warning",
                script,
            ],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        assert "@REPORT@ as" not in script.read_text()


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
    kernels = {side: replace(kernel, compiler="clang-19") for side, kernel in kit.kernels.items()}
    spec = Spec(repo="r", commit="b" * 40, kconfig="vm-x86_64", compiler="clang-19", layout=0)
    made = recipe.make_argv(spec, Path("/out/linux"), jobs=3, ccache=False, targets=("bzImage",))
    script = texts(replace(kit, kernels=kernels))["build.sh"]
    tools = [word for word in made if word.startswith("LLVM=") or "=l" in word]
    assert len(tools) == 10
    assert script.count(f"cc=clang-19 llvm='{' '.join(tools)}'") == 2
    assert '$llvm "$@"' in script
    assert texts(kit)["build.sh"].count("cc=gcc llvm=''") == 2


def test_a_reader_sees_what_what_is_missing_and_no_line_is_long() -> None:
    kit = replace(
        a_kit(),
        missing=["rootfs.cpio: gone"],
        subject="ü" * 300 + "\nX-Evil: 1",
        url="u" * 500,
        label="\x1b[31m" * 40,
    )
    text = texts(kit)["README"]
    assert "- rootfs.cpio: gone" in text
    assert "\x1b" not in text
    assert "\nX-Evil" not in text
    assert (
        max(
            columns(line)
            for line in text.splitlines()
            if not line.startswith("    ") and "://" not in line
        )
        <= 78
    )
    assert "netperf_2.7.0-0.1_amd64" in text


def test_a_kit_says_what_the_job_set_for_its_boots(tmp_path: Path) -> None:
    job = replace(JOB, cmdline="nosmt slub_debug=F,*", sysctl={"net.ipv4.tcp_rmem": "1 2 3"})
    made = texts(replace(a_kit(), unit_job=job, unit_jobs=[job]))
    assert "    nosmt slub_debug=F,*\n" in made["README"]
    assert "    net.ipv4.tcp_rmem = 1 2 3\n" in made["README"]
    assert "with the options above on its command line" in " ".join(made["README"].split())
    read = yaml.safe_load(made["job.yaml"])
    assert read["kernel_cmdline"] == job.cmdline
    assert "# set before the run: sysctl -w 'net.ipv4.tcp_rmem=1 2 3'\n" in made["job.yaml"]
    (tmp_path / "reproduce.sh").write_text(made["reproduce.sh"])
    done = subprocess.run(
        ["sh", "reproduce.sh", "--here"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "reproduce.sh: this kernel was booted without nosmt; add it to the kernel command line and"
        " reboot\n"
    )


def test_a_kit_of_a_job_that_sets_nothing_says_nothing_of_it() -> None:
    made = texts(a_kit())
    assert "command line" not in made["README"] and "/proc/cmdline" not in made["reproduce.sh"]
    assert "sysctl" not in made["README"] + made["job.yaml"]


def test_boots_are_made_in_turn() -> None:
    assert [line.split()[:3] for line in texts(a_kit())["boots.tsv"].splitlines()] == [
        ["x1", "parent", "0"],
        ["x2", "commit", "0"],
        ["x3", "parent", "1"],
        ["x4", "commit", "1"],
    ]


def test_the_job_for_lkp_has_one_value_of_each_parameter() -> None:
    job = yaml.safe_load(lkp_job(JOB))
    assert job["testcase"] == "netperf"
    assert job["if role client"]["netperf"] == {"nr_threads": 1, "test": "UDP_STREAM"}
    assert job["if role server"] == {"netserver": None}
    assert job["cluster"] == "cs-localhost"


def test_a_program_that_lkp_does_not_have_gets_no_job() -> None:
    assert yaml.safe_load(lkp_job(replace(JOB, program="page-fault"))) is None


@pytest.mark.parametrize("value", ["no", "1e3", "a: b", "'", "50%", "0x10", "-1", "", "08"])
def test_values_keep_their_text_in_yaml(value: str) -> None:
    job = yaml.safe_load(lkp_job(replace(JOB, program="hackbench", params={"size": value})))
    assert str(job["hackbench"]["size"]) == value


def test_what_is_kept_and_what_is_made_have_the_modes_that_they_need() -> None:
    modes = {member.path: member.mode for member in members(a_kit())}
    assert (modes["reproduce.sh"], modes["README"], modes["kernels/parent/bzImage"]) == (
        0o755,
        0o644,
        0o644,
    )
    assert KitMember(path="a", content=an_artifact("x")).mode == 0o644
