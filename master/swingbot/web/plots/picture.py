"""The response of an SVG document."""

from __future__ import annotations

from starlette.responses import Response


def picture(text: str) -> Response:
    """Return a response with an SVG document."""
    # The style is inside the picture; a picture runs and loads nothing.
    headers = {
        "content-security-policy": (
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
        ),
        "cache-control": "no-cache",
    }
    return Response(text, media_type="image/svg+xml", headers=headers)
