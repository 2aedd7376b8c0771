"""The pages over a lab that has a bit of everything, asked as a browser asks."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit
from xml.etree import ElementTree as Xml

import pytest
import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.testclient import TestClient

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.adapters.kernel_reader import ChildKernelRecords
from swingbot.app.keep.health_page import health
from swingbot.app.settings import load
from swingbot.app.sheets import shown
from swingbot.web.app import make_app
from swingbot.web.http.snapshot_reader import SnapshotReader
from swingbot.web.pages.kinds import PLURALS
from swingbot_db import read
from swingbot_db.engine import make_engine
from tests import builders as make
from tests import scenario
from tests.database import fresh
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import make_brain
from tests.fakes.kernels import kept_by
from tests.fakes.mail import brain_environment, running_smtpd
from tests.fakes.pages import writing_routes
from tests.postgres import Server

OWN_SCRIPT = '<script src="/static/plot.js" defer></script>'
HOSTILE = "<script>alert('x')</script>"


@dataclass(frozen=True)
class Settings:
    maildir: Path
    web_url: str = "http://lab.example.org:8010"
    buildbot_url: str = "http://127.0.0.1:8011/"


@dataclass(frozen=True)
class Site:
    """The service, its database, and a folder in which every artifact is found as `<sha256>`
    once a test writes it."""

    client: TestClient
    conn: sa.Connection
    lab: scenario.Lab
    artifacts: Path
    maildir: Path


@contextmanager
def a_site(url: str, place: Path) -> Iterator[Site]:
    engine = make_engine(url)
    artifacts, maildir = place / "artifacts", place / "maildir"
    artifacts.mkdir()
    settings = Settings(maildir=maildir)
    app = make_app(
        settings,
        engine,
        read,
        kept_by(lambda sha256: (artifacts / sha256).open("rb")),
        writing_routes(settings, engine),
    )
    with engine.connect() as conn, TestClient(app, follow_redirects=False) as client:
        lab = scenario.a_lab(conn)
        conn.commit()
        yield Site(client, conn, lab, artifacts, maildir)
    engine.dispose()


@pytest.fixture(scope="module")
def site(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """For tests that only look."""
    with fresh(pg, template) as url, a_site(url, tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture
def own_site(db_url: str, tmp_path: Path) -> Iterator[Site]:
    """For a test that changes something."""
    with a_site(db_url, tmp_path) as found:
        yield found


def page(site: Site, path: str) -> str:
    answer = site.client.get(path, follow_redirects=True)
    assert answer.status_code == 200, (path, answer.text)
    return str(answer.text)


def links(base: str, text: str) -> set[str]:
    found = re.findall(r'(?:href|src)="([^"]*)"', text)
    absolute = {
        urljoin(f"http://testserver{base}", unquote(link.replace("&amp;", "&"))) for link in found
    }
    parts = [part for part in map(urlsplit, absolute) if part.netloc == "testserver"]
    return {
        f"{part.path}?{part.query}" if part.path.endswith("values.svg") else part.path
        for part in parts
    }


def crawl(client: TestClient, start: str) -> set[str]:
    """Follow every link from `start`; each must lead somewhere. Of each kind of raw file one is
    fetched."""
    seen: set[str] = set()
    todo, downloaded = {start}, set()
    while todo:
        path = todo.pop()
        seen.add(path)
        if path.startswith("/raw/") and not path.endswith("/"):
            kind = (path[5], path.rsplit("/", 1)[1], path.count("/"))
            if kind in downloaded:
                continue
            downloaded.add(kind)
        answer = client.get(path, follow_redirects=True)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:300]}"
        if answer.headers["content-type"].startswith(("text/html", "image/svg")):
            todo |= links(path, answer.text) - seen
    return seen


def test_every_link_of_every_page_leads_to_a_page(own_site: Site) -> None:
    site = own_site
    for attempt in site.conn.execute(
        sa.text("SELECT outcome FROM attempt WHERE outcome IS NOT NULL")
    ).scalars():
        for file in attempt["files"].values():
            (site.artifacts / file["sha256"]).write_bytes(b"a log\n")
    seen = crawl(site.client, "/")
    assert len(seen) > 150
    kinds = (
        "comparison",
        "bisection",
        "incident",
        "report",
        "order",
        "boot",
        "tree",
        "testbox",
        "kernel",
        "plot",
        "raw",
        "mailbox",
    )
    assert {kind for kind in kinds if not any(path.split("/")[1] == kind for path in seen)} == set()


def test_json_is_what_the_read_models_say(site: Site) -> None:
    asked: list[tuple[str, Callable[[sa.Connection], Any]]] = [
        (
            f"/comparison/c{site.lab.comparison}.json",
            lambda conn: read.table(conn, site.lab.comparison),
        ),
        (
            f"/bisection/b{site.lab.bisection}.json",
            lambda conn: read.bisection(conn, site.lab.bisection),
        ),
        (f"/report/r{site.lab.report}.json", lambda conn: read.report(conn, site.lab.report)),
        ("/tree/mm-demo.json", lambda conn: read.tree(conn, "mm-demo")),
        (
            "/comparisons.json?status=done",
            lambda conn: read.list_comparisons(conn, {"status": "done"}, 100),
        ),
        ("/variant/v1.json", lambda conn: read.variant(conn, 1)),
    ]
    for path, wanted in asked:
        answer = site.client.get(path).json()
        if path.startswith("/comparison/"):
            # from the artifacts, not from the database
            (change,) = answer.pop("kernel_changes")
            assert [one["changes"][0]["metric"] for one in answer.pop("why")] == [make.METRIC]
            assert change["state"] == "not recorded"
        if path.startswith("/bisection/"):
            assert answer.pop("config_changes") == []
        told = json.loads(json.dumps(wanted(site.conn)))
        if path.startswith("/tree/"):
            for key in ("open_tables", "open_bisections"):  # their seconds run
                answer[key], told[key] = ([one["id"] for one in of[key]] for of in (answer, told))
                assert answer[key]
        assert answer == told, path


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/comparison/c99", 404, "comparison c99 does not exist"),
        ("/comparison/99999999999999999999", 400, "is not an id"),
        ("/comparison/b1", 400, "is the id of a bisection"),
        ("/tree/nope", 404, "tree &#39;nope&#39; does not exist"),
        ("/kernel/xyz", 404, "this kernel build does not exist"),
        ("/gizmo/g1", 404, "There are no pages of kind"),
        ("/nothing", 404, "Page /nothing does not exist"),
        ("/a/b/c/d", 404, "This page does not exist"),
        ("/orders?colour=red", 400, "unknown filter"),
        ("/orders?limit=many", 400, "limit must be a number"),
        ("/orders?limit=501", 400, "limit must be a number from 1 to 500"),
        ("/orders.json?limit=10000", 400, "limit must be a number from 1 to 500"),
        ("/orders?after=WzFd%20x", 400, "is not a value of "),
        ("/metrics.json?after=WzFd", 400, "is not a value of "),
        ("/raw/c1/../../etc/passwd", 404, "There are no pages of kind"),
        ("/raw/c1/x1%2F..%2F..%2Fetc%2Fpasswd", 404, "has no file"),
        ("/raw/t1/", 400, "has no raw results"),
        ("/plot/c1/values.svg?metric=x", 404, "has no plot of metric"),
        ("/mailbox/..%2F..%2Fetc", 404, "."),
    ],
)
def test_a_wrong_address_is_answered_by_a_sentence(
    site: Site, path: str, status: int, sentence: str
) -> None:
    answer = site.client.get(path)
    assert (answer.status_code, sentence in answer.text) == (status, True), answer.text


@pytest.mark.parametrize("plural", PLURALS)
def test_a_list_in_pieces_is_the_whole_list(site: Site, plural: str) -> None:
    whole = site.client.get(f"/{plural}.json?limit=500")
    assert "link" not in whole.headers
    pieces, pages, address = [], 0, f"/{plural}.json?limit=2"
    while address:
        answer = site.client.get(address)
        pieces.append(answer.json())
        if plural != "metrics":  # which programs read at this address
            page = site.client.get(address.replace(".json", ""))
            assert ('rel="next"' in page.text) == ("link" in answer.headers)
            assert page.text.count(f'<a href="/{plural}">the first</a>') == (pages > 0)
        address, pages = answer.links.get("next", {}).get("url", ""), pages + 1
    rows, wanted = [row for piece in pieces for row in piece], whole.json()
    for row in (*rows, *wanted):
        row.pop("seconds", None)  # so far
        row.pop("queue_end", None)  # from now
    assert rows == wanted
    assert {len(piece) for piece in pieces[:-1]} <= {2} and len(pieces[-1]) <= 2


def test_a_boot_in_pieces_is_the_whole_boot_and_its_page_stays_short(own_site: Site) -> None:
    site, boot = own_site, own_site.lab.boot
    run = site.conn.execute(
        sa.text("SELECT min(id) FROM run WHERE boot = :boot AND status = 'ok'"), {"boot": boot}
    ).scalar_one()
    make.add_samples(
        site.conn,
        "SELECT :run AS run, 'vmstat.column-' || n / 100 AS metric, n % 100 AS seq, n AS value"
        " FROM generate_series(0, 1299) AS g (n)",
        {"run": run},
    )
    site.conn.commit()
    whole = read.boot(site.conn, boot)
    assert whole["next"] is None
    runs: list[dict[str, list[float]]] = [{} for _ in whole["runs"]]
    sizes, after = [], ""
    while after is not None:
        piece = site.client.get(f"/boot/x{boot}.json", params={"after": after}).json()
        samples = [run["samples"] for run in piece["runs"]]
        sizes.append(sum(len(values) for of_run in samples for values in of_run.values()))
        for mine, more in zip(runs, samples, strict=True):
            for metric, values in more.items():
                mine.setdefault(metric, []).extend(values)
        after = piece["next"]
    assert runs == [run["samples"] for run in whole["runs"]]
    assert sizes[:-1] == [500, 500] and 300 <= sizes[-1] <= 500
    page = site.client.get(f"/boot/x{boot}").text
    assert "vmstat.column-0" in page and "…</td>" in page
    assert len(page) < 60_000


def test_a_wrong_address_of_json_is_answered_by_json(site: Site) -> None:
    assert site.client.get("/comparison/c99.json").json()["detail"] == (
        "comparison c99 does not exist; `swingbot list comparisons` lists all comparisons"
    )


def test_text_from_outside_is_never_markup(own_site: Site) -> None:
    site = own_site
    site.conn.execute(sa.text("UPDATE variant SET subject = :h, author = :h"), {"h": HOSTILE})
    site.conn.execute(sa.text("UPDATE report SET body = :h, subject = :h"), {"h": HOSTILE})
    site.conn.execute(sa.text("UPDATE boot SET reason = :h WHERE outcome <> 'up'"), {"h": HOSTILE})
    site.conn.execute(
        sa.text("UPDATE observation SET skip = :h WHERE skip IS NOT NULL"), {"h": HOSTILE}
    )
    site.conn.execute(sa.text("UPDATE tree SET problem = :h"), {"h": HOSTILE})
    site.conn.execute(
        sa.text(
            "UPDATE testbox SET facts = facts || jsonb_build_object('label', CAST(:h AS text))"
        ),
        {"h": HOSTILE},
    )
    site.conn.commit()
    lab = site.lab
    paths = [
        "/",
        f"/comparison/c{lab.comparison}",
        f"/bisection/b{lab.bisection}",
        f"/incident/i{lab.incident}",
        f"/report/r{lab.report}",
        f"/boot/x{lab.panicked}",
    ]
    for path in [
        *paths,
        "/tree/mm-demo",
        "/testbox/vm-icount",
        f"/plot/b{lab.bisection}.svg",
        "/orders",
        f"/order/o{lab.order}",
    ]:
        text = page(site, path).replace(OWN_SCRIPT, "")
        assert "<script" not in text, path
        assert "&lt;script" in text, path


def test_headers_allow_own_scripts_alone_and_no_guessing(site: Site) -> None:
    for path in (
        "/",
        "/static/style.css",
        "/comparison/c99",
        "/status.json",
        f"/raw/c{site.lab.comparison}/samples.csv",
    ):
        headers = site.client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "script-src 'self';" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        # the search form of every page; nothing may be sent elsewhere
        assert "form-action 'self'" in headers["content-security-policy"]
    assert "<style" not in page(site, "/")
    assert not re.search(r"\sstyle=|\son\w+=", page(site, f"/comparison/c{site.lab.comparison}"))


@pytest.mark.parametrize(
    ("words", "kind", "wanted"),
    [
        ("{culprit}", "commits", "mm/page_alloc: free straight to the buddy lists"),
        ("BUDDY straight", "commits", "mm/page_alloc: free straight to the buddy lists"),
        ("page_alloc batch", "commits", "mm/page_alloc: keep the batch where it was"),
        ("18.1% worse", "mails", "[mm-demo]"),
        ("hackbench-process", "tests", scenario.HACKBENCH_JOB),
        ("hackbench.through", "metrics", scenario.HACKBENCH),
        ("rack", "testboxes", "rack7"),
        ("example.org/linux", "trees", "mm-demo"),
    ],
)
def test_search_finds_what_every_word_matches(
    site: Site, words: str, kind: str, wanted: str
) -> None:
    culprit = read.incident(site.conn, site.lab.incident)["culprit"]["commit"]
    asked = {"q": words.format(culprit=culprit[:7])}
    answer = site.client.get("/search.json", params=asked).json()
    assert wanted in str(answer[kind]), answer
    shown = site.client.get("/search", params=asked).text
    assert wanted in shown
    for path in links("/search", shown):
        assert site.client.get(path).status_code in (200, 302, 303, 307), path


def test_a_search_for_an_id_leads_to_its_page_and_nothing_is_explained(site: Site) -> None:
    answer = site.client.get("/search", params={"q": f" B{site.lab.bisection} "})
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        f"/bisection/b{site.lab.bisection}",
    )
    for wrong, said in (
        ("kind=nope", "kind must be one of commits, mails,"),
        ("after=WzFd", "give kind, too"),
        ("kind=trees&after=WzFd", "is not a value of `next`"),
    ):
        refused = site.client.get(f"/search.json?q=mm&{wrong}")
        assert refused.status_code == 400 and said in refused.text, refused.text
    far = site.client.get("/search?q=mm&kind=commits&after=Wzk5OTk5OTk5OTk5OTk5OTk5OTk5OV0")
    assert far.status_code == 200 and "No more commits" in far.text
    for words in ("c99", "100% of_nothing", "\\", "' OR 1=1 --", "\0", "x" * 5000):
        text = site.client.get("/search", params={"q": words}).text
        assert "Nothing matches" in text or "Type a commit" in text, words
    empty = site.client.get("/search").text
    assert "Type a commit" in empty
    assert "<h2>" not in empty


def test_the_start_page_names_what_got_worse_its_culprit_and_its_mail(site: Site) -> None:
    worse, better = read.status(site.conn)["lately"]
    assert (worse["metric"], worse["direction"], worse["more"]) == (make.METRIC, "worse", 0)
    assert worse["incident"] == f"i{site.lab.incident}"
    assert worse["culprit"]["subject"] == scenario.SUBJECTS[scenario.CULPRIT]
    assert worse["culprit"]["author"] == "A Developer <dev@example.org>"
    assert "by A Developer," in page(site, "/")
    assert (worse["report"], worse["report_state"]) == (f"r{site.lab.report}", "sent")
    assert (better["incident"], better["culprit"], better["state"]) == (None, None, "not_bisected")


def test_an_incident_whose_bisection_a_person_began_is_among_what_changed(own_site: Site) -> None:
    conn, lab = own_site.conn, own_site.lab
    with_swing = read.status(conn)["lately"]
    conn.execute(
        sa.text("UPDATE swing SET bisection = NULL, state = 'refuted' WHERE bisection > 0")
    )
    conn.execute(
        sa.text("UPDATE swing SET state = 'refuted' WHERE metric = :m"), {"m": make.METRIC}
    )
    conn.commit()
    worse, better = read.status(conn)["lately"]
    assert better == with_swing[1]
    assert (worse["id"], worse["incident"]) == (None, f"i{lab.incident}")
    assert (worse["direction"], worse["metric"]) == ("worse", make.METRIC)
    assert worse["culprit"] == with_swing[0]["culprit"] and worse["report"] == f"r{lab.report}"
    assert f'href="/incident/i{lab.incident}"' in page(own_site, "/")


def test_a_comparison_says_what_became_of_each_swing_that_it_raised(own_site: Site) -> None:
    conn, lab = own_site.conn, own_site.lab
    address = f"/comparison/c{lab.comparison}"

    def swings() -> str:
        text = page(own_site, address)
        return text[text.index('id="swings"') :].split("</section>")[0]

    assert "confirmed, its culprit found" in swings() and "not bisected" in swings()
    assert swings().count(f'href="/bisection/b{lab.bisection}"') == 1
    conn.execute(
        sa.text(
            "UPDATE swing SET state = 'refuted', bisection = NULL, proof = :proof,"
            ' evidence = \'{"reason": "four <pairs> agree"}\' WHERE metric = :m'
        ),
        {"proof": lab.comparison, "m": make.METRIC},
    )
    conn.commit()
    assert f'refuted, measured by <a href="{address}"' in swings()
    assert "four &lt;pairs&gt; agree" in swings()
    kernels = ChildKernelRecords(ArtifactDirectory(own_site.artifacts).open)
    text = shown(conn, f"c{lab.comparison}", kernels, counters=False)
    said = text[text.index("Swings that it raised") :].splitlines()
    assert said[1].endswith(f"refuted (c{lab.comparison}): four <pairs> agree"), said
    (row,) = [
        one
        for one in own_site.client.get(f"{address}.json").json()["rows"]
        if one["swing_state"] == "refuted"
    ]
    assert (row["metric"], row["proof"]) == (make.METRIC, f"c{lab.comparison}")


def test_one_change_has_the_number_of_its_incidents_boots_on_every_page(own_site: Site) -> None:
    """The alarm said -18.1 %, the search as much; culprit against parent measured -17.3 %."""
    conn, lab = own_site.conn, own_site.lab
    parent, culprit = conn.execute(
        sa.text(
            "SELECT a.variant, b.variant FROM bisection_point a JOIN bisection_point b"
            " ON b.bisection = a.bisection AND b.idx = a.idx + 1 JOIN incident i"
            " ON i.culprit = b.variant WHERE a.bisection = :b"
        ),
        {"b": lab.bisection},
    ).one()
    measured = conn.execute(
        sa.text(
            "INSERT INTO comparison (tree, kind, boots, status, request_key)"
            " SELECT tree, 'attribute', boots, 'done', 'fresh' FROM comparison WHERE id = :c"
            " RETURNING id"
        ),
        {"c": lab.comparison},
    ).scalar_one()
    for arm, variant in enumerate((parent, culprit)):
        row = {"comparison": measured, "arm": arm, "variant": variant, "name": f"arm {arm}"}
        make._insert(conn, "comparison_arm", row, returning=None)
    spec, unit_job = conn.execute(
        sa.text("SELECT spec, unit_job FROM comparison_row WHERE metric = :m"), {"m": make.METRIC}
    ).one()
    part = {"comparison": measured, "testbox": "vm-icount", "spec": spec}
    make._insert(conn, "comparison_part", part, returning=None)
    testbox = make.Testbox(name="vm-icount", spec=spec, unit_job=unit_job)
    make.a_row(conn, measured, testbox, base=[1000.0] * 3, head=[827.0] * 3)
    for table in ("incident", "sighting"):
        conn.execute(sa.text(f"UPDATE {table} SET comparison = :c"), {"c": measured})
    conn.commit()
    lately = read.status(conn)["lately"][0]
    assert lately["change_pct"] == pytest.approx(-17.3)
    assert (
        "\u221217.3" in page(own_site, "/")
        and "\u221218.1"
        not in page(own_site, "/").split("Recent comparisons")[0].split("Recent bisections")[0]
    )
    where = f"mm-demo/vm-icount/{make.UNIT_JOB}/{make.METRIC}"
    history = own_site.client.get(f"/metric/{where}.json").json()
    assert [one["change_pct"] for one in history["culprits"]] == [pytest.approx(-17.3)]
    assert "-17.3" in own_site.client.get("/feed/tree/mm-demo.atom").text.replace("\u2212", "-")
    # what the search saw says what it is
    assert "in its boots" in page(own_site, "/bisections")
    searched = page(own_site, f"/bisection/b{lab.bisection}")
    assert "in the confirmation boots of this search; its mail has those of" in searched


def test_a_swing_whose_proof_has_no_pair_yet_has_its_alarm_alone(own_site: Site) -> None:
    conn, comparison = own_site.conn, own_site.lab.comparison
    conn.execute(
        sa.text(
            "UPDATE swing SET state = 'suspected', evidence = '{\"alarm\": \"x\"}', proof = :proof,"
            " bisection = NULL WHERE comparison = :c"
        ),
        {"c": comparison, "proof": own_site.lab.running_comparison},
    )
    conn.commit()
    text = page(own_site, f"/comparison/c{comparison}")
    assert f'suspected by <a href="/comparison/c{own_site.lab.running_comparison}"' in text
    row = read.table(conn, comparison)["rows"][0]
    assert row["evidence"] is not None
    assert (row["evidence"]["alarm"], row["evidence"]["reason"]) == ("x", None)


def test_an_order_that_buildbot_has_not_started_is_next_not_running(own_site: Site) -> None:
    conn = own_site.conn
    tree = make.a_tree(conn, "queue")
    running, queued = (
        make.an_order(conn, make.a_variant(conn, tree, n), state="running") for n in (1, 2)
    )
    make.a_dispatch(conn, make.an_attempt(conn, running))
    make.a_dispatch(conn, make.an_attempt(conn, queued), bb_builder=None, bb_number=None)
    conn.commit()
    orders = page(own_site, "/").partition("<h2>Running orders</h2>")[2].partition("</section>")[0]
    table, _, rest = orders.partition("</table>")
    assert f'href="/order/o{running}"' in table
    assert f'href="/order/o{queued}"' not in table
    assert f'Next: <a href="/order/o{queued}"' in rest


def test_a_long_subject_is_cut_where_a_commit_is_named(own_site: Site) -> None:
    site = own_site
    subject = "mm: " + "long " * 99 + "end"
    site.conn.execute(sa.text("UPDATE variant SET subject = :s"), {"s": subject})
    site.conn.commit()
    for path in ("/", f"/comparison/c{site.lab.comparison}", "/orders", "/comparisons"):
        text = page(site, path)
        assert f'title="{subject}"' in text
        assert f">{subject}<" not in text
        assert f"{subject[:99]}…" in text


def test_emulated_testboxes_are_labelled_wherever_their_numbers_show(site: Site) -> None:
    lab = site.lab
    for path in (
        "/",
        f"/comparison/c{lab.comparison}",
        f"/bisection/b{lab.bisection}",
        f"/boot/x{lab.boot}",
        f"/plot/c{lab.comparison}/values.svg?metric={make.METRIC}&unit_job={make.UNIT_JOB}"
        "&testbox=vm-icount",
        "/testbox/vm-icount",
    ):
        assert "emulated; instruction-count clock; 1 vCPU: path length only" in page(site, path), (
            path
        )


def test_a_comparison_shows_counts_and_spread_and_links_each_boot(site: Site) -> None:
    text = page(site, f"/comparison/c{site.lab.comparison}")
    assert 'class="num n" title="9 runs">3</td>' in text, "boots"
    assert "±" in text
    for boot in read.table(site.conn, site.lab.comparison)["boot_list"]:
        assert f'href="/boot/{boot["id"]}"' in text


def test_an_alias_stands_under_its_original_and_has_no_row_or_plot(own_site: Site) -> None:
    site, path = own_site, f"/comparison/c{own_site.lab.comparison}"
    found = read.table(site.conn, site.lab.comparison)["rows"][0]
    before = page(site, path)
    site.conn.execute(
        sa.text(
            "INSERT INTO comparison_row (comparison, testbox, spec, unit_job, metric, verdict,"
            " change_pct, detail) SELECT comparison, testbox, spec, unit_job, :alias, verdict,"
            " change_pct, detail || jsonb_build_object('metric', CAST(:alias AS text),"
            " 'alias_of', metric) FROM comparison_row"
            " WHERE comparison = :id AND metric = :metric AND unit_job = :job AND testbox = "
            ":testbox"
        ),
        {
            "alias": "page-fault.total_ops",
            "id": site.lab.comparison,
            "metric": found["metric"],
            "job": found["unit_job"],
            "testbox": found["testbox"],
        },
    )
    site.conn.commit()
    after = page(site, path)
    assert '<span class="n">= page-fault.total_ops</span>' in after
    assert after.count("page-fault.total_ops") == 1
    assert after.count("<tr") == before.count("<tr")
    rows = json.loads(site.client.get(f"{path}.json").text)["rows"]
    assert "page-fault.total_ops" in [row["metric"] for row in rows]


def test_lists_and_noise_fold_aliases_and_say_what_a_comparison_found(own_site: Site) -> None:
    site = own_site
    make.add_samples(
        site.conn,
        "SELECT run, :alias AS metric, seq, value FROM sample s"
        " JOIN measured_metric m ON m.id = s.measured WHERE m.metric = :metric",
        {"alias": "page-fault.total_ops", "metric": make.METRIC},
    )
    for statement in (
        "INSERT INTO comparison_row (comparison, testbox, spec, unit_job, metric, verdict,"
        " change_pct, detail) SELECT comparison, testbox, spec, unit_job, :alias, verdict,"
        " change_pct, detail || jsonb_build_object('metric', CAST(:alias AS text), 'alias_of',"
        " metric) FROM comparison_row WHERE metric = :metric",
        "INSERT INTO noise_record (testbox, unit_job, metric, detail, through)"
        " SELECT 'vm-icount', :job, m, CAST(:record AS jsonb), 1"
        " FROM unnest(ARRAY[CAST(:metric AS text), :alias, 'perf-stat.instructions']) m",
    ):
        known = {"sd": 0.0031, "df": 12.0}
        parts = dict.fromkeys(("run", "boot", "boot_mean", "pair", "day"), known)
        record = parts | {"layout": {"sd": 0.0, "df": 0}, "boots": 7, "wild_boots": 1}
        given = {
            "alias": "page-fault.total_ops",
            "metric": make.METRIC,
            "job": make.UNIT_JOB,
            "record": json.dumps(record),
        }
        names = {name: value for name, value in given.items() if f":{name}" in statement}
        site.conn.execute(sa.text(statement), names)
    site.conn.commit()
    for path in ("/metrics", "/testbox/vm-icount"):
        text = page(site, path)
        assert '<span class="n">= page-fault.total_ops</span>' in text
        assert text.count("page-fault.total_ops") == 1, path
    text = page(site, "/testbox/vm-icount")
    assert "1 counter<" in text
    measured = re.findall(r'class="break"><a href="(/metric[^"]+)">', text)
    assert len(measured) == 2
    for link in measured:
        answer = site.client.get(html.unescape(link), follow_redirects=True)
        assert (answer.status_code, answer.url.path.count("/vm-icount/")) == (200, 1), link
    by_name = {row["metric"]: row for row in read.list_metrics(site.conn)}
    assert by_name["page-fault.total_ops"]["alias_of"] == make.METRIC
    assert by_name[make.METRIC]["alias_of"] is None
    (listed,) = [row for row in read.list_comparisons(site.conn) if row["status"] == "done"]
    assert (listed["headline"]["metric"], listed["headline"]["verdict"]) == (make.METRIC, "worse")
    assert (listed["worse"], listed["changed"]) == (2, 0), "headlines, neither aliases nor counters"
    text = page(site, "/comparisons")
    said = re.sub(r"<[^>]*>", "", text)
    assert "\u221218.1\u00a0% worse page-fault.per_process_ops" in said
    assert "; 1 more worse" in text


def test_a_feed_has_stable_ids_and_what_strangers_wrote_is_text(own_site: Site) -> None:
    site = own_site
    site.conn.execute(sa.text("UPDATE variant SET subject = :h"), {"h": HOSTILE + "\x08 & \u202e"})
    site.conn.commit()
    answer = site.client.get("/feed/tree/mm-demo.atom")
    assert answer.headers["content-type"].startswith("application/atom+xml")
    atom = "{http://www.w3.org/2005/Atom}"
    feed = Xml.fromstring(answer.content)
    entries = feed.findall(f"{atom}entry")
    ids = {entry.findtext(f"{atom}id"): entry for entry in entries}
    assert ids.keys() == {
        "tag:lab.example.org,2025:swing/1",
        "tag:lab.example.org,2025:swing/2",
        f"tag:lab.example.org,2025:mail/{site.lab.report}",
    }
    found = ids["tag:lab.example.org,2025:swing/1"]
    assert HOSTILE in (found.findtext(f"{atom}title") or "")
    (link,) = found.findall(f"{atom}link")
    assert link.get("href") == f"http://lab.example.org:8010/incident/i{site.lab.incident}"
    times = [entry.findtext(f"{atom}updated") or "" for entry in entries]
    assert times == sorted(times, reverse=True)
    assert feed.findtext(f"{atom}updated") == times[0]
    assert answer.content == site.client.get("/feed/tree/mm-demo.atom").content
    for kind, name in (("tree", "mm-demo"), ("testbox", "vm-icount")):
        address = f"/feed/{kind}/{name}.atom"
        assert page(site, f"/{kind}/{name}").count(f'href="{address}"') == 2
        assert site.client.get(address).status_code == 200
    for path in ("/feed/tree/nope.atom", "/feed/tree/mm-demo", "/feed/boot/x1.atom"):
        assert site.client.get(path).status_code == 404, path


def test_the_feed_of_a_testbox_says_when_it_was_lost_and_returned(own_site: Site) -> None:
    site = own_site
    for was, state in (("running", "lost"), ("lost", "idle"), ("idle", "booting")):
        site.conn.execute(
            sa.text(
                "INSERT INTO testbox_event (testbox, was, state, why)"
                " VALUES ('rack7', :was, :state, 'the switch')"
            ),
            {"was": was, "state": state},
        )
    site.conn.commit()
    text = site.client.get("/feed/testbox/rack7.atom").text
    assert text.count("<entry>") == 2
    assert "running -&gt; lost" in text
    assert "lost -&gt; idle" in text


def test_running_things_look_again_and_finished_ones_do_not(site: Site) -> None:
    running = f"/bisection/b{site.lab.running_bisection}"
    for path, seconds in (
        (running, "10"),
        (f"{running}?reload=off", None),  # as the link on that page asks
        (f"/bisection/b{site.lab.bisection}", None),
    ):
        assert site.client.get(path).headers.get("refresh") == seconds, path
    assert 'href="?reload=off"' in page(site, running)
    text = page(site, f"/comparison/c{site.lab.running_comparison}")
    assert "2 of 10 boots" in text
    assert "about" in text


def test_hundreds_of_numbers_of_monitors_do_not_hide_the_benchmarks_own(own_site: Site) -> None:
    site = own_site
    make.add_samples(
        site.conn,
        "SELECT r.id AS run, 'buddyinfo.zone.' || n AS metric, 0 AS seq, n AS value"
        " FROM run r, generate_series(100, 399) AS n",
    )
    site.conn.commit()
    text = page(site, f"/boot/x{site.lab.boot}")
    assert make.METRIC in text
    assert "buddyinfo.zone.399" not in text
    assert "295 more metrics" in text
    assert "buddyinfo" not in page(site, f"/comparison/c{site.lab.comparison}")
    assert "buddyinfo.zone.399" in site.client.get(f"/raw/x{site.lab.boot}/samples.csv").text


def test_an_order_links_its_buildbot_build_and_shows_the_end_of_its_log_without_controls(
    own_site: Site,
) -> None:
    site = own_site
    order = read.boot(site.conn, site.lab.panicked)["order"]
    log = read.order(site.conn, order)["attempts"][0]["files"]["console.log"]["sha256"]
    (site.artifacts / log).write_bytes(
        b"x" * 100_000 + b"\n\x1b[31mKernel panic\x1b[0m \xff <b>\r\n"
    )
    text = page(site, f"/order/{order}")
    assert 'href="http://127.0.0.1:8011/#/builders/2/builds/' in text
    assert "\nKernel panic \ufffd &lt;b&gt;" in text
    assert len(text) < 60_000


def test_raw_results_come_back_byte_for_byte(own_site: Site) -> None:
    site = own_site
    boot = f"x{site.lab.boot}"
    files = {file["path"]: file["sha256"] for file in read.raw_manifest(site.conn, boot)["files"]}
    (site.artifacts / files["console.log"]).write_bytes(b"<html>\x00 not html")
    answer = site.client.get(f"/raw/{boot}/console.log")
    assert answer.content == b"<html>\x00 not html"
    assert answer.headers["content-type"].startswith("text/plain")
    assert "not in the store" in page(site, f"/raw/{boot}/")
    gone = site.client.get(f"/raw/{boot}/results.tar")
    assert gone.status_code == 404
    assert "no longer in the artifact store" in gone.text


def test_the_csv_holds_every_sample_of_both_sides(site: Site) -> None:
    answer = site.client.get(f"/raw/c{site.lab.comparison}/samples.csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 2 * 3 * 3 * 3  # sides, boots, runs, metrics
    assert {row["side"] for row in rows} == {"base", "head"}
    kept = {float(row["value"]) for row in rows}
    assert kept == set(
        site.conn.execute(
            sa.text("SELECT value FROM sample s JOIN run r ON r.id = s.run WHERE r.boot <= 6")
        ).scalars()
    )


def test_the_mailbox_shows_mails_latest_first_and_survives_hostile_ones(own_site: Site) -> None:
    site = own_site
    assert "It is empty" in page(site, "/mailbox")
    new = site.maildir / "new"
    new.mkdir(parents=True)
    (new / "1.first").write_bytes(
        b"Subject: one\nFrom: a@b\nDate: Mon, 02 Mar 2026 09:00:00 +0000\n\nhello <b>\n"
    )
    (new / "2.second:2,S").write_bytes(
        b"Subject: =?utf-8?q?two_=C3=A9?=\nDate: rubbish\nContent-Type: text/plain; "
        b"charset=klingon\n\n\xff\xfe\n"
    )
    (new / "3.third").write_bytes(f"Subject: {HOSTILE}\nFrom: <<<>>>@@\nTo: =?x\n\n".encode())
    text = page(site, "/mailbox")
    assert text.index("&lt;script") < text.index("two é") < text.index(">one<")
    assert "hello &lt;b&gt;" in page(site, "/mailbox/1.first")
    assert page(site, "/mailbox/2.second")
    assert sorted(file.name for file in new.iterdir()) == ["1.first", "2.second:2,S", "3.third"]
    worst = b"Subject: " + b"=?a?q? " * 9000 + b"\nContent-Type: a/b;" + b';x="' * 9000
    (new / "4.fourth").write_bytes(worst + b"\nTo: " + b"<a@" * 9000 + b"\n\nx\n")
    start = time.process_time()
    assert page(site, "/mailbox") and page(site, "/mailbox/4.fourth")
    assert time.process_time() - start < 1, "16 KiB of such a Content-Type took 3 s"


def test_healthz_tells_whether_the_database_answers(engine: sa.Engine, tmp_path: Path) -> None:
    settings = load(environ={"SWINGBOT_PATHS_STATE": str(tmp_path)})
    nowhere = make_engine(f"postgresql://none@/nothing?host={tmp_path}")
    answers = []
    for one in (engine, nowhere):
        with TestClient(Starlette(routes=health(settings, one).routes())) as client:
            answers.append(client.get("/healthz"))
    assert [answer.status_code for answer in answers] == [200, 503]
    assert [answer.json()["status"] for answer in answers] == ["ok", "failed"]
    assert answers[1].json()["reason"].startswith("the database does not respond: ")


def test_a_page_without_its_database_is_one_sentence(tmp_path: Path) -> None:
    nowhere = make_engine(f"postgresql://none@/nothing?host={tmp_path}")
    app = make_app(
        Settings(maildir=tmp_path),
        nowhere,
        read,
        kept_by(lambda sha256: (tmp_path / sha256).open("rb")),
    )
    with TestClient(app) as client:
        answer = client.get("/")
    assert answer.status_code == 503
    assert "database is temporarily unavailable" in answer.text


def test_a_page_cannot_write(engine: sa.Engine) -> None:
    with (
        SnapshotReader(engine, read).reading() as conn,
        pytest.raises(sa.exc.DBAPIError, match="read-only"),
    ):
        make.a_tree(conn)


def test_an_empty_database_has_pages_too(engine: sa.Engine, tmp_path: Path) -> None:
    with TestClient(
        make_app(
            Settings(maildir=tmp_path),
            engine,
            read,
            kept_by(lambda sha256: (tmp_path / sha256).open("rb")),
        )
    ) as client:
        for path in (
            "/",
            *(f"/{plural}" for plural in PLURALS),
            "/status.json",
        ):
            answer = client.get(path)
            assert answer.status_code == 200, path
            if path[1:] in PLURALS:
                why = re.search(r"<p>None yet\. (.{20,})</p>", answer.text)
                assert why, f"{path} does not say why it is empty"
        assert "None match these filters" in client.get("/orders?state=done").text


def test_pages_of_what_the_brain_really_did(db_url: str, tmp_path: Path) -> None:
    """Not rows of builders: a branch that moves, found, bisected and mailed by the real
    decisions, then looked at."""
    settings = load(environ=brain_environment(tmp_path / "state", db_url))
    make_fakelinux(tmp_path / "linux", [])
    engine = make_engine(db_url)
    with running_smtpd(settings):
        brain = make_brain(settings, engine, tmp_path / "linux")
        brain.watch(brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main"))
        made = add_commits(
            brain.repo,
            [
                FakeCommit(),
                FakeCommit(kind="broken"),
                FakeCommit(),
                FakeCommit(speed=88),
                FakeCommit(),
            ],
        )
        brain.poll()
        brain.run()
    app = make_app(
        settings,
        engine,
        read,
        kept_by(ArtifactDirectory(settings.artifacts).open),
        writing_routes(settings, engine),
    )
    with TestClient(app, follow_redirects=False) as client:
        crawl(client, "/")
        bisection = client.get("/bisection/b1").text
        assert f'<code title="{made[3]}">' in bisection
        assert "this commit alone is responsible" in bisection
        assert "does not build" in bisection
        (report,) = client.get("/reports.json").json()
        assert "12.0% worse" in client.get(f"/report/{report['id']}").text
        assert "12.0% worse" in client.get("/mailbox").text
    engine.dispose()
