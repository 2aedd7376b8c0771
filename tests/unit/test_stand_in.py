"""The program that stands in for Grafana refuses what Grafana refuses."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from tests.dashboards import ROOT

VARIABLES = {
    "SWINGBOT_GRAFANA_DB_HOST": "127.0.0.1:1",
    "SWINGBOT_GRAFANA_DB_USER": "swingbot_grafana",
    "SWINGBOT_GRAFANA_DB_NAME": "swingbot",
    "SWINGBOT_GRAFANA_DB_PASSWORD": "x",
    "SWINGBOT_GRAFANA_PROMETHEUS": "",
    "SWINGBOT_GRAFANA_WEB": "http://127.0.0.1:8010",
    "SWINGBOT_GRAFANA_ALERT_KIND": "email",
    "SWINGBOT_GRAFANA_ALERT_TO": "a@example.org",
}


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program, over a copy of our provisioning files."""
    shutil.copytree(ROOT / "dashboards/provisioning", tmp_path / "provisioning")
    monkeypatch.setenv("GF_PATHS_PROVISIONING", str(tmp_path / "provisioning"))
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    spec = importlib.util.spec_from_file_location(
        "stand_in", ROOT / "tests/lab/compose/grafana/stand_in.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("mode", ["prefer", "allow", "", "DISABLE"])
@pytest.mark.parametrize("uid", ["swingbot", "swingbot-alerts"])
def test_a_mode_that_the_driver_does_not_know_is_refused(
    stand_in: ModuleType, monkeypatch: pytest.MonkeyPatch, mode: str, uid: str
) -> None:
    """libpq, which the program uses itself, would take `prefer`."""
    monkeypatch.setenv("SWINGBOT_GRAFANA_DB_SSLMODE", mode)
    with pytest.raises((ValueError, KeyError, TypeError), match="unsupported sslmode"):
        stand_in.ask("SELECT 1", uid)


@pytest.mark.parametrize("mode", ["disable", "require", "verify-ca", "verify-full"])
def test_other_modes_are_tried(
    stand_in: ModuleType, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("SWINGBOT_GRAFANA_DB_SSLMODE", mode)
    with pytest.raises(stand_in.psycopg2.OperationalError):  # nothing listens on that port
        stand_in.ask("SELECT 1")


def test_a_variable_that_is_not_set_is_refused(
    stand_in: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SWINGBOT_GRAFANA_ALERT_TO")
    with pytest.raises(ValueError, match="has a variable that is not set"):
        stand_in.provisioned("alerting")


def test_no_annotation_names_a_variable_which_grafana_would_leave_as_it_is(
    stand_in: ModuleType, tmp_path: Path
) -> None:
    """Each link in a mail of Grafana once began with `$SWINGBOT_GRAFANA_WEB`."""
    assert stand_in.provisioned("alerting")["groups"]
    rules = tmp_path / "provisioning/alerting/swingbot.yaml"
    rules.write_text(rules.read_text().replace("http://127.0.0.1:8010", "$SWINGBOT_GRAFANA_WEB"))
    with pytest.raises(ValueError, match="variables that Grafana does not put in"):
        stand_in.provisioned("alerting")
