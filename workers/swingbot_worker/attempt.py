"""`swingbot-worker attempt`: start or attach to an attempt and follow it until it ends.

A detached executor does the work. It survives this command, the Buildbot worker and the master.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from swingbot_jobs.contract.orders import ContractError, Document, check_order
from swingbot_jobs.terminal import fail
from swingbot_worker.executor.attempt_directory import (
    AttemptDirectory,
    open_place,
    prune,
    write,
    write_outcome,
)
from swingbot_worker.executor.process import start_executor
from swingbot_worker.order import order_of
from swingbot_worker.outcome import died

POLL_SECONDS: Final = 0.1
LINES_LIMIT: Final = 2000  # maximum number of progress lines shown; executor.log has all of them


class CannotStart(Exception):
    """The order cannot be executed here; the message says why."""


def read_order(file: Path) -> Document:
    """Read and check an order. Raises CannotStart."""
    try:
        return check_order(_loaded(file.read_text()))
    except (OSError, UnicodeDecodeError, ContractError) as error:
        raise CannotStart(f"{file}: {error}") from error


def _loaded(text: str) -> object:
    """Return the document in `text`. Raises ContractError."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)  # as the master writes it
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ContractError(str(error)) from error


def start_or_attach(order: Document, state: Path) -> AttemptDirectory:
    """Ensure that an executor is working on this attempt or has finished it.

    Work is never started twice.

    If the executor died without an outcome, write one with the status `infra`; the master decides
    whether to retry.
    """
    place = open_place(state, order["attempt"])
    lock = place.try_lock()
    if lock is None or place.delivered.exists():
        if lock is not None:
            os.close(lock)
        return place
    try:
        if place.started.exists() and not place.outcome.exists():
            seconds = max(0.0, time.time() - place.started.stat().st_mtime)
            write_outcome(
                place,
                died(
                    order_of(order),
                    "The executor died before it wrote an outcome (killed, out of memory, or the "
                    "host went down).",
                    seconds,
                ),
            )
        write(place.order, json.dumps(order))
        write(place.started, f"{time.time():.3f}\n") if not place.started.exists() else None
        start_executor(place.root, lock, place.log)
    finally:
        os.close(lock)  # the executor inherited its own copy and keeps the lock
    return place


def follow(place: AttemptDirectory, poll_seconds: float = POLL_SECONDS) -> bool:
    """Print progress until the executor exits. Returns True if the outcome was delivered."""
    with place.log.open("a+") as log:
        log.seek(0)
        shown = 0
        while True:
            lock = place.try_lock()
            for line in log:
                shown += 1
                if shown <= LINES_LIMIT:
                    click.echo(line.rstrip("\n"))
            if lock is not None:
                os.close(lock)
                return place.delivered.exists()
            time.sleep(poll_seconds)


def execute(order: Document, state: Path) -> tuple[AttemptDirectory, bool]:
    """Start or attach, then follow until the executor exits.

    If the executor dies meanwhile, start a second one, which delivers the existing results.
    """
    for _ in range(2):
        place = start_or_attach(order, state)
        if follow(place):
            return place, True
    return place, False


def _summary(place: AttemptDirectory) -> str:
    try:
        outcome = json.loads(place.outcome.read_text())
    except (OSError, ValueError):
        return "no outcome"
    return f"{outcome['attempt']}: {outcome['status']} in {outcome['seconds']:.1f} s" + (
        f": {outcome['reason']}" if outcome.get("reason") else ""
    )


@click.command(
    name="attempt",
    epilog="""\b
Example:
  swingbot-worker attempt --order order.json --state /var/lib/swingbot-worker

Exit status: 0 an outcome of any status was delivered, 1 no outcome was delivered, 2 invalid usage
or order.""",
)
@click.option(
    "--order",
    "order_file",
    required=True,
    type=click.Path(path_type=Path),
    help="Order file, JSON or YAML.",
)
@click.option(
    "--state",
    required=True,
    type=click.Path(path_type=Path),
    help="Directory where attempts are kept until they are delivered.",
)
def command(order_file: Path, state: Path) -> None:
    """Execute an order once, or attach to its running attempt."""
    state = state.absolute()
    try:
        order = read_order(order_file)
        prune(state)
        place, delivered = execute(order, state)
    except CannotStart as error:
        fail(2, str(error))
    except OSError as error:
        fail(
            1,
            f"{state}: {error.strerror or error}; the worker needs a writable directory with free "
            "space.",
        )
    click.echo(_summary(place))
    if not delivered:
        fail(
            1,
            f"The outcome was not delivered. The results are in {place.root}; run this command "
            "again to retry the delivery.",
        )


if __name__ == "__main__":
    command()
