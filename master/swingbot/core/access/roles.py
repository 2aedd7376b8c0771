"""Roles over the web. Each role includes the ones before it.

The command line on the service's own host needs no role: whoever can use its files and database is
the operator.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """Roles of token holders, from least to most rights."""

    READER = "reader"  # reads pages where settings require a token
    SUBMITTER = "submitter"  # asks for comparisons, within a quota
    MODERATOR = "moderator"  # decides about reports and incidents, stops and resumes mail
    OPERATOR = "operator"  # everything on pages, and no quota


_ORDER: Final = tuple(Role)
# What each role is for, as the pages and `swingbot token` word it.
PURPOSES: Final = {
    Role.READER: "reads pages where settings require a token",
    Role.SUBMITTER: "asks for comparisons, within a quota",
    Role.MODERATOR: "decides about reports and incidents, stops and resumes mail",
    Role.OPERATOR: "does all that can be done on pages, without a quota",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKey:
    """The key of a request that is carried out once, and the SHA-256 of the request."""

    key: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person with a valid token, or with a session begun with one."""

    who: str
    role: Role
    token: int  # its number
    trees: tuple[str, ...] | None = None  # whose tables it may request and change; None: of all
    once: RequestKey | None = None  # of the request that they make
    groups: tuple[str, ...] | None = None  # of testboxes, all that it may see; None: everything
    levels: bool = True  # False: of what these measured it sees changes in percent only
    vouches: bool = False  # whether the token vouches for the commits that it sends first
    mail: str | None = None  # address for results requested by mail

    @property
    def ref_name(self) -> str:
        """Their name as a part of git refs: readable, and theirs alone."""
        return ref_name(self.who)


def ref_name(who: str) -> str:
    """Return the `Person.ref_name` of the person of this name."""
    readable = re.sub(r"[^a-z0-9]+", "-", who.lower())[:40].strip("-")
    return f"{readable}-{hashlib.sha256(who.encode()).hexdigest()[:12]}".lstrip("-")


def on_web(who: str) -> str:
    """Return how the record of a decision names a person who made it over the web."""
    return f"{who} (web)"


def tree_refusal(person: Person, tree: str) -> str | None:
    """Why this token is not for requests of `tree`, in one sentence; None if it is."""
    if person.trees is None or tree in person.trees:
        return None
    return (
        f"{person.who}'s token is only for requests of {', '.join(person.trees)}, not of {tree}:"
        " ask the operator for another; nothing was changed."
    )


def group_refusal(person: Person) -> str:
    """Why an address that cannot be limited to what a token may see refuses it."""
    limit = (
        f"for testboxes of {', '.join(person.groups or ())}, and this address is not limited to"
        " them"
        if person.levels
        else "for changes in percent, and this address shows more"
    )
    return f"{person.who}'s token is only {limit}: ask the operator for another."


def may(role: Role, needs: Role) -> bool:
    return _ORDER.index(role) >= _ORDER.index(needs)


def refusal(person: Person | None, needs: Role) -> str | None:
    """Why this needs another role, in one sentence; None if it is allowed."""
    if person is None:
        return (
            f"This needs the role {needs}: sign in first at /login with a token of that role;"
            " nothing was changed."
        )
    if not may(person.role, needs):
        return (
            f"This needs the role {needs}, and {person.who}'s token has the role {person.role}:"
            " ask the operator for another; nothing was changed."
        )
    return None
