"""Propose the kernel configuration and the tuning list of a machine from its survey. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from swingbot_jobs.contract import facts
from swingbot_jobs.contract.kconfig import Kconfigs, joined, missing
from swingbot_jobs.testbox.tuning import Tuning, TuningItem
from swingbot_worker.testbox.adopt.survey import NETWORK, STORAGE, MachineSurvey

# Options of drivers that have other names than their modules (obj-m lines of the kernel's
# Makefiles); of all others the option is the module's name in capitals.
_OPTIONS: Final = {
    "ahci": "SATA_AHCI",
    "ata_piix": "ATA_PIIX",
    "bnx2": "BNX2",
    "bnxt_en": "BNXT",
    "hpsa": "SCSI_HPSA",
    "mlx4_core": "MLX4_EN",
    "mpt3sas": "SCSI_MPT3SAS",
    "nvme": "BLK_DEV_NVME",
    "smartpqi": "SCSI_SMARTPQI",
    "tg3": "TIGON3",
}
QUIET: Final = "quiet"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProposal:
    """The name of a configuration, empty if none fits, and drivers that no file of it names.

    `lacking` are pairs of a driver and its option, without CONFIG_.
    """

    kconfig: str
    lacking: tuple[tuple[str, str], ...]


def option_of(driver: str) -> str:
    """Return the option that builds a driver, without CONFIG_."""
    return _OPTIONS.get(driver, re.sub(r"[^A-Za-z0-9]", "_", driver).upper())


def propose(survey: MachineSurvey, kconfigs: Kconfigs) -> KernelProposal:
    """Return `server-<architecture>` and the fragments that have drivers of its disks and cards.

    A file has a driver if one of its lines is `CONFIG_<option>=y`.
    """
    name = f"server-{survey.home['machine']}"
    if name not in kconfigs.bases:
        return KernelProposal(kconfig="", lacking=())
    lacking = []
    for driver in (*survey.drivers(NETWORK), *survey.drivers(STORAGE)):
        option = option_of(driver)
        if not missing([option], kconfigs.text(name)):
            continue
        offers = [
            fragment
            for fragment, text in sorted(kconfigs.fragments.items())
            if not missing([option], text)
        ]
        if offers:
            name = joined(name, offers[0])
        else:
            lacking.append((driver, option))
    return KernelProposal(kconfig=name, lacking=tuple(lacking))


def cannot_have(survey: MachineSurvey, tunings: Mapping[str, Tuning]) -> tuple[str, ...]:
    """Return the items of the list `quiet` whose facts the machine does not have.

    A demand on a fact that is not known would make each run invalid. Empty without the list.
    """
    items = tunings[QUIET].items if QUIET in tunings else ()
    return tuple(item.name for item in items if not _is_known(item, survey))


def _is_known(item: TuningItem, survey: MachineSurvey) -> bool:
    known = facts.known()
    names = [known[name] for name in (*item.boot, *item.idle) if name in known]
    read = [(fact.of or fact.name) for fact in names if fact.files or fact.of]
    return all(name in survey.facts for name in read)
