"""Forecast how long a boot takes."""

from __future__ import annotations

from swingbot.service.ports.boots import Boots
from swingbot.service.ports.specs import Specs
from swingbot_jobs.testbox.boot_time import boot_seconds
from swingbot_jobs.testbox.definition import Testbox


def usual_boot_seconds(boots: Boots, specs: Specs, testbox: Testbox, spec: str) -> float:
    """Return the seconds of a boot: measured, or before the first one computed from its jobs."""
    seconds = boots.seconds(testbox.name, spec)
    return boot_seconds(testbox, specs.get(spec)) if seconds is None else seconds
