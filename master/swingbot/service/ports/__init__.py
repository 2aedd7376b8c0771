"""Protocols for everything that use cases need from outside, implemented by the adapters and the
database.

Each module has one noun of the database, gathered by `transaction.Transaction`; `lab.Lab` is
everything that a use case can reach. Only the errors are imported at once: with all that the
protocols name, they take longer to import than a command takes that asks a service elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from swingbot.service.ports.failures import CannotRevert, GitError, RequestError

if TYPE_CHECKING:
    from swingbot.service.ports.lab import (
        Artifacts,
        Catalogue,
        Clock,
        Git,
        Lab,
        LabSettings,
        QuarantinedGit,
        Tools,
    )
    from swingbot.service.ports.transaction import Transaction
else:

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from swingbot.service.ports import lab, transaction

        return getattr(transaction if name == "Transaction" else lab, name)


__all__ = [
    "Artifacts",
    "CannotRevert",
    "Catalogue",
    "Clock",
    "Git",
    "GitError",
    "Lab",
    "LabSettings",
    "QuarantinedGit",
    "RequestError",
    "Tools",
    "Transaction",
]
