"""`swingbot bisect`: group of commands, imported on use."""

from __future__ import annotations

import click

from swingbot_jobs.lazy_group import Place, lazily


@click.group(
    cls=lazily(
        __package__,
        {
            "start": Place("requests:start", extras=()),
            "run": Place("bisect_run:run", extras=()),
            "log": Place("steer:log_", extras=()),
            "replay": Place("steer:replay", extras=()),
            "skip": Place("steer:skip", extras=()),
            "hint": Place("steer:hint", extras=()),
            "resume": Place("steer:resume", extras=()),
            "explain": Place("steer:explain", extras=()),
            "visualize": Place("steer:visualize", extras=()),
        },
    )
)
def bisect() -> None:
    """Find the commit behind a change of a metric."""
