"""Responses with a stored file: checksum in the headers, single ranges, sent in pieces.

The checksum is sent twice: as `ETag` (the sha256, so that a client that has the file gets 304)
and as `Repr-Digest` (RFC 9530).
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Final

from starlette.requests import Request
from starlette.responses import Response

from .fair_threads import PiecesResponse

_CHUNK: Final = 1 << 18
_RANGE: Final = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


def stored(
    request: Request,
    file: BinaryIO,
    sha256: str,
    media_type: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return the response with the content of `file`; the response closes it."""
    size = file.seek(0, io.SEEK_END)
    digest = base64.b64encode(bytes.fromhex(sha256)).decode()
    more = {
        "ETag": f'"{sha256}"',
        "Repr-Digest": f"sha-256=:{digest}:",
        "Accept-Ranges": "bytes",
        **(headers or {}),
    }
    if f'"{sha256}"' in request.headers.get("if-none-match", ""):
        file.close()
        return Response(status_code=304, headers=more)
    selected = (
        part(request.headers.get("range"), size)
        if request.headers.get("if-range", f'"{sha256}"') == f'"{sha256}"'
        else range(size)
    )
    if selected is None:
        file.close()
        return Response(status_code=416, headers=more | {"Content-Range": f"bytes */{size}"})
    more["Content-Length"], status = str(len(selected)), 200 if len(selected) == size else 206
    if len(selected) < size:
        more["Content-Range"] = f"bytes {selected.start}-{selected.stop - 1}/{size}"
    if request.method == "HEAD":
        file.close()
        return Response(status_code=status, headers=more, media_type=media_type)
    return PiecesResponse(
        _pieces(file, selected), status_code=status, headers=more, media_type=media_type
    )


def part(header: str | None, size: int) -> range | None:
    """Return the bytes that a Range header requests; None if the range is not satisfiable.

    A malformed header is ignored, so all bytes are returned (RFC 9110 14.2).
    """
    match = _RANGE.fullmatch((header or "").replace(" ", ""))
    if match is None or not (match[1] or match[2]):
        return range(size)
    if not match[1]:
        begin, end = max(0, size - int(match[2])), size
    else:
        begin, end = int(match[1]), min(size, int(match[2]) + 1 if match[2] else size)
        if match[2] and int(match[2]) < begin:
            return range(size)
    return range(begin, end) if begin < end else None


def _pieces(file: BinaryIO, selected: range) -> Iterator[bytes]:
    with file:
        file.seek(selected.start)
        remaining = len(selected)
        while remaining > 0 and (piece := file.read(min(_CHUNK, remaining))):
            remaining -= len(piece)
            yield piece
