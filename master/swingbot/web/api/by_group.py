"""Which addresses answer tokens limited to testbox groups; all others refuse them.

An answer may contain only what it reads from the database in its own request, where rows of other
groups, and levels for a token without them, do not exist (`swingbot_db/scope.py`): no mails, no
files of other requests, no stream that several people share, nothing about the service as a whole.
"""

from __future__ import annotations

import re
from typing import Final

from starlette.routing import compile_path

from swingbot.core.access.roles import Person
from swingbot.core.model import ids

from .operations import JSON, OPERATIONS, Limited

# Beside the operations with `limited` and their pages: what says nothing of the lab; and plots,
# texts, tables, raw results.
_MORE: Final = {
    **dict.fromkeys(
        (
            "/login",
            "/logout",
            "/favicon.ico",
            "/robots.txt",
            "/static/{path:path}",
            "/docs",
            "/docs/{name:path}",
            "/api/v1/openapi.json",
            "/install",
            "/install/{name}",
        ),
        Limited.CHANGES,
    ),
    **dict.fromkeys(
        (
            "/results.csv",
            "/person/{name}",
            "/variant/{id}/patch",
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
        ),
        Limited.ROWS,
    ),
}


# Not the pages of those documents: streams that are read once for all, and numbers of the service.
_OTHERS: Final = {"/metrics", *(f"/{kind}/{{id}}/progress" for kind in ids.REQUESTS)}


def _addresses() -> list[tuple[str, re.Pattern[str], Limited]]:
    found = [("GET", path, limited) for path, limited in _MORE.items()]
    found += [("POST", path, Limited.CHANGES) for path in ("/login", "/logout")]
    for one in OPERATIONS:
        if one.limited:
            # `/order/o3.json` and `/order/o3`: a document and its page
            paths = {one.path, one.path.removesuffix(JSON)} - _OTHERS
            found += [(one.method, path, one.limited) for path in paths]
    return [(method, compile_path(path)[0], limited) for method, path, limited in found]


_ADDRESSES: Final = _addresses()


def answers(person: Person, method: str, path: str) -> bool:
    """Whether the token of this person, which is limited to testbox groups, is answered there."""
    method = "GET" if method == "HEAD" else method
    needs = Limited.ROWS if person.levels else Limited.CHANGES
    # an address that several patterns fit has the strictest decision
    found = [limited for of, path_, limited in _ADDRESSES if of == method and path_.match(path)]
    return min(found, default=Limited.REFUSED) >= needs
