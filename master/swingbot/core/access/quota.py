"""The quota of one person over the web: open requests; requests and testbox minutes in 24 hours.

Refused requests and plans take none of it, so the time in which they are planned has a budget.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from ..limits import DAILY_REQUESTS, PLANNING_SECONDS
from .roles import Person, Role

_DAY_SECONDS: Final = 86_400.0
_PIECE_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    open_requests: int
    testbox_seconds: float  # of all testboxes together, in 24 hours


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUsage:
    open_requests: int = 0
    testbox_seconds: float = 0.0
    daily_requests: int = 0  # those of measured kernels cost no testbox time


class PlanningTime:
    """Seconds of planning by person in the last 24 hours; times are of a clock that never goes
    back, in seconds.
    """

    def __init__(self, most: float = PLANNING_SECONDS) -> None:
        self._most = most
        self._spent: defaultdict[str, defaultdict[int, float]] = defaultdict(
            lambda: defaultdict(float)
        )

    def add(self, person: Person, seconds: float, now: float) -> None:
        spent = self._spent[person.who]
        for piece in [piece for piece in spent if now - piece * _PIECE_SECONDS > _DAY_SECONDS]:
            del spent[piece]
        spent[int(now / _PIECE_SECONDS)] += seconds

    def refusal(self, person: Person, now: float) -> str | None:
        """Why nothing more is planned for `person`; None if there is time left."""
        if person.role is Role.OPERATOR or person.who not in self._spent:
            return None
        self.add(person, 0.0, now)
        if sum(self._spent[person.who].values()) < self._most:
            return None
        return (
            f"planning your requests took more than {self._most / 60:.0f} minutes in 24 hours,"
            " those that were refused and dry runs included; try again later"
        )


def quota_of(person: Person, everybody: Quota) -> Quota | None:
    """Return the quota of `person`; None for an operator, who has none."""
    return None if person.role is Role.OPERATOR else everybody


def refusal(used: QuotaUsage, more_seconds: float, quota: Quota | None) -> str | None:
    """Why a request with an estimated `more_seconds` of testbox time is refused; None if
    accepted.
    """
    if quota is None:
        return None
    if used.open_requests >= quota.open_requests:
        return (
            f"you have {used.open_requests} requests under way, and at most {quota.open_requests}"
            " are allowed per person; wait until one is over"
        )
    if used.daily_requests >= DAILY_REQUESTS:
        return (
            f"you have queued {used.daily_requests} requests in 24 hours, and at most"
            f" {DAILY_REQUESTS} are allowed per person; try again later"
        )
    left = quota.testbox_seconds - used.testbox_seconds
    if more_seconds > left:
        return (
            f"this takes {more_seconds / 60:.0f} testbox minutes, and {max(0.0, left) / 60:.0f}"
            f" of your {quota.testbox_seconds / 60:.0f} in 24 hours are left; request fewer"
            " boots or testboxes, or try again later"
        )
    return None


def quota_fields(used: QuotaUsage, quota: Quota | None) -> dict[str, str]:
    """Return what a person may have and has left, as the header fields RateLimit-Policy and
    RateLimit (draft-ietf-httpapi-ratelimit-headers-10); windows are in seconds.
    """
    if quota is None:
        return {}
    day = f";w={_DAY_SECONDS:.0f}"
    policies = (
        ("open-requests", quota.open_requests, used.open_requests, ';qu="concurrent-requests"'),
        ("requests", DAILY_REQUESTS, used.daily_requests, day),
        ("testbox-seconds", int(quota.testbox_seconds), math.ceil(used.testbox_seconds), day),
    )
    return {
        "RateLimit-Policy": ", ".join(
            f'"{name}";q={most}{more}' for name, most, _, more in policies
        ),
        "RateLimit": ", ".join(
            f'"{name}";r={max(0, most - taken)}' for name, most, taken, _ in policies
        ),
    }
