"""The playbook as Ansible reads it, without a host that it could change; and the night that it
begins, by the controller's command on this one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from tests.contract.played import Testbox
from tests.contract.test_ipmi import simulated
from tests.database import db_url, engine, pg, template
from tests.db.racks import compared, environment, measured_brain, rows
from tests.fakes.brain import Brain
from tests.lab.playbook import changed, recap

__all__ = ["db_url", "engine", "pg", "template"]
ANSIBLE = Path(__file__).parents[2] / "ansible"


def playbook(
    *words: str, inventory: Path, cwd: Path = ANSIBLE, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        **(variables or {}),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    argv = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        "-i",
        str(inventory),
        "site.yml",
        *words,
    ]
    return subprocess.run(
        argv,
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )


def test_the_playbook_and_the_example_inventory_are_read_without_complaint() -> None:
    done = playbook("--syntax-check", inventory=ANSIBLE / "inventory.example/hosts.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr


GIVEN: dict[str, Any] = {
    "swingbot_controller__database_passwords": {
        "owner": "a" * 12,
        "service": "b" * 12,
        "grafana": "c" * 12,
    },
    "swingbot_controller__worker_secrets": {"builder": "d" * 16},
    "swingbot_controller__public_url": "http://127.0.0.1:8010",
    "swingbot_grafana__database_password": "c" * 12,
    "swingbot_build_worker__secret": "d" * 16,
    "swingbot_worker__master": "127.0.0.1:8012",
    "swingbot_testbox_worker__testboxes": ["rack1"],
    "swingbot_testbox_worker__secrets": {"rack1": "e" * 16},
    "swingbot_testbox__ssh_public_key": "ssh-ed25519 AAAA swingbot",
}
# What is wrong on a host, and what is said of it; one host each.
WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"swingbot_controller__database_passwords": {"owner": "a" * 12, "service": "b" * 12}},
        "has no password `grafana` of at least 12 characters",
    ),
    (
        {"swingbot_controller__worker_secrets": {"builder": "short"}},
        "must have a secret of at least 16 characters for each worker",
    ),
    (
        {"swingbot_controller__public_url": None},
        "set swingbot_controller__public_url to the address of the pages",
    ),
    (
        {"swingbot_controller__worker_host": "0.0.0.0"},
        "must name PEM files, because workers are elsewhere",
    ),
    (
        {"swingbot_grafana__database_password": None},
        "swingbot_grafana__database_password is missing",
    ),
    (
        {"swingbot_grafana__database_sslmode": "prefer"},
        "swingbot_grafana__database_sslmode must be disable, require, verify-ca or verify-full",
    ),
    (
        {"swingbot_build_worker__secret": None},
        "the secret of worker builder is missing or shorter than 16 characters",
    ),
    (
        {"swingbot_worker__master": "lab.example.org:8012"},
        "swingbot_worker__ca_file must name the PEM file of the CA",
    ),
    (
        {"swingbot_testbox_worker__secrets": {"rack2": "e" * 16}},
        "the secret of worker testbox-rack1 is missing",
    ),
    ({"swingbot_testbox_worker__testboxes": ["rack2"]}, "testbox rack2 has no file"),
    (
        {"swingbot_testbox__ssh_public_key": "AAAA"},
        "must be the public key of the host that drives this testbox",
    ),
    (
        {"swingbot_testbox__screen_hours": -8},
        "swingbot_testbox__screen_hours must be the hours of a night",
    ),
]


def test_what_is_missing_is_said_of_each_host_before_any_is_touched(tmp_path: Path) -> None:
    groups = (
        "swingbot_controller",
        "swingbot_grafana",
        "swingbot_build_workers",
        "swingbot_testbox_workers",
        "swingbot_testboxes",
    )
    hosts = {
        f"host{number}": {
            name: value for name, value in {**GIVEN, **changed}.items() if value is not None
        }
        for number, (changed, _) in enumerate(WRONG)
    }
    testbox = tmp_path / "overlay/workers/testboxes/rack1.yaml"
    testbox.parent.mkdir(parents=True)
    testbox.write_text("tuning: quiet\n")
    reach = {
        "ansible_connection": "ssh",
        "ansible_ssh_executable": "/bin/false",
        "swingbot_testbox__file": str(testbox),
    }
    table = {
        "swingbot": {
            "hosts": hosts,
            "vars": reach,
            "children": {group: {"hosts": dict.fromkeys(hosts)} for group in groups},
        }
    }
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(table))
    done = playbook(inventory=tmp_path / "hosts.yml")
    assert done.returncode != 0
    assert "UNREACHABLE" not in done.stdout
    for host, (_, said) in zip(hosts, WRONG, strict=True):
        failures = [
            line
            for line in done.stdout.splitlines()
            if line.startswith((f"failed: [{host}]", f"fatal: [{host}]"))
        ]
        assert any(said in line for line in failures), failures
    assert not any(secret in done.stdout for secret in ("a" * 12, "d" * 16, "e" * 16)), (
        "the error about a missing secret must not disclose the others"
    )


# -- the check of testboxes


@pytest.mark.skipif(os.geteuid() != 0, reason="runuser needs root")
def test_the_playbook_stops_at_a_testbox_that_cannot_work(tmp_path: Path) -> None:
    """The worker's host is this one; the testbox is played, and its BMC is that of openipmi."""
    release = tmp_path / "opt/worker/current"
    (release / ".venv").mkdir(parents=True)
    (release / ".venv/bin").symlink_to(Path(sys.executable).parent)
    testbox = Testbox(tmp_path / "box", "up")
    driving = {key: one for key, one in GIVEN.items() if "worker__" in key} | {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "ansible_become": False,
        "swingbot_install__prefix": str(tmp_path / "opt"),
        "swingbot_install__shipped_testboxes": ["played"],
        "swingbot_testbox_worker__testboxes": ["played"],
        "swingbot_testbox_worker__secrets": {"played": "e" * 16},
        "swingbot_worker__user": "root",
        "swingbot_worker__state": str(tmp_path),
        "swingbot_worker__cache": str(tmp_path / "cache"),
        "swingbot_worker__environment": {
            "SWINGBOT_PATHS_WORKERS": str(testbox.folder / "workers"),
            "PATH": f"{testbox.folder}/bin:{os.environ['PATH']}",
        },
    }
    inventory = tmp_path / "hosts.yml"
    children = {"swingbot_testbox_workers": {"hosts": {"driver": driving}}}
    inventory.write_text(yaml.safe_dump({"swingbot": {"children": children}}))

    def play(*words: str) -> tuple[int, str]:
        done = playbook("--tags", "testbox_check", *words, inventory=inventory)
        return done.returncode, done.stdout + done.stderr

    status, said = play()
    assert status == 0 and changed(recap(said)) == 0, said

    testbox.world["space_kb"], testbox.world["lockdown"] = "1000", "integrity"
    with simulated(tmp_path / "bmc", 1) as reached:
        wrong = tmp_path / "wrong"
        wrong.write_text("wrong")
        power = [*reached.words[:-1], str(wrong), "chassis", "power", "status"]
        testbox.describe(power={"cycle": ["true"], "status": power})
        status, said = play()
        assert status == 2, said
        for sentence in ("Unable to establish IPMI", "locked down", "MiB"):
            assert sentence in said
        assert play("--check")[0] == 0


# -- the night of a new testbox

NIGHTS = "SELECT id, status FROM comparison WHERE purpose = 'screen'"


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[Brain]:
    with measured_brain(tmp_path, db_url, engine) as made:
        yield made


@pytest.mark.skipif(os.geteuid() != 0, reason="runuser needs root")
def test_the_playbook_begins_one_night_on_a_new_testbox(
    tmp_path: Path, db_url: str, brain: Brain
) -> None:
    """The controller is this host, whose `swingbot` serves a database of the test."""
    folder, name = tmp_path / "inventory", "rack7"
    folder.mkdir()
    testbox = {
        "swingbot_testbox__file": str(tmp_path / "workers/testboxes/rack7.yaml"),
        "swingbot_testbox__ssh_public_key": GIVEN["swingbot_testbox__ssh_public_key"],
        "swingbot_testbox__screen_hours": 8,
        "ansible_ssh_executable": "/bin/false",  # not touched
    }
    controller = {key: one for key, one in GIVEN.items() if "_controller__" in key} | {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "ansible_become": False,
        "swingbot_controller__user": "root",
    }
    children = {
        "swingbot_controller": {"hosts": {"lab": controller}},
        "swingbot_testboxes": {"hosts": {name: testbox}},
    }
    (folder / "hosts.yml").write_text(yaml.safe_dump({"swingbot": {"children": children}}))

    def play(*words: str) -> tuple[int, str]:
        """How much it changed, and what it printed."""
        done = playbook(
            *("--tags", "screen", *words),
            inventory=folder / "hosts.yml",
            variables=environment(tmp_path, db_url),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return changed(recap(done.stdout)), done.stdout

    def nights() -> list[str]:
        return [one["status"] for one in rows(brain, NIGHTS)]

    did, said = play()
    assert did == 0 and "No kernel is known for testbox rack7" in said

    compared(brain, name)
    did, said = play("--check")
    assert did == 1 and "boots of" in said and nights() == []
    did, said = play()
    assert did == 1 and "is queued" in said and nights() == ["waiting"]
    for words in ((), ("--check",)):
        assert play(*words)[0] == 0
    # A night that somebody cancelled is not begun again.
    number = rows(brain, NIGHTS)[0]["id"]
    swingbot = [str(Path(sys.executable).with_name("swingbot")), "cancel", f"c{number}"]
    subprocess.run(swingbot, env={**os.environ, **environment(tmp_path, db_url)}, check=True)
    assert play()[0] == 0 and nights() == ["cancelled"]
