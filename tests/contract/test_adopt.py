"""`swingbot-worker adopt` against a real SSH server (tests/fakes/ssh_machine.py): this host, and a
server with two sockets whose /proc and /sys are made by hand.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shlex
import shutil
import stat
import subprocess
import sys
import threading
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from swingbot_jobs.testbox.file import load_file
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_worker.testbox.adopt import find_console
from swingbot_worker.testbox.adopt.adopt_commands import command
from swingbot_worker.testbox.adopt.find_console import marks
from swingbot_worker.testbox.adopt.survey import answer
from swingbot_worker.testbox.ssh import inventory, power_switch
from tests.contract.labs import ROOT
from tests.contract.test_ipmi import left_by_a_killed_reader, serial_line, simulated
from tests.fakes import ssh_machine
from tests.fakes.ssh_machine import SshMachine
from tests.lab.debs import debian_program
from tests.smbios import memory_device, table

CPUS = 16
CPU = """processor	: 0
vendor_id	: GenuineIntel
model name	: Intel(R) Xeon(R) Silver 4208 CPU @ 2.10GHz
microcode	: 0x5003604"""
SERIAL = """serinfo:1.0 driver revision:
0: uart:16550A port:000003F8 irq:4 tx:0 rx:0
1: uart:16550A port:000002F8 irq:3 tx:0 rx:0 RTS|CTS|DTR
2: uart:unknown port:000003E8 irq:4"""
MODULES = "memory 6 of 16 slots: 6 x 16 GiB at 2666 MT/s"
PCI = {
    "0000:00:11.5": ("10601", "8086:A1D2", "ahci"),
    "0000:3b:00.0": ("20000", "8086:1572", "i40e"),
    "0000:3b:00.1": ("20000", "8086:1572", "i40e"),
    "0000:5e:00.0": ("10802", "144D:A808", "nvme"),
    "0000:d8:00.0": ("20000", "15B3:1017", "mlx5_core"),
    "0000:d9:00.0": ("30000", "102B:0536", ""),
}


def two_sockets() -> dict[str, str]:
    """/sys of a server with 2 sockets x 4 cores x 2 threads; siblings are 8 apart, as Linux has
    them.
    """
    cpu = "devices/system/cpu"
    files: dict[str, str] = {}
    for number in range(CPUS):
        core = number % 8
        files |= {
            f"{cpu}/cpu{number}/topology/physical_package_id": str(core // 4),
            f"{cpu}/cpu{number}/topology/thread_siblings_list": f"{core},{core + 8}",
            f"{cpu}/cpu{number}/thermal_throttle/core_throttle_count": "0",
            f"{cpu}/cpufreq/policy{number}/scaling_governor": "powersave",
            f"{cpu}/cpufreq/policy{number}/energy_performance_preference": "balance_performance",
        }
    for place, (kind, name, driver) in PCI.items():
        driven = f"DRIVER={driver}\n" if driver else ""
        files[f"bus/pci/devices/{place}/uevent"] = f"{driven}PCI_CLASS={kind}\nPCI_ID={name}"
    for number, driver in enumerate(("i40e", "i40e", "mlx5_core")):
        files[f"class/net/eth{number}/device/uevent"] = f"DRIVER={driver}"
    return files | {
        f"{cpu}/online": "0-15",
        f"{cpu}/intel_pstate/no_turbo": "0",
        "devices/system/node/online": "0-1",
        "devices/system/node/node0/cpulist": "0-3,8-11",
        "devices/system/node/node1/cpulist": "4-7,12-15",
        "devices/system/clocksource/clocksource0/current_clocksource": "tsc",
        "kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "kernel/mm/transparent_hugepage/defrag": "always defer [madvise] never",
        "class/dmi/id/product_name": "PowerEdge R440",
        "class/dmi/id/bios_version": "2.12.2",
        "block/nvme0n1/device/model": "SAMSUNG MZ1LB960HAJQ",
        "kernel/security/lockdown": "[none] integrity confidentiality",
    }


def described(
    folder: Path, sys_files: dict[str, str], cmdline: str = "ro quiet"
) -> dict[str, Path]:
    """The files of such a server, by where it has them."""
    proc = ssh_machine.tree(
        folder / "proc",
        {
            "cpuinfo": CPU,
            "cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet",
            "meminfo": "MemTotal:       98765432 kB\nMemAvailable:   97000000 kB\nSwapTotal: 0 kB",
            "serial": SERIAL,
        },
    )
    over = {f"/proc/{name}": proc / name for name in ("cpuinfo", "cmdline", "meminfo")}
    over["/proc/tty/driver/serial"] = proc / "serial"
    sys = ssh_machine.tree(folder / "sys", sys_files)
    modules = [memory_device(16384, 2666)] * 6 + [memory_device(None)] * 10
    (sys / "firmware/dmi/tables").mkdir(parents=True)
    (sys / "firmware/dmi/tables/DMI").write_bytes(table(*modules))
    return over | {"/sys": sys}


@pytest.fixture
def adopted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Starts a machine with these files, and returns what adopts it."""
    workers = tmp_path / "workers"
    for name in ("kconfig", "tuning"):
        shutil.copytree(ROOT / "workers" / name, workers / name)
    (workers / "testboxes").mkdir()
    monkeypatch.setenv("SWINGBOT_PATHS_WORKERS", str(workers))
    monkeypatch.setattr(find_console, "DEVICES", tmp_path / "by-id")
    monkeypatch.setattr(find_console, "OPEN_SECONDS", 1.0)
    folder = tmp_path / "machine"
    ssh_machine.program(folder, "kexec")
    ssh_machine.program(folder, "ipmitool", "exit 1\n")
    with contextlib.ExitStack() as stack:

        def start(over: dict[str, Path]) -> tuple[SshMachine, Any]:
            machine = stack.enter_context(ssh_machine.ssh_machine(folder, over))

            def run(*options: str, host: str = "127.0.0.1") -> Result:
                return CliRunner().invoke(command, [host, *machine.options, *options])

            return machine, run

        yield start


def test_a_server_with_two_sockets_gets_its_file_and_another_run_changes_nothing(
    adopted: Any, tmp_path: Path
) -> None:
    _, run = adopted(described(tmp_path / "files", two_sockets()))
    out = tmp_path / "workers" / "testboxes" / "rack1.yaml"
    done = run("--out", str(out))
    assert done.exit_code == 0, done.output
    testbox = load_file(out)
    assert (testbox.nr_cpu, testbox.nr_node, testbox.memory_mb) == (16, 2, 98765432 // 1024)
    assert (testbox.model, testbox.tbox_group) == (
        "Intel Xeon Silver 4208",
        "intel-xeon-silver-4208-2s",
    )
    for part in (
        "PowerEdge R440",
        "2x4x2",
        "0x5003604",
        "2.12.2",
        "SAMSUNG",
        "eth0: i40e",
        MODULES,
    ):
        assert part in testbox.description
    assert testbox.kconfig == "server-x86_64+nic-fast"
    assert "CONFIG_MLX5_CORE for the driver mlx5_core" in done.output
    assert "CONFIG_NVME" not in done.output and "SATA_AHCI" not in done.output
    assert testbox.tuning is not None and testbox.tuning.left_out == ()
    assert "-> No BMC was found" in done.output
    assert "-> There was no console to try" in done.output

    before = out.read_text()
    again = run("--out", str(out))
    assert (again.exit_code, out.read_text()) == (0, before)
    assert "exists and is kept: the machine matches it" in again.output
    named = before.replace("name: rack1", 'name: "127.0.0.1"').replace("rack1", "127.0.0.1")
    assert run().stdout == named


def test_a_machine_that_is_not_like_its_twin_is_said(adopted: Any, tmp_path: Path) -> None:
    _, run = adopted(described(tmp_path / "files", two_sockets()))
    out = tmp_path / "workers" / "testboxes" / "rack1.yaml"
    assert "It differs from" not in run("--out", str(out)).output
    twin = out.with_name("rack2.yaml")
    twin.write_text(out.read_text().replace("name: rack1", "name: rack2"))
    out.with_name("broken.yaml").write_text("name: [")
    assert "It differs from" not in run("--out", str(out)).output
    twin.write_text(twin.read_text().replace(": 96450", ": 128600"))
    said = (
        "-> It differs from rack2 of the same tbox_group (memory_mb 128600 there, 96450 here;"
        " memory here 6 of 16 slots: 6 x 16 GiB at 2666 MT/s): add what is missing"
    )
    assert said in run("--out", str(out)).output


def test_a_file_elsewhere_is_compared_too_and_its_folder_must_be_there(
    adopted: Any, tmp_path: Path
) -> None:
    _, run = adopted(described(tmp_path / "files", two_sockets()))
    out = tmp_path / "overlay" / "testboxes" / "rack1.yaml"
    done = run("--out", str(out))
    assert done.exit_code == 2 and f"{out.parent} is not a directory" in done.output
    assert "asking" not in done.output
    out.parent.mkdir(parents=True)
    assert run("--out", str(out)).exit_code == 0
    again = run("--out", str(out))
    assert again.exit_code == 0 and "the machine matches it" in again.output, again.output
    out.write_text("name: [")
    broken = run("--out", str(out))
    assert broken.exit_code == 2 and "asking" not in broken.output
    assert out.read_text() == "name: ["


def test_a_file_that_came_while_the_machine_was_asked_is_kept(adopted: Any, tmp_path: Path) -> None:
    out = tmp_path / "workers" / "testboxes" / "rack1.yaml"
    ssh_machine.program(tmp_path / "machine", "getconf", f"echo mine >{out}; echo 16\n")
    _, run = adopted(described(tmp_path / "files", two_sockets()))
    done = run("--out", str(out))
    assert done.exit_code == 2 and "File exists" in done.output
    assert out.read_text() == "mine\n"


def test_a_processor_whose_name_is_not_latin_has_a_group(adopted: Any, tmp_path: Path) -> None:
    over = described(tmp_path / "files", two_sockets())
    over["/proc/cpuinfo"].write_text(CPU.replace("Intel(R) Xeon(R) Silver 4208", "\u5146\u82af"))
    _, run = adopted(over)
    out = tmp_path / "workers" / "testboxes" / "rack1.yaml"
    done = run("--out", str(out))
    assert done.exit_code == 0, done.output
    assert load_file(out).tbox_group == "unknown-2s"


def test_a_machine_with_fewer_cpus_and_memory_than_its_file_differs(
    adopted: Any, tmp_path: Path
) -> None:
    _, run = adopted(described(tmp_path / "files", two_sockets()))
    out = tmp_path / "workers" / "testboxes" / "rack1.yaml"
    assert run("--out", str(out)).exit_code == 0
    out.write_text(
        out.read_text().replace("nr_cpu: 16", "nr_cpu: 32").replace(": 96450", ": 192900")
    )
    kept = out.read_text()
    done = run("--out", str(out), "--kernel", str(out))
    assert (done.exit_code, out.read_text()) == (1, kept)
    assert f"-> {out} was not booted: make file and machine agree first." in done.output
    assert "nr_cpu is 16 on the machine, and 32 in the file" in done.output
    assert "memory_mb is 96450 on the machine, and 192900 in the file" in done.output


def test_items_of_the_tuning_list_that_an_amd_machine_lacks_are_left_out(
    adopted: Any, tmp_path: Path
) -> None:
    files = {
        name: text
        for name, text in two_sockets().items()
        if not any(word in name for word in ("intel_pstate", "throttle", "energy"))
    }
    _, run = adopted(described(tmp_path / "files", files))
    out = tmp_path / "workers" / "testboxes" / "epyc.yaml"
    assert run("--out", str(out)).exit_code == 0
    tuned = load_file(out).tuning
    assert tuned is not None
    assert [item.name for item in tuned.left_out] == ["turbo", "epp", "heat"]


def test_this_host_is_adopted_with_its_own_facts(adopted: Any, tmp_path: Path) -> None:
    _, run = adopted({})
    out = tmp_path / "workers" / "testboxes" / "here.yaml"
    done = run("--out", str(out))
    assert done.exit_code == 0, done.output
    testbox = load_file(out)
    assert testbox.nr_cpu == os.sysconf("SC_NPROCESSORS_ONLN")
    assert testbox.memory_mb == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20


@contextlib.contextmanager
def cable(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Two serial lines with a null modem: what is written to the first is read from the second."""
    ours, machines = pty.openpty()
    theirs, controllers = pty.openpty()
    tty.setraw(machines)
    tty.setraw(controllers)

    def carry() -> None:
        with contextlib.suppress(OSError):
            while data := os.read(ours, 4096):
                os.write(theirs, data)

    threading.Thread(target=carry, daemon=True).start()
    folder.mkdir()
    end = folder / "usb-FTDI-port0"
    end.symlink_to(os.ttyname(controllers))
    try:
        yield Path(os.ttyname(machines)), end
    finally:
        for fd in (machines, controllers, ours, theirs):
            os.close(fd)


def test_the_console_is_the_line_on_which_what_was_written_arrived(
    adopted: Any, tmp_path: Path
) -> None:
    with cable(tmp_path / "by-id") as (line, end):
        over = {**described(tmp_path / "files", two_sockets()), "/dev/ttyS1": line}
        _, run = adopted(over)
        out = tmp_path / "workers" / "testboxes" / "rack1.yaml"
        done = run("--out", str(out))
        assert done.exit_code == 0, done.output
        testbox = load_file(out)
        assert isinstance(testbox.driver, SshDriver) and testbox.driver.console is not None
        assert testbox.driver.console.device == str(end)
        assert "console=tty0 console=ttyS1,115200n8" in testbox.cmdline
        assert testbox.driver.kconfig_needed == ("SERIAL_8250_CONSOLE",)
        assert "ttyS1 reaches the console, but the idle system's messages do not" in done.output
        # its own file does not take the line away from it, that of another testbox does
        again = run("--out", str(out))
        assert "ttyS1 reaches the console" in again.output
        out.rename(out.with_name("rack2.yaml"))
        assert "There was no console to try" in run().output


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("lockdown", "is locked down (integrity) and rejects unsigned kernels"),
        ("kexec", "has no kexec command; run apt-get install kexec-tools"),
        ("arm", "has the architecture riscv64"),
        ("mortal", "root is not root on testbox"),
        ("clock", "days off; set it"),
    ],
)
def test_a_machine_that_cannot_be_driven_gets_a_sentence_and_no_file(
    adopted: Any, tmp_path: Path, change: str, sentence: str
) -> None:
    files, folder = two_sockets(), tmp_path / "machine"
    if change == "lockdown":
        files["kernel/security/lockdown"] = "none [integrity] confidentiality"
    if change == "arm":
        ssh_machine.program(folder, "uname", "[ $1 = -m ] && echo riscv64 || echo 6.1.0\n")
    if change == "mortal":
        ssh_machine.program(folder, "id", "echo 1000\n")
    if change == "clock":
        ssh_machine.program(folder, "date", "echo 86400000\n")
    if change == "kexec":
        if shutil.which("kexec"):
            pytest.skip("this host has a kexec that the machine finds too")
        (folder / "bin" / "kexec").unlink()
    _, run = adopted(described(tmp_path / "files", files))
    out = tmp_path / "workers" / "testboxes" / "rack1.yaml"
    done = run("--out", str(out))
    assert done.exit_code == 1 and sentence in done.output, done.output
    assert not out.exists()


def test_a_machine_that_is_not_reached_is_a_sentence(adopted: Any, tmp_path: Path) -> None:
    machine, run = adopted({})
    known = machine.known_hosts.read_text()
    machine.known_hosts.write_text("")
    done = run()
    assert done.exit_code == 2 and "has a host key that is not in" in done.output
    machine.known_hosts.write_text(known)
    machine.key.write_text((machine.folder / "host_key").read_text())
    done = run()
    assert done.exit_code == 2 and "does not accept the key" in done.output
    done = CliRunner().invoke(command, ["127.0.0.1", *machine.options[:4], "--port", "1"])
    assert done.exit_code == 2 and "no SSH server is running" in done.output
    assert stat.S_IMODE(machine.key.stat().st_mode) == 0o600
    machine.key.chmod(0o644)
    done = run()
    assert done.exit_code == 2 and "can be read by others" in done.output
    done = run(host="-oProxyCommand=x")
    assert done.exit_code == 2
    done = run("--console", "cat 'x")
    assert done.exit_code == 2 and "--console cat 'x: No closing quotation" in done.output


@pytest.mark.parametrize("shell", ["garbage", "flood", "silent"])
def test_a_shell_that_prints_something_else_is_a_sentence(
    adopted: Any, tmp_path: Path, shell: str
) -> None:
    text = {
        "garbage": "head -c 100000 /dev/urandom",
        "flood": "yes nr_cpu=9 | head -c 30000000",
        "silent": "true",
    }[shell]
    ssh_machine.program(tmp_path / "machine", "shell", f"{text}\n")
    machine, run = adopted({})
    passwd = machine.folder / "passwd"
    shown = passwd.read_text().replace("/root:/bin/sh", f"/root:{machine.folder}/bin/shell")
    passwd.write_text(shown)
    done = run()
    assert done.exit_code == 2 and "did not answer as a shell does" in done.output, done.output
    assert len(done.output) < 2000


def test_a_survey_takes_only_what_has_its_form() -> None:
    lines = ["device 020000 8086:1572 i40e", "device 020000 8086:1572 i40e;reboot"]
    lines += ["/sys/devices/system/cpu/online:0-15", "/proc/meminfo:MemTotal: 98765432 kB"]
    lines += [f"lines={'ttyS1 ' * 900}ttyS2 /etc/passwd ;x", "bmc_address=1.2.3.4; x"]
    survey = answer("rack1", "\n".join([*lines, "surveyed=all"]))
    assert [device.driver for device in survey.devices] == ["i40e"]
    assert survey.lines == ("ttyS1",)
    assert survey.bmc_address == ""


@pytest.mark.parametrize(
    ("cmdline", "word", "speed"),
    [
        ("ro quiet", "115200n8", 115200),
        ("console=tty0 console=ttyS1,57600n8", "57600n8", 57600),
        ("console=ttyS1 quiet", "", 9600),
        ("console=ttyS1,$(reboot)", "", 9600),
    ],
)
def test_a_console_keeps_the_speed_that_the_idle_system_gave_it(
    cmdline: str, word: str, speed: int
) -> None:
    lines = ["/sys/devices/system/cpu/online:0-15", "/proc/meminfo:MemTotal: 98765432 kB"]
    lines += [f"cmdline={cmdline}", "lines=ttyS0 ttyS1", "surveyed=all"]
    survey = answer("rack1", "\n".join(lines))
    assert (survey.options("ttyS1"), survey.speed) == (word, speed)
    assert ("stty -F /dev/ttyS1" in marks(survey, "0")) == ("ttyS1" not in cmdline)
    assert "stty -F /dev/ttyS0" in marks(survey, "0")


def test_the_verb_is_there_and_speaks_json(adopted: Any, tmp_path: Path) -> None:
    machine, _ = adopted(described(tmp_path / "files", two_sockets()))
    argv = [sys.executable, "-m", "swingbot_worker.cli", "adopt", "127.0.0.1", *machine.options]
    done = subprocess.run([*argv, "--json"], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["file"].startswith("# Written by") and said["to_do"] and said["differs"] == []


def test_a_bmc_gives_power_and_console_and_the_session_is_ended(
    adopted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = tmp_path / "ttyS1"
    line.touch()
    with serial_line(line) as serial, simulated(tmp_path / "bmc", serial) as reached:
        reached.says("lan", "set", "1", "ipaddr", "127.0.0.1")
        # Here the BMC of the machine and that in the network are one that has a port of its own.
        here = f'exec {shlex.join([*reached.words, "-C", "3"])} "$@"\n'
        ssh_machine.program(tmp_path / "machine", "ipmitool", here)
        there = f'exec {shlex.join(debian_program("ipmitool"))} -C 3 -p {reached.port} "$@"\n'
        ssh_machine.program(tmp_path, "ipmitool", there)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
        _, run = adopted({**described(tmp_path / "files", two_sockets()), "/dev/ttyS1": line})
        out = tmp_path / "workers" / "testboxes" / "rack1.yaml"
        password = tmp_path / "password"
        done = run("--bmc-password-file", str(password))
        assert done.exit_code == 0 and f"{password} must hold the password of its user" in (
            done.output
        )

        password.write_text("secret")
        done = run("--bmc-password-file", str(password), "--out", str(out))
        assert done.exit_code == 0, done.output
        driver = load_file(out).driver
        assert isinstance(driver, SshDriver) and driver.console is not None
        assert driver.power is not None and power_switch.status(driver.power) == "on"
        assert driver.console.command[0] == "script" and driver.console.end[-1] == "deactivate"
        assert "console=tty0 console=ttyS1,115200n8" in load_file(out).cmdline
        assert "not proven" not in done.output
        with inventory.asked(driver.inventory) as asked:
            assert asked.read(60.0)["bmc.fru0_board_product"] == "X11DPi"
        assert "already de-activated" in reached.says("sol", "deactivate")

        left_by_a_killed_reader(reached)
        done = run("--bmc-password-file", str(password))
        assert "A console is held by another session" in done.output
        assert "already de-activated" not in reached.says("sol", "deactivate")
