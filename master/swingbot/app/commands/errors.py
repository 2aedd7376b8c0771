"""The errors that a command expects, and the exit status of each."""

from __future__ import annotations

from typing import Final

from swingbot.adapters.worker_secrets import SecretError
from swingbot.app.buildmaster import MasterError
from swingbot.app.settings import SettingsError
from swingbot.app.wiring import NotRunning
from swingbot.core.mail.addresses import BadAddress
from swingbot.core.model.artifact import ArtifactError
from swingbot.core.model.ids import BadId
from swingbot.core.model.lookup import NotFound
from swingbot.core.patchset.model import SeriesError
from swingbot.service.ports import GitError, RequestError
from swingbot_db.engine import DatabaseAway
from swingbot_db.migrate import SchemaError
from swingbot_db.reports import ReportError
from swingbot_jobs.lines import LineError
from swingbot_jobs.reading.result import ParseError
from swingbot_jobs.testbox.table import TestboxError

# What was asked for is wrong.
USAGE: Final = (
    RequestError,
    BadId,
    NotFound,
    SettingsError,
    LineError,
    ParseError,
    TestboxError,
    ReportError,
    BadAddress,
    SeriesError,
)
# We could not do it.
OURS: Final = (
    NotRunning,
    SchemaError,
    MasterError,
    SecretError,
    GitError,
    ArtifactError,
    DatabaseAway,
    OSError,
)


def status_of(error: Exception) -> int | None:
    """2 where the request is wrong, 1 where we could not do it; None for a bug, which keeps its traceback."""
    return 2 if isinstance(error, USAGE) else 1 if isinstance(error, OURS) else None
