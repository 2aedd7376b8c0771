"""The header fields of an answer that say what is left of the person's quota."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from starlette.responses import Response

from swingbot.core.access.quota import Quota, QuotaUsage, quota_fields
from swingbot.core.access.roles import Person


class Charging(Protocol):
    def used(self, person: Person) -> tuple[QuotaUsage, Quota | None]: ...


def with_quota(
    submitter: Charging, person: Person, answered: Callable[..., Response], *words: object
) -> Response:
    """Return what is `answered`, with the quota that is left after it."""
    answer = answered(*words)
    answer.headers.update(quota_fields(*submitter.used(person)))
    return answer
