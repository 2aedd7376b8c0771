"""The playbook's part for a testbox, on a Debian in QEMU that is reached by SSH and knew nothing of
us before: dry, for real, an order, again, removed.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from pathlib import Path

import pytest

from swingbot_jobs.testbox import tuning
from swingbot_jobs.testbox.file import load_file
from tests.contract.labs import a_job
from tests.lab.iron import Iron, iron
from tests.lab.machine import Machine, MachineError
from tests.lab.playbook import BIN, Inventory, changed, environment

pytestmark = pytest.mark.timeout(5400)
# What no virtual machine has: a clock that can be set, and counters of heat.
WITHOUT = ["governor", "turbo", "epp", "clocksource", "heat", "neighbours", "numa_balancing"]
# What Debian's update-grub makes of its settings, for a machine that has no boot loader of its own.
UPDATE_GRUB = """#!/bin/sh
GRUB_CMDLINE_LINUX=quiet
for part in /etc/default/grub.d/*.cfg; do [ -e "$part" ] && . "$part"; done
echo "linux /boot/vmlinuz $GRUB_CMDLINE_LINUX" >/boot/menu
"""


@pytest.fixture(scope="module")
def rack(machine: Machine, base_kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iron:
    """The testbox on that machine, as its file describes it.

    Whoever drives it has a key that the machine does not know yet.
    """
    folder = tmp_path_factory.mktemp("rack")
    key = folder / "id_swingbot"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "swingbot", "-f", str(key)],
        check=True,
    )
    made = iron(folder, machine, base_kernel)
    made.describe({"tuning": "quiet", "tuning_without": WITHOUT}, key=str(key))
    machine.ssh(
        f"cat >/usr/sbin/update-grub <<'end'\n{UPDATE_GRUB}end\n"
        "chmod 755 /usr/sbin/update-grub; mkdir -p /etc/default; update-grub"
    )
    return made


@pytest.fixture(scope="module")
def inventory(rack: Iron, tmp_path_factory: pytest.TempPathFactory) -> Inventory:
    made, machine = Inventory(tmp_path_factory.mktemp("inventory")), rack.machine
    host = {
        "ansible_host": "127.0.0.1",
        "ansible_port": machine.port,
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(machine.key),
        "ansible_ssh_common_args": (
            f"-F none -o UserKnownHostsFile={machine.known_hosts} -o"
            " StrictHostKeyChecking=yes"
            " -o IdentitiesOnly=yes"
        ),
        "ansible_timeout": 60,
        "swingbot_testbox__file": str(rack.file),
        "swingbot_testbox__ssh_public_key": (rack.site.workers.parent / "id_swingbot.pub")
        .read_text()
        .strip(),
    }
    made.write(
        "hosts.yml",
        {"swingbot": {"children": {"swingbot_testboxes": {"hosts": {rack.name: host}}}}},
    )
    return made


def complaints(rack: Iron) -> list[tuning.TuningFinding]:
    """What the worker would say of the testbox's tuning before a boot."""
    quiet = load_file(rack.file).tuning
    assert quiet is not None
    return [
        one for one in tuning.findings(quiet, rack.machine.ssh(tuning.probe(quiet))) if not one.ok
    ]


def check(rack: Iron) -> tuple[int, str]:
    """`swingbot-worker check TESTBOX`: exit status, and what it prints."""
    argv = [str(BIN / "swingbot-worker"), "check", rack.name]
    env = {**environment(), "SWINGBOT_PATHS_WORKERS": str(rack.site.workers)}
    done = subprocess.run(
        argv, env=env, capture_output=True, text=True, timeout=900, stdin=subprocess.DEVNULL
    )
    (rack.out.parent / "checks.log").open("a").write(done.stdout + done.stderr)
    return done.returncode, done.stdout


def ours(machine: Machine) -> str:
    """swingbot's files, and dangling units."""
    return machine.ssh("find /etc -name '*swingbot*'; find /etc/systemd/system -lname /dev/null")


def reboot(machine: Machine) -> None:
    """Through a whole boot of its own system."""
    old = machine.boot_id()
    machine.ssh("systemctl reboot --no-block")
    give_up = time.monotonic() + 1200
    while time.monotonic() < give_up:
        with contextlib.suppress(MachineError):
            if machine.boot_id() != old and "running" in machine.ssh(
                "systemctl is-system-running --wait || true", timeout=600
            ):
                return
        time.sleep(1)
    raise AssertionError(f"it did not come back: {machine.console_tail()}")


# -- in execution order


def test_a_dry_run_says_what_it_would_do_to_a_bare_testbox_and_does_nothing(
    rack: Iron, inventory: Inventory
) -> None:
    before = ours(rack.machine)
    assert complaints(rack), "a fresh Debian is not quiet, else this test shows nothing"
    assert check(rack)[0] == 1
    assert changed(inventory.play("--check")) > 0
    assert ours(rack.machine) == before


def test_a_testbox_has_all_that_it_needs_after_the_first_run(
    rack: Iron, inventory: Inventory
) -> None:
    assert changed(inventory.play()) > 0
    assert complaints(rack) == []
    assert (
        rack.machine.ssh("cat /boot/menu")
        == "linux /boot/vmlinuz quiet console=tty0 console=ttyS0,115200 panic=30\n"
    )
    status, said = check(rack)
    assert status == 0, said


def test_the_second_run_changes_nothing(inventory: Inventory) -> None:
    assert changed(inventory.play()) == 0
    assert changed(inventory.play("--check")) == 0


def test_an_order_goes_by_kexec_through_the_testbox_with_the_key_that_was_installed(
    rack: Iron,
) -> None:
    before = rack.machine.boot_id()
    outcome = rack.boot(a_job("prints", word="7"))
    assert (outcome["status"], outcome["reason"]) == ("up", None), rack.log()
    assert outcome["facts"]["entered_by"] == "kexec"
    assert outcome["facts"]["kernel_release"] != outcome["facts"]["idle_release"]
    assert rack.machine.boot_id() != before
    assert complaints(rack) == [], "it is quiet again after a boot of its own"


def test_what_was_undone_by_hand_is_reported_before_an_order_and_mended_by_the_playbook(
    rack: Iron, inventory: Inventory
) -> None:
    rack.machine.ssh(
        "systemctl unmask --quiet fstrim.timer && systemctl start fstrim.timer;"
        " sysctl -qw kernel.panic=0"
    )
    assert {one.what for one in complaints(rack)} == {
        "fstrim.timer does not run",
        "kernel.panic is 30",
    }
    outcome = rack.boot(a_job("prints", word="7"))
    assert outcome["status"] == "infra" and "fstrim.timer" in outcome["reason"]
    assert changed(inventory.play("--check")) > 0
    inventory.play()
    assert complaints(rack) == []


def test_what_is_removed_leaves_nothing_of_ours(rack: Iron, inventory: Inventory) -> None:
    assert ours(rack.machine)
    inventory.play("--tags", "remove")
    assert ours(rack.machine) == ""
    assert rack.machine.ssh("cat /boot/menu") == "linux /boot/vmlinuz quiet\n"
    reboot(rack.machine)
    assert {one.what for one in complaints(rack)} >= {"kernel.panic is 30"}, (
        "it is as Debian has it"
    )
    assert check(rack)[0] == 1, "the key is good no more"
