"""Which commits a person over the web may request.

Commits must be on the tree's own branch as fetched into the mirror, or be sent by the person:
nothing is fetched, because a server may offer anybody's commits under the name of a trusted tree.
Patches, and commits that the branch lacks, are trusted only where the person's token vouches for
them (`own_commits`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from swingbot.core.access.roles import Person, ref_name
from swingbot.core.limits import BUNDLE_COMMITS
from swingbot.core.model.records import Tree
from swingbot.core.patchset.bundle import SentCommits
from swingbot.service.ports import Git, GitError, QuarantinedGit, RequestError
from swingbot.service.ports.variants import Variants
from swingbot.service.visible import VISIBLE

# A name, with at most one step back from it: git's other ways to name a commit search the whole
# history.
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}(?:[~^][0-9]{0,4})?")


class NotOnBranch(RequestError):
    """A commit is in the mirror, but not in the tree's branch."""

    def __init__(self, message: str, commit: str) -> None:
        super().__init__(message)
        self.commit = commit


def unbundle(git: QuarantinedGit, person: Person | None, sent: SentCommits) -> None:
    """Read the commits that were sent with a request. Raises RequestError."""
    if sent.bundle is None:
        return
    try:
        git.unbundle(sent.bundle, sender(person))
    except GitError as error:
        raise RequestError(str(error), key="range") from None


def sender(person: Person | None) -> str:
    """Return the name in refs of a person over the web; None: an operator on the host."""
    return "operator" if person is None else person.ref_name


def admit(git: QuarantinedGit) -> None:
    """Let the commits of a request join the mirror. Raises RequestError."""
    try:
        git.admit()
    except (GitError, OSError) as error:
        raise RequestError(f"the commits cannot be kept: {error}") from None


def asked_commits(
    git: Git, tree: Tree, refs: Iterable[str], person: Person, sent: SentCommits
) -> tuple[dict[str, str], bool]:
    """Return the commits that `refs` name, of the tree's branch or sent by the person; and whether
    the branch lacks any of them. Raises RequestError.
    """
    commits: dict[str, str] = {}
    foreign = False
    for ref in dict.fromkeys(refs):
        try:
            commits[ref] = branch_commit(git, tree, sent.names.get(ref, ref))
        except NotOnBranch as error:
            if not git.is_sent_by(person.ref_name, error.commit):
                raise
            commits[ref], foreign = error.commit, True
    return commits, foreign


def off_branch(git: Git, tree: Tree, commits: Collection[str]) -> set[str]:
    """Return those of `commits` that the tree's branch lacks. Raises RequestError."""
    try:
        return git.outside(commits, ends_of_branch(tree))
    except GitError as error:
        raise RequestError(str(error)) from None


def own_commits(
    git: QuarantinedGit,
    variants: Variants,
    tree: Tree,
    person: Person | None,
    commits: Sequence[str],
) -> set[str]:
    """Return those of `commits` that the person's token vouches for: of all that they build on and
    that the tree's branch lacks, this token was the first to send it, or the patch that it is made
    from. What this request brings is recorded as sent.

    No token owns a commit that the service already had from elsewhere. Ownership follows the token,
    not the person's name, because another token of that person may have leaked.
    """
    if person is None or not person.vouches or tree.trust == "untrusted":
        return set()
    try:
        parents = git.beyond(commits, ends_of_branch(tree), BUNDLE_COMMITS)
    except GitError:
        return set()  # too many to look at: untrusted, as without the token
    variants.note_sent(person.token, git.created(parents))
    sent = variants.sent_by(person.token, parents)
    own: set[str] = set()
    for commit, below in parents.items():
        if commit in sent and own.issuperset(parents.keys() & below):
            own.add(commit)
    return own.intersection(commits)


def ends_of_branch(tree: Tree) -> list[str]:
    """Return the commits whose ancestors are the branch of a tree, as last fetched."""
    return [end for end in (tree.tip_commit, tree.base_commit) if end is not None]


def check_name(ref: str) -> None:
    """Raise RequestError for what may not name a commit over the web."""
    if _REF.fullmatch(ref) is None or ".." in ref:
        raise RequestError(
            f"{ref[:80]!r} is not a valid commit name: give a hash or a prefix of one, a tag,"
            " `base` or `tip`"
        )


def readable_commit(git: Git, tree: Tree, ref: str) -> str:
    """Return the commit that `ref` names, for a question about what it changes.

    A request over the web, unless an operator's, may ask about commits of the tree's branch and
    those that its person sent; with a token for testbox groups about none. Raises RequestError, in
    the same words for another's commit as for one that does not exist.
    """
    visible = VISIBLE.get()
    check_name(ref)
    if visible is not None and visible.groups is not None:
        raise RequestError("your token is only for testboxes of some groups: name a source instead")
    try:
        commit = git.resolve(tree.name, "tip" if ref == tree.branch else ref)
        if visible is None or not git.outside([commit], ends_of_branch(tree)):
            return commit
        if visible.person is not None and git.is_sent_by(ref_name(visible.person), commit):
            return commit
    except GitError as error:
        raise RequestError(str(error)) from None
    raise RequestError(f"tree {tree.name} has no commit, tag or branch {ref!r}")


def branch_commit(git: Git, tree: Tree, ref: str) -> str:
    """Return the commit that `ref` names in the tree's own branch, as fetched into the mirror.

    The mirror also holds other trees and other people's patches. Raises RequestError, NotOnBranch.
    """
    check_name(ref)
    try:
        commit = git.resolve(tree.name, "tip" if ref == tree.branch else ref)
    except GitError as error:
        raise RequestError(
            f"{error}; over the web only fetched commits can be compared: give a hash or a "
            "prefix of one,"
            f" a tag, `base`, or `tip` of branch {tree.branch}"
        ) from None
    if not any(git.is_ancestor(commit, end) for end in ends_of_branch(tree)):
        raise NotOnBranch(
            f"{commit[:12]} is not in branch {tree.branch} of tree {tree.name} as last fetched,"
            " so it cannot be compared over the web",
            commit,
        )
    return commit
