"""Protocols for everything that use cases need from outside, implemented by the adapters and the
database.

Each module has one noun of the database, gathered by `transaction.Transaction`; `lab.Lab` is
everything that a use case can reach.
"""

from __future__ import annotations

from swingbot.service.ports.lab import (
    Artifacts,
    CannotRevert,
    Catalogue,
    Clock,
    Git,
    GitError,
    Lab,
    LabSettings,
    QuarantinedGit,
    RequestError,
    Tools,
)
from swingbot.service.ports.transaction import Transaction

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
