"""What the attacks need of a service that was started for them: data to read, a token, an attempt.

`python -m tests.attack --fill` puts it into the database of the service at `--state`.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

from swingbot.adapters.artifacts import secret
from swingbot.adapters.part_heartbeat import beats
from swingbot.app.database import database_url
from swingbot.app.settings import load
from swingbot.core.access.roles import Role
from swingbot.core.model.dispatch import token
from swingbot_db.engine import make_engine
from tests.attack.target import Target
from tests.fakes.people import a_person
from tests.heavy import add_copied, fill


def filled(target: Target) -> Target:
    """Return `target` with a boot of many samples, an operator's token, an attempt under way, and
    the process of its web service.

    Its database is no longer one of real measurements afterwards.
    """
    assert target.state is not None
    settings = load(
        environ={
            "SWINGBOT_PATHS_STATE": str(target.state),
            "SWINGBOT_WEB_PORT": str(target.port),
        }
    )
    engine, text = make_engine(database_url(settings)), f"swingbot_{secrets.token_urlsafe(32)}"
    try:
        with engine.connect() as conn:
            boot, attempt, table = fill(conn, settings)
        a_person(engine, "Attack", Role.OPERATOR, text)
        submitter = add_copied(engine, settings)
    finally:
        engine.dispose()
    bearer = token(secret(settings.secret_file), attempt)
    return replace(
        target,
        pid=next(beat.pid for beat in beats(target.state) if beat.part == "web"),
        boot=boot,
        table=table,
        token=text,
        submitter=submitter,
        database=database_url(settings),
        attempt=f"a{attempt}",
        worker={"Authorization": f"Bearer {bearer}"},
    )
