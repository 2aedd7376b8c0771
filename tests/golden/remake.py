"""Rewrite the goldens (`make golden`); the diff is then read as the recipient of the mail would
read it."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from swingbot.app import buildmaster
from swingbot.app.settings import Settings
from swingbot.core.mail.message import Mail
from swingbot.core.report.mails.alert import Alert, alert_mail
from swingbot.core.report.mails.first import mail
from swingbot.core.report.mails.followup import FollowUp, follow_up
from swingbot.core.report.mails.result import Result, result_mail
from swingbot.core.report.report_facts import ReportFacts
from swingbot_jobs.codec import typed
from tests.golden.compared import COMPARED, compared_text

REPORTS = Path(__file__).parent / "report"
FOLLOW_UPS = REPORTS / "followup"
ALERTS = REPORTS / "alert"
RESULTS = REPORTS / "result"
_FACTS = ("tbox_group", "model", "nr_cpu", "memory_mb", "repeatable", "boot_seconds", "label")
BUILDBOT = Path(__file__).parent / "describe" / "describe.yaml"


def report_facts(document: Path) -> ReportFacts:
    """What a `*.in.yaml` says. `rows: {times: N, row: {...}}` is N rows with {n} in their texts
    replaced by 1, 2 ... N."""
    facts = yaml.safe_load(document.read_text(encoding="utf-8"))
    rows = facts["rows"]
    if isinstance(rows, dict):
        facts["rows"] = [
            {
                key: value.replace("{n}", str(n)) if isinstance(value, str) else value
                for key, value in rows["row"].items()
            }
            for n in range(1, rows["times"] + 1)
        ]
    return typed(ReportFacts, facts)


def report_text(document: Path) -> str:
    """The mail that a `*.in.yaml` gives: its subject line, an empty line, its body."""
    return _text(mail(report_facts(document)))


def follow_up_text(document: Path) -> str:
    """The same of a short mail in the thread of a first one."""
    return _text(follow_up(typed(FollowUp, yaml.safe_load(document.read_text(encoding="utf-8")))))


def alert_text(document: Path) -> str:
    """The same of a mail to the operator about the lab."""
    return _text(
        alert_mail(
            Alert(**yaml.safe_load(document.read_text(encoding="utf-8"))),
            url="https://swingbot.example.org",
        )
    )


def result_text(document: Path) -> str:
    """The same of a mail to the requester of a table or bisection."""
    return _text(result_mail(typed(Result, yaml.safe_load(document.read_text(encoding="utf-8")))))


def buildbot_text() -> str:
    """Builders with their workers and deadlines, and the facts of the testboxes, as YAML."""
    settings = Settings()
    testboxes = {}
    for name, testbox in sorted(buildmaster.testboxes(settings).items()):
        facts = testbox.to_json()
        testboxes[name] = {key: facts[key] for key in ("driver", facts["driver"], *_FACTS)}
    document = {"builders": buildmaster.builders(settings), "testboxes": testboxes}
    return str(yaml.safe_dump(document, sort_keys=False, width=160, allow_unicode=True))


def _text(made: Mail) -> str:
    threaded = (
        f"In-Reply-To: {made.in_reply_to}\nReferences: {' '.join(made.references)}\n"
        if made.in_reply_to
        else ""
    )
    return f"Subject: {made.subject}\n{threaded}\n{made.body}"


def text_of(document: Path) -> Path:
    return document.with_name(document.name.removesuffix(".in.yaml") + ".txt")


def main() -> int:
    for document in sorted(REPORTS.glob("*.in.yaml")):
        text_of(document).write_text(report_text(document), encoding="utf-8")
        print(text_of(document))
    for document in sorted(FOLLOW_UPS.glob("*.in.yaml")):
        text_of(document).write_text(follow_up_text(document), encoding="utf-8")
        print(text_of(document))
    for document in sorted(ALERTS.glob("*.in.yaml")):
        text_of(document).write_text(alert_text(document), encoding="utf-8")
        print(text_of(document))
    for document in sorted(RESULTS.glob("*.in.yaml")):
        text_of(document).write_text(result_text(document), encoding="utf-8")
        print(text_of(document))
    for document in sorted(COMPARED.glob("*.in.yaml")):
        text_of(document).write_text(compared_text(document), encoding="utf-8")
        print(text_of(document))
    BUILDBOT.write_text(buildbot_text(), encoding="utf-8")
    print(BUILDBOT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
