"""A repository whose own git configuration runs a command wherever git obeys it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from tests.fakelinux import make_fakelinux

# Each names a program that some git command runs in a repository that has this configuration.
_PROGRAMS: Final = (
    "core.fsmonitor",
    "core.sshCommand",
    "core.pager",
    "core.editor",
    "core.gitProxy",
    "core.alternateRefsCommand",
    "credential.helper",
    "diff.external",
    "filter.x.smudge",
    "filter.x.process",
    "gpg.program",
    "gpg.openpgp.program",
    "gpg.ssh.program",
    "pager.log",
    "remote.origin.uploadpack",
    "uploadpack.packObjectsHook",
)
_SIGNATURE: Final = (
    "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQEzBAABCgAdFiEE\n -----END PGP SIGNATURE-----\n"
)


def git(path: Path, *words: str, stdin: str = "") -> str:
    return subprocess.run(
        ["git", "-C", str(path), *words], check=True, capture_output=True, text=True, input=stdin
    ).stdout.strip()


def hostile_repository(path: Path, mark: Path, *, missing: str = "Kconfig") -> str:
    """Make a fake kernel tree at `path` with two commits on `main`; return the tip.

    Its configuration creates the file `mark` if any of it is obeyed. The file `missing` of the tip
    is not there: a partial clone asks the command that the configuration names for it.
    """
    make_fakelinux(path, 1)
    tip = _signed(path)
    if missing:
        _forget(path, git(path, "rev-parse", f"{tip}:{missing}"))
    script = path / ".git" / "program"
    script.write_text(f'#!/bin/sh\necho "$0" "$@" >>{mark}\nexit 1\n')
    script.chmod(0o755)
    hooks = path / ".git" / "own-hooks"
    hooks.mkdir()
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"):
        (hooks / name).symlink_to(script)
    for name in _PROGRAMS:
        git(path, "config", name, str(script))
    git(path, "config", "log.showSignature", "true")
    git(path, "config", "core.hooksPath", str(hooks))
    git(path, "config", "remote.origin.url", str(path))
    git(path, "config", "remote.origin.promisor", "true")
    git(path, "config", "core.repositoryFormatVersion", "1")
    git(path, "config", "extensions.partialClone", "origin")
    (path / ".git" / "info" / "attributes").write_text("* filter=x diff=x\n")
    return tip


def _signed(path: Path) -> str:
    """Add a commit with a signature, which git verifies if the configuration says so."""
    head, rest = git(path, "cat-file", "commit", "HEAD").split("\n\n", 1)
    lines = [line for line in head.splitlines() if not line.startswith("parent ")]
    text = "\n".join([lines[0], f"parent {git(path, 'rev-parse', 'HEAD')}", *lines[1:]])
    commit = git(
        path, "hash-object", "-t", "commit", "-w", "--stdin", stdin=f"{text}\n{_SIGNATURE}\n{rest}"
    )
    git(path, "update-ref", "refs/heads/main", commit)
    return commit


def _forget(path: Path, blob: str) -> None:
    os.unlink(path / ".git" / "objects" / blob[:2] / blob[2:])


def obeyed(path: Path, mark: Path) -> bool:
    """Return whether plain git in the repository runs a command: the attack works on this host."""
    subprocess.run(["git", "-C", str(path), "status"], check=False, capture_output=True)
    ran = mark.exists()
    mark.unlink(missing_ok=True)
    return ran
