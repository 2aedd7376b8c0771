"""Filters on tuning lists, with the same parser as the worker
(jobs/swingbot_jobs/testbox/tuning.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleFilterError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "jobs"))
from swingbot_jobs.testbox import tuning

LISTS = Path(__file__).resolve().parents[2] / "workers" / "tuning"


def _list(testbox: Mapping[str, Any], directory: str = "") -> tuning.Tuning:
    """Return the tuning list that a testbox file names, without items the testbox cannot have.

    `directory` has further lists of the operator, which take precedence.
    """
    name, without = str(testbox.get("tuning", "")), testbox.get("tuning_without", [])
    try:
        lists = tuning.load_all(LISTS) | (tuning.load_all(Path(directory)) if directory else {})
        if name not in lists:
            raise tuning.TuningError(
                f"the testbox file names the tuning list {name!r}, which does not exist;"
                f" write `tuning: NAME` with one of {', '.join(sorted(lists))}"
            )
        return lists[name].without([str(item) for item in without])
    except (tuning.TuningError, OSError, TypeError) as error:
        raise AnsibleFilterError(str(error)) from None


def wanted(testbox_file: str, directory: str = "") -> dict[str, Any]:
    """Return the required settings of the testbox's own system, from the text of its file."""
    try:
        testbox = yaml.safe_load(testbox_file)
    except yaml.YAMLError as error:
        raise AnsibleFilterError(f"the testbox file is not valid YAML: {error}") from None
    if not isinstance(testbox, dict):
        raise AnsibleFilterError("a testbox file must be a table of 'key: value' lines")
    made = _list(testbox, directory)
    return {
        "name": made.name,
        "sysctl": made.sysctl,
        "files": [{"path": path, "value": value} for path, value in made.files],
        "stopped": list(made.stopped),
        "swap_off": made.idle.get("swap_kb") == "0",
        "probe": tuning.probe(made),
    }


def complaints(printed: str, testbox_file: str, directory: str = "") -> list[str]:
    """Return deviations from the tuning list as sentences, from the output of its probe."""
    made = _list(yaml.safe_load(testbox_file), directory)
    return [
        f"{one.what}: {one.found}; {one.do}" for one in tuning.findings(made, printed) if not one.ok
    ]


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"swingbot_tuning": wanted, "swingbot_tuning_complaints": complaints}
