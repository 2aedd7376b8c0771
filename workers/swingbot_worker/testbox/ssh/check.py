"""Has a bare-metal testbox all that it needs? Asked before its first order, and whenever something is odd; nothing on it is changed."""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from swingbot_jobs.testbox import tuning
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_worker import InfraError
from swingbot_worker.testbox.ssh import enter, idle_system, power_switch, preflight
from swingbot_worker.testbox.ssh.link import Link
from swingbot_worker.testbox.ssh.process import beside

# What an order brings, about: a root file system with all shipped programs, and a distribution's kernel. Bytes.
INITRD, KERNEL = 64 << 20, 16 << 20
MARKER_SECONDS = 20.0
# A box whose memory or processors differ by more than this from its file is another box; firmware and kernel keep some memory to themselves.
MEMORY_SHARE = 0.85


def check(box: Testbox, driver: SshDriver) -> list[TuningFinding]:
    """What was looked at, in the order of dependence: if SSH does not work, what needs it is not looked at."""
    found = [*_power(driver)]
    link = Link(box.name, driver)
    try:
        link.check_files()
        home = idle_system.answer(link.run(idle_system.question(driver.workspace)))
    except InfraError as error:
        return [
            *found,
            TuningFinding(
                what="SSH reaches the box", ok=False, found="no answer that counts", do=str(error)
            ),
        ]
    found.append(
        TuningFinding(
            what="SSH reaches the box",
            ok=True,
            found=f"{driver.user}@{driver.host} port {driver.port}, host key as pinned",
        )
    )
    found += [*_system(box, driver, home), *_console(box, driver, link)]
    if box.tuning is not None:
        found += tuning.findings(box.tuning, link.run(tuning.probe(box.tuning)))
    return found


def _power(driver: SshDriver) -> Iterator[TuningFinding]:
    what = "the power switch tells its state"
    if driver.power is None:
        yield TuningFinding(
            what="there is a power switch",
            ok=False,
            found="power: none",
            do="without one a kernel that hangs takes the box until somebody goes there",
        )
    elif not driver.power.status:
        yield TuningFinding(
            what=what,
            ok=False,
            found="no status command",
            do="add power.status, so that a pulled plug is not taken for a kernel that hangs",
        )
    else:
        try:
            state = power_switch.status(driver.power)
            yield TuningFinding(
                what=what,
                ok=state == "on",
                found=state,
                do="" if state == "on" else "switch the box on, or see what power.status prints",
            )
        except InfraError as error:
            yield TuningFinding(what=what, ok=False, found="it fails", do=str(error))


def _system(
    box: Testbox, driver: SshDriver, home: idle_system.IdleSystemReport
) -> Iterator[TuningFinding]:
    why = idle_system.strange(home, driver)
    yield TuningFinding(
        what="it is in its idle system",
        ok=why is None,
        found=f"Linux {home['release']}",
        do=f"reboot it: {why}" if why else "",
    )
    wanted = os.uname().machine
    yield TuningFinding(
        what="its architecture is this host's",
        ok=home["machine"] == wanted,
        found=home["machine"],
        do=preflight.other_machine(box.name, home, wanted),
    )
    wrong = preflight.problems(box.name, driver, home, time.time())
    for what, word, told in (
        ("we are root there", "root", f"uid {home['uid']}"),
        ("its clock is right", "clock", _clock(home)),
        ("it can kexec", "kexec", home["kexec"] or "no kexec"),
        ("no lockdown", "locked", home["lockdown"] or "none"),
    ):
        if driver.enter == "kexec" or word not in ("kexec", "locked"):
            do = next((sentence for sentence in wrong if word in sentence), "")
            yield TuningFinding(what=what, ok=not do, found=told, do=do)
    yield _space(box, driver, home)
    yield from _size(box, home)
    if driver.results == "network":
        sentence = next((sentence for sentence in wrong if "network card" in sentence), "")
        yield TuningFinding(
            what="its network card is known",
            ok=not sentence,
            found=f"{home['card']} {home['mac']} {home['address']}".strip(),
            do=sentence,
        )
        yield _kconfig(driver, home)


def _clock(home: idle_system.IdleSystemReport) -> str:
    clock = home.number("clock")
    return "not told" if clock is None else f"{clock - time.time():+.0f} s"


def _space(box: Testbox, driver: SshDriver, home: idle_system.IdleSystemReport) -> TuningFinding:
    told = f"{(home.number('space_kb') or 0) >> 10} MiB in {driver.workspace} ({home['space_kind']}), {(home.number('available_kb') or 0) >> 10} MiB of memory"
    try:
        preflight.check_space(box.name, home, KERNEL, INITRD, driver)
    except InfraError as error:
        return TuningFinding(
            what="kernel and root file system fit into its memory",
            ok=False,
            found=told,
            do=str(error),
        )
    on_disk = home["space_kind"] not in ("tmpfs", "ramfs")
    do = (
        "take a workspace in a tmpfs, as /run/swingbot: no disk is to be touched" if on_disk else ""
    )
    return TuningFinding(
        what="kernel and root file system fit into its memory", ok=not on_disk, found=told, do=do
    )


def _size(box: Testbox, home: idle_system.IdleSystemReport) -> Iterator[TuningFinding]:
    cpus, memory = home.number("nr_cpu"), home.number("memory_kb")
    do = f"set nr_cpu and memory_mb in {box.name}.yaml to what it has, or see why it has lost some"
    yield TuningFinding(
        what=f"it has {box.nr_cpu} CPUs",
        ok=cpus == box.nr_cpu,
        found=str(cpus),
        do="" if cpus == box.nr_cpu else do,
    )
    there = (
        memory is not None
        and MEMORY_SHARE * box.memory_mb <= memory / 1024 <= box.memory_mb / MEMORY_SHARE
    )
    yield TuningFinding(
        what=f"it has {box.memory_mb} MiB of memory",
        ok=there,
        found=f"{(memory or 0) >> 10} MiB",
        do="" if there else do,
    )


def _kconfig(driver: SshDriver, home: idle_system.IdleSystemReport) -> TuningFinding:
    told = ", ".join(driver.kconfig_needed) or "no list"
    do = (
        ""
        if driver.kconfig_needed
        else f"list in ssh.kconfig_needed what drives {home['card'] or 'its card'} (ethtool -i there), with what that depends on"
    )
    return TuningFinding(
        what="what its card needs in the kernel's configuration is listed",
        ok=not do,
        found=told,
        do=do,
    )


def _console(box: Testbox, driver: SshDriver, link: Link) -> Iterator[TuningFinding]:
    what = "the console shows what its kernel prints"
    if driver.console is None:
        yield TuningFinding(
            what=what,
            ok=False,
            found="console: none",
            do="without one a panic cannot be told from a reset; a serial line or SOL is worth having",
        )
        return
    token = secrets.token_hex(4)
    with tempfile.TemporaryDirectory(prefix="swingbot-check-") as work:
        raw = Path(work, "console")
        try:
            with beside(power_switch.console_argv(driver.console), raw):
                time.sleep(1.0)
                link.run(enter.marker(token))
                give_up, seen = time.monotonic() + MARKER_SECONDS, False
                while not seen and time.monotonic() < give_up:
                    time.sleep(0.2)
                    seen = f"marker {token}".encode() in raw.read_bytes()
        except InfraError as error:
            yield TuningFinding(what=what, ok=False, found="it cannot be read", do=str(error))
            return
        told = (
            f"a line that we wrote came back, with {raw.stat().st_size} bytes in all"
            if seen
            else f"{raw.stat().st_size} bytes, not what we wrote"
        )
        yield TuningFinding(
            what=what,
            ok=seen,
            found=told,
            do="" if seen else preflight.dead_console(box.name, raw.with_suffix(".err")),
        )
