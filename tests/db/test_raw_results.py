"""Raw results from ingest to a directory on somebody's disk, and back into samples: the real
store, database and web service."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from starlette.testclient import TestClient

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.adapters.parser_version import parser_versions
from swingbot.adapters.result_reader import ChildResultReader
from swingbot.app.cli import main
from swingbot.app.database_raw import DatabaseRaw
from swingbot.app.raw_export import Export
from swingbot.app.settings import load
from swingbot.service.result.reparse import Reparsed, ReparseRequest, reparse
from swingbot.web.app import make_app
from swingbot_db import read
from swingbot_db.engine import make_engine
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.result import ParsedRun
from tests.database import fresh
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.kernels import kept_by
from tests.fakes.loop import METRIC
from tests.fakes.mail import brain_environment
from tests.postgres import Server

JOB_NAME = "vm-page-fault-1-process-1-128M"
PROGRAMS = Path(__file__).parents[2] / "jobs" / "programs"


@contextmanager
def a_compared_brain(url: str, place: Path) -> Iterator[Brain]:
    """One comparison, c1, of a base and a tip that differ by one per cent."""
    engine = make_engine(url)
    base, *_ = make_fakelinux(place / "linux", [FakeCommit(speed=101)])
    brain = make_brain(
        load(environ=brain_environment(place / "state", url)), engine, place / "linux"
    )
    brain.watch(base)
    brain.run()
    yield brain
    engine.dispose()


@pytest.fixture(scope="module")
def brain(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brain]:
    """For tests that only look."""
    with (
        fresh(pg, template) as url,
        a_compared_brain(url, tmp_path_factory.mktemp("brain")) as found,
    ):
        yield found


@pytest.fixture
def own_brain(db_url: str, tmp_path: Path) -> Iterator[Brain]:
    """For a test that changes something."""
    with a_compared_brain(db_url, tmp_path) as found:
        yield found


def rows(brain: Brain, sql: str, **values: Any) -> list[Any]:
    with brain.engine.connect() as conn:
        return list(conn.execute(sa.text(sql), values))


def export(brain: Brain, out: Path, id: str = "c1") -> Export:
    programs = brain.lab.catalogue.programs
    store = ArtifactDirectory(brain.settings.artifacts)
    found = Export(DatabaseRaw(brain.engine, store, programs), out, programs, lambda line: None)
    found.run(id)
    return found


def results_tar(brain: Brain, boot: str = "x1") -> Path:
    """Where the store keeps the results of a boot."""
    with brain.engine.connect() as conn:
        sha256 = next(
            file["sha256"]
            for file in read.raw_manifest(conn, boot)["files"]
            if file["path"] == "results.tar"
        )
    return Path(brain.settings.artifacts, sha256[:2], f"{sha256[2:]}.zst")


# --- ingest ---


def test_every_run_has_its_place_under_a_result_root_and_knows_its_parser(brain: Brain) -> None:
    found = rows(
        brain,
        "SELECT rr.name, r.root_run, r.parser, v.commit FROM run r JOIN boot x ON x.id = r.boot"
        " JOIN orders o ON o.id = x.order_id JOIN variant v ON v.id = o.variant"
        " LEFT JOIN result_root rr ON rr.id = r.result_root ORDER BY r.id",
    )
    assert len(found) == 12
    for name, _, parser, commit in found:
        assert name == f"result/page-fault/{JOB_NAME}/vm-icount/unknown/vm-x86_64/gcc-1/{commit}"
        assert parser == brain.lab.catalogue.parsers["page-fault"]
    for of_name in {row.name for row in found}:
        assert [row.root_run for row in found if row.name == of_name] == list(range(6))


def test_a_boot_whose_results_the_store_lost_is_booted_again_and_not_counted(
    db_url: str, tmp_path: Path
) -> None:
    engine = make_engine(db_url)
    base, *_ = make_fakelinux(tmp_path / "linux", [FakeCommit()])
    brain = make_brain(
        load(environ=brain_environment(tmp_path / "state", db_url)), engine, tmp_path / "linux"
    )
    brain.watch(base)
    lost = LosesFirst(brain.lab.tools.artifacts)
    brain.lab = replace(brain.lab, tools=replace(brain.lab.tools, artifacts=lost))
    brain.run()
    assert lost.count == 1
    assert brain.facts("c")["status"] == "done"
    assert rows(
        brain,
        "SELECT count(*) FROM attempt a JOIN orders o ON o.id = a.order_id WHERE o.kind = 'boot'",
    ) == [(7,)]
    assert rows(brain, "SELECT count(*), count(DISTINCT order_id) FROM boot") == [(6, 6)]
    engine.dispose()


@dataclass
class LosesFirst:
    """An artifact store that does not find what it is asked for first."""

    store: Any
    count: int = 0

    def open(self, sha256: str) -> Any:
        if self.count == 0:
            self.count += 1
            raise FileNotFoundError(sha256)
        return self.store.open(sha256)

    def pruned(self, sha256: str) -> Any:
        return self.store.pruned(sha256)


def test_samples_come_out_of_the_database_as_they_went_in(own_brain: Brain) -> None:
    for number, name in enumerate(
        ("tab\there", "back\\slash", "line\nbreak", "m" * 255, "naïve µs", "\\N", "\\.")
    ):
        written = [0.1 + 0.2, 9e99, -1e-300, 5e15 + 0.5]
        with own_brain.lab.transaction("test") as tx:
            tx.runs.add(
                1,
                [ParsedRun(unit_job="other", number=number, status="ok", samples={name: written})],
                {},
            )
        assert values(own_brain, name) == written


def test_what_is_no_number_or_no_name_fails_the_run_and_stops_nothing(
    own_brain: Brain, tmp_path: Path
) -> None:
    for wrong in (
        "'m' * 10_000: 1.0",
        "'m': float('nan')",
        "'m': [1.0, float('-inf')]",
        "'m': 1e301",
        "'../m': 1.0",
    ):
        mended(own_brain, tmp_path, f"    return {{{wrong}}}\n")
        assert reparse(own_brain.lab, ReparseRequest()).runs == 12
        assert rows(own_brain, "SELECT count(*) FROM sample") == [(0,)]
        assert all(
            row.status == "failed" and ("below 1e+100" in row.reason or "name" in row.reason)
            for row in rows(own_brain, "SELECT status, reason FROM run")
        )


# --- a directory of raw results ---


def test_a_directory_of_raw_results_is_whole_and_checks_itself(
    brain: Brain, tmp_path: Path
) -> None:
    done = export(brain, tmp_path / "c1")
    assert (done.runs, done.notes) == (12, [])
    checked = subprocess.run(
        ["sha256sum", "--quiet", "-c", "SHA256SUMS"],
        cwd=tmp_path / "c1",
        capture_output=True,
        text=True,
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    files = {
        str(path.relative_to(tmp_path / "c1"))
        for path in (tmp_path / "c1").rglob("*")
        if path.is_file() and "boot" not in path.parts
    }
    listed = {
        line.split("  ", 1)[1] for line in (tmp_path / "c1" / "SHA256SUMS").read_text().splitlines()
    }
    assert files - {"SHA256SUMS"} == listed
    with (tmp_path / "c1" / "samples.csv").open(newline="") as file:
        samples = list(csv.DictReader(file))
    assert len(samples) == done.samples
    assert {row["side"] for row in samples} == {"base", "head"}
    assert {row["unit"] for row in samples if row["metric"] == METRIC} == {"faults/s"}
    for row in samples:
        run = tmp_path / "c1" / row["result_root"]
        stats = json.loads((run / "stats.json").read_text())
        assert stats[row["metric"]] == float(row["value"])
        assert (run / "stdout").read_text().startswith("page-fault: ")
        assert (run / "boot" / "console.log").read_text() == "booted\n"


def test_bringing_raw_results_again_brings_nothing_and_mends_what_was_spoilt(
    brain: Brain, tmp_path: Path
) -> None:
    first = export(brain, tmp_path / "c1")
    before = {path: path.read_bytes() for path in (tmp_path / "c1").rglob("*") if path.is_file()}
    second = export(brain, tmp_path / "c1")
    assert (second.fetched, second.kept) == (0, first.fetched)
    assert {
        path: path.read_bytes() for path in (tmp_path / "c1").rglob("*") if path.is_file()
    } == before
    (tmp_path / "c1" / "x1" / "console.log").write_text("bOoted\n")
    (tmp_path / "c1" / "x2" / "results.tar").unlink()
    (tmp_path / "c1" / "x2" / "results.tar.part").write_bytes(b"half of it")
    third = export(brain, tmp_path / "c1")
    assert (third.fetched, third.notes) == (2, [])
    assert {
        path: path.read_bytes() for path in (tmp_path / "c1").rglob("*") if path.is_file()
    } == before


def test_what_the_store_lost_is_named_and_the_rest_is_brought(
    own_brain: Brain, tmp_path: Path
) -> None:
    results_tar(own_brain).unlink()
    damaged = results_tar(own_brain, "x2")
    damaged.write_bytes(damaged.read_bytes()[:-30])
    done = export(own_brain, tmp_path / "c1")
    assert len(done.notes) == 2
    assert "no longer in the artifact store" in done.notes[0]
    text = (tmp_path / "c1" / "README").read_text()
    assert "x1/results.tar" in text
    assert "x2/results.tar" in text
    assert (
        subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=tmp_path / "c1").returncode
        == 0
    )


@pytest.mark.parametrize("id", ["x1", "o", "c1"])
def test_each_kind_of_id_brings_its_runs(brain: Brain, tmp_path: Path, id: str) -> None:
    if id == "o":
        id = f"o{rows(brain, 'SELECT order_id FROM boot WHERE id = 1')[0].order_id}"
    done = export(brain, tmp_path / id, id)
    assert done.runs == (12 if id == "c1" else 2)
    assert len(list((tmp_path / id).glob("result/*/*/*/*/*/*/*/*/stdout"))) == done.runs
    assert list((tmp_path / id).rglob("facts.json"))


# --- pages ---


@pytest.fixture
def client(brain: Brain) -> Iterator[TestClient]:
    with TestClient(
        make_app(
            brain.settings,
            brain.engine,
            read,
            kept_by(ArtifactDirectory(brain.settings.artifacts).open),
        )
    ) as found:
        yield found


def test_a_stored_file_comes_with_its_checksum_in_parts_and_not_twice(
    brain: Brain, client: TestClient
) -> None:
    whole = client.get("/raw/x1/results.tar")
    tag = whole.headers["etag"]
    sums = dict(
        reversed(line.split("  ", 1)) for line in client.get("/raw/x1/SHA256SUMS").text.splitlines()
    )
    assert sums["results.tar"] == tag.strip('"')
    assert int(whole.headers["content-length"]) == len(whole.content)
    piece = client.get("/raw/x1/results.tar", headers={"Range": "bytes=100-199"})
    assert (piece.status_code, piece.content, piece.headers["content-range"]) == (
        206,
        whole.content[100:200],
        f"bytes 100-199/{len(whole.content)}",
    )
    response = client.head("/raw/x1/results.tar", headers={"Range": "bytes=100-199"})
    assert (response.status_code, response.content, response.headers["content-length"]) == (
        206,
        b"",
        "100",
    )
    assert client.get("/raw/x1/results.tar", headers={"If-None-Match": tag}).status_code == 304
    assert (
        client.get(
            "/raw/x1/results.tar", headers={"Range": f"bytes={len(whole.content)}-"}
        ).status_code
        == 416
    )


# --- reading history again ---


def mended(brain: Brain, place: Path, end: str) -> None:
    """Give page-fault's parser another last statement, in a copy."""
    programs = place / f"programs-{len(list(place.glob('programs-*')))}"
    shutil.copytree(PROGRAMS, programs)
    parser = programs / "page-fault" / "parse.py"
    lines = parser.read_text().splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if line.lstrip().startswith("return"))
    parser.write_text("".join(lines[:last]) + end)
    found = load_programs(programs)
    brain.lab = replace(
        brain.lab,
        catalogue=replace(brain.lab.catalogue, programs=found, parsers=parser_versions(found)),
        tools=replace(brain.lab.tools, results=ChildResultReader(programs)),
    )


HALVED = '    return {"per_process_ops": faults / seconds / tasks / 2, "faults": float(faults)}\n'


def values(brain: Brain, metric: str) -> list[float]:
    return [
        row.value
        for row in rows(
            brain,
            "SELECT value FROM sample s JOIN measured_metric m ON m.id = s.measured"
            " WHERE m.metric = :metric ORDER BY run, seq",
            metric=metric,
        )
    ]


def test_what_todays_parsers_have_read_is_not_read_again(brain: Brain) -> None:
    done = reparse(brain.lab, ReparseRequest())
    assert (done.boots, done.runs, done.current, done.changed) == (6, 0, 12, 0)
    done = reparse(brain.lab, ReparseRequest(again=True, dry_run=True))
    assert (done.runs, done.changed) == (12, 0)


def test_a_mended_parser_reads_history_again_and_says_what_changed(
    own_brain: Brain, tmp_path: Path
) -> None:
    old = values(own_brain, METRIC)
    mended(own_brain, tmp_path, HALVED)
    tried = reparse(own_brain.lab, ReparseRequest(program="page-fault", dry_run=True))
    assert values(own_brain, METRIC) == old
    assert values(own_brain, "page-fault.faults") == []
    done = reparse(own_brain.lab, ReparseRequest(program="page-fault"))
    assert tried.listed == done.listed
    assert done.metrics == {METRIC: {"changed": 12}, "page-fault.faults": {"added": 12}}
    assert done.comparisons == [1]
    new = values(own_brain, METRIC)
    assert new == [value / 2 for value in old]
    journal = [
        row.changes[METRIC] for row in rows(own_brain, "SELECT changes FROM reparse ORDER BY run")
    ]
    assert journal == [{"old": [one], "new": [other]} for one, other in zip(old, new, strict=True)]
    again = reparse(own_brain.lab, ReparseRequest(program="page-fault"))
    assert (again.runs, again.changed, own_brain.count("reparse")) == (0, 0, 12)


def test_history_half_read_again_is_old_or_new_in_each_boot_and_is_finished_later(
    own_brain: Brain, tmp_path: Path
) -> None:
    old = values(own_brain, METRIC)
    mended(own_brain, tmp_path, HALVED)

    def dies(done: Reparsed) -> None:
        if done.boots == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reparse(own_brain.lab, ReparseRequest(), dies)
    assert values(own_brain, METRIC) == [value / 2 for value in old[:4]] + old[4:]
    done = reparse(own_brain.lab, ReparseRequest())
    assert (done.current, done.changed) == (4, 8)
    assert values(own_brain, METRIC) == [value / 2 for value in old]


def test_boots_whose_results_are_gone_keep_their_values(own_brain: Brain, tmp_path: Path) -> None:
    old = values(own_brain, METRIC)
    results_tar(own_brain).unlink()
    mended(own_brain, tmp_path, HALVED)
    done = reparse(own_brain.lab, ReparseRequest())
    assert done.lost == 1
    assert "not in the artifact store" in done.unreadable[0][1]
    assert values(own_brain, METRIC) == old[:2] + [value / 2 for value in old[2:]]


def test_runs_that_were_never_remembered_come_in(own_brain: Brain) -> None:
    old = values(own_brain, METRIC)
    with own_brain.engine.begin() as conn:
        conn.execute(sa.text("DELETE FROM sample"))
        conn.execute(sa.text("DELETE FROM run"))
    done = reparse(own_brain.lab, ReparseRequest())
    assert (done.new, done.changed) == (12, 12)
    assert values(own_brain, METRIC) == old


@pytest.mark.parametrize("what", ["parse.py", "meta.yaml", "a monitor"])
def test_a_parsers_version_is_that_of_all_it_is_made_of(tmp_path: Path, what: str) -> None:
    shutil.copytree(PROGRAMS, tmp_path / "programs")
    before = parser_versions(load_programs(tmp_path / "programs"))
    assert before == parser_versions(load_programs(PROGRAMS))
    changed = (
        tmp_path
        / "programs"
        / ("perf-stat/meta.yaml" if what == "a monitor" else f"netperf/{what}")
    )
    changed.write_text(changed.read_text() + "# mended\n")
    after = parser_versions(load_programs(tmp_path / "programs"))
    assert after["netperf"] != before["netperf"]
    assert (after["hackbench"] != before["hackbench"]) == (what == "a monitor")


# --- the commands ---


def swingbot(brain: Brain, *words: str) -> Result:
    environment = {
        "SWINGBOT_PATHS_STATE": str(brain.settings.state),
        "SWINGBOT_DB_URL": brain.engine.url.render_as_string(hide_password=False),
    }
    return CliRunner().invoke(main, words, env=environment)


def test_swingbot_raw_says_what_it_brought_and_where(brain: Brain, tmp_path: Path) -> None:
    first = swingbot(brain, "raw", "c1", "--out", str(tmp_path / "c1"))
    assert first.exit_code == 0
    assert (
        f"12 runs and {len(list(read_samples(brain)))} samples in {tmp_path / 'c1'}" in first.stdout
    )
    again = json.loads(swingbot(brain, "raw", "c1", "--out", str(tmp_path / "c1"), "--json").stdout)
    assert (again["fetched"], again["missing"]) == (0, [])
    bare = json.loads(
        swingbot(
            brain, "raw", "c1", "--out", str(tmp_path / "bare"), "--without-kernels", "--json"
        ).stdout
    )
    kernels = sum(path.is_file() for path in (tmp_path / "c1" / "kernels").rglob("*"))
    assert kernels >= 2
    assert bare["files"] == again["files"] - kernels
    assert not (tmp_path / "bare" / "kernels").exists()


def read_samples(brain: Brain) -> list[Any]:
    with brain.engine.connect() as conn:
        return list(read.samples(conn, "c1"))


@pytest.mark.parametrize(
    ("id", "code", "words"),
    [
        ("c99", 2, "comparison c99 does not exist"),
        ("v1", 2, "a variant has no raw results"),
        ("nothing", 2, "is not an id"),
    ],
)
def test_what_cannot_be_brought_is_one_sentence(
    brain: Brain, tmp_path: Path, id: str, code: int, words: str
) -> None:
    answer = swingbot(brain, "raw", id, "--out", str(tmp_path / "out"))
    assert answer.exit_code == code
    assert words in answer.stderr
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_one_sentence(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = swingbot(brain, "raw", "c1", "--out", str(tmp_path / "file" / "below"))
    size, *said = answer.stderr.splitlines()
    assert size.startswith("c1 has 18 files of ")
    assert (answer.exit_code, len(said)) == (1, 1)


def test_swingbot_reparse_says_in_words_and_as_json_what_changed(
    own_brain: Brain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = swingbot(own_brain, "reparse")
    assert (
        "parsed 0 runs of 6 boots again; skipped 12 runs already parsed by the current parser;"
        " 0 runs changed" in nothing.stdout
    )
    mended(own_brain, tmp_path, HALVED)
    monkeypatch.setenv("SWINGBOT_PATHS_JOBS", str(tmp_path / "jobs"))
    (tmp_path / "jobs").mkdir()
    (tmp_path / "programs-0").rename(tmp_path / "jobs" / "programs")
    old = values(own_brain, METRIC)
    facts = json.loads(swingbot(own_brain, "reparse", "--dry-run", "--json").stdout)
    assert facts["dry_run"] is True
    assert facts["changes"][0]["metrics"][METRIC] == {
        "kind": "changed",
        "old": [old[0]],
        "new": [old[0] / 2],
    }
    text = swingbot(own_brain, "reparse", "--program", "page-fault").stdout
    assert "12 runs changed" in text
    assert f"{old[0]:.15g} -> {old[0] / 2:.15g}" in text
    assert "not changed: c1" in text
    unknown = swingbot(own_brain, "reparse", "--program", "netpref")
    assert (unknown.exit_code, "program 'netpref' does not exist" in unknown.stderr) == (2, True)
