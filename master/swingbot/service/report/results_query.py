"""What is asked of the results that exist: which kernels in which order, or which metric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from swingbot.core.limits import FIELD_CHARACTERS, QUERY_VALUES, RESULT_KERNELS
from swingbot.core.model.comparison_row import VERDICTS
from swingbot.service.ports import RequestError

SORTS: Final = ("importance", "size", "significance", "name")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """A metric over the commits of a tree. Raises RequestError for a value that is too long.

    An empty tree, testbox or unit job: the only one that has the metric. An empty configuration or
    compiler: that of the tree.
    """

    metric: str
    tree: str = ""
    testbox: str = ""
    unit_job: str = ""
    kconfig: str = ""
    compiler: str = ""

    def __post_init__(self) -> None:
        for name, value in self.given().items():
            checked(name, value)

    def given(self) -> dict[str, str]:
        """Return the names that are not empty, as parameters of an address."""
        return {name: value for name, value in asdict(self).items() if value}


def checked(name: str, value: str) -> str:
    """Return a value that names something. Raises RequestError for one that is too long."""
    if len(value) > FIELD_CHARACTERS or "\0" in value:
        raise RequestError(f"{name} must have at most {FIELD_CHARACTERS} characters")
    return value


def query_of(pairs: Iterable[tuple[str, str]]) -> ResultsQuery:
    """Return the query that pairs of name and value make. Raises RequestError."""
    given = list(pairs)
    for name, value in given:
        if name not in _KNOWN:
            raise RequestError(
                f"{name[:40]!r} is not a parameter of results; use {', '.join(_KNOWN)}"
            )
        checked(name, value)

    def listed(name: str) -> tuple[str, ...]:
        values = [one.strip() for key, value in given if key == name for one in value.split(",")]
        found = tuple(dict.fromkeys(one for one in values if one))
        if len(found) > QUERY_VALUES:
            raise RequestError(f"{name} has {len(found)} values; the limit is {QUERY_VALUES}")
        return found

    def single(name: str, default: str = "") -> str:
        return next(
            (value.strip() for key, value in given if key == name and value.strip()), default
        )

    query = ResultsQuery(
        tree=single("tree"),
        kernels=listed("kernel"),
        testboxes=listed("testbox"),
        test=single("test"),
        metric=single("metric"),
        verdicts=listed("verdict"),
        sort=single("sort", SORTS[0]),
    )
    if len(query.kernels) > RESULT_KERNELS:
        raise RequestError(
            f"{len(query.kernels)} kernels are given; 2 to {RESULT_KERNELS} can be compared by"
            " boots that exist. An experiment measures more"
        )
    _one_of("sort", [query.sort], SORTS)
    _one_of("verdict", query.verdicts, VERDICTS)
    return query


def _one_of(name: str, given: Sequence[str], known: Sequence[str]) -> None:
    for value in given:
        if value not in known:
            raise RequestError(f"{name} must be one of {', '.join(known)}, not {value[:40]!r}")
