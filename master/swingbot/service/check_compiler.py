"""Check whether a build worker has a compiler."""

from __future__ import annotations

from swingbot.core.plan.kernel_queue import refusal
from swingbot.service.ports import RequestError
from swingbot.service.ports.compilers import Compilers


def check_compiler(compilers: Compilers, name: str) -> None:
    """Refuse a compiler that no build worker has, before anything is ordered.

    While no worker has announced its compilers, only a malformed name is refused. Raises
    RequestError, whose message lists the compilers that are available.
    """
    if (why := refusal(compilers.all(), name)) is not None:
        raise RequestError(why)
