"""Errors that end a run early; each message is one sentence for the user."""

from __future__ import annotations


class RunError(Exception):
    """The run cannot continue: CMD misbehaves, git fails or the journal cannot be written.

    Completed measurements are kept. Exit status 1.
    """


class UsageError(Exception):
    """Invalid arguments. Exit status 2."""
