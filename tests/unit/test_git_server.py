"""The mirror as build workers on other hosts see it: git's own daemon, as `swingbot git` runs
it."""

from __future__ import annotations

import dataclasses
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from swingbot.adapters.limits import FETCHING_BYTES
from swingbot.app.limits import PACKING_SECONDS
from swingbot.app.settings import GitSection, PathSection, Settings
from swingbot_worker.kbuild import source
from tests.buildbot.ports import free_ports
from tests.fakelinux import FakeCommit, make_fakelinux


def git(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    somebody = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    return subprocess.run(
        ["git", *somebody, *words], cwd=cwd, capture_output=True, text=True, check=False, timeout=60
    )


class Served:
    """A mirror with three commits on branch main and one on no branch, next to a private
    repository."""

    daemon: psutil.Process

    def __init__(self, root: Path) -> None:
        port = free_ports(1)
        self.settings = dataclasses.replace(
            Settings(),
            paths=PathSection(state=str(root / "state")),
            git=GitSection(host="127.0.0.1", port=port),
        )
        self.url = f"git://127.0.0.1:{port}/mirror.git"
        self.commits = make_fakelinux(
            root / "upstream", [FakeCommit(speed=80), FakeCommit(speed=60)]
        )
        for name in ("mirror.git", "private.git"):
            git(
                "clone",
                "-q",
                "--bare",
                str(root / "upstream"),
                str(root / "state" / name),
                cwd=root,
            )
        made = git(
            "commit-tree",
            "-p",
            "HEAD",
            "-m",
            "a patch under test",
            "HEAD^{tree}",
            cwd=root / "upstream",
        ).stdout.strip()
        git(
            "push",
            "-q",
            str(self.settings.mirror),
            f"{made}:refs/swingbot/1",
            cwd=root / "upstream",
        )
        self.patch = made


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    env = os.environ | {
        "SWINGBOT_PATHS_STATE": str(served.settings.state),
        "SWINGBOT_GIT_HOST": served.settings.git.host,
        "SWINGBOT_GIT_PORT": str(served.settings.git.port),
    }
    argv = [sys.executable, "-m", "swingbot.app.cli", "git"]
    with subprocess.Popen(
        argv, env=env, cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True
    ) as daemon:
        served.daemon = psutil.Process(daemon.pid)
        for _ in range(3000):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", served.settings.git.port)) == 0:
                    break
            time.sleep(0.02)
        yield served
        daemon.terminate()


def test_a_worker_finds_each_commit_by_its_hash_and_brings_little_for_the_next(
    served: Served, tmp_path: Path
) -> None:
    brought = []
    for commit in (served.commits[0], served.commits[1], served.patch):
        found = source.find(served.url, commit, tmp_path / "cache")
        assert found.commit == commit
        packed = git("count-objects", "-v", cwd=found.objects.parent).stdout
        brought.append(
            sum(
                int(line.split()[1])
                for line in packed.splitlines()
                if line.split()[0] in ("count:", "in-pack:")
            )
        )
    # no second copy of the tree
    assert brought[0] > 15 and brought[2] - brought[0] < brought[0] / 2


def test_nothing_but_the_mirror_is_served_and_nothing_is_taken(
    served: Served, tmp_path: Path
) -> None:
    assert git("ls-remote", served.url, cwd=tmp_path).returncode == 0
    for other in ("private.git", "../state/private.git", "", "mirror.git/../private.git"):
        assert (
            git("ls-remote", served.url.replace("mirror.git", other), cwd=tmp_path).returncode != 0
        ), other
    push = git("push", served.url, "HEAD:refs/heads/mine", cwd=tmp_path / "upstream")
    assert (
        push.returncode != 0
        and git("rev-parse", "--verify", "mine", cwd=served.settings.mirror).returncode != 0
    )
    assert git("archive", f"--remote={served.url}", "HEAD", cwd=tmp_path).returncode != 0


def words_of(process: psutil.Process) -> list[str]:
    """Its command line; none if it has ended, as the child of an earlier connection."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def test_the_daemon_and_what_it_starts_for_a_client_have_limits_and_go_first_out_of_memory(
    served: Served,
) -> None:
    with socket.create_connection(("127.0.0.1", served.settings.git.port)) as client:
        request = b"git-upload-pack /mirror.git\0host=127.0.0.1\0"
        client.sendall(b"%04x%s" % (len(request) + 4, request))
        assert client.recv(4).isalnum()  # it serves, and waits for what is wanted
        children = served.daemon.children(recursive=True)
        started = [process for process in children if "upload-pack" in words_of(process)]
        assert started
        for process in (served.daemon, *started):
            assert process.rlimit(psutil.RLIMIT_DATA) == (FETCHING_BYTES, FETCHING_BYTES)
            assert process.rlimit(psutil.RLIMIT_CORE) == (0, 0)
            assert process.rlimit(psutil.RLIMIT_CPU)[0] == psutil.RLIM_INFINITY
            assert Path(f"/proc/{process.pid}/oom_score_adj").read_text() == "1000\n"


def test_what_packs_objects_for_a_client_has_a_limit_of_processor_time(
    served: Served, tmp_path: Path
) -> None:
    large = tmp_path / "upstream" / "large"
    large.write_bytes(os.urandom(16 << 20))  # more than the sockets hold
    blob = git("hash-object", "-w", str(large), cwd=served.settings.mirror).stdout.strip()
    with socket.create_connection(("127.0.0.1", served.settings.git.port)) as client:
        for line in (b"git-upload-pack /mirror.git\0host=x\0", b"want %s\n" % blob.encode()):
            client.sendall(b"%04x%s" % (len(line) + 4, line))
        client.sendall(b"00000009done\n")
        packing: list[psutil.Process] = []
        give_up = time.monotonic() + 60
        while not packing and time.monotonic() < give_up:
            children = served.daemon.children(recursive=True)
            packing = [
                process for process in children if words_of(process)[1:2] == ["pack-objects"]
            ]
        (process,) = packing
        assert process.rlimit(psutil.RLIMIT_CPU)[0] == PACKING_SECONDS
        assert process.rlimit(psutil.RLIMIT_DATA) == (FETCHING_BYTES, FETCHING_BYTES)
