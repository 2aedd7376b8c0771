"""Who may request over the web, and change what was requested."""

from __future__ import annotations

from swingbot.core.access.roles import Person, Role, may, tree_refusal
from swingbot.service.ports.access import Access


class NotYours(Exception):
    """The person may not request or change this; the message says why."""


def check_tree(person: Person, tree: str) -> None:
    """Raise NotYours if the person's token is not for requests of `tree`."""
    if (why := tree_refusal(person, tree)) is not None:
        raise NotYours(why)


def check_asker(access: Access, id: str, person: Person, act: str) -> None:
    """Raise NotYours unless the person requested `id`, or is a moderator; `act` is what they may
    not.
    """
    if not may(person.role, Role.MODERATOR) and person.who not in access.askers(id):
        raise NotYours(f"{id} is not yours: only who queued it, or a moderator, may {act} it")


def check_canceller(access: Access, id: str, person: Person) -> None:
    """Raise NotYours unless the person alone requested and queued `id`, or is a moderator."""
    if may(person.role, Role.MODERATOR):
        return
    askers = access.askers(id)
    if not askers.get(person.who):
        raise NotYours(f"{id} is not yours: only who queued it, or a moderator, may cancel it")
    if len(askers) > 1:
        raise NotYours(f"others wait for {id} too: only a moderator may cancel it")
