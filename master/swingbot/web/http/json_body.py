"""JSON of request bodies, as far as the database can store it."""

from __future__ import annotations

import json
import re
from typing import Final

_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def parse(body: bytes) -> object:
    """Return the document. Raises ValueError, RecursionError.

    Refused is what jsonb cannot store: NaN, infinities, NUL, lone surrogates.
    """

    def constant(name: str) -> object:
        raise ValueError(f"{name} is not a finite number")

    text = body.decode("utf-8")
    document = json.loads(text, parse_constant=constant)
    try:
        # raises for overflowed numbers, too
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("lone surrogates are not allowed") from None
    if _NUL.search(text):
        raise ValueError("NUL characters are not allowed")
    return document
