"""Metrics of this machine for /metrics."""

from __future__ import annotations

import threading
import time
from typing import Final

from swingbot.adapters.artifacts import GONE, ArtifactDirectory
from swingbot.adapters.heartbeat import last_beat
from swingbot.adapters.part_heartbeat import beats
from swingbot.app.keep.health_check import beat_file, free_bytes
from swingbot.app.settings import Settings
from swingbot.core.keep.health import MIB
from swingbot.core.keep.health import hung as hung_parts
from swingbot.web.access.request_limits import Traffic
from swingbot.web.health.metrics import HostMetrics, Metrics, Rows
from swingbot_db.engine import Connection, Engine, limit_statements
from swingbot_db.probe import ANSWER_SECONDS, NoAnswer, ask
from swingbot_db.read.metrics import figures

_LOOK_SECONDS: Final = 600.0


class _Store:
    """Size of the artifact store, counted in the background: 100 000 files take a second."""

    def __init__(self, artifacts: ArtifactDirectory) -> None:
        self._artifacts = artifacts
        self._looked = float("-inf")
        self._size: tuple[int, int] | None = None
        self._lock = threading.Lock()

    def size(self) -> tuple[int, int] | None:
        """(files, bytes); None until the first count has finished."""
        with self._lock:
            if time.monotonic() - self._looked > _LOOK_SECONDS:
                self._looked = time.monotonic()
                threading.Thread(target=self._look, daemon=True).start()
            return self._size

    def _look(self) -> None:
        sizes = [file.size for file in self._artifacts.stored() if not file.path.endswith(GONE)]
        self._size = len(sizes), sum(sizes)


def metrics(settings: Settings, engine: Engine, traffic: Traffic | None = None) -> Metrics:
    store = _Store(ArtifactDirectory(settings.artifacts))

    def host() -> HostMetrics:
        beat, size = last_beat(beat_file(settings)), store.size()
        parts = beats(settings.state)
        hung = hung_parts(parts, settings.health.hung_seconds)
        return HostMetrics(
            disk_free=free_bytes(settings),
            disk_stop_below=settings.disk.stop_below_mib * MIB,
            loop_age=None if beat is None else round(beat.age_seconds, 1),
            loop_failing=beat is not None and beat.problem is not None,
            parts=[(beat.part, round(beat.age_seconds, 1), beat in hung) for beat in parts],
            artifacts=size and size[0],
            artifact_bytes=size and size[1],
        )

    def answers() -> bool:
        try:
            ask(engine.url)
        except NoAnswer:
            return False
        return True

    def limited(conn: Connection) -> Rows:
        limit_statements(conn, ANSWER_SECONDS)
        return figures(conn)

    return Metrics(engine, limited, host, answers, traffic)
