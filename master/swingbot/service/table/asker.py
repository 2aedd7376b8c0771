"""Who may request and change tables over the web."""

from __future__ import annotations

from swingbot.core.access.roles import Person, Role, may, tree_refusal
from swingbot.service.ports.access import Access
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.trees import Trees
from swingbot.service.table.find_existing import table_with


class NotYours(Exception):
    """The person may not request or change this table; the message says why."""


def check_tree(person: Person, tree: str) -> None:
    """Raise NotYours if the person's token is not for tables of `tree`."""
    if (why := tree_refusal(person, tree)) is not None:
        raise NotYours(why)


def check_asker(
    access: Access, comparisons: Comparisons, trees: Trees, id: str, person: Person
) -> None:
    """Raise NotYours unless the person asked for table `id`, or is a moderator.

    Raises RequestError if there is no such table.
    """
    table = table_with(comparisons, id)
    check_tree(person, trees.get(table.tree).name)
    if not may(person.role, Role.MODERATOR) and person.who not in access.askers(table.id):
        raise NotYours(f"{id} is not yours: only who queued it, or a moderator, may extend it")
