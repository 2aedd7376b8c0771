"""The web service as `swingbot web` serves it, on a port of its own, in a thread of the test."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import sqlalchemy as sa
import uvicorn

from swingbot.adapters.artifacts import secret
from swingbot.app import limits
from swingbot.app.settings import Settings, load
from swingbot.app.web import service
from swingbot.core.access.roles import Role
from swingbot.core.access.tokens import digest
from swingbot.web.access.session import operator_key
from swingbot.web.http import server
from swingbot_db.engine import make_engine
from tests import scenario
from tests.buildbot.ports import free_ports
from tests.fakes.mail import brain_environment
from tests.fakes.people import a_person

NO_LAB = scenario.Lab(**{field.name: 0 for field in dataclasses.fields(scenario.Lab)})


@dataclass(kw_only=True)
class Served:
    """A service over the database of `scenario.a_lab`, or with `filled=False` over an empty one
    (then the numbers of `lab` are 0).
    """

    settings: Settings
    conn: sa.Connection
    engine: sa.Engine
    lab: scenario.Lab
    client: httpx.Client
    server: uvicorn.Server

    @property
    def port(self) -> int:
        return self.settings.web.port

    @property
    def key(self) -> str:
        return operator_key(secret(self.settings.secret_file))

    def token(
        self,
        who: str,
        role: Role,
        groups: tuple[str, ...] | None = None,
        *,
        levels: bool = True,
    ) -> dict[str, str]:
        """Headers with a new token of this person."""
        text = "swingbot_" + digest(f"{who} {role}")[:43]
        a_person(self.engine, who, role, text, groups, levels=levels)
        return {"Authorization": f"Bearer {text}"}


@contextmanager
def served(
    db_url: str, place: Path, *, filled: bool = True, **environment: str
) -> Iterator[Served]:
    """Settings by their variables, as in SWINGBOT_WEB_RATE="60"."""
    given = (
        brain_environment(place / "state", db_url)
        | {"SWINGBOT_WEB_PORT": str(free_ports(4))}
        | environment
    )
    settings, engine = load(environ=given), make_engine(db_url)
    with engine.connect() as conn:
        lab = scenario.a_lab(conn) if filled else NO_LAB
        conn.commit()
        web = settings.web
        app = service(settings, engine)
        running = uvicorn.Server(
            server.config(
                app,
                host=web.host,
                port=web.port,
                proxies=web.proxies,
                connections=limits.CONNECTIONS,
            )
        )
        thread = threading.Thread(target=running.run)
        thread.start()
        try:
            while not running.started:
                assert thread.is_alive(), "the web service ended at once"
                time.sleep(0.02)
            with httpx.Client(
                base_url=f"http://127.0.0.1:{web.port}", timeout=180, trust_env=False
            ) as client:
                yield Served(
                    settings=settings,
                    conn=conn,
                    engine=engine,
                    lab=lab,
                    client=client,
                    server=running,
                )
        finally:
            running.should_exit = True
            thread.join(20)
    engine.dispose()
