"""The errors that a command expects, and the exit status of each.

Named rather than imported: a command that fails needs neither database nor Buildbot to say so.
"""

from __future__ import annotations

from typing import Final

# What was asked for is wrong.
USAGE: Final = frozenset(
    {
        "swingbot.service.ports.lab.RequestError",
        "swingbot.core.model.ids.BadId",
        "swingbot.core.model.lookup.NotFound",
        "swingbot.app.settings.SettingsError",
        "swingbot_jobs.yaml_lines.LineError",
        "swingbot_jobs.reading.result.ParseError",
        "swingbot_jobs.testbox.table.TestboxError",
        "swingbot_db.reports.ReportError",
        "swingbot.core.mail.addresses.BadAddress",
        "swingbot.core.patchset.model.SeriesError",
    }
)
# We could not do it.
OURS: Final = frozenset(
    {
        "swingbot.app.wiring.NotRunning",
        "swingbot_db.migrate.SchemaError",
        "swingbot.app.buildmaster.MasterError",
        "swingbot.adapters.worker_secrets.SecretError",
        "swingbot.service.ports.lab.GitError",
        "swingbot.core.model.artifact.ArtifactError",
        "swingbot.core.model.dispatch.DatabaseAway",
    }
)


def status_of(error: Exception) -> int | None:
    """2 where the request is wrong, 1 where we could not do it; None for a bug, which keeps its traceback."""
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    if names & USAGE:
        return 2
    return 1 if names & OURS or isinstance(error, OSError) else None
