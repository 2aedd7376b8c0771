"""`swingbot web`: pages, API and artifact exchange in one process, with access control."""

from __future__ import annotations

import functools
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import uvicorn
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp

from swingbot.adapters import process
from swingbot.adapters.artifacts import ArtifactDirectory, secret
from swingbot.adapters.git import Mirror
from swingbot.adapters.limits import ARTIFACT_BYTES
from swingbot.adapters.maildir import DeliveredMails
from swingbot.adapters.part_heartbeat import PartHeartbeat
from swingbot.app import address, limits
from swingbot.app.keep.health_page import health, read_here
from swingbot.app.keep.host_metrics import metrics
from swingbot.app.keep.reader_watchdog import watching_readers
from swingbot.app.moderator import DatabaseModerator
from swingbot.app.offered_wheel import offered_wheel
from swingbot.app.reproduction import Reproductions
from swingbot.app.settings import Settings
from swingbot.app.sheets import csv_pieces, kernel_records, printed, shown
from swingbot.app.submitter import DatabaseSubmitter
from swingbot.app.wiring import make_lab
from swingbot.core.access.quota import quota_fields
from swingbot.core.access.rates import Buckets
from swingbot.core.access.roles import Person
from swingbot.core.access.uploads import UploadLimits
from swingbot.core.model import ids
from swingbot.core.model.records import Bisection, Comparison, may_read
from swingbot.core.raw.tables import unit_of
from swingbot.core.report.table.formats import FORMS
from swingbot.service.bisect.cancel import cancel_bisection, times_resumed
from swingbot.service.bisect.steer import known_bisection
from swingbot.service.lab.load_testboxes import load_testboxes
from swingbot.service.order.worker_requests import WorkerRequests
from swingbot.service.ports import Lab
from swingbot.service.prove.request_gates import foresee_gates, prove_again
from swingbot.service.report.foresee_recipients import foresee_recipients
from swingbot.service.report.readdress import readdress
from swingbot.service.table.cancel import boots_of_all_rows, cancel_table
from swingbot.service.table.find_existing import table_with
from swingbot.service.table.known_commits import known_commits as known
from swingbot.service.table.publish import publish as publish_table
from swingbot.service.table.publish import readers_of
from swingbot.service.visible import everything_visible
from swingbot.web.access.forms import Forms
from swingbot.web.access.known_hosts import KnownHosts
from swingbot.web.access.read_access import ReadAccess, ReadSettings
from swingbot.web.access.request_limits import RequestLimits, Traffic, budget_of, rate_of
from swingbot.web.access.session import Sessions
from swingbot.web.api import by_group, openapi
from swingbot.web.app import SafeHeaders, make_app
from swingbot.web.http import server
from swingbot.web.http.document_tags import DocumentTags
from swingbot.web.http.fair_threads import PAGE_THREADS, FairThreads, share
from swingbot.web.http.render import Renderer
from swingbot.web.http.snapshot_reader import SnapshotReader
from swingbot.web.http.spooled import SpooledBodies
from swingbot.web.limits import FORM_BYTES, OUTCOME_BYTES
from swingbot.web.pages import (
    addressing,
    bisect,
    boot_order,
    cancel,
    extend,
    known_commits,
    prove,
    publish,
    reproduction,
    return_testbox,
    steer,
    tables,
    wheel,
)
from swingbot.web.pages.acts import ActPages
from swingbot.web.pages.cover import CoverDocument
from swingbot.web.pages.docs import DocumentationPages
from swingbot.web.pages.incident import IncidentPages
from swingbot.web.pages.mail import MailPages
from swingbot.web.pages.metric_page import MetricPages
from swingbot.web.pages.moderation import ModerationPages
from swingbot.web.pages.patch import PatchPages
from swingbot.web.pages.progress import ProgressPages
from swingbot.web.pages.results import ResultPages
from swingbot.web.pages.table_form import DOORS, TableForm
from swingbot.web.pages.tokens import TokenPages
from swingbot.web.ports import StoredFiles
from swingbot.web.workers import exchange
from swingbot.web.workers.exchange import EXCHANGE_THREADS, attempt_of
from swingbot_db import read
from swingbot_db.engine import Engine, own_pool
from swingbot_db.session_time import count_sessions
from swingbot_db.store import patient_transactions, transactions
from swingbot_jobs.contract.heartbeat import BEAT_SECONDS
from swingbot_jobs.language.job_files import shipped
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.resources import folder

METRICS_CONNECTIONS: Final = 2
PLANNING_THREADS: Final = 4
KIT_THREADS: Final = 2
CANCEL_THREADS: Final = 1
KNOWN_THREADS: Final = 2
PROGRESS_THREADS: Final = 1
MAINTAINERS_THREADS: Final = 1
GATES_THREADS: Final = 1
SWITCH_SECONDS: Final = 0.0005
# Of one attempt, and of all workers at once: each upload needs a connection and a buffer.
UPLOADS: Final = UploadLimits(
    files=limits.ATTEMPT_FILES, size=limits.ATTEMPT_BYTES, open_files=limits.OPEN_UPLOADS
)


def serve(settings: Settings, engine: Engine) -> None:
    """Serve until SIGTERM."""
    address.record(settings)
    web = settings.web
    config = server.config(
        service(settings, engine),
        host=web.host,
        port=web.port,
        proxies=web.proxies,
        connections=limits.CONNECTIONS,
    )
    # A page asks the database dozens of times, and takes the interpreter back from a page that
    # computes each time; Python's 5 ms would make it ten times as long.
    sys.setswitchinterval(SWITCH_SECONDS)
    with watching_readers(engine):
        BeatingServer(config, PartHeartbeat(settings.state, "web")).run()


class BeatingServer(uvicorn.Server):
    """A server whose event loop writes a heartbeat."""

    def __init__(self, config: uvicorn.Config, heart: PartHeartbeat) -> None:
        super().__init__(config)
        self._heart, self._beaten = heart, float("-inf")

    async def on_tick(self, counter: int) -> bool:
        if time.monotonic() - self._beaten >= BEAT_SECONDS:
            self._beaten = time.monotonic()
            self._heart.beat()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        self._heart.end()


def service(settings: Settings, engine: Engine) -> ASGIApp:
    """The application with all its pages, access control and request limits."""
    count_sessions(engine, process.count)
    store = ArtifactDirectory(settings.artifacts)
    store.sweep()
    renderer, key = Renderer(settings), secret(settings.secret_file)
    sessions = Sessions(key, transactions(engine), secure=settings.web_url.startswith("https:"))
    writes = rate_of(settings.web.write_rate)
    forms = Forms(
        key,
        renderer,
        sessions,
        writes,
        by_group=by_group.answers,
        quota_left=lambda person: _quota_left(submitter, person),
    )
    cached_lab = functools.cache(lambda: make_lab(settings, engine))

    def lab() -> Lab:
        with everything_visible():
            lab = cached_lab()
        return replace(lab, catalogue=load_testboxes(lab.transaction, lab.catalogue))

    source = SnapshotReader(engine, read)
    incidents = IncidentPages(source, renderer, forms, lab)
    job_files = Path(settings.paths.jobs)
    results = ResultPages(source, renderer, lab, lambda: shipped(job_files))
    patch_bytes = settings.web.patch_kib << 10
    submitter = DatabaseSubmitter(settings, engine, lab)
    exchange_engine = own_pool(engine, connections=EXCHANGE_THREADS)
    attempts = WorkerRequests(patient_transactions(exchange_engine))
    metrics_engine = own_pool(
        engine, connections=METRICS_CONNECTIONS, query_seconds=limits.METRICS_SECONDS
    )
    traffic, spent = Traffic(limits.CONNECTIONS), Buckets(budget_of(settings.web.rate))
    fair = functools.partial(FairThreads, spent=spent, seconds=process.seconds)
    kits = Reproductions(engine, store, settings)
    acts = ActPages(renderer, forms, lambda id: find_request(lab(), id))
    planning = fair(PLANNING_THREADS)  # of all that has a quota: a person has one of them at a time
    kernels = kernel_records(settings)
    web = settings.web
    reading = ReadSettings(read=web.read, raw=web.raw, metrics=web.metrics)
    limit = functools.partial(_limit, patch_bytes)
    extra = [
        *openapi.routes(settings.web_url, limit, reading.of),
        *exchange.routes(store, attempts, key, UPLOADS),
        *boot_order.routes(engine, read.boot_order),
        *forms.routes(),
        *incidents.routes(),
        *results.routes(),
        *MetricPages(source, renderer, lab).routes(),
        *CoverDocument(source, kernels, lab).routes(),
        *PatchPages(source, renderer, Mirror(settings.mirror)).routes(),
        *TokenPages(source, renderer, forms, transactions(engine)).routes(),
        *MailPages(DeliveredMails(settings.maildir), renderer).routes(),
        *TableForm(renderer, forms, submitter, patch_bytes, planning).routes(),
        *ProgressPages(source, sessions, fair(PROGRESS_THREADS)).routes(),
        *steer.routes(forms, lab, acts, planning),
        *return_testbox.routes(forms, lab, acts, fair(CANCEL_THREADS)),
        *bisect.routes(forms, submitter, patch_bytes, acts, planning),
        *cancel.routes(
            forms,
            lambda id: _extent(lab(), id),
            lambda *asked: _cancel(lab(), *asked),
            acts,
            fair(CANCEL_THREADS),
        ),
        *extend.routes(forms, submitter, acts, planning),
        *publish.routes(
            forms,
            lambda id: readers_of(lab().transaction, id),
            lambda id, person: publish_table(lab().transaction, id, person),
            acts,
            fair(CANCEL_THREADS),
        ),
        *known_commits.routes(
            forms,
            lambda *asked: known(lab().transaction, lab().tools.git, *asked),
            fair(KNOWN_THREADS),
        ),
        *DocumentationPages(renderer, folder("docs")).routes(),
        *wheel.routes(renderer, lambda: offered_wheel(web.wheel), web.read),
        *prove.routes(
            forms,
            lambda incident, gates: foresee_gates(lab(), incident, gates),
            lambda *asked: not prove_again(lab(), *asked),
            fair(GATES_THREADS),
        ),
        *addressing.routes(
            forms,
            lambda *named: foresee_recipients(lab(), *named),
            lambda report, who: readdress(lab(), report, who),
            fair(MAINTAINERS_THREADS),
        ),
        *reproduction.routes(kits, fair(KIT_THREADS)),
        *ModerationPages(
            engine, read, renderer, forms, DatabaseModerator(engine), settings.mail
        ).routes(),
        *tables.routes(
            engine,
            functools.partial(shown, kernels=kernels),
            functools.partial(printed, kernels=kernels),
            functools.partial(csv_pieces, kernels=kernels),
            FORMS,
        ),
        *(
            metrics(settings, metrics_engine, traffic).routes()
            if settings.web.metrics != "off"
            else ()
        ),
        *health(settings, engine).routes(),
    ]
    programs = load_programs(Path(settings.paths.jobs) / "programs")
    app = make_app(
        settings,
        engine,
        read_here(settings),
        StoredFiles(open=store.open, kernels=kernels),
        extra,
        lambda metric: unit_of(programs, metric),
        kits,
    )
    share(app.router.routes)

    def of_worker(request: HTTPConnection) -> bool:
        return attempt_of(request, key) is not None

    gate = ReadAccess(
        app,
        renderer,
        sessions,
        reading,
        of_worker,
        by_group.answers,
        lambda id, name: _is_private(lab(), id, name),
    )
    spool = settings.state / "spool"
    spool.mkdir(parents=True, exist_ok=True, mode=0o700)
    limited = RequestLimits(
        SpooledBodies(DocumentTags(gate), spool),
        renderer,
        fair(PAGE_THREADS),
        limit,
        of_worker,
        traffic=traffic,
    )
    return SafeHeaders(KnownHosts(limited, renderer, host_names(settings)))


def _quota_left(submitter: DatabaseSubmitter, person: Person) -> Mapping[str, str]:
    with everything_visible():  # the person's own requests, whatever the token may see of them
        return quota_fields(*submitter.used(person))


def find_request(lab: Lab, id: str) -> Comparison | Bisection:
    """Return the table or bisection with this id. Raises NotFound."""
    kind, number = ids.read(id)
    with lab.transaction("find request") as tx:
        if kind == "bisection":
            return known_bisection(tx.bisections, number)
        return table_with(tx.comparisons, id)


def _is_private(lab: Lab, id: str, name: str | None) -> bool:
    with everything_visible(), lab.transaction("find request") as tx:
        table = tx.comparisons.get(ids.read(id)[1])
        return table is not None and not may_read(table, name)


def _extent(lab: Lab, id: str) -> int:
    kind, number = ids.read(id)
    if kind == "bisection":
        return times_resumed(lab.transaction, number)
    return boots_of_all_rows(lab.transaction, id)


def _cancel(lab: Lab, id: str, person: Person, extent: int | None) -> str:
    kind, number = ids.read(id)
    if kind == "bisection":
        return cancel_bisection(lab.transaction, lab.tools.git, number, person, resumed=extent)
    return cancel_table(lab.transaction, id, person, boots=extent)


def host_names(settings: Settings) -> set[str]:
    """Names in `Host` that the service answers: its own, those of its URLs, and `web.hosts`."""
    urls = (settings.web_url, settings.exchange_url)
    return {
        "localhost",
        socket.gethostname(),
        settings.web.host,
        *(urlsplit(url).hostname or "" for url in urls),
        *(word.strip() for word in settings.web.hosts.split(",")),
    } - {""}


def _limit(patch_bytes: int, method: str, path: str) -> int:
    """Largest request body in bytes for a path."""
    if method == "POST" and path in {bisect.PATH, *(door.path for door in DOORS)}:
        # a second file in addition to the stored one, or one escaped in JSON
        return 3 * patch_bytes + FORM_BYTES
    if method == "PUT" and path.startswith("/artifacts/"):
        return ARTIFACT_BYTES
    if method == "PUT" and path.startswith("/attempts/"):
        return OUTCOME_BYTES
    return FORM_BYTES if method in ("POST", "PUT") else 0
