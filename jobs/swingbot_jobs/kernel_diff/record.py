"""The record of a build's code, with which any two builds can be compared later without their
objects.

A build's file functions.json.gz:

    {"version": 2, "compiler": "gcc ...", "flags": ["-O2", ...],
     "sizes": {"text", "data", "bss"},
     "symbols": {"t": {name: bytes}, "d", "b", "r"},
     "objects": {"mm/slub.o": [sha256, [text, data, bss], [part, ...], [part, ...]]}}

`sizes` are those of vmlinux in bytes, as binutils' `size` counts them, and `symbols` those of its
symbols, as scripts/bloat-o-meter counts them. An object has the parts of its code, then those of
its data; a part is [name, bytes, shape, constants, [name, ...]], see `SymbolRecord`.
The record comes from a worker, which may have compiled untrusted code: everything in it is checked
before use.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from swingbot_jobs import limits

FILE = "functions.json.gz"
# Increment it when the meaning of a part changes, even if only the worker's output does:
# records of different versions are not compared, and a worker does not use cached kernels with
# another version.
VERSION = 2


class BadRecord(ValueError):
    """The file is not a valid record; the message says where."""


@dataclass(frozen=True, slots=True)
class SymbolRecord:
    """The code or data under one symbol, in a form that does not depend on where the linker or the
    assembler put it.
    """

    name: str
    size: int  # bytes
    shape: str  # digest of the bytes and of the positions of references, without their targets
    constants: str  # digest of the unnamed constants it refers to: strings, jump tables; "" if none
    uses: tuple[str, ...]  # the symbols it refers to, each once, in the order of their first use

    @classmethod
    def from_json(cls, row: Any) -> Self:
        name, size, shape, constants, uses = row
        return cls(
            _text(name), _bytes(size), _text(shape), _text(constants), tuple(map(_text, uses))
        )

    def to_json(self) -> list[Any]:
        return [self.name, self.size, self.shape, self.constants, list(self.uses)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFile:
    """One linked object."""

    sha256: str
    sizes: Mapping[str, int]  # text, data, bss
    code: tuple[SymbolRecord, ...]
    data: tuple[SymbolRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRecord:
    """The complete file.

    Objects are decoded on demand, since two builds mostly share nearly all of them.
    """

    compiler: str
    flags: tuple[str, ...]
    sizes: Mapping[str, int]
    symbols: Mapping[str, Mapping[str, int]]
    raw_objects: Mapping[str, Any]

    def paths(self) -> frozenset[str]:
        return frozenset(self.raw_objects)

    def sha256(self, path: str) -> str | None:
        """Return the hash of the object at `path`; None if this build has none."""
        return self.raw_objects[path][0] if path in self.raw_objects else None

    def object(self, path: str) -> ObjectFile:
        """Raises BadRecord."""
        try:
            digest, sizes, code, data = self.raw_objects[path]
            text, written, zeros = (_bytes(size) for size in sizes)
            parts = (
                tuple(SymbolRecord.from_json(row) for row in code),
                tuple(SymbolRecord.from_json(row) for row in data),
            )
        except (TypeError, ValueError) as error:
            raise BadRecord(f"its entry for {path[:200]} is damaged ({error})") from None
        return ObjectFile(
            sha256=digest,
            sizes={"text": text, "data": written, "bss": zeros},
            code=parts[0],
            data=parts[1],
        )


def write_record(
    *,
    compiler: str,
    flags: Iterable[str],
    sizes: Mapping[str, int],
    symbols: Mapping[str, Mapping[str, int]],
    objects: Mapping[str, list[Any]],
) -> bytes:
    """Return the file's bytes; equal contents give equal bytes."""
    document = {
        "version": VERSION,
        "compiler": compiler,
        "flags": list(flags),
        "sizes": sizes,
        "symbols": symbols,
        "objects": objects,
    }
    return gzip.compress(
        json.dumps(document, sort_keys=True, separators=(",", ":")).encode(),
        compresslevel=6,
        mtime=0,
    )


def object_row(
    sha256: str,
    sizes: Mapping[str, int],
    code: Iterable[SymbolRecord],
    data: Iterable[SymbolRecord],
) -> list[Any]:
    """Return one object in the form of the file."""
    return [
        sha256,
        [sizes["text"], sizes["data"], sizes["bss"]],
        [part.to_json() for part in code],
        [part.to_json() for part in data],
    ]


def read_record(packed: bytes) -> KernelRecord:
    """Read the file.

    Raises BadRecord unless it is a record of this version and of an acceptable size.
    """
    document = _document(packed)
    version = document.get("version")
    if version != VERSION:
        raise BadRecord(
            f"it has version {str(version)[:20] if isinstance(version, int) else 'unknown'}, but"
            f" this program compares version {VERSION}: build that kernel again"
        )
    try:
        return KernelRecord(
            compiler=_text(document["compiler"])[:500],
            flags=tuple(map(_text, document["flags"])),
            sizes={name: _bytes(document["sizes"][name]) for name in ("text", "data", "bss")},
            symbols={
                str(letter): {str(name): _bytes(size) for name, size in table.items()}
                for letter, table in document["symbols"].items()
            },
            raw_objects={str(path): _object(row) for path, row in document["objects"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadRecord(f"it is damaged ({type(error).__name__}: {str(error)[:100]})") from None


def _document(packed: bytes) -> dict[str, Any]:
    try:
        inflater = zlib.decompressobj(wbits=31)
        text = inflater.decompress(packed, limits.KERNEL_RECORD_BYTES)
        if inflater.unconsumed_tail:
            raise BadRecord(f"it is larger than {limits.KERNEL_RECORD_BYTES >> 20} MiB")
        if not inflater.eof:
            raise BadRecord("it is cut off")
        if (
            text.count(b",") + text.count(b"[") > limits.KERNEL_RECORD_VALUES
            or text.count(b":") > limits.KERNEL_RECORD_NAMES
        ):
            raise BadRecord(
                f"it has more than {limits.KERNEL_RECORD_VALUES} values or"
                f" {limits.KERNEL_RECORD_NAMES} names"
            )
        document = json.loads(text.decode("ascii"))
    except (zlib.error, ValueError, RecursionError) as error:
        raise (
            error
            if isinstance(error, BadRecord)
            else BadRecord(f"it cannot be read ({str(error)[:100]})")
        ) from None
    if not isinstance(document, dict):
        raise BadRecord("it is not an object")
    return document


def _object(row: Any) -> Any:
    if not (isinstance(row, list) and len(row) == 4 and isinstance(row[0], str)):
        raise ValueError("an object has four fields")
    return row


def _bytes(size: Any) -> int:
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 62:
        raise ValueError("a size is not a number of bytes")
    return size


def _text(text: Any) -> str:
    if not isinstance(text, str):
        raise ValueError("a name is not a string")
    return text
