"""Former keys of JSON documents, which scripts may still read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

# key -> its former name
FORMER: Final[Mapping[str, str]] = {
    "terms": "policy",
    "testbox_index": "box",
    "testbox_seconds": "box_seconds",
}


def with_former_names(document: dict[str, Any]) -> dict[str, Any]:
    """Return `document` with a renamed key under its former name, too."""
    former = {FORMER[key]: value for key, value in document.items() if key in FORMER}
    return document | former
