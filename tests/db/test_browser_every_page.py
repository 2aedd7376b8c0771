"""Every kind of page on a phone, a laptop and a large screen: nothing is cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa

from swingbot.core.access.roles import Role
from tests import builders as make
from tests.browser import Page, browser
from tests.database import fresh
from tests.postgres import Server
from tests.served import Served, served
from tests.tables import an_experiment

WIDTHS = (390, 1280, 1920)
_ASKED = """INSERT INTO asked (comparison, who, token, testbox_seconds)
SELECT c.id, t.who, t.id, 1 FROM comparison c, access_token t WHERE t.who = 'Ada'"""
SCHEMES = {390: "dark", 1280: "light"}  # in which axe looks at each page
LONG_JOB = "will-it-scale-performance-page_fault3-process-100%-48-threads-512M-anon-thp-never"
# Parts of addresses that name one of many: pages that differ in nothing else are of one kind.
_NAMES = re.compile(
    r"/[a-z]?[0-9][^/]*|(?<=kernel/)[0-9a-f]{64}|(?<=^/metric/).+|(?<=^/docs/).+|(?<==)[^&]+"
)
_FILE = re.compile(r"\.(json|csv|txt|svg|css|atom|gz)$|^/raw/.*[^/]$")


@dataclass(frozen=True)
class Site:
    web: Served
    page: Page

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.web.port}"


@pytest.fixture(scope="module")
def site(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with (
        fresh(pg, template) as url,
        served(url, tmp_path_factory.mktemp("widths"), SWINGBOT_WEB_RATE="0") as web,
        browser() as page,
    ):
        web.token("Ada", Role.SUBMITTER)
        an_experiment(web.conn, kernels=14, testboxes=3, metrics=2, boots=2, unbuildable=(5,))
        _long_names(web)
        web.conn.execute(sa.text(_ASKED))
        web.conn.commit()
        yield Site(web, page)


def _long_names(web: Served) -> None:
    """What fits nowhere: a subject of 500 characters, one without a space, names as LKP has
    them, a metric with four aliases and its noise."""
    conn = web.conn
    subject = "mm/page_alloc: " + "a very long subject " * 24
    conn.execute(sa.text("UPDATE variant SET subject = :s WHERE id % 3 = 0"), {"s": subject[:500]})
    conn.execute(
        sa.text("UPDATE variant SET subject = :s WHERE id % 3 = 1"), {"s": "x86_" + "y" * 200}
    )
    testbox = make.Testbox(
        name="vm-icount",
        spec=conn.execute(
            sa.text("SELECT max(spec) FROM comparison_part WHERE comparison = 1")
        ).scalar_one(),
        unit_job=LONG_JOB,
    )
    run = conn.execute(
        sa.text(
            "INSERT INTO run (boot, unit_job, number, status) SELECT max(id), :job, 0, 'ok'"
            " FROM boot WHERE testbox = 'vm-icount' AND outcome = 'up' RETURNING id"
        ),
        {"job": LONG_JOB},
    ).scalar_one()
    for number, name in enumerate(("ops", "ops_ps", "total_ops", "ops_per_thread", "rate")):
        metric = f"will-it-scale.per_process_{name}"
        alias: dict[str, Any] = {"alias_of": "will-it-scale.per_process_ops"} if number else {}
        make.a_row(conn, web.lab.comparison, testbox, metric, **alias)
        conn.execute(
            sa.text(
                "INSERT INTO noise_record (testbox, unit_job, metric, detail, through)"
                " SELECT testbox, :job, :metric, CAST(:detail AS jsonb), max(id) FROM boot"
                " WHERE testbox = 'vm-icount' GROUP BY testbox"
            ),
            {"job": LONG_JOB, "metric": metric, "detail": json.dumps(_RECORD)},
        )
        make.a_sample(conn, run, metric, 1234567.5)


_RECORD = {
    part: {"sd": 0.0123456, "df": 131.0}
    for part in ("run", "boot", "boot_mean", "pair", "day", "layout")
} | {"boots": 12345, "wild_boots": 3, "runs": 37035, "images": 9}


def _kind(address: str) -> str:
    """The address without what names one of many, and the names of its query alone."""
    path, _, query = address.partition("?")
    return _NAMES.sub("/*", path) + "?" + ",".join(sorted(set(re.findall(r"(\w+)=", query))))


def addresses(web: Served) -> list[str]:
    """One page of each kind that links lead to from the start page."""
    seen: set[str] = set()
    chosen: dict[str, str] = {}
    todo = ["/"]
    while todo:
        path = todo.pop(0)
        kind = _kind(path)
        if path in seen or (kind in chosen and chosen[kind] != path):
            continue
        seen.add(path)
        if _FILE.search(path):
            continue
        answer = web.client.get(path, follow_redirects=True)
        assert answer.status_code == 200, path
        if not answer.headers["content-type"].startswith("text/html"):
            continue
        chosen[kind] = path
        found = re.findall(r'href="(/[^"#]*)"', answer.text)
        todo += [one.replace("&amp;", "&") for one in found]
    return sorted(chosen.values())


def pages(web: Served) -> list[str]:
    return [
        *addresses(web),
        f"/comparison/c{web.lab.running_comparison}",
        f"/bisection/b{web.lab.running_bisection}",
        f"/boot/x{web.lab.panicked}",
        "/search?q=mm",
        "/testbox/vm-icount",
        "/comparison/c99",
    ]


@dataclass(frozen=True, kw_only=True)
class Look:
    """What one visit of a page found; it is resized and recoloured, not loaded again."""

    path: str
    cut_off: list[str]
    barriers: list[str]
    plots: list[str]


@pytest.fixture(scope="module")
def looks(site: Site) -> list[Look]:
    return [look_at(site, path) for path in pages(site.web)]


def look_at(site: Site, path: str) -> Look:
    page, cut_off, barriers = site.page, [], []
    page.open(site.url + path)
    page.load_pictures()
    for width in WIDTHS:
        page.sized(width)
        cut_off += [f"{path} at {width}: {words}" for words in page.cut_off()[:4]]
        if (more := page.overflow()) > 0:
            cut_off.append(f"{path} is {more} pixels wider than {width}")
        if scheme := SCHEMES.get(width):
            page.media(scheme=scheme)
            barriers += [f"{path}, {scheme}, {width}: {words}" for words in page.barriers()]
            page.media()
    pictures = "[...document.links].filter(one => one.pathname.endsWith('.svg'))"
    plots = page.value(f"{pictures}.map(one => one.pathname + one.search)")
    return Look(path=path, cut_off=cut_off, barriers=barriers, plots=plots)


def test_nothing_is_cut_off_on_any_kind_of_page(looks: list[Look]) -> None:
    assert len(looks) > 30, [look.path for look in looks]
    wrong = [words for look in looks for words in look.cut_off]
    assert wrong == [], "\n".join(wrong)


def test_axe_finds_no_barrier_on_any_kind_of_page_in_both_schemes(looks: list[Look]) -> None:
    wrong = [words for look in looks for words in look.barriers]
    assert wrong == [], "\n".join(wrong)


def test_no_text_of_any_kind_of_plot_is_outside_of_its_picture(
    site: Site, looks: list[Look]
) -> None:
    kinds = {
        re.sub(r"[0-9]+", "*", plot.partition("?")[0]): plot
        for look in looks
        for plot in look.plots
    }
    assert len(kinds) >= 4, kinds
    wrong = []
    for plot in kinds.values():
        site.page.open(site.url + plot)
        wrong += [f"{plot}: {words}" for words in site.page.text_outside()]
    assert wrong == []


def test_on_paper_only_the_content_is_left_and_nothing_is_cut_off(site: Site) -> None:
    page = site.page
    page.media("print")
    page.sized(794)  # A4 at 96 dots per inch
    for path in ("/", f"/comparison/c{site.web.lab.comparison}", f"/report/r{site.web.lab.report}"):
        page.open(site.url + path)
        page.load_pictures()
        shown = "[...document.querySelectorAll('header, form, footer nav, .skip')]"
        assert page.value(f"{shown}.filter(one => one.getClientRects().length).length") == 0
        assert page.cut_off() == [], path
    page.media()


def test_the_dark_scheme_is_dark_for_pages_and_their_plots(site: Site) -> None:
    page = site.page
    page.open(f"{site.url}/comparison/c{site.web.lab.comparison}")
    brightness = """((one, name) => { const parts = getComputedStyle(one)[name].match(/[0-9.]+/g);
        return parts.slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3 })"""
    paper, ink = (f"{brightness}(document.body, '{n}')" for n in ("backgroundColor", "color"))
    assert page.value(paper) > 200 > 100 > page.value(ink)
    page.media(scheme="dark")
    assert page.value(paper) < 60 < 200 < page.value(ink)
    page.click("figcaption a")
    assert page.value(f"{brightness}(document.querySelector('.paper'), 'fill')") < 60
    page.media()


def test_the_keyboard_skips_to_the_content_and_shows_where_it_is(site: Site) -> None:
    page = site.page
    page.sized(1280)
    page.open(f"{site.url}/")
    page.press("Tab", 9)
    focus = "document.activeElement"
    assert page.value(f"{focus}.className") == "skip"
    assert page.value(f"{focus}.getBoundingClientRect().left") >= 0
    page.press("Enter", 13)
    assert page.value("location.hash") == "#main"
    page.press("Tab", 9)
    assert page.value(f"{focus}.closest('main') !== null")
    assert page.value(f"getComputedStyle({focus}).outlineStyle") == "solid"
    assert page.value(f"parseFloat(getComputedStyle({focus}).outlineWidth)") >= 2


def test_what_is_cut_off_is_noticed(site: Site) -> None:
    """The measure itself: a table in a scroller, a number outside of its cell, a wide picture."""
    page = site.page
    page.sized(390)
    for made in (
        "<div style='overflow-x:auto'><table><tr><td><p style='width:900px'>a</p></td>"
        "<td>42</td></tr></table></div>",
        "<table style='table-layout:fixed;width:40px'><tr><td style='white-space:nowrap'>"
        "1 234 567 890</td><td>1</td></tr></table>",
        "<div style='overflow:hidden;width:50px'><svg width='300' height='9'>"
        "<circle cx='280' cy='4' r='3'/></svg></div>",
    ):
        page.open("about:blank")
        page.value(f"document.body.innerHTML = {made!r}")
        assert page.cut_off(), made
    page.value("document.body.innerHTML = '<pre style=\"overflow:auto\">' + 'x'.repeat(999)")
    assert page.cut_off() == []
