"""What the child does that reads a build: check .config, hash objects, record functions."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from swingbot_jobs import code_layout
from swingbot_worker import limits
from swingbot_worker.kbuild import functions, objects
from swingbot_worker.kbuild.accepted import lost_lines
from swingbot_worker.kbuild.elf import NotAnObject
from swingbot_worker.readers.limited_child import Refused, serve


def main() -> None:
    """Do one task and exit."""
    serve(_do)


def _do(task: dict[str, Any]) -> dict[str, Any]:
    if "config" in task:
        with open(task["config"], "rb") as file:
            config = file.read().decode()
        return {"lost": [lost_lines(text, config) for text in task["fragments"]]}
    with ExitStack() as stack:
        files: dict[str, IO[str]] = {
            name: stack.enter_context(open(number, "w")) for name, number in task["files"].items()
        }
        return _read(task, Path(task["source"]), Path(task["objects"]), files)


def _read(
    task: dict[str, Any], source: Path, directory: Path, files: dict[str, IO[str]]
) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    try:
        if task["sizes"]:
            answer["sizes"] = objects.sizes(directory / "vmlinux")
    except NotAnObject as error:
        raise Refused(str(error)) from None
    if "hashes" in files:
        hashes = objects.object_hashes(source, directory, keep=files["hash_rows"])
        json.dump(hashes, files["hashes"], indent=0)
        if "script" in files:
            answer |= _permute(task, list(hashes), files["script"])
    try:
        if "record" in files:
            record = functions.build_record(
                source, directory, task["compiler_version"], keep=files.get("rows")
            )
            files["record"].buffer.write(record)  # type: ignore[attr-defined]
        elif "rows" in files:
            functions.read_objects(source, directory, keep=files["rows"])
    except NotAnObject as error:
        answer["no_record"] = str(error)[: limits.ERROR_CHARACTERS]
    return answer


def _permute(task: dict[str, Any], linked: list[str], target: IO[str]) -> dict[str, Any]:
    script = b""
    if task["script"] is not None:
        with open(task["script"], "rb") as file:
            script = file.read()
    try:
        target.write(code_layout.permuted(script.decode(), linked, task["layout"]))
    except code_layout.NoLayout as error:
        return {"no_layout": str(error)[: limits.ERROR_CHARACTERS]}
    return {}
