"""Find the mail that a commit was posted as, from its message or in an archive of mailing lists."""

from __future__ import annotations

from swingbot.core.mail.message import PostedMail
from swingbot.core.mail.posting import posted_as
from swingbot.service.ports import GitError, Tools


def posting_of(tools: Tools, commit: str, subject: str, author: str) -> PostedMail | None:
    """Return the posting's Message-ID, with its subject and references if the archive
    (`mail.archive`) has it. None if it is unknown.

    A trailer of the commit names the mail. Without one, the archive is searched for the latest
    version of `[PATCH] subject` by the author.
    """
    try:
        trailer = posted_as(tools.git.message(commit))
    except GitError:
        trailer = None
    if tools.list_archive is None:
        return trailer
    return tools.list_archive(trailer.message_id if trailer else "", subject, author) or trailer
