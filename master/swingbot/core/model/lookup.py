"""What every way of looking something up says when it is not there."""

from __future__ import annotations


class NotFound(LookupError):
    """Nothing has the id or name that was asked for; the message is one sentence for the one who asked."""
