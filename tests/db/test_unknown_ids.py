"""Every route with an id answers 404 to one that does not exist, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from starlette.routing import Route

from swingbot.core.access.roles import Role
from swingbot.core.model import ids
from tests.database import fresh
from tests.db.test_fuzz_routes import application
from tests.postgres import Server
from tests.served import served

KINDS: Final = (*ids.TABLES, "bisection", "incident", "report", "order", "variant", "boot")
# Kinds of the routes whose first part names none.
SHOWN: Final = {
    "/raw/{id}/order.json": ("boot",),
    "/raw/{id}/{path:path}": tuple(kind for kind in KINDS if kind != "variant"),
    "/plot/{id}/values.svg": ids.TABLES,
    "/plot/{id}/history.svg": ("report",),
    "/plot/{id}.svg": ("bisection",),
    "/moderation/{id}": ("report",),
}
NUMBERED: Final = ("/tokens/",)  # by a number alone
BY_WORKERS: Final = ("/attempts/", "/artifacts/")
# Bodies that are valid, by the end of an address.
BODIES: Final[dict[str, dict[str, Any]]] = {
    "skip": {"commits": ["abcd1234"]},
    "hint": {"commits": ["abcd1234"]},
    "extend": {"boots": 1},
    "resume": {"boots": 1},
    "cancel": {},
    "publish": {},
    "/incident/{id}/decide": {"act": "close"},
    "/report/{id}/decide": {"act": "hold"},
    "/report/{id}/readdress": {},
    "/incident/{id}/prove": {},
}
FORMS: Final = {
    "/incident/{id}": {"act": "close"},
    "/moderation/{id}": {"act": "hold"},
    "/tokens/{id}/revoke": {},
}


def addresses(path: str) -> list[str]:
    """The addresses of a route for numbers that nothing has."""
    if path.startswith(NUMBERED):
        return [path.replace("{id}", "9999")]
    first = path.split("/")[1]
    kinds = SHOWN.get(path, KINDS if first == "{kind}" else (first,))
    rest = {"{path:path}": "manifest.json", "{form}": "mail"}
    for parameter, value in rest.items():
        path = path.replace(parameter, value)
    return [path.replace("{kind}", kind).replace("{id}", ids.show(kind, 9999)) for kind in kinds]


def test_an_id_that_nothing_has_is_not_found(pg: Server, template: str, tmp_path: Path) -> None:
    wrong, asked = [], 0
    with (
        fresh(pg, template) as url,
        served(url, tmp_path, SWINGBOT_WEB_RATE="0", SWINGBOT_WEB_WRITE_RATE="0") as site,
    ):
        token = site.token("Opal", Role.OPERATOR)
        for route in application(site).routes:
            if not isinstance(route, Route) or "{id}" not in route.path:
                continue
            if route.path.startswith(BY_WORKERS) or route.path == "/raw/{id}":  # leads to /raw/ID/
                continue
            method = "POST" if "POST" in (route.methods or ()) else "GET"
            sent: dict[str, Any] = {}
            if route.path in FORMS and method == "POST":
                sent["data"] = FORMS[route.path]
            elif method == "POST":
                ending = route.path.rsplit("/", 1)[1]
                sent["json"] = BODIES[route.path if route.path in BODIES else ending]
            for address in addresses(route.path):
                answer = site.client.request(method, address, headers=token, **sent)
                asked += 1
                if answer.status_code != 404 or not 0 < len(answer.content) < 5000:
                    wrong.append(f"{answer.status_code} {method} {address} {answer.text[:300]}")
    assert asked > 60 and wrong == [], "\n".join(wrong)
