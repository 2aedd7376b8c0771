"""Buildbot configuration: a builder for kernels, one for each testbox, and the dispatcher."""

from __future__ import annotations

import datetime
import fnmatch
import ipaddress
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from swingbot.adapters import artifacts, worker_secrets
from swingbot.app.database import database_url
from swingbot.app.settings import Settings, SettingsError, build_workers
from swingbot.core.access import tokens
from swingbot.core.access.roles import Role
from swingbot.core.model.dispatch import Terms, order_document
from swingbot.core.plan.queue import KERNEL_BUILDER
from swingbot.service.ports.attempts import Attempts
from swingbot_db.engine import Engine, make_engine, name_sessions
from swingbot_db.listener import Listener
from swingbot_db.store import patient_transactions, transactions
from swingbot_jobs.contract import worker_name
from swingbot_jobs.contract.deadline import attempt_seconds
from swingbot_jobs.testbox import input_digests
from swingbot_jobs.testbox.boot_time import limit_of
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.file import load_all

if TYPE_CHECKING:
    from swingbot.adapters.buildbot import compiler_routing

SCHEDULER: Final = "swingbot"
LOG_BYTES: Final = 2 << 20  # per step; complete build logs are stored as artifacts


class MasterError(Exception):
    """The Buildbot master cannot run; the message says what to do."""


def boot_builder(testbox: str) -> str:
    """Name of the builder whose builds are boots of the testbox `testbox`."""
    return f"boot-{testbox}"


def testboxes(settings: Settings) -> dict[str, Testbox]:
    """Declared testboxes by name. Raises TestboxError."""
    return load_all(Path(settings.paths.workers) / "testboxes")


def worker_names(settings: Settings) -> list[str]:
    """Names of the build workers, then of the testbox workers."""
    return [
        *build_workers(settings.build),
        *(worker_name.of_testbox(testbox) for testbox in sorted(testboxes(settings))),
    ]


def builders(settings: Settings) -> dict[str, dict[str, Any]]:
    """Workers of each builder and the longest deadline of its orders (seconds), by name."""
    table: dict[str, dict[str, Any]] = {
        KERNEL_BUILDER: {
            "workers": build_workers(settings.build),
            "deadline_seconds": settings.build.deadline_seconds,
        }
    }
    for name, testbox in sorted(testboxes(settings).items()):
        longest = testbox.longest_boot_seconds or settings.boot.deadline_seconds
        table[boot_builder(name)] = {
            "workers": [worker_name.of_testbox(name)],
            "deadline_seconds": limit_of(longest),
        }
    return table


def is_elsewhere(settings: Settings, worker: str) -> bool:
    """Return True if `worker` runs on another host, so that `swingbot up` does not start it."""
    return any(
        fnmatch.fnmatch(worker, pattern.strip())
        for pattern in settings.buildbot.elsewhere.split(",")
        if pattern.strip()
    )


def secret_file(settings: Settings, worker: str) -> Path:
    """File with the secret of `worker`."""
    return settings.worker_secrets / worker


def make_secrets(settings: Settings) -> None:
    """Create a secret for each worker without one. Raises SecretError."""
    for worker in worker_names(settings):
        worker_secrets.make(secret_file(settings, worker))


def worker_endpoint(settings: Settings) -> str:
    """Twisted endpoint on which the master listens for workers.

    Raises SettingsError if secrets would leave this host in plain text.
    """
    chosen = settings.buildbot
    host = f"interface={_quoted(chosen.host)}" if chosen.host else ""
    if not chosen.tls_certificate and not chosen.tls_key:
        if not is_loopback(chosen.host):
            raise SettingsError(
                "buildbot.host: workers would send their secrets in plain text to"
                f" {chosen.host or 'any address'}; set buildbot.tls_certificate and"
                " buildbot.tls_key (`swingbot worker certificate` creates both), or listen on"
                " 127.0.0.1"
            )
        return f"tcp:{settings.buildbot_worker_port}:{host}"
    for key, file in (("tls_certificate", chosen.tls_certificate), ("tls_key", chosen.tls_key)):
        if not file:
            raise SettingsError(
                f"buildbot.{key} is not set; give a PEM file, because certificate and key are both"
                " required"
            )
        if not os.access(file, os.R_OK):
            raise SettingsError(
                f"buildbot.{key}: cannot read {file}; give a PEM file that the service may read"
            )
    certificate = _quoted(chosen.tls_certificate)
    files = (
        f"privateKey={_quoted(chosen.tls_key)}:certKey={certificate}:extraCertChain={certificate}"
    )
    return (
        f"ssl:{settings.buildbot_worker_port}:{host}:{files}"
        if host
        else f"ssl:{settings.buildbot_worker_port}:{files}"
    )


def _quoted(text: str) -> str:
    """Escape an argument of a Twisted endpoint, where colons separate arguments."""
    return text.replace("\\", "\\\\").replace(":", "\\:").replace("=", "\\=")


def is_loopback(host: str) -> bool:
    """Return True if traffic to `host` stays on this host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def terms(settings: Settings) -> Terms:
    return Terms(
        exchange_url=settings.exchange_url,
        repo=settings.git_url,
        build_deadline_seconds=settings.build.deadline_seconds,
        testboxes=testboxes(settings),
    )


def order_of(settings: Settings, attempts: Attempts, attempt: int) -> dict[str, Any] | None:
    """Order document of `attempt`; None if the attempt does not exist or is over.

    It contains the attempt's token: never log it.
    """
    facts = attempts.order_facts(attempt)
    if facts is None or facts.attempt_state != "running":
        return None
    document = order_document(facts, terms(settings), artifacts.secret(settings.secret_file))
    if alike := input_digests.of_order(
        document, Path(settings.paths.jobs), Path(settings.paths.workers)
    ):
        document["alike"] = alike
    return document


def operator_of(engine: Engine, token: str) -> str | None:
    """Name of the operator who owns a valid `token`; None for any other token."""
    if not tokens.looks_like_one(token):
        return None
    with transactions(engine)("token") as tx:
        person = tx.access.holder(tokens.digest(token))
    return person.who if person is not None and person.role is Role.OPERATOR else None


def _description(builder: str) -> str:
    if builder == KERNEL_BUILDER:
        return "swingbot: kernel builds"
    return f"swingbot: boots of {builder.removeprefix('boot-')}"


def _worker(
    settings: Settings, name: str, announced: compiler_routing.CompilerAnnouncements
) -> Any:
    from swingbot.adapters.buildbot import compiler_routing, fleet

    secret = fleet.SecretFile(name, secret_file(settings, name))
    terms: dict[str, Any] = {"max_builds": 1, "keepalive_interval": 60}
    if name in build_workers(settings.build):
        return compiler_routing.BuildWorker(name, secret, announced=announced, **terms)
    return fleet.FleetWorker(name, secret, **terms)


def config(settings: Settings) -> dict[str, Any]:
    """Return Buildbot's `BuildmasterConfig`; creates missing worker secrets.

    Raises SettingsError or SecretError.
    """
    from buildbot.plugins import schedulers, util

    from swingbot.adapters.buildbot import compiler_routing, database, dispatcher, pages, steps

    url = database_url(settings)
    name_sessions("buildbot")
    engine = make_engine(url)
    begin = patient_transactions(engine)
    make_secrets(settings)

    def make_order(attempt: int) -> dict[str, Any] | None:
        with begin("order document") as tx:
            return order_of(settings, tx.attempts, attempt)

    table = builders(settings)
    www = f"tcp:{settings.buildbot_www_port}:interface={_quoted(settings.buildbot.www_host)}"
    chosen = settings.buildbot
    shown = {
        "www": pages.www(
            www,
            url=settings.buildbot_url,
            pages=chosen.pages,
            control=chosen.control,
            name_of=lambda token: operator_of(engine, token),
        )
    }
    return (shown if chosen.pages != "off" else {}) | {
        "title": "swingbot",
        "titleURL": settings.web_url,
        "buildbotURL": settings.buildbot_url,
        "buildbotNetUsageData": None,
        "collapseRequests": False,
        "protocols": {"pb": {"port": worker_endpoint(settings)}},
        "db": database.config(url),
        "workers": [
            _worker(settings, name, compiler_routing.CompilerAnnouncements(begin))
            for name in worker_names(settings)
        ],
        "builders": [
            util.BuilderConfig(
                name=name,
                workernames=entry["workers"],
                canStartBuild=compiler_routing.routing(begin) if name == KERNEL_BUILDER else None,
                factory=steps.factory(
                    make_order,
                    attempt_seconds(
                        "build" if name == KERNEL_BUILDER else "boot", entry["deadline_seconds"]
                    ),
                    settings.web_url,
                ),
                collapseRequests=False,
                description=_description(name),
            )
            for name, entry in table.items()
        ],
        # Never triggered: Buildbot requires a scheduler for each builder, and the dispatcher's
        # buildsets use its name.
        "schedulers": [schedulers.Triggerable(name=SCHEDULER, builderNames=list(table))],
        "services": [dispatcher.Dispatcher(begin, partial(Listener, engine))],
        "configurators": [
            util.JanitorConfigurator(logHorizon=datetime.timedelta(days=logs), hour=4)
        ]
        if (logs := settings.buildbot.logs_days) > 0
        else [],
        "logMaxSize": LOG_BYTES,
        "logMaxTailSize": LOG_BYTES // 4,
    }
