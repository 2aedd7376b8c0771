"""The root file system: the archive, where binaries come from, and what is said when they can't
come."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_worker import InfraError, answers, process, rootfs
from swingbot_worker.rootfs import cpio, debian, installed, libraries, programs
from swingbot_worker.site import Site

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "bench").mkdir()
    return Site(
        cache=tmp_path / "cache",
        workers=ROOT / "workers",
        jobs=ROOT / "jobs",
        benchmarks=tmp_path / "bench",
        make_jobs=1,
    )


def a_job(program: str, **params: str) -> UnitJob:
    return UnitJob(name="a-job", program=program, params=params, runs=1)


def put(path: Path, content: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)
    return path


# --- archive


def test_the_archive_is_what_cpio_reads(tmp_path: Path) -> None:
    made = cpio.archive(
        cpio.with_parents(
            [
                cpio.file("a/b/run", b"#!/bin/sh\n", executable=True),
                cpio.link("a/l", "b/run"),
                cpio.file("z", b""),
            ]
        )
    )
    subprocess.run(["cpio", "-i", "--quiet"], input=made, cwd=tmp_path, check=True, timeout=20)
    assert (tmp_path / "a" / "l").read_text() == "#!/bin/sh\n"
    assert (tmp_path / "a" / "b" / "run").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "z").read_bytes() == b""


def test_another_archive_can_follow_at_once() -> None:
    for size in range(8):
        assert len(cpio.archive([cpio.file("f", bytes(size))])) % 4 == 0


def test_equal_entries_in_any_order_make_equal_bytes() -> None:
    entries = [cpio.file("b", b"2"), cpio.file("a/c", b"1")]
    assert cpio.archive(cpio.with_parents(entries)) == cpio.archive(
        cpio.with_parents(reversed(entries))
    )


def test_two_libraries_of_one_name_are_refused() -> None:
    tree = libraries.GuestTree(Path("unused"))
    tree.add(cpio.file("usr/lib/libx.so", b"one"))
    tree.add(cpio.file("/usr/lib/libx.so", b"one"))
    with pytest.raises(InfraError, match=r"/usr/lib/libx\.so"):
        tree.add(cpio.file("usr/lib/libx.so", b"two"))


def test_a_root_file_system_is_made_once_and_depends_on_the_programs_alone(site: Site) -> None:
    first = rootfs.prepare([a_job("page-fault", nr_task="1")], site)
    stamp = first.archive.stat().st_mtime_ns
    again = rootfs.prepare([a_job("page-fault", nr_task="2")], site)
    other = rootfs.prepare([a_job("page-fault"), a_job("hackbench")], site)
    assert (first.key, first.archive.name) == (again.key, "rootfs.cpio")
    assert again.archive.stat().st_mtime_ns == stamp
    assert other.key != first.key
    assert {"sha256.page-fault", "sha256.perf", "sha256.busybox", "version.perf"} <= set(
        first.facts
    )


def test_a_root_file_system_is_found_again_without_a_program_of_the_host(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_SETTLED_NS", 0)
    jobs = [a_job("page-fault"), a_job("hackbench")]
    assert site.benchmarks is not None
    own = put(site.benchmarks / "hackbench", "#!/bin/sh\n: first\n")
    first = rootfs.prepare(jobs, site)
    with monkeypatch.context() as forbidden:
        forbidden.setattr(process, "output", lambda *_, **__: pytest.fail("a program was run"))
        assert rootfs.prepare(jobs, site) == first
    first.archive.unlink()
    assert rootfs.prepare(jobs, site) == first
    assert hashlib.sha256(first.archive.read_bytes()).hexdigest() == first.key
    put(own, "#!/bin/sh\n: other\n")
    other = rootfs.prepare(jobs, site)
    assert other.facts["sha256.hackbench"] == hashlib.sha256(own.read_bytes()).hexdigest()
    assert other.key != first.key


def test_the_archive_of_a_boot_is_the_root_file_system_and_then_the_job(tmp_path: Path) -> None:
    base = cpio.archive(cpio.with_parents([cpio.file("a", b"content")]))
    (tmp_path / "base").write_bytes(base)
    image = rootfs.Rootfs(key="", archive=tmp_path / "base", facts={})
    job = [cpio.file("job/run.sh", b"#!/bin/sh\n", executable=True)]
    rootfs.with_job(image, job, tmp_path / "initrd")
    expected = base + bytes(-len(base) % 4) + cpio.archive(cpio.with_parents(job))
    assert (tmp_path / "initrd").read_bytes() == expected


# --- programs


def test_the_netperf_that_was_built_here_serves_where_the_operators_lacks_a_test(
    site: Site,
) -> None:
    assert site.benchmarks is not None
    own = {put(site.benchmarks / name) for name in ("netperf", "netserver")}
    content = b"#!/bin/sh\n# SCTP_STREAM\n"
    note = {"version": "netperf 1", "binaries": {}}
    note["binaries"] = {name: installed.described(content) for name in ("netperf", "netserver")}
    built = installed.install(
        site.cache, "netperf", dict.fromkeys(("netperf", "netserver"), content), note
    )
    for test, sources in (
        ("TCP_RR", own),
        ("SCTP_STREAM", {built / name for name in ("netperf", "netserver")}),
    ):
        found = programs.needed([a_job("netperf", test=test)], site)
        assert {binary.source for binary in found} == sources


def test_what_the_operator_built_wins(site: Site) -> None:
    assert site.benchmarks is not None
    own = put(site.benchmarks / "hackbench")
    assert [binary.source for binary in programs.needed([a_job("hackbench")], site)] == [own]


def test_will_it_scale_takes_each_test_in_its_mode(site: Site) -> None:
    assert site.benchmarks is not None
    for name in ("page_fault1_processes", "page_fault1_threads"):
        put(site.benchmarks / "will-it-scale" / name)
    jobs = [a_job("will-it-scale", test="page_fault1", mode=mode) for mode in ("process", "thread")]
    targets = {binary.target for binary in programs.needed(jobs, site)}
    assert {
        "usr/share/will-it-scale/page_fault1_processes",
        "usr/share/will-it-scale/page_fault1_threads",
        "usr/bin/stdbuf",
    } <= targets


@pytest.mark.parametrize(
    ("job", "own", "says"),
    [
        (a_job("nonsense"), [], "program nonsense is unknown .* hackbench, .*netperf"),
        (
            a_job("will-it-scale", test="page_fault1", mode="thread"),
            [],
            (
                r"page_fault1_threads of will-it-scale is not on this worker.* program build "
                r"will-it-scale"
            ),
        ),
        (a_job("netperf", test="TCP_RR"), ["netperf"], "not the other program"),
        (
            a_job("netperf", test="SCTP_RR"),
            ["netperf", "netserver"],
            "No netperf on this worker has SCTP_RR; .* program build netperf",
        ),
    ],
)
def test_a_program_that_cannot_be_provided_says_what_to_do(
    site: Site, job: UnitJob, own: list[str], says: str
) -> None:
    assert site.benchmarks is not None
    for name in own:
        put(site.benchmarks / name)
    with pytest.raises(InfraError, match=says):
        programs.needed([job], site)


@pytest.mark.parametrize(
    ("program", "package"), [("hackbench", "rt-tests"), ("redis", "redis-tools")]
)
def test_a_missing_package_is_named(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, package: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InfraError, match=package):
        programs.needed([a_job(program)], site)


def test_a_binary_may_have_another_name_in_its_package(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("redis-check-rdb", "redis-benchmark", "redis-cli"):
        put(tmp_path / name)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert {
        binary.target: binary.source.name for binary in programs.needed([a_job("redis")], site)
    } == {
        "usr/bin/redis-benchmark": "redis-benchmark",
        "usr/bin/redis-cli": "redis-cli",
        "usr/bin/redis-server": "redis-check-rdb",
    }


def test_a_monitor_that_a_job_asks_for_brings_its_binary_and_an_unknown_one_is_reported(
    site: Site,
) -> None:
    job = UnitJob(
        name="a-job", program="page-fault", params={}, runs=1, monitors=("perf-profile", "vmstat")
    )
    assert {"usr/bin/page-fault", "usr/bin/vmstat"} == {
        binary.target for binary in programs.needed([job], site)
    }
    with pytest.raises(InfraError, match="monitor nonsense is unknown on this worker"):
        programs.needed(
            [
                UnitJob(
                    name="a-job", program="page-fault", params={}, runs=1, monitors=("nonsense",)
                )
            ],
            site,
        )


def test_a_program_of_our_own_may_call_binaries_too(site: Site) -> None:
    jobs = [a_job("page-cache", test="read", fs=fs) for fs in ("tmpfs", "ext4")]
    wanted = {"usr/bin/page-cache", "usr/bin/mke2fs"}
    for several, targets in ((jobs[:1], wanted - {"usr/bin/mke2fs"}), (jobs, wanted)):
        assert {binary.target for binary in programs.needed(several, site)} >= targets
        assert len(programs.needed(several, site)) == len(targets)


def test_a_source_that_does_not_compile_says_why(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "jobs" / "programs" / "broken"
    put(folder / "run")
    (folder / "meta.yaml").write_text("kind: benchmark\nscope: micro\ndescribe: does not compile\n")
    put(folder / "broken.c", "int main(void) { return nothing; }\n")
    broken = Site(
        cache=site.cache, workers=site.workers, jobs=tmp_path / "jobs", benchmarks=None, make_jobs=1
    )
    with pytest.raises(InfraError, match=r"could not compile broken\.c .*nothing"):
        programs.needed([a_job("broken")], broken)


# --- Debian's own sources

ONE_LINE = """\
# comment
deb [signed-by=/usr/share/keyrings/k.gpg trusted=yes] http://mirror.example/debian bookworm main contrib # here
deb-src http://mirror.example/debian bookworm main
deb http://mirror.example/security bookworm-security main
"""
DEB822 = """\
Types: deb deb-src
# a comment
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/k.gpg

Types: deb
URIs: http://other.example/
Suites: bookworm
Components: main
Enabled: no

Types: deb
URIs: http://embedded.example/debian
Suites: bookworm
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
"""


def test_both_formats_of_apt_name_the_mirror() -> None:
    signed = (
        "deb [signed-by=/usr/share/keyrings/k.gpg{}] http://mirror.example/debian bookworm "
        "non-free\n"
    )
    assert debian.non_free_list(
        list(debian.one_line_sources(ONE_LINE)), "bookworm"
    ) == signed.format(" trusted=yes")
    assert (
        debian.non_free_list(list(debian.deb822_sources(DEB822)), "bookworm")
        == signed.format("") + "deb http://embedded.example/debian bookworm non-free\n"
    )


def test_sources_are_found_where_a_bare_root_or_an_image_keeps_them(tmp_path: Path) -> None:
    assert debian.system_sources(tmp_path) == []
    put(tmp_path / "sources.list", ONE_LINE)
    put(tmp_path / "sources.list.d" / "debian.sources", DEB822)
    assert {source.uri for source in debian.system_sources(tmp_path)} == {
        "http://mirror.example/debian",
        "http://mirror.example/security",
        "http://embedded.example/debian",
    }


def test_a_machine_without_a_debian_mirror_gets_an_explanation() -> None:
    with pytest.raises(InfraError, match="bookworm main"):
        debian.non_free_list(
            list(debian.one_line_sources("deb http://x.example/ stable main\n")), "bookworm"
        )
