"""What a request is queued as: once, however often it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from swingbot.core.access.roles import Person
from swingbot.core.text.numbers import count
from swingbot.service.access import note_request, note_use
from swingbot.service.ports import RequestError
from swingbot.service.ports.access import Access


class AlreadyDone(RequestError):
    """What was asked for has been done already, so there is nothing left to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """A queued table or bisection. `new` is False if the same request already existed."""

    id: str
    number: int
    new: bool


class _Queued(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def status(self) -> str: ...


Q = TypeVar("Q", bound=_Queued)


def asked_before(of_request: Callable[[str], Q | None], key: str) -> tuple[Q | None, str]:
    """Return what an earlier request with this key was queued as, or None, and the key of that one,
    or of the one to create.

    A request that failed or was cancelled is created again, under a new key.
    """
    latest = key
    while (earlier := of_request(latest)) is not None:
        if earlier.status not in ("failed", "cancelled"):
            break
        latest = f"{key}:after-{earlier.id}"
    return earlier, latest


def vouched_by(tokens: Iterable[int | None]) -> list[str]:
    """Return what sets a request apart from the same one without tokens that vouch."""
    return [f"vouched by {token}" for token in sorted({token for token in tokens if token})]


def note_vouched(access: Access, person: Person | None, id: str, commits: int) -> None:
    """Log for how many commits of `id` the person's token vouches, if for any."""
    if person is not None and commits:
        note_use(access, "vouch", person, f"{id}: {count(commits, 'commit')}")


def charge(
    access: Access, person: Person | None, id: str, testbox_seconds: float, *, existed: bool
) -> bool:
    """Record who asked for `id` over the web; return True if it is new, which costs the person
    `testbox_seconds`. None: an operator, who pays nothing.
    """
    # another person may have queued the same since
    new = not existed and not access.askers(id)
    if person is not None:
        note_request(access, person, id, testbox_seconds if new else 0.0)
    return new
