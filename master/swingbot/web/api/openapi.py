"""`/api/v1/openapi.json`: the API as an OpenAPI 3.1 document, made from the routes of the
application, the operations and the types of documents (https://spec.openapis.org/oas/v3.1.0).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route

from swingbot.core.access.roles import PURPOSES, Role
from swingbot.core.model import ids
from swingbot.core.model.document_version import HEADER, VERSION
from swingbot.web.access.once import KEY
from swingbot.web.api.document_types import DocumentType, Key, common, document_types
from swingbot.web.api.operations import OPERATIONS, Operation, Schema
from swingbot.web.http.error_response import PROBLEM

ADDRESS: Final = "/api/v1/openapi.json"
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_OF_KINDS: Final = re.compile(r"\{(id|name|build_key)\}")
_LINK: Final = re.compile(r"\[([^\[\]]+)\]\([^()]+\)")
_MEANINGS: Final = {
    "name": "name",
    "build_key": "digest of what goes into the build",
    "tree": "name of the tree",
    "testbox": "name of the testbox",
    "unit_job": "name of the unit job",
    "metric": "full name of the metric",
}
_ERRORS: Final = {
    HTTPStatus.BAD_REQUEST: "The request is malformed or cannot be done.",
    HTTPStatus.UNAUTHORIZED: "A token is required, or this one is invalid, expired or revoked.",
    HTTPStatus.FORBIDDEN: "The role or the trees of the token do not allow it, or it is not yours.",
    HTTPStatus.NOT_FOUND: "It does not exist.",
    HTTPStatus.REQUEST_TIMEOUT: "The body arrived too slowly.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.CONFLICT: "The request with this key is in progress, or its answer is lost.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "The key belongs to another request.",
    HTTPStatus.TOO_MANY_REQUESTS: "A limit of the client or the person's quota is reached.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The database or a place in the queue is not available now.",
}
_OF_BODIES: Final = (403, 408, 413)
_OF_KEYS: Final = (409, 422)
_KEY: Final = (
    {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "of one request: sent again with its key within a day, it is done once",
        "schema": {"type": "string", "pattern": KEY},
    },
)
_SCALARS: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
Limit = Callable[[str, str], int]  # method, path -> maximum body size in bytes
Reading = Callable[[str, str], str]  # method, path -> `open` or `token`


def description(
    url: str, routes: Sequence[BaseRoute], limit: Limit, reading: Reading
) -> dict[str, Any]:
    """Return the description of the operations that `routes` answer at the address `url`."""
    paths: dict[str, dict[str, Any]] = {}
    for one in OPERATIONS:
        if route_of(one, routes) is not None:
            described = _operation(one, limit, reading)
            paths.setdefault(one.path, {})[one.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "swingbot",
            "version": str(VERSION),
            "description": "Finds the commits that changed the performance of a kernel. Errors have"
            " one sentence for people. Documents have an ETag; answers to requests for work say in"
            " RateLimit what is left of the quota. The header"
            f" {HEADER} of each answer has the version. Send `Accept: application/json` where an"
            " address has no `.json`.",
            "license": {"name": "GPL-2.0-or-later", "identifier": "GPL-2.0-or-later"},
        },
        "servers": [{"url": url}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "responses": {str(int(status)): _error(status) for status in _ERRORS},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of a person. Roles, each with the rights of those"
                    " before it: "
                    + "; ".join(f"{role} {purpose}" for role, purpose in PURPOSES.items())
                    + ".",
                }
            },
        },
    }


def route_of(one: Operation, routes: Iterable[BaseRoute]) -> BaseRoute | None:
    """Return the route that answers an operation."""
    path = _PARAMETER.sub("x", one.path)
    scope = {"type": "http", "method": one.method, "path": path, "headers": []}
    return next((route for route in routes if route.matches(scope)[0] is Match.FULL), None)


def routes(url: str, limit: Limit, reading: Reading) -> list[Route]:
    """The route of the description; it describes the application that has it."""

    @cache
    def of(application: Any) -> dict[str, Any]:
        return description(url, application.routes, limit, reading)

    def show(request: Request) -> Response:
        return JSONResponse(of(request.app))

    return [Route(ADDRESS, show, methods=["GET"])]


def _operation(one: Operation, limit: Limit, reading: Reading) -> dict[str, Any]:
    path = _PARAMETER.sub("x", one.path)
    statuses = [400, 401, 404, 429, 503]
    described: dict[str, Any] = {
        "operationId": _name(one),
        "summary": one.about,
        "parameters": [*_path_parameters(one), *_query_parameters(one), *_KEY * one.once],
        "security": _security(one, reading(one.method, path)),
    }
    if one.method == "POST":
        statuses += _OF_BODIES + _OF_KEYS * one.once
        described["description"] = (
            f"Role: {one.role}. The body has at most {limit(one.method, path)} bytes."
        )
    if one.body is not None:
        content = {"application/json": {"schema": one.body()}}
        described["requestBody"] = {"required": True, "content": content}
    answer = {"description": one.about, "content": {"application/json": {"schema": _answer(one)}}}
    described["responses"] = {
        **{str(status): {"$ref": f"#/components/responses/{status}"} for status in statuses},
        **{str(status): answer for status in one.statuses},
    }
    return described


def _name(one: Operation) -> str:
    words = re.findall(r"\w+", _OF_KINDS.sub("", one.path).removesuffix(".json"))
    return "_".join([one.method.lower(), *words])


def _path_parameters(one: Operation) -> Iterator[Schema]:
    kind = one.path.split("/")[1]
    for name in _PARAMETER.findall(one.path):
        letter = ids.LETTERS.get(kind, "[a-z]")
        schema = {"type": "string"} | ({"pattern": f"^{letter}[0-9]+$"} if name == "id" else {})
        meaning = _MEANINGS.get(name, "id: a letter and a number")
        yield {"name": name, "in": "path", "required": True, "description": meaning} | {
            "schema": schema
        }


def _query_parameters(one: Operation) -> Iterator[Schema]:
    for name, meaning in one.query.items():
        yield {"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}}


def _security(one: Operation, reading: str) -> list[dict[str, list[str]]]:
    if one.role is not None:
        return [{"token": [one.role.value]}]
    token = {"token": [Role.READER.value]}
    return [token] if reading == "token" else [{}, token]


def _error(status: HTTPStatus) -> Schema:
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    described: Schema = {"description": _ERRORS[status], "content": content}
    if status == HTTPStatus.UNAUTHORIZED:
        described["headers"] = {
            "WWW-Authenticate": {"required": True, "schema": {"const": "Bearer"}}
        }
    return described


def _answer(one: Operation) -> Schema:
    kinds: list[Schema] = [{"$ref": f"#/components/schemas/{name}"} for name in one.answers]
    if not kinds:
        return {"type": "object"}
    kind: Schema = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return {"type": "array", "items": kind} if one.listed else kind


def _schemas() -> dict[str, Schema]:
    error = {
        "type": {"const": "about:blank"},
        "title": {"type": "string", "description": "words of the status"},
        "status": {"type": "integer", "description": "the status"},
        "detail": {"type": "string", "description": "one sentence, as commands print it"},
    }
    return {
        "Problem": {"type": "object", "properties": error, "required": list(error)},
        **{one.name: _schema(one) for one in document_types().values()},
    }


def _schema(one: DocumentType) -> Schema:
    own: Schema = {
        "type": "object",
        "properties": {key.name: _described(key) for key in one.keys},
        "required": [key.name for key in one.keys if not key.optional],
    }
    if one.about:
        own["description"] = _plain(one.about)
    bases = [{"$ref": f"#/components/schemas/{base}"} for base in one.bases]
    return {"allOf": [*bases, own]} if bases else own


def _described(key: Key) -> Schema:
    known = common().get(key.name)
    meaning = key.meaning or (known.meaning if known is not None else "")
    return _kind(key.kind) | ({"description": _plain(meaning)} if meaning else {})


def _kind(annotation: ast.expr) -> Schema:
    match annotation:
        case ast.BinOp(left, ast.BitOr(), right):
            return {"anyOf": [_kind(left), _kind(right)]}
        case ast.Constant(None):
            return {"type": "null"}
        case ast.Subscript(ast.Name("list"), inner):
            return {"type": "array", "items": _kind(inner)}
        case ast.Subscript(ast.Name("dict"), ast.Tuple([_, inner])):
            return {"type": "object", "additionalProperties": _kind(inner)}
        case ast.Name("Any"):
            return {}
        case ast.Name(name) if name in _SCALARS:
            return {"type": _SCALARS[name]}
        case ast.Name(name):
            return {"$ref": f"#/components/schemas/{name}"}
    raise ValueError(f"{ast.unparse(annotation)} has no JSON Schema")


def _plain(text: str) -> str:
    """Return a text without the addresses of its links."""
    return _LINK.sub(r"\1", " ".join(text.split()))
