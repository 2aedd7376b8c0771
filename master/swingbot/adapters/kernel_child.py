"""`python -m swingbot.adapters.kernel_child MEMORY SECONDS ANSWER`: the child of kernel_reader."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import IO, Any, Final

from swingbot.adapters.reader_child import Answer, serve
from swingbot.core.proof import code, executed
from swingbot.core.proof.cover import source_path
from swingbot.core.report.table.code_size import code_lines
from swingbot.core.text.nearest import meant_by
from swingbot_jobs.kernel_diff import (
    BadRecord,
    CodeChange,
    ComparedBuild,
    KernelRecord,
    code_change,
    config_difference,
    kernel_change,
    read_record,
)


def answer(document: dict[str, Any], file: IO[bytes]) -> dict[str, Any]:
    """Answer about records that follow each other with these `sizes`: of base, and of head if it is
    another.
    """
    try:
        return QUESTIONS[document["read"]](document, file)
    except BadRecord as error:
        return {"wrong": str(error)}


def _change(document: dict[str, Any], file: IO[bytes]) -> dict[str, Any]:
    """Compare all of two builds, whose configurations have these `config_sizes`."""
    records = _records(document, file)
    sides = [
        ComparedBuild(record=record, config=_text(file, size))
        for record, size in zip(records, document["config_sizes"], strict=True)
    ]
    return {"facts": kernel_change(*sides)}


def _config(document: dict[str, Any], file: IO[bytes]) -> dict[str, Any]:
    base, head = (_text(file, size) for size in document["config_sizes"])
    return {"config": None if base is None or head is None else config_difference(base, head)}


def _text(file: IO[bytes], size: int | None) -> str | None:
    return None if size is None else file.read(size).decode(errors="replace")


def _growth(document: dict[str, Any], file: IO[bytes]) -> dict[str, Any]:
    base, head = _records(document, file)
    return {"base": base.sizes, "head": head.sizes, "lines": code_lines(base, head)}


def _code(document: dict[str, Any], file: IO[bytes]) -> dict[str, Any]:
    return {"result": asdict(code.gate_result(_changed(_records(document, file))))}


def _watched(document: dict[str, Any], file: IO[bytes]) -> dict[str, Any]:
    base, head = _records(document, file)
    change = code_change(base, head)
    names = executed.watched(change, [head, base])
    return {"names": names} if names else {"result": asdict(executed.no_call(change))}


def _executed(document: dict[str, Any], file: IO[bytes]) -> dict[str, Any]:
    """Judge the `calls` of base and head of the functions that were `asked` for."""
    records = _records(document, file)
    sides = [
        executed.KernelCalls(record=record, calls=calls)
        for record, calls in zip(records, document["calls"], strict=True)
    ]
    change, (base, head) = _changed(records), sides
    result = executed.gate_result(change, base, head, document["asked"], document["where"])
    return {"result": asdict(result)}


def _functions(document: dict[str, Any], file: IO[bytes]) -> dict[str, Any]:
    """List the functions of each of these `objects`; what may be meant for those that it lacks."""
    record, _ = _records(document, file)
    paths = record.paths()
    unknown = [path for path in document["objects"] if path not in paths]
    sources = sorted(map(source_path, paths)) if unknown else []
    names = executed.namesakes(record)
    return {
        "functions": [
            {"name": name, "object": path, "alike": names[name] > 1, "hooked": hooked}
            for path in document["objects"]
            if path in paths
            for name, hooked in executed.hooked(record, path).items()
        ],
        "unknown": {path: meant_by(source_path(path), sources) for path in unknown},
    }


def _records(document: dict[str, Any], file: IO[bytes]) -> tuple[KernelRecord, KernelRecord]:
    records = [read_record(file.read(size)) for size in document["sizes"]]
    return records[0], records[-1]


def _changed(records: tuple[KernelRecord, KernelRecord]) -> CodeChange:
    return code_change(*records)


QUESTIONS: Final[Mapping[str, Answer]] = {
    "change": _change,
    "config": _config,
    "growth": _growth,
    "code": _code,
    "watched": _watched,
    "executed": _executed,
    "functions": _functions,
}


if __name__ == "__main__":
    serve(answer, *map(int, sys.argv[1:4]))
