"""The worker's side of the exchange: upload files and outcomes, download kernel images."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from swingbot_jobs.contract.orders import CONTROLLER_HEADER
from swingbot_worker import InfraError
from swingbot_worker.executor.held_lease import Grant, boottime
from swingbot_worker.executor.http_library import httpx

# how long an executor retries a delivery before it gives up (the files are kept)
PATIENCE_SECONDS = 6 * 3600.0
# A phase that cannot be reported is dropped: the boot must not wait for it, and the outcome repeats
# all phases.
TELL_SECONDS = 3.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 60.0
_CHUNK = 1 << 18

T = TypeVar("T")


class RequestRefused(Exception):
    """The service will never accept this request; the message is its answer. Do not retry."""


class ServiceUnavailable(Exception):
    """The service did not answer, or answered that it is temporarily unavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptAnswer:
    """What the service says about an attempt; in doubt it is wanted.

    `refusal`: another controller has its testbox. `grant`: the lease of its testbox. `asked`: when
    the question was sent, on `held_lease.boottime`.
    """

    asked: float
    refusal: str | None = None
    wanted: bool = True
    grant: Grant | None = None


class ExchangeClient:
    """Access to the web service for one attempt.

    Methods raise ServiceUnavailable (retry) or RequestRefused (do not retry).
    """

    def __init__(self, url: str, token: str) -> None:
        timeout = httpx.Timeout(30.0, read=120.0, write=120.0)
        headers = {
            "Authorization": f"Bearer {token}",
            CONTROLLER_HEADER: socket.gethostname()[:100] or "unnamed",
        }
        self._http = httpx.Client(
            base_url=url.rstrip("/"),
            headers=headers,
            timeout=timeout,
            trust_env=False,
            verify=_trusted(url),
        )

    def _request(self, method: str, path: str, **how: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **how)
        except (httpx.HTTPError, OSError) as error:
            raise ServiceUnavailable(f"{method} {path}: {error or type(error).__name__}") from error
        if answer.status_code >= 500 or answer.status_code in (408, 425, 429):
            raise ServiceUnavailable(f"{method} {path}: {answer.status_code} {_error_text(answer)}")
        return answer

    def put_file(self, file: Path, sha256: str) -> bool:
        """Upload a file. Returns False if the service already has it."""
        if self._request("HEAD", f"/artifacts/{sha256}").status_code == 200:
            return False
        answer = self._request("PUT", f"/artifacts/{sha256}", content=_chunks(file))
        if answer.status_code >= 400:
            raise RequestRefused(f"{file.name}: {answer.status_code} {_error_text(answer)}")
        return True

    def put_outcome(self, attempt: str, text: str) -> str:
        """Deliver outcome.json and return the service's answer as one word.

        "missing" means that a file of the outcome has to be uploaded (again) first.
        """
        answer = self._request(
            "PUT",
            f"/attempts/{attempt}/outcome.json",
            content=text.encode(),
            headers={"Content-Type": "application/json"},
        )
        if answer.status_code == 409 and "missing" in answer.text[:100_000]:
            return "missing"
        if answer.status_code == 409:
            return "superseded"  # the attempt already has an outcome, which is kept
        if answer.status_code >= 400:
            raise RequestRefused(f"outcome.json: {answer.status_code} {_error_text(answer)}")
        return {200: "delivered before", 202: "delivered late"}.get(answer.status_code, "delivered")

    def ask(self, attempt: str) -> AttemptAnswer:
        """Ask about the attempt, which reserves its testbox or extends the reservation.

        Raises ServiceUnavailable.
        """
        asked = boottime()
        answer = self._request("GET", f"/attempts/{attempt}")
        if answer.status_code == 409:
            return AttemptAnswer(asked=asked, refusal=_error_text(answer))
        if answer.status_code != 200:
            return AttemptAnswer(asked=asked)
        try:
            document = answer.json()
            lease = document.get("lease")
            grant = lease and Grant(fence=int(lease["fence"]), seconds=float(lease["seconds"]))
        except (ValueError, AttributeError, KeyError, TypeError):
            return AttemptAnswer(asked=asked)
        return AttemptAnswer(
            asked=asked, wanted=document.get("wanted") is not False, grant=grant or None
        )

    def tell_phase(self, attempt: str, phase: str, why: str, boot_id: str | None = None) -> None:
        """Report the current phase of the testbox (swingbot_jobs.contract.orders.PHASES).

        Raises nothing if the service is unavailable: the outcome repeats the phases.
        """
        report = {"phase": phase, "why": why[:2000], "boot_id": boot_id}
        with contextlib.suppress(ServiceUnavailable):
            self._request("PUT", f"/attempts/{attempt}/phase", json=report, timeout=TELL_SECONDS)

    def get_file(self, sha256: str, target: Path) -> None:
        """Download a file to `target`, which must be a temporary name.

        Raises InfraError if its content does not match `sha256`.
        """
        digest = hashlib.sha256()
        try:
            with (
                self._http.stream("GET", f"/artifacts/{sha256}") as answer,
                target.open("wb") as out,
            ):
                if answer.status_code == 404:
                    raise InfraError(
                        f"The kernel image {sha256} is not in the artifact store; build it again."
                    )
                if answer.status_code != 200:
                    raise ServiceUnavailable(f"image {sha256}: {answer.status_code}")
                for chunk in answer.iter_bytes(_CHUNK):
                    digest.update(chunk)
                    out.write(chunk)
        except httpx.HTTPError as error:
            raise ServiceUnavailable(f"image {sha256}: {error or type(error).__name__}") from error
        if digest.hexdigest() != sha256:
            raise InfraError(
                f"The kernel image {sha256} arrived with different content (sha256 "
                f"{digest.hexdigest()}); check the artifact store's disk."
            )


def _trusted(url: str) -> ssl.SSLContext | bool:
    """Return the trusted CAs: those of SWINGBOT_EXCHANGE_CA (a PEM file), otherwise this host's."""
    return (
        ssl.create_default_context(cafile=os.environ.get("SWINGBOT_EXCHANGE_CA") or None)
        if url.startswith("https:")
        else True
    )


def patiently(what: Callable[[], T], say: Callable[[str], None], patience_seconds: float) -> T:
    """Call `what` until the service is available, with growing pauses.

    Raises the last ServiceUnavailable after `patience_seconds`.
    """
    end, pause, reported = time.monotonic() + patience_seconds, FIRST_PAUSE_SECONDS, ""
    while True:
        try:
            return what()
        except ServiceUnavailable as error:
            if time.monotonic() + pause > end:
                raise
            if str(error) != reported:
                say(f"the service is unavailable, retrying: {error}")
                reported = str(error)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def _error_text(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])[:300]
    except (ValueError, KeyError, TypeError):
        return answer.reason_phrase


def _chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as source:
        while chunk := source.read(_CHUNK):
            yield chunk
