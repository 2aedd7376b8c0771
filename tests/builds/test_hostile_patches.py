"""Patches that attack the host that builds them: real Makefiles, real make, real walls.
docs/walls.md has the table of what came of each.

Every attack leaves word in the build's own log of what it got hold of, so that a test can tell an
attack that was held off from one that never ran.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import socket
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from swingbot_jobs.contract.orders import check_order, check_outcome
from swingbot_jobs.contract.trust import key_at
from swingbot_worker import kbuild, walls
from swingbot_worker.kbuild.source import GIT_ENVIRONMENT
from swingbot_worker.kbuild.worktree import WorkTree
from swingbot_worker.order import BuildOrder
from swingbot_worker.site import Site
from tests.attack import hostile_elf
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux

Document = dict[str, Any]
NO_WALLS = walls.missing(walls.probe().walls)
pytestmark = pytest.mark.skipif(bool(NO_WALLS), reason=f"no walls on this host: {NO_WALLS[:300]}")
OBJECTS = "o-tiny-gcc-0"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    kconfig = tmp_path / "workers" / "kconfig"
    kconfig.mkdir(parents=True)
    (kconfig / "tiny.config").write_text("CONFIG_SMP=y\n")
    return Site(
        cache=tmp_path / "cache",
        workers=tmp_path / "workers",
        jobs=tmp_path / "jobs",
        benchmarks=None,
        make_jobs=2,
    )


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    make_fakelinux(tmp_path / "linux", 0)
    return tmp_path / "linux"


def hostile(
    repo: Path, script: str, *, after: str = "", files: dict[str, str] | None = None
) -> str:
    """A commit whose Makefile runs `script` before it compiles anything, and `after` once the
    image is there."""
    makefile = (repo / "Makefile").read_text()
    makefile = makefile.replace("%.o: %.c .config\n", "%.o: %.c .config attack\n", 1)
    makefile = makefile.replace(
        '\t@echo "Kernel: $< is ready"\n',
        '\t@echo "Kernel: $< is ready"\n\t@sh $(srctree)/after.sh\n',
        1,
    )
    makefile = makefile.replace(
        "tinyconfig:\n", "attack:\n\t@sh $(srctree)/attack.sh\n.PHONY: attack\n\ntinyconfig:\n", 1
    )
    for name, text in {
        "Makefile": makefile,
        "attack.sh": script,
        "after.sh": after,
        **(files or {}),
    }.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)
    git(repo, "add", "-A", "-f")
    git(repo, "commit", "-q", "-m", "an improvement")
    return git(repo, "rev-parse", "HEAD")


def git(repo: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A Stranger", "-c", "user.email=stranger@example.org"]
    return subprocess.run(
        ["git", "-C", str(repo), *who, *arguments],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        env=GIT_ENVIRONMENT,
    ).stdout.strip()


def build(
    site: Site,
    repo: Path,
    commit: str,
    out: Path,
    *,
    trust: str = "untrusted",
    tree: str | None = None,
    **more: Any,
) -> Document:
    order = kbuild.order_by_hand(
        site,
        repo=str(repo),
        commit=commit,
        kconfig="tiny",
        compiler="gcc",
        layout=0,
        trust=trust,  # type: ignore[arg-type]
    )
    if tree is not None:
        order["kernel"]["tree"] = tree
    return check_outcome(
        kbuild.build(BuildOrder.from_json(check_order({**order, **more})), out, site)
    )


def said(out: Path) -> list[str]:
    """What the attack noted in the log, in order."""
    return [
        line.removeprefix("ATTACK ")
        for line in (out / "build.log").read_text(errors="replace").splitlines()
        if line.startswith("ATTACK ")
    ]


def left_running(tmp_path: Path) -> list[str]:
    """Processes that were started by builds of this test, wherever they went: their environment
    names its directory."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if (
                name.isdigit()
                and int(name) != os.getpid()
                and f"HOME={tmp_path}/".encode() in Path(f"/proc/{name}/environ").read_bytes()
            ):
                found.append(name)
    return found


# -- what it can see


def test_a_build_sees_no_secret_of_the_host(site: Site, repo: Path, tmp_path: Path) -> None:
    secrets = [
        tmp_path / "swingbot.toml",
        tmp_path / "attempts" / "a1" / "order.json",
        site.cache / "kernels" / "another" / "bzImage",
    ]
    for secret in secrets:
        secret.parent.mkdir(parents=True, exist_ok=True)
        secret.write_text("TOKEN")
        secret.chmod(0o644)
    places = [
        "/etc/shadow",
        "/etc/passwd",
        "/root",
        "/home",
        "/run",
        "/var",
        "/sys",
        "/proc/1/environ",
        "/proc/1/fd",
        *map(str, secrets),
        str(repo / "state.json"),
    ]
    script = "".join(
        f"cat {place}/* {place} >/dev/null 2>&1 && echo ATTACK read {place}\n" for place in places
    )
    script += (
        f"env | grep -q TOKEN && echo ATTACK environment\nls {tmp_path} {site.cache} | sed "
        f"'s/^/ATTACK sees /'\necho ATTACK ran\n"
    )
    commit = hostile(repo, script)
    os.environ["SWINGBOT_WEB_TOKEN"] = "TOKEN"
    try:
        outcome = build(site, repo, commit, tmp_path / "out")
    finally:
        del os.environ["SWINGBOT_WEB_TOKEN"]
    assert outcome["status"] == "built", outcome
    lines = said(tmp_path / "out")
    assert "ran" in lines and not [
        line for line in lines if line.startswith(("read", "environment"))
    ]
    assert {
        line.split()[1] for line in lines if line.startswith("sees ") and len(line.split()) > 1
    } <= {
        f"{tmp_path}:",
        f"{site.cache}:",
        "cache",
        "work",
        "workers",
    }
    assert (
        outcome["kernel_build"]["trust"] == "untrusted"
        and "network" in outcome["kernel_build"]["walls"]
    )


def test_a_build_reaches_no_socket_and_no_name(site: Site, repo: Path, tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.socket(socket.AF_UNIX) as local,
    ):
        listening.setblocking(False)
        local.bind(f"\0{tmp_path}"[:100])  # an abstract name: no file keeps anybody from it
        local.listen()
        local.setblocking(False)
        tries = {
            "host": f"socket.create_connection(('127.0.0.1', {listening.getsockname()[1]}), 3)",
            "outside": "socket.create_connection(('192.0.2.1', 80), 3)",
            "local": f"socket.socket(socket.AF_UNIX).connect(('\\0' + {str(tmp_path)!r})[:100])",
            "name": "socket.getaddrinfo('example.org', 80)",
            "vsock": "socket.socket(socket.AF_VSOCK)",
        }
        python = "import socket\n"
        for name, code in tries.items():
            python += (
                f"try:\n    {code}\n    print('ATTACK reached {name}')\nexcept OSError:\n    "
                f"print('ATTACK no')\n"
            )
        outcome = build(
            site,
            repo,
            hostile(repo, "/usr/bin/python3 ../attack.py\n", files={"attack.py": python}),
            tmp_path / "out",
        )
        lines = said(tmp_path / "out")
        assert outcome["status"] == "built" and lines == ["no"] * 5
        for server in (listening, local):
            with pytest.raises(BlockingIOError):
                server.accept()


def test_a_build_sees_only_its_own_processes_and_cannot_end_another(
    site: Site, repo: Path, tmp_path: Path
) -> None:
    with subprocess.Popen(["sleep", "600"]) as bystander:
        script = (
            f"kill -9 {os.getpid()} {bystander.pid} 2>/dev/null && echo ATTACK killed\nkill "
            f"-9 -1\necho ATTACK $(ls -d /proc/[0-9]* | wc -l)\n"
        )
        outcome = build(site, repo, hostile(repo, script), tmp_path / "out")
        assert bystander.poll() is None
        bystander.kill()
    assert outcome["status"] == "failed" or int(said(tmp_path / "out")[-1]) < 20
    assert "killed" not in said(tmp_path / "out")


# -- what it can change


def test_a_build_writes_nowhere_but_into_its_objects(
    site: Site, repo: Path, tmp_path: Path
) -> None:
    tree = site.cache / "work" / "linux-0.1"
    other = tree / "src" / "o-other-gcc-0"
    other.mkdir(parents=True)
    (other / "main.o").write_text("of another build")
    home = tmp_path / "home"
    home.mkdir(mode=0o777)
    home.chmod(0o777)
    places = [
        tree / "src",
        tree / "git",
        other,
        site.cache,
        site.cache / "kernels",
        site.cache / "ccache",
        home,
        Path("/usr"),
        Path("/etc"),
        Path("/dev"),
        Path("/"),
        Path.cwd(),
    ]
    script = "".join(
        (
            f"mkdir -p {place} 2>/dev/null; (echo planted > {place}/planted) 2>/dev/null && "
            f"echo ATTACK wrote {place}\n"
        )
        for place in places
    )
    script += (
        "rm -rf ../init ../Makefile 2>/dev/null; mount -o remount,rw / 2>/dev/null && echo "
        "ATTACK mounted\necho ATTACK ran\n"
    )
    outcome = build(site, repo, hostile(repo, script), tmp_path / "out")
    assert outcome["status"] == "built", outcome
    assert said(tmp_path / "out")[-1] == "ran"
    assert not [
        path
        for path in [*tmp_path.rglob("planted"), *(place / "planted" for place in places)]
        if path.exists()
    ]
    assert (other / "main.o").read_text() == "of another build" and (
        tree / "src" / "Makefile"
    ).exists()


def test_what_an_untrusted_build_plants_is_found_by_no_other(
    site: Site, repo: Path, tmp_path: Path
) -> None:
    """It replaces objects with others that look finished, fills caches and /tmp, and leaves
    make's own files changed."""
    base = git(repo, "rev-parse", "HEAD")
    script = (
        "echo planted > /tmp/planted; echo 'int poison;' > poison.c; gcc -c -o poison.o poison.c\n"
    )
    script += "[ -d ${CCACHE_DIR:-/nowhere} ] && echo ATTACK ccache\necho ATTACK ran\n"
    after = (
        "for f in init/main.o mm/memory.o mm/page_alloc.o kernel/sched.o; do cp poison.o $f; "
        "touch -d '+1 hour' $f; done; touch -d '+1 hour' vmlinux .config\n"
    )
    commit = hostile(repo, script, after=after)
    git(repo, "checkout", "-q", "--detach", base)
    clean = build(
        replace(site, cache=tmp_path / "clean"), repo, base, tmp_path / "reference", trust="trusted"
    )
    build(site, repo, base, tmp_path / "before", trust="trusted")
    attacked = build(site, repo, commit, tmp_path / "out")
    assert attacked["status"] == "built" and said(tmp_path / "out") == ["ran"]
    shutil.rmtree(site.cache / "kernels")
    after_it = build(site, repo, base, tmp_path / "after", trust="trusted")
    assert (
        after_it["kernel_build"]["image_sha256"] == clean["kernel_build"]["image_sha256"]
        and not after_it["kernel_build"]["cached"]
    )
    untrusted = build(site, repo, base, tmp_path / "after2")
    assert untrusted["kernel_build"]["image_sha256"] == clean["kernel_build"]["image_sha256"]
    assert (
        not list((site.cache / "work" / "linux-0.1").glob("apart/*"))
        and not Path("/tmp/planted").exists()
    )


def test_a_kernel_kept_from_an_untrusted_build_is_not_what_a_trusted_order_gets(
    site: Site, repo: Path, tmp_path: Path
) -> None:
    commit = git(repo, "rev-parse", "HEAD")
    first = build(site, repo, commit, tmp_path / "one")
    again = build(site, repo, commit, tmp_path / "two")
    trusted = build(site, repo, commit, tmp_path / "three", trust="trusted")
    assert [built["kernel_build"]["cached"] for built in (first, again, trusted)] == [
        False,
        True,
        False,
    ]
    assert first["kernel_build"]["build_key"] == key_at(
        trusted["kernel_build"]["build_key"], "untrusted"
    )


@pytest.mark.parametrize("name", [OBJECTS, f"{OBJECTS}/mm/memory.o"])
def test_a_tree_that_brings_objects_of_its_own_is_no_kernel(
    site: Site, repo: Path, tmp_path: Path, name: str
) -> None:
    commit = hostile(repo, "", files={name: "planted"})
    outcome = build(site, repo, commit, tmp_path / "out")
    assert outcome["status"] == "failed" and "reserved for object directories" in outcome["reason"]
    assert not (site.cache / "work" / "linux-0.1" / "src").exists()


def test_nothing_in_a_tree_makes_git_run_a_program(tmp_path: Path, repo: Path) -> None:
    """Filters, diff drivers, hooks and monitors that a tree names; the ones that only a
    configuration can name are in ours of the work tree."""
    ran = tmp_path / "ran"
    program = f"#!/bin/sh\ntouch {ran}\ncat\n"
    attributes = "* filter=evil diff=evil merge=evil ident\n"
    config = (
        f'[filter "evil"]\n\tsmudge = touch {ran}\n\tclean = touch {ran}\n\tprocess = touch '
        f"{ran}\n[core]\n\tfsmonitor = touch {ran}\n\thooksPath = hooks\n"
    )
    files = {
        ".gitattributes": attributes,
        ".gitconfig": config,
        ".gitmodules": '[submodule "x"]\n\tpath = init\n\turl = ext::touch ran\n\tupdate = !touch ran\n',
    }
    hooks = {
        f"{place}/{name}": program
        for place in ("hooks", ".githooks")
        for name in ("post-checkout", "post-index-change", "reference-transaction")
    }
    commit = hostile(repo, "", files={**files, **hooks})
    tree = WorkTree(tmp_path / "work")
    tree.switch(kbuild.build.__globals__["source"].find(str(repo), commit, tmp_path / "cache"))
    hook = tree.root / "git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(program)
    hook.chmod(0o755)
    tree.switch(
        kbuild.build.__globals__["source"].find(
            str(repo), git(repo, "rev-parse", "HEAD~1"), tmp_path / "cache"
        )
    )
    assert tree.listing("Makefile") and not ran.exists()


# -- how much it can take


def test_a_build_that_fills_the_disk_is_stopped(
    site: Site, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWINGBOT_BUILD_DISK_MB", "50")
    script = (
        "i=0; while :; do head -c 20000000 /dev/zero > big$i || exit 1; i=$((i + 1)); sleep "
        "0.1; done\n"
    )
    outcome = build(site, repo, hostile(repo, script), tmp_path / "out", deadline_seconds=120)
    assert (
        outcome["status"] == "infra"
        and "the limit is 50 MB (SWINGBOT_BUILD_DISK_MB)." in outcome["reason"]
    )
    assert not (site.cache / "work" / "linux-0.1" / "apart").exists()


def test_room_cannot_be_taken_without_writing_and_no_file_gets_longer_than_allowed(
    site: Site, repo: Path, tmp_path: Path
) -> None:
    script = (
        "fallocate -l 1G reserved 2>/dev/null && echo ATTACK reserved\ntruncate -s 100G "
        "sparse 2>/dev/null && echo ATTACK sparse\necho ATTACK ran\n"
    )
    outcome = build(site, repo, hostile(repo, script), tmp_path / "out")
    assert outcome["status"] == "built" and said(tmp_path / "out") == ["ran"]


def test_a_build_that_eats_memory_is_stopped(
    site: Site, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWINGBOT_BUILD_MEMORY_MB", "512")
    one = "perl -e '$x = \"x\" x 150_000_000; sleep 60' & "  # each less than a process may have
    outcome = build(
        site, repo, hostile(repo, f"{one * 5} wait\n"), tmp_path / "out", deadline_seconds=60
    )
    assert (
        outcome["status"] == "infra"
        and "MB of memory; the limit is 512 MB (SWINGBOT_BUILD_MEMORY_MB)" in outcome["reason"]
    )
    greedy = build(
        site,
        repo,
        hostile(repo, 'perl -e \'$x = "x" x 2_000_000_000; print "ATTACK had it\\n"\'; true\n'),
        tmp_path / "greedy",
    )
    assert "had it" not in said(tmp_path / "greedy") and greedy["status"] == "infra"
    assert "the limit is 512 MB (SWINGBOT_BUILD_MEMORY_MB)" in greedy["reason"]


def test_unlinked_open_files_count_as_disk_after_the_write_that_did_not_fit(
    site: Site, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWINGBOT_BUILD_DISK_MB", "50")
    write = "".join(
        f"exec {n}>f; rm f; head -c 40000000 /dev/zero >&{n} || exit 1\n" for n in range(3, 9)
    )
    outcome = build(site, repo, hostile(repo, write), tmp_path / "out")
    assert outcome["status"] == "infra", outcome
    assert "50 MB" in outcome["reason"] and "SWINGBOT_BUILD_DISK_MB" in outcome["reason"]
    assert not (site.cache / "work" / "linux-0.1" / "apart").exists()


def test_an_untrusted_kernel_is_refused_where_its_disk_cannot_be_limited(
    site: Site, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator named a directory on a file system that is larger than the limit."""
    monkeypatch.setenv("SWINGBOT_BUILD_SCRATCH", str(tmp_path))
    monkeypatch.setenv("SWINGBOT_BUILD_DISK_MB", "50")
    commit = hostile(repo, "echo ATTACK ran\n")
    refused = build(site, repo, commit, tmp_path / "out")
    assert refused["status"] == "infra" and "give it a tmpfs or volume" in refused["reason"]
    assert not (tmp_path / "out" / "build.log").exists()
    trusted = build(site, repo, commit, tmp_path / "out", trust="trusted")
    assert trusted["status"] == "built" and "disk" not in trusted["kernel_build"]["walls"]
    assert "memory" in trusted["kernel_build"]["walls"]


def test_endless_output_ends_and_leaves_a_log_of_sensible_length(
    site: Site, repo: Path, tmp_path: Path
) -> None:
    outcome = build(
        site,
        repo,
        hostile(repo, "yes ATTACK output | head -c 2000000000\n"),
        tmp_path / "out",
        deadline_seconds=120,
    )
    assert outcome["status"] == "infra" and "printed more than 64 MB" in outcome["reason"]
    assert (tmp_path / "out" / "build.log").stat().st_size < 65 << 20


def test_a_build_that_takes_too_long_is_ended_with_all_it_started(
    site: Site, repo: Path, tmp_path: Path
) -> None:
    outcome = build(
        site,
        repo,
        hostile(
            repo, "trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM; sleep 987' & sleep 987\n"
        ),
        tmp_path / "out",
        deadline_seconds=1,
    )
    assert outcome["status"] == "infra" and "had not ended after 3 s" in outcome["reason"]
    assert not left_running(tmp_path)


def test_no_process_outlives_its_build(site: Site, repo: Path, tmp_path: Path) -> None:
    script = (
        '(setsid setsid sh -c \'trap "" TERM HUP; while :; do sleep 0.1; echo late > '
        "planted-late; done' >/dev/null 2>&1 </dev/null &) ; echo ATTACK ran\n"
    )
    outcome = build(site, repo, hostile(repo, script), tmp_path / "out")
    assert outcome["status"] == "built" and "ran" in said(tmp_path / "out")
    assert not left_running(tmp_path)


# -- what it leaves to be read

IMAGE = "arch/x86/boot/bzImage"


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (f"ln -sf /etc/shadow {IMAGE}", f"left no {IMAGE}"),
        (f"ln -sf {IMAGE} vmlinux", "vmlinux"),
        (f"rm {IMAGE}; mkfifo {IMAGE}", f"left no {IMAGE}"),
        (f"rm {IMAGE}; mkdir {IMAGE}", "it is not a regular file"),
        (f"truncate -s 3G {IMAGE}", f"left no {IMAGE}"),
        (f"truncate -s 1G {IMAGE}", "the limit is 512 MB"),
        ("mv arch real; ln -s real arch", f"left no {IMAGE}"),
        ("ln -sf /etc/shadow .config", ".config"),
        ("rm System.map; ln -s /proc/self/environ System.map", "left no System.map"),
        ("head -c 100000 /dev/urandom > vmlinux", "invalid vmlinux"),
        ("truncate -s 24M .config", "a .config of 24 MB; the limit is 4 MB"),
        ("i=0; while [ $i -lt 100 ]; do mkdir d; cd d; i=$((i + 1)); done", "deep"),
    ],
)
def test_what_a_build_leaves_is_taken_only_if_it_is_what_it_should_be(
    site: Site, repo: Path, tmp_path: Path, after: str, reason: str
) -> None:
    outcome = build(site, repo, hostile(repo, "", after=f"{after}\n"), tmp_path / "out")
    # a limit of ours is no verdict about the commit
    status = "infra" if "limit" in reason or reason == "deep" else "failed"
    assert (outcome["status"], reason in outcome["reason"]) == (status, True), outcome["reason"]
    assert (
        "bzImage" not in outcome["files"] or (tmp_path / "out" / "bzImage").stat().st_size < 1 << 20
    )
    assert not any(path.is_symlink() for path in (tmp_path / "out").iterdir())
    assert b"root:" not in b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir())


# Poisoned: an object that make takes for finished, and whatever is in the compiler cache.
POISON = (
    "for f in init/main.o mm/memory.o; do cp poison.o $f; touch -d '+1 hour' $f; done\n"
    "find $CCACHE_DIR -type f -name '*R' -exec cp poison.o {} ';'; echo ATTACK poisoned\n"
)
COMPILE = "echo 'int poison;' > poison.c; gcc -c -o poison.o poison.c; touch $CCACHE_DIR/planted\n"


def test_what_a_trusted_commit_leaves_reaches_no_untrusted_build(
    site: Site, repo: Path, tmp_path: Path
) -> None:
    base = git(repo, "rev-parse", "HEAD")
    commit = hostile(repo, COMPILE, after=POISON)
    git(repo, "checkout", "-q", "--detach", base)
    [*_, victim] = add_commits(repo, [FakeCommit(speed=77)])
    alone = replace(site, cache=tmp_path / "alone")
    clean = build(alone, repo, victim, tmp_path / "clean", tree="t2")
    assert build(site, repo, base, tmp_path / "0", trust="trusted", tree="t2")["status"] == "built"
    assert (
        build(site, repo, commit, tmp_path / "1", trust="trusted", tree="t1")["status"] == "built"
    )
    assert said(tmp_path / "1") == ["poisoned"]
    after = build(site, repo, victim, tmp_path / "2", tree="t2")
    images = [outcome["kernel_build"]["image_sha256"] for outcome in (clean, after)]
    assert images[0] == images[1] and not after["kernel_build"]["cached"]
    objects = [(tmp_path / name / "objects.json").read_text() for name in ("clean", "2")]
    assert objects[0] == objects[1]
    assert [path.parent.name for path in (site.cache / "ccaches").glob("*/planted")] == ["t1"]
    shutil.rmtree(site.cache / "kernels")
    own = build(site, repo, victim, tmp_path / "3", trust="trusted", tree="t1")
    assert own["kernel_build"].get("image_sha256") != images[0]  # so the poison works


def test_a_tree_finds_its_own_objects_again_after_another_was_built(
    site: Site, repo: Path, tmp_path: Path
) -> None:
    base = git(repo, "rev-parse", "HEAD")
    [*_, tip] = add_commits(repo, [FakeCommit(speed=77)])
    compiled = []
    for number, (tree, commit) in enumerate(
        [("t1", base), ("t2", base), (None, base), ("t1", tip), ("t2", tip)]
    ):
        shutil.rmtree(site.cache / "kernels", ignore_errors=True)
        out = tmp_path / str(number)
        assert build(site, repo, commit, out, trust="trusted", tree=tree)["status"] == "built"
        compiled.append((out / "build.log").read_text().count("\n  CC "))
    full = compiled[0]
    assert compiled[:3] == [full] * 3 and max(compiled[3:]) < full / 2, compiled


def test_the_compiler_cache_of_a_trusted_build_counts_against_the_disk_limit(
    site: Site, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWINGBOT_BUILD_DISK_MB", "50")
    script = "for i in 1 2 3; do head -c 30000000 /dev/urandom > $CCACHE_DIR/big$i; sleep 1; done\n"
    outcome = build(site, repo, hostile(repo, script), tmp_path / "out", trust="trusted", tree="t1")
    assert outcome["status"] == "infra", outcome
    assert "the limit is 50 MB (SWINGBOT_BUILD_DISK_MB)." in outcome["reason"]
    assert not list((site.cache / "ccaches").rglob("big*"))


UNLINKED = """
import mmap, os, time
for number in range(6):
    descriptor = os.open(f"f{number}", os.O_CREAT | os.O_RDWR)
    os.unlink(f"f{number}")
    for _ in range(20):
        os.write(descriptor, b"x" * (1 << 20))
    globals()[f"m{number}"] = mmap.mmap(descriptor, 20 << 20)
    os.close(descriptor)
print("ATTACK wrote", flush=True)
time.sleep(600)
"""


def test_unlinked_mapped_files_of_a_trusted_build_count_as_disk(
    site: Site, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWINGBOT_BUILD_DISK_MB", "50")
    commit = hostile(repo, "/usr/bin/python3 ../a.py\n", files={"a.py": UNLINKED})
    outcome = build(site, repo, commit, tmp_path / "out", trust="trusted", deadline_seconds=120)
    assert outcome["status"] == "infra", outcome
    assert "the limit is 50 MB (SWINGBOT_BUILD_DISK_MB)." in outcome["reason"]


def test_a_small_vmlinux_that_needs_gigabytes_is_refused(
    site: Site, repo: Path, tmp_path: Path
) -> None:
    program = Path(hostile_elf.__file__).read_text()
    program += 'open("vmlinux", "wb").write(long_names(20 << 20, 120))\n'
    commit = hostile(repo, "", after="python3 ../e.py\n", files={"e.py": program})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = build(site, repo, commit, tmp_path / "out")
    assert outcome["status"] == "failed"
    assert "invalid vmlinux" in outcome["reason"] and "longer than 4096" in outcome["reason"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


def test_notes_of_ours_that_a_build_forges_are_not_read(
    site: Site, repo: Path, tmp_path: Path
) -> None:
    forge = (
        'for f in .swingbot-objects.json .swingbot-functions.json; do echo \'{"mm/memory.o": '
        '[1, 2, "forged"]}\' > $f; done\n'
    )
    outcome = build(site, repo, hostile(repo, "", after=forge), tmp_path / "out")
    assert (
        outcome["status"] == "built"
        and "forged" not in (tmp_path / "out" / "objects.json").read_text()
    )


# -- without walls


def test_without_walls_only_trusted_kernels_are_built_and_it_is_said(
    site: Site, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWINGBOT_BUILD_WALLS", "off")
    commit = hostile(repo, "echo ATTACK ran\n")
    refused = build(site, repo, commit, tmp_path / "out")
    assert (
        refused["status"] == "infra"
        and "must be built behind walls" in refused["reason"]
        and "switched off" in refused["reason"]
    )
    assert not (tmp_path / "out" / "build.log").exists()
    trusted = build(site, repo, commit, tmp_path / "out", trust="trusted")
    assert trusted["status"] == "built" and trusted["kernel_build"]["walls"] == []
    assert "swingbot: trusted, without walls" in (tmp_path / "out" / "build.log").read_text()


def test_trusted_builds_are_behind_the_same_walls(site: Site, repo: Path, tmp_path: Path) -> None:
    outcome = build(
        site,
        repo,
        hostile(
            repo,
            (
                "cat /etc/shadow && echo ATTACK read\n(echo x > ../x) && echo ATTACK wrote\n"
                "echo ATTACK ran\n"
            ),
        ),
        tmp_path / "out",
        trust="trusted",
    )
    assert outcome["status"] == "built" and said(tmp_path / "out") == ["ran"]
    assert len(outcome["kernel_build"]["walls"]) == 9


def test_builds_with_and_without_walls_follow_each_other_in_one_object_directory(
    site: Site, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = []
    for number, switch in enumerate(("on", "off", "on")):
        monkeypatch.setenv("SWINGBOT_BUILD_WALLS", switch)
        (commit,) = add_commits(repo, [FakeCommit(kind="header", speed=50 + number)])
        outcome = build(site, repo, commit, tmp_path / "out", trust="trusted")
        assert outcome["status"] == "built", outcome
        images.append(outcome["kernel_build"]["image_sha256"])
    assert len(set(images)) == 3


def test_an_untrusted_build_goes_on_from_what_trusted_ones_left_and_takes_nothing_from_it(
    site: Site, repo: Path, tmp_path: Path
) -> None:
    base = git(repo, "rev-parse", "HEAD")
    (patched,) = add_commits(repo, [FakeCommit(speed=70)])
    build(site, repo, base, tmp_path / "base", trust="trusted")
    for _ in range(2):  # the second one is as far from the base as the first was
        outcome = build(site, repo, patched, tmp_path / "out")
        lines = (tmp_path / "out" / "build.log").read_text().splitlines()
        assert outcome["status"] == "built" and [
            line.split()[1] for line in lines if line.startswith("  CC ")
        ] == ["mm/page_alloc.o"]
        shutil.rmtree(site.cache / "kernels")
    clean = build(replace(site, cache=tmp_path / "clean"), repo, patched, tmp_path / "reference")
    assert outcome["kernel_build"]["image_sha256"] == clean["kernel_build"]["image_sha256"]
