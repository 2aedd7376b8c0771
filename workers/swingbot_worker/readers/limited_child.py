"""The frame of a child that reads what a build or a boot left.

A request comes on stdin and names the limits and the open files; the answer is one JSON document,
written to one of these files.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from typing import Any, Final

from swingbot_worker import limits

# Files are mapped, too, and may have 2 GB.
_MAPPED_BYTES: Final = 4_096 << 20

Task = Callable[[dict[str, Any]], dict[str, Any]]


class Refused(Exception):
    """The files cannot be read; the message says why. It becomes the answer."""


def serve(task: Task) -> None:
    """Read a request from stdin, do `task`, and write its answer."""
    request = json.load(sys.stdin)
    _limit(request["memory_bytes"], request["cpu_seconds"])
    try:
        answer = task(request["task"])
    except Refused as error:
        answer = _refused(str(error))
    except UnicodeDecodeError:
        answer = _refused("a text file that is not valid UTF-8")
    except (MemoryError, RecursionError):
        answer = {"stopped": "reading it needs too much memory"}
    except OSError as error:
        answer = _refused(f"it cannot be read ({error})")
    with open(request["answer"], "w") as file:
        json.dump(answer, file)


def _refused(why: str) -> dict[str, Any]:
    return {"refused": why[: limits.ERROR_CHARACTERS]}


def _limit(memory_bytes: int, cpu_seconds: int) -> None:
    for what, most in (
        (resource.RLIMIT_AS, memory_bytes + _MAPPED_BYTES),
        (resource.RLIMIT_DATA, memory_bytes),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, limits.READER_FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        above = resource.getrlimit(what)[1]  # the walls may have set a lower one
        least = most if above == resource.RLIM_INFINITY else min(most, above)
        resource.setrlimit(what, (least, least))
