"""Health of this machine: free disk space, heartbeats of the parts, and the database."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from swingbot.adapters.heartbeat import last_beat
from swingbot.adapters.part_heartbeat import beats
from swingbot.app import postgres
from swingbot.app.database import database_url
from swingbot.app.settings import Settings
from swingbot.core.keep.health import (
    PartBeat,
    hung,
    hung_problems,
    long_rounds,
    no_room,
    problems,
)
from swingbot_db.probe import NoAnswer, ask


def beat_file(settings: Settings) -> Path:
    return settings.state / "loop.json"


def free_bytes(settings: Settings) -> int:
    """Free bytes on the disk of the state directory, or of its nearest existing parent."""
    folder = settings.state
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def why_no_room(settings: Settings, times: float = 1.0) -> str | None:
    """Reason if free space is below `times` the limit under which no orders are dispatched."""
    return no_room(free_bytes(settings), settings.disk.stop_below_mib, str(settings.state), times)


def problems_here(settings: Settings) -> list[dict[str, Any]]:
    """Problems of this machine, in the format of `status`; none if it has no state directory."""
    if not settings.state.exists():
        return []
    disk = settings.disk
    found = beats(settings.state)
    parts = hung(found, settings.health.hung_seconds)
    slow = long_rounds(found, parts)
    named = {beat.part for beat in parts} | {line.partition(" ")[0] for line in slow}
    sentences = [
        *hung_problems(parts, datetime.now(UTC)),
        *slow,
        *problems(
            free_bytes(settings),
            disk.stop_below_mib,
            disk.warn_below_mib,
            str(settings.state),
            None if "loop" in named else last_beat(beat_file(settings)),
        ),
    ]
    stopped = "the setting mail.stop stops all mail; no report is sent"
    mail = [{"text": stopped, "link": "/outbox"}] if settings.mail.stop else []
    return [*({"text": text, "link": None} for text in sentences), *mail]


def hung_here(settings: Settings) -> list[PartBeat]:
    """Parts without a heartbeat for `health.hung_seconds`, the longest silence first."""
    return hung(beats(settings.state), settings.health.hung_seconds)


def seems_to_run(settings: Settings) -> bool:
    """Return True if a service uses these settings: a part has a heartbeat, or the database is
    named.
    """
    return bool(settings.db.url or beats(settings.state))


def database_problem(settings: Settings) -> str | None:
    """Why the database does not answer; None if it does. Takes ANSWER_SECONDS at most."""
    url = database_url(settings)
    try:
        ask(url)
    except NoAnswer as error:
        return f"the database {postgres.hidden(url)} does not respond: {error}"
    return None
