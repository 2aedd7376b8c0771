"""What one person may ask for over the web: requests under way, and minutes of testboxes in 24 hours."""

from __future__ import annotations

from dataclasses import dataclass

from .roles import Person, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    open_requests: int
    box_seconds: float  # of all testboxes together, in 24 hours


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUsage:
    open_requests: int = 0
    box_seconds: float = 0.0


def quota_of(person: Person, everybody: Quota) -> Quota | None:
    """None for an operator: no quota."""
    return None if person.role is Role.OPERATOR else everybody


def refusal(used: QuotaUsage, more_seconds: float, quota: Quota | None) -> str | None:
    """Why a request that is foreseen to take `more_seconds` of testboxes is not taken now, in one sentence; None if it is."""
    if quota is None:
        return None
    if used.open_requests >= quota.open_requests:
        return f"you have {used.open_requests} requests under way, and {quota.open_requests} are the most that one person may have; wait until one is over"
    left = quota.box_seconds - used.box_seconds
    if more_seconds > left:
        return (
            f"this takes {more_seconds / 60:.0f} minutes of testboxes, and {max(0.0, left) / 60:.0f} of your {quota.box_seconds / 60:.0f} in 24 hours are left;"
            " ask for fewer boots or testboxes, or later"
        )
    return None
