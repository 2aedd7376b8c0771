"""A box of iron in all the ways that kernels, people and labs go wrong.

It is home again each time, or said to be lost.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from swingbot_jobs.reading.parse import read_results
from swingbot_jobs.testbox.file import load_file
from swingbot_worker.testbox.check import check
from tests.boot.lab import virtual_lab
from tests.contract.labs import a_job
from tests.lab.iron import Iron
from tests.lab.machine import power, tell_qemu

pytestmark = pytest.mark.timeout(3600)
HACKBENCH = {
    "name": "hackbench-1",
    "program": "hackbench",
    "runs": 2,
    "params": {
        "iterations": "1",
        "nr_threads": "1",
        "fds": "4",
        "loops": "50",
        "mode": "process",
        "ipc": "pipe",
        "datasize": "100",
    },
}
NETPERF = {
    "name": "netperf-1",
    "program": "netperf",
    "runs": 1,
    "params": {"runtime": "2", "test": "TCP_STREAM", "ip": "ipv4", "nr_threads": "1"},
}


@pytest.fixture(autouse=True)
def at_home(box: Iron) -> Iterator[None]:
    """Whatever a test has done, the machine is in its idle system before and after it,
    on a cable and with power.
    """
    yield
    power(box.machine.folder, "on")
    box.machine.wait_for_ssh()
    assert "swingbot=" not in box.machine.ssh("cat /proc/cmdline")


def findings(box: Iron) -> dict[str, tuple[bool, str]]:
    found = check(load_file(box.file))
    return {finding.what: (finding.ok, finding.do) for finding in found}


# --- nothing boots: swingbot's own faults are reported while the testbox is untouched


def test_a_box_that_has_everything_is_found_so(box: Iron) -> None:
    assert {what: do for what, (ok, do) in findings(box).items() if not ok} == {}


def refused(box: Iron) -> str:
    """Why an order is not begun; the box has not left its idle system."""
    before = box.machine.boot_id()
    outcome = box.boot(a_job("prints", word="7"))
    assert outcome["status"] == "infra"
    assert box.machine.boot_id() == before
    return str(outcome["reason"])


def test_a_wrong_key_is_reported_with_what_to_do(box: Iron, tmp_path: Path) -> None:
    key = tmp_path / "key"
    shutil.copyfile("/dev/null", key)
    key.chmod(0o600)
    box.describe(key=str(key))
    assert str(key) in refused(box)
    assert not findings(box)["SSH reaches the testbox"][0]


def test_another_host_key_is_reported_and_not_trusted(box: Iron, tmp_path: Path) -> None:
    other = tmp_path / "known_hosts"
    host, kind, key = box.machine.known_hosts.read_text().split()[:3]
    other.write_text(f"{host} {kind} {key[:-6]}AAAAAA\n")
    box.describe(known_hosts=str(other))
    assert "has a host key that differs from" in refused(box)
    other.write_text("")
    assert "verify it at the testbox's console" in refused(box)


def test_a_name_that_does_not_resolve_is_reported(box: Iron) -> None:
    box.describe(host="iron.invalid")
    assert "has a host name that cannot be resolved" in refused(box)


def test_a_clock_that_is_years_off_is_reported(box: Iron) -> None:
    box.machine.ssh("date -s 2001-01-01")
    try:
        assert "days off; set it" in refused(box)
        assert "NTP" in findings(box)["its clock is correct"][1]
    finally:
        box.machine.ssh(f"date -s @{time.time():.0f}")


def test_a_box_without_kexec_is_reported(box: Iron) -> None:
    box.machine.ssh("mv /usr/sbin/kexec /usr/sbin/kexec.away")
    try:
        assert "apt-get install kexec-tools" in refused(box)
    finally:
        box.machine.ssh("mv /usr/sbin/kexec.away /usr/sbin/kexec")


def test_a_box_without_room_in_memory_is_reported(box: Iron) -> None:
    box.machine.ssh("mkdir -p /run/small && mount -t tmpfs -o size=1m small /run/small")
    try:
        box.describe(workspace="/run/small/work")
        assert "MiB free in /run/small/work" in refused(box)
    finally:
        box.machine.ssh("umount /run/small")


def test_a_kernel_of_another_architecture_is_reported(box: Iron, tmp_path: Path) -> None:
    box.image = tmp_path / "Image"
    box.image.write_bytes(bytes(56) + b"ARM\x64" + bytes(5000))
    assert "built for aarch64" in refused(box)


def test_a_console_that_shows_nothing_is_reported(box: Iron) -> None:
    box.describe(console={"command": ["sleep", "1000"]})
    assert "does not show kernel messages" in refused(box)


def test_options_that_the_kernel_lacks_are_reported_before_the_reboot(box: Iron) -> None:
    box.describe(kconfig_needed=["SERIAL_8250_CONSOLE", "E1000E"])
    config = box.image.with_suffix(".config")
    box.image = Path(shutil.copyfile(box.image, box.out.parent / "bzImage"))
    config = box.image.with_suffix(".config")
    config.write_text("CONFIG_SERIAL_8250_CONSOLE=y\nCONFIG_E1000E=m\n")
    assert "CONFIG_E1000E=y" in refused(box) and "SERIAL" not in refused(box)


# --- the whole way


def test_a_whole_reboot_gives_what_the_virtual_testbox_gives(box: Iron, tmp_path: Path) -> None:
    """The same metrics and facts by name; the values are another machine's."""
    box.by_reboot()
    there = box.boot(HACKBENCH, NETPERF)
    assert there["status"] == "up", box.log()
    assert [run["status"] for run in there["runs"]] == ["ok", "ok", "ok"]
    assert there["facts"]["entered_by"] == "reboot"
    here = virtual_lab(tmp_path / "virtual", box.image, box="vm-tcg").boot([HACKBENCH, NETPERF])
    assert here["status"] == "up"
    ours = {"accel", "qemu_cpu", "qemu_version", "boots_spoilt_by_qemu", "host_stolen_ticks"}
    assert set(here["facts"]) - set(there["facts"]) <= ours


def test_results_leave_over_the_network_where_the_testbox_says_so(
    box: Iron, wired_kernel: Path
) -> None:
    box.image = wired_kernel
    box.describe(results="network", kconfig_needed=["VIRTIO_NET", "PACKET"])
    outcome = box.boot(a_job("prints", runs=2, word="7"))
    assert (outcome["status"], outcome["reason"]) == ("up", None), box.log()
    assert read_results(box.out / "results.tar").runs["prints-job", 1]["stdout"] == "result: 7\n"
    assert " serving eth0" in (box.out / "console.log").read_text()


def test_a_hang_is_ended_by_the_power_switch(box: Iron) -> None:
    box.meanwhile(" up\r", lambda: tell_qemu(box.machine.folder, "stop"))
    outcome = box.boot(a_job("sleeps"))
    assert outcome["status"] == "hung", box.log()
    assert "no sign of life" in outcome["reason"] and "while the job ran" in outcome["reason"]
    assert box.phases[-1][0] == "idle"


def test_a_plug_that_is_pulled_in_mid_run_is_no_fault_of_the_kernel(box: Iron) -> None:
    box.meanwhile(" up\r", lambda: power(box.machine.folder, "off"))
    outcome = box.boot(a_job("sleeps"))
    assert outcome["status"] == "infra", box.log()
    assert "lost power while the order ran" in outcome["reason"]
    assert box.phases[-1][0] == "idle"


def test_a_cable_that_is_out_for_a_while_costs_no_result(box: Iron) -> None:
    machine = box.machine
    box.meanwhile(" up\r", lambda: tell_qemu(machine.folder, "set_link", name="net", up=False))
    outcome = box.boot(a_job("sleeps"))  # the cable is plugged in when the machine restarts
    assert outcome["status"] == "up", box.log()
    assert box.phases[-1][0] == "idle"


def test_a_power_command_that_lies_loses_the_box_with_a_clear_word(box: Iron) -> None:
    lies = [sys.executable, "-c", "print('on')"]
    box.describe(power={"cycle": lies, "status": lies}, return_seconds=20)
    box.meanwhile(" up\r", lambda: tell_qemu(box.machine.folder, "stop"))
    outcome = box.boot(a_job("sleeps"))
    assert outcome["status"] == "infra", box.log()
    assert "is lost" in outcome["reason"] and "power" in outcome["reason"]
    assert box.phases[-1][0] == "lost"
    tell_qemu(box.machine.folder, "cont")


def test_a_box_in_a_strange_kernel_is_brought_home_before_its_order(box: Iron) -> None:
    load = (
        "kexec -c -l /boot/vmlinuz-* --initrd=$(ls /boot/initrd.img-*)"
        " --command-line='root=LABEL=root ro console=ttyS0 swingbot=left-over'"
    )
    before = box.machine.boot_id()
    box.machine.ssh(
        f"{load} && (nohup setsid sh -c 'sleep 1; kexec -e' >/dev/null 2>&1 </dev/null &)"
    )
    time.sleep(5)
    box.machine.wait_for_ssh()
    assert box.machine.boot_id() != before
    assert findings(box)["it is in its idle system"][0] is False
    outcome = box.boot(a_job("prints", word="7"))
    assert outcome["status"] == "up", box.log()
    assert "strange kernel" in box.log()


def test_an_order_for_a_box_that_is_switched_off_switches_it_on(box: Iron) -> None:
    power(box.machine.folder, "off")
    outcome = box.boot(a_job("prints", word="7"))
    assert outcome["status"] == "up", box.log()
    assert json.dumps(box.phases).count("returning") == 2
