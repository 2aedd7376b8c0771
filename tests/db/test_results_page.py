"""Pages that browse everything measured, asked as a browser asks."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from html import unescape
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from swingbot.app.settings import Settings, load
from swingbot.app.wiring import make_lab
from swingbot.core.stats.findings import look
from swingbot.service.ports import Lab
from swingbot.web.app import make_app
from swingbot.web.http.render import Renderer
from swingbot.web.http.snapshot_reader import SnapshotReader
from swingbot.web.pages.metric_page import MetricPages
from swingbot.web.pages.results import ResultPages
from swingbot_db import read
from swingbot_db.engine import make_engine
from swingbot_jobs import codec
from tests import builders as make
from tests.database import fresh
from tests.fakes.kernels import kept_by
from tests.fakes.mail import brain_environment
from tests.fakes.pages import no_artifact, writing_routes
from tests.postgres import Server
from tests.releases import (
    CULPRIT,
    HACKBENCH,
    HACKBENCH_JOB,
    SUBJECTS,
    TREE,
    Releases,
    three_releases,
)


@dataclass(frozen=True)
class Site:
    client: TestClient
    conn: sa.Connection
    made: Releases

    def page(self, path: str, status: int = 200) -> str:
        answer = self.client.get(path, follow_redirects=True)
        assert answer.status_code == status, (path, answer.text[:2000])
        return unescape(answer.text)

    def json(self, path: str) -> Any:
        answer = self.client.get(path)
        assert answer.status_code == 200, (path, answer.text[:2000])
        return answer.json()


@dataclass(frozen=True)
class Filled:
    """A database to copy for each test, and what does not change between them."""

    database: str
    made: Releases
    settings: Settings
    lab: Lab


@pytest.fixture(scope="module")
def filled(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    state = tmp_path_factory.mktemp("results") / "state"
    with fresh(pg, template) as url:
        settings, engine = load(environ=brain_environment(state, url)), make_engine(url)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
            made = three_releases(conn, settings.mirror)
        lab = make_lab(settings, engine)
        engine.dispose()  # a database with connections cannot be copied
        yield Filled(str(sa.make_url(url).database), made, settings, lab)


@pytest.fixture
def site(pg: Server, filled: Filled) -> Iterator[Site]:
    with fresh(pg, filled.database) as url:
        engine = make_engine(url)
        source, renderer = SnapshotReader(engine, read), Renderer(filled.settings)
        jobs = Path(filled.settings.paths.jobs)
        files = sorted(path.name for path in jobs.glob("*.yaml"))
        routes = [
            *ResultPages(source, renderer, lambda: filled.lab, lambda: files).routes(),
            *MetricPages(source, renderer, lambda: filled.lab).routes(),
            *writing_routes(filled.settings, engine),
        ]
        app = make_app(filled.settings, engine, read, kept_by(no_artifact), routes)
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        with connection as conn, TestClient(app, base_url=filled.settings.web_url) as client:
            yield Site(client, conn, filled.made)
        engine.dispose()


def compare(*kernels: str, form: str = "", **more: str) -> str:
    query = "&".join([f"tree={TREE}", *(f"kernel={one}" for one in kernels)])
    return f"/results{form}?{query}" + "".join(f"&{k}={v}" for k, v in more.items())


def row_of(document: Any, metric: str, testbox: str = "vm-icount", arm: int = 1) -> Any:
    (row,) = [
        row
        for row in document["rows"]
        if (row["metric"], row["testbox"], row["arm"]) == (metric, testbox, arm)
    ]
    return row


def test_two_releases_are_judged_from_boots_that_exist(site: Site) -> None:
    boots = site.conn.execute(sa.text("SELECT count(*) FROM orders")).scalar()
    document = site.json(compare("v6.1.110", "v6.1.111", form=".json"))
    assert [one["name"] for one in document["kernels"]] == ["v6.1.110", "v6.1.111"]
    fault = row_of(document, make.METRIC)
    assert fault["verdict"] == "worse" and fault["change_pct"] == pytest.approx(-18.0, abs=0.2)
    assert fault["base"]["boots"] == 4 and fault["paired"], "boots of equal k are pairs"
    assert row_of(document, HACKBENCH)["verdict"] == "same"
    text = site.page(compare("v6.1.110", "v6.1.111"))
    assert "\u221218.0" in text and "v6.1.111 against v6.1.110" in text
    assert site.conn.execute(sa.text("SELECT count(*) FROM orders")).scalar() == boots


def test_what_moved_names_the_incident_between_the_two_releases_and_no_other(site: Site) -> None:
    first, second = site.json(compare("v6.1.110", "v6.1.111", "tip", form=".json"))["moved"]
    assert [one["incident"] for one in first["incidents"]] == [f"i{site.made.incident}"]
    (row,) = first["rows"]
    assert (row["metric"], row["incidents"]) == (make.METRIC, [f"i{site.made.incident}"])
    assert first["order"] is None and not first["backwards"] and second["incidents"]
    (later,) = site.json(compare("v6.1.111", "v6.1.112", form=".json"))["moved"]
    assert (later["changed"], later["incidents"], later["order"]) == (0, [], None)
    (back,) = site.json(compare("v6.1.111", "v6.1.110", form=".json"))["moved"]
    assert back["backwards"] and back["incidents"]
    text = site.page(compare("v6.1.110", "v6.1.111"))
    assert f'href="/incident/i{site.made.incident}"' in text and SUBJECTS[CULPRIT] in text
    assert "was undone, not made" in site.page(compare("v6.1.111", "v6.1.110"))
    assert "No incident has a commit between" in site.page(compare("v6.1.111", "v6.1.112"))


def test_without_the_history_in_the_mirror_nobody_is_blamed(site: Site) -> None:
    site.conn.execute(
        sa.text("UPDATE variant SET commit = :other WHERE subject = 'Linux 6.1.110'"),
        {"other": make.hex_of("elsewhere")},
    )
    (only,) = site.json(compare("v6.1.110", "v6.1.111", form=".json"))["moved"]
    assert only["incidents"] == [] and only["changed"] == 1
    assert "the mirror does not have the history" in only["order"]


@pytest.mark.parametrize(
    "names",
    [
        ("base", "tip"),
        ("v6.1.110", "6.1.112"),
        ("master", "{commit}"),
        ("v{variant}", "{prefix}~1"),
        ("{prefix}", "tip~1"),
    ],
)
def test_kernels_are_named_as_people_name_them(site: Site, names: tuple[str, str]) -> None:
    kernel = site.made.kernels[5]
    given = [
        name.format(commit=kernel.commit, prefix=kernel.commit[:10], variant=kernel.variant)
        for name in names
    ]
    document = site.json(compare(*given, form=".json"))
    assert len(document["kernels"]) == 2 and document["rows"]


def test_on_a_testbox_kernels_of_its_own_configuration_are_shown(site: Site) -> None:
    names = ("v6.1.110", "v6.1.111")
    usual = site.json(compare(*names, form=".json"))["kernels"]
    rack = make.a_testbox(site.conn, "rack1")
    for number, kernel in enumerate(usual):
        (subject,) = site.conn.execute(
            sa.text("SELECT subject FROM variant WHERE id = :v"), {"v": int(kernel["id"][1:])}
        ).one()
        own = make.a_variant(
            site.conn, site.made.tree, f"own{number}", subject=subject, kconfig="server-x86_64"
        )
        make.a_kernel_build(site.conn, own)
        make.a_boot(site.conn, rack, own, values={make.METRIC: [9.0]})
    assert site.json(compare(*names, form=".json"))["kernels"] == usual
    shown = site.json(compare(*names, form=".json", testbox="rack1"))
    assert {kernel["kconfig"] for kernel in shown["kernels"]} == {"server-x86_64"}
    assert [row["testbox"] for row in shown["rows"] if row["metric"] == make.METRIC] == ["rack1"]


def test_wrong_addresses_are_answered_in_a_sentence(site: Site) -> None:
    for path, status, words in (
        (compare("v6.1.110", "v9.9"), 404, "has no kernel 'v9.9'"),
        (compare("tip", "v6.1.112"), 400, "give two different kernels"),
        (compare(*(f"v{n}" for n in range(7))), 400, "2 to 6 can be compared"),
        (compare("base", "tip", sort="colour"), 400, "sort must be one of"),
        (compare("base", "tip", verdict="bad"), 400, "verdict must be one of"),
        (compare("base", "tip", limit="3"), 400, "not a parameter of results"),
        ("/results?tree=nowhere", 404, "does not exist"),
        ("/results.csv?tree=stable", 400, "2 to 6 kernels"),
        ("/metric/stable/vm-icount/x", 404, "/metric/<tree>/<testbox>"),
        ("/metric/stable/nobox/a/b", 404, "testbox 'nobox' does not exist"),
        ("/metric/stable/vm-icount/page-fault-faults-2/x", 404, "nearest of its 2 unit jobs"),
        ("/metric?unit_job=a&metric=b", 404, "no boot has reported"),
        ("/metric", 200, "Noise: the standard deviation"),
    ):
        assert words in site.page(path, status), path


def test_the_order_and_the_filters_are_those_of_the_address(site: Site) -> None:
    by_size = site.json(compare("base", "tip", form=".json", sort="size"))["rows"]
    assert [row["metric"] for row in by_size] == [make.METRIC, HACKBENCH]
    by_name = site.json(compare("base", "tip", form=".json", sort="name"))["rows"]
    assert [row["metric"] for row in by_name] == [HACKBENCH, make.METRIC]
    counters = site.json(compare("base", "tip", form=".json", metric="INSTRUCTIONS"))
    assert [row["metric"] for row in counters["rows"]] == ["perf-stat.instructions"]
    assert not [gap for gap in counters["missing"] if gap["testbox"] == "vm-icount"]
    worse = site.json(compare("base", "tip", form=".json", verdict="worse"))
    assert [row["verdict"] for row in worse["rows"]] == ["worse"]
    nothing = site.page(compare("base", "tip", test="no-such-test"))
    assert "None of the 2 rows matches the filters" in nothing
    ordered = [
        row["p"]
        for row in site.json(compare("base", "tip", form=".json", sort="significance"))["rows"]
    ]
    assert ordered == sorted(ordered)


def test_boots_of_different_requests_carry_the_spread_between_days(site: Site) -> None:
    row = row_of(site.json(compare("v6.1.110", "v6.1.111", form=".json")), HACKBENCH, "vm-tcg")
    assert not row["together"] and not row["paired"]
    assert "the spread between days is included" in row["reason"]
    low, high = row["interval_pct"]
    site.conn.execute(sa.text("UPDATE boot SET series = 'c90' WHERE testbox = 'vm-tcg'"))
    same = row_of(site.json(compare("v6.1.110", "v6.1.111", form=".json")), HACKBENCH, "vm-tcg")
    assert same["together"] and same["verdict"] == "worse"
    assert same["interval_pct"][1] - same["interval_pct"][0] < (high - low) / 2


def test_what_is_missing_says_why_what_it_costs_and_where_to_request_it(site: Site) -> None:
    document = site.json(compare("v6.1.110", "v6.1.112", form=".json"))
    (gap,) = document["missing"]
    assert (gap["kernel"], gap["testbox"], gap["unit_jobs"]) == (1, "vm-tcg", [HACKBENCH_JOB])
    assert (gap["boots"], gap["reference_boots"], gap["seconds"]) == (5, 5, 10 * 21.0)
    asked = {name: value[0] for name, value in parse_qs(urlsplit(gap["href"]).query).items()}
    assert asked == {
        "tree": TREE,
        "base": site.made.commits[0],
        "head": site.made.commits[10],
        "job": "hackbench.yaml",
        "testbox": "vm-tcg",
        "boots": "5",
    }
    text = site.page(compare("v6.1.110", "v6.1.112"))
    assert f'href="{gap["href"]}"' in text and "about 3 min 30 s" in text
    make.a_boot(site.conn, site.made.noisy, site.made.kernels[10], outcome="panicked", series="c92")
    (gap,) = site.json(compare("v6.1.110", "v6.1.112", form=".json"))["missing"]
    assert "none came up of its 1 boot" in gap["why"] and gap["boots"] == 0 and gap["href"] is None


def test_a_kernel_that_is_only_a_commit_is_missing_everywhere(site: Site) -> None:
    number = site.made.kernels[4].variant
    for table in ("boot", "kernel_build"):
        key = site.made.kernels[4].build_key
        if table == "boot":
            site.conn.execute(
                sa.text("DELETE FROM bisection_point WHERE variant = :v"), {"v": number}
            )
            site.conn.execute(sa.text("DELETE FROM sample USING run, boot WHERE sample.run = run.id"
                " AND run.boot = boot.id AND boot.build_key = :k"), {"k": key})  # fmt: skip
            site.conn.execute(sa.text("DELETE FROM run USING boot WHERE run.boot = boot.id"
                " AND boot.build_key = :k"), {"k": key})  # fmt: skip
        site.conn.execute(sa.text(f"DELETE FROM {table} WHERE build_key = :k"), {"k": key})
    document = site.json(compare("v6.1.110", site.made.commits[4], form=".json"))
    assert "has no boots yet" in document["notes"][0] and document["rows"] == []
    assert {gap["testbox"] for gap in document["missing"]} == {"vm-icount", "vm-tcg"}
    assert all(gap["build_seconds"] == 42.0 for gap in document["missing"])


def test_kernels_without_a_common_test_are_told_apart_in_a_sentence(site: Site) -> None:
    made = make.a_kernel(site.conn, site.made.tree, 77, subject="mm: elsewhere")
    rack = make.a_testbox(site.conn, "rack1", unit_job="netperf-200%-TCP_STREAM")
    make.a_boot(site.conn, rack, made, values={"netperf.Throughput_Mbps": [870.0]})
    text = site.page(compare("base", made.commit))
    assert "These kernels have no test on a testbox in common" in text
    assert f"{made.commit[:12]}: netperf-200%-TCP_STREAM on rack1" in text
    assert "never booted there with this test" in text


def test_a_metric_whose_unit_changed_is_not_compared(site: Site) -> None:
    for kernel, unit in ((0, "ops/s"), (10, "ns")):
        number = make.a_comparison(
            site.conn, site.made.tree, site.made.kernels[kernel], site.made.kernels[kernel],
            [site.made.icount],
        )  # fmt: skip
        make.a_row(site.conn, number, site.made.icount, unit=unit)
    row = row_of(site.json(compare("v6.1.110", "v6.1.112", form=".json")), make.METRIC)
    assert row["verdict"] == "invalid"
    assert "changed between the two measurements, from ops/s to ns" in row["reason"]


def test_a_renamed_testbox_keeps_its_results_and_names_the_new_one(site: Site) -> None:
    site.conn.execute(sa.text("UPDATE testbox SET state = 'gone' WHERE name = 'vm-tcg'"))
    make.a_testbox(site.conn, "vm-tcg2", unit_job=HACKBENCH_JOB, tbox_group="vm-tcg")
    text = site.page(compare("v6.1.110", "v6.1.112"))
    words = (
        "vm-tcg is no longer in the lab; its results stay under that name, and if it was renamed"
    )
    assert words in text and "new ones are under vm-tcg2" in text
    (gap,) = site.json(compare("v6.1.110", "v6.1.112", form=".json"))["missing"]
    assert gap["href"] is None
    page = site.page(f"/metric/{TREE}/vm-tcg/{HACKBENCH_JOB.replace('%', '%25')}/{HACKBENCH}")
    assert words in page
    missing = site.page(
        f"/metric/{TREE}/vm-tcg2/{HACKBENCH_JOB.replace('%', '%25')}/{HACKBENCH}", 404
    )
    assert "it was measured on vm-icount, vm-tcg" in missing


def test_65_metrics_with_similar_names_are_listed_filtered_and_suggested(site: Site) -> None:
    names = [f"page-fault.latency_{number:02}_percentile" for number in range(65)]
    for number in (0, 10):
        values = {name: [100.0 + at] * 3 for at, name in enumerate(names)}
        make.a_boot(site.conn, site.made.icount, site.made.kernels[number], k=9, values=values)
    rows = site.json(compare("v6.1.110", "v6.1.112", form=".json"))["rows"]
    assert len({row["metric"] for row in rows} & set(names)) == 65
    few = site.json(compare("v6.1.110", "v6.1.112", form=".json", metric="latency_3"))["rows"]
    assert {row["metric"] for row in few} == {name for name in names if "latency_3" in name}
    place = f"/metric/{TREE}/vm-icount/{make.UNIT_JOB}"
    text = site.page(f"{place}/page-fault.latency_07_percentle", 404)
    assert f"the nearest of its 67 metrics are {names[7]}, " in text


def test_a_long_subject_is_cut_and_says_so(site: Site) -> None:
    assert len(SUBJECTS[7]) > 490
    text = site.page(compare("base", site.made.commits[7]))
    assert f"(subject of {len(SUBJECTS[7])} characters)" in text and SUBJECTS[7] not in text
    document = site.json(compare("base", site.made.commits[7], form=".json"))
    assert document["kernels"][1]["subject"] == SUBJECTS[7]


def test_the_spreadsheet_has_every_row_with_both_levels(site: Site) -> None:
    document = site.json(compare("base", "tip", form=".json"))
    answer = site.client.get(compare("base", "tip", form=".csv"))
    lines = list(csv.DictReader(io.StringIO(answer.text)))
    assert [line["metric"] for line in lines] == [row["metric"] for row in document["rows"]]
    worse = next(line for line in lines if line["verdict"] == "worse")
    assert float(worse["change_pct"]) == pytest.approx(-18.0, abs=0.2)
    assert (worse["reference"], worse["kernel"]) == ("v6.1.110", "v6.1.112")
    assert float(worse["reference_mean"]) > float(worse["kernel_mean"])


def test_every_link_of_the_pages_leads_somewhere(site: Site) -> None:
    place = f"/metric/{TREE}/vm-icount/{HACKBENCH_JOB.replace('%', '%25')}/{HACKBENCH}"
    for path in ("/results", compare("base"), compare("base", "v6.1.111", "tip"), place):
        text = site.page(path)
        links = set(re.findall(r'(?:href|src)="([^"]*)"', text))
        anchors = set(re.findall(r' id="([^"]+)"', text))
        assert {link[1:] for link in links if link.startswith("#")} <= anchors
        elsewhere = ("/mailbox", "/install")
        for link in {one for one in links if one.startswith("/") and one not in elsewhere}:
            answer = site.client.get(link, follow_redirects=True)
            assert answer.status_code == 200, (path, link, answer.text[:300])


def test_a_tree_without_boots_and_a_lab_without_trees_say_so(site: Site) -> None:
    make.a_tree(site.conn, "young")
    assert "No kernel of this tree has been booted yet" in site.page("/results?tree=young")
    text = site.page("/results")
    assert "v6.1.110" in text, "the only tree with boots is taken"
    chosen = site.page(compare("base"))
    assert "Choose one more kernel" in chosen


# -- a metric over commits


def metric(*names: str, form: str = "") -> str:
    return "/metric/" + "/".join(quote(name, safe="") for name in names) + form


def test_a_metric_over_commits_is_in_the_order_of_git(site: Site) -> None:
    place = (TREE, "vm-icount", make.UNIT_JOB, make.METRIC)
    document = site.json(metric(*place, form=".json"))
    assert [point["commit"] for point in document["points"]] == site.made.commits
    assert [point["release"] for point in document["points"] if point["release"]] == [
        "v6.1.110",
        "v6.1.111",
        "v6.1.112",
    ]
    levels = [point["level"] for point in document["points"]]
    assert levels[1] > 240_000 > 210_000 > levels[2]
    assert [one["incident"] for one in document["culprits"]] == [f"i{site.made.incident}"]
    assert [one["comparison"] for one in document["swings"]] == [f"c{site.made.comparison}"]
    picture = site.client.get(metric(*place, form=".svg"))
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert picture.text.count("<circle") == 3 * 4 + 8 * 2
    for words in (
        "v6.1.111",
        f"/incident/i{site.made.incident}",
        f"/comparison/c{site.made.comparison}",
    ):
        assert words in picture.text
    lines = list(csv.DictReader(io.StringIO(site.client.get(metric(*place, form=".csv")).text)))
    assert len(lines) == 3 * 4 + 8 * 2 and lines[0]["unit"] == "faults/s"


def test_without_the_mirror_tips_and_bisections_give_the_order(site: Site) -> None:
    site.conn.execute(sa.text("UPDATE tree SET tip_commit = :c"), {"c": make.hex_of("gone")})
    place = metric(TREE, "vm-icount", make.UNIT_JOB, make.METRIC, form=".json")
    document = site.json(place)
    known = [point for point in document["points"] if point["ordered"]]
    assert [point["commit"] for point in known] == [*site.made.commits[:6], site.made.commits[10]]
    assert "4 commits at the end whose place in history is not known" in " ".join(document["notes"])


def test_bands_come_from_the_findings_or_from_the_noise_record(site: Site) -> None:
    place = metric(TREE, "vm-icount", make.UNIT_JOB, make.METRIC, form=".json")
    assert site.json(place)["bands"] == []
    boot = site.conn.execute(sa.text("SELECT max(id) FROM boot")).scalar()
    record = {"boot_mean": {"sd": 0.01, "df": 20.0}}
    site.conn.execute(
        sa.text(
            "INSERT INTO noise_record VALUES ('vm-icount', :job, :metric, CAST(:d AS jsonb), :b)"
        ),
        {"job": make.UNIT_JOB, "metric": make.METRIC, "d": json.dumps(record), "b": boot},
    )
    before, after = site.json(place)["bands"]
    assert before["low"] == pytest.approx(0.98 * before["level"])
    assert before["level"] > 240_000 > 210_000 > after["level"], "no level across a step"
    assert after["first"] == site.made.commits[2]
    findings = look([246_000.0 * (1 + 1e-3 * make.spread(5 * k)) for k in range(12)])
    tips = {str(at): site.made.commits[min(at, 10)] for at in range(12)}
    found = codec.plain(findings) | {"tips": {at: {"commit": c} for at, c in tips.items()}}
    site.conn.execute(
        sa.text(
            "INSERT INTO tree_history VALUES (:t, 'vm-icount', :job, :m, :c, CAST(:f AS jsonb))"
        ),
        {"t": site.made.tree, "job": make.UNIT_JOB, "m": make.METRIC, "c": site.made.comparison}
        | {"f": json.dumps(found)},
    )
    (band,) = site.json(place)["bands"]
    assert (band["first"], band["last"]) == (site.made.commits[0], site.made.commits[10])
    points = [point for point in site.json(place)["points"] if point["stddev"] is not None]
    of_boots = fmean(
        (point["stddev"] / point["level"]) ** 2 * (1 - 1 / len(point["boots"])) for point in points
    )
    sd = math.sqrt((findings.noise_pct / 100) ** 2 + of_boots)
    assert band["high"] / band["level"] - 1 == pytest.approx(2 * sd)
    text = site.page(place.removesuffix(".json"))
    assert "12 points, noise" in text and "no step and no creep" in text
    assert "base band" in site.client.get(place.removesuffix(".json") + ".svg").text


def test_all_testboxes_of_a_metric_are_on_one_page(site: Site) -> None:
    text = site.page(metric(TREE, "vm-icount", HACKBENCH_JOB, HACKBENCH))
    assert f'href="{metric(TREE, "vm-tcg", HACKBENCH_JOB, HACKBENCH)}"' in text
    assert "beside vm-icount, in per cent" in text
    other = site.client.get(
        metric(TREE, "vm-icount", HACKBENCH_JOB, HACKBENCH, form=".svg?on=vm-tcg")
    )
    assert other.text.count("<circle") == 10


HISTORY = metric(TREE, "vm-icount", make.UNIT_JOB, make.METRIC)


def plot_of(text: str) -> str:
    """The field of the first plot of a page."""
    found = re.search(r'<svg class="plot field".*?</svg></div>', text, re.DOTALL)
    assert found, "the page has no plot"
    return found[0]


def commits_of(text: str) -> list[str]:
    table = text[text.index('<section id="commits">') :]
    return list(dict.fromkeys(re.findall(r'href="/variant/(v\d+)"', table)))


def test_a_plot_leads_to_boot_kernel_comparison_incident_and_mail_without_scripts(
    site: Site,
) -> None:
    report = make.a_report(site.conn, site.made.incident)
    plot = plot_of(site.client.get(HISTORY).text)
    title = "v6.1.111"
    assert title in plot
    for address, heading in (
        (r"/boot/x\d+", "Boot x"),
        (r"/variant/v\d+", "Kernel|Variant"),
        (f"/comparison/c{site.made.comparison}", f"Comparison c{site.made.comparison}"),
        (f"/incident/i{site.made.incident}", f"Incident i{site.made.incident}"),
        (f"/report/r{report}", f"Report r{report}"),
    ):
        links = re.findall(f'<a href="({address})"', plot)
        assert links, address
        assert re.search(f"<h1[^>]*>({heading})", site.page(links[0])), links[0]
    words = re.findall(r"<a href=\"/boot/[^>]*><title>([^<]*)</title>", plot)
    assert len(words) == 3 * 4 + 8 * 2
    assert all(part in words[0] for part in ("Linux 6.1.110", "A Developer", "level", "4 boots"))


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("?range=all", 0, 10),
        ("?range=release", 5, 10),
        ("?from=v6.1.111", 5, 10),
        ("?to=v6.1.111", 0, 5),
        ("?from=v6.1.112&to=v6.1.111", 5, 10),
        ("?from=v6.1.111&by=time", 5, 10),
    ],
)
def test_a_range_is_what_the_plot_and_the_table_have(
    site: Site, query: str, first: int, last: int
) -> None:
    text = site.page(HISTORY + query)
    kernels = [site.made.kernels[at] for at in range(first, last + 1)]
    assert len(commits_of(text)) == len(kernels)
    numbers = [4 if at in (0, 5, 10) else 2 for at in range(first, last + 1)]
    assert plot_of(text).count("<circle") == sum(numbers)
    assert f"{len(kernels)} commits of 11" in text
    svg = site.client.get(f"{HISTORY}.svg{query}")
    assert svg.text.count("<circle") == sum(numbers)


def test_a_range_of_days_counts_from_now(site: Site) -> None:
    assert "No commit that is shown has a value" in site.page(f"{HISTORY}?range=30d")
    site.conn.execute(
        sa.text("UPDATE boot SET booted_at = now() - interval '40 days' * (id % 2) WHERE k < 2")
    )
    assert "0 commits of 11" in site.page(f"{HISTORY}?range=30d")
    assert re.search(r"[1-9]\d* commits? of 11", site.page(f"{HISTORY}?range=90d"))


def test_a_prefix_of_a_commit_bounds_a_range(site: Site) -> None:
    commits = site.made.commits
    text = site.page(f"{HISTORY}?from={commits[2][:8]}&to={commits[3]}")
    assert len(commits_of(text)) == 2


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("range=never", "range must be one of latest, release, 30d, 90d, all, not 'never'"),
        ("by=size", "by must be one of order, time"),
        ("from=zzz", "no commit of this history is 'zzz'"),
        ("page=0", "page must be a number from 1"),
        ("page=7", "page 7 does not exist: there are 1"),
        ("with=vm-tcg", "with must be one of testbox, unit_job, metric, compiler, tree"),
        ("with=testbox:vm-icount", "is what the page shows already"),
        ("with=compiler:tcc", "no kernel with compiler 'tcc' has this metric; choose from gcc"),
        ("colour=red", "'colour' is not a parameter of a history"),
        ("&".join(f"with=testbox:b{n}" for n in range(6)), "at most 6 series"),
        ("of=0000000", "no commit of this history is '0000000'"),
    ],
)
def test_a_wrong_parameter_of_a_history_is_one_sentence(site: Site, query: str, words: str) -> None:
    assert words in site.page(f"{HISTORY}?{query}", 400)


def test_further_series_are_in_per_cent_of_one_commit(site: Site) -> None:
    place = metric(TREE, "vm-icount", HACKBENCH_JOB, HACKBENCH)
    text = site.page(f"{place}?with=testbox:vm-tcg")
    plot = plot_of(text)
    assert plot.count("<circle") == 3 * 4 + 8 * 2
    assert plot.count("(testbox vm-tcg): mean") == 10
    percents = [float(one) for one in re.findall(r"mean [^<]*runs, ([\d.]+) %", plot)]
    assert len(percents) == 3 * 4 + 8 * 2 + 10
    assert all(85.0 < one < 103.0 for one in percents), "the level of the first commit is 100 %"
    assert "100 % is the level at" in text
    counters = site.page(f"{HISTORY}?with=metric:perf-stat.instructions&of=v6.1.111")
    assert site.made.commits[5][:12] in counters
    percents = [float(one) for one in re.findall(r"runs, ([\d.]+) %", plot_of(counters))]
    assert max(percents) == pytest.approx(100 / 0.82, rel=0.01)
    assert min(percents) == pytest.approx(82.0, rel=0.01)
    missing = site.page(f"{HISTORY}?with=testbox:nobox", 404)
    assert "testbox 'nobox' does not exist" in missing


COUNTER: str = "perf-stat.instructions"


def counters_of(text: str) -> str:
    """What a page shows of the counters that moved."""
    return text[text.index("Counters that moved most") : text.index("Other commits, and other")]


def test_counters_that_moved_with_the_largest_change_are_drawn_in_per_cent(site: Site) -> None:
    text = site.page(HISTORY)
    assert "no counters were recorded there" in counters_of(text)
    assert "<svg" not in counters_of(text), "instructions have boots, and no claimed change"
    sides: dict[str, Any] = {
        "base": [5.1e9] * 4,
        "head": [6.22e9] * 4,
        "interval_pct": [21.5, 22.4],
    }
    for name, more in ((COUNTER, sides), ("perf-stat.cycles", {**sides, "verdict": "same"})):
        row: dict[str, Any] = {"verdict": "changed", "unit": "", "class": "counter"} | more
        make.a_row(site.conn, site.made.comparison, site.made.icount, name, better=None, **row)
    text = counters_of(site.page(HISTORY))
    assert f'/comparison/c{site.made.comparison}#why"' in text and "perf-stat.cycles" not in text
    assert f'<a href="{metric(TREE, "vm-icount", make.UNIT_JOB, COUNTER)}">' in text
    found = re.findall(
        rf'href="/boot/(x\d+)"><title>([0-9a-f]{{12}}) (x\d+): {COUNTER} ([\d.]+) %', text
    )
    assert len(found) == 3 * 4 + 8 * 2 and all(link == boot for link, _, boot, _ in found)
    levels = {commit: float(value) for _, commit, _, value in found}
    commits = [commit[:12] for commit in site.made.commits]
    assert levels[commits[0]] == pytest.approx(100.0, rel=0.01)
    assert levels[commits[10]] == pytest.approx(100 / 0.82, rel=0.01)
    other = counters_of(site.page(f"{HISTORY}?of=v6.1.112&by=time"))
    found = re.findall(rf"([0-9a-f]{{12}}) x\d+: {COUNTER} ([\d.]+) %", other)
    assert float(dict(found)[commits[0]]) == pytest.approx(82.0, rel=0.01)
    assert "no counters are ranked" in site.page(f"{HISTORY}?from=v6.1.112")


def test_times_out_of_service_and_commits_without_a_boot_are_marked(site: Site) -> None:
    site.conn.execute(
        sa.text(
            "INSERT INTO testbox_event (testbox, was, state, why, at) VALUES"
            " ('vm-icount', 'idle', 'quarantined', 'its <fan> stands', :begin),"
            " ('vm-icount', 'quarantined', 'idle', '', :end)"
        ),
        {"begin": make.START + timedelta(minutes=12), "end": make.START + timedelta(minutes=18)},
    )
    (absence,) = site.json(f"{HISTORY}.json")["absences"]
    assert (absence["state"], absence["why"]) == ("quarantined", "its <fan> stands")
    for by in ("order", "time"):
        raw = site.client.get(f"{HISTORY}?by={by}").text
        assert "vm-icount was quarantined from" in raw and "its &lt;fan&gt; stands" in raw
    gaps = plot_of(site.page(metric(TREE, "vm-tcg", HACKBENCH_JOB, HACKBENCH)))
    assert "4 commits have no boot here" in gaps and "5 commits have no boot here" in gaps


def test_boots_from_before_a_unit_changed_are_listed_and_not_drawn(site: Site) -> None:
    for kernel, unit, days in ((0, "ops/s", 0), (10, "ns", 9)):
        number = make.a_comparison(
            site.conn, site.made.tree, site.made.kernels[kernel], site.made.kernels[kernel],
            [site.made.noisy], at=make.START + timedelta(days=days),
        )  # fmt: skip
        make.a_row(site.conn, number, site.made.noisy, HACKBENCH, unit=unit)
    place = metric(TREE, "vm-tcg", HACKBENCH_JOB, HACKBENCH)
    document = site.json(place + ".json")
    levels = {point["release"]: point["level"] for point in document["points"]}
    assert levels["v6.1.110"] is None and levels["v6.1.111"] > 7000
    assert "changed from ops/s to ns" in " ".join(document["notes"])
    assert "in another unit" in site.page(place)


def test_names_with_percent_and_slash_lead_to_their_page(site: Site) -> None:
    odd = "hackbench.cfs_rq:/.load/avg%"
    kernel, testbox = site.made.kernels[0], site.made.icount
    make.a_boot(site.conn, testbox, kernel, k=8, values={(HACKBENCH_JOB, odd): [1.0, 2.0]})
    address = metric(TREE, "vm-icount", HACKBENCH_JOB, odd)
    assert "%2F" in address and "%25" in address
    document = site.json(address + ".json")
    assert (document["unit_job"], document["metric"]) == (HACKBENCH_JOB, odd)
    assert f">{odd}</h1>" in site.page(address)
    row = row_of(site.json(compare("base", "tip", form=".json")), HACKBENCH)
    assert row["unit_job"] == HACKBENCH_JOB


def test_a_metric_without_tree_leads_to_its_page_or_to_a_choice(site: Site) -> None:
    query = urlencode({"unit_job": make.UNIT_JOB, "metric": make.METRIC})
    assert f">{make.METRIC}</h1>" in site.page(f"/metric?{query}")
    query = urlencode({"unit_job": HACKBENCH_JOB, "metric": HACKBENCH})
    text = site.page(f"/metric?{query}")
    assert "Choose the tree and testbox" in text and ">vm-tcg</a>" in text


def test_patched_kernels_and_other_configurations_are_left_out_and_counted(site: Site) -> None:
    patched = make.a_variant(site.conn, site.made.tree, 501, origin="patch")
    clang = make.a_variant(site.conn, site.made.tree, 502)
    site.conn.execute(
        sa.text("UPDATE variant SET compiler = 'clang' WHERE id = :v"), {"v": clang.variant}
    )
    for kernel in (patched, clang):
        make.a_kernel_build(site.conn, kernel)
        make.a_boot(site.conn, site.made.icount, kernel, values={make.METRIC: [9.0]})
    place = metric(TREE, "vm-icount", make.UNIT_JOB, make.METRIC)
    document = site.json(place + ".json")
    assert len(document["points"]) == len(SUBJECTS)
    assert "1 kernel with patches" in document["notes"][0]
    assert "1 kernel of other configurations" in document["notes"][1]
    other = site.json(place + ".json?compiler=clang")
    assert [point["commit"] for point in other["points"]] == [clang.commit]
