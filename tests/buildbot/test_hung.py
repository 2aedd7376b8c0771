"""Parts under SIGSTOP, and a loop that is stuck in Python, are named by status, /healthz, /metrics
and `up`, and are restarted.

While `up` is stopped itself nothing is restarted, so that the names can be read without haste.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from swingbot.adapters.part_heartbeat import beats
from swingbot.app.keep.health_check import problems_here
from swingbot.app.settings import HealthSection, Settings
from tests.buildbot.lab import eventually
from tests.buildbot.stub_testbox import NAME
from tests.buildbot.stuck import SPIN, can_be_stuck
from tests.buildbot.test_up import Service

# Long enough for a machine with other work on it, short enough for a test.
HUNG, RESTART, STALLED = 12, 30, 5
WORKER, TESTBOX_WORKER = "worker-builder", f"worker-testbox-{NAME}"
COMMANDS = {
    "web": "swingbot.app.cli web",
    "loop": "swingbot.app.cli loop",
    "smtpd": "swingbot.app.cli smtpd",
    "buildbot-master": "twistd",
    WORKER: "serve builder",
    TESTBOX_WORKER: f"serve testbox-{NAME}",
}


@pytest.fixture
def service(short_root: Path) -> Iterator[Service]:
    root = Path(tempfile.mkdtemp(dir=short_root))
    root.chmod(0o755)
    service = Service(
        root,
        **can_be_stuck(root),
        SWINGBOT_HEALTH_STALLED_SECONDS=str(STALLED),
        SWINGBOT_HEALTH_HUNG_SECONDS=str(HUNG),
        SWINGBOT_HEALTH_RESTART_SECONDS=str(RESTART),
    )
    yield service
    print(service.said())
    service.stop()


def get(service: Service, path: str) -> tuple[int, str]:
    """Status and body; (0, reason) without an answer."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{service.port}{path}", timeout=60) as answer:
            return int(answer.status), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def health(service: Service) -> dict[str, Any]:
    return dict(json.loads(get(service, "/healthz")[1] or "{}"))


def named(service: Service) -> set[str]:
    """Parts that /healthz names."""
    return {one["part"] for one in health(service).get("hung", ())}


def limits(service: Service) -> Settings:
    """The settings of the service with the limits of this test."""
    health = HealthSection(hung_seconds=HUNG, restart_seconds=RESTART)
    return dataclasses.replace(service.settings, health=health)


def status(service: Service) -> tuple[int, str]:
    argv = [sys.executable, "-m", "swingbot.app.cli", "status"]
    env = {name: text for name, text in os.environ.items() if not name.startswith("SWINGBOT_")}
    env |= service.environment | {
        "SWINGBOT_PATHS_STATE": str(service.settings.state),
        "SWINGBOT_PATHS_WORKERS": str(service.root / "workers"),
    }
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def is_well(service: Service) -> bool:
    code, body = get(service, "/healthz")
    return code == 200 and json.loads(body)["status"] == "ok"


def all_beat(service: Service) -> bool:
    parts = {beat.part for beat in beats(service.settings.state)}
    return is_well(service) and parts >= {"up", "supervisord", "postgres", *COMMANDS}


def was_killed(service: Service, part: str) -> bool:
    return re.search(rf"^{part} \(process \d+\) .*is killed$", service.said(), re.M) is not None


def test_parts_that_hang_are_named_and_restarted(service: Service) -> None:
    up = service.up_and_healthy()
    pids = {part: service.pid(command) for part, command in COMMANDS.items()}
    assert 0 not in pids.values(), pids
    eventually("all parts have heartbeats", lambda: all_beat(service))

    os.kill(up.pid, signal.SIGSTOP)
    stopped = set(COMMANDS) - {"web"}
    for part in stopped:
        os.kill(pids[part], SPIN if part == "loop" else signal.SIGSTOP)
    eventually("/healthz names them", lambda: named(service) >= {"up", *stopped}, 120)
    assert named(service) == {"up", *stopped}
    assert health(service)["status"] == "degraded"
    metrics = get(service, "/metrics")[1]
    for part in stopped:
        assert f'swingbot_part_hung{{part="{part}"}} 1' in metrics
    assert 'swingbot_part_hung{part="web"} 0' in metrics
    os.kill(pids["web"], signal.SIGSTOP)
    eventually("status names web", lambda: "web has not" in str(problems_here(limits(service))))
    code, text = status(service)
    assert code == 0, "the command did its work"
    for part in pids:
        assert f"PROBLEM   {part} has not responded for" in text

    os.kill(up.pid, signal.SIGCONT)
    for part in pids:
        eventually(f"{part} is killed", functools.partial(was_killed, service, part), 120)
        assert f"{part} has not responded" in service.said()
    eventually("all work again", lambda: is_well(service) and not named(service), 180)
    for part, command in COMMANDS.items():
        assert service.pid(command) not in (0, pids[part])
    log = (service.settings.log / "loop.log").read_text()
    assert "Fatal Python error: Aborted" in log, "the log shows where it hung"
    assert "in spin" in log


def test_a_database_that_hangs_is_named_within_seconds_and_restarted(service: Service) -> None:
    up = service.up_and_healthy()
    eventually("all parts have heartbeats", lambda: all_beat(service))
    server = psutil.Process(service.pid("bin/postgres -D"))
    os.kill(up.pid, signal.SIGSTOP)
    for one in [server, *server.children(recursive=True)]:
        one.suspend()
    eventually("/healthz fails", lambda: get(service, "/healthz")[0] == 503, 20)
    code, body = get(service, "/healthz")
    assert code == 503
    assert "the database does not respond: no answer within 5 s" in json.loads(body)["reason"]
    assert "swingbot_database_up 0" in get(service, "/metrics")[1]
    code, body = get(service, "/status.json")
    assert code == 503
    assert "database" in body
    code, text = status(service)
    assert code == 1
    assert re.search(r"PROBLEM   the database postgresql.* does not respond: no answer", text)

    os.kill(up.pid, signal.SIGCONT)
    eventually("it is killed", lambda: was_killed(service, "postgres"), 120)
    eventually("all work again", lambda: is_well(service), 180)
    assert service.pid("bin/postgres -D") != server.pid


def test_a_supervisor_that_hangs_is_replaced(service: Service) -> None:
    service.up_and_healthy()
    eventually("all parts have heartbeats", lambda: all_beat(service))
    supervisor = service.pid("supervisord -c") or service.pid("supervisor.supervisord")
    os.kill(supervisor, signal.SIGSTOP)
    eventually("it is killed", lambda: was_killed(service, "supervisord"), 120)
    eventually("it was replaced", lambda: "the supervisor died" in service.said())
    eventually(
        "all work again",
        lambda: is_well(service) and service.pid("supervisor.supervisord") not in (0, supervisor),
        240,
    )
