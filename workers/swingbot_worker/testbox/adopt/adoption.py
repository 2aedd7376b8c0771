"""Survey a machine, find its BMC and console, and propose what its testbox file needs."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swingbot_jobs.codec import typed
from swingbot_jobs.contract.kconfig import load_kconfigs
from swingbot_jobs.testbox import tuning
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.file import load_file
from swingbot_jobs.testbox.ssh import Console, SshDriver
from swingbot_jobs.yaml_lines import LineError
from swingbot_worker import InfraError
from swingbot_worker.site import Site
from swingbot_worker.testbox.adopt import find_console, kernel_proposal, survey
from swingbot_worker.testbox.adopt.survey import MachineSurvey
from swingbot_worker.testbox.adopt.testbox_text import Adoption, Bmc
from swingbot_worker.testbox.ssh import power_switch, preflight
from swingbot_worker.testbox.ssh.link import Link

SURVEY_SECONDS: Final = 120.0
BMC_USER: Final = "swingbot"
# Share of the memory in the file by which that of the machine may differ: kernels and firmware
# reserve different amounts.
_MEMORY_SHARE: Final = 0.02


class NotReady(Exception):
    """The machine answers, but cannot be a testbox as it is; one sentence for each reason."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("\n".join(sentences))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionInput:
    """What the operator knows of the machine; what is empty is found out."""

    bmc: str = ""  # its address
    bmc_user: str = BMC_USER
    bmc_password_file: str = ""
    console: tuple[str, ...] = ()


def adopt(
    name: str, driver: SshDriver, given: AdoptionInput, site: Site, tell: Callable[[str], None]
) -> Adoption:
    """Survey the machine and find its BMC and its console.

    Raises InfraError if it does not answer, and NotReady if it cannot be a testbox.
    """
    link = Link(name, driver)
    link.check_files()
    tell(f"asking {driver.host} over SSH")
    script = survey.question(driver.workspace)
    seen = survey.answer(name, link.run(script, timeout=SURVEY_SECONDS))
    problems = preflight.problems(name, driver, seen.home, time.time())
    if other := preflight.other_machine(name, seen.home, os.uname().machine):
        problems.append(other)
    if problems:
        raise NotReady(problems)
    kconfigs, tunings = load_kconfigs(site.kconfig), tuning.load_all(site.workers / "tuning")
    bmc, power_trouble = _bmc(name, seen, given), ""
    if bmc is not None:
        tell(f"asking its BMC {bmc.address} for the power")
        power_trouble = _power_trouble(bmc)
    sources = _sources(name, seen, given, None if power_trouble else bmc, site)
    if sources:
        seconds = find_console.OPEN_SECONDS + find_console.ARRIVE_SECONDS
        tell(f"trying consoles ({len(sources)}), at most {seconds:.0f} s")
    return Adoption(
        name=name,
        driver=driver,
        survey=seen,
        kernel=kernel_proposal.propose(seen, kconfigs),
        without=kernel_proposal.cannot_have(seen, tunings),
        tuned=kernel_proposal.QUIET in tunings,
        bmc=bmc,
        power_trouble=power_trouble,
        search=find_console.search(link, seen, sources),
    )


def _bmc(name: str, seen: MachineSurvey, given: AdoptionInput) -> Bmc | None:
    address = given.bmc or seen.bmc_address
    file = given.bmc_password_file or f"/etc/swingbot/secrets/{name}-bmc"
    return Bmc(address=address, user=given.bmc_user, password_file=file) if address else None


def _power_trouble(bmc: Bmc) -> str:
    """Return why the BMC's power switch cannot be used; empty if it reports that power is on."""
    if not os.access(bmc.password_file, os.R_OK):
        return f"{bmc.password_file} cannot be read"
    try:
        state = power_switch.status(bmc.power)
    except InfraError as error:
        return str(error)
    return "" if state == "on" else f"it reports that the power is {state}"


def _sources(
    name: str, seen: MachineSurvey, given: AdoptionInput, bmc: Bmc | None, site: Site
) -> list[Console]:
    """Return the consoles to try: the operator's, else those of a BMC that answers and of the
    controller's devices.
    """
    if given.console:
        return [Console(command=given.console)]
    files = sorted((site.workers / "testboxes").glob("*.yaml"))
    others = [path.read_text() for path in files if path.stem != name]
    devices = find_console.devices(find_console.DEVICES, others)
    sol = [bmc.console] if bmc else []
    return [*sol, *(Console(device=str(path), baud=seen.speed) for path in devices)]


def driver_for(**reach: str | int) -> SshDriver:
    """Return how the machine is reached until its console and power switch are known.

    Raises BadDocument for an invalid value.
    """
    return typed(SshDriver, {**reach, "enter": "kexec", "console": None, "power": None}, "ssh")


def name_of(host: str, out: Path | None) -> str:
    """Return the testbox's name: that of the file, else the first label of the host's name."""
    if out is not None:
        return out.stem
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.partition(".")[0]
    return host.replace(":", "-")


def differences(file: Testbox, machine: Testbox) -> list[str]:
    """Return how the machine differs from its file: processors, nodes, memory."""
    return [
        f"{key} is {now} on the machine, and {before} in the file"
        for key, (before, now) in _unequal(file, machine).items()
    ]


def unlike_twins(machine: Testbox, modules: str, others: Iterable[Testbox]) -> list[str]:
    """Return a sentence for each testbox of the machine's group from which the machine differs.

    `modules` are its memory modules.
    """
    found = []
    for twin in others:
        if twin.tbox_group != machine.tbox_group or not (unequal := _unequal(twin, machine)):
            continue
        parts = [f"{key} {there} there, {here} here" for key, (there, here) in unequal.items()]
        parts += [f"memory here {modules}"] if modules and "memory_mb" in unequal else []
        found.append(
            f"It differs from {twin.name} of the same tbox_group ({'; '.join(parts)}): add what is"
            " missing, or give it a group of its own."
        )
    return found


def _unequal(file: Testbox, machine: Testbox) -> dict[str, tuple[int, int]]:
    """Return the keys that differ, with their values in the file and on the machine."""
    pairs = {
        "nr_cpu": (file.nr_cpu, machine.nr_cpu),
        "nr_node": (file.nr_node or machine.nr_node or 1, machine.nr_node or 1),
        "memory_mb": (file.memory_mb, machine.memory_mb),
    }
    near = abs(file.memory_mb - machine.memory_mb) <= _MEMORY_SHARE * file.memory_mb
    return {
        key: (before, now)
        for key, (before, now) in pairs.items()
        if before != now and not (key == "memory_mb" and near)
    }


def others_in(folder: Path, name: str) -> Iterator[Testbox]:
    """Yield the testboxes of a folder except `name`; a file that is invalid is left out."""
    for path in sorted(folder.glob("*.yaml")):
        if path.stem != name:
            with contextlib.suppress(LineError, OSError, ValueError):
                yield load_file(path)
