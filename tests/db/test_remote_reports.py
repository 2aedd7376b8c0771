"""Reports and gates from elsewhere are those of the service's host: the same words, the same state;
decisions with the role of a moderator only, and with the person's name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa

from swingbot.core.access.roles import Role
from swingbot.core.limits import WHY_CHARACTERS
from tests.database import fresh
from tests.db.test_remote import elsewhere, here, run
from tests.db.test_remote_decisions import OWN, refused_to_others
from tests.postgres import Server
from tests.served import Served, served

TYPED: Final = (
    "report list",
    "report list --json",
    "report list --state held,draft",
    "report list --state colourful",
    "report show r1",
    "report show r1 --mail",
    "report show r1 --json",
    "report hold r1 --reason asking",
    "report show r1",
    "report hold r1",
    "report release r1",
    "report show r1 --json",
    "report drop r1 --reason noise",
    "report drop r1",
    "report release r1",
    "report hold r1",
    "report list",
    "report readdress r1",
    "report readdress c1",
    "report readdress r99",
    "report classes",
    "report classes --json",
    "report stop --reason {long}",
    "report stop --reason wrong",
    "report list",
    "report stop",
    "report resume",
    "report resume --reason right",
    "report drop r99",
    "report drop c1",
    "report drop r1 --reason {long}",
    "report show r99",
    "report show c1",
    "proof show i1",
    "proof show i1 --json",
    "proof show i99",
    "proof show r1",
)


@pytest.fixture
def sites(pg: Server, template: str, tmp_path: Path) -> Iterator[list[Served]]:
    """Two services with the same report that waits: for the host, and for elsewhere."""
    with ExitStack() as stack:
        sites = [
            stack.enter_context(served(stack.enter_context(fresh(pg, template)), tmp_path / name))
            for name in ("host", "away")
        ]
        for site in sites:
            for sql in (
                "UPDATE report SET state = 'held', sent_at = NULL",
                "INSERT INTO outbox (report, message, next_try) VALUES (1, 'To: x', '2026-03-01')",
            ):
                site.conn.execute(sa.text(sql))
            site.conn.commit()
        yield sites


def test_a_report_from_elsewhere_is_that_of_the_host(sites: list[Served], tmp_path: Path) -> None:
    host, away = sites
    token = away.token("Ada", Role.MODERATOR)["Authorization"].split()[1]
    for typed in TYPED:
        words = typed.format(long="x" * (WHY_CHARACTERS + 1))
        on_host = run(words, here(host) | {"SWINGBOT_MAIL_RELEASE": "release"})
        from_elsewhere = run(words, elsewhere(away, tmp_path, SWINGBOT_TOKEN=token))
        assert from_elsewhere.exit_code == on_host.exit_code, (words, from_elsewhere.output)
        said = from_elsewhere.output.replace("Ada (web)", "ada@web")
        assert OWN.sub("", said) == OWN.sub("", on_host.output), words
    shown = run("report show r1", elsewhere(away, tmp_path)).output
    assert "drop by Ada (web): noise" in shown


def test_only_a_moderator_decides_about_reports(sites: list[Served], tmp_path: Path) -> None:
    _, away = sites
    anonymous = elsewhere(away, tmp_path)
    before = run("report show r1", anonymous).output
    refused = ("report drop r1 --reason x", "report readdress r1", "report stop")
    refused_to_others(away, anonymous, *refused)
    assert "no report is sent" not in run("report list", anonymous).output
    moderator = away.token("Ada", Role.MODERATOR)
    bodies: list[Any] = [{}, {"act": "burn"}, {"act": "drop", "more": 1}, {"act": 5}, [], 5]
    bodies += [{"act": "drop", "reason": "x" * 50_000}, {"act": "drop", "reason": None}]
    for body in bodies:
        answer = away.client.post("/report/r1/decide", json=body, headers=moderator)
        assert answer.status_code == 400 and 0 < len(answer.json()["detail"]) < 400, body
    assert run("report show r1", anonymous).output == before
