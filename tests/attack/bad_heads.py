"""Heads that are too large or ambiguous, and NUL in paths, queries and documents."""

from __future__ import annotations

from typing import Final

from tests.attack.target import Result, Target

NAME: Final = "bad heads"
WANTED: Final = "each is refused with 4xx, none is a failure of the service"
_END: Final = b"\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
LARGE: Final = 33 << 10
HEADS: Final = {
    "one header above 32 KiB": b"GET / HTTP/1.1" + _END + b"X: " + b"a" * LARGE + b"\r\n\r\n",
    "many headers above 32 KiB": b"GET / HTTP/1.1" + _END + b"X: aaaa\r\n" * (LARGE // 9) + b"\r\n",
    "spaces above 32 KiB": b"GET / HTTP/1.1" + _END + b"X:" + b" " * LARGE + b"a\r\n\r\n",
    "a path above 32 KiB": b"GET /" + b"a" * LARGE + b" HTTP/1.1" + _END + b"\r\n",
    "two lengths": (
        b"POST /login HTTP/1.1"
        + _END
        + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "NUL in a path": b"GET /tree/%00 HTTP/1.1" + _END + b"\r\n",
    "NUL in a query": b"GET /comparisons?tree=%00 HTTP/1.1" + _END + b"\r\n",
    "NUL in a raw file": b"GET /raw/x1/a%00b/ HTTP/1.1" + _END + b"\r\n",
}


def run(target: Target) -> Result:
    answers = {name: target.ask(head)[9:12] for name, head in HEADS.items()}
    accepted = [
        f"{name} ({status!r})" for name, status in answers.items() if not status.startswith(b"4")
    ]
    return Result(not accepted, f"{len(answers)} heads; accepted: {', '.join(accepted) or 'none'}")
