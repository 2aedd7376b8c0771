"""The confirmation of a request."""

from __future__ import annotations

import sys

import click

from swingbot.service.ports import RequestError


def confirm(*, yes: bool) -> None:
    """Ask for confirmation on a terminal. Raises RequestError if the user declines."""
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if not click.confirm("Queue this request?", default=True, err=True):
        raise RequestError("nothing was queued")
