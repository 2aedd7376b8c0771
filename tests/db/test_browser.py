"""A person with a browser: reports, their incident, moderation and outbox, clicked through in
Chromium as `swingbot web` serves them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from swingbot.adapters.artifacts import secret
from swingbot.app.settings import load
from swingbot.core.moderation.filing import Addressed, Filing
from swingbot.service.ports.reports import NewReport
from swingbot.web.access.session import operator_key
from swingbot_db.engine import make_engine
from swingbot_db.store import PgTransaction
from tests import builders as make
from tests import scenario
from tests.browser import Page, browser
from tests.buildbot.ports import free_ports
from tests.database import fresh
from tests.fakes.mail import brain_environment
from tests.postgres import Server
from tests.tables import an_experiment

WIDTHS = (400, 1400)


@dataclass(frozen=True)
class Lab:
    page: Page
    url: str
    conn: sa.Connection
    key: str
    sent: int
    held: int
    experiment: int


@pytest.fixture(scope="module")
def lab(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """For tests that change nothing and do not sign in."""
    with fresh(pg, template) as url:
        yield from _a_lab(url, tmp_path_factory.mktemp("browser"))


@pytest.fixture
def own_lab(db_url: str, tmp_path: Path) -> Iterator[Lab]:
    yield from _a_lab(db_url, tmp_path)


def _a_lab(db_url: str, tmp_path: Path) -> Iterator[Lab]:
    port = free_ports(4)
    given = brain_environment(tmp_path / "state", db_url) | {"SWINGBOT_WEB_PORT": str(port)}
    settings, engine = load(environ=given), make_engine(db_url)
    with engine.connect() as conn:
        made = scenario.a_lab(conn)
        held = _held_report(conn, made.incident)
        experiment = an_experiment(
            conn, kernels=14, testboxes=3, metrics=2, boots=2, unbuildable=(5,)
        )
        conn.commit()
        web = subprocess.Popen(
            [sys.executable, "-m", "swingbot.app.cli", "web"], env={**os.environ, **given}
        )
        try:
            _wait_for(f"http://127.0.0.1:{port}/healthz", web)
            with browser() as page:
                yield Lab(
                    page,
                    f"http://127.0.0.1:{port}",
                    conn,
                    operator_key(secret(settings.secret_file)),
                    made.report,
                    held,
                    experiment.id,
                )
        finally:
            web.terminate()
            web.wait(30)
    engine.dispose()


def _held_report(conn: sa.Connection, incident: int) -> int:
    reports = PgTransaction(conn).reports
    number = reports.reserve()
    to = ("dev@example.org",)
    filing = Filing(
        state="held",
        reason="for the test",
        addressed=Addressed(to=to, cc=(), would_to=to, lists=(), left_out=()),
        kind=None,
    )
    words = {
        "subject": "it is still there <b>",
        "body": "Hello,\n\nstill there.\n",
        "message": b"Subject: still there\n\nHello\n",
    }
    more = {
        "incident": incident,
        "kind": "update",
        "revision": 1,
        "message_id": "<i1.update.1@example.org>",
        "to": to,
        "cc": (),
        "state": "held",
    }
    return reports.add(NewReport(number=number, filing=filing, **words, **more))  # type: ignore[arg-type]  # two tables of keywords


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (OSError, urllib.error.URLError):
            assert process.poll() is None, "the web service ended at once"
            time.sleep(0.1)
    raise AssertionError(f"{url} never answered")


def looked_at(page: Page) -> None:
    """Nothing on the page is broken, and it is never wider than its window."""
    page.load_pictures()
    for width in WIDTHS:
        page.sized(width)
        assert page.overflow() <= 0, (
            f"{page.address()} is {page.overflow()} pixels wider than {width}"
        )
    assert page.broken_pictures() == []
    assert (page.failed, page.complaints) == ([], []), page.address()


def test_a_reader_goes_from_the_overview_to_a_report_its_plots_and_its_incident(lab: Lab) -> None:
    page = lab.page
    page.open(lab.url)
    looked_at(page)
    page.click("nav a[href='/reports']")
    page.click(f"main a[href='/report/r{lab.sent}']")
    assert page.heading().startswith(f"Report r{lab.sent}")
    assert page.value("document.querySelectorAll('svg.field').length") >= 2
    looked_at(page)
    page.click("#plots figcaption a[href$='.svg']")
    assert page.address().endswith(".svg")
    page.open(f"{lab.url}/report/r{lab.sent}")
    page.click("main a[href='/incident/i1']")
    assert page.heading().startswith("Incident i1")
    looked_at(page)
    page.click(f"main a[href='/report/r{lab.sent}']")
    page.click("footer a[href$='.json']")
    assert page.address() == f"/report/r{lab.sent}.json"


def test_the_first_screen_tells_what_got_worse_and_two_clicks_show_a_boot_of_it(lab: Lab) -> None:
    """What, by how much, since when and through whom without scrolling; then links alone."""
    page = lab.page
    page.sized(1280, 900)
    page.open(lab.url)
    seen, bottom = page.value("""(() => {
        const row = document.querySelector("main td.change.worse").closest("tr");
        return [row.innerText, row.getBoundingClientRect().bottom] })()""")
    assert bottom <= 900, "below the first screen"
    for words in ("18.1\u00a0%", make.METRIC, "i1", scenario.SUBJECTS[scenario.CULPRIT]):
        assert words in seen
    assert "by A Developer" in seen and " ago" in seen
    way = ("main td.change.worse a", "main tr#k1 a[href^='/boot/x']")
    for link in way:
        page.click(link)
    assert len(way) == 2
    assert page.heading().startswith("Boot x")
    assert make.METRIC in page.value("document.querySelector('main').innerText")
    head = lab.conn.execute(
        sa.text(
            "SELECT b.build_key = v.build_key FROM boot b, comparison_pair c"
            " JOIN variant v ON v.id = c.head WHERE c.id = 1 AND 'x' || b.id = :boot"
        ),
        {"boot": page.address().removeprefix("/boot/")},
    ).scalar_one()
    assert head, "a boot of the kernel that is worse"


def test_the_header_is_short_and_asks_for_a_comparison_and_searches(lab: Lab) -> None:
    page = lab.page
    page.open(lab.url)
    assert page.value("document.querySelectorAll('header nav a:not(.brand, .reader)').length") <= 8
    page.click("header nav a[href='/compare']")
    assert page.heading() == "Compare kernels"
    for words, heading in (("free straight", "Search"), (f"r{lab.sent}", f"Report r{lab.sent}")):
        page.value(f"document.querySelector('header input').value = '{words}'")
        page.click("header form button")
        assert page.heading().startswith(heading)
        looked_at(page)


def test_a_reader_goes_from_the_list_of_experiments_to_the_boots_of_a_cell(lab: Lab) -> None:
    page = lab.page
    page.open(lab.url)
    page.click("nav a[href='/experiments']")
    looked_at(page)
    page.click(f"main a[href='/experiment/e{lab.experiment}']")
    assert page.heading().startswith(f"Experiment e{lab.experiment}")
    assert page.value("document.querySelectorAll('svg.field').length") >= 2
    page.sized(700)  # narrower, each row is a block of its own
    held = """(() => { const grid = document.querySelector('.grid');
        grid.scrollLeft = grid.scrollTop = 150;
        const box = grid.getBoundingClientRect();
        const at = (selector) => grid.querySelector(selector).getBoundingClientRect();
        return [at('tbody tr:last-child th').left - box.left,
                at('thead th:last-child').top - box.top]; })()"""
    assert all(0 <= pixels < 3 for pixels in page.value(held)), "head and names stay in sight"
    looked_at(page)
    page.value("document.querySelector('.grid td a[href^=\"#b3-\"]').click()")
    assert page.value("document.querySelector('td:target a').pathname").startswith("/boot/x")
    page.click("td:target a")
    assert page.heading().startswith("Boot x")
    page.open(f"{lab.url}/experiment/e{lab.experiment}")
    page.click("figcaption a")
    assert page.address() == f"/plot/e{lab.experiment}/values.svg"


def test_a_moderator_signs_in_says_why_and_drops_what_should_not_leave(own_lab: Lab) -> None:
    lab, page = own_lab, own_lab.page
    page.open(f"{lab.url}/moderation")
    looked_at(page)
    page.click("main a[href^='/login']")
    page.value(f"document.querySelector('input[name=key]').value = '{lab.key}'")
    page.click("form.stack button")
    assert page.address() == "/moderation"
    page.value(f"document.querySelector('#r{lab.held} input[name=why]').value = 'noise, I looked'")
    looked_at(page)
    page.click(f"#r{lab.held} button.stop")
    assert page.value(f"document.querySelector('#r{lab.held}')") is None
    page.click("nav a[href='/outbox']")
    looked_at(page)
    page.open(f"{lab.url}/report/r{lab.held}")
    assert "noise, I looked" in page.value("document.body.innerText")
    looked_at(page)
    state = lab.conn.execute(
        sa.text("SELECT state FROM report WHERE id = :id"), {"id": lab.held}
    ).scalar()
    assert state == "dropped"


def test_a_form_without_its_token_changes_nothing(own_lab: Lab) -> None:
    """As another site would send it: with the cookie's browser, without what only our page
    knows."""
    lab, page = own_lab, own_lab.page
    page.open(f"{lab.url}/login")
    page.value(f"document.querySelector('input[name=key]').value = '{lab.key}'")
    page.click("form.stack button")
    page.open(f"{lab.url}/moderation")
    page.value(
        f"document.querySelector('#r{lab.held} input[name=why]').value = 'x'; "
        f"document.querySelector('#r{lab.held} input[name=token]').remove()"
    )
    page.click(f"#r{lab.held} button.stop")
    assert (
        lab.conn.execute(
            sa.text("SELECT state FROM report WHERE id = :id"), {"id": lab.held}
        ).scalar()
        == "held"
    )
