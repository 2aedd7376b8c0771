"""Alert rules fire when they should, by Prometheus' own tool; and it reads what /metrics says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import sqlalchemy as sa

from swingbot.app.settings import load
from tests.fakes.scrape import scraped
from tests.scenario import a_lab

RULES = Path(__file__).parents[3] / "dashboards" / "prometheus"


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    assert found is not None, "Debian's package prometheus has promtool; .ci/lab installs it"
    return found


def test_rules_and_example_are_what_prometheus_takes(promtool: str) -> None:
    subprocess.run([promtool, "check", "rules", "alerts.yml"], cwd=RULES, check=True)
    subprocess.run([promtool, "check", "config", "prometheus.example.yml"], cwd=RULES, check=True)


def test_rules_fire_when_they_should_and_not_else(promtool: str) -> None:
    subprocess.run([promtool, "test", "rules", "alerts_test.yml"], cwd=RULES, check=True)


def test_prometheus_reads_what_we_say(
    promtool: str, tmp_path: Path, engine: sa.Engine, conn: sa.Connection
) -> None:
    a_lab(conn)
    settings = load(environ={"SWINGBOT_PATHS_STATE": str(tmp_path)})
    _, body = scraped(settings, engine)
    subprocess.run([promtool, "check", "metrics"], input=body.encode(), check=True)
