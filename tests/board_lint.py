"""Faults of a Grafana dashboard that its JSON shows: each once misled a reader of a real one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

Json = dict[str, Any]
NUMBERS: Final = ("stat", "gauge", "bargauge")
STATUS: Final = frozenset(
    ("status", "state", "verdict", "direction", "outcome", "condition", "mail", "was", "fetch")
)
SCREEN: Final = 1440  # px: width of the browser window that tables must fit
MARGIN, PADDING, COLUMN = 32, 16, 150  # px: of the page, of a panel; a column without a width
# Names that Grafana fills in by itself.
BUILT_IN: Final = re.compile(
    r"__(data\.fields(\.\w+|\[\d+\])|field\.\w+(\.\w+)*|url_time_range|interval)"
)


def findings(board: Json, boards: tuple[Json, ...] = ()) -> list[str]:
    """All faults of `board`; `boards` are those that its links carry variables to."""
    found = list(_links_between_boards(board, boards))
    found += _variables(board)
    for panel in board["panels"]:
        for rule in (_numbers, _series, _columns, _width, _links, *PROMETHEUS):
            found += [f"{board['title']}: {panel['title']}: {fault}" for fault in rule(panel)]
    return found


def _overrides(panel: Json) -> Iterator[tuple[str, dict[str, Any]]]:
    for override in panel["fieldConfig"]["overrides"]:
        yield override["matcher"]["options"], {p["id"]: p["value"] for p in override["properties"]}


def of_column(panel: Json, name: str) -> dict[str, Any]:
    """Properties of a field: those of the panel, and its own."""
    merged: dict[str, Any] = dict(panel["fieldConfig"]["defaults"])
    for matched, properties in _overrides(panel):
        if matched == name:
            merged |= properties
    return merged


def sql_of(panel: Json) -> list[str]:
    return [target["rawSql"] for target in panel.get("targets", []) if "rawSql" in target]


def columns(sql: str) -> list[str]:
    """Names of the columns of the last SELECT at the top level."""
    depth, start, end = 0, 0, len(sql)
    for match in re.finditer(r"[()]|\bSELECT\b|\bFROM\b|\bUNION\b", sql):
        word = match[0]
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth == 0 and word == "SELECT":
            start, end = match.end(), len(sql)
        elif depth == 0 and word == "FROM" and end == len(sql):
            end = match.start()
        elif depth == 0 and word == "UNION":
            break
    return [_name(part) for part in _split(sql[start:end])]


def _split(text: str) -> list[str]:
    parts, depth, quoted = [""], 0, False
    for char in re.sub(r"^\s*DISTINCT( ON \([^)]*\))?", "", text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        quoted ^= char == "'"
        if char == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _name(expression: str) -> str:
    if "$__timeGroupAlias" in expression:
        return "time"
    last = re.search(r"(\w+)\"?\s*$", expression)
    assert last is not None, expression
    return last[1]


def _numbers(panel: Json) -> Iterator[str]:
    if panel["type"] in NUMBERS and not panel["fieldConfig"]["defaults"].get("thresholds"):
        yield "a number without thresholds of its own: Grafana's turn 80 and more red"


def _series(panel: Json) -> Iterator[str]:
    """A series for each status must have its own colour, or colours follow the alphabet."""
    for sql in sql_of(panel):
        named = re.search(r"\b(\w*\.)?(status|outcome|state) AS metric", sql)
        coloured = any("color" in properties for _, properties in _overrides(panel))
        if named and not coloured and not panel["fieldConfig"]["defaults"].get("mappings"):
            yield "series of a status without colours"


def _columns(panel: Json) -> Iterator[str]:
    if panel["type"] not in ("table", "state-timeline"):
        return
    for sql in sql_of(panel):
        for name in STATUS.intersection(columns(sql)):
            if not of_column(panel, name).get("mappings"):
                yield f"column {name} has no value mappings"


def available(panel: Json) -> float:
    return (SCREEN - MARGIN) * int(panel["gridPos"]["w"]) / 24 - PADDING


def _width(panel: Json) -> Iterator[str]:
    if panel["type"] != "table" or panel.get("transformations"):
        return
    for sql in sql_of(panel):
        shown = [name for name in columns(sql) if not of_column(panel, name).get("custom.hidden")]
        needed = sum(of_column(panel, name).get("custom.width", COLUMN) for name in shown)
        if needed > available(panel):
            yield f"its columns need {needed} px, it has {available(panel):.0f}"


def links(panel: Json) -> Iterator[str]:
    for link in panel.get("links", []):
        yield link["url"]
    for properties in (panel["fieldConfig"]["defaults"], *(p for _, p in _overrides(panel))):
        for link in properties.get("links", []):
            yield link["url"]


def link_fields(url: str) -> list[str]:
    """Columns whose value is part of an address."""
    return re.findall(r"\$\{__data\.fields\.(\w+)(?::percentencode)?\}", url)


def _links(panel: Json) -> Iterator[str]:
    """A link takes its path from a column that always has one; a cell may be empty.

    Grafana leaves "&" and "#" of a parameter as they are, and encodes a "%" once more.
    """
    names = {name for sql in sql_of(panel) for name in columns(sql)}
    for url in links(panel):
        if "__value" in url:
            yield f"{url} is broken for an empty cell"
        for parameter in re.findall(r"=(\$\{__(?:data|field)\b[^}]*\})", url):
            if not parameter.endswith(":percentencode}"):
                yield f"{url} does not encode {parameter}"
        for field in link_fields(url):
            if field not in names:
                yield f"{url} names a column that the query does not have"
            elif not field.endswith("_page") and "=${__data.fields." + field not in url:
                yield f"{url} takes {field}, which may be empty"


def _links_between_boards(board: Json, boards: tuple[Json, ...]) -> Iterator[str]:
    for link in board["links"]:
        if link["type"] == "dashboards" and not link["includeVars"]:
            yield f"{board['title']}: a link to other boards forgets the chosen variables"
    kinds = {
        (one["uid"], variable["name"]): _kind(variable)
        for one in boards
        for variable in one["templating"]["list"]
    }
    for variable in board["templating"]["list"]:
        kind = _kind(variable)
        for (uid, name), other in kinds.items():
            if name == variable["name"] and other != kind:
                yield f"{board['title']}: variable {name} is of another kind on {uid}"


def _kind(variable: Json) -> tuple[Any, ...]:
    """What a value must be to be carried to another board; of a data source also its type."""
    of_source = variable["query"] if variable["type"] == "datasource" else None
    return variable.get("multi"), variable.get("includeAll"), of_source


def _variables(board: Json) -> Iterator[str]:
    known: set[str] = set()
    for variable in board["templating"]["list"]:
        for name in re.findall(r"\$\{(\w+)[:}]", str(variable.get("query"))):
            if name not in known:
                yield f"{board['title']}: variable {variable['name']} needs {name} before it"
        known.add(variable["name"])
    for text in _texts([board["panels"], board["annotations"], board["links"]]):
        for name in re.findall(r"\$\{([\w.\[\]]+)[:}]", text):
            if name not in known and not BUILT_IN.fullmatch(name):
                yield f"{board['title']}: ${{{name}}} is not a variable"


def exprs_of(panel: Json) -> list[Json]:
    return [target for target in panel.get("targets", []) if "expr" in target]


def _counters(panel: Json) -> Iterator[str]:
    """The value of a counter is the number since the database was made."""
    for target in exprs_of(panel):
        for before in re.findall(r"(\w+)?\(?\bswingbot_\w+_total\b", target["expr"]):
            if before not in ("increase", "rate", "irate"):
                yield "a counter without increase() or rate()"


def _legends(panel: Json) -> Iterator[str]:
    """Grafana names a series without a legend by all of its labels."""
    for target in exprs_of(panel):
        if target["format"] == "time_series" and not target.get("legendFormat"):
            yield f"series {target['refId']} has no legend"


def _statuses(panel: Json) -> Iterator[str]:
    """As `_series`, for labels; a timeline needs words and colours for its numbers."""
    defaults = panel["fieldConfig"]["defaults"]
    coloured = any("color" in properties for _, properties in _overrides(panel))
    for target in exprs_of(panel):
        by_status = re.search(r"\bby \([^)]*\b(status|outcome|state|phase)\b", target["expr"])
        if by_status and target["format"] == "time_series" and not coloured:
            yield "series of a status without colours"
        if panel["type"] == "state-timeline" and not defaults.get("mappings"):
            yield "a timeline of numbers without value mappings"


def _nothing(panel: Json) -> Iterator[str]:
    """A metric without a value is left out of /metrics, and its panel would be blank."""
    if exprs_of(panel) and not panel["fieldConfig"]["defaults"].get("noValue"):
        yield "blank without a word if nothing is scraped"


PROMETHEUS: Final = (_counters, _legends, _statuses, _nothing)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
