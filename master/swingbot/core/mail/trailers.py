"""People whom a commit names in the trailers of its message; its author wrote them."""

from __future__ import annotations

import re
from typing import Final

from swingbot.core import limits
from swingbot.core.mail.addresses import plain_address

# Signed-off-by, Reviewed-by, Co-developed-by ... and Cc.
_TRAILER: Final = re.compile(r"(?:[A-Za-z][A-Za-z-]{0,40}-by|Cc): *(?P<who>\S.{0,300})", re.I)
_REMARK: Final = re.compile(r" *#.*$")  # Cc: <stable@vger.kernel.org> # 6.1


def people_in_trailers(message: str) -> tuple[str, ...]:
    """Return the bare addresses in the last paragraph of a commit message, each once.

    At most limits.TRAILER_PEOPLE are returned, because the message is not trusted.
    """
    people: dict[str, str] = {}
    for line in message[-limits.COMMIT_MESSAGE_CHARACTERS :].rstrip().split("\n\n")[-1].split("\n"):
        match = _TRAILER.fullmatch(line.strip())
        address = plain_address(_REMARK.sub("", match["who"])) if match else None
        if address is not None:
            people.setdefault(address.lower(), address)
    return tuple(people.values())[: limits.TRAILER_PEOPLE]
