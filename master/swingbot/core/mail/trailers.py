"""People whom a commit names in the trailers of its message; its author wrote them."""

from __future__ import annotations

import re
from typing import Final

from swingbot.core import limits
from swingbot.core.mail.addresses import plain_address

# Signed-off-by, Reviewed-by, Co-developed-by ... and Cc.
_TRAILER: Final = re.compile(r"(?:[A-Za-z][A-Za-z-]{0,40}-by|Cc): *(?P<who>\S.{0,300})", re.I)


def trailer_lines(message: str) -> list[str]:
    """Return the lines of the last paragraph of a commit message that are no longer than a
    header.
    """
    last = message[-limits.COMMIT_MESSAGE_CHARACTERS :].rstrip().split("\n\n")[-1]
    return [line.strip() for line in last.split("\n") if len(line) <= limits.MAIL_HEADER_BYTES]


def people_in_trailers(message: str) -> tuple[str, ...]:
    """Return the bare addresses in the last paragraph of a commit message, each once.

    At most limits.TRAILER_PEOPLE are returned, because the message is not trusted.
    """
    people: dict[str, str] = {}
    for line in trailer_lines(message):
        match = _TRAILER.fullmatch(line)
        address = _address(match["who"]) if match else None
        if address is not None:
            people.setdefault(address.lower(), address)
    return tuple(people.values())[: limits.TRAILER_PEOPLE]


def _address(who: str) -> str | None:
    """Return the address without the remark after it: `<stable@vger.kernel.org> # 6.1`."""
    return plain_address(who.partition("#")[0])
