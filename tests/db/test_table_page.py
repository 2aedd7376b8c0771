"""The page of a table, its plots, downloads and lists, asked as a browser asks."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from swingbot.app.sheets import printed
from swingbot.web.app import make_app
from swingbot_db import read
from swingbot_db.engine import make_engine
from tests import builders as make
from tests.db.test_web import HOSTILE, OWN_SCRIPT, Settings
from tests.fakes.kernels import kept_by
from tests.fakes.pages import no_artifact, writing_routes
from tests.tables import COUNTER, JOBS, METRICS, an_experiment

Q = f"metric={METRICS[0]}&unit_job={JOBS[0]}&testbox=vm-icount"


@pytest.fixture
def client(db_url: str, tmp_path: Path) -> Iterator[TestClient]:
    engine, settings = make_engine(db_url), Settings(maildir=tmp_path / "maildir")
    routes = writing_routes(settings, engine)
    app = make_app(
        settings, engine, read, kept_by(lambda sha256: (tmp_path / sha256).open("rb")), routes
    )
    with TestClient(app, follow_redirects=False) as found:
        yield found
    engine.dispose()


def test_rows_come_in_pieces_and_all_of_them(client: TestClient, conn: sa.Connection) -> None:
    made = an_experiment(conn, kernels=3, boots=2)
    conn.execute(
        sa.text(
            "INSERT INTO comparison_row (comparison, testbox, spec, unit_job, metric, against, arm,"
            " reference, verdict, change_pct, detail) SELECT comparison, testbox, spec, unit_job,"
            " r.metric || n, against, arm, reference, (ARRAY['worse', 'same', 'unclear'])[1 + n %"
            " 3], v, detail || jsonb_build_object('metric', r.metric || n, 'change_pct', v,"
            " 'verdict', (ARRAY['worse', 'same', 'unclear'])[1 + n % 3], 'class', 'monitor',"
            " 'headline', false) FROM (SELECT * FROM comparison_row LIMIT 1) r,"
            " LATERAL (SELECT n, nullif(n % 7, 0) / 3.0::float AS v"
            " FROM generate_series(1, 1200) n) g"
        )
    )
    conn.commit()
    address = f"/experiment/e{made.id}.json"
    whole = read.table(conn, f"e{made.id}")["rows"]
    assert len(whole) > 1200
    pieces, after = [], ""
    while after is not None:
        document = client.get(address, params={"after": after}).json()
        pieces.append(document["rows"])
        after = document["next"]
    assert [len(piece) for piece in pieces] == [500, 500, len(whole) - 1000]
    assert [row["metric"] for piece in pieces for row in piece] == [row["metric"] for row in whole]

    listed, link = [], f"/experiment/e{made.id}"
    while link:
        text = page(client, link)
        listed.append(len(re.findall(r'<tr class="counter">', text)))
        link = next((one for one in links(text) if "?after=" in one), "")
    assert len(listed) == 3 and sum(listed) >= 1200

    lines = page(client, f"/experiment/e{made.id}/table.csv").splitlines()
    whole_csv = printed(conn, f"e{made.id}", "csv", no_artifact).splitlines()
    assert lines[0] == whole_csv[0]
    assert sorted(lines) == sorted(whole_csv)


@pytest.mark.parametrize("after", ["x", "W10", "WzFd", "a" * 9000, "W251bGxd", "é"])
def test_an_invalid_cursor_is_refused(client: TestClient, conn: sa.Connection, after: str) -> None:
    made = an_experiment(conn, kernels=2, boots=1)
    for suffix in ("", ".json"):
        answer = client.get(f"/experiment/e{made.id}{suffix}", params={"after": after})
        assert answer.status_code == 400, answer.text
        assert "is not a value of" in answer.text


def page(client: TestClient, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.text)
    return str(answer.text)


def links(text: str) -> list[str]:
    return [unescape(link) for link in re.findall(r'(?:href|src)="([^"]*)"', text)]


def test_every_cell_leads_to_its_boots_and_every_link_somewhere(
    client: TestClient, conn: sa.Connection
) -> None:
    made = an_experiment(
        conn, kernels=5, testboxes=2, boots=3, metrics=2, against=("above", "first")
    )
    text = page(client, f"/experiment/e{made.id}")
    anchors = set(re.findall(r' id="([^"]+)"', text))
    cells = [link[1:] for link in links(text) if link.startswith("#b")]
    assert len(cells) >= 2 * 2 * 5 and set(cells) <= anchors, "kernel x testbox x metric"
    elsewhere = ("/mailbox", "/install")
    for link in {link for link in links(text) if link.startswith("/") and link not in elsewhere}:
        answer = client.get(link, follow_redirects=True)
        assert answer.status_code == 200, (link, answer.text[:300])
        where = urlsplit(link).fragment
        assert not where or f'id="{where}"' in answer.text
    (boots,) = re.findall(r'id="b2-0">(.*?)</td>', text)
    own = {
        row["id"]
        for row in read.table(conn, made.id)["boot_list"]
        if (row["arm"], row["testbox"]) == (2, "lkp-box-1")
    }
    assert set(re.findall(r"/boot/(x\d+)", boots)) == own and len(own) == 3


def test_the_numbers_are_those_of_the_json(client: TestClient, conn: sa.Connection) -> None:
    made = an_experiment(conn, kernels=4, boots=4)
    facts = client.get(f"/experiment/e{made.id}.json").json()
    rows = {row["arm"]: row for row in facts["rows"] if row["metric"] == METRICS[0]}
    assert [rows[arm]["verdict"] for arm in (1, 2, 3)] == ["same", "worse", "better"]
    text = page(client, f"/experiment/e{made.id}")
    for arm in (2, 3):
        shown = f"{rows[arm]['change_pct']:+.1f}\u00a0%".replace("-", "\u2212")
        assert f'class="change {rows[arm]["verdict"]}">{shown}<' in text
    assert COUNTER in text and f"metric={COUNTER}" in text, "counters have pages of their own"
    assert "1 worse" in text and "1 better" in text


def test_a_page_of_one_metric_has_its_table_and_its_plots(
    client: TestClient, conn: sa.Connection
) -> None:
    made = an_experiment(conn, kernels=3, boots=3)
    text = page(client, f"/experiment/e{made.id}?metric={COUNTER}")
    assert f"/plot/e{made.id}/values.svg?metric={COUNTER}" in unescape(text)
    assert METRICS[0] not in text.split("<main")[1]


def test_what_runs_is_live_and_shows_its_runs_before_anything_is_judged(
    client: TestClient, conn: sa.Connection
) -> None:
    made = an_experiment(conn, kernels=3, boots=2, status="running", looks=2)
    make.an_order(conn, made.kernels[1], made.testboxes[0], k=9, state="ready", comparison=made.id)
    conn.execute(sa.text("UPDATE comparison SET boots = 5"))
    text = page(client, f"/experiment/e{made.id}")
    assert "This page reloads every 10 s" in text and ">running<" in text
    assert "3 of 3 builds, 6 of 15 boots" in text and "already known: 3 kernels, 0 boots" in text
    assert "2 of 5" in text, "boots of each kernel"
    assert "2 times" in text and "it was extended by hand" in text
    (plot,) = {link for link in links(text) if link.startswith("/plot/")}
    assert METRICS[0] in plot and client.get(plot).text.count("<circle") == 3 * 2 * 3
    make.a_kernel_build(conn, make.a_variant(conn, make.a_tree(conn, "other"), 1))
    status = client.get("/status.json").json()
    assert [one["id"] for one in status["tables"]] == [f"e{made.id}"]
    assert f"/experiment/e{made.id}" in page(client, "/")


def test_a_row_whose_commit_is_the_culprit_of_an_incident_leads_to_it(
    client: TestClient, conn: sa.Connection
) -> None:
    made = an_experiment(conn, kernels=3, boots=2)
    add = "INSERT INTO incident (tree, culprit) SELECT tree, id FROM variant WHERE id = :v"
    conn.execute(sa.text(add), {"v": made.kernels[2].variant})
    facts = client.get(f"/experiment/e{made.id}.json").json()
    assert [arm["incident"] for arm in facts["arms"]] == [None, None, "i1"]
    text = page(client, f"/experiment/e{made.id}")
    assert re.search(r'culprit of</span> <a[^>]* href="/incident/i1"', text), text
    assert text.count("culprit of</span>") == 1
    mail = page(client, f"/experiment/e{made.id}/mail.txt")
    assert mail.count("(culprit of incident i1)") == 1


@pytest.mark.parametrize("status", ["waiting", "failed", "cancelled"])
def test_without_rows_the_page_says_how_it_stands(
    client: TestClient, conn: sa.Connection, status: str
) -> None:
    made = an_experiment(conn, kernels=2, boots=2, status=status, reason="the `lab` burnt down")
    text = page(client, f"/experiment/e{made.id}")
    assert f">{status}<" in text and "the <code>lab</code> burnt down" in text
    assert ("This page reloads every 10 s" in text) == (status == "waiting")
    assert "table.csv" not in text


def test_an_arm_that_does_not_build_says_why_and_where_the_log_is(
    client: TestClient, conn: sa.Connection
) -> None:
    made = an_experiment(conn, kernels=4, boots=2, unbuildable=(2,))
    text = page(client, f"/experiment/e{made.id}")
    assert "not built, mm/page_alloc.c:12:1: error: expected &#39;;&#39;" in text
    assert f"/kernel/{made.kernels[2].build_key}" in text
    assert "not built: mm/page_alloc.c:12:1" in page(client, f"/plot/e{made.id}/values.svg?{Q}")


def test_a_large_table_is_a_page_of_some_hundred_kib_with_some_of_its_plots(
    client: TestClient, conn: sa.Connection
) -> None:
    made = an_experiment(conn, kernels=40, testboxes=6, boots=1)
    text = page(client, f"/experiment/e{made.id}")
    assert len(text) < 300 << 10
    assert (text.count('class="plot field"'), text.count(">Plot of every run")) == (1, 5)
    assert len(client.get(f"/plot/e{made.id}/values.svg?{Q}").text) < 100 << 10


def test_more_cells_than_fit_are_tables_on_pages_of_their_own(
    client: TestClient, conn: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swingbot.web.pages.table._TABLE_CELLS", 10)
    monkeypatch.setattr("swingbot.web.pages.table._BOOTS", 10)
    made = an_experiment(conn, kernels=4, testboxes=2, boots=2, metrics=2)
    text = page(client, f"/experiment/e{made.id}")
    assert "<svg" not in text and text.count("the row above") == 2
    assert f'href="/kernel/{made.kernels[0].build_key}">2 boots' in text
    for metric in METRICS:
        (link,) = {
            one for one in links(text) if one.startswith("/experiment/") and f"={metric}&" in one
        }
        assert page(client, link).count('class="plot field"') == 2


def test_names_from_outside_are_never_markup(client: TestClient, conn: sa.Connection) -> None:
    names = (HOSTILE, "a\u202eb\x07c & <b>", "=cmd()|'x'!A1", "x" * 200)
    made = an_experiment(conn, kernels=5, boots=2, names=names, unbuildable=(4,), reason=HOSTILE)
    conn.execute(sa.text("UPDATE variant SET subject = :h"), {"h": HOSTILE})
    conn.execute(
        sa.text("UPDATE kernel_build SET errors = ARRAY[:h] WHERE errors <> '{}'"), {"h": HOSTILE}
    )
    conn.execute(
        sa.text(
            "UPDATE comparison_row"
            " SET detail = detail || jsonb_build_object('reason', CAST(:h AS text))"
        ),
        {"h": HOSTILE},
    )
    conn.execute(
        sa.text("UPDATE boot SET outcome = 'panicked', reason = :h WHERE k = 1"), {"h": HOSTILE}
    )
    for path in (
        f"/experiment/e{made.id}",
        f"/experiment/e{made.id}?metric={METRICS[0]}",
        f"/plot/e{made.id}/values.svg?{Q}",
        "/experiments",
    ):
        text = page(client, path).replace(OWN_SCRIPT, "")
        assert "<script" not in text and "<b>" not in text, path
        assert "&lt;script" in text, path
        assert not re.search(r"\sstyle=|\son\w+=", text) or path.startswith("/plot")
        if path.startswith("/plot"):
            ElementTree.fromstring(text)


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/experiment/e99", 404, "experiment e99 does not exist"),
        ("/experiment/e99.json", 404, "experiment e99 does not exist"),
        ("/experiment/c1", 400, "is the id of a comparison"),
        ("/experiment/e99999999999999999999", 400, "is not an id"),
        ("/experiment/e999999999999999999", 404, "does not exist"),
        ("/experiment/e1?metric=no.such", 404, "has no metric"),
        ("/experiment/e1?metric=" + "x" * 400, 400, "at most 300 characters"),
        ("/experiment/e1?metric=%00", 400, "characters"),
        ("/plot/e1/values.svg", 404, "has no plot"),
        ("/plot/c1/values.svg", 404, "comparison c1 does not exist, but e1 does"),
        (f"/plot/e1/values.svg?{Q}&against=pair", 404, "has these references: above"),
        (f"/plot/e1/values.svg?{Q}x", 404, "has no plot"),
        ("/experiment/e1/pdf.txt", 404, "Tables are text.txt, mail.txt"),
        ("/experiment/c1/table.csv", 400, "is the id of a comparison"),
        ("/experiment/e9/table.csv", 404, "experiment e9 does not exist"),
        ("/gizmo/e1/lkp.txt", 404, "Kinds with tables are"),
        ("/experiments?colour=red", 400, "unknown filter"),
    ],
)
def test_a_wrong_address_is_answered_by_a_sentence(
    client: TestClient, conn: sa.Connection, path: str, status: int, sentence: str
) -> None:
    an_experiment(conn, kernels=2, boots=1)
    answer = client.get(path)
    assert (answer.status_code, sentence in unescape(answer.text)) == (status, True), answer.text


def test_the_number_of_a_comparison_is_no_experiment(
    client: TestClient, conn: sa.Connection
) -> None:
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    base, head = (make.a_kernel(conn, tree, number) for number in (1, 2))
    number = make.a_comparison(conn, tree, base, head, [testbox])
    answer = client.get(f"/experiment/e{number}")
    assert answer.status_code == 404 and f"but c{number} does" in answer.text


def test_downloads_are_what_the_command_line_prints(
    client: TestClient, conn: sa.Connection
) -> None:
    made = an_experiment(conn, kernels=3, boots=4)
    answer = client.get(f"/experiment/e{made.id}/table.csv")
    assert answer.headers["content-disposition"] == f'attachment; filename="e{made.id}.csv"'
    table = [row for row in csv.DictReader(io.StringIO(answer.text)) if row["metric"] == METRICS[0]]
    assert [row["verdict"] for row in table] == ["", "same", "worse"]
    for form in ("changelog", "mail", "lkp", "text"):
        assert METRICS[0] in page(client, f"/experiment/e{made.id}/{form}.txt")
    assert " Performance counter stats for" in page(client, f"/experiment/e{made.id}/perf.txt")
    waiting = an_experiment(conn, kernels=2, boots=1, status="waiting", tree="other")
    answer = client.get(f"/experiment/e{waiting.id}/mail.txt")
    assert answer.status_code == 404 and "has no rows yet" in answer.text


def test_columns_beside_the_numbers_are_shown(client: TestClient, conn: sa.Connection) -> None:
    made = an_experiment(conn, kernels=2, boots=2, columns=[COUNTER])
    text = page(client, f"/experiment/e{made.id}")
    assert f'<th class="num">{COUNTER.partition(".")[2]}</th>' in text
    samples = read.samples_of_table(conn, made.id, [COUNTER])
    mean = sum(row["value"] for row in samples if row["arm"] == 1) / (2 * 3)
    assert f'class="num">{mean:,.0f}</td>'.replace(",", "\u202f") in text


def test_lists_name_experiments_and_orders_name_who_wants_them(
    client: TestClient, conn: sa.Connection
) -> None:
    made = an_experiment(conn, kernels=4, boots=4)
    (row,) = client.get("/experiments.json").json()
    assert (row["id"], row["worse"], row["better"]) == (f"e{made.id}", 1, 1)
    text = page(client, "/experiments?status=done")
    assert ">worse</span>" in text and "; 1 better" in text
    assert client.get("/experiments.json?status=failed").json() == []
    assert client.get("/experiments.json?tree=nope").status_code == 400
    order: dict[str, Any] = read.order(conn, read.table(conn, made.id)["orders"][0]["id"])
    assert order["wanted_by"] == [f"e{made.id}"]
    tree = client.get(f"/tree/{row['tree']}.json").json()
    assert [one["id"] for one in tree["tables"]] == [f"e{made.id}"]
    assert f'href="/experiment/e{made.id}"' in page(client, f"/tree/{row['tree']}")
    assert f'href="/experiment/e{made.id}"' in page(client, f"/order/{order['id']}")
    conn.execute(sa.text("UPDATE comparison SET status = 'failed', reason = 'x', ended_at = now()"))
    (problem,) = [
        one for one in client.get("/status.json").json()["problems"] if "e1" in one["text"]
    ]
    assert problem["link"] == f"/experiment/e{made.id}"
