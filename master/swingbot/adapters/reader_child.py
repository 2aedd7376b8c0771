"""A child process that reads what is not trusted, with limits of memory and processor time.

Its standard input is a socket. Each request is a length with the descriptor of a file, then JSON;
each answer is a length, then JSON. `limited_reader` is the other side.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

MIB: Final = 1 << 20
LENGTH: Final = struct.Struct(">Q")
READY: Final = b"\n"
# A child that needed more is replaced: Python keeps much of the memory that it has used.
_GROWN_BYTES: Final = 256 * MIB


Answer = Callable[[dict[str, Any], IO[bytes]], dict[str, Any]]
"""Reads the file of a request; must not depend on the requests before it."""


def serve(answer: Answer, memory: int, seconds: int, answer_bytes: int) -> None:
    """Answer requests until the other side closes the socket.

    `memory` is in bytes beyond what is in use, `seconds` are of processor time and for each
    request. After an answer of more than `answer_bytes`, of which only the length is sent, it ends.
    """
    _limit(memory)
    connection = socket.socket(fileno=os.dup(0))
    connection.sendall(READY)
    while request := socket.recv_fds(connection, LENGTH.size, 1):
        head, descriptors = request[:2]
        if not descriptors:
            return
        head += receive(connection, LENGTH.size - len(head))
        document = json.loads(receive(connection, LENGTH.unpack(head)[0]))
        _allow_seconds(seconds)
        body = _answer(answer, document, descriptors[0])
        connection.sendall(LENGTH.pack(len(body)))
        if len(body) > answer_bytes:
            return
        connection.sendall(body)


def receive(connection: socket.socket, length: int) -> bytes:
    """Return the next `length` bytes. Raises EOFError if the other side has ended."""
    parts, missing = [], length
    while missing:
        part = connection.recv(min(missing, MIB))
        if not part:
            raise EOFError
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def peak_bytes() -> int:
    """Return the most memory that this process has used, without what its parent had before exec.

    `ru_maxrss` includes that, because Linux carries it over exec.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _answer(answer: Answer, document: dict[str, Any], descriptor: int) -> bytes:
    try:
        with open(descriptor, "rb") as file:
            answered = answer(document, file)
        answered["grown"] = peak_bytes() > _GROWN_BYTES
        return json.dumps(answered, ensure_ascii=False).encode(errors="replace")
    except (MemoryError, RecursionError):
        return json.dumps({"refused": "reading them needs too much memory"}).encode()


def _limit(memory: int) -> None:
    """Limit memory to `memory` bytes beyond what is in use, and what a reader does not need."""
    pages = Path("/proc/self/statm").read_text().split()
    page = resource.getpagesize()
    for what, used in ((resource.RLIMIT_AS, pages[0]), (resource.RLIMIT_DATA, pages[5])):
        most = int(used) * page + memory
        resource.setrlimit(what, (most, most))
    for what in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK):
        resource.setrlimit(what, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def _allow_seconds(seconds: int) -> None:
    """Let the kernel end this process if a request takes more processor time, also when no process
    waits for the answer.
    """
    usage = resource.getrusage(resource.RUSAGE_SELF)
    until = int(usage.ru_utime + usage.ru_stime) + seconds + 1
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))
