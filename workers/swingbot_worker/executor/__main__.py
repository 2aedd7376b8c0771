"""The detached executor: `python -m swingbot_worker.executor PLACE LOCK_FD`. Started by `swingbot-worker attempt` only."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Final

import click

from swingbot_jobs.contract.orders import check_outcome
from swingbot_jobs.testbox import input_digests
from swingbot_worker import InfraError, rootfs
from swingbot_worker.digest import sha256
from swingbot_worker.executor import images
from swingbot_worker.executor.attempt_directory import AttemptDirectory, write, write_outcome
from swingbot_worker.executor.client import (
    PATIENCE_SECONDS,
    ExchangeClient,
    RequestRefused,
    ServiceUnavailable,
    patiently,
)
from swingbot_worker.order import BootOrder, BuildOrder, Document, Order, order_of
from swingbot_worker.outcome import Outcome, died
from swingbot_worker.site import Site, from_environment

DEFAULT_DEADLINE_SECONDS: Final = 3600.0
# The work keeps its own deadline, after waiting for its testbox as long again at most, and then hashes its files; after this we end it.
MARGIN_SECONDS: Final = 120.0
ASK_SECONDS: Final = 5.0


def say(line: str) -> None:
    click.echo(line)


def main(place: AttemptDirectory) -> int:
    document = json.loads(place.order.read_text())
    order = order_of(document)
    exchange = ExchangeClient(**document["exchange"]) if "exchange" in document else None
    if not place.outcome.exists():
        write_outcome(place, _work(place, document, order, exchange))
    return _deliver(place, order, exchange)


def _work(
    place: AttemptDirectory,
    document: Document,
    order: BuildOrder | BootOrder,
    exchange: ExchangeClient | None,
) -> Outcome:
    """Do what the order says; whatever goes wrong on our side becomes an outcome `infra`."""
    started = time.monotonic()
    try:
        _take_testbox(order, exchange)
        _Watch(place, order, exchange).start()
        site = from_environment()
        place.out.mkdir(exist_ok=True)
        if other := input_digests.difference(document, site.jobs, site.workers):
            raise InfraError(f"Nothing was done: {other}")
        if isinstance(order, BuildOrder):
            outcome = _build(order, place.out, site)
        else:
            outcome = _boot(order, place.out, site, exchange)
        _check_files(place, check_outcome(outcome))
        return outcome
    except (InfraError, ServiceUnavailable) as error:
        reason = str(error)
    except OSError as error:
        reason = f"The worker could not go on: {error}."
    except Exception as error:
        traceback.print_exc()
        reason = f"The worker failed: {type(error).__name__}: {error}; its log has more."
    say(reason)
    return died(order, reason, time.monotonic() - started)


def _take_testbox(order: Order, exchange: ExchangeClient | None) -> None:
    """Wait until no other controller drives the testbox of a boot order; raises InfraError after its deadline, or when nobody waits for it any more."""
    if exchange is None or not isinstance(order, BootOrder):
        return
    give_up, told = time.monotonic() + _deadline(order), False
    while why := exchange.refused(order.attempt):
        if not told:
            say(f"Waiting: {why}")
            told = True
        if time.monotonic() > give_up:
            raise InfraError(f"Nothing was booted: {why}.")
        time.sleep(ASK_SECONDS)
    if told and not exchange.wanted(order.attempt):
        raise InfraError("Nothing was booted: nobody waits for this attempt any more.")


def _build(order: BuildOrder, out: Path, site: Site) -> Outcome:
    from swingbot_worker import kbuild

    return kbuild.build(order, out, site, progress=say)


def _boot(order: BootOrder, out: Path, site: Site, exchange: ExchangeClient | None) -> Outcome:
    from swingbot_worker import testbox

    if exchange is None:
        return testbox.boot(order, out, site)
    if order.kernel.image is None and order.kernel.image_sha256 is not None:
        wanted = order.kernel.image_sha256
        image = images.fetch(site.cache, wanted, exchange, say, _deadline(order))
        order = order.with_image(image)
    return testbox.boot(order, out, site, partial(exchange.tell_phase, order.attempt))


def _check_files(place: AttemptDirectory, outcome: Outcome) -> None:
    """Raise InfraError if a file that the outcome names is not what it says: better found here than at the service."""
    for name, told in outcome["files"].items():
        file = place.out / name
        if (
            not file.is_file()
            or file.stat().st_size != told["size"]
            or sha256(file) != told["sha256"]
        ):
            raise InfraError(
                f"The result file {name} is missing or not the one that was made; check the worker's disk."
            )


def _deadline(order: Order) -> float:
    return DEFAULT_DEADLINE_SECONDS if order.deadline is None else order.deadline


class _Watch(threading.Thread):
    """Ends this process, and with it all that it started, when the deadline is long over or nobody wants the work any more."""

    def __init__(
        self, place: AttemptDirectory, order: Order, exchange: ExchangeClient | None
    ) -> None:
        super().__init__(daemon=True)
        self._place, self._order, self._exchange = place, order, exchange

    def run(self) -> None:
        started = time.monotonic()
        while not self._place.outcome.exists():
            time.sleep(ASK_SECONDS)
            seconds = time.monotonic() - started
            if seconds > 2 * _deadline(self._order) + MARGIN_SECONDS:
                self._end(
                    f"The work had not ended after {seconds:.0f} s, long after its deadline, and was ended.",
                    seconds,
                )
            if self._exchange is not None and not self._exchange.wanted(self._order.attempt):
                self._end("Nobody waits for this attempt any more; it was ended.", seconds)

    def _end(self, reason: str, seconds: float) -> None:
        if self._place.outcome.exists():
            return  # it ended by itself in this very moment
        say(reason)
        write_outcome(self._place, died(self._order, reason, seconds))
        # children have us as parent-death signal; whoever attaches next delivers the outcome
        os._exit(1)


def _deliver(place: AttemptDirectory, order: Order, exchange: ExchangeClient | None) -> int:
    """Bring files and outcome to the service. 0: it has them."""
    if exchange is None:
        write(place.delivered, "by hand\n")
        return 0
    word: str | None
    try:
        word = patiently(
            lambda: _deliver_once(place, order.attempt, exchange), say, PATIENCE_SECONDS
        )
    except RequestRefused as error:
        word = _deliver_refusal(place, order, exchange, str(error))
    except ServiceUnavailable as error:
        say(
            f"the service stayed away for {PATIENCE_SECONDS / 3600:.0f} h; the results are kept in {place.root}: {error}"
        )
        return 1
    if word is None:
        return 1
    write(place.delivered, word + "\n")
    say(f"outcome {word}")
    return 0


def _deliver_once(place: AttemptDirectory, attempt: str, exchange: ExchangeClient) -> str:
    text = place.outcome.read_text()
    for name, told in sorted(json.loads(text)["files"].items()):
        if exchange.put_file(place.out / name, told["sha256"]):
            say(f"uploaded {name}, {told['size'] / 1e6:.2f} MB")
    _bring_rootfs(place, json.loads(text), exchange)
    word = exchange.put_outcome(attempt, text)
    if word == "missing":
        raise ServiceUnavailable("a file that was there is gone; bringing it again")
    return word


def _bring_rootfs(place: AttemptDirectory, outcome: Outcome, exchange: ExchangeClient) -> None:
    """The root file system of a boot, kept by its sha256 once for all boots. A boot counts without it too; it only cannot be repeated elsewhere."""
    if rootfs.RECORD not in outcome["files"]:
        return
    told = json.loads((place.out / rootfs.RECORD).read_text())
    file = rootfs.handed_on(from_environment(), told["whole"])
    try:
        if file.is_file() and exchange.put_file(file, told["archive"]):
            say(f"uploaded the root file system, {file.stat().st_size / 1e6:.0f} MB")
    except (RequestRefused, OSError) as error:
        say(f"the root file system was not taken: {error}")


def _deliver_refusal(
    place: AttemptDirectory, order: Order, exchange: ExchangeClient, reason: str
) -> str | None:
    """The service will not take these results: say so to it in an outcome without files, if it takes that."""
    say(f"the service refused: {reason}")
    seconds = json.loads(place.outcome.read_text())["seconds"]
    text = json.dumps(died(order, f"The service refused the results: {reason}", seconds))
    try:
        return patiently(lambda: exchange.put_outcome(order.attempt, text), say, PATIENCE_SECONDS)
    except (RequestRefused, ServiceUnavailable) as error:
        say(f"and it does not take that either: {error}")
        return None


if __name__ == "__main__":
    # ours alone: a stray child must not look like a living executor
    os.set_inheritable(int(sys.argv[2]), False)
    sys.exit(main(AttemptDirectory(Path(sys.argv[1]))))
