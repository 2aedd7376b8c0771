"""The mail that a commit was posted as: by its own message, or by the archive of the mailing lists."""

from __future__ import annotations

from swingbot.core.mail.message import PostedMail
from swingbot.core.mail.posting import posted_as
from swingbot.service.ports import GitError, Lab


def posting_of(lab: Lab, commit: str, subject: str, author: str) -> PostedMail | None:
    """The posting's Message-ID, and its subject and references where the archive (`mail.archive`) has it. None where nothing is known.

    A trailer says which mail it was; without one the archive is searched for `[PATCH] subject` by the author, the latest version of it.
    """
    try:
        told = posted_as(lab.git.message(commit))
    except GitError:
        told = None
    if lab.list_archive is None:
        return told
    return lab.list_archive(told.message_id if told else "", subject, author) or told
