"""Requests for hosts that are not this service, with and without a path that is redirected."""

from __future__ import annotations

from typing import Final

from tests.attack.target import Result, Target

NAME: Final = "foreign hosts"
WANTED: Final = "no page for a host name of somebody else, and no redirect to it"
HOSTS: Final = ("evil.example", "evil.example:8010", "localhost.evil.example", "a b", "[x]")


def run(target: Target) -> Result:
    answers = [
        target.ask(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        for host in HOSTS
        for path in ("/", "/login/", "/healthz")
    ]
    own = target.ask(
        f"GET /healthz HTTP/1.1\r\nHost: {target.host}:{target.port}\r\nConnection: close\r\n\r\n".encode()
    )
    refused = sum(answer.startswith(b"HTTP/1.1 4") for answer in answers)
    redirected = sum(b"\r\nlocation:" in answer.lower() for answer in answers)
    held = refused == len(answers) and not redirected and own.startswith(b"HTTP/1.1 200")
    return Result(
        held,
        f"{refused} of {len(answers)} refused, {redirected} redirected; own name: {own[9:12]!r}",
    )
