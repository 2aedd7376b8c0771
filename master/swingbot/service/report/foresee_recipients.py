"""Who would get a report about a commit, and who is left out and why. Sends nothing."""

from __future__ import annotations

from swingbot.core.model.report_documents import Recipients
from swingbot.service.asked.commits import check_name
from swingbot.service.ports import GitError, Lab, RequestError
from swingbot.service.report.address import addressed, would_go_to
from swingbot.service.watch.trees import known_tree


def foresee_recipients(lab: Lab, tree: str, commit: str, base: str | None) -> Recipients:
    """Return the recipients by MAINTAINERS of the commit `base`; None: the base of the tree.

    Raises RequestError.
    """
    watched, git = known_tree(lab.transaction, tree), lab.tools.git
    for name in (commit, base):
        if name is not None:
            check_name(name)
    try:
        full = git.resolve(tree, commit)
        read = watched.base_commit if base is None else git.resolve(tree, base)
        author = git.facts(full).author
    except GitError as error:
        raise RequestError(str(error)) from None
    mail = lab.settings.mail
    chosen, problem = would_go_to(lab.tools, lab.settings, tree, full, author, read)
    found = addressed(mail, lab.settings.recipients, chosen, problem)
    return {
        "commit": full,
        "to": list(found.would_to),
        "cc": list(found.would_cc),
        "lists": list(found.lists),
        "left_out": [{"address": one, "reason": reason} for one, reason in found.left_out],
        "commit_only": list(found.commit_only),
        "dry_run": found.dry_run,
        "really_to": [*found.to, *found.cc],
        "unknown": problem or None,
    }
