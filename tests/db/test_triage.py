"""One list to triage: what each incident changed, on what, by whom; filters, order, pages; and what
looks fixed because later tips are back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from starlette.testclient import TestClient

from swingbot.app.cli import main
from swingbot.app.settings import load
from swingbot.app.web import service
from swingbot.core.stats.findings import look
from swingbot_db import read
from swingbot_db.engine import make_engine
from swingbot_jobs import codec
from tests import builders as make
from tests.database import fresh
from tests.fakes.mail import brain_environment
from tests.postgres import Server
from tests.sixty_days import DAYS, SWING_DAY, TREES, Past, sixty_days

BACK_DAY = 52  # from this tip on the level is as before


@dataclass(frozen=True, kw_only=True)
class Lab:
    """Sixty days in a database of this file; its tests take back what they write."""

    url: str
    engine: sa.Engine
    past: Past
    back: str  # the commit since which the tips of the first tree are back


@pytest.fixture(scope="module")
def lab(pg: Server, template: str) -> Iterator[Lab]:
    with fresh(pg, template) as url:
        engine = make_engine(url)
        with engine.begin() as conn:
            past = sixty_days(conn)
            back = recover(conn, past)
        yield Lab(url=url, engine=engine, past=past, back=back)
        engine.dispose()


@pytest.fixture
def conn(lab: Lab) -> Iterator[sa.Connection]:
    with lab.engine.connect() as conn:
        yield conn
        conn.rollback()


def recover(conn: sa.Connection, past: Past, level: float = 250_000.0) -> str:
    """The history of the branch's tips, as the service keeps it: the swing, then a step to `level`
    at `BACK_DAY`, whose commit is returned."""
    kernels = past.kernels[TREES[0]]
    levels = [
        (250_000.0 if day < SWING_DAY else 235_500.0 if day < BACK_DAY else level)
        * (1 + 0.0005 * make.spread(day))
        for day in range(DAYS + 1)
    ]
    findings = codec.plain(look(levels))
    tips = {
        str(day): {"commit": kernel.commit, "comparison": "c1"}
        for day, kernel in enumerate(kernels)
    }
    (upto,) = conn.execute(sa.text("SELECT max(id) FROM comparison WHERE kind = 'watch'")).one()
    row = {
        "tree": past.trees[TREES[0]],
        "testbox": "vm-icount",
        "unit_job": make.UNIT_JOB,
        "metric": make.METRIC,
        "upto": upto,
        "findings": findings | {"tips": tips},
    }
    conn.execute(sa.text("DELETE FROM tree_history"))
    make._insert(conn, "tree_history", row, returning=None)
    return kernels[BACK_DAY].commit


def listed(conn: sa.Connection, **filters: str) -> list[str]:
    return [row["id"] for row in read.list_incidents(conn, filters)]


def test_a_line_says_what_changed_where_by_whom_and_who_decided(
    conn: sa.Connection, lab: Lab
) -> None:
    event = {"incident": lab.past.incident, "act": "reopen", "who": "ada@lab"}
    make._insert(conn, "incident_event", event, returning=None)
    held, sent = read.list_incidents(conn)
    assert (sent["id"], sent["metric"], sent["testboxes"]) == ("i1", make.METRIC, ["vm-icount"])
    assert sent["change_pct"] == pytest.approx(-5.8), "of the incident's boots, not of the alarm"
    assert (sent["direction"], sent["owner"], sent["more"]) == ("worse", "ada@lab", 0)
    assert sent["culprit"]["author"] == "A Developer <dev@example.org>"
    assert (held["owner"], held["looks_fixed"]) == (None, None)


def test_incidents_are_filtered_sorted_and_paged(conn: sa.Connection) -> None:
    assert listed(conn) == ["i2", "i1"]
    assert listed(conn, sort="oldest") == listed(conn, sort="change") == ["i1", "i2"]
    assert listed(conn, testbox="vm-icount") == ["i1"]
    assert listed(conn, direction="worse,better", author="DEV@example") == ["i1"]
    assert listed(conn, metric="nothing.like.it") == listed(conn, test="nothing") == []
    (effect,) = read.list_incidents(conn, {"testbox": "vm-icount"})
    test = f"nothing,{effect['unit_job'][1:]}"
    assert listed(conn, test=test, since="2001-01-02", testbox="vm-icount") == ["i1"]
    assert listed(conn, test=test) == ["i2", "i1"]
    first = read.list_incidents(conn, {"sort": "change"}, 1)
    assert [row["id"] for row in first] == ["i1"] and first.next
    second = read.list_incidents(conn, {"sort": "change"}, 1, first.next)
    assert [row["id"] for row in second] == ["i2"] and second.next is None


@pytest.mark.parametrize(
    ("plural", "filters", "says"),
    [
        (
            "bisections",
            {"status": "nope"},
            "status cannot be 'nope'; it is one of running, culprit",
        ),
        ("bisections", {"origin": "asked,nobody"}, "origin cannot be 'nobody'"),
        ("incidents", {"status": "colourful"}, "it is one of open, expected, fixed"),
        ("incidents", {"sort": "colour"}, "it is one of newest, oldest, change, author"),
        ("incidents", {"direction": "up"}, "it is one of worse, better, changed"),
        ("comparisons", {"kind": "proof"}, "kind cannot be 'proof'"),
        ("comparisons", {"tree": "linux"}, "tree cannot be 'linux'; it is one of linux-next"),
        ("comparisons", {"testbox": "bare1,bare9"}, "testbox cannot be 'bare9'"),
        ("orders", {"state": "over"}, "state cannot be 'over'; it is one of waiting"),
        ("reports", {"state": "open"}, "state cannot be 'open'"),
        ("testboxes", {"state": "idle"}, "it is one of active, drained, quarantined, gone"),
        ("trees", {"state": "gone"}, "it is one of watched, removed"),
        ("metrics", {"testbox": "bare9"}, "testbox cannot be 'bare9'"),
    ],
)
def test_a_value_that_a_filter_cannot_have_is_an_error_with_those_that_it_can(
    conn: sa.Connection, plural: str, filters: dict[str, str], says: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        getattr(read, f"list_{plural}")(conn, filters)


def test_every_value_that_a_list_offers_is_accepted(conn: sa.Connection) -> None:
    offered = 0
    for plural in read.LISTS:
        for name, values in read.list_choices(conn, plural).items():
            for value in values:
                getattr(read, f"list_{plural}")(conn, {name: value})
                offered += 1
    assert offered > 50


def test_an_incident_looks_fixed_once_later_tips_are_back(conn: sa.Connection, lab: Lab) -> None:
    back = lab.back
    fix = read.list_incidents(conn, {"status": "open", "testbox": "vm-icount"})[0]["looks_fixed"]
    assert fix is not None and (fix["commit"], fix["subject"]) == (
        back,
        f"mm: commit {BACK_DAY} of {TREES[0]}",
    )
    assert fix["change_pct"] == pytest.approx(6.2, abs=0.3)
    assert read.incident(conn, "i1")["looks_fixed"] == fix
    problems = [one["text"] for one in read.status(conn)["problems"]]
    assert any(f"incident i1 looks fixed since {back[:12]} (+6" in text for text in problems)
    # a person has named the fix: nothing is asked any more
    conn.execute(sa.text("UPDATE incident SET fixed_by = :c WHERE id = 1"), {"c": back})
    assert read.incident(conn, "i1")["looks_fixed"] is None


def test_the_start_page_reads_all_histories_once(conn: sa.Connection) -> None:
    """What it costs grows with them: 0.4 ms for each."""
    statements: list[str] = []

    def note(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    sa.event.listen(conn, "before_cursor_execute", note)
    status = read.status(conn)
    assert sum("v_tree_findings" in statement for statement in statements) == 1
    assert [one["looks_fixed"] is not None for one in status["incidents"]] == [False, True]


@pytest.mark.parametrize("level", [237_000.0, 220_000.0])
def test_half_a_recovery_is_none(conn: sa.Connection, lab: Lab, level: float) -> None:
    recover(conn, lab.past, level)
    assert read.incident(conn, "i1")["looks_fixed"] is None


def test_each_place_where_it_was_found_must_be_back(conn: sa.Connection, lab: Lab) -> None:
    """Also one without a later step."""
    conn.execute(
        sa.text("""UPDATE bisection b SET status = a.status, conclusion = a.conclusion,
          ended_at = a.ended_at
          FROM bisection a WHERE (a.id, b.id, b.testbox) = (1, 2, 'bare1')""")
    )
    again = "INSERT INTO sighting (incident, bisection, culprit) SELECT 1, 2, culprit"
    conn.execute(sa.text(f"{again} FROM sighting WHERE bisection = 1"))
    assert read.incident(conn, "i1")["looks_fixed"] is None
    conn.execute(
        sa.text("""INSERT INTO tree_history (tree, testbox, unit_job, metric, upto, findings)
          SELECT tree, 'bare1', unit_job, metric, upto, findings FROM tree_history""")
    )
    fix = read.incident(conn, "i1")["looks_fixed"]
    assert fix is not None and fix["commit"] == lab.back


def test_what_was_lost_of_an_improvement_looks_not_fixed(conn: sa.Connection) -> None:
    conn.execute(
        sa.text("UPDATE comparison_row SET detail = jsonb_set(detail, '{better}', '\"lower\"')")
    )
    (row,) = read.list_incidents(conn, {"testbox": "vm-icount"})
    assert (row["direction"], row["looks_fixed"]) == ("better", None)


def test_a_step_of_the_machine_fixes_nothing(conn: sa.Connection) -> None:
    conn.execute(
        sa.text("""UPDATE tree_history
          SET findings = jsonb_set(findings, '{changes,-1,machine}', 'true')""")
    )
    assert read.incident(conn, "i1")["looks_fixed"] is None


@pytest.fixture
def pages(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """Its pages; commands read the same database."""
    environment = brain_environment(tmp_path, lab.url) | {"SWINGBOT_WEB_RATE": "0"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    app = service(load(environ=environment), lab.engine)
    return TestClient(app, base_url="http://127.0.0.1")


def test_both_commands_print_the_list(pages: TestClient, lab: Lab) -> None:
    for line in ("list incidents", "incident list"):
        text = CliRunner().invoke(main, line.split(), catch_exceptions=False).output
        assert f"open; looks fixed since {lab.back[:12]} (+6" in text
        assert re.search(rf"i1 +-5\.8 % +{make.METRIC} +vm-icount .* A Developer ", text)
    refused = CliRunner().invoke(main, ["list", "bisections", "--filter", "status=nope"])
    assert refused.exit_code == 2
    assert "status cannot be 'nope'; it is one of running" in refused.output


def test_the_page_has_controls_that_work_without_scripts(pages: TestClient, lab: Lab) -> None:
    text = pages.get("/incidents").text
    for word in ("looks fixed", lab.back[:12], "by A Developer", "\u22125.8\u00a0%", make.METRIC):
        assert word in text, word
    assert 'href="/incident/i1#looks-fixed"' in text
    (form,) = re.findall(r'<form class="row filters".*?</form>', text, re.DOTALL)
    for name in ("tree", "status", "direction", "owner", "testbox", "metric", "author", "sort"):
        assert f'name="{name}"' in form, name
    # as a browser sends the form: fields that were left alone are empty
    some = pages.get("/incidents?status=open&testbox=vm-icount&author=&sort=change").text
    assert "/incident/i1" in some and "/incident/i2" not in some
    assert '<option value="open" selected>' in some
    wrong = pages.get("/incidents?status=nope")
    assert wrong.status_code == 400 and "it is one of open, expected" in wrong.text
    assert pages.get("/bisections.json?status=nope").status_code == 400


def test_the_page_of_the_incident_asks_a_person_to_confirm(pages: TestClient, lab: Lab) -> None:
    text = pages.get("/incident/i1").text
    assert f"swingbot incident fixed-by i1 {lab.back[:12]}" in text
    assert "looks fixed since" in pages.get("/").text


def test_a_trees_page_says_how_its_tip_stands(conn: sa.Connection, pages: TestClient) -> None:
    tree = read.tree(conn, TREES[0])
    (fault,) = [
        row
        for row in tree["standing"]
        if (row["metric"], row["testbox"]) == (make.METRIC, "vm-icount")
    ]
    assert (fault["commit"], fault["release"]) == (tree["tip_commit"], "Linux 6.12-rc3")
    assert fault["base_pct"] == pytest.approx(-6.0, abs=0.3)
    assert fault["release_pct"] == pytest.approx(-6.0, abs=0.3)
    assert 50 < len(fault["levels"]) <= DAYS and fault["levels"][-1] == fault["mean"]
    assert fault["levels"][-1] / fault["levels"][0] - 1 == pytest.approx(-0.06, abs=0.003)
    assert [one["id"] for one in tree["incidents"]] == ["i1"]
    assert [one["id"] for one in tree["open_bisections"]] == ["b2"] and not tree["open_tables"]
    other = read.tree(conn, TREES[1])
    assert [one["id"] for one in other["incidents"]] == ["i2"] and not other["open_bisections"]
    text = pages.get(f"/tree/{TREES[0]}").text
    first = [
        "How the tip stands", "since Linux 6.12-rc3", '<svg class="spark"', "Open culprits",
        "by A Developer", "What waits", "/bisection/b2", "The latest of its moves: 50",
    ]  # fmt: skip
    places = [text.index(word) for word in first]
    assert places == sorted(places)
    assert text.count("<polyline") == len(tree["standing"])


def test_measurements_for_an_incident_are_marked_and_folded_on_the_start_page(
    pages: TestClient,
) -> None:
    text = pages.get("/").text
    own, _, folded = text.partition("more to prove, explain or check a change</summary>")
    assert "/comparison/c120" in own and "culprit and parent" not in own
    assert "/comparison/c122" in folded and "culprit and parent" in folded


@pytest.mark.parametrize(
    ("path", "marked"),
    [("/incidents", "incidents"), ("/bisections", "bisections"), ("/incident/i1", "incidents"),
     ("/testbox/bare1", "testboxes"), ("/comparison/c40", "comparisons"), ("/", None)],
)  # fmt: skip
def test_the_navigation_marks_the_page_one_is_on(
    pages: TestClient, path: str, marked: str | None
) -> None:
    found = re.findall(r'<a href="/(\w+)" aria-current="(\w+)"', pages.get(path).text)
    word = "page" if path == f"/{marked}" else "true"
    assert found == ([(marked, word)] if marked else [])


def test_an_emulated_testbox_is_labelled_once(pages: TestClient) -> None:
    for path in ("/", "/incident/i1", f"/tree/{TREES[0]}"):
        assert pages.get(path).text.count("instruction-count clock; 1 vCPU") == 1, path


def test_a_bisection_on_a_lost_testbox_has_no_time_left_also_between_boots(
    conn: sa.Connection,
) -> None:
    running = read.bisection(conn, "b2")
    assert (running["status"], running["testbox"]) == ("running", "bare1")
    assert running["eta_seconds"] is None
    assert "testbox bare1 is lost: no answer on port 22" in running["waits"][0]
