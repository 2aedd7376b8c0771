"""Kernel builds on a miniature tree: real git, real make, real compiler."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any, Literal

import pytest

from swingbot_jobs.contract.orders import check_order, check_outcome
from swingbot_jobs.kernel_diff import FILE, VERSION, code_change, read_record
from swingbot_worker import kbuild
from swingbot_worker.kbuild.lock import locked
from swingbot_worker.order import BuildOrder
from swingbot_worker.site import Site
from tests.fakelinux import FakeCommit, boots, make_fakelinux, speed_of

Document = dict[str, Any]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(tmp_path, "cache")


def make_site(tmp_path: Path, cache: str) -> Site:
    kconfig = tmp_path / "workers" / "kconfig"
    kconfig.mkdir(parents=True, exist_ok=True)
    (kconfig / "tiny.config").write_text("CONFIG_64BIT=y\nCONFIG_SMP=y\n# CONFIG_SLUB is not set\n")
    (kconfig / "fragments").mkdir(exist_ok=True)
    (kconfig / "fragments" / "slub.config").write_text("CONFIG_SLUB=y\n")
    (kconfig / "fragments" / "strange.config").write_text("CONFIG_MMU=y\nCONFIG_STRANGE=y\n")
    return Site(
        cache=tmp_path / cache,
        workers=tmp_path / "workers",
        jobs=tmp_path / "jobs",
        benchmarks=None,
        make_jobs=2,
    )


def build(
    site: Site,
    repo: Path | str,
    commit: str,
    out: Path,
    *,
    layout: int = 0,
    compiler: str = "gcc",
    kconfig: str = "tiny",
    **more: Any,
) -> Document:
    order = kbuild.order_by_hand(
        site, repo=str(repo), commit=commit, kconfig=kconfig, compiler=compiler, layout=layout
    )
    return check_outcome(
        kbuild.build(BuildOrder.from_json(check_order({**order, **more})), out, site)
    )


def compiled(out: Path) -> set[str]:
    return {
        line.split()[1]
        for line in (out / "build.log").read_text().splitlines()
        if line.startswith("  CC ")
    }


def work_tree(site: Site) -> Path:
    return site.cache / "work" / "linux-0.1" / "src"


def test_a_build_leaves_image_config_map_log_and_object_hashes(site: Site, tmp_path: Path) -> None:
    ids = make_fakelinux(tmp_path / "linux", [FakeCommit(speed=82)])
    out = tmp_path / "out"
    outcome = build(site, tmp_path / "linux", ids[1], out)
    assert outcome["status"] == "built" and outcome["reason"] is None
    assert set(outcome["files"]) == {
        "bzImage",
        "config",
        "System.map",
        "build.log",
        "objects.json",
        "functions.json.gz",
    }
    assert outcome["files"]["bzImage"]["sha256"] == outcome["kernel_build"]["image_sha256"]
    assert outcome["files"]["config"]["sha256"] == outcome["kernel_build"]["config_sha256"]
    assert outcome["kernel_build"]["compiler_version"].startswith("gcc ")
    assert outcome["kernel_build"]["sizes"]["text"] > 50
    assert set(json.loads((out / "objects.json").read_text())) == {
        "init/main.o",
        "kernel/sched.o",
        "mm/memory.o",
        "mm/page_alloc.o",
    }
    assert speed_of((out / "bzImage").read_bytes()) == 82 and boots((out / "bzImage").read_bytes())
    assert (
        "CONFIG_SMP=y" in (out / "config").read_text()
        and "# CONFIG_SLUB is not set" in (out / "config").read_text()
    )


def test_two_builds_can_be_compared_by_functions_from_what_they_left(
    site: Site, tmp_path: Path
) -> None:
    ids = make_fakelinux(tmp_path / "linux", [FakeCommit(speed=82), FakeCommit(kind="comment")])
    outs = [tmp_path / name for name in ("base", "speed", "comment")]
    for commit, out in zip(ids, outs, strict=True):
        build(site, tmp_path / "linux", commit, out)
    base, speed, comment = (read_record((out / FILE).read_bytes()) for out in outs)
    assert [(one.object, one.name) for one in code_change(base, speed).data] == [
        ("mm/page_alloc.o", "speed")
    ]
    assert code_change(speed, comment).nothing and not code_change(base, comment).nothing
    assert base.compiler.startswith("gcc ") and base.sizes["text"] > 50


def test_only_what_was_compiled_is_read_again(site: Site, tmp_path: Path) -> None:
    ids = make_fakelinux(tmp_path / "linux", [FakeCommit(speed=82)])
    build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    memory = next(work_tree(site).glob("o-*/.swingbot-functions.json"))
    known = json.loads(memory.read_text())
    known["objects"] = {
        path: [stamp, ["of memory", *row[1:]]] for path, (stamp, row) in known["objects"].items()
    }
    memory.write_text(json.dumps(known))
    build(site, tmp_path / "linux", ids[1], tmp_path / "out")
    record = read_record((tmp_path / "out" / FILE).read_bytes())
    assert {path for path in record.paths() if record.sha256(path) != "of memory"} == {
        "mm/page_alloc.o"
    }


def test_a_build_of_another_layout_has_the_same_functions_and_forgets_none(
    site: Site, tmp_path: Path
) -> None:
    ids = make_fakelinux(tmp_path / "linux", [FakeCommit(speed=82)])
    records = []
    for layout in (0, 3):
        build(site, tmp_path / "linux", ids[layout // 3], tmp_path / "out", layout=layout)
        records.append(read_record((tmp_path / "out" / FILE).read_bytes()))
    assert [one.name for one in code_change(*records).data] == ["speed"]
    known = json.loads(next(work_tree(site).glob("o-*/.swingbot-functions.json")).read_text())[
        "objects"
    ]
    assert known["mm/page_alloc.o"][1][0] == records[1].sha256("mm/page_alloc.o")


def test_a_damaged_memory_of_functions_only_costs_time(site: Site, tmp_path: Path) -> None:
    junk = ("", "[]", f'{{"version": {VERSION}, "objects": 3}}', '{"version": 0, "objects": {}}')
    ids = make_fakelinux(tmp_path / "linux", len(junk))
    build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    (memory,) = work_tree(site).glob("o-*/.swingbot-functions.json")
    for commit, damage in zip(ids[1:], junk, strict=True):
        memory.write_text(damage)
        assert build(site, tmp_path / "linux", commit, tmp_path / "out")["status"] == "built"
        assert len(read_record((tmp_path / "out" / FILE).read_bytes()).paths()) == 4


def test_the_next_commit_compiles_only_what_it_changed(site: Site, tmp_path: Path) -> None:
    ids = make_fakelinux(tmp_path / "linux", [FakeCommit(speed=82), FakeCommit(kind="header")])
    build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    build(site, tmp_path / "linux", ids[1], tmp_path / "out")
    assert compiled(tmp_path / "out") == {"mm/page_alloc.o"}
    build(site, tmp_path / "linux", ids[2], tmp_path / "out")
    assert compiled(tmp_path / "out") == {
        "init/main.o",
        "kernel/sched.o",
        "mm/memory.o",
        "mm/page_alloc.o",
    }


def test_an_incremental_build_gives_the_image_of_a_clean_one(site: Site, tmp_path: Path) -> None:
    ids = make_fakelinux(
        tmp_path / "linux", [FakeCommit(), FakeCommit(kind="header", speed=90), FakeCommit()]
    )
    images = [
        build(site, tmp_path / "linux", commit, tmp_path / "out")["kernel_build"]["image_sha256"]
        for commit in ids
    ]
    clean = build(
        make_site(tmp_path, "another/cache"), tmp_path / "linux", ids[3], tmp_path / "clean"
    )
    assert clean["kernel_build"]["image_sha256"] == images[3]
    assert len(set(images)) == 4


def test_a_comment_gives_the_same_image_under_another_build_key(site: Site, tmp_path: Path) -> None:
    ids = make_fakelinux(tmp_path / "linux", [FakeCommit(kind="comment")])
    before = build(site, tmp_path / "linux", ids[0], tmp_path / "out")["kernel_build"]
    after = build(site, tmp_path / "linux", ids[1], tmp_path / "out")["kernel_build"]
    assert after["image_sha256"] == before["image_sha256"]
    assert after["build_key"] != before["build_key"]


def test_a_kernel_is_not_built_twice(site: Site, tmp_path: Path) -> None:
    ids = make_fakelinux(tmp_path / "linux", 1)
    first = build(site, tmp_path / "linux", ids[1], tmp_path / "out")
    shutil.rmtree(site.cache / "work")  # what is kept needs no work tree
    second = build(site, tmp_path / "linux", ids[1], tmp_path / "again")
    assert (first["kernel_build"]["cached"], second["kernel_build"]["cached"]) == (False, True)
    assert second["files"] == first["files"]
    assert second["seconds"] < 0.5
    assert not (site.cache / "work" / "linux-0.1" / "src").exists()


def test_a_damaged_kept_kernel_is_built_again(site: Site, tmp_path: Path) -> None:
    ids = make_fakelinux(tmp_path / "linux", 0)
    first = build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    (image,) = (site.cache / "kernels").glob("*/bzImage")
    image.write_bytes(b"\0" * image.stat().st_size)
    second = build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    assert second["kernel_build"] == first["kernel_build"]


def test_an_order_with_a_wrong_build_key_cannot_get_another_kernel(
    site: Site, tmp_path: Path
) -> None:
    ids = make_fakelinux(tmp_path / "linux", [FakeCommit(speed=50)])
    base = build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    order = kbuild.order_by_hand(
        site, repo=str(tmp_path / "linux"), commit=ids[1], kconfig="tiny", compiler="gcc", layout=0
    )
    order["kernel"]["build_key"] = base["kernel_build"]["build_key"]
    outcome = kbuild.build(BuildOrder.from_json(order), tmp_path / "out", site)
    assert not outcome["kernel_build"]["cached"]
    assert speed_of((tmp_path / "out" / "bzImage").read_bytes()) == 50


def test_a_changed_kconfig_fragment_is_another_kernel(site: Site, tmp_path: Path) -> None:
    ids = make_fakelinux(tmp_path / "linux", 0)
    first = build(site, tmp_path / "linux", ids[0], tmp_path / "out")["kernel_build"]
    (site.kconfig / "tiny.config").write_text("CONFIG_64BIT=y\nCONFIG_NOWHERE=y\n")
    second = build(site, tmp_path / "linux", ids[0], tmp_path / "out")["kernel_build"]
    assert (
        not second["cached"]
        and second["build_key"] != first["build_key"]
        and second["config_sha256"] != first["config_sha256"]
    )
    assert (
        "this kernel does not accept: CONFIG_NOWHERE=y"
        in (tmp_path / "out" / "build.log").read_text()
    )


def test_a_fragment_is_merged_over_the_configuration_and_builds_in_a_directory_of_its_own(
    site: Site, tmp_path: Path
) -> None:
    ids = make_fakelinux(tmp_path / "linux", [FakeCommit(speed=82)])
    plain = build(site, tmp_path / "linux", ids[0], tmp_path / "plain")
    joined = build(site, tmp_path / "linux", ids[0], tmp_path / "joined", kconfig="tiny+slub")
    assert (
        joined["status"] == "built"
        and joined["kernel_build"]["build_key"] != plain["kernel_build"]["build_key"]
    )
    assert {"CONFIG_SMP=y", "CONFIG_SLUB=y"} <= set(
        (tmp_path / "joined" / "config").read_text().splitlines()
    )
    assert "does not accept" not in (tmp_path / "joined" / "build.log").read_text()
    assert sorted(path.name for path in work_tree(site).glob("o-*")) == [
        "o-tiny+slub-gcc-0",
        "o-tiny-gcc-0",
    ]
    build(site, tmp_path / "linux", ids[1], tmp_path / "next", kconfig="tiny+slub")
    assert compiled(tmp_path / "next") == {"mm/page_alloc.o"}


def test_a_distributions_configuration_is_what_lines_are_merged_over(
    site: Site, tmp_path: Path
) -> None:
    ids = make_fakelinux(tmp_path / "linux", 0)
    distro = site.kconfig / "config-0.1-amd64"
    distro.write_text(
        "CONFIG_X86_64=y\nCONFIG_64BIT=y\nCONFIG_MMU=y\nCONFIG_SLUB=m\nCONFIG_SMP=y\n"
    )
    (site.kconfig / "debian.config").write_text(
        f"# base: distro:{distro.name}\n# with: slub\n# CONFIG_SMP is not set\n"
    )
    first = build(site, tmp_path / "linux", ids[0], tmp_path / "out", kconfig="debian")
    assert (tmp_path / "out" / "config").read_text().splitlines() == [
        "CONFIG_64BIT=y",
        "# CONFIG_SMP is not set",
        "CONFIG_MMU=y",
        "CONFIG_SLUB=y",
    ]
    log = (tmp_path / "out" / "build.log").read_text()
    assert re.findall(r"(\S+): this kernel does not accept: (.*)", log) == [
        (distro.name, "CONFIG_X86_64=y (it has no such option)")
    ]
    distro.write_text(distro.read_text().replace("CONFIG_MMU=y\n", ""))
    second = build(site, tmp_path / "linux", ids[0], tmp_path / "out", kconfig="debian")
    assert "CONFIG_MMU=y" not in (tmp_path / "out" / "config").read_text()
    assert first["kernel_build"]["build_key"] != second["kernel_build"]["build_key"]


def test_an_option_that_a_fragment_does_not_get_is_a_failed_build_that_names_it(
    site: Site, tmp_path: Path
) -> None:
    ids = make_fakelinux(tmp_path / "linux", 0)
    for kconfig in ("tiny+strange", "tiny+strange+slub"):
        outcome = build(site, tmp_path / "linux", ids[0], tmp_path / "out", kconfig=kconfig)
        assert outcome["status"] == "failed"
        assert outcome["reason"].startswith(
            "This kernel does not accept CONFIG_STRANGE=y (fragment strange): "
        )
        assert outcome["kernel_build"]["errors"] == ["CONFIG_STRANGE=y (fragment strange)"]
        assert compiled(tmp_path / "out") == set()


def test_an_optional_line_of_a_fragment_is_a_remark_that_says_whether_the_option_exists(
    site: Site, tmp_path: Path
) -> None:
    make_fakelinux(tmp_path / "linux", 0)
    fragment = site.kconfig / "fragments" / "strange.config"
    fragment.write_text("# optional: STRANGE CONFIG_ODD\nCONFIG_STRANGE=y\nCONFIG_ODD=y\n")
    (site.kconfig / "fragments" / "other.config").write_text("CONFIG_OTHER=y\n")
    with (tmp_path / "linux" / "Kconfig").open("a") as kconfig:
        kconfig.write("config ODD\n\tbool\n\tdepends on EVEN\n\nmenuconfig OTHER\n")
    mine = (tmp_path / "linux", "-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", *mine, "commit", "--quiet", "--all", "-m", "odd"], check=True)
    outcome = build(site, tmp_path / "linux", "main", tmp_path / "out", kconfig="tiny+strange")
    assert outcome["status"] == "built", outcome["reason"]
    log = (tmp_path / "out" / "build.log").read_text()
    assert re.findall(r"(\S+): this kernel does not accept: (.*)", log) == [
        ("strange.config", "CONFIG_STRANGE=y (it has no such option)"),
        ("strange.config", "CONFIG_ODD=y"),
    ]
    refused = build(
        site, tmp_path / "linux", "main", tmp_path / "out", kconfig="tiny+strange+other"
    )
    assert refused["status"] == "failed"
    assert refused["kernel_build"]["errors"] == ["CONFIG_OTHER=y (fragment other)"]


def test_another_layout_is_another_kernel_of_the_same_objects(site: Site, tmp_path: Path) -> None:
    ids = make_fakelinux(tmp_path / "linux", 0)
    build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    objects = (tmp_path / "out" / "objects.json").read_text()
    maps = {(tmp_path / "out" / "System.map").read_text()}
    images = {(tmp_path / "out" / "bzImage").read_bytes()}
    for layout in (1, 2, 999):
        assert (
            build(site, tmp_path / "linux", ids[0], tmp_path / "out", layout=layout)["status"]
            == "built"
        )
        assert (
            compiled(tmp_path / "out") == set()
            and (tmp_path / "out" / "objects.json").read_text() == objects
        )
        maps.add((tmp_path / "out" / "System.map").read_text())
        images.add((tmp_path / "out" / "bzImage").read_bytes())
    assert len(images) == len(maps) == 4


def test_a_layout_comes_out_alike_whatever_was_built_before(site: Site, tmp_path: Path) -> None:
    ids = make_fakelinux(tmp_path / "linux", 2)
    for commit in ids:
        build(site, tmp_path / "linux", commit, tmp_path / "out")
    late = build(site, tmp_path / "linux", ids[1], tmp_path / "out", layout=3)
    alone = build(
        make_site(tmp_path, "another/cache"),
        tmp_path / "linux",
        ids[1],
        tmp_path / "alone",
        layout=3,
    )
    assert late["kernel_build"]["image_sha256"] == alone["kernel_build"]["image_sha256"]


@pytest.mark.parametrize("next_one", ["code", "comment"])
def test_a_layout_build_leaves_no_trace_in_the_next_build(
    next_one: Literal["code", "comment"], site: Site, tmp_path: Path
) -> None:
    ids = make_fakelinux(tmp_path / "linux", [FakeCommit(kind=next_one)])
    straight = make_site(tmp_path, "straight/cache")
    wanted = [
        build(straight, tmp_path / "linux", commit, tmp_path / "straight")["files"]
        for commit in ids
    ][1]
    build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    build(site, tmp_path / "linux", ids[0], tmp_path / "out", layout=1)
    after = build(site, tmp_path / "linux", ids[1], tmp_path / "out")
    assert compiled(tmp_path / "out") == {"mm/memory.o" if next_one == "code" else "kernel/sched.o"}
    for name in ("bzImage", "System.map", "objects.json", "config"):
        assert after["files"][name] == wanted[name]


def test_a_kernel_whose_code_cannot_be_moved_is_a_failed_build_of_that_layout(
    site: Site, tmp_path: Path
) -> None:
    make_fakelinux(tmp_path / "linux", 0)
    script = tmp_path / "linux/arch/x86/kernel/vmlinux.lds.S"
    script.write_text(script.read_text().replace("*(.text .text.fixup)", "*(.te*)"))
    subprocess.run(
        [
            "git",
            "-C",
            str(tmp_path / "linux"),
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.org",
            "commit",
            "-qam",
            "no place",
        ],
        check=True,
    )
    outcome = build(site, tmp_path / "linux", "main", tmp_path / "out", layout=1)
    assert outcome["status"] == "failed" and "only layout 0" in outcome["reason"]
    assert build(site, tmp_path / "linux", "main", tmp_path / "out")["status"] == "built"


def test_a_commit_that_does_not_compile_is_an_outcome_with_its_error_lines(
    site: Site, tmp_path: Path
) -> None:
    ids = make_fakelinux(tmp_path / "linux", [FakeCommit(kind="broken"), FakeCommit()])
    build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    outcome = build(site, tmp_path / "linux", ids[1], tmp_path / "out")
    assert outcome["status"] == "failed"
    assert outcome["reason"].startswith(
        "`make bzImage` failed: mm/memory.c:3:1: error: unknown type name 'this'"
    )
    assert (
        outcome["kernel_build"]["errors"][0] == "mm/memory.c:3:1: error: unknown type name 'this'"
    )
    assert outcome["kernel_build"]["errors"][-1].startswith("make: *** ")
    assert set(outcome["files"]) == {"build.log", "config"}, (
        "no image of an earlier build may be shown"
    )
    assert build(site, tmp_path / "linux", ids[1], tmp_path / "out")["kernel_build"]["cached"]
    assert build(site, tmp_path / "linux", ids[2], tmp_path / "out")["status"] == "built"


def test_a_build_that_takes_too_long_says_nothing_about_its_commit(
    site: Site, tmp_path: Path
) -> None:
    ids = make_fakelinux(tmp_path / "linux", [FakeCommit(kind="slow"), FakeCommit()])
    outcome = build(site, tmp_path / "linux", ids[1], tmp_path / "out", deadline_seconds=0.2)
    assert (outcome["status"], outcome["reason"]) == (
        "infra",
        "The build was stopped: `make bzImage` had not ended after 2 s.",
    )
    assert "kernel_build" not in outcome
    assert not (site.cache / "kernels").exists()
    assert build(site, tmp_path / "linux", ids[2], tmp_path / "out")["status"] == "built"


@pytest.mark.parametrize(
    ("commit", "sentence"),
    [("0" * 40, "is not in"), ("HEAD", "is not a Linux kernel tree")],
    ids=["no such commit", "no kernel"],
)
def test_what_is_no_kernel_fails_with_a_sentence(
    site: Site, tmp_path: Path, commit: str, sentence: str
) -> None:
    repo = tmp_path / "novel"
    subprocess.run(["git", "init", "-q", repo], check=True)
    subprocess.run(
        [
            "git",
            "-C",
            repo,
            "-c",
            "user.name=x",
            "-c",
            "user.email=x",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ],
        check=True,
    )
    order = kbuild.order_by_hand(
        site, repo=str(repo), commit="HEAD", kconfig="tiny", compiler="gcc", layout=0
    )
    if commit != "HEAD":
        order["kernel"]["commit"] = commit
    outcome = check_outcome(kbuild.build(BuildOrder.from_json(order), tmp_path / "out", site))
    assert outcome["status"] == "failed" and sentence in outcome["reason"]
    assert not (site.cache / "kernels").exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"repo": "/nowhere/linux"}, "There is no repository at /nowhere/linux"),
        ({"compiler": "gcc-99"}, "install package gcc-99"),
        ({"compiler": "sh -c"}, "is not a compiler"),
        ({"kconfig": "../../etc/passwd"}, "is not a valid kernel configuration name"),
        ({"kconfig": "huge"}, "known are tiny"),
        ({"kconfig": "tiny+nope"}, "there is no fragment 'nope'; known are slub, strange"),
    ],
)
def test_what_only_the_lab_can_mend_is_infra(
    site: Site, tmp_path: Path, change: Document, sentence: str
) -> None:
    ids = make_fakelinux(tmp_path / "linux", 0)
    order = kbuild.order_by_hand(
        site, repo=str(tmp_path / "linux"), commit=ids[0], kconfig="tiny", compiler="gcc", layout=0
    )
    order["kernel"].update(change)
    outcome = check_outcome(kbuild.build(BuildOrder.from_json(order), tmp_path / "out", site))
    assert outcome["status"] == "infra" and sentence in outcome["reason"]


def test_a_full_disk_is_infra_and_the_next_build_is_good(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWINGBOT_BUILD_WALLS", "off")  # behind walls, no link outlives a command
    ids = make_fakelinux(tmp_path / "linux", 0)
    objects = work_tree(site) / "o-tiny-gcc-0"
    objects.mkdir(parents=True)
    (objects / ".merged").symlink_to("/dev/full")
    outcome = build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    assert outcome["status"] == "infra" and "full" in outcome["reason"]
    (objects / ".merged").unlink()
    assert build(site, tmp_path / "linux", ids[0], tmp_path / "out")["status"] == "built"


def test_a_half_finished_checkout_is_repaired(site: Site, tmp_path: Path) -> None:
    ids = make_fakelinux(tmp_path / "linux", 2)
    build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    source = work_tree(site)
    (source.parent / "git" / "index.lock").write_text("")
    (source / "mm" / "memory.c").unlink()
    (source / "mm" / "page_alloc.c").write_text("half")
    (source / "include" / "stray.h").write_text("#error stray\n")
    outcome = build(site, tmp_path / "linux", ids[1], tmp_path / "out")
    clean = build(make_site(tmp_path, "clean"), tmp_path / "linux", ids[1], tmp_path / "clean-out")
    assert outcome["kernel_build"]["image_sha256"] == clean["kernel_build"]["image_sha256"]
    assert not (source / "include" / "stray.h").exists()


@pytest.mark.parametrize("damage", [b"", b"rubbish" * 100], ids=["empty", "rubbish"])
def test_a_damaged_index_is_rebuilt(site: Site, tmp_path: Path, damage: bytes) -> None:
    ids = make_fakelinux(tmp_path / "linux", 1)
    build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    (work_tree(site).parent / "git" / "index").write_bytes(damage)
    assert build(site, tmp_path / "linux", ids[1], tmp_path / "out")["status"] == "built"


def test_a_repository_that_has_moved_shares_the_work_tree(site: Site, tmp_path: Path) -> None:
    ids = make_fakelinux(tmp_path / "linux", [FakeCommit(speed=82)])
    build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    (tmp_path / "linux").rename(tmp_path / "moved")
    build(site, tmp_path / "moved", ids[1], tmp_path / "out")
    assert compiled(tmp_path / "out") == {"mm/page_alloc.o"}


def test_a_copied_cache_still_compiles_only_what_changed(site: Site, tmp_path: Path) -> None:
    ids = make_fakelinux(tmp_path / "linux", [FakeCommit(speed=82)])
    build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    subprocess.run(["cp", "-a", site.cache, tmp_path / "copy"], check=True)
    build(make_site(tmp_path, "copy"), tmp_path / "linux", ids[1], tmp_path / "out")
    assert compiled(tmp_path / "out") == {"mm/page_alloc.o"}


def test_two_builds_in_one_work_tree_wait_for_each_other(site: Site, tmp_path: Path) -> None:
    speeds = [100, 90, 80, 70]
    ids = make_fakelinux(tmp_path / "linux", [FakeCommit(speed=speed) for speed in speeds[1:]])
    outs = [tmp_path / f"out{speed}" for speed in speeds]
    threads = [
        threading.Thread(target=build, args=(site, tmp_path / "linux", *each))
        for each in zip(ids, outs, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [speed_of((out / "bzImage").read_bytes()) for out in outs] == speeds


def test_who_waits_for_a_work_tree_says_for_whom_and_not_for_ever(
    site: Site, tmp_path: Path
) -> None:
    ids = make_fakelinux(tmp_path / "linux", 0)
    order = kbuild.order_by_hand(
        site, repo=str(tmp_path / "linux"), commit=ids[0], kconfig="tiny", compiler="gcc", layout=0
    )
    said: list[str] = []
    with locked(work_tree(site).parent / "lock", 1):
        outcome = kbuild.build(
            BuildOrder.from_json({**order, "deadline_seconds": 0.3}),
            tmp_path / "out",
            site,
            progress=said.append,
        )
    assert said == [f"waiting for process {os.getpid()}, which is building in the same work tree"]
    assert outcome["status"] == "infra" and f"held by process {os.getpid()}" in outcome["reason"]


def test_nothing_of_our_environment_reaches_make(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = make_fakelinux(tmp_path / "linux", 0)
    # what a calling make leaves behind; -n would build nothing
    monkeypatch.setenv("MAKEFLAGS", "n")
    monkeypatch.setenv("KCFLAGS", "--no-such-flag")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert build(site, tmp_path / "linux", ids[0], tmp_path / "out")["status"] == "built"


def test_object_directories_that_nobody_uses_are_removed(site: Site, tmp_path: Path) -> None:
    ids = make_fakelinux(tmp_path / "linux", 0)
    for number in range(9):
        old = work_tree(site) / f"o-old-gcc-{number}"
        old.mkdir(parents=True)
        os.utime(old, (number, number))
    build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    left = sorted(path.name for path in work_tree(site).glob("o-*"))
    assert left == [*(f"o-old-gcc-{number}" for number in range(4, 9)), "o-tiny-gcc-0"]
