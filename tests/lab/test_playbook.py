"""The playbook on three bare Debian servers: dry, for real, again, a kernel built on one and booted
by another, upgraded with work queued, removed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from swingbot_worker.site import from_environment
from tests.kernels import kernel_repository
from tests.lab.bare_host import BareHost, HostError, debian, network
from tests.lab.debs import debs
from tests.lab.playbook import (
    Inventory,
    a_package,
    changed,
    checkout,
    defaults,
    from_example,
    release_commit,
    wheelhouse,
    without_ssh,
    words,
)

pytestmark = pytest.mark.timeout(7200)
if os.geteuid() != 0 or any(
    shutil.which(name) is None for name in ("mmdebstrap", "unshare", "nsenter", "ip")
):
    pytest.skip(
        "servers in namespaces of their own need root and mmdebstrap", allow_module_level=True
    )

MASTER, BUILDER, DRIVER = "lab.example.org", "build.example.org", "drive.example.org"
VAULT = {
    "vault_swingbot_builder_secret": "b" * 32,
    "vault_swingbot_rack1_secret": "c" * 32,
    "vault_swingbot_database_owner": "owner'pass\"word",
    "vault_swingbot_database_service": "service @:/%pass",
    "vault_swingbot_database_grafana": "grafana-pass-word",
}
WORKERS = {"builder", "testbox-vm-icount"}
JOB = "vm-hackbench.yaml"
GRAFANA_UNIT = (
    "[Service]\nExecStart=/bin/sh -c 'env >/run/grafana-saw;"
    " exec sleep infinity'\n[Install]\nWantedBy=multi-user.target\n"
)
GRAFANA = {
    "lib/systemd/system/grafana-server.service": GRAFANA_UNIT,
    "etc/grafana/provisioning/dashboards/sample.yaml": "",
    "etc/grafana/provisioning/datasources/sample.yaml": "",
}
CA = "/etc/swingbot-worker/exchange-ca.pem"


@dataclass(frozen=True, slots=True)
class Lab:
    """Three servers on one loopback, and the inventory that says what each is."""

    hosts: dict[str, BareHost]
    source: Path  # a checkout whose commits are installed
    inventory: Inventory

    def ours(self) -> dict[str, list[str]]:
        """swingbot's files, users and processes on each server, whatever created them."""
        look = (
            (
                "find /etc /opt /usr/local /var/lib /var/cache /run /home /root -name"
                " '*swingbot*' -not"
                " -path '/root/.ansible/*'"
            ),
            "grep -o '^swingbot[^:]*' /etc/passwd /etc/group || true",
            "pgrep -fl '[s]wingbot' || true",
        )
        found = {
            name: [line for command in look for line in host.run(command).splitlines()]
            for name, host in self.hosts.items()
        }
        return {name: lines for name, lines in found.items() if lines}

    def swingbot(self, *line: str, seconds: float = 600) -> str:
        """A command of the operator, typed on the controller as docs/ansible.md says."""
        return self.hosts[MASTER].run(f"runuser -u swingbot -- swingbot {' '.join(line)}", seconds)

    def sql(self, query: str) -> list[str]:
        return (
            self.hosts[MASTER].run(f'runuser -u postgres -- psql -tAc "{query}" swingbot').split()
        )

    def page(self, path: str) -> str:
        """By https through nginx, from another server."""
        trusting = "ssl.create_default_context(cafile=sys.argv[2])"
        get = (
            "import ssl, sys, urllib.request as u;"
            f" print(u.urlopen(sys.argv[1], context={trusting}, timeout=60).read().decode())"
        )
        return self.hosts[DRIVER].run(f"python3 -c '{get}' https://{MASTER}{path} {CA}")

    def connected(self) -> set[str]:
        """Workers that the master has a connection of."""
        get = (
            "import urllib.request as u;"
            ' print(u.urlopen("http://127.0.0.1:8011/api/v2/workers",'
            " timeout=20).read().decode())"
        )
        answer = json.loads(self.hosts[MASTER].run(f"python3 -c '{get}'"))
        return {one["name"] for one in answer["workers"] if one["connected_to"]}

    def until_all_is_well(self, seconds: float = 300.0) -> None:
        self.until(
            "pages answer and workers are connected",
            lambda: "swingbot" in self.page("/") and self.connected() >= WORKERS,
            seconds,
        )

    def until(self, what: str, true: Callable[[], bool], seconds: float) -> None:
        give_up, why = time.monotonic() + seconds, ""
        while time.monotonic() < give_up:
            try:
                if true():
                    return
            except HostError as error:
                why = str(error)
            time.sleep(1)
        said = "\n".join(
            f"{name}:\n{host.run('journalctl -n 40 --no-pager')}"
            for name, host in self.hosts.items()
        )
        raise AssertionError(f"not within {seconds:.0f} s: {what}. {why}\n{said}")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    by_roles = [
        defaults(f"swingbot_{role}")[f"swingbot_{role}__packages"]
        for role in ("build_worker", "testbox_worker")
    ]
    needed = words(
        *by_roles,
        [
            "ca-certificates",
            "git",
            "python3-venv",
            "python3-apt",
            "postgresql",
            "nginx-light",
            "qemu-system-x86",
            "netcat-openbsd",
        ],
    )
    offered, wheels, trees = debs(needed, debian()), wheelhouse(), _trees(folder)
    files = {
        "etc/hosts": f"127.0.0.1 localhost {MASTER} {BUILDER} {DRIVER}\n",
        "etc/apt/sources.list": "deb [trusted=yes] file:/srv/debian ./\n",
    }
    hosts: dict[str, BareHost] = {}
    with network():
        try:
            for name in (MASTER, BUILDER, DRIVER):
                hosts[name] = BareHost.start(
                    folder / name,
                    name,
                    files=files,
                    shared={offered: "srv/debian", trees: "srv/trees"},
                )
            source = checkout(folder / "source")
            yield Lab(hosts, source, _inventory(folder, hosts, source, wheels))
        finally:
            for host in hosts.values():
                host.stop()


def _trees(folder: Path) -> Path:
    """A directory of kernel repositories, as an operator has one, and a patch of somebody's."""
    repo, _ = kernel_repository(from_environment())
    trees = folder / "trees"
    trees.mkdir()
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
            trees / "linux.git",
        ],
        check=True,
    )
    work = folder / "work"
    git = [
        "git",
        "-C",
        str(work),
        "-c",
        "user.name=Demo Author",
        "-c",
        "user.email=author@demo.invalid",
    ]
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", f"file://{trees}/linux.git", work], check=True
    )
    (work / "init/version.c").write_text(
        (work / "init/version.c").read_text() + '\nconst char swingbot_was_here[] = "yes";\n'
    )
    subprocess.run([*git, "commit", "--quiet", "--all", "--message", "init: say so"], check=True)
    (trees / "my.patch").write_text(
        subprocess.run(
            [*git, "format-patch", "-1", "--stdout"], check=True, capture_output=True, text=True
        ).stdout
    )
    shutil.rmtree(work)
    return trees


def _inventory(folder: Path, hosts: dict[str, BareHost], source: Path, wheels: Path) -> Inventory:
    """The example, with a virtual testbox for the bare-metal one."""
    made = from_example(folder / "inventory", VAULT, MASTER)
    groups = yaml.safe_load((made.folder / "hosts.yml").read_text())
    del groups["swingbot"]["children"]["swingbot_testboxes"]
    made.write("hosts.yml", groups)
    shipped = {"swingbot_install__shipped_testboxes": ["vm-icount"]}
    for name, host in hosts.items():
        by_host: dict[str, dict[str, Any]] = {
            MASTER: {
                "swingbot_controller__worker_secrets": {
                    "builder": "{{ vault_swingbot_builder_secret }}",
                    "testbox-vm-icount": "{{ vault_swingbot_rack1_secret }}",
                },
                "swingbot_controller__settings": {
                    "watch": {"testbox": "vm-icount"},
                    "mail": {"contact": 'someone "else"'},
                    "testboxes": {"idle_aa_minutes": 0},
                    "git": {"paths": "/srv/trees/*"},
                },
                "swingbot_grafana__deb": str(a_package(folder, "grafana", GRAFANA)),
            },
            BUILDER: {"swingbot_worker__unit_lines": ["Nice=5"]},
            DRIVER: {
                "swingbot_testbox_worker__testboxes": ["vm-icount"],
                "swingbot_testbox_worker__secrets": {
                    "vm-icount": "{{ vault_swingbot_rack1_secret }}"
                },
                "swingbot_testbox_worker__qemu": True,
                "swingbot_testbox_worker__more_packages": ["netcat-openbsd"],
            },
        }
        about = {
            "swingbot_install__source": str(source),
            "swingbot_install__wheelhouse": str(wheels),
        }
        made.write(f"host_vars/{name}.yml", without_ssh(host.ssh) | about | shipped | by_host[name])
    return made


# -- in execution order


def test_a_dry_run_says_what_it_would_do_to_bare_servers_and_does_nothing(lab: Lab) -> None:
    assert lab.ours() == {}
    assert changed(lab.inventory.play("--check")) > 0
    assert lab.ours() == {}


def test_the_first_run_makes_a_lab_whose_workers_come_by_tls(lab: Lab) -> None:
    assert changed(lab.inventory.play()) > 0
    lab.until_all_is_well()
    with pytest.raises(HostError, match="(?i)certificate"):
        lab.hosts[DRIVER].run(
            f"python3 -c 'import urllib.request as u; u.urlopen(\"https://{MASTER}/\")'"
        )
    for host in (BUILDER, DRIVER):
        assert (
            lab.hosts[host].run(
                "systemctl list-units 'swingbot*' --state=failed --plain --no-legend"
            )
            == ""
        )


def test_the_second_run_changes_nothing(lab: Lab) -> None:
    assert changed(lab.inventory.play()) == 0
    assert changed(lab.inventory.play("--check")) == 0


def test_the_service_is_as_the_inventory_says(lab: Lab) -> None:
    settings = json.loads(
        lab.hosts[MASTER].run(
            "SWINGBOT_CONFIG=/etc/swingbot/swingbot.toml swingbot settings --json"
        )
    )
    assert 'someone "else"' in json.dumps(settings, ensure_ascii=False).replace('\\"', '"')
    assert "Nice=5" in lab.hosts[BUILDER].run("systemctl cat swingbot-worker@builder.service")


def test_grafana_reads_views_and_no_more(lab: Lab) -> None:
    host, password = lab.hosts[MASTER], VAULT["vault_swingbot_database_grafana"]
    assert f"SWINGBOT_GRAFANA_DB_PASSWORD={password}\n" in host.run("cat /run/grafana-saw")
    reader = f"PGPASSWORD={password} psql -h 127.0.0.1 -U swingbot_grafana -d swingbot -tAc"
    assert host.run(f"{reader} 'SELECT count(*) >= 0 FROM swingbot.v_boots'").strip() == "t"
    with pytest.raises(HostError, match="permission denied"):
        host.run(f"{reader} 'SELECT * FROM swingbot.testbox'")


def test_nobody_else_reads_secrets(lab: Lab) -> None:
    secret = {
        MASTER: (
            "swingbot/swingbot.toml",
            "swingbot/database-owner",
            "swingbot/worker-secrets/builder",
            "swingbot/tls.key",
            "grafana/swingbot.env",
        ),
        BUILDER: ("swingbot-worker/builder.secret",),
        DRIVER: ("swingbot-worker/testbox-vm-icount.secret",),
    }
    for host, names in secret.items():
        for name in names:
            lab.hosts[host].run(f"test -s /etc/{name}")
            with pytest.raises(HostError, match="Permission denied"):
                lab.hosts[host].run(f"runuser -u nobody -- cat /etc/{name}")
    with pytest.raises(HostError, match="Permission denied"):
        lab.hosts[MASTER].run("runuser -u swingbot -- cat /etc/swingbot/database-owner")


def test_a_testbox_is_found_to_have_all_that_it_needs(lab: Lab) -> None:
    said = lab.hosts[DRIVER].run(
        "runuser -u swingbot-worker -- env HOME=/var/lib/swingbot-worker"
        " SWINGBOT_PATHS_CACHE=/var/cache/swingbot-worker "
        "/opt/swingbot/worker/current/.venv/bin/swingbot-worker check vm-icount",
        600,
    )
    assert " NO " not in said


def _compare(lab: Lab, *more: str) -> int:
    said = lab.swingbot(
        "compare",
        "base",
        "base",
        "--patch",
        "/srv/trees/my.patch",
        "--trusted",
        "--tree",
        "demo",
        "--job",
        JOB,
        *more,
        seconds=900,
    )
    match = re.search(r"\bc(\d+) is ", said)
    assert match is not None, said
    return int(match[1])


def _status(lab: Lab, comparison: int) -> str:
    return lab.sql(f"SELECT status FROM swingbot.comparison WHERE id = {comparison}")[0]


def _wait(lab: Lab, comparison: int) -> None:
    lab.until(
        f"c{comparison} is over",
        lambda: _status(lab, comparison) not in ("waiting", "running"),
        3600,
    )
    assert _status(lab, comparison) == "done"


def test_a_kernel_is_built_on_one_server_and_booted_by_another(lab: Lab) -> None:
    """What the builder has never seen is fetched from the mirror, built behind walls,
    brought to the controller and from there to the testbox.
    """
    # this host's, so that a kernel takes minutes
    warm = lab.hosts[BUILDER].folder / "root/var/cache/swingbot-worker/ccache"
    subprocess.run(["cp", "-a", from_environment().cache / "ccache", warm], check=True)
    lab.hosts[BUILDER].run("chown -R swingbot-worker: /var/cache/swingbot-worker")
    lab.swingbot(
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
        seconds=900,
    )
    number = _compare(lab, "--boots", "1")
    _wait(lab, number)
    assert "hackbench.throughput" in lab.page(f"/comparison/c{number}")


def test_a_part_that_dies_comes_back(lab: Lab) -> None:
    for host, units in {
        MASTER: ("loop", "web", "master", "git"),
        BUILDER: ("worker@builder",),
        DRIVER: ("worker@testbox-vm-icount",),
    }.items():
        for unit in units:
            lab.hosts[host].run(
                f"systemctl kill --kill-whom=main --signal=KILL swingbot-{unit}.service"
            )
    lab.until_all_is_well()
    lab.hosts[MASTER].run(
        "systemctl stop swingbot.target && ! systemctl is-active swingbot-web.service && systemctl"
        " start swingbot.target"
    )
    lab.until_all_is_well()


def test_an_upgrade_with_work_queued_loses_nothing(lab: Lab) -> None:
    master, builder = lab.hosts[MASTER], lab.hosts[BUILDER]
    kept = "SELECT 'x' || id FROM swingbot.boot UNION SELECT 's' || run FROM swingbot.sample"
    old, before = master.run("readlink /opt/swingbot/master/current").strip(), set(lab.sql(kept))
    new = release_commit(lab.source)
    assert changed(lab.inventory.play()) == 0, "an ordinary run leaves the release in use alone"
    number = _compare(lab, "--boots", "30")
    lab.until(
        "a boot is under way", lambda: "qemu-system" in lab.hosts[DRIVER].run("ps -eo comm"), 600
    )

    lab.inventory.play("--tags", "upgrade")
    lab.until_all_is_well()
    assert _status(lab, number) == "running", "there was work all the time"
    for host, part in ((master, "master"), (builder, "worker"), (lab.hosts[DRIVER], "worker")):
        assert host.run(f"readlink /opt/swingbot/{part}/current").strip() == f"releases/{new}"
        assert host.run(f"ls /opt/swingbot/{part}/releases").split() == sorted(
            [old.removeprefix("releases/"), new]
        )
    _wait(lab, number)
    assert before < set(lab.sql(kept))
    assert lab.sql(
        "SELECT count(*) FROM swingbot.attempt WHERE state = 'dead' OR outcome->>'status' = 'infra'"
    ) == ["0"]
    assert changed(lab.inventory.play()) == 0


def test_what_is_removed_leaves_the_results_and_a_purge_leaves_nothing(lab: Lab) -> None:
    boots = lab.sql("SELECT count(*) FROM swingbot.boot")
    lab.inventory.play("--tags", "remove")
    assert lab.sql("SELECT count(*) FROM swingbot.boot") == boots
    for host in lab.hosts.values():
        assert (
            host.run(
                "systemctl list-units 'swingbot*' --plain --no-legend;"
                " ls /opt /etc | grep swingbot || true"
            )
            == ""
        )
    lab.inventory.play("--tags", "remove,purge")
    assert lab.ours() == {}
    assert "swingbot" not in lab.hosts[MASTER].run(
        "runuser -u postgres -- psql -tAc 'SELECT datname FROM pg_database UNION ALL SELECT rolname"
        " FROM pg_roles'"
    )
