"""To whom a report goes: the culprit's author, maintainers and lists as the tree's own get_maintainer.pl names them, within limits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from swingbot.core.mail.addresses import plain_address, wants_none
from swingbot.core.text.plain import cut

Role = Literal["maintainer", "list"]
_LINE = re.compile(
    r"(?P<who>[^()]{3,200}|.{1,150}<[^<>]{3,100}>) \((?P<role>[^()]{1,300}(?:\([^()]{0,100}\)[^()]{0,200})*)\)"
)
_MOST_LINES = 500
_MAINTAINERS = ("maintainer", "supporter", "odd fixer", "reviewer", "chief penguin")
_LISTS = ("open list", "moderated list")
# Lists that only their subscribers may write to get nothing from us; what is no list and no maintainer (commit_signer ...) neither.


class BadMaintainers(ValueError):
    """What get_maintainer.pl printed is not a list of addresses; the message says why."""


class NoMaintainers(Exception):
    """Nobody can be named for this commit; the message says why. The report then goes to its author alone, or to nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainerEntry:
    """One line of get_maintainer.pl: a bare address and what it is."""

    address: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipientRules:
    """What an operator allows when recipients are computed; the last look before a mail leaves is `core.moderation.leaving`.

    `author_only` is for private and developer trees. `opt_outs` are addresses, or `@domain` for all of a domain; `most` is the number of recipients
    that one mail has (beyond it trust in the answer is gone as well as the reader's patience).
    """

    author_only: bool = False
    opt_outs: tuple[str, ...] = ()
    most: int = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Bare addresses, which of them are mailing lists, and who was left out with the reason. `to` is empty where nobody may be written to."""

    to: tuple[str, ...]
    cc: tuple[str, ...]
    lists: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


def read_maintainers(text: str) -> tuple[MaintainerEntry, ...]:
    """Read `Name <address> (role)` and `address (open list:SECTION)` lines; other roles are passed over.

    Raises BadMaintainers for a line that is no such line, and for too many of them: of rubbish nobody is believed.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > _MOST_LINES:
        raise BadMaintainers(
            f"get_maintainer.pl printed {len(lines)} lines; more than {_MOST_LINES} are no list of recipients"
        )
    found: dict[str, MaintainerEntry] = {}
    for line in lines:
        match = _LINE.fullmatch(line.strip()) if len(line) <= 1000 else None
        address = plain_address(match["who"]) if match else None
        if match is None or address is None:
            raise BadMaintainers(
                f"get_maintainer.pl printed {cut(line, 60)!r}, which is no address with a role"
            )
        role = _role(match["role"])
        if role is not None:
            found.setdefault(address.lower(), MaintainerEntry(address=address, role=role))
    return tuple(found.values())


def _role(text: str) -> Role | None:
    if text.startswith(_LISTS):
        return "list"
    return "maintainer" if text.startswith(_MAINTAINERS) else None


def choose(author: str, listed: Sequence[MaintainerEntry], rules: RecipientRules) -> Chosen:
    """Author to To, maintainers and lists to Cc; without a usable author address the maintainers are written to.

    A list alone is never written to. Whoever is left out is named with the reason.
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
            left_out=(*left_out, *((address, "nobody to write to in person") for address in cc)),
        )
    return Chosen(
        to=tuple(to),
        cc=tuple(cc),
        lists=tuple(address for address in cc if address in lists),
        left_out=tuple(left_out),
    )


def _allowed(
    given: Iterable[str], rules: RecipientRules, left_out: list[tuple[str, str]]
) -> Iterable[str]:
    """Each once, without those that want no mail."""
    seen: set[str] = set()
    for address in given:
        if address.lower() in seen:
            continue
        seen.add(address.lower())
        if wants_none(address, rules.opt_outs):
            left_out.append((address, "wants no mail from us"))
        else:
            yield address
