"""For which Host headers the service answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from swingbot.app.settings import load
from swingbot.app.web import host_names
from swingbot.web.access.known_hosts import KnownHosts
from swingbot.web.http.render import Renderer


def hosts(tmp_path: Path, **environment: str) -> KnownHosts:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("not called")

    settings = load(environ={"SWINGBOT_PATHS_STATE": str(tmp_path), **environment})
    return KnownHosts(app, Renderer(settings), host_names(settings))


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8010", "localhost", "LOCALHOST.:8010", "[::1]:8010", "192.0.2.7"]
)
def test_addresses_and_local_names_are_known(tmp_path: Path, host: str) -> None:
    assert hosts(tmp_path).accepts(host)


@pytest.mark.parametrize(
    "host", ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "a:b", "[x]"]
)
def test_other_names_are_not(tmp_path: Path, host: str) -> None:
    assert not hosts(tmp_path).accepts(host)


def test_names_of_the_urls_and_of_the_setting_are_known(tmp_path: Path) -> None:
    known = hosts(
        tmp_path,
        SWINGBOT_WEB_PUBLIC_URL="https://lab.example.org",
        SWINGBOT_WEB_EXCHANGE_URL="http://web:8010",
        SWINGBOT_WEB_HOSTS="bot.example.org, other",
    )
    assert all(known.accepts(name) for name in ("lab.example.org", "web:8010", "bot.example.org"))
    assert not known.accepts("example.org")
    assert hosts(tmp_path, SWINGBOT_WEB_HOSTS="*").accepts("anything.example")
