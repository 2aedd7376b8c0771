"""Which commits the service has, for who wants to send those that it lacks."""

from __future__ import annotations

from collections.abc import Sequence

from swingbot.core.access.roles import Person
from swingbot.service.asked.commits import ends_of_branch
from swingbot.service.ports import Git
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.watch.trees import known_tree


def known_commits(
    transaction: OpenTransaction,
    git: Git,
    person: Person,
    commits: Sequence[str],
    tree: str | None = None,
) -> set[str]:
    """Return those of `commits` that are in the branch of `tree`, or for None those that are in any
    tree or were sent by the person. Raises RequestError, GitError.
    """
    if tree is None:
        return git.known(commits, person.ref_name)
    return set(commits) - git.outside(commits, ends_of_branch(known_tree(transaction, tree)))
