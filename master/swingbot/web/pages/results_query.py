"""The address of a page of results: which kernels, what is shown of them, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request

from swingbot.core.model.comparison_row import VERDICTS
from swingbot.core.results.existing_boots import SORTS
from swingbot.web import limits

_KNOWN: Final = ("tree", "kernel", "testbox", "test", "metric", "verdict", "sort")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsQuery:
    """`test` is a part of a unit job's name, `metric` of a metric's; with it counters are shown."""

    tree: str = ""
    kernels: tuple[str, ...] = ()
    testboxes: tuple[str, ...] = ()
    test: str = ""
    metric: str = ""
    verdicts: tuple[str, ...] = ()
    sort: str = SORTS[0]

    def address(self, form: str = "", **changes: Any) -> str:
        """Return the address of the page, or with `form` of its `.json` or `.csv`."""
        own = replace(self, **changes)
        pairs = [("tree", own.tree), *(("kernel", one) for one in own.kernels)]
        pairs += [("testbox", one) for one in own.testboxes]
        pairs += [("test", own.test), ("metric", own.metric)]
        pairs += [("verdict", one) for one in own.verdicts]
        pairs += [("sort", own.sort if own.sort != SORTS[0] else "")]
        query = urlencode([(name, value) for name, value in pairs if value])
        return f"/results{form}" + (f"?{query}" if query else "")


def read_query(request: Request) -> ResultsQuery:
    """Raises HTTPException with a sentence."""
    given = request.query_params.multi_items()
    for name, value in given:
        if name not in _KNOWN:
            raise HTTPException(
                400, f"{name[:40]!r} is not a parameter of this page; use {', '.join(_KNOWN)}."
            )
        if len(value) > limits.FIELD_CHARACTERS or "\0" in value:
            raise HTTPException(
                400, f"{name} must have at most {limits.FIELD_CHARACTERS} characters."
            )

    def listed(name: str) -> tuple[str, ...]:
        values = [one.strip() for key, value in given if key == name for one in value.split(",")]
        found = tuple(dict.fromkeys(one for one in values if one))
        if len(found) > limits.QUERY_VALUES:
            raise HTTPException(
                400, f"{name} is given {len(found)} times; at most {limits.QUERY_VALUES} count."
            )
        return found

    def single(name: str, default: str = "") -> str:
        return next((value for key, value in given if key == name and value.strip()), default)

    query = ResultsQuery(
        tree=single("tree").strip(),
        kernels=listed("kernel"),
        testboxes=listed("testbox"),
        test=single("test").strip(),
        metric=single("metric").strip(),
        verdicts=listed("verdict"),
        sort=single("sort", SORTS[0]).strip(),
    )
    if len(query.kernels) > limits.RESULT_KERNELS:
        raise HTTPException(
            400,
            f"{len(query.kernels)} kernels are given; this page compares 2 to"
            f" {limits.RESULT_KERNELS}."
            " An experiment measures more (/experiment).",
        )
    _one_of("sort", [query.sort], SORTS)
    _one_of("verdict", query.verdicts, VERDICTS)
    return query


def _one_of(name: str, given: Sequence[str], known: Sequence[str]) -> None:
    for value in given:
        if value not in known:
            raise HTTPException(400, f"{name} must be one of {', '.join(known)}.")
