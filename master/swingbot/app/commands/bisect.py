"""`swingbot bisect`: its commands, by place."""

from __future__ import annotations

import click

from swingbot.app.commands.lazy import lazily


@click.group(
    cls=lazily(
        {
            "start": "requests:start",
            "run": "bisect_run:run",
            "log": "steer:log_",
            "replay": "steer:replay",
            "skip": "steer:skip",
            "hint": "steer:hint",
            "resume": "steer:resume",
            "explain": "steer:explain",
            "visualize": "steer:visualize",
        }
    )
)
def bisect() -> None:
    """Find the commit behind a change of a metric."""
