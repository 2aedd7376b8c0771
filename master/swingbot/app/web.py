"""`swingbot web`: pages, API and artifact exchange in one process."""

from __future__ import annotations

import functools
from pathlib import Path

import sqlalchemy as sa
import uvicorn

from swingbot.adapters.artifacts import Artifacts, secret
from swingbot.app.commands.sheets import printed
from swingbot.app.moderator import DatabaseModerator
from swingbot.app.reproduction import Reproductions
from swingbot.app.settings import Settings
from swingbot.app.wiring import make_lab
from swingbot.core.raw.tables import unit_of
from swingbot.core.report.forms import FORMS
from swingbot.web import boot_order, exchange, tables
from swingbot.web.app import make_app
from swingbot.web.forms import Forms
from swingbot.web.incident import IncidentPages
from swingbot.web.moderation import ModerationPages
from swingbot.web.render import Renderer
from swingbot.web.session import Sessions
from swingbot.web.source import Source
from swingbot_db import read
from swingbot_db.access import Access
from swingbot_db.attempts import Attempts
from swingbot_jobs.program import load_programs


def serve(settings: Settings, engine: sa.Engine) -> None:
    """Serve until SIGTERM."""
    store = Artifacts(settings.artifacts)
    store.sweep()
    renderer = Renderer(settings)
    key = secret(settings.secret_file)
    sessions = Sessions(key, Access(engine), secure=settings.web_url.startswith("https:"))
    forms = Forms(key, renderer, sessions)
    incidents = IncidentPages(Source(engine, read), renderer, forms, functools.cache(lambda: make_lab(settings, engine)))
    attempts = Attempts(engine, settings.boxes.lease_seconds)
    extra = [
        *exchange.routes(store, attempts, key, boxes=attempts),
        *boot_order.routes(engine, read.boot_order),
        *forms.routes(),
        *incidents.routes(),
        *ModerationPages(engine, read, renderer, forms, DatabaseModerator(engine), settings.mail).routes(),
        *tables.routes(engine, printed, FORMS),
    ]
    programs = load_programs(Path(settings.paths.jobs) / "programs")
    app = make_app(settings, engine, read, store.open, extra, lambda metric: unit_of(programs, metric), Reproductions(engine, store, settings))
    uvicorn.run(app, host=settings.web.host, port=settings.web.port, log_level="warning", access_log=False)
