"""Compute the recipients of a report about a commit, also those that a dry run leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from email import message_from_bytes, policy
from email.utils import getaddresses
from fnmatch import fnmatchcase

from swingbot.core.incident.model import FirstMail, Sighting
from swingbot.core.mail.recipients import Chosen, MaintainerEntry, NoMaintainers, choose
from swingbot.core.mail.trailers import people_in_trailers
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.moderation.aa_record import why_restricted
from swingbot.core.moderation.filing import Addressed, MailRules
from swingbot.service.ports import Git, GitError, LabSettings, Tools
from swingbot.service.ports.anchors import Anchors
from swingbot.service.ports.bisections import Bisections
from swingbot.service.ports.outbox import AddressedMail
from swingbot.service.ports.sightings import Sightings


def recipients_of(
    tools: Tools,
    settings: LabSettings,
    tree: str,
    commit: str,
    author: str,
    base: str,
    restricted: str = "",
) -> Addressed:
    """Return the recipients of a mail about `commit`, whose author is `Name <address>`. They depend
    only on that commit, the settings, and `base`, the base of the tree, whose MAINTAINERS counts.
    That of the culprit never does, nor that of an earlier commit, which may have the same author.

    In a dry run, if it is `restricted` (why), or if no recipient is allowed, the mail goes to the
    operator (`mail.to`).
    """
    chosen, problem = would_go_to(tools, settings, tree, commit, author, base)
    return addressed(settings.mail, settings.recipients, chosen, problem, restricted)


def readers(first: FirstMail) -> tuple[str, ...]:
    """Return the bare addresses that got the first mail of a thread."""
    headers = message_from_bytes(first.message, policy=policy.compat32)
    return tuple(
        address
        for _, address in getaddresses([str(headers.get(name, "")) for name in ("To", "Cc")])
        if address
    )


def within(addressed: Addressed, thread: Sequence[str], operator: tuple[str, ...]) -> Addressed:
    """Return the recipients who got the first mail of the thread; without any, the operator."""
    known = {address.lower() for address in thread}
    to, cc = (
        tuple(address for address in given if address.lower() in known)
        for given in (addressed.to, addressed.cc)
    )
    new = [
        address
        for address in (*addressed.to, *addressed.cc)
        if address.lower() not in known and address not in operator
    ]
    if not to:
        to, cc = operator, ()
    left_out = (
        *addressed.left_out,
        *((address, "did not get the first mail of this thread") for address in new),
    )
    return replace(
        addressed, to=to, cc=cc, left_out=left_out, dry_run=addressed.dry_run or to == operator
    )


def testboxes_of(bisections: Bisections, sightings: Sequence[Sighting]) -> tuple[str, ...]:
    """Return the testboxes on which these were found."""
    found = [bisections.get(sighting.bisection) for sighting in sightings]
    return tuple(bisection.testbox for bisection in found if bisection is not None)


def testboxes_of_mail(
    sightings: Sightings, bisections: Bisections, report: int, mail: AddressedMail
) -> tuple[str, ...]:
    """Return the testboxes whose results a mail reports; an update reports what it adds."""
    if mail.kind == "retraction":
        return ()
    if mail.kind == "update":
        new = [one for one in sightings.of_incident(mail.incident) if one.report == report]
        if new:
            return testboxes_of(bisections, new)
    return (mail.testbox,) if mail.testbox else ()


def restricted_on(
    testboxes: KnownTestboxes, mail: MailRules, anchors: Anchors, names: Iterable[str]
) -> str:
    """Return why reports about these testboxes go to the operator alone; "" if they do not."""
    found = (
        why_restricted(
            name,
            virtual=testboxes.known(name).virtual,
            anchors=anchors.boots(name),
            rules=mail.aa,
        )
        for name in sorted(set(names))
    )
    return "; ".join(why for why in found if why)


def would_go_to(
    tools: Tools, settings: LabSettings, tree: str, commit: str, author: str, base: str
) -> tuple[Chosen, str]:
    """Return author, maintainers and lists within the operator's rules, and why maintainers are
    unknown ("" if they are known).
    """
    mail = settings.mail
    alone = any(fnmatchcase(tree, pattern) for pattern in mail.private_trees)
    listed: tuple[MaintainerEntry, ...] = ()
    problem = ""
    if tools.maintainers is None:
        problem = "" if alone else "maintainers and lists are unknown: mail.get_maintainer is off"
    elif not alone:
        try:
            listed = tools.maintainers(commit, base)
        except NoMaintainers as error:
            problem = f"maintainers and lists are unknown: {error}"
    rules = replace(mail.rules, author_only=alone)
    return choose(author, listed, rules, _named_in(tools.git, commit)), problem


def _named_in(git: Git, commit: str) -> tuple[str, ...]:
    try:
        return people_in_trailers(git.message(commit))
    except GitError:
        return ()


def addressed(
    mail: MailRules,
    operator: tuple[str, ...],
    chosen: Chosen,
    problem: str,
    restricted: str = "",
) -> Addressed:
    """Return the stored form of `chosen`; `operator` has the addresses of `mail.to`."""
    dry_run = mail.dry_run or bool(restricted)
    really = not dry_run and bool(chosen.to)
    return Addressed(
        to=chosen.to if really else operator,
        cc=chosen.cc if really else (),
        would_to=chosen.to,
        would_cc=chosen.cc,
        lists=chosen.lists,
        left_out=chosen.left_out,
        dry_run=dry_run,
        problem=problem,
        restricted=restricted,
        commit_only=chosen.commit_only,
    )
