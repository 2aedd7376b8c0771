"""`swingbot describe`: Buildbot's configuration as YAML.

The output is a golden, so that a change of configuration is reviewed by its effect.
"""

from __future__ import annotations

from typing import Any

import yaml

from swingbot.app import buildmaster
from swingbot.app.settings import Settings
from swingbot_jobs.testbox.definition import Testbox

PLAIN_FACTS = ("tbox_group", "model", "nr_cpu", "memory_mb", "repeatable", "boot_seconds", "label")


_FILE_LOCK = "file lock on the worker's host: one boot at a time"


def describe(settings: Settings) -> str:
    """Describe builders, schedulers, workers, locks and testboxes.

    Raises TestboxError for an invalid testbox file.
    """
    testboxes = buildmaster.testboxes(settings)
    document = {
        "builders": _builders(settings),
        "schedulers": {
            buildmaster.SCHEDULER: {
                "builders": list(buildmaster.builders(settings)),
                "started_by": "the dispatcher, one buildset per dispatch",
            }
        },
        "workers": {name: {"max_builds": 1} for name in buildmaster.worker_names(settings)},
        "locks": {name: _locks(testbox) for name, testbox in sorted(testboxes.items())},
        "testboxes": {name: _facts(testbox) for name, testbox in sorted(testboxes.items())},
    }
    return str(yaml.safe_dump(document, sort_keys=False, width=160, allow_unicode=True))


def _builders(settings: Settings) -> dict[str, Any]:
    return {
        name: {
            "workers": entry["workers"],
            "collapse_requests": False,
            "deadline_seconds": entry["deadline_seconds"],
            "steps": ["order", "attempt"],
        }
        for name, entry in buildmaster.builders(settings).items()
    }


def _locks(testbox: Testbox) -> list[str]:
    """Locks held by a boot of `testbox`."""
    host = (
        ["exclusive use of the host: no kernel build and no other such boot at the same time"]
        if testbox.virtual and not testbox.repeatable
        else []
    )
    row = (
        f"row in table lease, together with {' and '.join(testbox.nodes)}: one attempt at a time"
        if testbox.nodes
        else "row in table lease: one attempt at a time"
    )
    file = (
        f"file locks of {' and '.join(testbox.nodes)} on the worker's host, all or none: one boot"
        " at a time"
        if testbox.nodes
        else _FILE_LOCK
    )
    return [row, file, *host]


def _facts(testbox: Testbox) -> dict[str, Any]:
    facts = testbox.to_json()
    return {"driver": facts["driver"], facts["driver"]: facts[facts["driver"]]} | {
        key: facts[key] for key in PLAIN_FACTS
    }
