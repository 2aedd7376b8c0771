"""The longest boot that may be requested on a testbox."""

from __future__ import annotations

from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.text.numbers import duration


def too_long(testboxes: KnownTestboxes, name: str, seconds: float) -> str | None:
    """Return why a boot of `seconds` may not be requested on a testbox; None if it may."""
    own = testboxes.known(name).longest_boot_seconds
    if seconds <= (testboxes.boot_ceiling if own is None else own):
        return None
    if own is None:
        longest = duration(testboxes.boot_ceiling)
        return f"the limit of the lab is {longest} (boot.deadline_seconds)"
    return f"the limit of this testbox is {duration(own)} (longest_boot_seconds in its file)"
