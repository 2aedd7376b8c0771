"""The worker's side of the exchange: files up, outcome up, kernel images down. Patient while the service is away."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx

from swingbot_jobs.contract.orders import CONTROLLER_HEADER
from swingbot_worker import InfraError

# how long a result is offered before its executor gives up (the files stay)
PATIENCE_SECONDS = 6 * 3600.0
TELL_SECONDS = 3.0  # a phase that cannot be told is forgotten: the boot must not wait for it, and the outcome says it all again
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 60.0
_CHUNK = 1 << 18

T = TypeVar("T")


class RequestRefused(Exception):
    """The service will never take this, however often it is offered; the message is its answer."""


class ServiceUnavailable(Exception):
    """The service did not answer, or said that it cannot now."""


class ExchangeClient:
    """One attempt's access to the web service. Methods raise Away (try again) or Refused (don't)."""

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

    def _ask(self, method: str, path: str, **how: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **how)
        except (httpx.HTTPError, OSError) as error:
            raise ServiceUnavailable(f"{method} {path}: {error or type(error).__name__}") from error
        if answer.status_code >= 500 or answer.status_code in (408, 425, 429):
            raise ServiceUnavailable(f"{method} {path}: {answer.status_code} {_words(answer)}")
        return answer

    def put_file(self, file: Path, sha256: str) -> bool:
        """Bring a file unless it is there already (then False)."""
        if self._ask("HEAD", f"/artifacts/{sha256}").status_code == 200:
            return False
        answer = self._ask("PUT", f"/artifacts/{sha256}", content=_chunks(file))
        if answer.status_code >= 400:
            raise RequestRefused(f"{file.name}: {answer.status_code} {_words(answer)}")
        return True

    def put_outcome(self, attempt: str, text: str) -> str:
        """Deliver outcome.json; says in a word what became of it. "missing": a file it names has to be brought (again) first."""
        answer = self._ask(
            "PUT",
            f"/attempts/{attempt}/outcome.json",
            content=text.encode(),
            headers={"Content-Type": "application/json"},
        )
        if answer.status_code == 409 and "missing" in answer.text[:100_000]:
            return "missing"
        if answer.status_code == 409:
            return "superseded"  # the attempt has an outcome, and it stands
        if answer.status_code >= 400:
            raise RequestRefused(f"outcome.json: {answer.status_code} {_words(answer)}")
        return {200: "delivered before", 202: "delivered late"}.get(answer.status_code, "delivered")

    def refused(self, attempt: str) -> str | None:
        """Take the testbox of the attempt, or keep it: the service's words if another controller has it. When in doubt it is ours."""
        try:
            answer = self._ask("GET", f"/attempts/{attempt}")
            return _words(answer) if answer.status_code == 409 else None
        except ServiceUnavailable:
            return None

    def wanted(self, attempt: str) -> bool:
        """Whether anybody still waits for the attempt; when in doubt, yes. Asking keeps its testbox for this controller."""
        try:
            answer = self._ask("GET", f"/attempts/{attempt}")
            return answer.status_code != 200 or answer.json().get("wanted") is not False
        except (ServiceUnavailable, ValueError, AttributeError):
            return True

    def tell_phase(self, attempt: str, phase: str, why: str, boot_id: str | None = None) -> None:
        """Say what the testbox does now (swingbot_jobs.contract.orders.PHASES). Raises nothing: whoever does not hear it learns it from the outcome."""
        told = {"phase": phase, "why": why[:2000], "boot_id": boot_id}
        with contextlib.suppress(ServiceUnavailable):
            self._ask("PUT", f"/attempts/{attempt}/phase", json=told, timeout=TELL_SECONDS)

    def get_file(self, sha256: str, target: Path) -> None:
        """Fetch a file into `target` (which must be a temporary name); raises InfraError if the bytes are not the ones asked for."""
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
                f"The kernel image {sha256} came with other bytes (sha256 {digest.hexdigest()}); check the artifact store's disk."
            )


def _trusted(url: str) -> ssl.SSLContext | bool:
    """Whose certificates are taken: those of SWINGBOT_EXCHANGE_CA (a PEM file), else those that this host trusts."""
    return (
        ssl.create_default_context(cafile=os.environ.get("SWINGBOT_EXCHANGE_CA") or None)
        if url.startswith("https:")
        else True
    )


def patiently(what: Callable[[], T], say: Callable[[str], None], patience_seconds: float) -> T:
    """Call `what` until it is not Away, pausing longer each time; raises the last Away when patience is over."""
    end, pause, told = time.monotonic() + patience_seconds, FIRST_PAUSE_SECONDS, ""
    while True:
        try:
            return what()
        except ServiceUnavailable as error:
            if time.monotonic() + pause > end:
                raise
            if str(error) != told:
                say(f"the service is away, trying on: {error}")
                told = str(error)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def _words(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"])[:300]
    except (ValueError, KeyError, TypeError):
        return answer.reason_phrase


def _chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as source:
        while chunk := source.read(_CHUNK):
            yield chunk
