"""The table `ssh` of a testbox file: strict parsing, errors with line and remedy, and the shipped
examples unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot_jobs.resources import root
from swingbot_jobs.testbox.definition import QemuDriver
from swingbot_jobs.testbox.file import load, load_all, load_file
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_jobs.testbox.table import TestboxError

EXAMPLES = root() / "workers" / "testboxes" / "examples"
TESTBOX = """\
name: box
tbox_group: g
driver: ssh
model: iron
nr_cpu: 4
memory_mb: 4000
ssh:
  host: box.example
  key: /k/box
  known_hosts: /k/known
  enter: kexec
  console: {command: [console, box]}
  power: {cycle: [cycle, box]}
"""
REBOOT = "enter: reboot\n  reboot_command: [once, '{kernel}', '{initrd}', '{cmdline}']"


def driver(text: str) -> SshDriver:
    read = load(text, "box.yaml").driver
    assert isinstance(read, SshDriver)
    return read


def test_a_testbox_file_says_how_a_testbox_is_driven() -> None:
    read = driver(TESTBOX)
    assert (read.port, read.user, read.enter, read.results, read.workspace) == (
        22,
        "root",
        "kexec",
        "console",
        "/run/swingbot",
    )
    assert read.console is not None and read.console.command == ("console", "box")
    assert read.power is not None and read.power.cycle == ("cycle", "box")


def test_the_reboot_command_runs_on_the_testbox_or_its_controller() -> None:
    text = TESTBOX.replace("enter: kexec", REBOOT)
    where = {
        word: driver(text.replace("console:", f"reboot_where: {word}\n  console:", 1)).reboot_where
        for word in ("testbox", "controller")
    }
    assert where == {"testbox": "testbox", "controller": "controller"}
    assert driver(text).reboot_where == "testbox"


def test_without_a_console_results_leave_by_the_network() -> None:
    assert (
        driver(TESTBOX.replace("console: {command: [console, box]}", "console: none")).results
        == "network"
    )


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: str(path.stem))
def test_each_example_is_a_testbox_file_as_it_stands(path: Path) -> None:
    kind = QemuDriver if path.stem.startswith("vm-") else SshDriver
    assert isinstance(load_file(path).driver, kind)


def test_examples_are_no_testboxes() -> None:
    shipped = load_all(EXAMPLES.parent)
    assert not {path.stem for path in EXAMPLES.glob("*.yaml")} & set(shipped)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (TESTBOX.replace("  enter: kexec\n", ""), 7, "ssh.enter: is missing"),
        (
            TESTBOX.replace("enter: kexec", "enter: magic"),
            11,
            "'magic' is not one of kexec",
        ),
        (TESTBOX.replace("enter: kexec", "enter: reboot"), 11, "needs reboot_command"),
        (TESTBOX.replace("enter: kexec", REBOOT.replace(", '{initrd}'", "")), 12, "lacks {initrd}"),
        (
            TESTBOX.replace("host: box.example", "host: -oProxyCommand=x"),
            8,
            "ssh.host: '-o",
        ),
        (
            TESTBOX.replace("host: box.example", "host: box.example\n  port: 70000"),
            9,
            "at most 65535",
        ),
        (
            TESTBOX.replace("host: box.example", "host: box.example\n  user: -l"),
            9,
            "user: '-l' is not a user name",
        ),
        (TESTBOX.replace("/k/box", "k/box"), 9, "is not an absolute path"),
        (TESTBOX.replace("/k/box", "/k/$(id)"), 9, "is not an absolute path"),
        (
            TESTBOX.replace("{command: [console, box]}", "{}"),
            12,
            "must be none, or have one of command",
        ),
        (
            TESTBOX.replace("{command: [console, box]}", "{command: console box}"),
            12,
            "command: 'console box' is not a list",
        ),
        (
            TESTBOX.replace("{command: [console, box]}", "{device: /dev/ttyS0, command: [a]}"),
            12,
            "must be none, or have one of command",
        ),
        (
            TESTBOX.replace("{command: [console, box]}", "none\n  results: console"),
            13,
            "console is none",
        ),
        (TESTBOX.replace("{cycle: [cycle, box]}", "{on: [a]}"), 13, "must be none, or have cycle"),
        (TESTBOX.replace("{cycle: [cycle, box]}", "{cycle: [a], on_fire: [b]}"), 13, "on_fire"),
        (TESTBOX + "  network: somehow\n", 14, "network: 'somehow' is not a mapping"),
        (TESTBOX + "  network: {address: 192.0.2.1}\n", 14, "192.0.2.17/24"),
        (TESTBOX + "  kconfig_needed: [VIRTIO_NET=m]\n", 14, "'VIRTIO_NET=m'"),
        (TESTBOX + "  return_seconds: 0\n", 14, "above 0"),
        (TESTBOX + "  password: secret\n", 14, "unknown here"),
    ],
)
def test_a_wrong_testbox_file_is_refused_with_line_and_remedy(
    text: str, line: int, says: str
) -> None:
    with pytest.raises(TestboxError) as refused:
        load(text, "box.yaml")
    assert str(refused.value).startswith(f"box.yaml:{line}: ")
    assert says in str(refused.value)


def test_what_is_shown_of_a_testbox_names_no_address_and_no_file() -> None:
    shown = str(load(TESTBOX, "box.yaml").to_json()["ssh"])
    assert "box.example" not in shown and "/k/" not in shown and "cycle, box" not in shown
