"""Sources of `swingbot raw`: this machine's database and store, or a remote web service."""

from __future__ import annotations

import http.client
import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, Final, Protocol
from urllib.parse import quote

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.app import limits
from swingbot.core.model.artifact import ArtifactError
from swingbot.core.model.artifact import Gone as Pruned
from swingbot.service.ports import RequestError
from swingbot_db import read
from swingbot_db.engine import Engine

Row = dict[str, Any]
_CHUNK: Final = 1 << 20
_TIMEOUT_SECONDS: Final = 60.0
_PAUSES_SECONDS: Final = (1.0, 5.0, 20.0)  # delays before an interrupted download is resumed
TOKEN_VARIABLE: Final = (
    "SWINGBOT_TOKEN"  # environment variable with a reader's token for a remote service
)
ADDRESS: Final = re.compile(r"(https?://[^\s?#]+)/raw/([a-z][0-9]{1,18})/?")


class FileUnavailable(Exception):
    """A file is known but no longer available; the message says why."""


class SourceFailed(Exception):
    """The remote service failed; the message says how."""


class RawSource(Protocol):
    """A source of raw results; README quotes its `name`."""

    name: str

    def manifest(self) -> Row: ...
    def samples(self) -> Iterator[Row]: ...
    def content(self, file: Row, offset: int) -> Iterator[bytes]:
        """Bytes of a file from `offset`. Raises FileUnavailable, SourceFailed."""


class LocalSource:
    """Database and artifact store of this machine."""

    name = "this machine"

    def __init__(self, engine: Engine, artifacts: ArtifactDirectory, id: str) -> None:
        self._engine, self._artifacts, self._id = engine, artifacts, id

    def manifest(self) -> Row:
        with self._engine.connect() as conn:
            return read.raw_manifest(conn, self._id)

    def samples(self) -> Iterator[Row]:
        with self._engine.connect() as conn:
            yield from read.samples(conn, self._id)

    def content(self, file: Row, offset: int) -> Iterator[bytes]:
        try:
            with self._artifacts.open(file["sha256"]) as stored:
                stored.seek(offset)
                while chunk := stored.read(_CHUNK):
                    yield chunk
        except Pruned as error:
            raise FileUnavailable(f"it was {error}") from None
        except FileNotFoundError:
            raise FileUnavailable(
                f"it is no longer in the artifact store (sha256 {file['sha256']})"
            ) from None
        except ArtifactError as error:
            raise FileUnavailable(str(error)) from error


class RemoteSource:
    """A web service's `/raw/<id>/`."""

    def __init__(self, address: str) -> None:
        match = ADDRESS.fullmatch(address)
        if match is None:
            raise RequestError(
                f"{address!r} is not a URL of raw results; give one such as"
                " http://lab.example.org:8010/raw/c5/"
            )
        self.name = f"{match[1]}/raw/{match[2]}/"

    def manifest(self) -> Row:
        with self._ask("manifest.json") as answer:
            text = answer.read(limits.MANIFEST_BYTES + 1)
        try:
            manifest = json.loads(text) if len(text) <= limits.MANIFEST_BYTES else None
            if (
                not isinstance(manifest, dict)
                or not isinstance(manifest.get("files"), list)
                or not isinstance(manifest.get("boots"), list)
            ):
                raise ValueError
        except (ValueError, RecursionError):
            raise SourceFailed(
                f"{self.name}manifest.json is not a manifest; check that the URL is a current"
                " swingbot"
            ) from None
        return manifest

    def samples(self) -> Iterator[Row]:
        with self._ask("samples.json") as answer:
            for line in answer:
                if text := line.strip().removeprefix(b"[").removesuffix(b"]").rstrip(b","):
                    yield json.loads(text)

    def content(self, file: Row, offset: int) -> Iterator[bytes]:
        """Download a file; resumes an interrupted download a few times."""
        for pause in (*_PAUSES_SECONDS, None):
            try:
                for chunk in self._chunks(file["path"], offset):
                    offset += len(chunk)
                    yield chunk
                return
            except (SourceFailed, OSError, http.client.HTTPException) as error:
                if pause is None:
                    raise SourceFailed(
                        f"{self.name}{file['path']}: {error}; run the command again to resume"
                    ) from error
                time.sleep(pause)

    def _chunks(self, path: str, offset: int) -> Iterator[bytes]:
        with self._ask(path, {"Range": f"bytes={offset}-"} if offset else {}) as answer:
            if answer.status == 416:
                return
            if offset and answer.status != 206:
                raise SourceFailed("the server does not support range requests")
            while chunk := answer.read(_CHUNK):
                yield chunk

    def _ask(self, path: str, headers: dict[str, str] | None = None) -> Any:
        token = os.environ.get(TOKEN_VARIABLE)
        known = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(self.name + quote(path), headers=known | (headers or {}))
        try:
            return urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            if error.code == 416:
                return error
            if error.code == 401:
                raise FileUnavailable(
                    f"{self.name} requires a token; set {TOKEN_VARIABLE} to yours"
                ) from error
            if error.code in (400, 404):
                raise FileUnavailable(
                    f"{request.full_url} returned {error.code} {error.reason}"
                ) from error
            raise SourceFailed(
                f"{request.full_url} returned {error.code} {error.reason}"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise SourceFailed(
                f"{request.full_url}: {getattr(error, 'reason', None) or error}"
            ) from error
