"""A page of another site opens Buildbot's stream of events and asks for its session cookie."""

from __future__ import annotations

import base64
from typing import Final

from tests.attack.target import Result, Target

NAME: Final = "origins at Buildbot"
WANTED: Final = "403 for pages of other sites; a cookie that scripts and other sites cannot use"
PATHS: Final = ("/ws", "/sse/listen/builds/*/*", "/sse/listen", "/auth/login", "/api/v2/workers")
_SOCKET: Final = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


def run(target: Target, *, https: bool = False) -> Result:
    """`https`: Buildbot's pages have an https address, so the cookie has to be Secure.

    With an operator's token in `target` the cookie of a session that is signed in is looked at too.
    """
    pages = target.buildbot
    own = f"{pages.host}:{pages.port}"
    foreign = [
        (path, origin, host)
        for path in PATHS
        for origin, host in (
            ("http://evil.example", own),
            ("null", own),
            (f"http://{pages.host}:{pages.port + 1}", own),
            (f"http://evil.example:{pages.port}", f"evil.example:{pages.port}"),
        )
    ]
    answered = [
        f"{path} for {origin} at {host}: {status!r}"
        for path, origin, host in foreign
        if (status := _ask(pages, path, origin, host)[9:12]) != b"403"
    ]
    stream = _ask(pages, "/ws", f"http://{own}", own)[9:12]
    cookies = [
        line
        for path in ("/", "/auth/login")
        for line in _ask(pages, path, "", own).lower().split(b"\r\n")
        if line.startswith(b"set-cookie:")
    ]
    wanted = [b"httponly", b"samesite=lax", *([b"secure"] if https else [])]
    loose = [
        cookie for cookie in cookies if not {*wanted} <= {*cookie.replace(b" ", b"").split(b";")}
    ]
    return Result(
        held=not answered and bool(cookies) and not loose and stream in (b"101", b"403"),
        line=f"{len(foreign)} requests, answered: {', '.join(answered) or 'none'};"
        f" own page at /ws: {stream!r}; {len(cookies)} cookies, {len(loose)} of them loose",
    )


def _ask(pages: Target, path: str, origin: str, host: str) -> bytes:
    """Return the head of the answer."""
    more = _SOCKET if path == "/ws" else "Connection: close\r\n"
    sender = f"Origin: {origin}\r\n" if origin else ""
    if pages.token and path == "/auth/login":
        name = base64.b64encode(f"attack:{pages.token}".encode()).decode()
        sender += f"Authorization: Basic {name}\r\n"
    with pages.connect() as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{sender}{more}\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer and (chunk := connection.recv(1 << 16)):
            answer += chunk
    return answer
