"""A report's page: each gate with its boots, the plots, and a metric over the tips of its
branch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
import sqlalchemy as sa

from swingbot_db import read
from tests import builders as make
from tests import scenario
from tests.db.test_web import Site, a_site, page


@pytest.fixture
def site(db_url: str, tmp_path: Path) -> Iterator[Site]:
    with a_site(db_url, tmp_path) as found:
        yield found


def test_each_gate_shows_its_answer_its_reason_and_the_boots_behind_it(site: Site) -> None:
    lab = site.lab
    add = """INSERT INTO incident_gate (incident, gate, status, reason, comparison, decided_at)
        VALUES (:i, 'tip', 'pass', '12.3% worse at the tip', :c, now()),
          (:i, 'revert', 'not run', 'conflict in mm/<b>.c', NULL, now())"""
    site.conn.execute(sa.text(add), {"i": lab.incident, "c": lab.comparison})
    site.conn.commit()
    text = page(site, f"/report/r{lab.report}")
    evidence = text[text.index('id="evidence"') : text.index('id="plots"')]
    assert "12.3% worse at the tip" in evidence
    assert "conflict in mm/&lt;b&gt;.c" in evidence
    boots = read.table(site.conn, lab.comparison)["boot_list"]
    assert len(boots) == 6
    for boot in boots:
        assert f'href="/boot/{boot["id"]}"' in evidence


def test_the_page_leads_to_everything_by_address(site: Site) -> None:
    lab = site.lab
    site.conn.execute(sa.text("UPDATE incident SET comparison = :c"), {"c": lab.comparison})
    site.conn.commit()
    text = page(site, f"/report/r{lab.report}")
    for path in (
        f"/plot/c{lab.comparison}/values.svg?metric={make.METRIC}&unit_job={make.UNIT_JOB}"
        "&testbox=vm-icount",
        f"/plot/b{lab.bisection}.svg",
        f"/plot/r{lab.report}/history.svg",
        f"/raw/r{lab.report}/samples.csv",
    ):
        assert f'"{path}"' in unescape(text)
        assert site.client.get(path).status_code == 200
    assert "18.1" in text


def test_links_of_plots_alone_lead_to_boot_kernel_incident_and_mail(site: Site) -> None:
    """The client of this test runs no script."""
    lab = site.lab
    walks = {
        f"/report/r{lab.report}": {"boot", "variant", "incident", "report"},
        f"/bisection/b{lab.bisection}": {"boot", "variant"},
        f"/comparison/c{lab.comparison}": {"boot", "variant"},
    }
    for path, kinds in walks.items():
        drawn = re.findall(r'<svg class="plot field".*?</svg></div>', page(site, path), re.DOTALL)
        marks = [one for plot in drawn for one in re.findall(r"<a .*?</a>", plot, re.DOTALL)]
        assert marks and all("<title>" in one for one in marks if "<text" not in one), path
        links = {match[1] for one in marks if (match := re.match(r'<a href="([^"]*)"', one))}
        assert {link.split("/")[1] for link in links} >= kinds, path
        for link in links:
            page(site, link)


def test_the_history_of_a_metric_has_the_tips_in_order_and_the_commits_that_were_asked_for(
    site: Site,
) -> None:
    headline = read.bisection(site.conn, site.lab.bisection)
    culprit = headline["points"][scenario.CULPRIT]["commit"]
    where = {
        "tree": "mm-demo",
        "testbox": "vm-icount",
        "unit_job": make.UNIT_JOB,
        "metric": make.METRIC,
    }
    found = read.history(site.conn, **where, also=[culprit, "f" * 40])
    assert [(point["commit"], point["place"]) for point in found] == [
        (headline["good"], 0),
        (headline["bad"], 1),
        (culprit, None),
    ]
    values = {boot["boot"]: boot["mean"] for point in found for boot in point["boots"]}
    query = (
        "SELECT 'x' || r.boot AS boot, avg(s.value) AS mean FROM run r JOIN sample s ON "
        "s.run = r.id JOIN measured_metric m ON m.id = s.measured WHERE m.metric = :m"
        " GROUP BY r.boot"
    )
    means = {row.boot: row.mean for row in site.conn.execute(sa.text(query), {"m": make.METRIC})}
    assert values == {boot: means[boot] for boot in values}
    assert len(found[0]["boots"]) >= 3


def test_a_branch_that_was_never_measured_has_no_history(site: Site) -> None:
    assert (
        read.history(
            site.conn, tree="mm-demo", testbox="vm-icount", unit_job="nothing", metric=make.METRIC
        )
        == []
    )
    assert (
        read.history(
            site.conn,
            tree="nowhere",
            testbox="vm-icount",
            unit_job=make.UNIT_JOB,
            metric=make.METRIC,
        )
        == []
    )


def test_a_report_whose_incident_has_no_bisection_has_a_page_and_no_plot_of_the_branch(
    site: Site,
) -> None:
    for table in ("sighting", "incident_bisection"):
        site.conn.execute(sa.text(f"DELETE FROM {table}"))
    site.conn.commit()
    assert "history.svg" not in page(site, f"/report/r{site.lab.report}")
    answer = site.client.get(f"/plot/r{site.lab.report}/history.svg")
    assert (answer.status_code, "has no bisection" in answer.text) == (404, True)
