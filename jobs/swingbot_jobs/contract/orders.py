"""Orders and outcomes: the versioned contract between master and workers (`jobs/schema/`).

Both sides call `check_order` and `check_outcome` on whatever crosses the line, because a file
from outside may be wrong or hostile. Documents stay plain JSON objects here; each side loads
them into types of its own.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from swingbot_jobs import resources

if TYPE_CHECKING:
    import jsonschema

# Phases that a worker reports for its testbox during an attempt: entering the kernel under test,
# running it, returning, back in its own system, unreachable.
PHASES = ("booting", "running", "returning", "idle", "lost")
# Names the host that drives a testbox, in each request of an executor. A testbox has one at a time.
CONTROLLER_HEADER = "X-Swingbot-Controller"
# Purpose of a boot whose order names none, as in old orders: comparisons and bisection searches.
SEARCH = "search"
# Purpose of the boots of a long screening, which take turns between the ways into the kernel.
SCREEN = "screen"
SCHEMA_DIR = resources.folder("jobs") / "schema"
_OUTCOME = "outcome-1.schema.json"

OrderKind = Literal["build", "boot"]

# Results of an attempt. Anything in which two kernels could differ has its own status;
# `infra` is an infrastructure failure; its fault is `order` if no retry can succeed there, and
# `limit` if a limit of ours ended the work.
BuildStatus = Literal["built", "failed"]
BootOutcome = Literal["up", "panicked", "oopsed", "hung"]
Fault = Literal["order", "limit"]
OutcomeStatus = BuildStatus | BootOutcome | Literal["infra"]

Document = dict[str, Any]


class ContractError(ValueError):
    """A document does not match its schema; the message says where and why."""


_PHASE = {
    "type": "object",
    "required": ["phase", "why"],
    "additionalProperties": False,
    "properties": {
        "phase": {"enum": list(PHASES)},
        "why": {"type": "string", "maxLength": 2000},
        "boot_id": {"type": ["string", "null"], "maxLength": 100},
    },
}


def prepare_to_check() -> None:
    """Load what `check_outcome` needs, while something else is waited for."""
    _validator(_OUTCOME)


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    # 0.14 s of CPU time, which an executor must not spend before its boot
    import jsonschema

    return jsonschema.Draft202012Validator(json.loads((SCHEMA_DIR / name).read_text()))


def _check(name: str, what: str, document: object) -> Document:
    validator = _validator(name)
    from jsonschema.exceptions import best_match

    error = best_match(validator.iter_errors(document))
    if error is not None:
        where = "/".join(str(part) for part in error.absolute_path) or "top level"
        raise ContractError(f"{what}: {where}: {error.message[:300]}")
    assert isinstance(document, dict)
    return document


def check_order(document: object) -> Document:
    """Return `document` if it is a version 1 order; raise ContractError otherwise."""
    return _check("order-1.schema.json", "order", document)


def check_outcome(document: object) -> Document:
    """Return `document` if it is a version 1 outcome; raise ContractError otherwise."""
    return _check(_OUTCOME, "outcome", document)


def check_phase(document: object) -> Document:
    """Return `document` if it is a valid testbox state, `{"phase", "why", "boot_id"}`.

    Raise ContractError otherwise.
    """
    import jsonschema

    error = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(_PHASE).iter_errors(document)
    )
    if error is not None:
        raise ContractError(f"phase: {error.message[:300]}")
    assert isinstance(document, dict)
    return document
