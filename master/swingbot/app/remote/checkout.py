"""The developer's own git checkout: its commits, and a bundle of those that a service lacks.

Index, files, branches and HEAD are never touched.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from swingbot.adapters import process
from swingbot.app.bisect_run.repository import clean_environment
from swingbot.core.limits import ASKED_COMMITS, BUNDLE_COMMITS
from swingbot.core.patchset.bundle import Bundle, SentCommits, written
from swingbot.service.ports import RequestError

_SECONDS: Final = 600.0
_CONFIG: Final = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "log.showSignature=false"),
    *("-c", "core.splitIndex=false"),  # a part of it would be in the repository
)
# Commits as they are sent: packs have neither replacements nor grafts.
_AS_THEY_ARE: Final = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}
# How the lines of changed files begin; others are of status.showStash.
_CHANGED: Final = ("1 ", "u ")
_SHA: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
# These mean the service's own, whatever the checkout calls so.
_OF_TREES: Final = ("base", "tip")

Known = Callable[[Sequence[str]], Collection[str]]  # those of the commits that the service has


@dataclass(frozen=True, slots=True, kw_only=True)
class ToSend:
    """Commits that a request names, as the checkout has them, and a bundle of what is missing."""

    sent: SentCommits
    count: int  # commits in the bundle

    @property
    def file(self) -> bytes:
        return b"" if self.sent.bundle is None else written(self.sent.bundle)


class Checkout:
    """The repository around a directory."""

    def __init__(self, path: Path, say: Callable[[str], None] = lambda line: None) -> None:
        """`path` is the top of a work tree, or a bare repository. `say` gets what the person should
        know.
        """
        self.path, self._say = path, say

    @classmethod
    def around(cls, place: Path, say: Callable[[str], None] = lambda line: None) -> Checkout | None:
        """Return the checkout that contains `place`; None if none does, or git is missing.

        `say` also gets the reason why git does not read one, as that of another user.
        """
        try:
            done = cls(place)._run("rev-parse", "--show-toplevel")
        except FileNotFoundError:
            return None
        if done.rc == 0:
            return cls(Path(done.out.rstrip("\n")), say)
        done = cls(place)._run("rev-parse", "--git-dir")
        if done.rc == 0:
            return cls(place, say)
        if "not a git repository" not in done.err:
            say(f"git does not read {place}: {done.err.strip()}")
        return None

    def resolve(self, ref: str) -> str | None:
        """Return the commit that `ref` names here; None if it names none, or a tree's."""
        if ref in _OF_TREES:
            return None
        done = self._run(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"
        )
        return done.out.strip() if done.rc == 0 else None

    def blob(self, name: str, most: int) -> bytes:
        """Return a file of the repository; empty if it has none of that name with at most `most`
        bytes.
        """
        known = _SHA.fullmatch(name) is not None
        size = self._run("cat-file", "-s", name).out.strip() if known else ""
        return self._output("cat-file", "blob", name) if size and int(size) <= most else b""

    def recent(self) -> tuple[str, str]:
        """Return the commit where HEAD left its upstream branch, or else its parent, and HEAD.

        Raises RequestError.
        """
        head = self.resolve("HEAD")
        base = self._run("merge-base", "HEAD", "@{upstream}").out.strip()
        if head is None or not ((base and base != head) or self.resolve("HEAD^")):
            raise RequestError(f"HEAD of {self.path} has no parent: name a range A..B")
        return (base[:12] if base and base != head else "HEAD^"), "HEAD"

    def described(self, commit: str) -> str:
        """Return the short name of a commit and its subject. Raises RequestError."""
        return self._git("show", "-s", "--format=%h %s", "--abbrev=12", commit, "--").strip()

    def left_branch_at(self, known: Known) -> str:
        """Return the merge base of HEAD with the branch whose commits are `known`.

        Raises RequestError.
        """
        head = self.resolve("HEAD")
        if head is None:
            raise RequestError(f"{self.path} has no commit yet")
        missing, found = self._asked([head], known)
        if not missing:
            raise RequestError(
                "HEAD is in the tree's branch already, so there is nothing to compare: name a"
                " range, such as v6.12..HEAD"
            )
        if len(missing) >= ASKED_COMMITS:
            raise RequestError(
                f"HEAD has {ASKED_COMMITS} or more commits that the tree's branch lacks; name a"
                " range, such as v6.12..HEAD"
            )
        words = ("merge-base", "--independent", *self._boundary(missing, found))
        return self._git(*words).split()[0]

    def to_send(self, refs: Sequence[str], known: Known, *, dirty: bool) -> ToSend:
        """Return the commits that `refs` name and the service lacks. Raises RequestError.

        `dirty`: uncommitted changes of HEAD are a commit of their own.
        """
        names = {ref: commit for ref in refs if (commit := self.resolve(ref)) is not None}
        if (head := self.resolve("HEAD")) in names.values():
            assert head is not None
            if changed := self.changed():
                if not dirty:
                    raise RequestError(
                        f"{self.path} has uncommitted changes, such as {changed[0]}: commit or"
                        " stash them, or give --dirty to send them as a commit of their own"
                    )
                made = self.with_changes(head)
                names = {ref: made if commit == head else commit for ref, commit in names.items()}
        tips = sorted(set(names.values()))
        missing, found = self._asked(tips, known) if tips else ([], [])
        if not missing:
            return ToSend(sent=SentCommits(names=names), count=0)
        if len(missing) > BUNDLE_COMMITS:
            raise RequestError(
                f"the service lacks more than {BUNDLE_COMMITS} commits of this checkout: rebase on"
                " a branch that it fetches, or ask its operator to fetch yours"
            )
        needed = self._boundary(missing, found)
        lacking = sorted(set(tips).intersection(missing))
        words = "".join(f"{tip}\n" for tip in lacking) + "".join(f"^{c}\n" for c in needed)
        pack = self._output(
            *("pack-objects", "--revs", "--thin", "--stdout", "--delta-base-offset", "-q"),
            stdin=words.encode(),
        )
        bundle = Bundle(tips=tuple(lacking), prerequisites=tuple(needed), pack=pack)
        return ToSend(sent=SentCommits(names=names, bundle=bundle), count=len(missing))

    def _asked(self, tips: Sequence[str], known: Known) -> tuple[list[str], list[str]]:
        """Return the ancestors of `tips` that are not known, or more than may be sent of them; and
        known ones. Raises RequestError.
        """
        if any(len(tip) != 40 for tip in tips):
            raise RequestError(f"{self.path} names its commits by SHA-256; services know SHA-1")
        found: list[str] = []
        asked: set[str] = set()
        while True:
            without = [f"^{commit}" for commit in found]
            words = ("rev-list", "--topo-order", f"--max-count={ASKED_COMMITS}", "--stdin")
            lines = "".join(f"{one}\n" for one in (*tips, *without)).encode()
            listed = self._git(*words, stdin=lines).split()
            unasked = [commit for commit in listed if commit not in asked]
            if not unasked:
                return listed, found
            # git would read anything else that a service names as lines of its input
            answer = known(unasked)
            found += [commit for commit in unasked if commit in answer]
            asked.update(unasked)

    def _boundary(self, missing: Sequence[str], found: Sequence[str]) -> list[str]:
        """Return the parents of missing commits that the service has. Raises RequestError."""
        lines = "".join(f"{commit}\n" for commit in missing).encode()
        rows = self._git("rev-list", "--no-walk=unsorted", "--parents", "--stdin", stdin=lines)
        parents = {parent for row in rows.splitlines() for parent in row.split()[1:]}
        if not found or not (needed := sorted(parents.difference(missing))):
            shallow = self._git("rev-parse", "--is-shallow-repository").strip() == "true"
            raise RequestError(
                f"no recent commit of {self.path} is in a tree of the service: run the command in a"
                " checkout of the tree, or ask the operator to fetch yours"
                + ("; it is a shallow clone, so try `git fetch --unshallow` first" * shallow)
            )
        return needed

    def changed(self) -> list[str]:
        """Return the tracked files with uncommitted changes; none in a bare repository.

        Raises RequestError, also for conflicts of a merge.
        """
        return [path for path, _ in self._changes()]

    def with_changes(self, head: str) -> str:
        """Return a commit of the uncommitted changes of tracked files on HEAD; the same for the
        same changes. Raises RequestError.

        As `git commit --all` would make it, with filters and line ends, but without hooks.
        """
        if inner := [path for path, is_submodule in self._changes() if is_submodule]:
            raise RequestError(f"submodule {inner[0]} has changes, which cannot be taken along")
        listed = self._git("ls-files", "--others", "--exclude-standard", "-z")
        if untracked := listed.split("\0")[0]:
            self._say(f"untracked files, such as {untracked}, are left out; `git add` tracks them")
        own = self.path / self._git("rev-parse", "--git-path", "index").rstrip("\n")
        if not own.is_file():
            raise RequestError(f"{self.path} has no index: make one with `git reset`")
        with tempfile.TemporaryDirectory(prefix="swingbot-dirty-") as place:
            # its time too: git reads files again that are not older than their index
            index = {"GIT_INDEX_FILE": shutil.copy2(own, place)}
            self._git("add", "--update", "--", ".", more=index)
            tree = self._git("write-tree", more=index).strip()
        when = self._git("show", "-s", "--format=@%ct +0000", head, "--").strip()
        who = {}
        for role in ("AUTHOR", "COMMITTER"):
            who[f"GIT_{role}_DATE"] = when
            if self._run("var", f"GIT_{role}_IDENT").rc != 0:  # the person gave git no name
                who |= {f"GIT_{role}_NAME": "swingbot", f"GIT_{role}_EMAIL": "swingbot@invalid"}
        message = f"uncommitted changes on {head[:12]}\n".encode()
        return self._git("commit-tree", tree, "-p", head, stdin=message, more=who).strip()

    def _changes(self) -> list[tuple[str, bool]]:
        """Return the changed tracked files, and whether each is a submodule (git-status(1),
        "Porcelain Format Version 2").
        """
        if self._git("rev-parse", "--is-inside-work-tree").strip() != "true":
            return []
        words = ("status", "--porcelain=v2", "-z", "--untracked-files=no", "--no-renames")
        listed = [line for line in self._git(*words).split("\0") if line[:2] in _CHANGED]
        if conflicts := [line.split(" ", 10)[10] for line in listed if line.startswith("u ")]:
            raise RequestError(
                f"{self.path} has conflicts, such as in {conflicts[0]}: resolve them"
            )
        fields = [line.split(" ", 8) for line in listed]
        return [(field[8], field[2].startswith("S")) for field in fields]

    def _git(
        self, *words: str, stdin: bytes = b"", more: Mapping[str, str] = MappingProxyType({})
    ) -> str:
        return self._output(*words, stdin=stdin, more=more).decode(errors="replace")

    def _output(
        self, *words: str, stdin: bytes = b"", more: Mapping[str, str] = MappingProxyType({})
    ) -> bytes:
        done = self._run(*words, stdin=stdin, more=more)
        if done.rc != 0:
            lines = [line for line in done.err.splitlines() if line.strip()]
            why = lines[-1] if lines else f"exit status {done.rc}"
            raise RequestError(f"git {words[0]} in {self.path}: {why.removeprefix('fatal: ')}")
        return done.raw

    def _run(
        self, *words: str, stdin: bytes = b"", more: Mapping[str, str] = MappingProxyType({})
    ) -> process.Completed:
        careful = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", **_AS_THEY_ARE}
        environment = clean_environment() | careful | dict(more)
        command = ["git", "-C", str(self.path), *_CONFIG, *words]
        return process.run(command, timeout=_SECONDS, env=environment, stdin=stdin)
