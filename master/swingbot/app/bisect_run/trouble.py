"""What ends a run early, each with one sentence for the person who started it."""

from __future__ import annotations


class Trouble(Exception):
    """We cannot go on: CMD misbehaves, git fails, the journal cannot be written. What was measured is kept. Exit status 1."""


class Misuse(Exception):
    """What was asked for cannot be done as written. Exit status 2."""
