"""docker-compose.yml really brought up, with podman as the engine: a comparison from outside, every part killed, everything down and up again."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from swingbot_worker import lease
from swingbot_worker.site import Site, from_environment
from tests.kernels import kernel_repository
from tests.lab.compose.engine import BASE, ROOT, Engine, until

PORT = 8201
PARTS = ("postgres", "mail", "git", "web", "loop", "master", "build-worker", "testbox-worker")  # all that stay
JOB = "vm-hackbench.yaml"
HEALTHY_SECONDS = 400.0  # on two busy cores; each Python of ours takes seconds to start there
if os.geteuid() != 0 or shutil.which("podman") is None or shutil.which("docker-compose") is None:
    pytest.skip("podman as root and docker-compose are needed: .ci/lab installs them", allow_module_level=True)


@pytest.fixture(scope="module")
def trees() -> Iterator[Path]:
    """A directory of kernel repositories, as an operator has one: the demo's kernel under a short name."""
    repo, _ = kernel_repository(from_environment())
    with tempfile.TemporaryDirectory(prefix="swingbot-trees-") as name:
        subprocess.run(["git", "clone", "--quiet", "--bare", "--no-local", "--branch=base", "--single-branch", repo, f"{name}/linux.git"], check=True)
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def engine(trees: Path) -> Iterator[Engine]:
    """The whole project, up and healthy, with what users do: prepare, build, up."""
    site = from_environment()
    place = Path(tempfile.mkdtemp(prefix="swc-"))  # short: a socket's path holds 107 characters
    variables = {
        "SWINGBOT_SECRETS": str(place / "secrets"),
        "SWINGBOT_BASE": BASE,
        "SWINGBOT_WEB_PORT": str(PORT),
        "SWINGBOT_PUBLIC_URL": f"http://localhost:{PORT}",
        "SWINGBOT_WALLS_PROC": "unmask=ALL",
        "SWINGBOT_WALLS_SECCOMP": "seccomp=unconfined",  # podman's socket takes no profile as text; it is tried by hand below
        "SWINGBOT_TREES": str(trees),
        "SWINGBOT_POLICY_IDLE_AA_MINUTES": "0",
        "SWINGBOT_BUILD_MEMORY_MB": "3000",
        "SWINGBOT_BUILD_CONTAINER_MEMORY": "4g",
    }
    with lease.cache_entry(site.cache / "compose"):
        made = Engine(site.cache / "compose", place, "swingbotlab", variables)
        try:
            made.start()
            made.make_base()
            _secrets(place)
            made.compose("build", "postgres", "keys", "build-worker", seconds=3000)
            _warm(made, site)
            made.compose("up", "--detach", seconds=1200)
            _wait_until_healthy(made)
            yield made
        finally:
            made.close()
            shutil.rmtree(place, ignore_errors=True)


def _secrets(place: Path) -> None:
    """What `sh docker/prepare` makes, in a copy: this checkout keeps its own .env, if it has one."""
    (place / "copy" / "docker").mkdir(parents=True)
    shutil.copy(ROOT / "docker" / "prepare", place / "copy" / "docker")
    shutil.copy(ROOT / ".env.example", place / "copy")
    subprocess.run(["sh", "docker/prepare"], cwd=place / "copy", check=True, capture_output=True)
    (place / "copy" / "secrets").rename(place / "secrets")


def _warm(engine: Engine, site: Site) -> None:
    """This host's ccache for the builder, so that a kernel takes minutes: what is in it has proved itself by its key."""
    engine.compose("up", "--no-start", "build-worker", seconds=300)
    volume = Path(engine.podman("volume", "inspect", "--format={{.Mountpoint}}", f"{engine.project}_builder-cache").strip())
    subprocess.run(["cp", "--archive", site.cache / "ccache", volume / "ccache"], check=True)
    subprocess.run(["chown", "--recursive", "10001:10001", volume], check=True)


def _wait_until_healthy(engine: Engine) -> None:
    def healthy() -> bool:
        return all(engine.state(part) == ("running", "healthy") for part in PARTS)

    try:
        until("every part is healthy", healthy, HEALTHY_SECONDS)
    except AssertionError as error:
        said = "\n".join(f"{part} {engine.state(part)}\n{engine.logs(part)}" for part in PARTS if engine.state(part) != ("running", "healthy"))
        raise AssertionError(f"{error}\n{said}") from None


def _page(path: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://localhost:{PORT}{path}", timeout=30) as answer:
        return str(answer.read().decode())


def _swingbot(engine: Engine, *words: str, seconds: float = 300, text: str | None = None) -> str:
    return engine.exec("loop", "swingbot", *words, seconds=seconds, text=text)


def _rows(engine: Engine, query: str) -> list[str]:
    return engine.exec("postgres", "psql", "-qtA", "-h", "/run/postgresql", "-U", "postgres", "swingbot", "-c", query).split()


# -- in the order in which they stand


def test_what_users_type_is_what_the_engine_takes(engine: Engine) -> None:
    assert set(PARTS) <= set(engine.compose("config", "--services").split())
    assert "swingbot" in _page("/")
    assert "ok" in _page("/healthz")


def test_workers_reach_neither_the_database_nor_the_world(engine: Engine) -> None:
    try_it = "import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=4)"
    reached = "print('reached')"
    for worker in ("build-worker", "testbox-worker"):
        address = engine.podman(
            "inspect", "--format", '{{(index .NetworkSettings.Networks "swingbotlab_back").IPAddress}}', engine.container("postgres")
        ).strip()
        assert "reached" not in engine.exec(worker, "python3", "-c", f"{try_it}; {reached}", address, "5432", check=False)
        assert "reached" not in engine.exec(worker, "python3", "-c", f"{try_it}; {reached}", "192.0.2.1", "80", check=False)
        assert "reached" in engine.exec(worker, "python3", "-c", f"{try_it}; {reached}", "web", "8010")
        assert "PASSWORD" not in engine.exec(worker, "env")


def test_nobody_can_write_to_an_image_or_become_root(engine: Engine) -> None:
    for part in PARTS:
        status = engine.exec(part, "cat", "/proc/self/status")
        assert "\nCapEff:\t0000000000000000\n" in status, part
        assert "\nNoNewPrivs:\t1\n" in status, part
        assert "\nUid:\t0\t" not in status, part
        assert "no" in engine.exec(part, "sh", "-c", "touch /etc/x 2>/dev/null && echo yes || echo no"), part


def test_walls_around_builds_stand_in_the_container(engine: Engine) -> None:
    code = "from swingbot_worker.walls import probe, missing; print(missing(probe().walls) or 'all walls stand')"
    assert engine.exec("build-worker", "/opt/swingbot/.venv/bin/python", "-c", code).strip() == "all walls stand"
    profile = [f"--security-opt={option}" for option in ("no-new-privileges", "unmask=ALL", f"seccomp={ROOT}/docker/seccomp-walls.json")]
    walled = ["--rm", "--init", "--read-only", "--cap-drop=all", "--network=none", "--tmpfs=/tmp:mode=1777", *profile]
    assert engine.podman("run", *walled, "swingbot-worker:local", "python", "-c", code).strip() == "all walls stand"


def test_a_comparison_from_outside_is_built_booted_and_shown(engine: Engine, trees: Path) -> None:
    """The head is the base with a patch: two kernels that nobody has built yet, booted once each."""
    _swingbot(engine, "tree", "add", "demo", "/srv/trees/linux.git", "--branch", "base", "--base", "base", "--job", JOB, seconds=900)
    engine.exec("loop", "sh", "-c", "cat >/tmp/my.patch", text=_patch(trees))
    number = _compare(engine, "--patch", "/tmp/my.patch", "--trusted", "--boots", "1")
    until("the comparison is over", lambda: _status(engine, number) not in ("waiting", "running"), 3600, pause=10)
    assert _status(engine, number) == "done", engine.logs("build-worker") + engine.logs("testbox-worker")
    assert "hackbench.throughput" in _page(f"/comparison/c{number}")
    assert int(_rows(engine, "SELECT count(*) FROM swingbot.boot WHERE outcome = 'up'")[0]) >= 2


def _compare(engine: Engine, *words: str) -> int:
    """Queue a comparison of the base with itself; says its number."""
    said = _swingbot(engine, "compare", "base", "base", "--tree", "demo", "--job", JOB, *words, seconds=900)
    match = re.search(r"\bc(\d+) is ", said)
    assert match is not None, said
    return int(match[1])


def _status(engine: Engine, comparison: int) -> str:
    return _rows(engine, f"SELECT status FROM swingbot.comparison WHERE id = {comparison}")[0]


def _patch(trees: Path) -> str:
    """A patch of the tree that changes one file and no more."""
    with tempfile.TemporaryDirectory() as name:
        git = ["git", "-C", name, "-c", "user.name=Demo Author", "-c", "user.email=author@demo.invalid"]
        subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{trees}/linux.git", name], check=True)
        file = Path(name) / "init" / "version.c"
        file.write_text(file.read_text() + '\nconst char swingbot_was_here[] = "yes";\n')
        subprocess.run([*git, "commit", "--quiet", "--all", "--message", "init: say so"], check=True)
        return subprocess.run([*git, "format-patch", "-1", "--stdout"], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_killed_is_back_and_well(engine: Engine, part: str) -> None:
    before = engine.started(part)
    os.kill(int(before.split()[-1]), signal.SIGKILL)  # its first process, from outside, as a host out of memory does
    until(f"{part} was started again", lambda: engine.started(part) not in ("", before), 120)
    _wait_until_healthy(engine)


def test_a_boot_whose_container_is_killed_is_made_again(engine: Engine) -> None:
    number = _compare(engine, "--boots", "3")
    until("a boot is under way", lambda: "qemu-system" in engine.exec("testbox-worker", "ps", "-eo", "comm", check=False), 600, pause=0.5)
    os.kill(int(engine.started("testbox-worker").split()[-1]), signal.SIGKILL)
    until("the comparison is over", lambda: _status(engine, number) not in ("waiting", "running"), 1800, pause=5)
    assert _status(engine, number) == "done"
    spoilt = "SELECT count(*) FROM swingbot.attempt WHERE state = 'dead' OR outcome->>'status' = 'infra'"
    assert int(_rows(engine, spoilt)[0]) >= 1


def test_down_and_up_lose_nothing(engine: Engine) -> None:
    kept = (
        "SELECT 'c' || id FROM swingbot.comparison WHERE status = 'done' UNION SELECT 'x' || id FROM swingbot.boot UNION SELECT 's' || run FROM swingbot.sample"
    )
    before, secret = set(_rows(engine, kept)), engine.exec("build-worker", "cat", "/keys/secret")
    assert before
    began = time.monotonic()
    engine.compose("down", seconds=600)
    assert time.monotonic() - began < 300
    assert engine.podman("ps", "--all", "--quiet") == ""
    engine.forget_names()
    engine.compose("up", "--detach", seconds=1800)
    _wait_until_healthy(engine)
    assert before <= set(_rows(engine, kept))
    assert engine.exec("build-worker", "cat", "/keys/secret") == secret
    done = min(int(row[1:]) for row in before if row.startswith("c"))
    assert "hackbench.throughput" in _page(f"/comparison/c{done}")
