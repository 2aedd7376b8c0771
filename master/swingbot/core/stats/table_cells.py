"""Cells of a table in text: separated by commas, semicolons or tabs, with decimal commas."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Sequence
from typing import Final

_NUMBER: Final = re.compile(r"[+-]?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?")
_THOUSANDS: Final = re.compile(r"[+-]?\d{1,3},\d{3}")


def read_cells(text: str, form: str, words: Collection[str]) -> list[list[str]]:
    """Return the rows of a table (`form` csv or tsv) that are not empty, the names in small letters
    first.

    A csv file whose first line has more semicolons than commas is separated by semicolons. Decimal
    commas become points, but for the columns `words`. Raises ValueError with the reason.
    """
    first = text.lstrip().partition("\n")[0]
    comma = ";" if first.count(";") > first.count(",") else ","
    separator = "\t" if form == "tsv" else comma
    try:
        rows = [
            row
            for row in csv.reader(text.splitlines(), delimiter=separator)
            if any(cell.strip() for cell in row)
        ]
    except csv.Error as error:
        raise ValueError(f"the input is not a valid table ({error})") from None
    names = [cell.strip().lower() for cell in rows[0]] if rows else []
    for number, row in enumerate(rows[1:], start=2):
        if len(row) > len(names):
            hint = "; a decimal comma is read as a column separator" if separator == "," else ""
            raise ValueError(
                f"line {number} has {len(row)} cells, but the first line has {len(names)}{hint}"
            )
    for n, name in enumerate(names):
        if name not in words:
            _with_points([row for row in rows[1:] if len(row) > n], n, name, separator)
    return [names, *rows[1:]] if rows else []


def _with_points(rows: Sequence[list[str]], n: int, name: str, separator: str) -> None:
    """Replace the decimal commas in column `n`."""
    numbers = [
        part for row in rows for part in row[n].split() if _NUMBER.fullmatch(part) is not None
    ]
    commas = [number for number in numbers if "," in number]
    if not commas:
        return
    if any("." in number for number in numbers):
        raise ValueError(
            f"column {name} has numbers with a comma ({commas[0]}) and numbers with a point; write"
            " all with a decimal point"
        )
    alike = all(_THOUSANDS.fullmatch(number) for number in commas)
    if alike and (separator != ";" or len(commas) < len(numbers)):
        raise ValueError(
            f"column {name} has {commas[0]}: with a decimal comma, or with one between thousands?"
            " Write a decimal point, and nothing between thousands"
        )
    for row in rows:
        row[n] = " ".join(
            part.replace(",", ".") if _NUMBER.fullmatch(part) else part for part in row[n].split()
        )
