"""Which addresses answer tokens limited to testbox groups; all others refuse them.

An answer may contain only what it reads from the database in its own request, where rows of other
groups do not exist (`swingbot_db/scope.py`): no mails, no files of other requests, no stream that
several people share, nothing about the service as a whole.
"""

from __future__ import annotations

import re
from typing import Final

from starlette.routing import compile_path

from swingbot.core.model import ids

from .operations import JSON, OPERATIONS

# Beside the operations with `by_group` and their pages: plots, texts, tables, raw results.
_MORE: Final = (
    "/login",
    "/logout",
    "/favicon.ico",
    "/robots.txt",
    "/static/{path:path}",
    "/api/v1/openapi.json",
    "/install",
    "/install/{name}",
    "/results.csv",
    "/metric/{tree}/{testbox}/{names:path}",
    "/plot/{id}/values.svg",
    "/plot/{id}.svg",
    *(
        f"/{kind}/{{id}}/{name}"
        for kind in (*ids.TABLES, "bisection", "incident")
        for name in ("{form}.txt", "table.csv")
    ),
    "/bisection/{id}/log.jsonl",
    "/raw/{id}",
    "/raw/{id}/{path:path}",
)


# Not the pages of those documents: streams that are read once for all, and numbers of the service.
_OTHERS: Final = {"/metrics", *(f"/{kind}/{{id}}/progress" for kind in ids.REQUESTS)}


def _addresses() -> dict[str, list[re.Pattern[str]]]:
    found: dict[str, list[re.Pattern[str]]] = {"GET": [compile_path(one)[0] for one in _MORE]}
    found["POST"] = [compile_path(one)[0] for one in ("/login", "/logout")]
    for one in OPERATIONS:
        if one.by_group:
            # `/order/o3.json` and `/order/o3`: a document and its page
            paths = {one.path, one.path.removesuffix(JSON)} - _OTHERS
            found.setdefault(one.method, []).extend(compile_path(path)[0] for path in paths)
    return found


_ADDRESSES: Final = _addresses()


def answers(method: str, path: str) -> bool:
    """Whether tokens limited to testbox groups are answered there."""
    method = "GET" if method == "HEAD" else method
    return any(one.match(path) for one in _ADDRESSES.get(method, ()))
