"""The description of the API has every address that answers JSON, and is valid."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa
from jsonschema import Draft202012Validator
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from swingbot.app.settings import load
from swingbot.app.web import service
from swingbot.core.access.roles import Role
from swingbot.core.model import ids
from swingbot.web import limits
from swingbot.web.api import openapi
from swingbot.web.api.document_types import document_types
from swingbot.web.api.operations import OPERATIONS
from swingbot.web.pages.kinds import PLURALS

# Routes that answer no document to programs: pages, their forms, files, and the workers' exchange.
OTHERS: Final = {
    *("GET /", "GET /login", "POST /login", "POST /logout", "GET /tokens"),
    *(
        "POST /tokens/{id}/revoke",
        "GET /robots.txt",
        "GET /favicon.ico",
        "GET /api/v1/openapi.json",
    ),
    *("GET /search", "GET /results", "GET /results.csv", "GET /metric", "GET /metrics"),
    *("GET /compare", "GET /experiment", "POST /incident/{id}", "GET /bisect"),
    *(f"GET /{kind}/{{id}}/cancel" for kind in (*ids.TABLES, "bisection")),
    *(f"GET /{kind}/{{id}}/{act}" for kind in ids.TABLES for act in ("extend", "publish")),
    "GET /testbox/{name}/resume",
    *(f"GET /bisection/{{id}}/{act}" for act in ("resume", "skip", "hint")),
    *("GET /moderation", "POST /moderation/switch", "POST /moderation/{id}", "GET /outbox"),
    *("GET /mailbox", "GET /mailbox/{key}", "GET /feed/{kind}/{file}"),
    *("GET /install", "GET /install/{name}", "GET /docs", "GET /docs/{name:path}"),
    "GET /variant/{id}/patch",
    *("GET /plot/{id}/values.svg", "GET /plot/{id}/history.svg", "GET /plot/{id}.svg"),
    *("GET /{kind}/{id}/show.txt", "GET /{kind}/{id}/{form}.txt", "GET /{kind}/{id}/table.csv"),
    *(f"GET /{kind}/{{id}}/progress" for kind in (*ids.TABLES, "bisection")),
    *("GET /bisection/{id}/log.txt", "GET /bisection/{id}/log.jsonl"),
    *(f"GET /{kind}/{{id}}/reproduce.tar.gz" for kind in ("report", *ids.TABLES)),
    *("GET /raw/{id}", "GET /person/{name}"),
    *("GET /artifacts/{sha256}", "PUT /artifacts/{sha256}", "GET /attempts/{id}"),
    *("PUT /attempts/{id}/phase", "PUT /attempts/{id}/outcome.json"),
}


def application(state: Path, **settings: str) -> Starlette:
    nowhere = sa.create_engine("postgresql+psycopg2://nobody@127.0.0.1:1/none")
    app: Any = service(load(environ={"SWINGBOT_PATHS_STATE": str(state), **settings}), nowhere)
    while hasattr(app, "_app"):
        app = app._app
    assert isinstance(app, Starlette)
    return app


def described(app: Starlette, reading: str = "open") -> dict[str, Any]:
    return openapi.description(
        "http://lab.example",
        app.routes,
        lambda method, path: limits.FORM_BYTES,
        lambda method, path: reading,
    )


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Starlette:
    return application(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="module")
def document(app: Starlette) -> dict[str, Any]:
    return described(app)


def test_every_route_is_described_or_answers_no_document(app: Starlette) -> None:
    answering = {
        f"{one.method} {route.path}"
        for one in OPERATIONS
        if isinstance(route := openapi.route_of(one, app.routes), Route)
    }
    routes = {
        f"{method} {route.path}"
        for route in app.routes
        if isinstance(route, Route)
        for method in route.methods or ()
        if method != "HEAD"
    }
    assert routes - answering == OTHERS
    assert OTHERS.isdisjoint(answering)


def test_every_operation_has_a_route(app: Starlette, document: dict[str, Any]) -> None:
    named = {(one.method.lower(), one.path) for one in OPERATIONS}
    assert len(named) == len(OPERATIONS)
    assert {(method, path) for path, item in document["paths"].items() for method in item} == named


def test_every_kind_and_list_of_the_pages_is_described(app: Starlette) -> None:
    paths = {one.path for one in OPERATIONS}
    client = TestClient(app, headers={"accept": "application/json"})
    kinds = (
        client.get("/none/x1").json()["detail"].partition("kinds are ")[2].strip(".").split(", ")
    )
    assert len(kinds) > 8
    for kind in kinds:
        assert any(path.startswith(f"/{kind}/{{") for path in paths), kind
    lists = re.findall(
        r"/(\w+)[,.]", client.get("/none").json()["detail"].partition("lists are")[2]
    )
    assert {f"/{plural}.json" for plural in lists} <= paths and lists == [*PLURALS]


def test_references_lead_to_schemas_which_are_valid(document: dict[str, Any]) -> None:
    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                place: Any = document
                for step in value["$ref"].removeprefix("#/").split("/"):
                    place = place[step]
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(document)
    schemas = document["components"]["schemas"]
    assert schemas.keys() == {"Problem", *document_types()}
    bodies = [
        item["requestBody"]["content"]["application/json"]["schema"]
        for path in document["paths"].values()
        for item in path.values()
        if "requestBody" in item
    ]
    assert len(bodies) == 14
    for schema in (*schemas.values(), *bodies):
        Draft202012Validator.check_schema(schema)


def test_an_operation_has_its_parameters_role_limit_and_errors(document: dict[str, Any]) -> None:
    names = [item["operationId"] for path in document["paths"].values() for item in path.values()]
    assert len(names) == len(set(names))
    for path, methods in document["paths"].items():
        for item in methods.values():
            inner = [one["name"] for one in item["parameters"] if one["in"] == "path"]
            assert inner == re.findall(r"\{(\w+)\}", path)
    compare = document["paths"]["/compare"]["post"]
    assert compare["security"] == [{"token": [Role.SUBMITTER.value]}]
    assert f"at most {limits.FORM_BYTES} bytes" in compare["description"]
    assert {"200", "201", "400", "401", "403", "413", "429"} <= compare["responses"].keys()
    fields = compare["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert fields["rows"]["items"]["properties"]["patches"]["type"] == "array"
    assert fields["boots"]["type"] == ["integer", "null"] and fields["tree"]["description"]


def test_reading_takes_a_token_where_the_settings_say_so(app: Starlette) -> None:
    get = described(app, "token")["paths"]["/status.json"]["get"]
    assert get["security"] == [{"token": ["reader"]}]
    assert {} in described(app)["paths"]["/status.json"]["get"]["security"]
