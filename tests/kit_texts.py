"""The generated texts of a kit, without a service or a database."""

from __future__ import annotations

from swingbot.core.reproduce import Kit, KitText, members


def texts(kit: Kit) -> dict[str, str]:
    """The files of a kit that are generated as text, by their paths in it."""
    return {
        member.path: member.content.content.decode()
        for member in members(kit)
        if isinstance(member.content, KitText)
    }
