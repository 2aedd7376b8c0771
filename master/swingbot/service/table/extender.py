"""Who may extend tables over the web."""

from __future__ import annotations

from swingbot.core.access.roles import Person
from swingbot.service.asked import asker
from swingbot.service.ports.access import Access
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.trees import Trees
from swingbot.service.table.find_existing import table_with


def check_extender(
    access: Access, comparisons: Comparisons, trees: Trees, id: str, person: Person
) -> None:
    """Raise NotYours unless the person asked for table `id`, or is a moderator; NotFound."""
    table = table_with(comparisons, id)
    asker.check_tree(person, trees.get(table.tree).name)
    asker.check_asker(access, id, person, "extend")
