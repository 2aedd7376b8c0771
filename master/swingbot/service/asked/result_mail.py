"""Requests of a mail when a table or bisection is over."""

from __future__ import annotations

from swingbot.core.access.roles import Person
from swingbot.service.ports import RequestError
from swingbot.service.ports.reports import Reports


def check_address(person: Person | None) -> None:
    """Raise RequestError for a person whose token has no address for results."""
    if person is not None and person.mail is None:
        raise RequestError(
            "your token has no mail address: ask an operator for one made with"
            " `swingbot token create NAME --role ROLE --mail ADDRESS`",
            key="mail",
        )


def want_mail(reports: Reports, id: str, person: Person | None) -> None:
    """Record that the person, or None for an operator, wants a mail when `id` is over."""
    reports.want_result(id, None if person is None else person.token)
