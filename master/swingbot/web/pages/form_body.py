"""The fields of a request, from a form or from JSON."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from io import BytesIO
from typing import Any, Final

import multipart  # type: ignore[import-untyped]  # has no type annotations
from starlette.exceptions import HTTPException

from swingbot.core.limits import FIELD_CHARACTERS, LOOKS, TABLE_BOOTS, TABLE_ROWS
from swingbot.core.table.request_document import SentTable
from swingbot.service.ports import RequestError
from swingbot.web import limits
from swingbot.web.http import json_body
from swingbot_jobs import codec

_LISTS: Final = {
    "head": "commits, a row for each",
    "job": "names of shipped job files; none: those of the tree",
    "testbox": "names; none: those of the tree",
    "against": "references: above, first, base, pair, or names of rows",
    "with": "columns beside the numbers",
    "private_to": "names of those who may read it too, or `me`; none: everybody may read it",
}
_NUMBERS: Final = {
    "boots": "boots of each row",
    "looks": "how often the table is judged",
    "min_effect": "smallest change of interest in percent",
}
_FLAGS: Final = {
    "mail": "send a mail to the address of the token when the table is over",
}
_FILES: Final = {
    "patch": "a diff or mailbox, applied as a whole",
    "series": "a mailbox, a row for each patch",
}
_TEXTS: Final = {
    "tree": "name of the tree",
    "range": "BASE..HEAD, a row for each commit",
    "base": "commit of the first row",
}
LISTS: Final = tuple(_LISTS)  # may be repeated
NUMBERS: Final = tuple(_NUMBERS)  # in JSON; min_effect may have a fraction
FLAGS: Final = tuple(_FLAGS)  # "1" in a form, true in JSON
TEXTS: Final = (*_TEXTS, *LISTS, *NUMBERS, *FLAGS)
FILES: Final = tuple(_FILES)
_TABLE: Final = tuple(one.name for one in fields(SentTable))  # in JSON alone
_KEYS: Final = frozenset((*TEXTS, *FILES, *_TABLE, "dry_run"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """Fields of a request, repeated values joined with commas, and the files by field."""

    values: Mapping[str, str]
    files: Mapping[str, bytes] = field(default_factory=dict)
    table: SentTable = field(default_factory=SentTable)

    def text(self, name: str) -> str:
        """Return a field, stripped. Raises RequestError if it is too long."""
        return _bounded(name, self.values.get(name, "").strip())

    def listed(self, name: str) -> list[str]:
        """Return the values of a field without duplicates; the limit is that of each.

        Raises RequestError.
        """
        parts = (part.strip() for part in self.values.get(name, "").split(","))
        values = list(dict.fromkeys(part for part in parts if part))
        if len(values) > TABLE_ROWS:
            raise RequestError(f"{name} has {len(values)} values; the limit is {TABLE_ROWS}")
        return [_bounded(name, value) for value in values]

    def number(self, name: str, default: int, most: int) -> int:
        """Return a number; `default` if the field is empty. Raises RequestError."""
        text = self.text(name)
        if not text:
            return default
        digits = text.isascii() and text.isdigit() and len(text) < 5
        if not digits or not 1 <= int(text) <= most:
            raise RequestError(f"{name} must be a number from 1 to {most}, not {text[:40]!r}")
        return int(text)

    def check(self) -> None:
        """Raise RequestError for a field that no request may have."""
        for name in _TEXTS:
            self.text(name)
        for name in LISTS:
            self.listed(name)
        self.number("boots", 1, TABLE_BOOTS)
        self.number("looks", 1, LOOKS)
        self.percent("min_effect")
        for name in FLAGS:
            self.flag(name)

    def flag(self, name: str) -> bool:
        """Return whether a field is set. Raises RequestError."""
        text = self.text(name)
        if text not in ("", "1"):
            raise RequestError(f"{name} must be 1 or empty, not {text[:40]!r}")
        return text == "1"

    def percent(self, name: str) -> float | None:
        """Return a number of percent; None if the field is empty. Raises RequestError."""
        text = self.text(name)
        if not text:
            return None
        try:
            return float(text)
        except ValueError:
            raise RequestError(
                f"{name} must be a number of percent, such as 0.5, not {text[:40]!r}"
            ) from None


def _bounded(name: str, value: str) -> str:
    if len(value) > FIELD_CHARACTERS:
        raise RequestError(f"{name} has {len(value)} characters; the limit is {FIELD_CHARACTERS}")
    return value


def read_form(kind: str, body: bytes, most_bytes: int) -> Submitted:
    """Read a multipart/form-data form. Raises HTTPException.

    A file is in its field or, carried over from the previous page, in base64 in `kept_FIELD`.
    """
    media_type, options = multipart.parse_options_header(kind)
    if media_type != "multipart/form-data" or not options.get("boundary"):
        raise HTTPException(400, "The form is malformed; nothing was queued.")
    part_limits = {
        "part_limit": limits.FORM_PARTS,
        "memory_limit": len(body) + 1,
        "spool_limit": len(body) + 1,
        "partsize_limit": 2 * most_bytes,
        "header_limit": 4,
    }
    try:
        values: dict[str, bytes] = {}
        for part in multipart.MultipartParser(
            BytesIO(body), options["boundary"], content_length=len(body), **part_limits
        ):
            before = values.get(part.name) if part.name in LISTS else None
            values[part.name] = part.raw if before is None else b",".join((before, part.raw))
        text = {name: value.decode("utf-8") for name, value in values.items() if name not in FILES}
        files = {
            name: values.get(name) or base64.b64decode(text.pop(f"kept_{name}", ""), validate=True)
            for name in FILES
        }
    except (multipart.MultipartError, UnicodeDecodeError, binascii.Error, ValueError):
        raise HTTPException(400, "The form is malformed; nothing was queued.") from None
    return Submitted(
        values={name: value.replace("\0", "") for name, value in text.items()},
        files=_fitting(files, most_bytes),
    )


def read_json(body: bytes, most_bytes: int) -> tuple[Submitted, bool]:
    """Return a script's request and whether it is a dry run. Raises HTTPException."""
    try:
        document = json_body.parse(body)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"The request body is not valid JSON: {error}"[:200]) from None
    if not isinstance(document, dict) or not set(document) <= _KEYS:
        raise HTTPException(
            400, f"Send an object with only these keys: {', '.join(sorted(_KEYS))}."
        )
    dry_run = document.pop("dry_run", False)
    try:
        table = codec.typed(
            SentTable, {name: document.pop(name) for name in _TABLE if name in document}
        )
    except codec.BadDocument as error:
        raise HTTPException(400, f"{error}"[:300]) from None
    files = {name: document.pop(name, None) for name in FILES}
    numbers = {name: document.pop(name, None) for name in NUMBERS}
    flags = {name: document.pop(name, False) for name in FLAGS}
    if (
        not all(isinstance(flag, bool) for flag in (dry_run, *flags.values()))
        or not all(isinstance(text, str | None) for text in files.values())
        or not all(
            number is None
            or type(number) is int
            or (name == "min_effect" and type(number) is float)
            for name, number in numbers.items()
        )
    ):
        raise HTTPException(
            400,
            f"dry_run and {' and '.join(FLAGS)} must be true or false,"
            f" {', '.join(NUMBERS)} numbers, {' and '.join(FILES)} strings.",
        )
    values = {name: _joined(value) for name, value in document.items()}
    if not all(isinstance(value, str) for value in values.values()):
        raise HTTPException(
            400,
            f"{', '.join(name for name in TEXTS if name not in NUMBERS + FLAGS)} must be strings;"
            f" {', '.join(LISTS)} may be lists of strings.",
        )
    given = {name: str(number) for name, number in numbers.items() if number is not None}
    given |= {name: "1" for name, flag in flags.items() if flag}
    encoded = {name: (text or "").encode("utf-8", "replace") for name, text in files.items()}
    fitting = _fitting(encoded, most_bytes, table.patch_bytes)
    return Submitted(values=values | given, files=fitting, table=table), dry_run


def request_schema() -> dict[str, Any]:
    """Return the JSON Schema of what `read_json` reads."""

    def field(meaning: str, **kind: Any) -> dict[str, Any]:
        return {"description": meaning, **kind}

    kinds = [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
    texts = {name: field(meaning, type="string") for name, meaning in _TEXTS.items()}
    lists = {name: field(meaning, anyOf=kinds) for name, meaning in _LISTS.items()}
    numbers = {
        name: field(meaning, type=["number" if name == "min_effect" else "integer", "null"])
        for name, meaning in _NUMBERS.items()
    }
    files = {name: field(meaning, type=["string", "null"]) for name, meaning in _FILES.items()}
    flags = {name: field(meaning, type="boolean") for name, meaning in _FLAGS.items()}
    more = {"dry_run": field("plan and cost only", type="boolean")}
    table = codec.json_schema(SentTable)
    fields = {**texts, **lists, **numbers, **flags, **files, **more, **table["properties"]}
    return table | {"properties": fields, "required": ["tree"]}


def _joined(value: Any) -> Any:
    strings = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return ",".join(value) if strings else value


def _fitting(files: Mapping[str, bytes], most: int, others: int = 0) -> dict[str, bytes]:
    """Return the files that are not empty; with `others` they have at most `most` bytes."""
    size = sum(map(len, files.values())) + others
    if size > most:
        raise HTTPException(
            413,
            f"Patches and commits have {size >> 10} KiB; the limit is {most >> 10} KiB"
            " (web.patch_kib).",
        )
    return {name: content for name, content in files.items() if content}
