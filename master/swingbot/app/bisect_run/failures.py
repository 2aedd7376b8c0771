"""What ends a run early, each with one sentence for the person who started it."""

from __future__ import annotations


class RunError(Exception):
    """We cannot go on: CMD misbehaves, git fails, the journal cannot be written. What was measured is kept. Exit status 1."""


class UsageError(Exception):
    """What was asked for cannot be done as written. Exit status 2."""
