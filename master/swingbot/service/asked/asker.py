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


def check_steerer(access: Access, id: str, person: Person, act: str) -> None:
    """Raise NotYours unless the person queued `id`, or is a moderator; one who asked for what
    another person or an operator had queued only waits for it. `act` is what they may not.
    """
    if not may(person.role, Role.MODERATOR) and not access.askers(id).get(person.who):
        raise NotYours(f"{id} is not yours: only who queued it, or a moderator, may {act} it")


def check_canceller(access: Access, id: str, person: Person) -> None:
    """Raise NotYours unless the person alone requested and queued `id`, or is a moderator."""
    check_steerer(access, id, person, "cancel")
    if not may(person.role, Role.MODERATOR) and len(access.askers(id)) > 1:
        raise NotYours(f"others wait for {id} too: only a moderator may cancel it")
