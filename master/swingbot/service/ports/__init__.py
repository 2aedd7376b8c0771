"""What the use cases need from the outside, as protocols; the adapters and the database provide them.

One module for each noun that the database remembers, gathered by `transaction.Transaction`; `lab.Lab` is all that a use case may reach.
"""

from __future__ import annotations

from swingbot.service.ports.lab import (
    Artifacts,
    CannotRevert,
    Git,
    GitError,
    Lab,
    Policies,
    RequestError,
)
from swingbot.service.ports.transaction import Transaction

__all__ = [
    "Artifacts",
    "CannotRevert",
    "Git",
    "GitError",
    "Lab",
    "Policies",
    "RequestError",
    "Transaction",
]
