"""The wheel, installed beside nothing of this repository: plain commands without an extra, and a
whole comparison."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from swingbot.app import process
from swingbot.app.tcp_ports import free_ports
from swingbot_jobs import resources
from tests import wheel
from tests.fakelinux import FakeCommit, make_fakelinux

JOBS = resources.folder("jobs")
# A machine that runs the job right here, whatever kernel it is given.
MACHINE = """\
#!/bin/sh
echo "[    0.0] Linux version 6.1" >"$SWINGBOT_OUT/console.log"
export SWINGBOT_PROGRAMS="$SWINGBOT_JOB/programs" SWINGBOT_WORK="$SWINGBOT_OUT/work"
sh "$SWINGBOT_JOB/run.sh" 3>"$SWINGBOT_OUT/results.tar"
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel.build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def plain(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel.install(tmp_path_factory.mktemp("plain") / "venv", built)


def test_the_wheel_carries_every_resource_with_its_mode(built: Path) -> None:
    with zipfile.ZipFile(built) as archive:
        carried = {
            name.removeprefix("swingbot_resources/"): info.external_attr >> 16 & 0o111
            for info in archive.infolist()
            if (name := info.filename).startswith("swingbot_resources/")
        }
    tracked = subprocess.run(
        ["git", "-C", resources.root(), "ls-files", *resources.FOLDERS],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    packages = ("jobs/swingbot_jobs/", "master/swingbot/", "db/swingbot_db/")
    wanted = {
        name
        for name in tracked
        if not name.startswith((*packages, "workers/swingbot_worker/")) and "/samples/" not in name
    }
    assert wanted == carried.keys()
    for name in wanted:
        executable = (resources.root() / name).stat().st_mode & 0o100 != 0
        assert (carried[name] != 0) is executable, name


def test_what_needs_no_service_runs_without_an_extra(plain: Path, tmp_path: Path) -> None:
    def swingbot(*words: str) -> str:
        done = wheel.run(plain / "swingbot", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "vm-netperf.yaml: 2 unit jobs on vm-icount" in swingbot(
        "jobs", "lint", "vm-netperf.yaml", "--testbox", "vm-icount"
    )
    judged = swingbot(
        "stats", "compare", "--base", "40;41;40;41", "--head", "50;51;50;51", "--json"
    )
    assert json.loads(judged)["base"]["boots"] == 4
    sample = JOBS / "programs" / "hackbench" / "samples" / "guest-threads-socket.raw"
    assert json.loads(swingbot("parse", "hackbench", str(sample)))
    assert "kernel_errors" in swingbot("facts")
    assert "Decide and report" in swingbot("--help")


def test_bisect_run_finds_a_commit_without_an_extra(plain: Path, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    ids = make_fakelinux(repo, [FakeCommit(), FakeCommit(speed=50), FakeCommit()])
    bench = (
        f"git -C {repo} log --oneline $SWINGBOT_COMMIT | wc -l | awk "
        f"'{{ print ($1 > 2 ? 50 : 100) }}'"
    )
    words = ("--repo", str(repo), "--noise", "1", "--json", f"{ids[0]}..{ids[-1]}", "--")
    done = wheel.run(plain / "swingbot", "bisect", "run", *words, "sh", "-c", bench, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ids[2] in done.stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["swingbot", "up", "--port", "1"],
            (
                'swingbot up needs the extras "master" and "worker": pip install '
                "'swingbot[master,worker] @ WHEEL'"
            ),
        ),
        (
            ["swingbot", "tree", "add", "--nonsense"],
            "swingbot tree needs the extra \"master\": pip install 'swingbot[master] @ WHEEL'",
        ),
        (
            ["swingbot", "testbox", "list"],
            "swingbot testbox needs the extra \"master\": pip install 'swingbot[master] @ WHEEL'",
        ),
        (
            ["swingbot-worker", "build"],
            "swingbot-worker needs the extra \"worker\": pip install 'swingbot[worker] @ WHEEL'",
        ),
    ],
)
def test_a_command_without_its_extra_says_which_in_one_line(
    built: Path, plain: Path, tmp_path: Path, words: list[str], line: str
) -> None:
    done = wheel.run(plain / words[0], *words[1:], cwd=tmp_path)
    line = line.replace("WHEEL", built.as_uri())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{line}\n")


@dataclass(frozen=True, slots=True)
class Service:
    """`swingbot up` from the wheel, and another terminal that knows its state directory alone."""

    bin: Path
    place: Path
    url: str

    def swingbot(self, *words: str) -> str:
        """What a command prints; it has to succeed."""
        return self.called(*words).stdout

    def called(self, *words: str) -> subprocess.CompletedProcess[str]:
        done = wheel.run(
            self.bin / "swingbot",
            *words,
            cwd=self.place,
            SWINGBOT_PATHS_STATE=str(self.place / "state"),
            SWINGBOT_PATHS_WORKERS=str(self.place / "workers"),
            SWINGBOT_PATHS_JOBS=str(self.place / "jobs"),
            SWINGBOT_WATCH_TESTBOX="here",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done


@pytest.fixture(scope="module")
def service(built: Path) -> Iterator[Service]:
    # short, for sockets; and not below pytest's directory, which every start of another pytest
    # closes to the database's user, who reads PostgreSQL's files in the venv
    place = Path(tempfile.mkdtemp(prefix="swingbot-wheel-", dir="/tmp"))
    place.chmod(0o755)
    bin_ = wheel.install(place / "venv", built, ["master", "worker"])
    [shipped] = bin_.parent.glob("lib/python3*/site-packages/swingbot_resources")
    for name in ("jobs", "workers"):
        shutil.copytree(shipped / name, place / name)
    machine = place / "machine"
    machine.write_text(MACHINE)
    (place / "workers" / "testboxes" / "here.yaml").write_text(
        json.dumps(
            {
                "name": "here",
                "tbox_group": "here",
                "driver": "command",
                "command": {"argv": ["/bin/sh", str(machine)]},
                "model": "this machine, whatever kernel it is given",
                "nr_cpu": 1,
                "memory_mb": 64,
            }
        )
    )
    for testbox in ("cs-vm", "vm-icount", "vm-tcg"):
        (place / "workers" / "testboxes" / f"{testbox}.yaml").unlink()
    port = free_ports(18410, 4)
    env = wheel.environment(
        place,
        SWINGBOT_PATHS_WORKERS=str(place / "workers"),
        SWINGBOT_PATHS_JOBS=str(place / "jobs"),
        SWINGBOT_PATHS_CACHE=str(place / "cache"),
        SWINGBOT_WATCH_TESTBOX="here",
    )
    log = place / "up.log"
    with log.open("w") as sink:
        up = subprocess.Popen(
            [bin_ / "swingbot", "up", "--state", str(place / "state"), "--port", str(port)],
            cwd=place,
            env=env,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        end = time.monotonic() + 300
        while "swingbot is up" not in log.read_text():
            assert up.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.2)
        yield Service(bin_, place, f"http://127.0.0.1:{port}")
        up.send_signal(signal.SIGINT)
        assert up.wait(90) == 0, log.read_text()
    finally:
        print(log.read_text())
        process.stop_members(place / "state", 30)
        shutil.rmtree(place, ignore_errors=True)


def test_a_comparison_ends_without_the_repository_and_prints_the_right_address(
    service: Service,
) -> None:
    repo = service.place / "linux"
    ids = make_fakelinux(repo, [FakeCommit(), FakeCommit(speed=80)])
    job = ("--job", "vm-hackbench.yaml")
    service.swingbot("tree", "add", "fake", str(repo), "--branch", "main", "--base", ids[-1], *job)
    said = service.swingbot(
        "compare", ids[0], ids[-1], "--tree", "fake", *job, "--boots", "1", "--yes"
    )
    [comparison] = re.findall(rf"{service.url}/comparison/(c\d+) ", said)
    service.swingbot("wait", comparison)
    shown = json.loads(service.swingbot("show", comparison, "--json"))
    assert shown["status"] == "done", shown
    assert shown["rows"], "nothing was measured"
    login = service.called("token", "create", "Ada", "--role", "submitter").stderr
    assert f"{service.url}/login" in login
