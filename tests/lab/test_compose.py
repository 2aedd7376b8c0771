"""docker-compose.yml really brought up, with podman as the engine: comparisons from outside,
every part stopped and killed, all down and up again.

The tests run in this order: each continues from the state that the previous ones left.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from swingbot.core.plan.testbox_rules import FAILED
from swingbot_worker import lease
from swingbot_worker.site import Site, from_environment
from tests.dashboards import answered, dashboards
from tests.kernels import kernel_repository
from tests.lab import made_root
from tests.lab.compose.engine import BASE, ROOT, Engine, until
from tests.lab.compose.other_host import LAB, other_host
from tests.lab.compose.project import (
    JOB,
    ONCE,
    OVER_SECONDS,
    PARTS,
    WELL_SECONDS,
    Project,
    a_patch,
)
from tests.lab.machine import free_port

NAME = "swingbotlab"
pytestmark = pytest.mark.timeout(3600)
METRIC = "hackbench.throughput"
if os.geteuid() != 0 or shutil.which("podman") is None or shutil.which("docker-compose") is None:
    pytest.skip(
        "podman as root and docker-compose are needed: .ci/lab installs them",
        allow_module_level=True,
    )


@pytest.fixture(scope="module")
def trees() -> Iterator[Path]:
    """A directory of kernel repositories, as an operator has one: the demo's kernel under a short
    name.
    """
    repo, _ = kernel_repository(from_environment())
    with tempfile.TemporaryDirectory(prefix="swingbot-trees-") as name:
        subprocess.run(
            [
                "git",
                "clone",
                "--quiet",
                "--bare",
                "--no-local",
                "--branch=base",
                "--single-branch",
                repo,
                f"{name}/linux.git",
            ],
            check=True,
        )
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def project(trees: Path) -> Iterator[Project]:
    """The whole of it, up and well, by what users do: prepare, build, up."""
    site, port, grafana_port = from_environment(), free_port(), free_port()
    place = Path(tempfile.mkdtemp(prefix="swc-"))  # short: a socket's path holds 107 characters
    variables = {
        "SWINGBOT_SECRETS": str(place / "secrets"),
        "SWINGBOT_BASE": BASE,
        "SWINGBOT_WEB_PORT": str(port),
        "SWINGBOT_GRAFANA_PORT": str(grafana_port),
        "SWINGBOT_PUBLIC_URL": f"http://localhost:{port}",
        "SWINGBOT_WALLS_PROC": "unmask=ALL",
        # podman's socket takes no profile as text; a test below tries it by hand
        "SWINGBOT_WALLS_SECCOMP": "seccomp=unconfined",
        "SWINGBOT_TREES": str(trees),
        "SWINGBOT_TESTBOXES_IDLE_AA_MINUTES": "0",
        "SWINGBOT_TEST_CCACHE": str(place / "ccache"),
        "SWINGBOT_BUILD_MEMORY_MB": "3000",
        "SWINGBOT_BUILD_CONTAINER_MEMORY": "4g",
    }
    with lease.cache_entry(site.cache / "compose"):
        engine = Engine(site.cache / "compose", place, NAME, variables)
        made = Project(engine, port, grafana_port)
        try:
            engine.start()
            engine.make_base()
            _secrets(place)
            engine.compose("build", "postgres", "grafana", "keys", "build-worker", seconds=3000)
            _warm(place, site)
            made.up()
            yield made
        finally:
            engine.close()
            made_root.remove(place)


def _secrets(place: Path) -> None:
    """What `sh docker/prepare` makes, in a copy: this checkout keeps its own .env, if it has
    one."""
    (place / "copy" / "docker").mkdir(parents=True)
    shutil.copy(ROOT / "docker" / "prepare", place / "copy" / "docker")
    shutil.copy(ROOT / ".env.example", place / "copy")
    subprocess.run(["sh", "docker/prepare"], cwd=place / "copy", check=True, capture_output=True)
    (place / "copy" / "secrets").rename(place / "secrets")


def _warm(place: Path, site: Site) -> None:
    """This host's ccache for the builder, so that a kernel takes minutes:
    what is in it has proved itself by its key.
    """
    (place / "ccache").mkdir()
    if (site.cache / "ccache").is_dir():
        subprocess.run(["cp", "--archive", f"{site.cache}/ccache/.", place / "ccache"], check=True)
    subprocess.run(["chown", "--recursive", "10001:10001", place / "ccache"], check=True)


# -- what is up


def test_every_service_of_the_file_is_up_and_well(project: Project) -> None:
    assert set(project.engine.compose("config", "--services").split()) == {*PARTS, *ONCE}
    states = [
        (found["State"]["Status"], found["State"]["ExitCode"])
        for found in project.engine.inspect(*PARTS, *ONCE)
    ]
    assert states == [("running", 0)] * len(PARTS) + [("exited", 0)] * len(ONCE)
    assert "swingbot" in project.page("/")
    assert "ok" in project.page("/healthz")


@pytest.fixture(scope="module")
def containers(project: Project) -> dict[str, dict[str, Any]]:
    """What `podman inspect` says of each."""
    return dict(zip((*PARTS, *ONCE), project.engine.inspect(*PARTS, *ONCE), strict=True))


@pytest.mark.parametrize("part", [*PARTS, *ONCE])
def test_a_container_has_nothing_to_spare(containers: dict[str, dict[str, Any]], part: str) -> None:
    found = containers[part]
    host = found["HostConfig"]
    assert host["ReadonlyRootfs"] is True
    assert not found["EffectiveCaps"]
    assert not found["BoundingCaps"]
    assert host["Privileged"] is False
    assert not host["Devices"]
    assert "no-new-privileges" in host["SecurityOpt"]
    assert 0 < host["PidsLimit"] <= 4096
    assert 0 < host["Memory"] <= 4 << 30
    assert found["Config"]["User"].split(":")[0] not in ("", "0", "root")
    assert not [mount for mount in found["Mounts"] if Path(mount["Source"]).is_socket()]
    files = [mount["Destination"] for mount in found["Mounts"] if mount["Type"] == "bind"]
    assert all(
        place.startswith(
            ("/run/secrets/", "/srv/trees", "/etc/grafana/", "/var/cache/swingbot/ccache")
        )
        for place in files
    )


@pytest.mark.parametrize("part", PARTS)
def test_nobody_can_write_to_an_image_or_become_root(project: Project, part: str) -> None:
    said = project.engine.exec(
        part, "sh", "-c", "cat /proc/self/status; touch /etc/x 2>/dev/null && echo written; true"
    )
    assert "\nCapEff:\t0000000000000000\n" in said
    assert "\nCapBnd:\t0000000000000000\n" in said
    assert "\nNoNewPrivs:\t1\n" in said
    assert "\nUid:\t0\t" not in said
    assert "written" not in said


@pytest.mark.parametrize("worker", ["build-worker", "testbox-worker"])
def test_workers_reach_neither_the_database_nor_the_world(project: Project, worker: str) -> None:
    address = project.engine.inspect("postgres")[0]["NetworkSettings"]["Networks"][f"{NAME}_back"][
        "IPAddress"
    ]
    code = (
        "import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])),"
        " timeout=4); print('reached')"
    )

    def reached(*where: str) -> bool:
        return "reached" in project.engine.exec(worker, "python3", "-c", code, *where, check=False)

    assert reached("web", "8010")
    assert not reached(address, "5432")
    assert not reached("192.0.2.1", "80")
    assert "PASSWORD" not in project.engine.exec(worker, "env")


def test_walls_around_builds_stand_in_the_container(project: Project) -> None:
    assert "This host builds kernels of any trust level." in project.engine.exec(
        "build-worker", "swingbot-worker", "walls"
    )
    # podman's command line takes the filter that Docker takes from docker-compose.yml.
    profile = [
        f"--security-opt={option}"
        for option in (
            "no-new-privileges",
            "unmask=ALL",
            f"seccomp={ROOT}/docker/seccomp-walls.json",
        )
    ]
    walled = [
        "--rm",
        "--init",
        "--read-only",
        "--cap-drop=all",
        "--network=none",
        "--tmpfs=/tmp:mode=1777",
        "--tmpfs=/scratch:mode=1777,exec,size=512m",
        "--env=SWINGBOT_BUILD_SCRATCH=/scratch",
        "--env=SWINGBOT_BUILD_DISK_MB=512",
        "--memory=2g",
        "--pids-limit=4096",
        *profile,
    ]
    assert "This host builds kernels of any trust level." in project.engine.podman(
        "run", *walled, "swingbot-worker:local", "swingbot-worker", "walls"
    )


# -- what it does


def test_a_comparison_from_the_command_line_is_built_booted_and_shown(
    project: Project, trees: Path
) -> None:
    """The head is the base with a stranger's patch: both kernels are compiled in the builder's
    container, this one behind walls.
    """
    project.swingbot(
        "tree",
        "add",
        "demo",
        "/srv/trees/linux.git",
        "--branch",
        "base",
        "--base",
        "base",
        "--job",
        JOB,
    )
    number = project.compare("--boots", "1", patch=a_patch(trees, "cli"))
    project.see_done(number)
    assert project.outcomes(number, "build") == ["built", "built"]
    assert project.outcomes(number, "boot") == ["up", "up"]
    built = "outcome->'kernel_build'"
    assert project.rows(
        f"SELECT {built}->>'trust' FROM swingbot.attempt WHERE {built}->>'cached' = 'false' ORDER"
        " BY id"
    ) == ["trusted", "untrusted"]
    assert (
        project.engine.exec(
            "build-worker", "sh", "-c", "ls /var/cache/swingbot/kernels/*/bzImage"
        ).count("bzImage")
        == 2
    )
    assert METRIC in project.swingbot("show", f"c{number}")
    assert METRIC in project.page(f"/comparison/c{number}")


def test_a_comparison_by_http_needs_a_token_and_is_built_booted_and_shown(
    project: Project, trees: Path
) -> None:
    wish = {
        "tree": "demo",
        "base": "base",
        "head": "base",
        "job": JOB,
        "boots": 1,
        "patch": a_patch(trees, "http"),
    }
    assert project.post("/compare", wish)[0] == 401
    token = project.swingbot("token", "create", "Ada Example", "--role", "submitter").split()[0]
    status, said = project.post("/compare", wish, token)
    assert (status, said["new"]) == (201, True), said
    number = int(said["id"].removeprefix("c"))
    project.see_done(number)
    assert project.outcomes(number, "build")[-1] == "built"
    assert METRIC in project.page(f"/comparison/c{number}.json")


def test_the_dashboards_have_what_they_need_and_no_more(project: Project) -> None:
    """Provisioning files, variables, password, role and network.

    A real Grafana would draw what comes back.
    """
    status, shown = project.grafana("/api/provisioned")
    assert status == 200, shown
    assert len(shown["dashboards"]) == len(dashboards())
    assert shown["admin"] is True

    def ask(sql: str) -> tuple[list[str], list[Any]]:
        status, said = project.grafana("/api/query", sql)
        assert status == 200, said
        return said["columns"], said["rows"]

    now = datetime.now(UTC)
    counts = {
        where: len(rows)
        for dashboard in dashboards()
        for where, (_, _, rows) in answered(
            ask, dashboard, now - timedelta(days=1), now + timedelta(minutes=1)
        ).items()
    }
    assert len(counts) > 20
    assert sum(count > 0 for count in counts.values()) > 10, counts
    assert shown["receivers"] == [["email", "swingbot-reports@localhost"]]
    rules = yaml.safe_load((ROOT / "dashboards/provisioning/alerting/swingbot.yaml").read_text())[
        "groups"
    ][0]["rules"]
    assert [rule["uid"] for rule in rules] == shown["rules"]
    # Grafana puts no variables into annotations; dashboards/start wrote the address
    assert all(re.search(r": http://localhost:\d+\S*", text) for text in shown["summaries"])
    for rule in rules:
        ask(rule["data"][0]["model"]["rawSql"])
    assert (
        "read-only"
        in project.grafana("/api/query", "CREATE TABLE swingbot.mine (x int)")[1]["error"]
    )
    assert (
        "permission denied"
        in project.grafana("/api/query", "SELECT * FROM swingbot.access_token")[1]["error"]
    )


def test_the_mail_catcher_shows_what_the_service_sends(project: Project) -> None:
    """The mail is the one that says that a testbox was taken out of service,
    as the service does after failures in a row.
    """
    project.swingbot("testbox", "quarantine", "vm-icount", "--reason", f"{FAILED}a cable is loose")
    until("the operator's mail is in the mailbox", lambda: bool(_mails(project)), 300)
    assert "a cable is loose" in project.page(_mails(project)[0])
    project.swingbot("testbox", "resume", "vm-icount")


def _mails(project: Project) -> list[str]:
    """Addresses of the pages of all mails about the testbox."""
    return re.findall(
        r'<a href="(/mailbox/[^"]+)">\[swingbot\] testbox vm-icount is quarantined<',
        project.page("/mailbox"),
    )


# -- stopped, killed, down


def test_a_stop_in_the_middle_of_a_build_loses_nothing(project: Project, trees: Path) -> None:
    number = project.compare("--boots", "1", patch=a_patch(trees, "stop"))
    until("a build is under way", lambda: project.runs("build-worker", "make"), 600, pause=0.2)
    _stop_and_start(project)
    project.see_done(number)
    assert project.outcomes(number, "build")[-1] == "built"


def test_a_stop_in_the_middle_of_a_boot_loses_nothing(project: Project, trees: Path) -> None:
    number = project.compare("--boots", "4", patch=a_patch(trees, "cli"))
    until(
        "a boot is under way",
        lambda: project.runs("testbox-worker", "qemu-system-x86"),
        600,
        pause=0.2,
    )
    _stop_and_start(project)
    project.see_done(number)
    assert project.outcomes(number, "boot").count("up") == 8


def _stop_and_start(project: Project) -> None:
    """Each part ends by itself within its grace period: 137 would be the engine's SIGKILL."""
    project.engine.compose("stop", seconds=300)
    codes = {found["Name"]: found["State"]["ExitCode"] for found in project.engine.inspect(*PARTS)}
    assert 137 not in codes.values(), codes
    assert project.engine.podman("ps", "--quiet") == ""
    project.up()


def test_a_build_and_a_boot_whose_containers_are_killed_are_made_again(
    project: Project, trees: Path
) -> None:
    number = project.compare("--boots", "5", patch=a_patch(trees, "kill"))
    until("a build is under way", lambda: project.runs("build-worker", "make"), 600, pause=0.2)
    project.kill("build-worker")
    until(
        "a boot is under way",
        lambda: project.runs("testbox-worker", "qemu-system-x86"),
        900,
        pause=0.2,
    )
    project.kill("testbox-worker")
    project.see_done(number)
    assert project.outcomes(number, "build")[-1] == "built"
    assert project.outcomes(number, "boot").count("up") == 10


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_killed_is_back_and_well(project: Project, part: str) -> None:
    project.kill(part)
    project.see_well()


def test_down_and_up_lose_nothing(project: Project, trees: Path) -> None:
    kept = (
        "SELECT 'c' || id FROM swingbot.comparison WHERE status = 'done' UNION SELECT 'x' || id"
        " FROM swingbot.boot UNION SELECT 's' || run FROM swingbot.sample"
        " UNION SELECT 'k' || build_key FROM swingbot.kernel_build UNION SELECT 't' || id FROM"
        " swingbot.access_token"
    )
    before, secret = (
        set(project.rows(kept)),
        project.engine.exec("build-worker", "cat", "/keys/secret"),
    )
    assert {row[0] for row in before} == set("cxskt")
    began = time.monotonic()
    project.engine.compose("down", seconds=600)
    assert time.monotonic() - began < 300
    assert project.engine.podman("ps", "--all", "--quiet") == ""
    project.engine.forget_names()
    project.up()
    assert before <= set(project.rows(kept))
    assert project.engine.exec("build-worker", "cat", "/keys/secret") == secret
    done = min(int(row[1:]) for row in before if row.startswith("c"))
    assert METRIC in project.page(f"/comparison/c{done}")
    assert _mails(project)
    project.see_done(project.compare("--boots", "6", patch=a_patch(trees, "cli")))


# -- a controller on another host


def test_a_controller_on_another_host_joins_with_its_own_key_and_boots(
    project: Project, trees: Path, tmp_path: Path
) -> None:
    """By docs/compose.md: the second file, the testbox's file, its key and the CA. The other host
    reaches the master and the workers' exchange, over TLS, and nothing else of the lab.
    """
    testboxes, name = tmp_path / "testboxes", "vm-elsewhere"
    worker = f"testbox-{name}"
    testboxes.mkdir()
    shipped = (ROOT / "workers/testboxes/vm-icount.yaml").read_text()
    (testboxes / "vm-icount.yaml").write_text(shipped)
    (testboxes / f"{name}.yaml").write_text(shipped.replace(": vm-icount\n", f": {name}\n"))
    tmp_path.chmod(0o755)
    engine = project.engine
    with other_host(tmp_path / "other") as other:
        engine.files.append("docker-compose.elsewhere.yml")
        engine.set(
            {
                "SWINGBOT_LAB_NAME": LAB,
                "SWINGBOT_LAB_BIND": other.address,
                "SWINGBOT_TESTBOXES": str(testboxes),
            }
        )
        engine.compose("build", "exchange", seconds=3000)
        project.up()
        until("the exchange is well", lambda: engine.is_well("exchange"), WELL_SECONDS)

        secret = engine.compose("exec", "-T", "master", "swingbot", "worker", "secret", worker)
        other.ca.write_text(engine.compose("exec", "-T", "master", "cat", "/keys/master/ca.pem"))
        other.secret.write_text("0123456789abcdef" * 2 + "\n")  # somebody who has no key
        other.serve(worker, testboxes)
        until(
            "a wrong key is refused",
            lambda: "the master rejected the secret" in other.log(),
            WELL_SECONDS,
        )
        assert f"invalid login from user '{worker}'" in engine.logs("master")
        assert "worker is ready" not in other.log()
        other.secret.write_text(secret)
        until("its own key is taken", lambda: "worker is ready" in other.log(), WELL_SECONDS)

        words = ("/srv/trees/linux.git", "--branch", "base", "--base", "base", "--job", JOB)
        project.swingbot("tree", "add", "elsewhere", *words, "--testbox", name)
        measured = (
            "SELECT DISTINCT b.id FROM swingbot.boot b JOIN swingbot.run r ON r.boot = b.id JOIN"
            " swingbot.sample s ON s.run = r.id WHERE b.outcome = 'up' AND b.testbox ="
        )
        until(
            "the tree's base was booted there, and measured",
            lambda: bool(project.rows(f"{measured} '{name}'")),
            OVER_SECONDS,
            pause=5,
        )
        assert "'swingbot-worker', 'attempt'" in other.log(), "the boot was made there"

        assert other.status(f"https://{LAB}:8013/attempts/a1") == "401", "there is no token"
        assert other.status(f"https://{LAB}:8013/") == "404"
        through = f"https://{LAB}:8013/raw/odd/..%2f..%2fartifacts/x"
        assert other.status(through) == "404", "`web` would answer 400"
        assert other.status(f"http://{LAB}:8010/") == "000", "nothing listens"
