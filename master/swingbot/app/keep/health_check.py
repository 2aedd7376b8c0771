"""Health of this machine: free disk space and the loop's heartbeat."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from swingbot.adapters.heartbeat import last_beat
from swingbot.app.settings import Settings
from swingbot.core.keep.health import no_room, problems
from swingbot.web.ports import ReadModels
from swingbot_db import read
from swingbot_db.engine import Connection


def beat_file(settings: Settings) -> Path:
    return settings.state / "loop.json"


def free_bytes(settings: Settings) -> int:
    """Free bytes on the disk of the state directory, or of its nearest existing parent."""
    place = settings.state
    while not place.exists() and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place).free


def why_no_room(settings: Settings, times: float = 1.0) -> str | None:
    """Reason if free space is below `times` the limit under which no orders are dispatched."""
    return no_room(free_bytes(settings), settings.disk.stop_below_mib, str(settings.state), times)


def problems_here(settings: Settings) -> list[dict[str, Any]]:
    """Problems of this machine, in the format of `status`; none if it has no state directory."""
    if not settings.state.exists():
        return []
    disk = settings.disk
    sentences = problems(
        free_bytes(settings),
        disk.stop_below_mib,
        disk.warn_below_mib,
        str(settings.state),
        last_beat(beat_file(settings)),
    )
    return [{"text": text, "link": None} for text in sentences]


def read_here(settings: Settings) -> ReadModels:
    """The read models; `status` lists this machine's problems first."""

    def status(conn: Connection) -> dict[str, Any]:
        facts = read.status(conn)
        return facts | {"problems": problems_here(settings) + facts["problems"]}

    return cast(
        ReadModels,
        SimpleNamespace(
            **{name: getattr(read, name) for name in dir(read) if not name.startswith("_")}
            | {"status": status}
        ),
    )
