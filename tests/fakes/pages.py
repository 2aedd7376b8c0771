"""The pages that change something, as the web service hangs them in."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import BinaryIO, Protocol

import sqlalchemy as sa
from starlette.routing import Route

from swingbot.adapters.git import Mirror
from swingbot.adapters.kernel_reader import ChildKernelRecords
from swingbot.adapters.maildir import DeliveredMails
from swingbot.app.moderator import DatabaseModerator
from swingbot.app.offered_wheel import offered_wheel
from swingbot.app.settings import MailSection, Settings, load
from swingbot.app.sheets import csv_pieces, printed, shown
from swingbot.app.submitter import DatabaseSubmitter
from swingbot.app.web import find_request
from swingbot.app.wiring import make_lab
from swingbot.core.access.rates import UNLIMITED, Buckets
from swingbot.core.access.roles import Person
from swingbot.core.report.table.formats import FORMS
from swingbot.service.ports import Lab
from swingbot.web.access.forms import Forms
from swingbot.web.access.session import Sessions
from swingbot.web.http.fair_threads import FairThreads
from swingbot.web.http.render import Renderer
from swingbot.web.http.snapshot_reader import SnapshotReader
from swingbot.web.pages import (
    bisect,
    cancel,
    extend,
    publish,
    return_testbox,
    steer,
    tables,
    wheel,
)
from swingbot.web.pages.acts import ActPages
from swingbot.web.pages.cover import CoverDocument
from swingbot.web.pages.docs import DocumentationPages
from swingbot.web.pages.mail import MailPages
from swingbot.web.pages.metric_page import MetricPages
from swingbot.web.pages.moderation import ModerationPages
from swingbot.web.pages.patch import PatchPages
from swingbot.web.pages.results import ResultPages
from swingbot.web.pages.table_form import TableForm
from swingbot.web.ports import PageSettings
from swingbot_db import read
from swingbot_db.store import transactions
from swingbot_jobs.resources import folder

SECRET = b"s" * 32


def _no_lab() -> Lab:
    raise AssertionError("who is not signed in as a submitter needs no lab")


def _cancels_nothing(id: str, person: Person, extent: int | None) -> str:
    raise AssertionError("who is not signed in cancels nothing")


def _publishes_nothing(id: str, person: Person) -> None:
    raise AssertionError("who is not signed in publishes nothing")


def no_artifact(sha256: str) -> BinaryIO:
    raise FileNotFoundError(sha256)


def _job_files() -> list[str]:
    return sorted(path.name for path in (Path(__file__).parents[2] / "jobs").glob("*.yaml"))


class SettingsWithMail(PageSettings, Protocol):
    @property
    def maildir(self) -> Path: ...


def writing_routes(settings: SettingsWithMail, engine: sa.Engine) -> list[Route]:
    """Sign-in, moderation, outbox, what can be read of the form of tables, and pages of results.

    `operator_key(SECRET)` signs in.
    """
    renderer = Renderer(settings)
    forms = Forms(SECRET, renderer, Sessions(SECRET, transactions(engine), pause=0.0))
    submitter = DatabaseSubmitter(load(environ={}), engine, _no_lab)
    state = settings.maildir.parent / "state-of-results"
    lab = cache(lambda: make_lab(load(environ={"SWINGBOT_PATHS_STATE": str(state)}), engine))
    mirror = Mirror(settings.mirror if isinstance(settings, Settings) else state / "mirror.git")
    source = SnapshotReader(engine, read)
    acts, threads = (
        ActPages(renderer, forms, lambda id: find_request(lab(), id)),
        FairThreads(1, Buckets(UNLIMITED)),
    )
    return [
        *ResultPages(source, renderer, lab, _job_files).routes(),
        *MetricPages(source, renderer, lab).routes(),
        *CoverDocument(source, ChildKernelRecords(no_artifact), lab).routes(),
        *PatchPages(source, renderer, mirror).routes(),
        *MailPages(DeliveredMails(settings.maildir), renderer).routes(),
        *DocumentationPages(renderer, folder("docs")).routes(),
        *wheel.routes(renderer, lambda: offered_wheel(""), "open"),
        *forms.routes(),
        *TableForm(renderer, forms, submitter, 1 << 20, threads).routes(),
        *steer.routes(forms, lab, acts, threads),
        *return_testbox.routes(forms, lab, acts, threads),
        *bisect.routes(forms, submitter, 1 << 20, acts, threads),
        *cancel.routes(forms, lambda id: 0, _cancels_nothing, acts, threads),
        *extend.routes(forms, submitter, acts, threads),
        *publish.routes(forms, lambda id: (), _publishes_nothing, acts, threads),
        *tables.routes(
            engine,
            partial(shown, kernels=ChildKernelRecords(no_artifact)),
            partial(printed, kernels=ChildKernelRecords(no_artifact)),
            partial(csv_pieces, kernels=ChildKernelRecords(no_artifact)),
            FORMS,
        ),
        *ModerationPages(
            engine, read, renderer, forms, DatabaseModerator(engine), MailSection()
        ).routes(),
    ]
