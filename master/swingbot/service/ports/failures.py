"""Errors that the ports raise, apart from the ports: who only catches them imports nothing else."""

from __future__ import annotations


class GitError(Exception):
    """A git operation failed; the message names the operation and git's reason."""


class CannotRevert(GitError):
    """A commit cannot be reverted on a tip; the message gives the reason and names conflicting
    files.
    """


class RequestError(ValueError):
    """A request is invalid; the message says what to change, `key` which part of the request."""

    def __init__(self, message: str, *, key: str | None = None) -> None:
        super().__init__(message)
        self.key = key
