"""JSON of request bodies, as far as the database can store it."""

from __future__ import annotations

import json
from typing import TypeVar

from starlette.exceptions import HTTPException

from swingbot_jobs import codec

T = TypeVar("T")


def read(kind: type[T], body: bytes) -> T:
    """Return the document as `kind`. Raises HTTPException 400."""
    try:
        return codec.typed(kind, parse(body))
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"The request body is malformed: {error}"[:300]) from None


def parse(body: bytes) -> object:
    """Return the document. Raises ValueError, RecursionError.

    Refused is what jsonb cannot store: NaN, infinities, NUL, lone surrogates.
    """

    def constant(name: str) -> object:
        raise ValueError(f"{name} is not a finite number")

    document = json.loads(body.decode("utf-8"), parse_constant=constant)
    try:
        # raises for overflowed numbers, too
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("lone surrogates are not allowed") from None
    if "\\u0000" in text.replace("\\\\", ""):
        raise ValueError("NUL characters are not allowed")
    return document
