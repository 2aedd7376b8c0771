"""The quota of one person over the web: open requests, and testbox minutes in 24 hours."""

from __future__ import annotations

from dataclasses import dataclass

from .roles import Person, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    open_requests: int
    testbox_seconds: float  # of all testboxes together, in 24 hours


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUsage:
    open_requests: int = 0
    testbox_seconds: float = 0.0


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
    left = quota.testbox_seconds - used.testbox_seconds
    if more_seconds > left:
        return (
            f"this takes {more_seconds / 60:.0f} testbox minutes, and {max(0.0, left) / 60:.0f}"
            f" of your {quota.testbox_seconds / 60:.0f} in 24 hours are left; request fewer"
            " boots or testboxes, or try again later"
        )
    return None
