"""A bare mirror of all trees, and swingbot's queries on it.

Trees are fetched into `refs/trees/<name>/tip`. Measured commits are kept under
`refs/swingbot/keep/<commit>`, so that rebasing a branch never removes a kernel that a report refers
to; commits that a person sent under `refs/swingbot/people/<person>/<commit>`.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Final

from swingbot.adapters import git_limits, limits, process
from swingbot.adapters.git_bundle import LimitedRunner, Unbundled, outside, unbundle
from swingbot.adapters.git_series import apply_series, check_touched
from swingbot.adapters.process import PATIENCE
from swingbot.adapters.quarantine import Quarantine, quarantine
from swingbot.adapters.remembered import Remembered
from swingbot.core.access.urls import BadUrl, Remote, check_path, remote
from swingbot.core.limits import PATCH_SUBJECT_CHARACTERS, QUERY_VALUES
from swingbot.core.mail.posting import posted_as
from swingbot.core.model.patches import Patch
from swingbot.core.model.records import CommitFacts
from swingbot.core.patchset.bundle import Bundle
from swingbot.core.patchset.model import SeriesPatch
from swingbot.service.checkpoint import checkpoint
from swingbot.service.ports import CannotRevert, GitError
from swingbot_jobs.borrowed_repository import NotARepository, borrowed
from swingbot_jobs.process_limits import ProcessLimits

_SHA = re.compile(r"[0-9a-f]{40}")
_PREFIX = re.compile(r"[0-9a-f]{4,40}")
# A branch, tag or commit of a remote, without characters that have a meaning in a refspec or an
# option.
_REF = re.compile(r"(?!-)[^\s:~^?*\[\\\x00-\x1f\x7f]{1,250}")

# Author, committer and date of commits made by swingbot: equal contents give equal commits.
_ROBOT: Final = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "swingbot"), ("EMAIL", "swingbot@localhost"))
} | {
    "GIT_AUTHOR_DATE": "2000-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2000-01-01T00:00:00Z",
}
# Format of patches that are compared with each other, regardless of the user's configuration.
_DIFF: Final = (
    "--diff-algorithm=myers",
    "--unified=3",
    "--full-index",
    "--no-color",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
_WHOLE_FILES: Final = "--unified=1000000"  # lines of context


# For every command that reaches a remote, in addition to the single allowed protocol: never contact
# another server, and never wait for a silent one.
_CAREFUL: Final = (
    "-c",
    "http.followRedirects=false",
    "-c",
    "http.lowSpeedLimit=1000",
    "-c",
    "http.lowSpeedTime=60",
    "-c",
    "core.hooksPath=/dev/null",
)

# Lines that git prints after the actual reason.
_BOILERPLATE: Final = (
    "Could not read from remote repository.",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
)


_FETCH_LOCK: Final = "swingbot-fetch.lock"
# Requests under way share it; who removes objects has it alone.
_OBJECTS_LOCK: Final = "swingbot-objects.lock"
_FORGOTTEN: Final = "swingbot-forgotten"  # has a file for each commit
_SENT: Final = "swingbot-sent"  # has a file for each commit that a person sent and no tree has
_PEOPLE: Final = "refs/swingbot/people"
# What everybody may build on.
_TREES: Final = ("--glob=refs/trees/*/tip", "--glob=refs/trees/*/base")


class TooMuchWork(GitError):
    """An answer needs more processor time, memory or bytes than its limit, whenever it is asked
    for.
    """


class Mirror:
    """The bare repository at `path`, created on first use.

    `listed` has globs of paths on this host that may be fetched from.
    """

    def __init__(
        self, path: Path, listed: Sequence[str] = ("*",), fetch_bytes: int = limits.FETCH_BYTES
    ) -> None:
        self.path, self._listed, self._fetch_bytes = path, tuple(listed), fetch_bytes
        self._between: Remembered[tuple[str, str], tuple[str, ...]] = Remembered()
        self._along: Remembered[tuple[str, str], dict[str, tuple[str, ...]]] = Remembered()
        self._copies: Remembered[tuple[str, str, str], str | None] = Remembered()
        self._places: Remembered[tuple[str, str, frozenset[str]], dict[str, int]] = Remembered()
        self._below: Remembered[tuple[str, int], list[str]] = Remembered()
        self._patches: Remembered[str, bytes | TooMuchWork] = Remembered(_patch_bytes)

    # -- fetching

    def check_source(self, url: str, refs: Sequence[str]) -> None:
        """Raise GitError if `url` may not be fetched from or one of `refs` is not a valid name.

        Nothing is fetched.
        """
        for ref in refs:
            self._allowed(url, ref)

    def fetch_branch(self, tree: str, url: str, branch: str) -> str:
        """Fetch `branch` of `url` and return its tip.

        Raises GitError if the repository or branch does not exist.
        """
        source = self._allowed(url, branch)
        self._fetch(
            source,
            f"+refs/heads/{branch}:refs/trees/{tree}/tip",
            what=f"branch {branch!r} of {url}",
        )
        self._unmark(f"refs/trees/{tree}/tip")
        return self._git("rev-parse", f"refs/trees/{tree}/tip").strip()

    def resolve_remote(self, tree: str, url: str, ref: str) -> str:
        """Resolve a branch, tag or commit of `url`, fetching it if needed."""
        source = self._allowed(url, ref)
        if _PREFIX.fullmatch(ref):
            try:
                return self.resolve(tree, ref)
            except GitError:
                pass  # a branch or tag may have a hexadecimal name
        for candidate in (f"refs/tags/{ref}", f"refs/heads/{ref}", ref):
            try:
                self._fetch(
                    source, f"+{candidate}:refs/trees/{tree}/fetched", what=f"{ref!r} of {url}"
                )
            except GitError:
                continue
            return self._git("rev-parse", f"refs/trees/{tree}/fetched^{{commit}}").strip()
        raise GitError(
            f"{url} has no branch, tag or commit {ref!r} (or the commit is not reachable from "
            "the branch)"
        )

    def remote_tip(self, url: str, branch: str) -> str:
        """Return the tip of `branch` of `url`, without fetching."""
        source = self._allowed(url, branch)
        what = f"branch {branch!r} of {url}"
        with self._readable(source, what) as address:
            answer = self._git(
                *(*_CAREFUL, "ls-remote", "--exit-code", "--", address, f"refs/heads/{branch}"),
                what=what,
                timeout=limits.TIP_SECONDS,
                protocol=source.protocol,
            )
        return answer.split()[0]

    def _allowed(self, url: str, ref: str) -> Remote:
        """Return the remote if fetching `ref` from `url` is allowed.

        Raises GitError if it is not, or if `ref` is not a valid name.
        """
        if _REF.fullmatch(ref) is None or ".." in ref:
            raise GitError(f"{ref[:80]!r} is not a valid name of a branch, tag or commit")
        try:
            source = remote(url)
            check_path(source, self._listed)
        except BadUrl as error:
            raise GitError(str(error)) from None
        return source

    # -- reading

    def resolve(self, tree: str, ref: str) -> str:
        """Resolve a commit, a unique prefix, `base`, `tip`, or a ref kept for `tree` to a commit in
        the mirror.
        """
        if not ref or ref.startswith("-") or any(c.isspace() for c in ref):
            raise GitError(f"{ref!r} is not a commit, tag or branch")
        names = [f"refs/trees/{tree}/{ref}", ref] if not _SHA.fullmatch(ref) else [ref]
        for name in names:
            done = self._run(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
            )
            if done.rc == 0:
                return done.out.strip()
        if (
            _PREFIX.fullmatch(ref)
            and "ambiguous" in self._run("rev-parse", "--verify", f"{ref}^{{commit}}").err
        ):
            raise GitError(
                f"{ref!r} is the prefix of more than one commit of tree {tree}; give more digits"
            )
        raise GitError(f"tree {tree} has no commit, tag or branch {ref!r}")

    def facts(self, commit: str) -> CommitFacts:
        form = "--format=%H%x00%T%x00%P%x00%s%x00%an <%ae>%x00%cn <%ce>%x00%B"
        fields = (
            self._git("show", "-s", "--no-show-signature", form, commit, "--")
            .rstrip("\n")
            .split("\0", 6)
        )
        made_here = self._made_here(fields[0], fields[5])
        posted = posted_as(fields[6])
        return CommitFacts(
            commit=fields[0],
            tree_hash=fields[1],
            parents=tuple(fields[2].split()),
            subject=fields[3][:PATCH_SUBJECT_CHARACTERS],
            author=fields[4][:PATCH_SUBJECT_CHARACTERS],
            made_here=made_here,
            posted=posted.message_id if posted is not None else "",
            patches=self._patches_made_here(fields[0]) if made_here else (),
        )

    def _made_here(self, commit: str, committer: str) -> bool:
        robot = f"{_ROBOT['GIT_COMMITTER_NAME']} <{_ROBOT['GIT_COMMITTER_EMAIL']}>"
        return committer == robot or self._was_sent(commit)

    def _patches_made_here(self, commit: str) -> tuple[str, ...]:
        """Return `CommitFacts.patches`, of at most QUERY_VALUES commits; empty beyond limits."""
        form = ("--no-show-signature", "--format=%H%x00%cn <%ce>")
        lines = self._git("log", "--first-parent", f"-{QUERY_VALUES}", *form, commit, "--")
        pairs = (line.partition("\0") for line in lines.split("\n")[:-1])
        made = [
            sha for sha, _, by in takewhile(lambda pair: self._made_here(pair[0], pair[2]), pairs)
        ]
        try:
            ids = self.patch_ids(made, renames=True, within=git_limits.QUESTION)
        except GitError:
            return ()
        return tuple(ids.get(one, "") for one in reversed(made))

    def is_kernel(self, commit: str) -> bool:
        """Return whether the top directory has a Makefile, a Kconfig and init/, like that of a
        kernel tree.
        """
        names = set(self._git("ls-tree", "--name-only", commit).splitlines())
        return {"Makefile", "Kconfig", "init"} <= names

    def is_ancestor(self, old: str, new: str) -> bool:
        return self._run("merge-base", "--is-ancestor", old, new).rc == 0

    def outside(self, commits: Collection[str], ends: Sequence[str]) -> set[str]:
        """Return those of `commits` that are not here, or not an ancestor of one of `ends`."""
        return outside(self._bounded, commits, ends)

    def beyond(
        self, commits: Collection[str], ends: Sequence[str], most: int
    ) -> dict[str, tuple[str, ...]]:
        """Return `commits` and what they build on that is not in the history of `ends`, parents
        before children, with their parents. Raises GitError if they are more than `most`.
        """
        words = ("rev-list", "--topo-order", "--parents", f"--max-count={most + 1}")
        rows = self._git(*words, *sorted(set(commits)), "--not", *ends).splitlines()
        if len(rows) > most:
            raise GitError(f"they build on more than {most} commits that the branch lacks")
        found = [row.split() for row in reversed(rows)]
        return {commit: tuple(parents) for commit, *parents in found}

    def known(self, commits: Collection[str], person: str) -> set[str]:
        """Return those of `commits` that are in a tree, or that `person` sent.

        `person` is a `Person.ref_name`.
        """
        return set(commits) - outside(self._bounded, commits, self._seen(person))

    def is_sent_by(self, person: str, commit: str) -> bool:
        """Return whether `commit` was sent by the person, or is an ancestor of one that was."""
        return not outside(self._bounded, [commit], [f"--glob={_PEOPLE}/{person}/*"])

    def sent(self) -> set[str]:
        """Return the commits that are kept because people sent them."""
        if not self.path.exists():
            return set()
        return {
            name.rpartition("/")[2]
            for name in self._git("for-each-ref", "--format=%(refname)", _PEOPLE).split()
        }

    def merge_base(self, one: str, other: str) -> str | None:
        done = self._run("merge-base", one, other)
        return done.out.strip() or None if done.rc == 0 else None

    def first_parents(self, good: str, bad: str) -> list[str]:
        """Return the commits after `good` up to and including `bad`, oldest first, along first
        parents.
        """
        return self._git("rev-list", "--first-parent", "--reverse", f"{good}..{bad}", "--").split()

    def first_parents_below(self, commit: str, most: int) -> list[str]:
        """Return `commit` and its first-parent ancestors, newest first, at most `most` commits."""
        arguments = ("rev-list", "--first-parent", f"--max-count={most}", commit, "--")
        return self._below.get((commit, most), lambda: self._git(*arguments).split())

    def places(self, good: str, bad: str, commits: Collection[str]) -> dict[str, int]:
        """Return the place of each of `commits` that is in `good..bad`, parents before children.

        The others are left out. Raises GitError if that takes longer than a page may.
        """
        asked = frozenset(commits)

        def ask() -> dict[str, int]:
            arguments = ("rev-list", "--topo-order", "--reverse", f"{good}..{bad}", "--")
            listed = self._git(*arguments, timeout=limits.PLACES_SECONDS).split()
            return {commit: place for place, commit in enumerate(listed) if commit in asked}

        return self._places.get((good, bad, asked), ask)

    def changed_paths(self, commit: str) -> tuple[str, ...]:
        """Return the paths that `commit` changes relative to its first parent."""
        return tuple(
            self._git(
                "diff-tree",
                "-r",
                "--name-only",
                "--no-commit-id",
                "-m",
                "--first-parent",
                "--root",
                commit,
                "--",
            ).splitlines()
        )

    def paths_between(self, old: str, new: str) -> tuple[str, ...]:
        arguments = ("diff", "--name-only", "--no-renames", old, new, "--")
        return self._between.get((old, new), lambda: tuple(self._git(*arguments).splitlines()))

    def whole_sources(self, commit: str) -> str:
        """Return the diff of `commit` to its first parent, with the whole of each C or assembler
        file in it: git takes a label for the beginning of a function.

        Raises GitError for a root commit, and TooMuchWork.
        """
        if problem := check_touched(self._bounded, f"{commit}^", commit):
            raise TooMuchWork(problem)
        arguments = ("diff", "--no-renames", "--no-ext-diff", "--no-textconv", *_DIFF)
        return self._git(
            *(*arguments, _WHOLE_FILES, f"{commit}^", commit, "--", "*.c", "*.S", "*.h"),
            within=git_limits.WRITING_A_PATCH,
        )

    def paths_along(self, good: str, bad: str) -> dict[str, tuple[str, ...]]:
        """Return the paths that each commit of `first_parents(good, bad)` changes relative to its
        first parent.
        """

        def ask() -> dict[str, tuple[str, ...]]:
            arguments = (
                "log",
                "--first-parent",
                "-m",
                "--name-only",
                "--no-renames",
                "--no-show-signature",
                "--format=%x00%H",
            )
            blocks = self._git(*arguments, f"{good}..{bad}", "--").split("\0")[1:]
            return {
                lines[0]: tuple(line for line in lines[1:] if line)
                for lines in map(str.splitlines, blocks)
            }

        return self._along.get((good, bad), ask)

    def message(self, commit: str) -> str:
        """Return the whole message of `commit`."""
        return self._git("show", "-s", "--no-show-signature", "--format=%B", commit, "--")

    def messages_from(self, commit: str, tip: str, most: int) -> list[tuple[str, str]]:
        """Return (commit, message) of `commit` and of at most `most` commits after it towards
        `tip`, oldest first, along first parents.
        """
        after = self.first_parents(commit, tip)[:most]
        if not after:
            return [(commit, self.message(commit))]
        entries = self._git(
            "log",
            "--first-parent",
            "--reverse",
            "--no-show-signature",
            "--format=%H%x01%B%x00",
            f"{commit}..{after[-1]}",
            "--",
        ).split("\0")
        later = [
            (sha.strip(), text)
            for sha, _, text in (one.partition("\x01") for one in entries)
            if text
        ]
        return [(commit, self.message(commit)), *later]

    def patch_ids(
        self,
        commits: Sequence[str],
        *,
        renames: bool = False,
        within: ProcessLimits = git_limits.GIT,
    ) -> dict[str, str]:
        """Return the `git patch-id --verbatim` of each commit, the same for a rebased copy.

        Merges, root commits and empty commits have none. `renames`: with renamed files as in mails.
        """
        diff = ("diff-tree", "--stdin", "-p", "--no-ext-diff", "--no-textconv")
        output = self._git(
            *(*diff, "--find-renames" if renames else "--no-renames", *_DIFF),
            stdin="".join(f"{c}\n" for c in commits).encode(),
            within=within,
            into=("patch-id", "--verbatim"),
        )
        return {
            commit: patch_id
            for patch_id, _, commit in (line.partition(" ") for line in output.splitlines())
        }

    def patches(self, good: str, bad: str, most: int = 500) -> list[Patch]:
        """Return the latest `most` commits after `good` up to and including `bad` along first
        parents, oldest first, as patches.
        """
        output = self._git(
            "log",
            "--first-parent",
            "--reverse",
            f"--max-count={most}",
            "--no-show-signature",
            "--format=%H%x00%P%x00%s%x00%an <%ae>%x00%x00",
            f"{good}..{bad}",
            "--",
        )
        fields = [
            one.lstrip("\n").split("\0") for one in output.split("\0\0\n") if one.strip("\n\0")
        ]
        parents = {commit: names.split() for commit, names, _, _ in fields}
        ids = self.patch_ids([commit for commit, names in parents.items() if len(names) == 1])
        return [
            Patch(
                commit=commit,
                parent=next(iter(parents[commit]), ""),
                patch_id=ids.get(commit, "")
                if len(parents[commit]) < 2
                else f"merge:{' '.join(parents[commit][1:])}",
                subject=subject[:PATCH_SUBJECT_CHARACTERS],
                author=author[:PATCH_SUBJECT_CHARACTERS],
            )
            for commit, _, subject, author in fields
        ]

    def find_patch(
        self, patch_id: str, like: str, good: str, bad: str, most: int = 200
    ) -> str | None:
        """Return the commit in good..bad with that patch-id, searched among the latest `most` that
        change the same paths as `like`; None if there is none.
        """

        def ask() -> str | None:
            paths = [f":(top,literal){path}" for path in self.changed_paths(like)[:100]]
            commits = (
                self._git(
                    "rev-list", "--no-merges", f"--max-count={most}", f"{good}..{bad}", "--", *paths
                ).split()
                if paths
                else []
            )
            return next(
                (commit for commit, id_ in self.patch_ids(commits).items() if id_ == patch_id),
                None,
            )

        return self._copies.get((patch_id, good, bad), ask)

    def touching(self, good: str, bad: str, source: str, most: int) -> list[tuple[str, str]]:
        """Return the latest `most` commits after `good` up to and including `bad`, newest first,
        with their subjects: those that touch the C or assembler file `source`, named without its
        ending; "": all of them. Merges are left out."""
        files = [f":(literal){source}{ending}" for ending in (".c", ".S")] if source else []
        words = ("log", "--no-merges", f"--max-count={most}", "--no-show-signature")
        output = self._git(
            *(*words, "--format=%H%x00%s", f"{good}..{bad}", "--", *files),
            timeout=limits.PLACES_SECONDS,
        )
        return [(line[:40], line[41:]) for line in output.splitlines()]

    def patch(self, commit: str) -> bytes:
        """Return `commit` as a mail for `git am`.

        Raises GitError with the reason if a commit has no patch, or a person sent it: kits show
        patches to everybody. That a patch is too large
        is remembered.
        """

        def ask() -> bytes | TooMuchWork:
            try:
                return self._written_patch(commit)
            except TooMuchWork as error:
                return error

        patch = self._patches.get(commit, ask)
        if isinstance(patch, TooMuchWork):
            raise TooMuchWork(str(patch))
        return patch

    def _written_patch(self, commit: str) -> bytes:
        if self._was_sent(commit):
            raise GitError("a person sent the commit, who has it")
        parents = self.facts(commit).parents
        if len(parents) != 1:
            raise GitError("it is a merge" if parents else "it is the root commit")
        if problem := check_touched(self._run, parents[0], commit):
            raise TooMuchWork(problem)
        options = (
            "--quiet",
            "--no-signature",
            "--full-index",
            "--binary",
            "--no-ext-diff",
            "--no-textconv",
            "--no-numbered",
            "--no-thread",
        )
        with tempfile.TemporaryDirectory(
            prefix="swingbot-patch-"
        ) as scratch:  # as a file, since its bytes may be in any encoding
            self._git(
                *("format-patch", *options, "--output-directory", scratch, "-1", commit, "--"),
                timeout=PATIENCE * limits.PATCH_SECONDS,
                within=git_limits.WRITING_A_PATCH,
            )
            file = next(Path(scratch).iterdir(), None)
            patch = b"" if file is None else file.read_bytes()
        if b"\ndiff --git " not in patch:
            raise GitError("it changes nothing")
        return patch

    # -- keeping

    def keep(self, commit: str) -> None:
        """Protect `commit` from garbage collection, whatever its branch does later."""
        self._git("update-ref", f"refs/swingbot/keep/{commit}", commit)

    def _seen(self, person: str) -> list[str]:
        return [*_TREES, f"--glob={_PEOPLE}/{person}/*"]

    def _keep_sent(self, commit: str, person: str) -> None:
        self._git("update-ref", f"{_PEOPLE}/{person}/{commit}", commit)

    def _was_sent(self, commit: str) -> bool:
        return (self.path / _SENT / commit).exists()

    def _mark(self, commits: Collection[str]) -> None:
        """Note that a person sent these commits, so that they are never trusted as a tree's are."""
        if commits:
            (self.path / _SENT).mkdir(exist_ok=True)
        for commit in commits:
            (self.path / _SENT / commit).touch()

    def mark_again(self) -> None:
        """Mark what people sent, after a restore: a backup has the refs, not the marks."""
        self._mark(self._git("rev-list", f"--glob={_PEOPLE}/*", "--not", *_TREES).split())

    def _unmark(self, tip: str) -> None:
        """Forget that a person sent commits that the branch of a tree has now.

        A search that fails does not hold up the tree: they stay untrusted until its next fetch.
        """
        if marked := [file.name for file in (self.path / _SENT).glob("*")]:
            with suppress(GitError):
                for commit in set(marked) - outside(self._run, marked, [tip]):
                    (self.path / _SENT / commit).unlink(missing_ok=True)

    def forget(self, commit: str) -> None:
        """Note that `commit` is to be removed, by `remove_forgotten`."""
        (self.path / _FORGOTTEN).mkdir(exist_ok=True)
        (self.path / _FORGOTTEN / commit).touch()

    def remove_forgotten(self, needed: Callable[[str], bool], seconds: float = 0.0) -> int:
        """Remove the references to forgotten commits but for tips of branches, and the objects that
        nothing else needs; return their number. Those that are `needed` again stay. What was packed
        meanwhile stays until git repacks it.

        A request under way may use objects that it found here: it is waited for. Raises GitError
        if one still is after `seconds`; then nothing is removed yet.
        """
        if not (forgotten := sorted((self.path / _FORGOTTEN).glob("*"))):
            return 0
        removed = 0
        with self._alone(seconds):
            for note in forgotten:
                if not needed(note.name):
                    removed += self._remove(note.name)
                note.unlink()
        return removed

    def _remove(self, commit: str) -> int:
        names = self._git("for-each-ref", f"--points-at={commit}", "--format=%(refname)").split()
        for name in names:
            if not name.endswith("/tip"):
                self._git("update-ref", "-d", name)
        if self._run("cat-file", "-e", commit).rc != 0:
            return 0
        words = ("--objects", "--no-object-names", "--missing=allow-any")
        only = self._git("rev-list", *words, commit, "--not", "--all").split()
        removed = 0
        for sha in reversed(only):  # after what leads to it, so that it is found again
            file = self.path / "objects" / sha[:2] / sha[2:]
            if file.exists():
                file.unlink()
                (self.path / _SENT / sha).unlink(missing_ok=True)
                removed += 1
        return removed

    @contextmanager
    def _alone(self, seconds: float) -> Iterator[None]:
        """Exclude requests and fetches. Raises GitError."""
        end = time.monotonic() + seconds
        while True:
            with ExitStack() as locks:
                if all(
                    locks.enter_context(self._locked(name, fcntl.LOCK_EX | fcntl.LOCK_NB))
                    for name in (_FETCH_LOCK, _OBJECTS_LOCK)
                ):
                    yield
                    return
            if time.monotonic() >= end:
                raise GitError("a request or a fetch that may need the objects is under way")
            time.sleep(0.2)

    @contextmanager
    def _locked(self, name: str, how: int) -> Iterator[bool]:
        """Lock the mirror; yield whether that succeeded."""
        with (self.path / name).open("a") as lock:
            try:
                fcntl.flock(lock, how)
            except BlockingIOError:
                yield False
            else:
                yield True

    def call(self, tree: str, name: str, commit: str) -> None:
        """Make `name` an alias of `commit` wherever a commit of `tree` is named."""
        self._git("update-ref", f"refs/trees/{tree}/{name}", commit)

    def apply_series(self, base: str, patches: Sequence[SeriesPatch]) -> list[str]:
        """Commit each patch on top of the previous one, the first on `base`; return the commits,
        oldest first.

        The commits depend only on base and patches (author and date come from the patch, or are
        fixed), so that repeated calls give the same kernels. The last one is kept. Raises GitError
        with the patch that does not apply and the commit; then nothing is left of any of the
        commits.
        """
        with self.quarantine() as aside:
            commits = aside.apply_series(base, patches)
            aside.admit()
        return commits

    @contextmanager
    def quarantine(self) -> Iterator[QuarantinedMirror]:
        """Yield this repository for one request: what it creates and keeps joins the mirror by
        `admit`, and is gone afterwards otherwise.
        """
        self._run("rev-parse", "--git-dir")  # creates the mirror
        with (
            self._locked(_OBJECTS_LOCK, fcntl.LOCK_SH),
            quarantine(self.path / "objects") as aside,
        ):
            yield QuarantinedMirror(self, aside)

    def without(self, tip: str, commit: str) -> str:
        """Return `tip` with `commit` reverted: a commit on top of it, kept, that depends only on
        the two. Raises CannotRevert.

        This is a three-way merge of the trees of `tip` and of the commit's parent, with the
        commit's own tree as their base. `git merge-tree` merges commits, not trees, so three
        temporary commits are created, which nothing refers to afterwards.
        """
        with self.quarantine() as aside:
            reverted = aside.without(tip, commit)
            aside.admit()
        return reverted

    def _reverted(self, tip: str, commit: str) -> str:
        facts = self.facts(commit)
        if len(facts.parents) != 1:
            raise CannotRevert(
                "the commit is a merge"
                if facts.parents
                else "the commit is the first of its history"
            )
        base = self._synthetic(commit)
        ours, theirs = self._synthetic(tip, base), self._synthetic(facts.parents[0], base)
        done = self._run(
            "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs
        )
        tree, *files = [word for word in done.out.split("\0") if word]
        if done.rc == 1:
            raise CannotRevert(f"conflict in {_files(files)}")
        if done.rc != 0:
            raise GitError(
                f"git merge-tree: {_last_line(done.err) or f'git exited with status {done.rc}'}"
            )
        if tree == self.facts(tip).tree_hash:
            raise CannotRevert("the tip does not contain the change any more")
        message = f'Revert "{facts.subject}"\n\nThis reverts commit {commit} on {tip}.\n'
        reverted = self._git(
            "commit-tree", tree, "-p", tip, env=_ROBOT, stdin=message.encode()
        ).strip()
        self.keep(reverted)
        return reverted

    def _synthetic(self, commit: str, *parents: str) -> str:
        """Create a commit with the tree of `commit` and these parents."""
        words = [word for parent in parents for word in ("-p", parent)]
        return self._git(
            "commit-tree", f"{commit}^{{tree}}", *words, env=_ROBOT, stdin=b"for a merge\n"
        ).strip()

    # -- running git

    def _fetch(self, source: Remote, refspec: str, *, what: str) -> None:
        """Fetch, one process at a time, so that the remains of a failed fetch can be removed.

        No file may be larger than `fetch_bytes`.
        """
        words = (
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--",
        )
        with self._fetching(), self._readable(source, what) as address:
            checkpoint("git fetch: before")
            within = ProcessLimits(
                memory_bytes=limits.FETCHING_BYTES,
                file_bytes=self._fetch_bytes,
                seconds=limits.FETCH_SECONDS,
            )
            done = self._run(
                *_CAREFUL,
                *words,
                address,
                refspec,
                timeout=limits.FETCH_SECONDS,
                protocol=source.protocol,
                within=within,
            )
            if done.rc != 0:
                largest = 0
                for rest in (self.path / "objects" / "pack").glob("tmp_*"):
                    largest = max(largest, rest.stat().st_size)
                    rest.unlink(missing_ok=True)
                raise GitError(f"{what}: {_why_not_fetched(done, within, largest)}")
            checkpoint("git fetch: after")

    @contextmanager
    def _readable(self, source: Remote, what: str) -> Iterator[str]:
        """Yield the address to read `source` from: a path is read without its configuration."""
        if source.protocol != "file":
            yield source.url
            return
        try:
            with borrowed(self.path / source.url) as git_dir:
                yield str(git_dir)
        except NotARepository as error:
            raise GitError(f"{what}: {error}") from None

    @contextmanager
    def _fetching(self) -> Iterator[None]:
        self._run("rev-parse", "--git-dir")  # creates the mirror
        end = time.monotonic() + limits.FETCH_SECONDS
        while True:
            with self._locked(_FETCH_LOCK, fcntl.LOCK_EX | fcntl.LOCK_NB) as locked:
                if locked:
                    yield
                    return
            if time.monotonic() > end:
                raise GitError(
                    "another fetch into the mirror has not ended within an hour; try again later"
                )
            time.sleep(0.2)

    def _git(
        self,
        *arguments: str,
        what: str = "",
        env: dict[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 600,
        protocol: str = "",
        within: ProcessLimits = git_limits.GIT,
        into: Sequence[str] = (),
    ) -> str:
        done = self._run(
            *arguments,
            env=env,
            stdin=stdin,
            timeout=timeout,
            protocol=protocol,
            within=within,
            into=into,
        )
        if done.rc == 0:
            return done.out
        about = what or f"git {arguments[0]}"
        if exceeded := done.exceeded(within):
            kind = GitError if done.timed_out else TooMuchWork
            raise kind(f"{about}: {exceeded}")
        raise GitError(f"{about}: {_why(done)}")

    @property
    def _bounded(self) -> LimitedRunner:
        """Runs git for a question of a person."""
        patience = PATIENCE * limits.PLACES_SECONDS
        return partial(self._run, timeout=patience, within=git_limits.QUESTION)

    def _run(
        self,
        *arguments: str,
        env: dict[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 600,
        protocol: str = "",
        within: ProcessLimits = git_limits.GIT,
        into: Sequence[str] = (),
    ) -> process.Completed:
        """Run git in the mirror.

        `protocol` is the only allowed transport protocol, empty for none; `into` is a git command
        that reads the output of the first.
        """
        if not (self.path / "objects").is_dir():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            process.run(["git", "init", "--quiet", "--bare", str(self.path)], timeout=60)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | {
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            "GIT_ALLOW_PROTOCOL": protocol,
            **self._object_directories(),
        }
        command = [
            "git",
            "-C",
            str(self.path),
            "-c",
            "safe.directory=*",
            "-c",
            "gc.auto=0",
            "-c",
            "protocol.allow=never",
        ]
        argv = [*command, *arguments]
        return process.run(
            process.piped(argv, [*command, *into]) if into else argv,
            timeout=timeout,
            env=environment | (env or {}),
            stdin=stdin,
            within=within,
        )

    def _object_directories(self) -> Mapping[str, str]:
        return {}


class QuarantinedMirror(Mirror):
    """`mirror`, where what is created stays aside until `admit`."""

    def __init__(self, mirror: Mirror, aside: Quarantine) -> None:
        super().__init__(mirror.path, mirror._listed, mirror._fetch_bytes)
        self._mirror, self._aside = mirror, aside
        self._kept: list[str] = []
        self._person, self._unbundled = "", Unbundled()

    def admit(self) -> None:
        """Let what was created and kept join the mirror; safe to repeat."""
        self._mirror._mark(self._unbundled.created)
        self._aside.admit()
        for commit in self._unbundled.tips:
            self._mirror._keep_sent(commit, self._person)
        for commit in self._kept:
            if commit in self._unbundled.commits:
                self._mirror._keep_sent(commit, self._person)
            else:
                self._mirror.keep(commit)

    def unbundle(self, bundle: Bundle, person: str) -> None:
        """Read the commits that a person sent. Raises GitError."""
        run, seen = self._of_request(), self._seen(person)
        self._unbundled = unbundle(run, bundle, seen, self._aside.path)
        self._person = person

    def created(self, commits: Collection[str]) -> set[str]:
        return {one for one in commits if (self._aside.path / one[:2] / one[2:]).exists()}

    def is_sent_by(self, person: str, commit: str) -> bool:
        tips = self._unbundled.tips if person == self._person else ()
        own = [*tips, f"--glob={_PEOPLE}/{person}/*"]
        return not outside(self._bounded, [commit], own)

    def _was_sent(self, commit: str) -> bool:
        return commit in self._unbundled.created or super()._was_sent(commit)

    def keep(self, commit: str) -> None:
        self._kept.append(commit)

    def apply_series(self, base: str, patches: Sequence[SeriesPatch]) -> list[str]:
        commits = apply_series(self._of_request(), git_limits.PATCHING, base, patches)
        if commits:
            self.keep(commits[-1])
        return commits

    def _of_request(self) -> LimitedRunner:
        """Return what runs git for a bundle or a series, which has SERIES_SECONDS from now on."""
        end = time.monotonic() + limits.SERIES_SECONDS

        def run(
            *arguments: str,
            env: dict[str, str] | None = None,
            stdin: bytes = b"",
            within: ProcessLimits = git_limits.PATCHING,
        ) -> process.Completed:
            left = max(0.1, end - time.monotonic())
            return self._run(*arguments, env=env, stdin=stdin, timeout=left, within=within)

        return run

    def without(self, tip: str, commit: str) -> str:
        return self._reverted(tip, commit)

    def _fetch(self, source: Remote, refspec: str, *, what: str) -> None:
        self._mirror._fetch(source, refspec, what=what)

    def _object_directories(self) -> Mapping[str, str]:
        return self._aside.environment


def _patch_bytes(patch: bytes | TooMuchWork) -> int:
    return len(patch) if isinstance(patch, bytes) else 0


def _why_not_fetched(done: process.Completed, within: ProcessLimits, largest: int) -> str:
    """Say why a fetch failed whose `largest` unfinished pack has so many bytes.

    A limit ends one of its processes, of which git says little.
    """
    too_large = ("signal 25", "File too large")
    if largest >= within.file_bytes or any(word in done.err for word in too_large):
        most = f"{within.file_bytes >> 20} MiB, the limit of a fetch (git.fetch_gib)"
        return f"it is larger than {most}"
    if exceeded := done.exceeded(within):
        return exceeded
    if "invalid index-pack output" in done.err or "signal 24" in done.err:
        return (
            f"git was ended before the end: it needs more than {within.seconds / 60:.0f} minutes"
            f" of processor time or {within.memory_bytes >> 20} MiB of memory"
        )
    return _why(done)


def _why(done: process.Completed) -> str:
    if "unable to update url base from redirection" in done.err or "redirected" in done.err:
        return (
            "the server redirects, and redirects are not followed; give the address it redirects to"
        )
    return _last_line(done.err) or f"git exited with status {done.rc}"


def _files(names: Sequence[str]) -> str:
    """Return a few paths as one line of text, whatever characters they have."""
    shown = [
        name if name.isprintable() and len(name) <= 120 else ascii(name[:120])[1:-1]
        for name in names[:4]
    ]
    return ", ".join(shown) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _last_line(text: str) -> str:
    lines = [
        line.removeprefix("fatal: ").removeprefix("error: ")
        for line in text.splitlines()
        if line.strip() and not line.startswith("hint:")
    ]
    telling = [line for line in lines if line not in _BOILERPLATE]
    return (telling or lines or [""])[-1]
