"""The testboxes of a lab: those that have a file, and those whose file was removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from swingbot_jobs.testbox.definition import Testbox


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTestboxes:
    """Testboxes by name, as one round or request sees them.

    Orders are placed and handed out on `present` testboxes only. Boots of `remembered` ones are still judged, and work that
    waits for one is still followed until it is over.
    """

    present: Mapping[str, Testbox]  # has a file
    # as the last file described it; nobody can boot it
    remembered: Mapping[str, Testbox] = field(default_factory=dict)

    def known(self, name: str) -> Testbox:
        """A present testbox, else a remembered one. Raises KeyError."""
        return self.present[name] if name in self.present else self.remembered[name]
