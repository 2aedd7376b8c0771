"""The codec of documents: dataclasses to plain JSON values and back, by the types of their fields.

`plain` writes every field under its name, `typed` reads it back and refuses what does not fit.
`Annotated` types say more about a field:

    klass: Annotated[str, Named("class")]  # its name in the document, if it is another one
    warmup: Sparse[int] = 0              # left out of the document where it has its default
    spec: Hidden[str] = ""               # read where a document has it, and never written
    name: Required[str] = ""             # a document must have it, though a caller need not
    port: Annotated[int, at_least(1)]    # checks: functions that return what is wrong, or None

A `TypedDict` is a mapping whose keys, as far as it has them, have their types: documents that were
stored by an older version lack some. `typed` returns keys that it does not name too.
A class checks what concerns several fields in `__post_init__`, with a ValueError.

`typed` also reads a YAML file with its lines (`LocatedValue`); there errors begin with `file:line`.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from swingbot_jobs.yaml_lines import LocatedValue

T = TypeVar("T")
Check = Callable[[Any], str | None]


class BadDocument(ValueError):
    """A document does not fit its type; the message begins with the path of the key."""

    def __init__(self, why: str, path: str = "", line: str = "") -> None:
        super().__init__(why, path, line)
        self.why, self.path, self.line = why, path, line

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.line, self.path.lstrip("."), self.why)))

    def within(self, step: str = "", line: str = "") -> BadDocument:
        """Return the error of the value around; the innermost line is the one to show."""
        return BadDocument(self.why, f"{step}{self.path}", self.line or line)


class _Mark(enum.Enum):
    SPARSE, HIDDEN, REQUIRED = range(3)


Sparse = Annotated[T, _Mark.SPARSE]
Hidden = Annotated[T, _Mark.HIDDEN]
Required = Annotated[T, _Mark.REQUIRED]


@dataclasses.dataclass(frozen=True, slots=True)
class Named:
    """The name of a field in documents."""

    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class Stated:
    """A check, with the keywords of JSON Schema that state it, as far as they can."""

    check: Check
    keywords: tuple[tuple[str, Any], ...]

    def __call__(self, value: Any) -> str | None:
        return self.check(value)


def at_least(least: float) -> Check:
    return Stated(
        lambda value: None if value >= least else f"{value!r} is not at least {least:g}",
        (("minimum", least),),
    )


def at_most(most: float) -> Check:
    return Stated(
        lambda value: None if value <= most else f"{value!r} is not at most {most:g}",
        (("maximum", most),),
    )


def at_most_characters(most: int) -> Check:
    return Stated(
        lambda text: None if len(text or "") <= most else _too_long(len(text), "characters", most),
        (("maxLength", most),),
    )


def at_most_entries(most: int) -> Check:
    return Stated(
        lambda found: None if len(found) <= most else _too_long(len(found), "entries", most),
        (("maxItems", most),),
    )


def _too_long(length: int, unit: str, most: int) -> str:
    return f"has {length} {unit}; at most {most} are allowed"


def one_of(*words: str) -> Check:
    return Stated(
        lambda text: None if text in words else f"{text!r} is not one of {', '.join(words)}",
        (("enum", words),),
    )


def matches(pattern: re.Pattern[str], what: str) -> Check:
    """Check the whole of a text; `what` says what it must be."""
    return lambda text: None if pattern.fullmatch(text) else f"{text!r} is not {what}"


Count = Annotated[int, lambda n: None if n >= 0 else f"{n!r} is not a count"]


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    name: str
    key: str
    kind: Any
    marks: frozenset[_Mark]
    default: Any
    required: bool


@cache
def _fields(kind: Any) -> tuple[_Field, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_field(field, hints[field.name]) for field in dataclasses.fields(kind))


def _field(field: dataclasses.Field[Any], hint: Any) -> _Field:
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    marks = frozenset(note for note in notes if isinstance(note, _Mark))
    made = field.default_factory
    default = field.default if made is dataclasses.MISSING else made()
    return _Field(
        name=field.name,
        key=next((note.name for note in notes if isinstance(note, Named)), field.name),
        kind=hint,
        marks=marks,
        default=default,
        required=default is dataclasses.MISSING or _Mark.REQUIRED in marks,
    )


def plain(value: Any) -> Any:
    """Return objects, lists, strings and finite numbers; a number that is not finite is None."""
    if isinstance(value, (str, int, type(None))):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if dataclasses.is_dataclass(value):
        kind: Any = type(value)
        return {
            field.key: plain(inner)
            for field in _fields(kind)
            if _Mark.HIDDEN not in field.marks
            and not (
                (inner := getattr(value, field.name)) == field.default
                and _Mark.SPARSE in field.marks
            )
        }
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    return str(value) if isinstance(value, Path) else [plain(inner) for inner in value]


def typed(kind: type[T], value: Any, where: str = "", *, ignore_unknown: bool = False) -> T:
    """Return a plain document as `kind`, the inverse of `plain`.

    `where` begins the paths in messages. Raises BadDocument for a key that is missing, unknown or
    has another type.
    """
    try:
        return cast(T, _typed(kind, value, ignore_unknown))
    except BadDocument as error:
        raise error.within(where) from None


def _typed(kind: Any, value: Any, ignore: bool) -> Any:
    if isinstance(value, LocatedValue):
        try:
            if value.content is None:
                raise BadDocument("has no value")
            return _typed(kind, _content(value), ignore)
        except BadDocument as error:
            raise error.within(line=value.where) from None
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        read = _typed(inner[0], value, ignore)
        for check in inner[1:]:
            if callable(check) and (wrong := check(read)) is not None:
                raise BadDocument(wrong)
        return read
    if origin in (Union, types.UnionType):
        return None if value is None and type(None) in inner else _alternative(inner, value, ignore)
    if origin is Literal:
        _must(value in inner, value, f"one of {', '.join(map(str, inner))}")
        return inner[inner.index(value)]
    if dataclasses.is_dataclass(kind):
        return _object(kind, value, ignore)
    if is_typeddict(kind):
        return _document(kind, value, ignore)
    if origin is not None and issubclass(origin, Mapping):
        _must(isinstance(value, Mapping), value, "a mapping")
        return {key: _at(f".{key}", inner[1], item, ignore) for key, item in value.items()}
    if origin is not None and issubclass(origin, Sequence):
        return _list(origin, inner, value, ignore)
    return _scalar(kind, value)


_TYPES: Final = {str: "string", int: "integer", bool: "boolean", float: "number", Path: "string"}


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the documents that `typed` reads as `kind`.

    It lacks the checks that are functions alone, and what `__post_init__` refuses.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        stated = (check for check in inner[1:] if isinstance(check, Stated))
        keywords = {
            name: list(value) if isinstance(value, tuple) else value
            for check in stated
            for name, value in check.keywords
        }
        return json_schema(inner[0]) | keywords
    if origin in (Union, types.UnionType):
        return {"anyOf": [json_schema(one) for one in inner]}
    if origin is Literal:
        return {"enum": list(inner)}
    if dataclasses.is_dataclass(kind):
        shape: Any = kind
        fields = [field for field in _fields(shape) if _Mark.HIDDEN not in field.marks]
        return {
            "type": "object",
            "description": (kind.__doc__ or "").strip(),
            "properties": {field.key: json_schema(field.kind) for field in fields},
            "required": [field.key for field in fields if field.required],
            "additionalProperties": False,
        }
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": json_schema(inner[1])}
    if origin is not None and issubclass(origin, Sequence):
        if origin is tuple and inner[-1] is not Ellipsis:
            return {"type": "array", "prefixItems": list(map(json_schema, inner)), "items": False}
        return {"type": "array", "items": json_schema(inner[0])}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    return {"type": "null"} if kind is type(None) else {"type": _TYPES[kind]}


class _Plain(str):
    """A scalar of YAML without quotes: its field says what it is."""

    __slots__ = ()


_WORDS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _content(value: LocatedValue) -> Any:
    return _Plain(value.text) if value.text is not None and value.plain else value.content


def _number(kind: Any, text: str) -> Any:
    """Return what YAML takes a scalar for; the text if it is no `kind`."""
    try:
        return _WORDS[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        return text


def _alternative(kinds: Sequence[Any], value: Any, ignore: bool) -> Any:
    """Read `value` as the first of `kinds` that it fits."""
    *others, last = (kind for kind in kinds if kind is not type(None))
    for kind in others:
        try:
            return _typed(kind, value, ignore)
        except BadDocument:
            continue
    return _typed(last, value, ignore)


def _list(origin: Any, inner: Sequence[Any], value: Any, ignore: bool) -> Any:
    _must(isinstance(value, (list, tuple)), value, "a list")
    fixed = origin is tuple and inner[-1] is not Ellipsis
    _must(not fixed or len(value) == len(inner), value, f"a list of {len(inner)}")
    kinds = inner if fixed else [inner[0]] * len(value)
    items = [
        _at(f"[{n}]", kind, item, ignore)
        for n, (kind, item) in enumerate(zip(kinds, value, strict=True))
    ]
    return items if origin is list else tuple(items)


_SCALARS: Final = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    float: "a finite number",
}


def _scalar(kind: Any, value: Any) -> Any:
    if isinstance(value, _Plain):
        value = _number(kind, str(value)) if kind in (int, float, bool) else str(value)
    if kind is float:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        _must(number and abs(value) <= sys.float_info.max, value, _SCALARS[kind])
        return float(value)
    if kind in _SCALARS:
        _must(
            type(value) is kind or (kind is str and isinstance(value, str)), value, _SCALARS[kind]
        )
    elif isinstance(kind, type) and issubclass(kind, enum.Enum):
        names = [member.value for member in kind]
        _must(value in names, value, f"one of {', '.join(map(str, names))}")
        return kind(value)
    return Path(_typed(str, value, False)) if kind is Path else value


def _object(kind: Any, value: Any, ignore: bool) -> Any:
    _must(isinstance(value, Mapping), value, "a mapping")
    given, values = dict(value), {}
    for field in _fields(kind):
        if field.key in given:
            values[field.name] = _at(f".{field.key}", field.kind, given.pop(field.key), ignore)
        elif field.required:
            raise BadDocument("is missing", f".{field.key}")
    if given and not ignore:
        key = next(iter(given))
        keys = ", ".join(field.key for field in _fields(kind) if _Mark.HIDDEN not in field.marks)
        line = given[key].where if isinstance(given[key], LocatedValue) else ""
        raise BadDocument(f"key {key!r} is unknown here; known are {keys}", line=line)
    try:
        return kind(**values)
    except ValueError as error:
        raise BadDocument(str(error)) from None


@cache
def _keys(kind: Any) -> Mapping[str, Any]:
    """The types of the keys of a TypedDict."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        key: get_args(hint)[0] if get_origin(hint) is NotRequired else hint
        for key, hint in hints.items()
    }


def _document(kind: Any, value: Any, ignore: bool) -> Any:
    _must(isinstance(value, Mapping), value, "a mapping")
    kinds = _keys(kind)
    return {key: _at(f".{key}", kinds.get(key, Any), item, ignore) for key, item in value.items()}


def _at(step: str, kind: Any, value: Any, ignore: bool) -> Any:
    """Read an inner value; errors name `step`, which leads to it."""
    try:
        return _typed(kind, value, ignore)
    except BadDocument as error:
        raise error.within(step) from None


def _must(fits: bool, value: Any, what: str) -> None:
    if not fits:
        raise BadDocument(f"{repr(value)[:100]} is not {what}")
