"""CSV documents that a browser saves under a name."""

from __future__ import annotations

from starlette.responses import Response


def csv_attachment(name: str, text: str) -> Response:
    """Answer with `text`, to be saved as `name`.csv; `name` must not need quotes in a header."""
    headers = {
        "cache-control": "no-cache",
        "content-disposition": f'attachment; filename="{name}.csv"',
    }
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)
