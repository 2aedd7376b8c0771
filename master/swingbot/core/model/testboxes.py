"""The testboxes of a lab, with and without a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from swingbot_jobs.testbox.definition import Testbox


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTestboxes:
    """Testboxes by name, as of one round or request.

    Orders are placed and handed out on `present` testboxes only. Boots of `remembered` ones are
    still judged, and work that waits for one is followed until it is over.
    """

    present: Mapping[str, Testbox]  # with a file
    # as described by the removed file; cannot be booted
    remembered: Mapping[str, Testbox] = field(default_factory=dict)
    # seconds that a boot with its runs may take where the testbox's file says nothing; a request
    # for a longer one is refused
    boot_ceiling: float = inf

    def known(self, name: str) -> Testbox:
        """Return a present or remembered testbox. Raises KeyError."""
        return self.present[name] if name in self.present else self.remembered[name]
