"""Write the answers of Buildbot's REST API from the reactor's thread.

Buildbot 4.3.0 encodes an answer in a thread of the pool and writes it to the connection from there.
Twisted's connections are not thread-safe: a client that leaves at that moment corrupts the
reactor's table of sockets, and the next connection that gets the same file descriptor is reset.
"""

from __future__ import annotations

from json import JSONEncoder
from typing import Any

from buildbot.www import rest
from twisted.internet import reactor


def write_from_the_reactor() -> None:
    """Replace the method of Buildbot that writes answers; a second call changes nothing."""
    rest.V2RootResource._write_json_data = staticmethod(_write)


def _write(request: Any, encoder: JSONEncoder, data: Any) -> None:
    """Encode `data` in the calling thread; send it in the reactor's."""
    body = encoder.encode(data).encode()
    # before the result of this thread, which ends the request: calls keep their order
    reactor.callFromThread(_send, request, body)


def _send(request: Any, body: bytes) -> None:
    if rest._is_request_finished(request):  # or the client has gone
        return
    request.setHeader(b"content-length", str(len(body)).encode())
    if request.method != b"HEAD":
        request.write(body)
