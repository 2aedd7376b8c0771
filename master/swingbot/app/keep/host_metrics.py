"""Metrics of this machine for /metrics."""

from __future__ import annotations

import threading
import time
from typing import Final

from swingbot.adapters.artifacts import GONE, ArtifactDirectory
from swingbot.adapters.heartbeat import last_beat
from swingbot.app.keep.health_check import beat_file, free_bytes
from swingbot.app.settings import Settings
from swingbot.core.keep.health import MIB
from swingbot.web.metrics import HostMetrics, Metrics
from swingbot_db.engine import Engine
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


def metrics(settings: Settings, engine: Engine) -> Metrics:
    store = _Store(ArtifactDirectory(settings.artifacts))

    def host() -> HostMetrics:
        beat, size = last_beat(beat_file(settings)), store.size()
        return HostMetrics(
            disk_free=free_bytes(settings),
            disk_stop_below=settings.disk.stop_below_mib * MIB,
            loop_age=None if beat is None else round(beat.age_seconds, 1),
            loop_failing=beat is not None and beat.problem is not None,
            artifacts=size and size[0],
            artifact_bytes=size and size[1],
        )

    return Metrics(engine, figures, host)
