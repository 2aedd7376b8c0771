"""Check a bare-metal testbox without changing it.

Run this before the first order, or to diagnose a problem.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from swingbot_jobs.testbox import counters, tuning
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_worker import InfraError
from swingbot_worker.testbox.ssh import (
    bmc,
    console_rate,
    enter,
    idle_system,
    inventory,
    power_switch,
    preflight,
)
from swingbot_worker.testbox.ssh.link import Link
from swingbot_worker.testbox.ssh.process import beside

# Approximate bytes of an order: a root file system with all programs, and a distribution's kernel.
INITRD, KERNEL = 64 << 20, 16 << 20
MARKER_SECONDS = 20.0
# Minimum ratio between actual memory and testbox file; firmware and kernel reserve some memory.
MEMORY_SHARE = 0.85


def check(testbox: Testbox, driver: SshDriver) -> list[TuningFinding]:
    """Return the findings in order of dependence. Without SSH, checks that need it are skipped."""
    findings = [*_power(driver), *_inventory(driver)]
    link = Link(testbox.name, driver)
    try:
        link.check_files()
        home = idle_system.answer(link.run(idle_system.question(driver.workspace)))
    except InfraError as error:
        return [
            *findings,
            TuningFinding(
                what="SSH reaches the testbox", ok=False, found="no valid answer", do=str(error)
            ),
        ]
    findings.append(
        TuningFinding(
            what="SSH reaches the testbox",
            ok=True,
            found=f"{driver.user}@{driver.host} port {driver.port}, host key as pinned",
        )
    )
    findings += [*_system(testbox, driver, home), *_console(testbox, driver, link)]
    if testbox.tuning is not None:
        findings += tuning.findings(testbox.tuning, link.run(tuning.probe(testbox.tuning)))
    return findings


def _power(driver: SshDriver) -> Iterator[TuningFinding]:
    what = "the power switch reports its state"
    if driver.power is None:
        yield TuningFinding(
            what="there is a power switch",
            ok=False,
            found="power: none",
            do="add one: without it, a hung kernel blocks the testbox until a person resets it",
        )
    elif not driver.power.status:
        yield TuningFinding(
            what=what,
            ok=False,
            found="no status command",
            do="add power.status, to distinguish a power failure from a hung kernel",
        )
    else:
        try:
            state = power_switch.status(driver.power)
            yield TuningFinding(
                what=what,
                ok=state == "on",
                found=state,
                do=""
                if state == "on"
                else "switch the testbox on, or check the output of power.status",
            )
        except InfraError as error:
            yield TuningFinding(what=what, ok=False, found="it fails", do=str(error))


def _inventory(driver: SshDriver) -> Iterator[TuningFinding]:
    if not driver.inventory:
        return
    what = "its BMC reports the hardware"
    try:
        with inventory.asked(driver.inventory) as asked:
            found = asked.read(inventory.SECONDS + 5)
        yield TuningFinding(what=what, ok=True, found=f"{len(found)} facts", do="")
    except InfraError as error:
        yield TuningFinding(what=what, ok=False, found="no facts", do=str(error))


def _system(
    testbox: Testbox, driver: SshDriver, home: idle_system.IdleSystemReport
) -> Iterator[TuningFinding]:
    why = idle_system.strange(home, driver)
    yield TuningFinding(
        what="it is in its idle system",
        ok=why is None,
        found=f"Linux {home['release']}",
        do=f"reboot it: {why}" if why else "",
    )
    host = os.uname().machine
    yield TuningFinding(
        what="it has the architecture of this host",
        ok=home["machine"] == host,
        found=home["machine"],
        do=preflight.other_machine(testbox.name, home, host),
    )
    problems = preflight.problems(testbox.name, driver, home, time.time())
    for what, word, value in (
        ("the SSH user is root", "root", f"uid {home['uid']}"),
        ("its clock is correct", "clock", _clock(home)),
        ("it can kexec", "kexec", home["kexec"] or "no kexec command"),
        ("it is not locked down", "locked", home["lockdown"] or "none"),
    ):
        if driver.enter == "kexec" or word not in ("kexec", "locked"):
            do = next((sentence for sentence in problems if word in sentence), "")
            yield TuningFinding(what=what, ok=not do, found=value, do=do)
    yield _space(testbox, driver, home)
    yield from _size(testbox, home)
    if home["machine"] == "x86_64":
        yield TuningFinding(what="perf-stat", ok=True, found=counters.described(home["pmus"]))
    if driver.results == "network":
        sentence = next((sentence for sentence in problems if "network card" in sentence), "")
        yield TuningFinding(
            what="its network card is known",
            ok=not sentence,
            found=f"{home['card']} {home['mac']} {home['address']}".strip(),
            do=sentence,
        )
        yield _kconfig(driver, home)


def _clock(home: idle_system.IdleSystemReport) -> str:
    clock = home.number("clock")
    return "unknown" if clock is None else f"{clock - time.time():+.0f} s"


def _space(
    testbox: Testbox, driver: SshDriver, home: idle_system.IdleSystemReport
) -> TuningFinding:
    space, memory = home.number("space_kb") or 0, home.number("available_kb") or 0
    free = (
        f"{space >> 10} MiB in {driver.workspace} ({home['space_kind']}), "
        f"{memory >> 10} MiB of memory"
    )
    try:
        preflight.check_space(testbox.name, home, KERNEL, INITRD, driver)
    except InfraError as error:
        return TuningFinding(
            what="kernel and root file system fit in its memory",
            ok=False,
            found=free,
            do=str(error),
        )
    on_disk = home["space_kind"] not in ("tmpfs", "ramfs")
    do = (
        "use a workspace on a tmpfs, such as /run/swingbot: the driver must not write to a disk"
        if on_disk
        else ""
    )
    return TuningFinding(
        what="kernel and root file system fit in its memory", ok=not on_disk, found=free, do=do
    )


def _size(testbox: Testbox, home: idle_system.IdleSystemReport) -> Iterator[TuningFinding]:
    cpus, memory = home.number("nr_cpu"), home.number("memory_kb")
    do = (
        f"set nr_cpu and memory_mb in {testbox.name}.yaml to the actual values, "
        "or find out why they differ"
    )
    yield TuningFinding(
        what=f"it has {testbox.nr_cpu} CPUs",
        ok=cpus == testbox.nr_cpu,
        found=str(cpus),
        do="" if cpus == testbox.nr_cpu else do,
    )
    plausible = (
        memory is not None
        and MEMORY_SHARE * testbox.memory_mb <= memory / 1024 <= testbox.memory_mb / MEMORY_SHARE
    )
    yield TuningFinding(
        what=f"it has {testbox.memory_mb} MiB of memory",
        ok=plausible,
        found=f"{(memory or 0) >> 10} MiB",
        do="" if plausible else do,
    )


def _kconfig(driver: SshDriver, home: idle_system.IdleSystemReport) -> TuningFinding:
    options = ", ".join(driver.kconfig_needed) or "no list"
    do = (
        ""
        if driver.kconfig_needed
        else f"list in ssh.kconfig_needed the driver of {home['card'] or 'its card'} "
        "(see ethtool -i) and its dependencies"
    )
    return TuningFinding(
        what="the kernel options that its network card needs are listed",
        ok=not do,
        found=options,
        do=do,
    )


def _console(testbox: Testbox, driver: SshDriver, link: Link) -> Iterator[TuningFinding]:
    what = "the console shows kernel messages"
    if driver.console is None:
        yield TuningFinding(
            what=what,
            ok=False,
            found="console: none",
            do="add one, such as a serial line or SOL, to distinguish a panic from a reset",
        )
        return
    token = secrets.token_hex(4)
    with tempfile.TemporaryDirectory(prefix="swingbot-check-") as work:
        raw = Path(work, "console")
        try:
            with beside(power_switch.console_argv(driver.console), raw):
                time.sleep(1.0)
                link.run(enter.marker(token))
                seen = console_rate.wait_for(raw, f"marker {token}", MARKER_SECONDS)
                speed = console_rate.measure(link, raw) if seen else None
        except InfraError as error:
            yield TuningFinding(what=what, ok=False, found="it cannot be read", do=str(error))
            return
        seen_text = (
            f"the test line was received, {raw.stat().st_size} bytes in total"
            if seen
            else f"{raw.stat().st_size} bytes without the test line"
        )
        yield TuningFinding(
            what=what,
            ok=seen is not None,
            found=seen_text,
            do="" if seen is not None else _dead_console(testbox.name, raw),
        )
    if seen is not None and driver.results == "console":
        yield from console_rate.findings(testbox, link, speed)


def _dead_console(name: str, raw: Path) -> str:
    if said := bmc.held(raw):
        return (
            f"the console of testbox {name} is held by another session ({said}): wait until its"
            " order is over, or end that session"
        )
    return preflight.dead_console(name, raw.with_suffix(".err"))
