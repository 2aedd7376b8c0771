"""A web service that hands out kits, over a database and an artifact store of the test."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from starlette.testclient import TestClient

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.app.reproduction import Reproductions
from swingbot.app.settings import Settings, load
from swingbot.core.access.rates import UNLIMITED, Buckets
from swingbot.web.app import make_app
from swingbot.web.http.fair_threads import FairThreads
from swingbot.web.pages import reproduction
from swingbot_db import read
from swingbot_db.engine import make_engine
from tests.fakes.kernels import kept_by


@dataclass(frozen=True, kw_only=True)
class KitService:
    made: Reproductions
    client: TestClient
    conn: sa.Connection
    settings: Settings
    put: Callable[[bytes], dict[str, Any]]  # stores an artifact, returns its digest and size


@contextmanager
def kit_service(db_url: str, state: Path) -> Iterator[KitService]:
    settings = load(environ={"SWINGBOT_PATHS_STATE": str(state)})
    artifacts, engine = ArtifactDirectory(settings.artifacts), make_engine(db_url)

    def put(content: bytes) -> dict[str, Any]:
        sha256 = hashlib.sha256(content).hexdigest()
        artifacts.put(io.BytesIO(content), sha256)
        return {"sha256": sha256, "size": len(content)}

    made = Reproductions(engine, artifacts, settings)
    routes = reproduction.routes(made, FairThreads(2, Buckets(UNLIMITED)))
    app = make_app(settings, engine, read, kept_by(artifacts.open), routes, kits=made)
    with engine.connect() as conn, TestClient(app, follow_redirects=False) as client:
        yield KitService(made=made, client=client, conn=conn, settings=settings, put=put)
    engine.dispose()


def unpacked(content: bytes, place: Path) -> Path:
    """Unpack a tarball below `place` and return its only directory."""
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        tar.extractall(place)
    (directory,) = place.iterdir()
    return directory
