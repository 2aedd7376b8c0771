"""Write dashboards in a normal form, so that a change is a small diff: `make dashboards`.

Fields that Grafana adds at export (ids, versions, state of a session) are removed; keys are sorted,
the most important ones first; panels are numbered from the top left. Arguments: files (default:
all). With `--check` nothing is written and the exit status is 1 if a file is not in normal form.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
_FIRST = ("uid", "title", "name", "type", "description", "refId", "rawSql")
_VOLATILE = (
    "version",
    "iteration",
    "gnetId",
    "fiscalYearStartMonth",
    "weekStart",
    "liveNow",
    "pluginVersion",
    "__inputs",
    "__requires",
    "__elements",
)


def normal(dashboard: dict[str, Any]) -> dict[str, Any]:
    """Return the dashboard in normal form; idempotent."""
    cleaned = {key: value for key, value in dashboard.items() if key not in _VOLATILE} | {
        "id": None
    }
    panels = sorted(
        cleaned.get("panels", []), key=lambda panel: (panel["gridPos"]["y"], panel["gridPos"]["x"])
    )
    cleaned["panels"] = [panel | {"id": number} for number, panel in enumerate(panels, 1)]
    ordered = _ordered(cleaned)
    assert isinstance(ordered, dict)
    return ordered


def _ordered(value: Any) -> Any:
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if not isinstance(value, dict):
        return value
    keys = sorted(
        (key for key in value if key not in _VOLATILE),
        key=lambda key: (_FIRST.index(key) if key in _FIRST else len(_FIRST), key),
    )
    return {key: _ordered(value[key]) for key in keys}


def text(dashboard: dict[str, Any]) -> str:
    return json.dumps(normal(dashboard), indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    files = [Path(name) for name in arguments if name != "--check"] or sorted(HERE.glob("*/*.json"))
    changed = [file for file in files if file.read_text() != text(json.loads(file.read_text()))]
    for file in changed:
        if not check:
            file.write_text(text(json.loads(file.read_text())))
        sys.stdout.write(
            f"{file.name}: {'not in normal form; run `make dashboards`' if check else 'written'}\n"
        )
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
