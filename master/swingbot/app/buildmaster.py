"""Buildbot's configuration, made from our settings: a builder for kernels, one for each testbox, and the dispatcher."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from swingbot.adapters import artifacts
from swingbot.app.settings import Settings
from swingbot.core.model.dispatch import Terms, order_document
from swingbot.core.plan.queue import KERNEL_BUILDER
from swingbot_db import attempts
from swingbot_db.engine import make_engine
from swingbot_jobs import testbox

BUILD_WORKER: Final = "builder"
SCHEDULER: Final = "swingbot"
LOG_BYTES: Final = 2 << 20  # of one step; whole build logs come as artifacts
LOGS_KEPT: Final = datetime.timedelta(weeks=8)


def boot_worker(box: str) -> str:
    """Name of the worker that drives the testbox `box`."""
    return f"box-{box}"


def boot_builder(box: str) -> str:
    """Name of the builder whose builds are boots of the testbox `box`."""
    return f"boot-{box}"


def testboxes(settings: Settings) -> dict[str, testbox.Testbox]:
    """The testboxes that are declared, by name. Raises TestboxError."""
    return testbox.load_all(Path(settings.paths.workers) / "testboxes")


def worker_names(settings: Settings) -> list[str]:
    return [BUILD_WORKER, *(boot_worker(box) for box in sorted(testboxes(settings)))]


def builders(settings: Settings) -> dict[str, dict[str, Any]]:
    """Each builder's worker and deadline in seconds, by its name."""
    table: dict[str, dict[str, Any]] = {KERNEL_BUILDER: {"worker": BUILD_WORKER, "deadline_seconds": settings.build.deadline_seconds}}
    for box in sorted(testboxes(settings)):
        table[boot_builder(box)] = {"worker": boot_worker(box), "deadline_seconds": settings.boot.deadline_seconds}
    return table


def password_file(settings: Settings) -> Path:
    return settings.state / "worker-password"


def worker_password(settings: Settings) -> str:
    """What Buildbot workers log in with; made at the first call, in a file that only its owner can read."""
    return artifacts.secret(password_file(settings)).hex()


def terms(settings: Settings) -> Terms:
    return Terms(
        exchange_url=exchange_url(settings),
        repo=str(settings.mirror),
        build_deadline_seconds=settings.build.deadline_seconds,
        boot_deadline_seconds=settings.boot.deadline_seconds,
    )


def exchange_url(settings: Settings) -> str:
    """Where workers bring results: the service itself, whatever address people see."""
    return f"http://{settings.web.host}:{settings.web.port}"


def order_of(settings: Settings, conn: sa.Connection, attempt: int) -> dict[str, Any] | None:
    """The order document of `attempt`; None if there is no such attempt or it is over. It holds the attempt's token: never log it."""
    facts = attempts.order_facts(conn, attempt)
    if facts is None or facts.attempt_state != "running":
        return None
    return order_document(facts, terms(settings), artifacts.secret(settings.secret_file))


def config(settings: Settings) -> dict[str, Any]:
    """Buildbot's `BuildmasterConfig`. Needs `settings.db.url`; makes the password file if it is not there."""
    from buildbot.plugins import schedulers, util, worker

    from swingbot.adapters.buildbot import database, dispatcher, steps

    if not settings.db.url:
        raise ValueError("the Buildbot master needs db.url (SWINGBOT_DB_URL): the address of the database")
    engine = make_engine(settings.db.url)

    def make_order(attempt: int) -> dict[str, Any] | None:
        with engine.connect() as conn:
            return order_of(settings, conn, attempt)

    password = worker_password(settings)
    table = builders(settings)
    return {
        "title": "swingbot",
        "titleURL": settings.web_url,
        "buildbotURL": f"http://127.0.0.1:{settings.buildbot_www_port}/",
        "buildbotNetUsageData": None,
        "collapseRequests": False,
        "protocols": {"pb": {"port": f"tcp:{settings.buildbot_worker_port}:interface=127.0.0.1"}},
        "db": database.config(settings.db.url),
        "workers": [worker.Worker(name, password, max_builds=1, keepalive_interval=60) for name in worker_names(settings)],
        "builders": [
            util.BuilderConfig(
                name=name,
                workernames=[entry["worker"]],
                factory=steps.factory(make_order, entry["deadline_seconds"], settings.web_url),
                collapseRequests=False,
                description=f"swingbot: {'kernel builds' if name == KERNEL_BUILDER else 'boots of ' + name.removeprefix('boot-')}",
            )
            for name, entry in table.items()
        ],
        # Never triggered: Buildbot wants a scheduler for each builder, and the dispatcher's buildsets bear this one's name.
        "schedulers": [schedulers.Triggerable(name=SCHEDULER, builderNames=list(table))],
        "services": [dispatcher.Dispatcher(attempts.Attempts(engine))],
        "configurators": [util.JanitorConfigurator(logHorizon=LOGS_KEPT, hour=4, dayOfWeek=6)],
        "logMaxSize": LOG_BYTES,
        "logMaxTailSize": LOG_BYTES // 4,
        "www": {
            "port": f"tcp:{settings.buildbot_www_port}:interface=127.0.0.1",
            "plugins": {"waterfall_view": {}, "console_view": {}, "grid_view": {}},
            # Everyone may read. Nobody has the role that may start, stop or force anything: that is done through swingbot.
            "authz": util.Authz(allowRules=[util.AnyControlEndpointMatcher(role="nobody")], roleMatchers=[]),
            "allowed_origins": [],
        },
    }
