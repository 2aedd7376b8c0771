"""Expected errors of commands, and their exit statuses.

Listed by name, not imported, so that reporting an error needs neither database nor Buildbot.
"""

from __future__ import annotations

import os
import traceback
from typing import Final

# Invalid requests.
USAGE: Final = frozenset(
    {
        "swingbot.service.ports.failures.RequestError",
        "swingbot.core.keep.manifest.BadBackup",
        "swingbot.core.model.ids.BadId",
        "swingbot.core.model.lookup.NotFound",
        "swingbot.app.remote.login.NoLogin",
        "swingbot.app.settings.SettingsError",
        "swingbot_jobs.yaml_lines.LineError",
        "swingbot_jobs.reading.result.ParseError",
        "swingbot_jobs.testbox.table.TestboxError",
        "swingbot.core.mail.addresses.BadAddress",
        "swingbot.core.patchset.model.SeriesError",
    }
)
# Failures of the service or the lab.
OURS: Final = frozenset(
    {
        "swingbot.app.wiring.NotRunning",
        "swingbot.app.keep.backup.KeepError",
        "swingbot.app.keep.process.DidNotStart",
        "swingbot.app.postgres.PostgresError",
        "swingbot_db.dump.DumpError",
        "swingbot_db.migrate.SchemaError",
        "swingbot_db.loop_lock.SecondLoop",
        "swingbot.app.buildmaster.MasterError",
        "swingbot.adapters.worker_secrets.SecretError",
        "swingbot.service.ports.failures.GitError",
        "swingbot.core.model.artifact.ArtifactError",
        "swingbot.core.model.dispatch.DatabaseAway",
    }
)


# What code does with values that their types do not foresee.
_MISREAD: Final = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError),
    *(TypeError, ValueError),
)


def misread(error: Exception, url: str) -> tuple[int | None, str]:
    """Exit status and sentence if an error may come of what the service at `url` sent; else None
    and nothing.
    """
    if not isinstance(error, _MISREAD):
        return None, ""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return 1, (
        f"{url} answers with something that this command cannot show ({type(error).__name__} in"
        f" {os.path.basename(place.filename)}:{place.lineno}: {str(error)[:100]})"
    )


def status_of(error: Exception) -> int | None:
    """Exit status: 2 for an invalid request, 1 for a failure, None for a bug (with traceback)."""
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    if names & USAGE:
        return 2
    return 1 if names & OURS or isinstance(error, OSError) else None
