"""Build the Lab of a process from the settings."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.adapters.git import Mirror
from swingbot.adapters.kernel_reader import ChildKernelRecords
from swingbot.adapters.list_archive import find_posted
from swingbot.adapters.maildir import MaildirArchive
from swingbot.adapters.maintainers import maintainers_of
from swingbot.adapters.parser_version import parser_versions
from swingbot.adapters.reachability import Reachability
from swingbot.adapters.result_reader import ChildResultReader
from swingbot.adapters.smtp import SmtpMailer
from swingbot.app.database import database_url
from swingbot.app.keep.health_check import why_no_room
from swingbot.app.mail import leave_rules, mail_rules
from swingbot.app.settings import Settings, SettingsError, build_workers
from swingbot.core.mail.addresses import addresses
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.testbox_rules import TestboxRules
from swingbot.core.proof.gates import names as gate_names
from swingbot.service.clock_watch import ClockWatch
from swingbot.service.lab.load_testboxes import load_testboxes
from swingbot.service.ports import Catalogue, Clock, Lab, LabSettings, Tools
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.report.recheck_testboxes import RecheckTestboxes
from swingbot.service.report.send import Sender
from swingbot_db.engine import DatabaseAway, Engine, make_engine
from swingbot_db.store import transactions
from swingbot_db.store.outbox import sender_turn
from swingbot_jobs.contract.kconfig import load_kconfigs
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.testbox.file import load_all


class NotRunning(Exception):
    """The service that a command needs is not running; the message says how to start it."""


def connect(settings: Settings, url: str | None = None) -> Engine:
    """Connect to the database at `url` (default: the service's). Raises NotRunning."""
    engine = make_engine(url or database_url(settings))
    try:
        with engine.connect():
            return engine
    except DatabaseAway as error:
        what = str(error.orig).strip().splitlines()[0] if error.orig else str(error)
        where = "" if settings.db.url else f" on {settings.state}"
        more = ""
        if settings.sources.get("web.port") == "command line":
            more = "; --port alone does not find a service"
        raise NotRunning(
            f"swingbot is not running{where}; start it with `swingbot up`, or give its state"
            f" directory with --state{more} ({what})"
        ) from None


def make_lab(settings: Settings, engine: Engine) -> Lab:
    """Build the Lab that use cases work on.

    Raises an error for invalid testbox, program or settings files.
    """
    return lab_on(settings, transactions(engine))


def lab_on(settings: Settings, begin: OpenTransaction) -> Lab:
    """Build the Lab whose transactions `begin` begins. Raises as `make_lab` does."""
    workers = Path(settings.paths.workers)
    recipients = tuple(addresses(settings.mail.to))
    if not recipients:
        raise SettingsError("mail.to is empty; set it to at least one recipient of reports")
    programs = load_programs(Path(settings.paths.jobs) / "programs")
    began = time.monotonic()
    catalogue = Catalogue(
        testboxes=KnownTestboxes(
            present=load_all(workers / "testboxes"),
            boot_ceiling=settings.boot.deadline_seconds,
        ),
        programs=programs,
        parsers=parser_versions(programs),
        kconfigs=load_kconfigs(workers / "kconfig"),
    )
    return Lab(
        transaction=begin,
        tools=_tools(settings),
        catalogue=load_testboxes(begin, catalogue),
        settings=_lab_settings(settings, recipients),
        clock=Clock(
            now=lambda: datetime.now(UTC),
            database=ClockWatch(time.monotonic),
            listening=Reachability(settings.exchange_url),
            awake=lambda: time.monotonic() - began,
        ),
    )


def _tools(settings: Settings) -> Tools:
    artifacts = ArtifactDirectory(settings.artifacts)
    return Tools(
        git=Mirror(settings.mirror, settings.git_paths, int(settings.git.fetch_gib * (1 << 30))),
        artifacts=artifacts,
        kernels=ChildKernelRecords(artifacts.open),
        maintainers=partial(maintainers_of, settings.mirror)
        if settings.mail.get_maintainer
        else None,
        list_archive=partial(find_posted, Path(settings.mail.archive).expanduser())
        if settings.mail.archive
        else None,
        no_room=partial(why_no_room, settings),
        results=ChildResultReader(Path(settings.paths.jobs) / "programs"),
    )


def _lab_settings(settings: Settings, recipients: tuple[str, ...]) -> LabSettings:
    return LabSettings(
        watch_boots=settings.watch.boots,
        watch_testbox=settings.watch.testbox,
        bisect_improvements=settings.watch.bisect_improvements,
        idle_aa_seconds=60.0 * settings.testboxes.idle_aa_minutes,
        confidence=settings.bisect.confidence,
        max_boots=settings.bisect.max_boots,
        mail=mail_rules(settings.mail),
        sender=settings.mail.sender,
        recipients=recipients,
        still_days=settings.mail.still_days,
        contact=settings.mail.contact,
        domain=settings.mail.domain,
        web_url=settings.web_url,
        deadline_build=settings.build.deadline_seconds,
        proof_gates=gate_names(settings.proof.gates),
        proof_require=gate_names(settings.proof.require),
        proof_deadline_seconds=3600.0 * settings.proof.deadline_hours,
        proof_budget_seconds=60.0 * settings.proof.budget_minutes,
        merged_trees=tuple(
            name.strip() for name in settings.proof.merged_trees.split(",") if name.strip()
        ),
        testboxes=TestboxRules(
            failures=settings.testboxes.failures,
            screening_boots=settings.testboxes.screening_boots,
            stuck_seconds=60.0 * settings.testboxes.stuck_minutes,
            invalid_pct=settings.testboxes.invalid_pct,
            mails=settings.testboxes.mails,
        ),
    )


def sync_testboxes(lab: Lab) -> None:
    """Update the testboxes in the database from `workers/testboxes/*.yaml`."""
    with lab.transaction("sync testboxes") as tx:
        tx.testboxes.sync(
            (testbox, testbox.to_json()) for testbox in lab.catalogue.testboxes.present.values()
        )


def forget_workers(settings: Settings, lab: Lab) -> None:
    """Remove the compilers of workers that are no longer in `build.workers`."""
    with lab.transaction("forget workers") as tx:
        tx.compilers.keep(build_workers(settings.build))


def make_sender(settings: Settings, engine: Engine, lab: Lab) -> Sender:
    """Build what sends reports, and keeps copies of sent mails."""
    mail = settings.mail
    copies = (Path(mail.bcc_maildir).expanduser(),) if mail.bcc_maildir else ()
    mailer = SmtpMailer(
        host=mail.host or "127.0.0.1",
        port=settings.smtp_port,
        hidden=tuple(addresses(mail.bcc)),
        key=settings.mail_key,
    )
    return Sender(
        begin=lab.transaction,
        turn=partial(sender_turn, engine),
        mailer=mailer,
        archive=MaildirArchive(path=settings.maildir, authoritative=not mail.host, copies=copies),
        rules=leave_rules(mail),
        recheck=RecheckTestboxes(
            testboxes=lab.catalogue.testboxes,
            rules=lab.settings.mail,
            operator=lab.settings.recipients,
        ),
    )
