"""The error of all lookups."""

from __future__ import annotations


class NotFound(LookupError):
    """The requested id or name does not exist; the message is one sentence for the requester."""
