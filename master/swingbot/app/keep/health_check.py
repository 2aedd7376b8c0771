"""The condition of this machine, for the loop that hands out work and for whoever looks."""

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
    """Free space for us on the disk of the state directory, in bytes; of the nearest directory above it while there is none."""
    place = settings.state
    while not place.exists() and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place).free


def why_no_room(settings: Settings, times: float = 1.0) -> str | None:
    """Why there is less room than `times` the space below which no order is handed out."""
    return no_room(free_bytes(settings), settings.disk.stop_below_mib, str(settings.state), times)


def problems_here(settings: Settings) -> list[dict[str, Any]]:
    """As `status` words problems. A database elsewhere may be looked at from a machine that has no state: of that one nothing is said."""
    if not settings.state.exists():
        return []
    disk = settings.disk
    found = problems(
        free_bytes(settings),
        disk.stop_below_mib,
        disk.warn_below_mib,
        str(settings.state),
        last_beat(beat_file(settings)),
    )
    return [{"text": text, "link": None} for text in found]


def read_here(settings: Settings) -> ReadModels:
    """The read models, with this machine's problems before the others of `status`."""

    def status(conn: Connection) -> dict[str, Any]:
        found = read.status(conn)
        return found | {"problems": problems_here(settings) + found["problems"]}

    return cast(
        ReadModels,
        SimpleNamespace(
            **{name: getattr(read, name) for name in dir(read) if not name.startswith("_")}
            | {"status": status}
        ),
    )
