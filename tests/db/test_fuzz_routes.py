"""Hostile text in every part of every route: the service never fails, whatever it is sent."""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote_from_bytes

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.core.access.roles import Role
from tests.postgres import Server
from tests.served import Served, served

SEED: Final = 20
TEXTS: Final = (
    b"\0", b"a\0b", b"\xed\xa0\x80", b"\xff\xfe", b"\x1b[31m", b"\n", b"..", b"../../etc/passwd", b"%00",
    b"c1", b"b1", b"x1", b"i1", b"c0", b"c-1", b"c1\0", b"x" + b"9" * 18, b"c" + b"9" * 40, b"1", b"9" * 30,
    b"9223372036854775808", b"nan", b"1e309", b"'; DROP TABLE boot; --", b"<script>", b"\xf0\x9f\x92\xa9",
    b"a" * 3000, b" ", b"?", b"#", b"{0}", b"%s", "\u202e".encode(), b"0x10", "\u0663".encode(), b",",
)  # fmt: skip
VALUES: Final[tuple[object, ...]] = (
    "\0", "\ud800", "\udfff x", "a\0b", "x" * 5000, "", "'", 1, -1, 10**40, 1e308, None, True, [], ["\0"],
    ["\ud800"], {}, {"a": "\0"}, [[[]]],
)  # fmt: skip


@pytest.fixture(scope="module")
def site(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    from tests.database import fresh

    with (
        fresh(pg, template) as url,
        served(
            url, tmp_path_factory.mktemp("fuzz"), SWINGBOT_WEB_RATE="0", SWINGBOT_WEB_WRITE_RATE="0"
        ) as one,
    ):
        yield one


def application(site: Served) -> Starlette:
    app: Any = site.server.config.app
    while not isinstance(app, Starlette):
        app = app._app
    return app


def routes(site: Served) -> list[tuple[str, str]]:
    """Method and path with its parameters, as `{}`, of every route."""
    found = []
    for route in application(site).routes:
        if isinstance(route, Mount):
            found.append(("GET", f"{route.path}/{{}}"))
        elif isinstance(route, Route):
            path = re.sub(r"\{[^}]*\}", "{}", route.path)
            found += [(method, path) for method in sorted(route.methods or {"GET"})]
    return found


def ask(site: Served, method: str, address: str, **more: Any) -> int:
    try:
        return site.client.request(method, address, **more).status_code
    except httpx.InvalidURL:
        return 400  # never sent


def test_hostile_text_in_paths_and_queries_of_every_route(site: Served) -> None:
    dice, failed, asked = random.Random(SEED), [], 0
    headers = site.token("Fia", Role.MODERATOR)
    for method, path in routes(site):
        for _ in range(12 if "{}" in path else 3):
            parts = [quote_from_bytes(dice.choice(TEXTS), safe="") for _ in range(path.count("{}"))]
            name = dice.choice(("tree", "limit", "state", "next", "metric", "testbox", "name"))
            query = quote_from_bytes(dice.choice(TEXTS), safe="")
            address = path.format(*parts) + f"?{name}={query}"
            status = ask(site, method, address, headers=headers)
            asked += 1
            if status >= 500:
                failed.append(f"{status} {method} {address[:200]}")
    assert asked > 300 and not failed, "\n".join(failed)


def test_hostile_documents_for_every_route_that_takes_one(site: Served) -> None:
    dice, failed = random.Random(SEED), []
    headers = site.token("Fia", Role.OPERATOR)
    keys = ("tree", "base", "head", "patch", "job", "boots", "dry_run", "testbox", "name", "text")
    for method, path in routes(site):
        if method not in ("POST", "PUT"):
            continue
        for _ in range(25):
            sent = {key: dice.choice(VALUES) for key in dice.sample(keys, dice.randrange(1, 6))}
            body = json.dumps(dice.choice((sent, dice.choice(VALUES), [sent]))).encode()
            for kind in (
                "application/json",
                "application/x-www-form-urlencoded",
                "multipart/form-data; boundary=x",
            ):
                content = body if kind.endswith("json") else b"".join(dice.sample(TEXTS, 5))
                status = ask(
                    site,
                    method,
                    path.replace("{}", "c1"),
                    content=content,
                    headers=headers | {"content-type": kind},
                )
                if status >= 500:
                    failed.append(f"{status} {method} {path} {kind} {content[:200]!r}")
    assert not failed, "\n".join(failed)


def test_no_cache_shares_what_was_asked_for_with_a_token_or_a_session(site: Served) -> None:
    store, content = ArtifactDirectory(site.settings.artifacts), b"a kernel"
    digest = hashlib.sha256(content).hexdigest()
    store.put(io.BytesIO(content), digest)
    token = site.token("Ada", Role.MODERATOR)
    shared, statuses = [], Counter[int]()
    for method, path in routes(site):
        if method != "GET":
            continue
        for part in ("c1", "b1", "i1", "r1", "x1", "v1", "o1", "1", "vm-icount", digest):
            address = path.replace("{}", part)
            for headers in (
                (token, {"cookie": "swingbot=x"}) if part in ("c1", digest) else (token,)
            ):
                answer = site.client.get(address, headers=headers)
                statuses[answer.status_code] += 1
                rules = answer.headers["cache-control"].split(", ")
                if "public" in rules or "private" not in rules:
                    shared.append(f"{address}: {rules}")
    assert statuses[200] > 100 and not shared, "\n".join(shared)
    anonymous = site.client.get(f"/artifacts/{digest}")
    assert (anonymous.content, anonymous.headers["cache-control"][:7]) == (content, "public,")


def test_hostile_headers(site: Served) -> None:
    for name in (
        "accept",
        "authorization",
        "cookie",
        "range",
        "if-none-match",
        "content-type",
        "origin",
    ):
        for text in TEXTS:
            if not re.search(rb"[\0\n]", text):
                value = text.strip() or b"x"
                for shown in (value, b"Bearer " + value, b"swingbot=" + value):
                    assert ask(site, "GET", "/comparisons", headers={name: shown}) < 500, (
                        name,
                        shown,
                    )
