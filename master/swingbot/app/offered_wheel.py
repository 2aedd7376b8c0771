"""The wheel that the service offers to people who use it from their own machines."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import io
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from os.path import isfile  # False where Path.is_file raises, as under a directory of root
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from swingbot.core.model import document_version
from swingbot.web.pages.wheel import NoWheel, Wheel

_NAME: Final = re.compile(r"swingbot-[0-9A-Za-z.+!_]{1,60}-py3-none-any\.whl")
_MODULE: Final = "swingbot/core/model/document_version.py"


def offered_wheel(setting: str) -> Wheel:
    """Return the wheel that `setting` names (`web.wheel`). Empty: that of `dist/` beside the
    environment of the service, or the file that pip installed it from.

    Raises NoWheel.
    """
    path = Path(setting) if setting else next(filter(isfile, _usual()), None)
    if path is None:
        raise NoWheel(
            "This service has no wheel to offer: its operator makes one with `make wheel` and names"
            " it in web.wheel."
        )
    try:
        state = path.stat()
        return _read(path, state.st_mtime_ns, state.st_size)
    except OSError as error:
        raise NoWheel(f"The wheel {path.name} cannot be read: {error.strerror}.") from None


@functools.lru_cache(maxsize=1)
def _read(path: Path, modified: int, size: int) -> Wheel:
    """Read a wheel again once it has changed. Raises OSError, NoWheel."""
    if not _NAME.fullmatch(path.name):
        raise NoWheel(f"{path.name} is not the name of a wheel of swingbot.")
    content = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            version = archive.read(_MODULE)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        KeyError,
        ValueError,
        NotImplementedError,
        RuntimeError,
    ):
        raise NoWheel(f"{path.name} is not a wheel of swingbot.") from None
    if version != Path(document_version.__file__).read_bytes():
        raise NoWheel(
            f"{path.name} is of another version than this service: its operator makes it again with"
            " `make wheel`."
        )
    return Wheel(name=path.name, content=content, sha256=hashlib.sha256(content).hexdigest())


def _usual() -> Iterator[Path]:
    """Where the containers, the playbook, `make wheel` and pip have the wheel of this version."""
    package = importlib.metadata.distribution("swingbot")
    yield Path(sys.prefix).parent / "dist" / f"swingbot-{package.version}-py3-none-any.whl"
    # PEP 610; an editable install names the directory of the checkout
    source = urlsplit(json.loads(package.read_text("direct_url.json") or "{}").get("url", ""))
    if source.scheme == "file":
        yield Path(unquote(source.path))
