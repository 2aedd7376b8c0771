"""Find a commit's content in a local repository, or in a fetched copy of a remote one."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs.borrowed_repository import NotARepository, borrow, borrowed
from swingbot_jobs.process_limits import ProcessLimits
from swingbot_worker import InfraError, limits, process
from swingbot_worker.kbuild.lock import locked
from swingbot_worker.kbuild.recipe import ENVIRONMENT

GIT_SECONDS = 120.0
FETCH_SECONDS = 1800.0
GIT_LIMITS = ProcessLimits(memory_bytes=limits.GIT_BYTES, file_bytes=limits.GIT_FILE_BYTES)
# git's environment, so that it does not depend on the settings of host or user.
GIT_ENVIRONMENT = {
    **ENVIRONMENT,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
}


class NotAKernel(Exception):
    """The order's commit is not a kernel. This is a result, not an infrastructure failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSource:
    """One commit that can be checked out."""

    objects: Path  # git object directory that contains it
    commit: str
    tree: str  # id of its git tree
    version: str  # VERSION.PATCHLEVEL of its Makefile


def find(repo: str, commit: str, cache: Path) -> KernelSource:
    """Find `commit` in `repo`.

    Raises NotAKernel if it is missing or not a kernel, InfraError if the repository is unreachable.
    """
    path = local_path(repo)
    git_dir = _fetched(repo, commit, cache) if path is None else _borrowed(path, cache)
    tree = _git(git_dir, "rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}")
    if tree.rc != 0:
        raise NotAKernel(
            f"Commit {commit} is not in {repo}; fetch it there, or name another commit."
        )
    _refuse_strange(git_dir, repo, commit)
    return KernelSource(
        objects=git_dir / "objects",
        commit=commit,
        tree=tree.text.strip(),
        version=_version(git_dir, repo, commit),
    )


def resolve(repo: str, name: str) -> str:
    """Return the full id of a commit, tag or branch. Raises InfraError if it does not exist.

    Used only for builds by hand.
    """
    path = local_path(repo)
    if path is None:
        return _resolve_remote(repo, name)
    question = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    try:
        with borrowed(path) as git_dir:
            answer = _git(git_dir, *question)
    except NotARepository:
        raise _no_repository(path) from None
    if answer.rc != 0:
        raise InfraError(f"There is no commit, tag or branch {name!r} in {repo}.")
    return answer.text.strip()


def local_path(repo: str) -> Path | None:
    """Return the path of a repository on this host, or None for a URL.

    Raises InfraError if there is nothing at this path.
    """
    path = Path(repo.removeprefix("file://")).expanduser()
    if not path.exists():
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://|[^/]+:", repo) and not repo.startswith("file://"):
            return None
        raise InfraError(f"There is no repository at {repo}; check the path.")
    return path


def _borrowed(path: Path, cache: Path) -> Path:
    """Return a repository of the cache that has the objects of the one at `path`.

    git never runs in a repository that somebody else controls.
    """
    git_dir = _kept(cache, f"path {path.absolute()}")
    try:
        borrow(path, git_dir)
    except NotARepository:
        raise _no_repository(path) from None
    return git_dir


def _no_repository(path: Path) -> InfraError:
    return InfraError(f"{path} is not a git repository; name the directory that has .git or HEAD.")


def _kept(cache: Path, name: str) -> Path:
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return cache.absolute() / "work" / "repos" / f"{digest}.git"


def _git(git_dir: Path, *arguments: str) -> process.Output:
    """Return git's answer, whose status tells about the commit. Raises InfraError without one."""
    answer = process.output(
        ["git", f"--git-dir={git_dir}", *arguments],
        timeout=GIT_SECONDS,
        env=GIT_ENVIRONMENT,
        within=GIT_LIMITS,
    )
    if answer.rc < 0:
        why = f"took longer than {GIT_SECONDS:.0f} s" if answer.timed_out else "was killed"
        raise InfraError(f"git {arguments[0]} in {git_dir} {why}.")
    return answer


def _version(git_dir: Path, repo: str, commit: str) -> str:
    makefile = _git(git_dir, "cat-file", "blob", f"{commit}:Makefile")
    numbers = re.search(
        r"^VERSION = (\d{1,4})\nPATCHLEVEL = (\d{1,4})$", makefile.text, re.MULTILINE
    )
    kconfig = _git(git_dir, "cat-file", "-e", f"{commit}:Kconfig")
    if makefile.rc != 0 or numbers is None or kconfig.rc != 0:
        raise NotAKernel(
            f"Commit {commit} of {repo} is not a Linux kernel tree: it has no kernel Makefile and "
            "Kconfig in its top directory."
        )
    return f"{numbers[1]}.{numbers[2]}"


def _refuse_strange(git_dir: Path, repo: str, commit: str) -> None:
    """Raise NotAKernel for a tree with files named like object directories.

    A checkout would mix them with the objects of other builds.
    """
    names = _git(git_dir, "ls-tree", "--name-only", commit).text.splitlines()
    strange = next((name for name in names if name.startswith(("o-", '"o-'))), None)
    if strange is not None:
        raise NotAKernel(
            f"Commit {commit} of {repo} has {strange[:80]} in its top directory, a name reserved "
            "for object directories; no kernel has such a file."
        )


def object_lines(source: KernelSource) -> list[str]:
    """Return the lines of the commit's makefiles that build objects by an option.

    Raises InfraError if git fails.
    """
    argv = ("grep", "-h", "-I", "-E", r"^obj-\$\(CONFIG_", source.commit)
    answer = _git(source.objects.parent, *argv, "--", "*Makefile", "*Kbuild")
    _must(answer, f"cannot read the makefiles of {source.commit}")
    return answer.text.splitlines()


def total_bytes(source: KernelSource) -> int:
    """Return the total size of the commit's files in bytes. Raises InfraError if git fails."""
    answer = _git(source.objects.parent, "ls-tree", "-r", "-l", "--full-tree", source.commit)
    _must(answer, f"cannot list {source.commit}")
    return sum(
        int(size) for size in re.findall(r"^\d+ blob [0-9a-f]+ +(\d+)\t", answer.text, re.MULTILINE)
    )


def _remote_environment() -> dict[str, str]:
    # Unlike make, a fetch may need the user's proxy, keys and git settings. Other protocols such as
    # `ext::` run commands.
    return {
        **os.environ,
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    }


def _resolve_remote(repo: str, name: str) -> str:
    if re.fullmatch(r"[0-9a-f]{40}", name):
        return name
    answer = process.output(
        ["git", "ls-remote", "--", repo, name, f"{name}^{{}}"],
        timeout=GIT_SECONDS,
        cwd=Path("/"),  # the working directory may be somebody's repository, with a configuration
        env=_remote_environment(),
        within=GIT_LIMITS,
    )
    lines = [line for line in answer.text.splitlines() if re.match(r"[0-9a-f]{40}\t", line)]
    if answer.rc != 0 or not lines:
        raise InfraError(
            f"Cannot find tag or branch {name!r} in {repo}: "
            f"{answer.text.strip()[:300] or 'git ls-remote found nothing'}."
        )
    return lines[-1].split("\t")[0]  # the commit of an annotated tag follows the tag


def _fetched(repo: str, commit: str, cache: Path) -> Path:
    """Return a cached bare repository that has `commit` or all branches of the remote `repo`."""
    git_dir = _kept(cache, repo)
    git_dir.parent.mkdir(parents=True, exist_ok=True)
    with locked(git_dir.with_suffix(".lock"), FETCH_SECONDS):
        if not (git_dir / "HEAD").exists():
            _must(
                process.output(
                    ["git", "init", "-q", "--bare", str(git_dir)],
                    timeout=GIT_SECONDS,
                    env=GIT_ENVIRONMENT,
                    within=GIT_LIMITS,
                ),
                f"cannot create {git_dir}",
            )
        if _git(git_dir, "cat-file", "-e", f"{commit}^{{tree}}").rc != 0:
            _fetch(git_dir, repo, commit)
    return git_dir


def _fetch(git_dir: Path, repo: str, commit: str) -> None:
    fetch = ["git", "-c", "gc.auto=0", f"--git-dir={git_dir}", "fetch", "-q", "--no-tags"]
    # Stored under a ref, so that the next fetch can negotiate: without it, each kernel commit
    # transfers the whole tree again, 290 MB instead of a few kB.
    named = f"+{commit}:refs/fetched/{commit}"
    only_it = process.output(
        [*fetch, "--depth=1", "--", repo, named],
        timeout=FETCH_SECONDS,
        env=_remote_environment(),
        within=GIT_LIMITS,
    )
    if only_it.rc != 0:  # some servers send only branch tips
        all_branches = [*fetch, "--", repo, "+refs/heads/*:refs/fetched/*"]
        _must(
            process.output(
                all_branches, timeout=FETCH_SECONDS, env=_remote_environment(), within=GIT_LIMITS
            ),
            f"cannot fetch from {repo}",
        )


def _must(answer: process.Output, what: str) -> None:
    if answer.rc != 0:
        raise InfraError(f"git {what}: {answer.text.strip()[-300:] or 'it took too long'}.")
