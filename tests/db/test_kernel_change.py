"""What a comparison says about its two kernels: on its page, in its JSON, from what the builds
left in the artifact store."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from starlette.testclient import TestClient

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.adapters.kernel_reader import ChildKernelRecords
from swingbot.app.cli import main
from swingbot.app.commands import text
from swingbot.app.sheets import shown
from swingbot.service.kernel.compare import compare_kernels, files_of
from swingbot.service.ports.kernels import NoRecord
from swingbot.web.app import make_app
from swingbot_db import read
from swingbot_db.engine import make_engine
from swingbot_jobs import limits
from swingbot_jobs.kernel_diff import (
    FILE,
    SymbolRecord,
    change_text,
    object_row,
    write_record,
)
from tests import scenario
from tests.db.test_web import Settings
from tests.fakes.kernels import kept_by

SIZES = {"text": 8_708_962, "data": 3_194_710, "bss": 2_183_168}


@dataclass(frozen=True)
class Site:
    client: TestClient
    conn: sa.Connection
    lab: scenario.Lab
    artifacts: Path

    def keys(self) -> tuple[str, str]:
        found = read.table(self.conn, self.lab.comparison)
        base, head = (arm["variant"]["build_key"] for arm in found["arms"])
        return base, head

    def left(self, key: str, name: str, content: bytes) -> None:
        """Build `key` left this file."""
        digest = hashlib.sha256(content).hexdigest()
        (self.artifacts / digest).write_bytes(content)
        files = json.dumps({name: {"sha256": digest, "size": len(content)}})
        self.conn.execute(
            sa.text(
                "UPDATE kernel_build SET files = files || CAST(:files AS jsonb) WHERE "
                "build_key = :key"
            ),
            {"files": files, "key": key},
        )
        self.conn.commit()

    def kernel(self) -> dict[str, Any]:
        found = self.client.get(f"/comparison/c{self.lab.comparison}.json").json()
        (change,) = found["kernel_changes"]
        assert isinstance(change, dict)
        return change

    def records(self) -> ChildKernelRecords:
        return ChildKernelRecords(lambda sha256: (self.artifacts / sha256).open("rb"))

    def page(self) -> str:
        return str(self.client.get(f"/comparison/c{self.lab.comparison}").text)


@pytest.fixture
def site(db_url: str, tmp_path: Path) -> Iterator[Site]:
    engine = make_engine(db_url)
    app = make_app(
        Settings(maildir=tmp_path / "mail"),
        engine,
        read,
        kept_by(lambda sha256: (tmp_path / sha256).open("rb")),
    )
    with engine.connect() as conn, TestClient(app) as client:
        lab = scenario.a_lab(conn)
        conn.commit()
        yield Site(client, conn, lab, tmp_path)
    engine.dispose()


def a_record(size: int, name: str = "free_unref_page_commit") -> bytes:
    row = object_row(
        f"{name} of {size}",
        SIZES,
        [SymbolRecord(name, size, f"shape{size}", "", ("spin_lock",))],
        [],
    )
    symbols = {"t": {name: size}, "d": {}, "b": {}, "r": {}}
    return write_record(
        compiler="gcc 12.2.0",
        flags=["-O2"],
        sizes=SIZES,
        symbols=symbols,
        objects={"mm/page_alloc.o": row},
    )


def test_a_comparison_shows_the_functions_the_table_and_the_configuration(site: Site) -> None:
    base, head = site.keys()
    for key, size, hz in ((base, 276, b"250"), (head, 269, b"1000")):
        site.left(key, FILE, a_record(size))
        site.left(key, "config", b"CONFIG_HZ=" + hz + b"\n")
    kernel = site.kernel()
    assert kernel["state"] == "compared" and kernel["headline"] == "1 function changed."
    assert [
        (one["name"], one["base"], one["head"], one["what"]) for one in kernel["functions"]
    ] == [("free_unref_page_commit", 276, 269, ["code"])]
    assert (kernel["bloat"]["down"], kernel["bloat"]["before"]) == (-7, 276)
    assert kernel["config"] == [{"symbol": "CONFIG_HZ", "base": "250", "head": "1000"}]
    page = site.page()
    for words in (
        "What the change did to the kernel",
        "1 function changed.",
        "free_unref_page_commit",
        "mm/page_alloc.o",
        "CONFIG_HZ",
        "steps of 16 bytes",
    ):
        assert words in page, words
    printed = change_text(kernel, most=20)
    assert "free_unref_page_commit                       276     269      -7" in printed
    document = site.client.get(f"/comparison/c{site.lab.comparison}.json").json()
    ends = [one["variant"]["id"] for one in document["arms"]]
    link = f'<a href="/variant/{ends[1]}/patch?since={ends[0]}&amp;function='
    assert link in page, "several commits lie between: the function leads to those that change it"


def test_show_prints_it_and_its_json_has_it(site: Site, db_url: str, tmp_path: Path) -> None:
    env = {"SWINGBOT_PATHS_STATE": str(tmp_path), "SWINGBOT_DB_URL": db_url}
    store = ArtifactDirectory(tmp_path / "artifacts")
    for key, size in zip(site.keys(), (276, 269), strict=True):
        content = a_record(size)
        site.left(key, FILE, content)
        store.put(io.BytesIO(content), hashlib.sha256(content).hexdigest())
    shown = CliRunner().invoke(main, ["show", f"c{site.lab.comparison}"], env=env)
    assert shown.exit_code == 0, shown.output
    assert (
        "What the change from base to head did to the kernel\n1 function changed." in shown.stdout
        and "config: not stored for both sides" in shown.stdout
    )
    as_json = json.loads(
        CliRunner().invoke(main, ["show", f"c{site.lab.comparison}", "--json"], env=env).stdout
    )
    assert as_json["kernel_changes"][0]["bloat"]["down"] == -7 and as_json["rows"]


GONE = [{"symbol": "CONFIG_PREEMPT_NONE", "base": "y", "head": None}]


def configured(site: Site, *kernels: tuple[str, bytes]) -> None:
    for key, config in kernels:
        site.left(key, "config", config)


def test_a_line_that_vanished_is_shown_without_records_too(site: Site) -> None:
    base, head = site.keys()
    configured(site, (base, b"CONFIG_PREEMPT_NONE=y\n"), (head, b"\n"))
    kernel = site.kernel()
    assert (kernel["state"], kernel["config"]) == ("not recorded", GONE)
    assert "CONFIG_PREEMPT_NONE" in site.page()
    printed = shown(site.conn, f"c{site.lab.comparison}", site.records(), counters=False)
    assert "config: 1 symbol differs\n  CONFIG_PREEMPT_NONE: y -> unknown" in printed
    configured(site, (head, b"CONFIG_PREEMPT_NONE=y\n"))
    assert site.kernel()["config"] == [] and "CONFIG_PREEMPT_NONE" not in site.page()


def test_a_bisection_shows_its_ends_and_its_culprit_where_the_configuration_differs(
    site: Site,
) -> None:
    id_ = f"b{site.lab.bisection}"
    document = read.bisection(site.conn, id_)
    points, culprit = document["points"], document["culprit"]
    assert culprit is not None
    at = next(point["idx"] for point in points if point["commit"] == culprit["commit"])
    parent, first, last = points[at - 1], points[0], points[-1]
    asks = b"CONFIG_PREEMPT_NONE=y\n"
    configured(site, (first["build_key"], asks), (last["build_key"], b"\n"))
    found = site.client.get(f"/bisection/{id_}.json").json()["config_changes"]
    assert found == [{"base": first["commit"], "head": last["commit"], "config": GONE}]
    configured(site, (parent["build_key"], asks), (points[at]["build_key"], asks))
    changes = site.client.get(f"/bisection/{id_}.json").json()["config_changes"]
    assert changes[1:] == [{"base": parent["commit"], "head": culprit["commit"], "config": []}]
    page = site.client.get(f"/bisection/{id_}").text
    assert page.count("<h2>Kernel configuration of") == 1 and "CONFIG_PREEMPT_NONE" in page
    head = text.bisection_head({**document, "config_changes": changes})
    assert "    config: 1 symbol differs\n      CONFIG_PREEMPT_NONE: y -> unknown" in head
    assert head.count("kernels of ") == 1


def test_kernels_without_a_record_say_why_nothing_is_shown(site: Site) -> None:
    assert site.kernel()["state"] == "not recorded"
    assert "has no record of its functions" in site.page()
    base, head = site.keys()
    site.left(base, FILE, a_record(276))
    site.left(head, FILE, b"\x1f\x8b junk")
    assert site.kernel()["state"] == "not recorded" and "cannot be used" in site.kernel()["reason"]
    site.left(head, FILE, gzip.compress(b"[]," * limits.KERNEL_RECORD_VALUES))
    assert "it has more than" in site.kernel()["reason"] and "it has more than" in site.page()
    site.left(head, FILE, a_record(269))
    assert site.kernel()["state"] == "compared"


def test_a_name_from_a_stranger_is_text_on_the_page(site: Site) -> None:
    base, head = site.keys()
    site.left(base, FILE, a_record(1, "<script>alert(1)</script>"))
    site.left(head, FILE, a_record(2, "<script>alert(1)</script>"))
    assert "&lt;script&gt;" in site.page() and "<script>" not in site.page()


def opened(content: dict[str, bytes], tmp_path: Path) -> Any:
    for name, data in content.items():
        (tmp_path / name).write_bytes(data)
    return ChildKernelRecords(lambda sha256: (tmp_path / sha256).open("rb"))


def a_build(key: str, **files: str) -> dict[str, Any]:
    return {
        "build_key": key,
        "status": "built",
        "files": {name.replace("__", "."): {"sha256": sha} for name, sha in files.items()},
    }


def test_a_side_that_waits_or_does_not_build_is_reported(tmp_path: Path) -> None:
    built, failed = a_build("a" * 64), {"build_key": "b" * 64, "status": "failed", "files": {}}
    store = opened({}, tmp_path)
    assert compare_kernels(store, built, None)["state"] == "waiting"
    assert compare_kernels(store, built, failed) == {
        "state": "not built",
        "reason": "The kernel of head does not build.",
        "base_build": "a" * 64,
        "head_build": "b" * 64,
        "config": None,
    }


def test_proof_asks_whether_built_code_changed_and_is_never_answered_without_records(
    tmp_path: Path,
) -> None:
    store = opened({"one": a_record(276), "two": a_record(269)}, tmp_path)
    one, two = (
        a_build("a" * 64, functions__json__gz="one"),
        a_build("b" * 64, functions__json__gz="two"),
    )
    same = store.code(files_of(one), files_of(one))
    assert (same.status, same.reason) == ("fail", "no function or variable of the kernel differs")
    found = store.code(files_of(one), files_of(two))
    assert (found.status, found.reason) == (
        "pass",
        "1 function: free_unref_page_commit 276 to 269 bytes",
    )
    for lost in (a_build("c" * 64), a_build("c" * 64, functions__json__gz="lost")):
        with pytest.raises(NoRecord):
            store.code(files_of(one), files_of(lost))
