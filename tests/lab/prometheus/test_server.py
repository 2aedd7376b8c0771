"""A real Prometheus server scrapes a real web service, and the rules fire as faults happen.

The rules are those that are shipped; only the time for which a fault must last is shortened.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from swingbot.adapters.part_heartbeat import beats
from swingbot.app.tcp_ports import free_ports
from tests.buildbot.lab import eventually
from tests.served import Served, served

RULES = Path(__file__).parents[3] / "dashboards" / "prometheus" / "alerts.yml"
HUNG_SECONDS = "6"
QUARANTINED = "SwingbotTestboxQuarantined vm-icount"


@pytest.fixture
def site(db_url: str, tmp_path: Path) -> Iterator[Served]:
    with served(db_url, tmp_path, SWINGBOT_HEALTH_HUNG_SECONDS=HUNG_SECONDS) as site:
        yield site


@contextmanager
def prometheus(place: Path, target: int) -> Iterator[int]:
    """Run the server, which evaluates the rules every second; yields its port."""
    program = shutil.which("prometheus")
    assert program is not None, "install Debian's package prometheus; .ci/lab does"
    place.mkdir()
    (place / "alerts.yml").write_text(re.sub(r"for: \w+", "for: 1s", RULES.read_text()))
    (place / "prometheus.yml").write_text(
        "global: {scrape_interval: 5s, scrape_timeout: 5s, evaluation_interval: 1s}\n"
        "rule_files: [alerts.yml]\n"
        "scrape_configs:\n"
        f"  - {{job_name: swingbot, static_configs: [{{targets: ['127.0.0.1:{target}']}}]}}\n"
    )
    port = free_ports(19_400, 1)
    server = subprocess.Popen(
        [
            program,
            f"--config.file={place / 'prometheus.yml'}",
            f"--storage.tsdb.path={place / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=(place / "log").open("w"),
        stderr=subprocess.STDOUT,
    )
    try:
        yield port
    finally:
        server.terminate()
        server.wait(60)


def asked(port: int, path: str) -> list[dict[str, dict[str, str]]]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=30) as answer:
            data = json.load(answer)["data"]
    except OSError:
        return []
    return list(data.get("alerts", data.get("result", [])))


def firing(port: int) -> set[str]:
    """Names of the rules that fire, those about a testbox with its name."""
    alerts = (one for one in asked(port, "alerts") if str(one["state"]) == "firing")
    labels = (one["labels"] for one in alerts)
    return {" ".join(filter(None, (one["alertname"], one.get("testbox")))) for one in labels}


def scrapes(port: int) -> bool:
    return bool(asked(port, "query?query=up==1"))


def is_over(name: str, port: int) -> bool:
    """Whether a rule does not fire; it would not without data, either."""
    return name not in firing(port) and scrapes(port)


def test_the_rules_fire_as_faults_happen_and_end_with_them(site: Served, tmp_path: Path) -> None:
    environment = {**os.environ, "SWINGBOT_PATHS_STATE": str(site.settings.state)}
    environment |= {"SWINGBOT_WEB_PORT": str(site.port)}
    part = subprocess.Popen([sys.executable, "-m", "swingbot.app.cli", "smtpd"], env=environment)
    try:
        eventually(
            "the mail server has a heartbeat",
            lambda: any(beat.part == "smtpd" for beat in beats(site.settings.state)),
        )
        with prometheus(tmp_path / "prometheus", site.port) as port:
            eventually("it scrapes", lambda: scrapes(port), 120)
            assert "SwingbotPartHung" not in firing(port)
            os.kill(part.pid, signal.SIGSTOP)
            eventually("a hung part", lambda: "SwingbotPartHung" in firing(port), 120)
            os.kill(part.pid, signal.SIGCONT)
            eventually("it goes on", lambda: is_over("SwingbotPartHung", port), 120)
            quarantine(site, "quarantined")
            eventually("a quarantine", lambda: QUARANTINED in firing(port), 120)
            quarantine(site, "active")
            eventually("its end", lambda: is_over(QUARANTINED, port), 120)
            eventually("it is up", lambda: is_over("SwingbotDown", port), 120)
            site.server.should_exit = True
            eventually("no service", lambda: "SwingbotDown" in firing(port), 120)
    finally:
        part.kill()
        part.wait()


def quarantine(site: Served, state: str) -> None:
    site.conn.execute(
        sa.text("UPDATE testbox SET state = :state, reason = 'no power' WHERE name = 'vm-icount'"),
        {"state": state},
    )
    site.conn.commit()
