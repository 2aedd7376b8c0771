"""The detached executor: `python -m swingbot_worker.executor PLACE LOCK_FD`.

Only `swingbot-worker attempt` starts it.
"""

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

from swingbot_jobs.contract.deadline import attempt_seconds
from swingbot_jobs.contract.orders import check_outcome, prepare_to_check
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
from swingbot_worker.executor.held_lease import HeldLease
from swingbot_worker.order import BootOrder, BuildOrder, Document, OrderHeader, order_of
from swingbot_worker.outcome import Outcome, died
from swingbot_worker.site import Site, from_environment

DEFAULT_DEADLINE_SECONDS: Final = 3600.0
# The work ends itself and then hashes its files; the watchdog ends it this long after that.
MARGIN_SECONDS: Final = 120.0
ASK_SECONDS: Final = 5.0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


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
    """Execute the order. Any infrastructure failure becomes an outcome with the status `infra`."""
    started = time.monotonic()
    try:
        lease = HeldLease(patience=_deadline(order), tell=say)
        _take_testbox(order, exchange, lease)
        _Watchdog(place, order, exchange, lease).start()
        site = from_environment()
        place.out.mkdir(exist_ok=True)
        if other := input_digests.difference(document, site.jobs, site.workers):
            raise InfraError(f"Nothing was done: {other}")
        if isinstance(order, BuildOrder):
            outcome = _build(order, place.out, site)
        else:
            outcome = _boot(order, place.out, site, exchange, lease)
        _check_files(place, check_outcome(outcome))
        return outcome
    except (InfraError, ServiceUnavailable) as error:
        reason = str(error)
    except OSError as error:
        reason = f"The worker could not continue: {error}."
    except Exception as error:
        traceback.print_exc()
        reason = f"The worker failed: {type(error).__name__}: {error}; see its log for details."
    say(reason)
    return died(order, reason, time.monotonic() - started)


def _take_testbox(order: OrderHeader, exchange: ExchangeClient | None, lease: HeldLease) -> None:
    """Wait until this controller has the testbox of a boot order.

    Raises InfraError after the order's deadline, or if the attempt is no longer needed.
    """
    if exchange is None or not isinstance(order, BootOrder):
        return
    give_up, reported = time.monotonic() + _deadline(order), False
    while True:
        try:
            answer = exchange.ask(order.attempt)
            why = answer.refusal
        except ServiceUnavailable as error:
            why = f"the service is unavailable, and nothing is booted without a lease: {error}"
        if why is None:
            break
        if not reported:
            say(f"Waiting: {why}")
            reported = True
        if time.monotonic() > give_up:
            raise InfraError(f"Nothing was booted: {why}.")
        time.sleep(ASK_SECONDS)
    if not answer.wanted:
        raise InfraError("Nothing was booted: this attempt is no longer needed.")
    lease.renew(answer.grant, answer.asked)


def _build(order: BuildOrder, out: Path, site: Site) -> Outcome:
    from swingbot_worker import kbuild

    return kbuild.build(order, out, site, progress=say)


def _boot(
    order: BootOrder, out: Path, site: Site, exchange: ExchangeClient | None, lease: HeldLease
) -> Outcome:
    from swingbot_worker import testbox

    if exchange is None:
        return testbox.boot(order, out, site)
    if order.kernel.image is None and order.kernel.image_sha256 is not None:
        wanted = order.kernel.image_sha256
        image = images.fetch(site.cache, wanted, exchange, say, _deadline(order))
        order = order.with_image(image)
    return testbox.boot(order, out, site, partial(exchange.tell_phase, order.attempt), lease)


def _check_files(place: AttemptDirectory, outcome: Outcome) -> None:
    """Raise InfraError if a file does not match its entry in the outcome."""
    for name, entry in outcome["files"].items():
        file = place.out / name
        if (
            not file.is_file()
            or file.stat().st_size != entry["size"]
            or sha256(file) != entry["sha256"]
        ):
            raise InfraError(
                f"The result file {name} is missing or has changed; check the worker's disk."
            )


def _deadline(order: OrderHeader) -> float:
    return DEFAULT_DEADLINE_SECONDS if order.deadline is None else order.deadline


class _Watchdog(threading.Thread):
    """Ends this process and its children.

    That happens when the deadline has long passed, the attempt is no longer needed, or another
    controller has its testbox. Until then it renews the lease.
    """

    def __init__(
        self,
        place: AttemptDirectory,
        order: OrderHeader,
        exchange: ExchangeClient | None,
        lease: HeldLease,
    ) -> None:
        super().__init__(daemon=True)
        self._place, self._order, self._exchange, self._lease = place, order, exchange, lease

    def run(self) -> None:
        started = time.monotonic()
        prepare_to_check()
        while not self._place.outcome.exists():
            time.sleep(ASK_SECONDS)
            seconds = time.monotonic() - started
            most = attempt_seconds(self._order.kind, _deadline(self._order))
            if seconds > most + MARGIN_SECONDS:
                self._end(
                    f"The work was still running after {seconds:.0f} s, long past its deadline, "
                    "and was stopped.",
                    seconds,
                )
            if self._exchange is not None and (why := self._over(self._exchange)):
                self._end(why, seconds)

    def _over(self, exchange: ExchangeClient) -> str | None:
        """Renew the lease. Returns why the work must stop; None if it goes on."""
        try:
            answer = exchange.ask(self._order.attempt)
        except ServiceUnavailable:
            return None
        if answer.refusal is not None:
            return f"This attempt was stopped: {answer.refusal}."
        if not answer.wanted:
            return "This attempt is no longer needed; it was stopped."
        self._lease.renew(answer.grant, answer.asked)
        return None

    def _end(self, reason: str, seconds: float) -> None:
        if self._place.outcome.exists():
            return  # it has just ended by itself
        say(reason)
        write_outcome(self._place, died(self._order, reason, seconds))
        # the parent-death signal ends the children; the next process to attach delivers the outcome
        os._exit(1)


def _deliver(place: AttemptDirectory, order: OrderHeader, exchange: ExchangeClient | None) -> int:
    """Upload the files and the outcome to the service.

    Returns 0 if it accepted them, otherwise 1.
    """
    if exchange is None:
        write(place.delivered, "by hand\n")
        return 0
    answer: str | None
    try:
        answer = patiently(
            lambda: _deliver_once(place, order.attempt, exchange), say, PATIENCE_SECONDS
        )
    except RequestRefused as error:
        answer = _deliver_refusal(place, order, exchange, str(error))
    except ServiceUnavailable as error:
        say(
            f"the service was unavailable for {PATIENCE_SECONDS / 3600:.0f} h; the results are "
            f"kept in {place.root}: {error}"
        )
        return 1
    if answer is None:
        return 1
    write(place.delivered, answer + "\n")
    say(f"outcome {answer}")
    return 0


def _deliver_once(place: AttemptDirectory, attempt: str, exchange: ExchangeClient) -> str:
    text = place.outcome.read_text()
    for name, entry in sorted(json.loads(text)["files"].items()):
        if exchange.put_file(place.out / name, entry["sha256"]):
            say(f"uploaded {name}, {entry['size'] / 1e6:.2f} MB")
    _upload_rootfs(place, json.loads(text), exchange)
    answer = exchange.put_outcome(attempt, text)
    if answer == "missing":
        raise ServiceUnavailable("the service has lost an uploaded file; uploading it again")
    return answer


def _upload_rootfs(place: AttemptDirectory, outcome: Outcome, exchange: ExchangeClient) -> None:
    """Upload the root file system of a boot, which is stored once for all boots.

    A boot counts without it, but cannot be reproduced elsewhere.
    """
    if rootfs.RECORD not in outcome["files"]:
        return
    record = json.loads((place.out / rootfs.RECORD).read_text())
    file = rootfs.handed_on(from_environment(), record["whole"])
    try:
        if file.is_file() and exchange.put_file(file, record["archive"]):
            say(f"uploaded the root file system, {file.stat().st_size / 1e6:.0f} MB")
    except (RequestRefused, OSError) as error:
        say(f"the service did not accept the root file system: {error}")


def _deliver_refusal(
    place: AttemptDirectory, order: OrderHeader, exchange: ExchangeClient, reason: str
) -> str | None:
    """Report refused results to the service in an outcome without files.

    Returns None if it refuses that too.
    """
    say(f"the service refused: {reason}")
    seconds = json.loads(place.outcome.read_text())["seconds"]
    text = json.dumps(died(order, f"The service refused the results: {reason}", seconds))
    try:
        return patiently(lambda: exchange.put_outcome(order.attempt, text), say, PATIENCE_SECONDS)
    except (RequestRefused, ServiceUnavailable) as error:
        say(f"the service does not accept an outcome without files either: {error}")
        return None


if __name__ == "__main__":
    # do not inherit the lock: a stray child must not look like a running executor
    os.set_inheritable(int(sys.argv[2]), False)
    sys.exit(main(AttemptDirectory(Path(sys.argv[1]))))
