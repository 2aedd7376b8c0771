"""The service that a person has logged in to: its URL and token, in a file of that person alone."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from swingbot.adapters import private_file
from swingbot.app import limits

# Variables that name a service on this host; they outrank a login.
_HERE: Final = ("SWINGBOT_CONFIG", "SWINGBOT_DB_URL", "SWINGBOT_PATHS_STATE")
_TOKEN: Final = re.compile(r"[!-~]{1,200}")


class NoLogin(ValueError):
    """No usable login; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """`url` has no slash at its end. `token` is None for who only reads open pages.

    `insecure`: its owner lets the token be sent in the open.
    """

    url: str
    token: str | None = None
    insecure: bool = False

    def check_private(self) -> None:
        """Raise NoLogin if the token can be read on its way."""
        if (
            self.token is not None
            and not self.insecure
            and urlsplit(self.url).scheme == "http"
            and not is_here(self.url)
        ):
            raise NoLogin(
                f"everybody on the way to {self.url} could read your token: use its https address,"
                " or `ssh -L` and http://127.0.0.1; `swingbot login --insecure` and"
                " SWINGBOT_INSECURE=1 send it all the same"
            )


def url_of(text: str) -> str:
    """Return the URL of a service in its normal form. Raises NoLogin."""
    url = text.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname)
        valid = valid and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        valid = False
    if not valid or parts.query or parts.fragment or not url.isascii() or not url.isprintable():
        raise NoLogin(
            f"{text[:200]!r} is not the URL of a service; write it as https://lab.example"
        )
    return url


def is_here(url: str) -> bool:
    """Return whether the service is at a port of this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def token_of(text: str) -> str:
    """Return a token as it is sent. Raises NoLogin."""
    token = text.strip()
    if not _TOKEN.fullmatch(token):
        raise NoLogin("this is not a token: it has spaces, is empty or too long")
    return token


def file_of(environ: Mapping[str, str]) -> Path:
    """Raises NoLogin if there is no home directory."""
    try:
        home = environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    except RuntimeError:
        raise NoLogin("this user has no home directory for a login; set XDG_CONFIG_HOME") from None
    return Path(home) / "swingbot" / "login.json"


def current(environ: Mapping[str, str] | None = None) -> Login | None:
    """Return the login that commands use; None: the service on this host. Raises NoLogin.

    SWINGBOT_URL and SWINGBOT_TOKEN outrank the file, and so do variables that name a service here.
    SWINGBOT_INSECURE lets the token be sent in the open.
    """
    env = os.environ if environ is None else environ
    named, token = env.get("SWINGBOT_URL"), env.get("SWINGBOT_TOKEN")
    insecure = bool(env.get("SWINGBOT_INSECURE"))
    if named == "" or (named is None and any(env.get(name) for name in _HERE)):
        return None
    if named is not None and token:
        return Login(url=url_of(named), token=token_of(token), insecure=insecure)
    stored = read(file_of(env))
    if stored is not None and insecure:
        stored = replace(stored, insecure=True)
    if named is None:
        if stored is None or not token:
            return stored
        return replace(stored, token=token_of(token))
    url = url_of(named)
    return stored if stored is not None and stored.url == url else Login(url=url)


def passed_over(given: str | None, environ: Mapping[str, str] | None = None) -> str | None:
    """Return why a stored login is not used, in a sentence; None if there is none.

    `given`: an option that names a service on this host.
    """
    env = os.environ if environ is None else environ
    name = given or next((name for name in _HERE if env.get(name)), None)
    try:
        stored = read(file_of(env))
    except NoLogin:
        return None
    if stored is None or name is None:
        return None
    end = "leave it out" if given else f"run `unset {name}`"
    return f"{name} names a service on this host, so your login to {stored.url} is not used: {end}"


def read(file: Path) -> Login | None:
    """Return the stored login; None: there is none. Raises NoLogin."""
    try:
        with file.open("rb") as source:
            mode, content = os.fstat(source.fileno()).st_mode, source.read(limits.LOGIN_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NoLogin(f"{file}: {error.strerror}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise NoLogin(f"{file} can be read by others; run `chmod 600 {file}`")
    try:
        document = json.loads(content)
        token = document["token"]
        return Login(
            url=url_of(document["url"]),
            token=None if token is None else token_of(token),
            insecure=document.get("insecure") is True,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NoLogin(f"{file} is not a login; run `swingbot login URL` again") from None


def write(file: Path, login: Login) -> None:
    """Store the login for this person alone. Raises OSError."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    document: dict[str, object] = {"url": login.url, "token": login.token}
    if login.insecure:
        document["insecure"] = True
    private_file.write(file, (json.dumps(document, indent=2) + "\n").encode())
