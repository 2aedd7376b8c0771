"""A mail when a table is over: asked for over HTTP, written by the loop; no page shows to whom."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot.app.wiring import make_lab
from swingbot.core.access.roles import Role
from swingbot.service.tick import tick
from tests.asking import Serve, Site
from tests.db.test_remote_tables import here, run

ADDRESS: Final = "ada.dev@example.org"
SHOWN: Final = ("/report/r1", "/report/r1.json", "/reports", "/reports.json", "/outbox.json",
                "/outbox", "/moderation", "/moderation.json", "/", "/status.json")  # fmt: skip


def away(site: Site, place: Path, *words: str) -> dict[str, str]:
    """The environment of somebody elsewhere with a token of their own."""
    made = CliRunner().invoke(
        main, ["token", "create", "Ada", "--role", "moderator", *words], env=here(site)
    )
    assert made.exit_code == 0, made.output
    url = f"http://127.0.0.1:{site.web.port}"
    return {
        "SWINGBOT_URL": url,
        "SWINGBOT_TOKEN": made.stdout.strip(),
        "XDG_CONFIG_HOME": str(place),
    }


def test_a_mail_is_written_once_and_no_page_shows_its_address(serve: Serve, tmp_path: Path) -> None:
    site = serve()
    ada = away(site, tmp_path, "--mail", ADDRESS)
    for _ in range(2):
        assert run("compare base tip --mail --yes", ada).exit_code == 0
    lab = make_lab(site.web.settings, site.web.engine)
    tick(lab)
    assert not reports(site), "it is not over"
    assert run("cancel c1", ada).exit_code == 0
    for _ in range(2):
        tick(lab)
    assert reports(site) == [([ADDRESS], "[swingbot] c1 was cancelled", "queued")]
    key = {"Authorization": f"Bearer {ada['SWINGBOT_TOKEN']}"}
    for state in ("queued", "held"):
        for sql in (
            "UPDATE report SET state = :state, reason = :why",
            "UPDATE outbox SET error = :why WHERE :state <> ''",
        ):
            why = {"state": state, "why": f"{ADDRESS} opted out"}
            site.web.conn.execute(sa.text(sql), why)
        seen = site.web.conn.execute(sa.text("SELECT CAST(v_reports AS text) FROM v_reports"))
        assert ADDRESS not in str(seen.all())
        site.web.conn.commit()
        for address in SHOWN:
            answer = site.web.client.get(address, headers=key)
            assert answer.status_code == 200, address
            assert ADDRESS not in answer.text, address
    assert "<h2>Reports</h2>" not in site.web.client.get("/").text, "it is not for everybody"
    assert '"/comparison/c1"' in site.web.client.get("/report/r1").text
    for words in ("report show r1", "report list", "report list --json", "report show r1 --json"):
        said, said_away = (run(words, env) for env in (here(site), ada))
        assert said.exit_code == 0 and ADDRESS not in said.output, said.output
        assert said_away.output == said.output
    assert ADDRESS in run("token list", here(site)).output


@pytest.mark.parametrize("words", ["compare base tip", "bisect start base..tip --metric {metric}"])
def test_a_token_without_an_address_cannot_request_mail(
    words: str, serve: Serve, tmp_path: Path
) -> None:
    site = serve()
    refused = run(f"{words.format(metric='hackbench.throughput')} --mail", away(site, tmp_path))
    assert refused.exit_code == 2 and "your token has no mail address: ask an" in refused.output
    count = "SELECT (SELECT count(*) FROM comparison) + (SELECT count(*) FROM bisection)"
    assert site.web.conn.execute(sa.text(count)).scalar_one() == 0


def test_a_request_asks_for_a_mail_with_true_or_false(serve: Serve) -> None:
    site = serve()
    ada = site.web.token("Ada", Role.SUBMITTER)
    wrong = site.json(ada, mail="yes")
    assert wrong.status_code == 400 and "mail must be true or false" in wrong.text
    assert site.json(ada, mail=True, dry_run=True).status_code == 400
    assert site.json(ada, mail=False, dry_run=True).status_code == 200
    assert "mail must be 1 or empty" in site.web.client.get("/compare?mail=yes").text


def reports(site: Site) -> list[tuple[list[str], str, str]]:
    rows = site.web.conn.execute(sa.text("SELECT to_addrs, subject, state FROM report")).all()
    site.web.conn.rollback()
    return [(list(row.to_addrs), row.subject, row.state) for row in rows]
