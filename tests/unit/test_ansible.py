"""The roles in ansible/, as far as they can be judged without a host; tests/lab/test_playbook.py
runs them for real."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

ROOT = Path(__file__).parents[2]
ANSIBLE = ROOT / "ansible"
ROLES = sorted(path.name for path in (ANSIBLE / "roles").iterdir())
# Secret variables: the operator sets them, in a vault or a file.
SECRET = re.compile(r"(secret|secrets|password|passwords)$")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def defaults_of(role: str) -> dict[str, Any]:
    return read(ANSIBLE / "roles" / role / "defaults/main.yml") or {}


def options_of(role: str) -> dict[str, Any]:
    options: dict[str, Any] = read(ANSIBLE / "roles" / role / "meta/argument_specs.yml")[
        "argument_specs"
    ]["main"]["options"]
    return options


def tasks(document: Any) -> list[dict[str, Any]]:
    """Every task in a file of tasks or plays, those in blocks too."""
    found = []
    for one in document or []:
        inner = [
            task
            for part in (
                "block",
                "rescue",
                "always",
                "tasks",
                "handlers",
                "pre_tasks",
                "post_tasks",
            )
            for task in tasks(one.get(part))
        ]
        found += inner or [one]
    return found


@pytest.mark.parametrize("role", ROLES)
def test_every_variable_of_a_role_is_described_with_its_default(role: str) -> None:
    defaults, options = defaults_of(role), options_of(role)
    assert set(defaults) <= set(options)
    for name, option in options.items():
        assert name.startswith(f"{role}__"), name
        assert option["description"].endswith("."), name
        computed = isinstance(defaults.get(name), str) and "{{" in defaults[name]
        if option.get("required"):
            assert name not in defaults, f"{name} is required, so that it needs no default"
        elif not computed and "default" in option:
            assert defaults[name] == option["default"], name
        else:
            assert name in defaults, name


@pytest.mark.parametrize("role", ROLES)
def test_every_default_stands_below_a_comment(role: str) -> None:
    lines = (ANSIBLE / "roles" / role / "defaults/main.yml").read_text().splitlines()
    above = ""
    for line in lines:
        if line.startswith("#"):
            above = line
        elif not line:
            above = ""
        elif re.match(r"[a-z_]+:", line):
            assert above, f"{role}: {line}"


@pytest.mark.parametrize("role", ROLES)
def test_no_secret_has_a_default(role: str) -> None:
    for name, option in options_of(role).items():
        if SECRET.search(name):
            assert option["required"], name
            assert option["no_log"], name
            assert name not in defaults_of(role)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_says_what_it_is(role: str) -> None:
    text = (ANSIBLE / "roles" / role / "README.md").read_text()
    assert text.startswith(f"# {role}\n")


def test_every_module_is_one_that_comes_with_ansible() -> None:
    words = {
        "name",
        "when",
        "vars",
        "register",
        "loop",
        "loop_control",
        "tags",
        "become",
        "delegate_to",
        "notify",
        "no_log",
        "environment",
        "diff",
    }
    words |= {
        "changed_when",
        "failed_when",
        "check_mode",
        "until",
        "retries",
        "delay",
        "ignore_errors",
        "listen",
        "hosts",
        "gather_facts",
        "roles",
    }
    files = [
        *ANSIBLE.glob("roles/*/tasks/*.yml"),
        *ANSIBLE.glob("roles/*/handlers/*.yml"),
        ANSIBLE / "site.yml",
    ]
    assert len(files) > 20
    for file in files:
        for task in tasks(read(file)):
            (*modules,) = set(task) - words
            assert all(module.startswith("ansible.builtin.") for module in modules), (
                f"{file.name}: {modules}"
            )


def test_what_is_included_runs_whichever_tag_led_to_it() -> None:
    """A task of an included file has its own tags alone: without `apply`, `--tags upgrade` would
    include it and run nothing of it."""
    for file in [*ANSIBLE.glob("roles/*/tasks/*.yml"), ANSIBLE / "site.yml"]:
        for task in tasks(read(file)):
            for module in ("ansible.builtin.include_tasks", "ansible.builtin.include_role"):
                if module in task:
                    assert task[module]["apply"] == {"tags": ["always"]}, f"{file}: {task['name']}"


def test_removing_has_to_be_asked_for() -> None:
    plays = read(ANSIBLE / "site.yml")
    removing = [play for play in plays if "remove" in play["name"].lower()]
    assert len(removing) == 4
    assert all({"never", "remove"} <= set(play["tags"]) for play in removing)
    assert not any("remove" in play["tags"] for play in plays if play not in removing)


def test_a_task_that_handles_a_secret_logs_nothing() -> None:
    """Words that end in a secret's name; templates of settings hold none, those of Grafana's
    variables and workers' files do."""
    for file in ANSIBLE.glob("roles/*/tasks/*.yml"):
        for task in tasks(read(file)):
            text = yaml.safe_dump(
                {key: value for key, value in task.items() if key not in ("vars", "when")}
            )
            if (
                re.search(r"\{\{ [a-z_]*(secret|passwords?)\b", text)
                and "include_role" not in text
                and "assert" not in text
            ):
                assert task.get("no_log"), f"{file}: {task['name']}"


@pytest.mark.parametrize(
    ("host", "mode"),
    [("127.0.0.1", "disable"), ("localhost", "disable"), ("db.example", "require")],
)
def test_grafana_gets_an_ssl_mode_that_its_driver_knows(host: str, mode: str) -> None:
    defaults = read(ANSIBLE / "roles/swingbot_grafana/defaults/main.yml")
    template = jinja2.Template(defaults["swingbot_grafana__database_sslmode"])
    assert template.render(swingbot_grafana__database_host=host) == mode


def test_grafana_gets_all_kinds_of_provisioning_files() -> None:
    role = ANSIBLE / "roles/swingbot_grafana/tasks"
    kinds = {place.name for place in (ANSIBLE.parent / "dashboards/provisioning").iterdir()}
    tasks = {task["name"]: task for task in read(role / "service.yml")}
    copied = tasks["Copy the dashboards and provisioning files"]["loop"]
    sources = {place.name for place in (ANSIBLE.parent / "dashboards").iterdir()}
    assert {"provisioning", "write-boards"} <= set(copied) <= sources
    (command,) = (
        task["ansible.builtin.command"]["argv"]
        for name, task in tasks.items()
        if name.startswith("Write the dashboards and provisioning files")
    )
    assert command[-1] == "/etc/grafana/provisioning"
    removed = (role / "remove.yml").read_text()
    assert all(f"provisioning/{kind}/*" in removed for kind in kinds)


def test_each_line_for_a_worker_s_unit_stands_on_its_own_line(tmp_path: Path) -> None:
    """Ansible itself writes the file: `join` in a block scalar gets no newline."""
    [write] = [
        task
        for task in tasks(read(ANSIBLE / "roles/swingbot_worker/tasks/service.yml"))
        if task["name"] == "Write the unit's drop-in file"
    ]
    written = tmp_path / "own.conf"
    write["ansible.builtin.copy"]["dest"] = str(written)
    set_vars = {"swingbot_worker__scratch_mb": 4, "swingbot_worker__unit_lines": ["Nice=5", "A=b"]}
    play = {"hosts": "localhost", "gather_facts": False, "vars": set_vars, "tasks": [write]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    ansible = Path(sys.executable).with_name("ansible-playbook")
    subprocess.run([ansible, tmp_path / "play.yml"], check=True, capture_output=True)
    assert written.read_text().splitlines()[1:] == [
        "[Service]",
        "TemporaryFileSystem=/run/swingbot-scratch:mode=1777,size=4M",
        "Nice=5",
        "A=b",
    ]
