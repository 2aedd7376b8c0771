"""Git repositories that may be fetched: `https`, `git`, `ssh`, and paths that the operator lists.

A URL is code to git: `ext::` runs a command, `-u...` is an option, and so is
`ssh://-oProxyCommand=...`. A URL is accepted only if it is fully understood here; git then gets the
same text with only its own protocol allowed (`adapters/git.py`).

Repositories are named on the operator's command line alone: no page, script or mail can make the
service contact an address.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal

from swingbot.core import limits

Protocol = Literal["https", "git", "ssh", "file"]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_AUTHORITY: Final = re.compile(
    r"(?:(?P<user>[^@/]*)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)(?::(?P<port>[0-9]{1,5}))?"
)
_SCP: Final = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})@)?(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?):(?P<path>[^-:/].*|/.*)"
)
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_PATH: Final = re.compile(r"/[A-Za-z0-9/_.,+=@~%-]*")


class BadUrl(ValueError):
    """A repository that is refused; the message says what is accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A repository: the text for git, and the only protocol by which it may be reached."""

    url: str
    protocol: Protocol
    host: str = ""  # empty for a path


def remote(text: str) -> Remote:
    """Understand a URL or path as the operator gives it. Raises BadUrl."""
    if (
        len(text) > limits.REPOSITORY_CHARACTERS
        or not text.isprintable()
        or text != text.strip()
        or not text
    ):
        raise BadUrl(
            f"{text[:80]!r} is not a valid repository: give one line of at most"
            f" {limits.REPOSITORY_CHARACTERS}"
            " characters, without spaces around it"
        )
    if text.startswith("-"):
        raise BadUrl(f"{text[:80]!r} begins like an option; write a path as ./{text[:40]}")
    if "::" in text.partition("/")[0]:
        raise BadUrl(
            f"{text[:80]!r} names a git remote helper; only https, git and ssh are used to fetch"
        )
    match = _SCHEME.fullmatch(text)
    if match is not None:
        return _by_scheme(text, match[1].lower(), match[2])
    if text.startswith(("/", "./", "../")):
        return Remote(url=text, protocol="file")
    scp = _SCP.fullmatch(text)
    if scp is None:
        raise BadUrl(
            f"{text[:80]!r} is neither a path (/srv/linux.git) nor a URL (https://, git://, ssh://,"
            " user@host:path)"
        )
    return Remote(url=text, protocol="ssh", host=scp["host"])


def _by_scheme(text: str, scheme: str, rest: str) -> Remote:
    if scheme == "file":
        path = rest.removeprefix("localhost")
        if not path.startswith("/"):
            raise BadUrl(f"{text[:80]!r} names another host; give the path alone")
        return Remote(url=path, protocol="file")
    if scheme not in ("https", "git", "ssh"):
        raise BadUrl(f"{text[:80]!r}: {scheme}:// is not supported; use https://, git:// or ssh://")
    authority, slash, path = rest.partition("/")
    match = _AUTHORITY.fullmatch(authority)
    if match is None or (match["port"] and not 0 < int(match["port"]) < 65536):
        # not shown: may hold a password
        raise BadUrl(
            f"a repository at {scheme}:// needs a plain host name, as in"
            f" {scheme}://git.example.org/linux.git"
        )
    if match["user"] is not None and (scheme != "ssh" or _USER.fullmatch(match["user"]) is None):
        raise BadUrl(
            f"the URL at host {match['host']} contains a user or password, which pages would show;"
            " store it in git's credential helper or use ssh"
        )
    if _PATH.fullmatch(slash + path) is None or path.startswith("-"):
        raise BadUrl(f"{text[:80]!r}: its path has characters that are not allowed")
    return Remote(url=text, protocol=scheme, host=match["host"].strip("[]"))  # type: ignore[arg-type]


def check_path(repository: Remote, listed: Sequence[str]) -> None:
    """Refuse a path that none of the operator's globs matches (`git.paths`; `*` crosses slashes).

    Raises BadUrl.
    """
    if repository.protocol == "file":
        path = posixpath.normpath(repository.url)
        if not any(fnmatchcase(path, glob) for glob in listed):
            raise BadUrl(
                f"{path!r} is not listed in git.paths ({', '.join(listed) or 'empty'}); add it"
                " there, or use https, git or ssh"
            )
