"""Pages of results and of a metric in a browser: nothing is cut off, and a person gets from two
releases to the boots that show what moved between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from swingbot.web.http.render import metric_page
from tests import builders as make
from tests.browser import Page, browser
from tests.database import fresh
from tests.postgres import Server
from tests.releases import HACKBENCH, HACKBENCH_JOB, TREE, Releases, three_releases
from tests.served import Served, served

WIDTHS = (390, 1280, 1920)
SIMILAR = 65


@dataclass(frozen=True)
class Site:
    web: Served
    page: Page
    made: Releases

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.web.port}"


@pytest.fixture(scope="module")
def site(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    place = tmp_path_factory.mktemp("results")
    with (
        fresh(pg, template) as url,
        served(url, place, filled=False, SWINGBOT_WEB_RATE="0") as web,
        browser() as page,
    ):
        made = three_releases(web.conn, web.settings.mirror)
        for number in (0, 10):
            values = {f"page-fault.latency_{at:02}_percentile": [9.0 + at] for at in range(SIMILAR)}
            make.a_boot(web.conn, made.icount, made.kernels[number], k=9, values=values)
        web.conn.commit()
        yield Site(web, page, made)


def pages(site: Site) -> list[str]:
    two = f"/results?tree={TREE}&kernel=v6.1.110&kernel="
    return [
        f"/results?tree={TREE}",
        f"{two}v6.1.111",
        f"{two}v6.1.112&kernel=v6.1.111&sort=size",
        f"{two}{site.made.commits[7]}",
        f"{two}v6.1.111&metric=instructions",
        f"{two}v6.1.111&test=nothing",
        metric_page(TREE, "vm-icount", make.UNIT_JOB, make.METRIC),
        metric_page(TREE, "vm-tcg", HACKBENCH_JOB, HACKBENCH),
        f"/metric?unit_job={HACKBENCH_JOB.replace('%', '%25')}&metric={HACKBENCH}",
        metric_page(TREE, "vm-icount", make.UNIT_JOB, "page-fault.latency"),
    ]


def test_nothing_is_cut_off_and_axe_finds_no_barrier_in_either_scheme(site: Site) -> None:
    wrong = []
    for path in pages(site):
        site.page.open(site.url + path)
        site.page.load_pictures()
        for width in WIDTHS:
            site.page.sized(width)
            wrong += [f"{path} at {width}: {words}" for words in site.page.cut_off()[:4]]
            if (more := site.page.overflow()) > 0:
                wrong.append(f"{path} is {more} pixels wider than {width}")
        for scheme in ("light", "dark"):
            site.page.media(scheme=scheme)
            wrong += [f"{path}, {scheme}: {words}" for words in site.page.barriers()]
        site.page.media()
        wrong += site.page.broken_pictures()
    assert wrong == [], "\n".join(wrong)


def test_a_reader_goes_from_two_releases_to_the_commit_and_its_boots(site: Site) -> None:
    page = site.page
    page.sized(1280)
    page.open(f"{site.url}/results")
    page.click("main a[href*='kernel=v']")
    page.value("document.querySelectorAll('input[name=kernel]')[0].value = 'v6.1.110'")
    page.value("document.querySelectorAll('input[name=kernel]')[1].value = 'v6.1.111'")
    page.click("main form button")
    assert page.heading() == "Results"
    page.click(f"#moved-1 a[href='/incident/i{site.made.incident}']")
    assert page.heading().startswith(f"Incident i{site.made.incident}")
    page.open(f"{site.url}{metric_page(TREE, 'vm-icount', make.UNIT_JOB, make.METRIC)}")
    page.click("#commits a[href^='/boot/']")
    assert page.heading().startswith("Boot x")


def test_the_pointer_shows_a_boot_and_draws_a_range_by_place_and_by_time(site: Site) -> None:
    page, path = site.page, metric_page(TREE, "vm-icount", make.UNIT_JOB, make.METRIC)
    places = """(() => { const marks = [...document.querySelectorAll('#plot g.boot > a > circle')];
        return [marks[0], marks.at(-1)].map(one => { const box = one.getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2] }) })()"""

    for query in ("?", "?by=time&"):
        page.sized(1280, 900)
        page.open(f"{site.url}{path}{query}range=all")
        (x, y), (end, _) = page.value(places)
        page.point(x, y)
        shown = page.value("document.querySelector('.hover:not([hidden])').textContent")
        for words in (f"{site.made.commits[0][:12]} Linux 6.1.110 (A Developer), boot x", "level "):
            assert words in shown, (words, shown)
        page.drag((x - 12, y + 40), (end + 6, y + 40))
        query_of = "Object.fromEntries(new URLSearchParams(location.search))"
        chosen = page.value(query_of)
        assert chosen["from"] == site.made.commits[0][:12] and chosen["to"] not in (
            "",
            chosen["from"],
        )
        assert chosen.get("by", "order") == ("time" if "time" in query else "order")
