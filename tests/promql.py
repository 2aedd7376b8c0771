"""Expressions of dashboards in Prometheus' language, as Grafana sends them, and what they name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
SCRAPED = {"instance", "job"}  # labels that Prometheus adds to each series that it scrapes
_LABEL_VALUES = re.compile(r"label_values\((.+), (\w+)\)")


def expressions(dashboard: Json) -> Iterator[tuple[str, Json]]:
    """(location, target) of every panel's expression."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            if "expr" in target:
                yield f"{panel['title']} {target['refId']}", target


def variables(dashboard: Json) -> Iterator[tuple[str, str, str]]:
    """(variable, selector, label) of the variables that list the values of a label."""
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query" and isinstance(variable["query"], dict):
            match = _LABEL_VALUES.fullmatch(variable["query"]["query"])
            assert match is not None, variable["query"]
            yield variable["name"], match[1], match[2]


def expand(expr: str, chosen: dict[str, str], interval: str = "1m") -> str:
    """Put in variables and Grafana's intervals. Fails on an unknown one."""
    expr = re.sub(r"\$__(rate_)?interval\b", interval, expr)
    expr = re.sub(r"\$\{(\w+)\}", lambda match: chosen[match[1]], expr)
    assert "$" not in expr, f"an unknown variable: {expr}"
    return expr


def selectors(expr: str) -> list[tuple[str, set[str]]]:
    """(metric, labels of its matchers) of each selector, in order."""
    found = []
    for name, _, inner in re.findall(r"\b(swingbot_\w+|up|ALERTS)\b(\{([^}]*)\})?", _plain(expr)):
        found.append((name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", inner))))
    return found


def grouped(expr: str) -> set[str]:
    """Labels that series are grouped by."""
    lists = re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", expr)
    return {name.strip() for names in lists for name in names.split(",")}


def _plain(expr: str) -> str:
    """Without the braces of variables, which would end a selector."""
    return re.sub(r"\$\{(\w+)\}", r"\1", expr)
