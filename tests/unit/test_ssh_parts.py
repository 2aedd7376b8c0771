"""The small parts of the driver ssh: errors of SSH, facts of a testbox, power switches, images, the
guest's scripts."""

from __future__ import annotations

import gzip
import lzma
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from swingbot_jobs.contract.kconfig import missing
from swingbot_jobs.testbox.ssh import Console, Power, SshDriver
from swingbot_worker import InfraError
from swingbot_worker.testbox import kernel
from swingbot_worker.testbox.ssh import enter, guest, idle_system, power_switch, preflight
from swingbot_worker.testbox.ssh.link import Link, LoginRefused, Unreachable, fault, ssh_argv
from swingbot_worker.testbox.ssh.process import beside

DRIVER = SshDriver(
    host="box.example",
    key="/k/box",
    known_hosts="/k/known",
    enter="kexec",
    idle_release="6.1.0-*-amd64",
)
HOME = {
    "boot_id": "b",
    "release": "6.1.0-56-amd64",
    "machine": "x86_64",
    "uid": "0",
    "kexec": "/usr/sbin/kexec",
    "lockdown": "none",
}
HOME |= {
    "cmdline": "root=/dev/sda1 ro",
    "space_kb": "400000",
    "available_kb": "1800000",
    "kexec_disabled": "0",
    "clock": "1000000",
}


def home(**more: str) -> idle_system.IdleSystemReport:
    return idle_system.IdleSystemReport(HOME | more)


# --- SSH


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (
            "ssh: Could not resolve hostname box.example: Name or service not known",
            LoginRefused,
            "check DNS",
        ),
        (
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
            LoginRefused,
            "a host key that differs from /k/known",
        ),
        (
            "No ED25519 host key is known for box.example\nHost key verification failed.",
            LoginRefused,
            "verify it",
        ),
        ("root@box.example: Permission denied (publickey).", LoginRefused, "authorized_keys"),
        (
            "ssh: connect to host box.example port 22: Connection refused",
            Unreachable,
            "no SSH server is running",
        ),
        ("ssh: connect to host box.example port 22: No route to host", Unreachable, "cable"),
        ("something new", Unreachable, "something new"),
        ("", Unreachable, "it printed nothing"),
    ],
)
def test_what_ssh_says_becomes_a_sentence_that_says_what_to_do(
    said: str, kind: type[InfraError], words: str
) -> None:
    error = fault("box", DRIVER, said)
    assert type(error) is kind
    assert words in str(error) and str(error).startswith("Testbox box ")


def test_ssh_takes_one_key_one_host_key_and_asks_nobody() -> None:
    argv = ssh_argv(DRIVER, "true; id")
    assert argv[-1] == "true; id" and argv[1:3] == ["-F", "none"]
    for option in (
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        "IdentitiesOnly=yes",
        "UserKnownHostsFile=/k/known",
        "ForwardAgent=no",
    ):
        assert option in argv


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    key, known = tmp_path / "key", tmp_path / "known"
    known.touch()
    link = Link("box", SshDriver(host="x", key=str(key), known_hosts=str(known), enter="kexec"))
    with pytest.raises(LoginRefused, match="does not exist"):
        link.check_files()
    key.touch(mode=0o644)
    key.chmod(0o644)
    with pytest.raises(LoginRefused, match="chmod 600"):
        link.check_files()
    key.chmod(0o600)
    link.check_files()


# --- who answers


def test_the_question_is_answered_by_any_machine_with_a_shell(tmp_path: Path) -> None:
    said = subprocess.run(
        ["sh", "-c", idle_system.question(str(tmp_path))],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = idle_system.answer("Welcome to the lab\n" + said)
    assert len(found["boot_id"]) == 36 and found["machine"] == "x86_64"
    assert abs((found.number("clock") or 0) - time.time()) < 100
    assert (found.number("nr_cpu") or 0) >= 1 and (found.number("space_kb") or 0) > 0


def test_a_kernel_with_our_word_or_another_release_is_strange() -> None:
    assert idle_system.strange(home(), DRIVER) is None
    assert "o1-a1-77" in str(
        idle_system.strange(home(cmdline="ro swingbot=o1-a1-77 quiet"), DRIVER)
    )
    assert "Linux 6.12.0" in str(idle_system.strange(home(release="6.12.0"), DRIVER))


def test_an_answer_in_any_shape_is_read() -> None:
    found = idle_system.answer("boot_id=\n=x\nspace_kb=lots\nCLOCK=1\n" + "a" * 10_000)
    assert found.number("space_kb") is None and found["clock"] == ""
    assert idle_system.answer("lockdown=\x1b[2J\x07x\ty")["lockdown"] == " [2J x y"


# --- what keeps an order from a testbox


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"uid": "1000"}, "set ssh.user to root"),
        ({"clock": "1"}, "12 days off"),
        ({"kexec": ""}, "apt-get install kexec-tools"),
        ({"lockdown": "integrity"}, "Secure Boot"),
        ({"kexec_disabled": "1"}, "kexec_load_disabled"),
    ],
)
def test_each_problem_of_a_testbox_is_reported_with_what_to_do(
    said: dict[str, str], words: str
) -> None:
    assert preflight.problems("box", DRIVER, home(), 1_000_000) == []
    (problem,) = preflight.problems("box", DRIVER, home(**said), 1_000_000)
    assert words in problem


def test_a_testbox_that_is_entered_by_reboot_needs_no_kexec() -> None:
    driver = SshDriver(host="x", key="/k", known_hosts="/h", enter="reboot")
    assert (
        preflight.problems(
            "box", driver, home(kexec="", lockdown="integrity", kexec_disabled="1"), 1_000_000
        )
        == []
    )


def test_unknown_space_is_not_taken_for_none() -> None:
    preflight.check_space("box", home(space_kb="", available_kb=""), 16 << 20, 64 << 20, DRIVER)
    with pytest.raises(InfraError, match="in its memory"):
        preflight.check_space("box", home(available_kb="90000"), 16 << 20, 64 << 20, DRIVER)


def test_a_testbox_of_another_architecture_than_the_controller_is_reported() -> None:
    assert preflight.other_machine("box", home(), "x86_64") == ""
    assert "use a controller with the architecture" in preflight.other_machine(
        "box", home(machine="aarch64"), "x86_64"
    )


# --- the power switch


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("Chassis Power is on\n", "on"),
        ("Chassis Power is off\n", "off"),
        ("running\n\n", "on"),
        ("shut off", "off"),
        ('{"PowerState": "On"}', "on"),
        ("power for place n100 is off", "off"),
        ("none of your business", "unknown"),
        ("", "unknown"),
    ],
)
def test_the_words_of_many_switches_are_understood(said: str, state: str) -> None:
    assert power_switch.state(said) == state


def test_without_cycle_a_switch_goes_off_and_then_on(tmp_path: Path) -> None:
    def note(word: str) -> tuple[str, ...]:
        return (sys.executable, "-c", f"open({str(tmp_path / 'log')!r}, 'a').write('{word} ')")

    power_switch.cycle(Power(on=note("on"), off=note("off")), pause=0)
    power_switch.cycle(Power(cycle=note("cycle")), pause=0)
    assert (tmp_path / "log").read_text() == "off on cycle "


def test_a_power_command_that_fails_is_quoted() -> None:
    with pytest.raises(InfraError, match=r"'cycle' .* failed with status 3: no such outlet"):
        power_switch.cycle(Power(cycle=("sh", "-c", "echo no such outlet; exit 3")))


def test_a_console_command_that_ends_is_restarted(tmp_path: Path) -> None:
    sink = tmp_path / "console"
    with beside(power_switch.console_argv(Console(command=("echo", "it's a line"))), sink) as child:
        give_up = time.monotonic() + 30
        while sink.read_text().count("it's a line\n") < 2 and time.monotonic() < give_up:
            time.sleep(0.05)
    assert sink.read_text().count("it's a line\n") >= 2
    assert child.poll() is not None


# --- the image


def bzimage(config: bytes | None, pack: Callable[[bytes], bytes] = gzip.compress) -> bytes:
    """As little of a bzImage as tells its machine and its configuration
    (Documentation/x86/boot.rst)."""
    body = b"\x7fELF kernel" + (
        b"IKCFG_ST" + gzip.compress(config) + b"IKCFG_ED" if config is not None else b""
    )
    payload = pack(body)
    head = bytearray(1024)
    head[0x1F1], head[0x202:0x206] = 1, b"HdrS"
    struct.pack_into("<II", head, 0x248, 0, len(payload))
    return bytes(head) + payload


def test_a_configuration_inside_an_image_is_found() -> None:
    config = kernel.embedded(bzimage(b"CONFIG_VIRTIO_NET=y\nCONFIG_E1000E=m\n"))
    assert config is not None
    assert missing(["VIRTIO_NET", "E1000E", "IGB"], config) == ["E1000E", "IGB"]


def test_an_image_without_its_configuration_tells_none() -> None:
    for image in (bzimage(None), b"", b"HdrS" * 400, bzimage(b"x" * 999)[:1070]):
        assert kernel.embedded(image) is None


@pytest.mark.parametrize(("dictionary", "found"), [(32 << 20, True), (1 << 30, False)])
def test_unpacking_an_image_takes_memory_for_the_dictionary_of_linux_and_not_for_any(
    dictionary: int, found: bool
) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": dictionary}]
    image = bzimage(b"CONFIG_X=y\n", lambda body: lzma.compress(body, filters=filters))
    assert kernel.embedded(image) == ("CONFIG_X=y\n" if found else None)


def test_an_image_tells_its_machine() -> None:
    assert kernel.machine_of(bzimage(None)) == "x86_64"
    assert kernel.machine_of(bytes(56) + b"ARM\x64") == "aarch64"
    assert kernel.machine_of(b"") is None


# --- the guest, and ways into it


def test_the_guest_s_scripts_are_scripts(tmp_path: Path) -> None:
    made = {
        entry.path: entry.content
        for entry in guest.entries(
            "t", "s", "network", guest.NetworkCard(mac="m", address="a", gateway="g"), 22
        )
    }
    assert b"@" not in b"".join(made.values()).replace(b"$@", b"")
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    assert shellcheck is not None
    for name in ("ssh/init", "ssh/serve", "ssh/lease"):
        path = tmp_path / Path(name).name
        path.write_bytes(made[name])
        subprocess.run(["busybox", "sh", "-n", path], check=True)
        subprocess.run([shellcheck, "-s", "dash", "-e", "SC1091,SC2154,SC3045", path], check=True)


def test_what_a_boot_is_given_is_quoted() -> None:
    (script,) = [
        entry.content.decode()
        for entry in guest.entries("t", "s; reboot", "console", None, 22)
        if entry.path == "ssh/boot"
    ]
    assert "secret='s; reboot'\n" in script


def test_the_command_line_reaches_the_kernel_whole() -> None:
    nasty = "console=ttyS0 dyndbg=\"file 'x' +p\" a$b"
    for text in (
        enter.kexec_load("/run/k", "/run/i", nasty),
        preflight.quoted(["once", "/run/k", nasty]),
    ):
        script = text.replace("kexec -c", "printf '%s\\n'").replace("once", "printf '%s\\n'")
        assert nasty in subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout


def test_the_places_of_a_reboot_command_are_filled_in() -> None:
    driver = SshDriver(
        host="x",
        key="/k",
        known_hosts="/h",
        enter="reboot",
        reboot_command=("once", "k={kernel}", "{initrd}", "{cmdline}"),
    )
    assert list(enter.once(driver, "/run/k", "/run/i", "a b")) == [
        "once",
        "k=/run/k",
        "/run/i",
        "a b",
    ]
