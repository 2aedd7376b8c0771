"""A testbox of iron in all the ways that kernels, people and labs go wrong.

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
def at_home(testbox: Iron) -> Iterator[None]:
    """Whatever a test has done, the machine is in its idle system before and after it,
    on a cable and with power.
    """
    yield
    power(testbox.machine.folder, "on")
    testbox.machine.wait_for_ssh()
    assert "swingbot=" not in testbox.machine.ssh("cat /proc/cmdline")


def findings(testbox: Iron) -> dict[str, tuple[bool, str]]:
    found = check(load_file(testbox.file), testbox.site)
    return {finding.what: (finding.ok, finding.do) for finding in found}


# --- nothing boots: swingbot's own faults are reported while the testbox is untouched


def test_a_testbox_that_has_everything_is_found_so(testbox: Iron) -> None:
    assert {what: do for what, (ok, do) in findings(testbox).items() if not ok} == {}


def refused(testbox: Iron) -> str:
    """Why an order is not begun; the testbox has not left its idle system."""
    before = testbox.machine.boot_id()
    outcome = testbox.boot(a_job("prints", word="7"))
    assert outcome["status"] == "infra"
    assert testbox.machine.boot_id() == before
    return str(outcome["reason"])


def test_a_wrong_key_is_reported_with_what_to_do(testbox: Iron, tmp_path: Path) -> None:
    key = tmp_path / "key"
    shutil.copyfile("/dev/null", key)
    key.chmod(0o600)
    testbox.describe(key=str(key))
    assert str(key) in refused(testbox)
    assert not findings(testbox)["SSH reaches the testbox"][0]


def test_another_host_key_is_reported_and_not_trusted(testbox: Iron, tmp_path: Path) -> None:
    other = tmp_path / "known_hosts"
    host, kind, key = testbox.machine.known_hosts.read_text().split()[:3]
    other.write_text(f"{host} {kind} {key[:-6]}AAAAAA\n")
    testbox.describe(known_hosts=str(other))
    assert "has a host key that differs from" in refused(testbox)
    other.write_text("")
    assert "verify it at the testbox's console" in refused(testbox)


def test_a_name_that_does_not_resolve_is_reported(testbox: Iron) -> None:
    testbox.describe(host="iron.invalid")
    assert "has a host name that cannot be resolved" in refused(testbox)


def test_a_clock_that_is_years_off_is_reported(testbox: Iron) -> None:
    testbox.machine.ssh("date -s 2001-01-01")
    try:
        assert "days off; set it" in refused(testbox)
        assert "NTP" in findings(testbox)["its clock is correct"][1]
    finally:
        testbox.machine.ssh(f"date -s @{time.time():.0f}")


def test_a_testbox_without_kexec_is_reported(testbox: Iron) -> None:
    testbox.machine.ssh("mv /usr/sbin/kexec /usr/sbin/kexec.away")
    try:
        assert "apt-get install kexec-tools" in refused(testbox)
    finally:
        testbox.machine.ssh("mv /usr/sbin/kexec.away /usr/sbin/kexec")


def test_a_testbox_without_room_in_memory_is_reported(testbox: Iron) -> None:
    testbox.machine.ssh("mkdir -p /run/small && mount -t tmpfs -o size=1m small /run/small")
    try:
        testbox.describe(workspace="/run/small/work")
        assert "MiB free in /run/small/work" in refused(testbox)
    finally:
        testbox.machine.ssh("umount /run/small")


def test_a_kernel_of_another_architecture_is_reported(testbox: Iron, tmp_path: Path) -> None:
    testbox.image = tmp_path / "Image"
    testbox.image.write_bytes(bytes(56) + b"ARM\x64" + bytes(5000))
    assert "built for aarch64" in refused(testbox)


def test_a_console_that_shows_nothing_is_reported(testbox: Iron) -> None:
    testbox.describe(console={"command": ["sleep", "1000"]})
    assert "does not show kernel messages" in refused(testbox)


def test_options_that_the_kernel_lacks_are_reported_before_the_reboot(testbox: Iron) -> None:
    testbox.describe(kconfig_needed=["SERIAL_8250_CONSOLE", "E1000E"])
    config = testbox.image.with_suffix(".config")
    testbox.image = Path(shutil.copyfile(testbox.image, testbox.out.parent / "bzImage"))
    config = testbox.image.with_suffix(".config")
    config.write_text("CONFIG_SERIAL_8250_CONSOLE=y\nCONFIG_E1000E=m\n")
    assert "CONFIG_E1000E=y" in refused(testbox) and "SERIAL" not in refused(testbox)


# --- the whole way


def test_a_whole_reboot_gives_what_the_virtual_testbox_gives(testbox: Iron, tmp_path: Path) -> None:
    """The same metrics and facts by name; the values are another machine's."""
    testbox.by_reboot()
    there = testbox.boot(HACKBENCH, NETPERF)
    assert there["status"] == "up", testbox.log()
    assert [run["status"] for run in there["runs"]] == ["ok", "ok", "ok"]
    assert there["facts"]["entered_by"] == "reboot"
    here = virtual_lab(tmp_path / "virtual", testbox.image, testbox="vm-tcg").boot(
        [HACKBENCH, NETPERF]
    )
    assert here["status"] == "up"
    ours = {"accel", "qemu_cpu", "qemu_version", "boots_spoilt_by_qemu", "host_stolen_ticks"}
    assert set(here["facts"]) - set(there["facts"]) <= ours


def test_results_leave_over_the_network_where_the_testbox_says_so(
    testbox: Iron, wired_kernel: Path
) -> None:
    testbox.image = wired_kernel
    testbox.describe(results="network", kconfig_needed=["VIRTIO_NET", "PACKET"])
    outcome = testbox.boot(a_job("prints", runs=2, word="7"))
    assert (outcome["status"], outcome["reason"]) == ("up", None), testbox.log()
    assert (
        read_results(testbox.out / "results.tar").runs["prints-job", 1]["stdout"] == "result: 7\n"
    )
    assert " serving eth0" in (testbox.out / "console.log").read_text()


def test_a_hang_is_ended_by_the_power_switch(testbox: Iron) -> None:
    testbox.meanwhile(" up\r", lambda: tell_qemu(testbox.machine.folder, "stop"))
    outcome = testbox.boot(a_job("sleeps"))
    assert outcome["status"] == "hung", testbox.log()
    assert "no sign of life" in outcome["reason"] and "while the job ran" in outcome["reason"]
    assert testbox.phases[-1][0] == "idle"


def test_a_plug_that_is_pulled_in_mid_run_is_no_fault_of_the_kernel(testbox: Iron) -> None:
    testbox.meanwhile(" up\r", lambda: power(testbox.machine.folder, "off"))
    outcome = testbox.boot(a_job("sleeps"))
    assert outcome["status"] == "infra", testbox.log()
    assert "lost power while the order ran" in outcome["reason"]
    assert testbox.phases[-1][0] == "idle"


def test_a_cable_that_is_out_for_a_while_costs_no_result(testbox: Iron) -> None:
    machine = testbox.machine
    testbox.meanwhile(" up\r", lambda: tell_qemu(machine.folder, "set_link", name="net", up=False))
    outcome = testbox.boot(a_job("sleeps"))  # the cable is plugged in when the machine restarts
    assert outcome["status"] == "up", testbox.log()
    assert testbox.phases[-1][0] == "idle"


def test_a_power_command_that_lies_loses_the_testbox_with_a_clear_word(testbox: Iron) -> None:
    lies = [sys.executable, "-c", "print('on')"]
    testbox.describe(power={"cycle": lies, "status": lies}, return_seconds=20)
    testbox.meanwhile(" up\r", lambda: tell_qemu(testbox.machine.folder, "stop"))
    outcome = testbox.boot(a_job("sleeps"))
    assert outcome["status"] == "infra", testbox.log()
    assert "is lost" in outcome["reason"] and "power" in outcome["reason"]
    assert testbox.phases[-1][0] == "lost"
    tell_qemu(testbox.machine.folder, "cont")


def test_a_testbox_in_a_strange_kernel_is_brought_home_before_its_order(testbox: Iron) -> None:
    load = (
        "kexec -c -l /boot/vmlinuz-* --initrd=$(ls /boot/initrd.img-*)"
        " --command-line='root=LABEL=root ro console=ttyS0 swingbot=left-over'"
    )
    before = testbox.machine.boot_id()
    testbox.machine.ssh(
        f"{load} && (nohup setsid sh -c 'sleep 1; kexec -e' >/dev/null 2>&1 </dev/null &)"
    )
    time.sleep(5)
    testbox.machine.wait_for_ssh()
    assert testbox.machine.boot_id() != before
    assert findings(testbox)["it is in its idle system"][0] is False
    outcome = testbox.boot(a_job("prints", word="7"))
    assert outcome["status"] == "up", testbox.log()
    assert "strange kernel" in testbox.log()


def test_an_order_for_a_testbox_that_is_switched_off_switches_it_on(testbox: Iron) -> None:
    power(testbox.machine.folder, "off")
    outcome = testbox.boot(a_job("prints", word="7"))
    assert outcome["status"] == "up", testbox.log()
    assert json.dumps(testbox.phases).count("returning") == 2
