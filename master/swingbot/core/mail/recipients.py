"""Recipients of a report: the culprit's author, and the maintainers and lists that the tree's base
names for its files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from swingbot.core import limits
from swingbot.core.mail.addresses import plain_address, wants_none
from swingbot.core.text.plain import cut

Role = Literal["maintainer", "list"]
_LINE = re.compile(
    r"(?P<who>[^()]{3,200}|.{1,150}<[^<>]{3,100}>)"
    r" \((?P<role>[^()]{1,300}(?:\([^()]{0,100}\)[^()]{0,200})*)\)"
)
_MAINTAINERS = ("maintainer", "supporter", "odd fixer", "reviewer", "chief penguin")
_LISTS = ("open list", "moderated list")
# Subscribers-only lists and other roles (commit_signer, ...) get no mail.


class BadMaintainers(ValueError):
    """The output of get_maintainer.pl is not a list of addresses; the message says why."""


class NoMaintainers(Exception):
    """The maintainers of a commit cannot be determined; the message says why.

    The report then goes only to its author, or to no one if the author has no usable address.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainerEntry:
    """One line of get_maintainer.pl: a bare address and what it is."""

    address: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipientRules:
    """The operator's rules for computing recipients; `core.moderation.send_check` runs before
    sending.

    `author_only` is for private and developer trees. `opt_outs` are addresses, or `@domain` for a
    whole domain; `most` is the number of recipients of one mail.
    """

    author_only: bool = False
    opt_outs: tuple[str, ...] = ()
    most: int = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Bare addresses, which of them are mailing lists, and who was left out and why.

    `to` is empty if no one may be written to. `commit_only` are the recipients whom the commit
    alone names, and not the tree's base: whoever wrote the commit chose them.
    """

    to: tuple[str, ...]
    cc: tuple[str, ...]
    lists: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    commit_only: tuple[str, ...] = ()


def read_maintainers(text: str) -> tuple[MaintainerEntry, ...]:
    """Read `Name <address> (role)` and `address (open list:SECTION)` lines; other roles are
    ignored.

    Raises BadMaintainers for any other line, and for too many lines: such output is not trusted.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > limits.MAINTAINER_LINES:
        raise BadMaintainers(
            f"get_maintainer.pl printed {len(lines)} lines; at most"
            f" {limits.MAINTAINER_LINES} are accepted"
        )
    entries: dict[str, MaintainerEntry] = {}
    for line in lines:
        match = _LINE.fullmatch(line.strip()) if len(line) <= 1000 else None
        address = plain_address(match["who"]) if match else None
        if match is None or address is None:
            raise BadMaintainers(
                f"get_maintainer.pl printed {cut(line, 60)!r}, which is not an address with a role"
            )
        role = _role(match["role"])
        if role is not None:
            entries.setdefault(address.lower(), MaintainerEntry(address=address, role=role))
    return tuple(entries.values())


def _role(text: str) -> Role | None:
    if text.startswith(_LISTS):
        return "list"
    return "maintainer" if text.startswith(_MAINTAINERS) else None


def choose(
    author: str,
    listed: Sequence[MaintainerEntry],
    rules: RecipientRules,
    named: Sequence[str] = (),
) -> Chosen:
    """The author in To, maintainers and lists in Cc; maintainers in To if the author has no
    address.

    A list alone is never a recipient. Everyone left out is named with the reason; also those whom
    the commit's trailers name (`named`) and the base does not.
    """
    left_out: list[tuple[str, str]] = []
    first = plain_address(author)
    if first is None:
        left_out.append(
            (
                cut(author, 60) or "the author",
                "the commit has no author address that can be written to",
            )
        )
    people = [item.address for item in listed if item.role == "maintainer"]
    lists = [item.address for item in listed if item.role == "list"]
    if rules.author_only:
        left_out += [(address, "private tree: its author only") for address in (*people, *lists)]
        people, lists = [], []
    else:
        left_out += _strangers(first, listed, named)
    kept = list(_allowed([*([first] if first else []), *people, *lists], rules, left_out))
    for address in kept[rules.most :]:
        left_out.append((address, f"more than {rules.most} recipients"))
    kept = kept[: rules.most]
    to = [address for address in kept if address == first] or [
        address for address in kept if address in people
    ]
    cc = [address for address in kept if address not in to]
    if not to:
        return Chosen(
            to=(),
            cc=(),
            left_out=(*left_out, *((address, "no person to write to") for address in cc)),
        )
    return Chosen(
        to=tuple(to),
        cc=tuple(cc),
        lists=tuple(address for address in cc if address in lists),
        left_out=tuple(left_out),
        commit_only=tuple(
            address
            for address in kept
            if address.lower() not in _lower(item.address for item in listed)
        ),
    )


def _strangers(
    author: str | None, listed: Sequence[MaintainerEntry], named: Sequence[str]
) -> list[tuple[str, str]]:
    """Return people named only by the commit's trailers, neither by the base nor as its author."""
    known = _lower([*(item.address for item in listed), *([author] if author else [])])
    return [
        (address, "only the commit's own trailers name this address")
        for address in named
        if address.lower() not in known
    ]


def _lower(given: Iterable[str]) -> set[str]:
    return {address.lower() for address in given}


def _allowed(
    given: Iterable[str], rules: RecipientRules, left_out: list[tuple[str, str]]
) -> Iterable[str]:
    """Each address once, without those that opted out."""
    seen: set[str] = set()
    for address in given:
        if address.lower() in seen:
            continue
        seen.add(address.lower())
        if wants_none(address, rules.opt_outs):
            left_out.append((address, "opted out of mail"))
        else:
            yield address
