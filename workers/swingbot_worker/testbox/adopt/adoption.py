"""Survey a machine, find its BMC and console, and propose what its testbox file needs."""

from __future__ import annotations

import ipaddress
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from swingbot_jobs.contract.kconfig import load_kconfigs
from swingbot_jobs.testbox import tuning
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.file import load
from swingbot_jobs.testbox.ssh import Console, SshDriver
from swingbot_worker import InfraError
from swingbot_worker.site import Site
from swingbot_worker.testbox.adopt import find_console, kernel_proposal, survey
from swingbot_worker.testbox.adopt.find_console import ConsoleSearch
from swingbot_worker.testbox.adopt.survey import MachineSurvey
from swingbot_worker.testbox.adopt.testbox_text import Adoption, Bmc
from swingbot_worker.testbox.ssh import power_switch, preflight
from swingbot_worker.testbox.ssh.link import Link

SURVEY_SECONDS: Final = 120.0
BMC_USER: Final = "swingbot"
# Of the memory that a file states: another kernel, or firmware, keeps that much more or less.
_MEMORY_SHARE: Final = 0.02


class NotReady(Exception):
    """The machine answers, but cannot be a testbox as it is; one sentence for each reason."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("\n".join(sentences))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the operator gave."""

    bmc: str = ""
    bmc_user: str = BMC_USER
    bmc_password_file: str = ""
    console: tuple[str, ...] = ()


def adopt(
    name: str, driver: SshDriver, wishes: Wishes, site: Site, tell: Callable[[str], None]
) -> Adoption:
    """Survey the machine and find its console, without changing anything on it.

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
    tunings = tuning.load_all(site.workers / "tuning")
    made = Adoption(
        name=name,
        driver=driver,
        survey=seen,
        kernel=kernel_proposal.propose(seen, load_kconfigs(site.kconfig)),
        without=kernel_proposal.cannot_have(seen, tunings),
        tuned=kernel_proposal.QUIET in tunings,
        bmc=_bmc(name, seen, wishes),
        power_trouble="",
        search=ConsoleSearch(),
    )
    if made.bmc is not None:
        tell(f"asking its BMC {made.bmc.address} for the power")
        made = replace(made, power_trouble=_power_trouble(made.bmc))
    sources = _sources(made, wishes, site)
    if sources:
        seconds = find_console.OPEN_SECONDS + find_console.ARRIVE_SECONDS
        tell(f"trying consoles ({len(sources)}), at most {seconds:.0f} s")
    return replace(made, search=find_console.search(link, seen, sources))


def _bmc(name: str, seen: MachineSurvey, wishes: Wishes) -> Bmc | None:
    address = wishes.bmc or seen.bmc_address
    file = wishes.bmc_password_file or f"/etc/swingbot/secrets/{name}-bmc"
    return Bmc(address=address, user=wishes.bmc_user, password_file=file) if address else None


def _power_trouble(reach: Bmc) -> str:
    """Return why the BMC's power switch cannot be used; empty if it reports that power is on."""
    if not os.access(reach.password_file, os.R_OK):
        return f"{reach.password_file} cannot be read"
    try:
        state = power_switch.status(reach.power)
    except InfraError as error:
        return str(error)
    return "" if state == "on" else f"it reports that the power is {state}"


def _sources(made: Adoption, wishes: Wishes, site: Site) -> list[Console]:
    """Return the consoles to try: the operator's, else the BMC's and the controller's devices."""
    if wishes.console:
        return [Console(command=wishes.console)]
    files = sorted((site.workers / "testboxes").glob("*.yaml"))
    others = [path.read_text() for path in files if path.stem != made.name]
    devices = find_console.devices(find_console.DEVICES, others)
    sol = [made.bmc.console] if made.bmc and not made.power_trouble else []
    return [*sol, *(Console(device=str(path), baud=made.survey.speed) for path in devices)]


def driver_for(name: str, **ssh: str | int) -> SshDriver:
    """Return how the machine is reached until more is known. Raises TestboxError for bad words."""
    table = {"name": name, "tbox_group": "new", "driver": "ssh", "model": "new", "nr_cpu": 1}
    how = {**ssh, "enter": "kexec", "console": "none", "power": "none", "results": "network"}
    text = json.dumps({**table, "memory_mb": 64, "ssh": how})
    driver = load(text, f"{name}.yaml").driver
    assert isinstance(driver, SshDriver)
    return replace(driver, results="console")  # what results need is a matter of `check`


def name_of(host: str, out: Path | None) -> str:
    """Return the testbox's name: that of the file, else the first label of the host's name."""
    if out is not None:
        return out.stem
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.partition(".")[0]
    return host.replace(":", "-")


def differences(file: Testbox, made: Testbox) -> list[str]:
    """Return in what the machine differs from its file: processors, nodes, memory."""
    said = {
        "nr_cpu": (file.nr_cpu, made.nr_cpu),
        "nr_node": (file.nr_node or made.nr_node, made.nr_node),
        "memory_mb": (file.memory_mb, made.memory_mb),
    }
    near = abs(file.memory_mb - made.memory_mb) <= _MEMORY_SHARE * file.memory_mb
    return [
        f"{key} is {now} on the machine, and {before} in the file"
        for key, (before, now) in said.items()
        if before != now and not (key == "memory_mb" and near)
    ]
