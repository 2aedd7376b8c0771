"""CSV documents that a browser saves under a name."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

CSV: Final = "text/csv; charset=utf-8"


def csv_attachment(name: str, text: str) -> Response:
    """Answer with `text`, to be saved as `name`.csv."""
    return Response(text, media_type=CSV, headers=csv_headers(name))


def csv_headers(name: str) -> dict[str, str]:
    """Let a browser save the answer as `name`.csv; `name` must not need quotes in a header."""
    return {
        "cache-control": "no-cache",
        "content-disposition": f'attachment; filename="{name}.csv"',
    }
