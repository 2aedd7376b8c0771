"""What changed beside the number, where the verdict is read: page, terminal, JSON."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from swingbot.adapters.git import Mirror
from swingbot.app.commands.incidents import incident_lines
from swingbot.app.sheets import shown
from swingbot.core.proof.gates import GateRow
from swingbot.service.ports.kernels import NoRecord
from swingbot.web.app import make_app
from swingbot.web.http.render import Renderer
from swingbot.web.http.snapshot_reader import SnapshotReader
from swingbot.web.pages.patch import PatchPages
from swingbot_db import read
from swingbot_db.engine import make_engine
from swingbot_db.store import PgTransaction
from swingbot_jobs.kernel_diff import FILE
from tests import builders as make
from tests.db.test_kernel_change import Site as Kernels
from tests.db.test_kernel_change import a_record
from tests.db.test_web import Settings
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.kernels import kept_by
from tests.served import NO_LAB

CALLS = {
    "functions": [
        {
            "name": "free_unref_page_commit",
            "object": "mm/page_alloc.o",
            "seen": "counted",
            "called": True,
            "calls": 65882.0,
            "base_calls": 65880.0,
            "callers": [],
        }
    ]
}
CODE = {
    "functions": [
        {
            "name": "free_unref_page_commit",
            "object": "mm/page_alloc.o",
            "kind": "changed",
            "base": 276,
            "head": 269,
            "what": ["code"],
        }
    ],
    "data": [],
}
REASON = "free_unref_page_commit called 65 882 times in one run of page-fault"


@dataclass(frozen=True)
class Lab:
    """Parent and culprit, measured, with an incident; `revert` is the table of that gate."""

    conn: sa.Connection
    client: TestClient
    artifacts: Path
    testbox: make.Testbox
    comparison: int
    revert: int
    incident: int

    def row(self, metric: str, base: float, head: float, table: int = 0, **more: Any) -> None:
        given: dict[str, Any] = {"class": "counter", "headline": False, "better": None}
        make.a_row(
            self.conn,
            table or self.comparison,
            self.testbox,
            metric,
            base=(base, base * 1.001, base * 0.999),
            head=(head, head * 1.001, head * 0.999),
            verdict=more.pop("verdict", "changed"),
            **(given | more),
        )
        self.conn.commit()

    def profile(self, symbol: str, base: float, head: float, *, changed: bool) -> None:
        points = head - base
        of_share: dict[str, Any] = {
            "class": "profile",
            "change_points": points,
            "interval_points": [points - 0.2, points + 0.2],
        }
        self.row(
            f"perf-profile.self.{symbol}",
            base,
            head,
            verdict="changed" if changed else "same",
            **of_share,
        )

    def gate(self, name: str, detail: Any, reason: str = "", table: int | None = None) -> None:
        row = GateRow(gate=name, status="pass", reason=reason, detail=detail, comparison=table)
        PgTransaction(self.conn).gates.put(self.incident, row)
        self.conn.commit()

    def why(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.get(f"{path}.json").json()["why"]
        return found

    def block(self, path: str) -> str:
        """The words of the block on a page; empty without one."""
        found = re.search(r'<section id="why">.*?</section>', self.client.get(path).text, re.S)
        return " ".join(re.sub(r"<[^>]*>", " ", found[0] if found else "").split())


@pytest.fixture
def lab(db_url: str, tmp_path: Path) -> Iterator[Lab]:
    engine = make_engine(db_url)
    records = kept_by(lambda sha256: (tmp_path / sha256).open("rb"))
    app = make_app(Settings(maildir=tmp_path / "mail"), engine, read, records)
    with engine.connect() as conn, TestClient(app) as client:
        tree, testbox = make.a_tree(conn), make.a_testbox(conn)
        parent, culprit = (make.a_kernel(conn, tree, number) for number in range(2))
        tables = [make.a_comparison(conn, tree, parent, culprit, [testbox]) for _ in range(2)]
        incident = make.an_incident(conn, tree, culprit, comparison=tables[0])
        made = Lab(conn, client, tmp_path, testbox, tables[0], tables[1], incident)
        own: dict[str, Any] = {"class": "benchmark"}
        make.a_row(conn, made.comparison, testbox, **own)
        conn.commit()
        yield made
    engine.dispose()


def pages(lab: Lab) -> tuple[str, str]:
    return f"/comparison/c{lab.comparison}", f"/incident/i{lab.incident}"


def test_counters_stand_ranked_and_signed_beside_the_number(lab: Lab) -> None:
    lab.row("perf-stat.cache-misses", 1000.0, 2000.0)
    lab.row("perf-stat.instructions", 1000.0, 1400.0)
    lab.row("perf-stat.page-faults", 1000.0, 822.0)  # as much less as the work done
    lab.row("perf-stat.branches", 1000.0, 1001.0, verdict="same")
    for path in pages(lab):
        ((change,),) = (one["changes"] for one in lab.why(path))
        assert [(one["metric"], round(one["change_pct"])) for one in change["clues"]] == [
            ("perf-stat.cache-misses", 100),
            ("perf-stat.instructions", 40),
        ]
        assert change["counters"] == 4
        words = lab.block(path)
        assert words.index("cache-misses +100.0 %") < words.index("instructions +40.0 %")
        assert "page-faults" not in words and "branches" not in words
    text = shown(lab.conn, f"c{lab.comparison}", Unreadable(), counters=False)
    assert "+100.0%  perf-stat.cache-misses  1000 to 2000\n" in text
    lines = incident_lines({**read.incident(lab.conn, lab.incident)})
    assert any("+40.0%  perf-stat.instructions" in line for line in lines)


def test_a_counter_that_a_gate_refutes_is_left_out(lab: Lab) -> None:
    lab.row("perf-stat.cache-misses", 1000.0, 2000.0)
    lab.row("perf-stat.cache-misses", 1000.0, 2000.0, lab.revert)  # the revert did not end it
    lab.gate("revert", {}, table=lab.revert)
    for path in pages(lab):
        assert "none changed but with the work done" in lab.block(path)


def test_shares_of_profile_and_locks_stand_before_and_after(lab: Lab) -> None:
    lab.profile("cycles.clear_page_rep", 30.0, 41.5, changed=True)
    lab.profile("cycles.copy_page", 12.0, 12.1, changed=False)
    lab.profile("cycles.schedule", 0.2, 0.1, changed=False)
    lab.row("lock-contention.spinning_pct.lru", 4.0, 4.5, verdict="same")
    for path in pages(lab):
        ((change,),) = (one["changes"] for one in lab.why(path))
        (clue,) = change["clues"]
        assert (clue["kind"], round(clue["points"], 1)) == ("symbol", 11.5)
        assert [one["metric"] for one in change["shares"]] == [
            "lock-contention.spinning_pct.lru",
            "perf-profile.self.cycles.copy_page",
        ]
        words = lab.block(path)
        assert "clear_page_rep +11.5 points 30" in words
        assert "copy_page share of time no change 12" in words and "schedule" not in words


class Unreadable:
    """No record of a kernel can be read."""

    def __getattr__(self, name: str) -> Any:
        raise NoRecord("none")


def test_functions_have_their_sizes_and_calls(lab: Lab) -> None:
    of_table = dataclasses.replace(NO_LAB, comparison=lab.comparison)
    kernels = Kernels(lab.client, lab.conn, of_table, lab.artifacts)
    for key, size in zip(kernels.keys(), (276, 269), strict=True):
        kernels.left(key, FILE, a_record(size))
    lab.gate("code", CODE)
    lab.gate("executed", CALLS, REASON)
    for path in pages(lab):
        (why,) = lab.why(path)
        assert [(one["name"], one["base"], one["head"]) for one in why["functions"]] == [
            ("free_unref_page_commit", 276, 269)
        ]
        assert why["executed"] == {"status": "pass", "reason": REASON}
        assert "276 → 269 bytes, called 65 882 times" in lab.block(path)
    assert (lab.why(pages(lab)[1])[0]["functions_total"]) == 1


def test_a_function_leads_to_the_hunks_that_change_it(lab: Lab, tmp_path: Path) -> None:
    lab.gate("code", CODE)
    for path in pages(lab)[1:]:
        (why,) = lab.why(path)
        link = f"/variant/{why['variant']}/patch?function=free_unref_page_commit"
        assert link in lab.client.get(path).text
    _, commit = make_fakelinux(tmp_path / "linux", [FakeCommit(speed=88)])
    mirror = Mirror(tmp_path / "mirror.git")
    mirror.fetch_branch("t", str(tmp_path / "linux"), "main")
    number = int(why["variant"][1:])
    set_commit = sa.text("UPDATE variant SET commit = :commit WHERE id = :id")
    lab.conn.execute(set_commit, {"commit": commit, "id": number})
    lab.conn.commit()
    engine = make_engine(str(lab.conn.engine.url.render_as_string(hide_password=False)))
    settings = Settings(maildir=tmp_path / "mail")
    pages_of = PatchPages(SnapshotReader(engine, read), Renderer(settings), mirror)
    app = make_app(settings, engine, read, kept_by(nothing), pages_of.routes())
    with TestClient(app) as client:
        page = client.get(f"/variant/v{number}/patch?function=used").text
        assert page.index("1 hunk of 2 changes") < page.index("+__attribute__((used)) static")
        assert page.index("Other hunks") < page.index("<h3>state.json")
        page = client.get(f"/variant/v{number}/patch?function=alloc_page").text
        assert "No hunk changes <code>alloc_page</code> itself" in page
        assert client.get("/variant/v99/patch").status_code == 404
        find = sa.text("SELECT variant FROM comparison_arm WHERE comparison = :c AND arm = 0")
        first = lab.conn.execute(find, {"c": lab.comparison}).scalar_one()
        base, *_, last = make_fakelinux(
            tmp_path / "three",
            [FakeCommit(speed=80), FakeCommit(kind="header"), FakeCommit(speed=70)],
        )
        mirror.fetch_branch("t", str(tmp_path / "three"), "main")
        for variant, of in ((first, base), (number, last)):
            lab.conn.execute(set_commit, {"commit": of, "id": variant})
        lab.conn.commit()
        address = f"/variant/v{number}/patch?since=v{first}&function=used&file=mm/page_alloc.o"
        page = client.get(address).text
        assert (
            "2 of 2 commits that touch" in page and page.count("+__attribute__((used)) static") == 2
        )
        whole = client.get(address.partition("&file")[0]).text
        assert "2 of 3 commits" in whole and "<h2>Others</h2>" in whole
        none = client.get(address.replace("=used", "=alloc_page")).text
        assert "No hunk changes <code>alloc_page</code> itself" in none
        assert client.get(address.replace(f"v{first}", "v99")).status_code == 404
    engine.dispose()


def nothing(sha256: str) -> BinaryIO:
    raise FileNotFoundError(sha256)


def test_what_is_missing_is_said_and_no_change_has_no_block(lab: Lab) -> None:
    words = lab.block(pages(lab)[0])
    assert f"No counters were recorded with {lab.testbox.unit_job}" in words
    assert "has no record of its functions" in words
    assert "<table" not in words
    assert lab.client.get(f"/comparison/c{lab.revert}.json").json()["why"] == []
    assert lab.block(f"/comparison/c{lab.revert}") == ""
