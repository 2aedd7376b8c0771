"""docs/calibration-results.md from `results.yaml`, which keeps what was measured.

`python -m tests.calibration.results >docs/calibration-results.md` renders the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

DATA: Final = Path(__file__).with_name("results.yaml")
_HEAD: Final = """\
# Calibration results

Error rates, power and honesty of what [statistics](statistics.md) derives, as measured.
Each table names its command, its sample and the date of the code that it measured;
a range in brackets is a 95 % interval.
`python -m tests.calibration.results` renders this page from `tests/calibration/results.yaml`.
"""


def page() -> str:
    """The whole page."""
    return "\n".join(_lines(yaml.safe_load(DATA.read_text())))


def _lines(tables: list[dict[str, Any]]) -> Iterator[str]:
    yield _HEAD
    section = None
    for table in tables:
        if table["section"] != section:
            section = table["section"]
            yield f"## {section}\n"
        yield f"### {table['title']}\n"
        yield f"`{table['command']}`;\n{table['sample']}; {table['measured']}.\n{table['about']}\n"
        yield _row(table["columns"])
        yield "|---" * len(table["columns"]) + "|"
        for row in table["rows"]:
            if len(row) != len(table["columns"]):
                raise ValueError(f"{DATA}: {table['title']}: {row} does not fit the columns")
            yield _row(row)
        yield ""


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(page(), end="")
