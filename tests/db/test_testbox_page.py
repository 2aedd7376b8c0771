"""The page of a testbox: boots with their kernels, their scatter over time, what it resolves."""

from __future__ import annotations

import re

import pytest

from swingbot.app.wiring import make_lab
from swingbot.core.access.roles import Role
from swingbot.service.detect.measure_noise import measure_noise
from swingbot_jobs.contract.unit_job import UnitJob
from tests import builders as make
from tests.asking import Serve

JOB, METRIC = "vm-hackbench-socket-1-60-process-2", "hackbench.throughput"
SHIFTS = (-1.0, 1.0, 0.0, -1.0, 1.0, 0.0)  # of boots of a kernel, in per cent


def test_boots_scatter_around_their_kernel_and_show_what_a_plan_promises(serve: Serve) -> None:
    site = serve()
    conn, client, lab = site.web.conn, site.web.client, make_lab(site.web.settings, site.web.engine)
    with lab.transaction("spec") as tx:
        spec = tx.specs.add([UnitJob(name=JOB, program="hackbench", params={}, runs=2)])
    testbox = make.Testbox(name="vm-icount", spec=spec, unit_job=JOB)
    tree = make.a_tree(conn)
    kernels = [make.a_kernel(conn, tree, number) for number in range(3)]
    for kernel, at, boots in zip(kernels, (1000.0, 500.0, 7.0), (6, 6, 1), strict=True):
        for k, shift in enumerate(SHIFTS[:boots]):
            level = at * (1.0 + shift / 100.0)
            values = {METRIC: [level - 1.0, level + 1.0], "perf-stat.x": [level]}
            make.a_boot(conn, testbox, kernel, k=k, values=values)
    conn.commit()
    with lab.transaction("measure noise") as tx:
        measure_noise(lab.catalogue, tx.noise)

    facts = client.get("/testbox/vm-icount.json").json()
    (of_metric,) = facts["scatter"]
    assert of_metric["metric"] == METRIC, "what a benchmark reports, and no counter"
    drawn = [[boot["pct"] for boot in kernel["boots"]] for kernel in of_metric["kernels"]]
    assert [pytest.approx(pcts) for pcts in drawn] == [[100.0 + shift for shift in SHIFTS]] * 2

    ada = site.web.token("Ada", Role.SUBMITTER)
    plan = site.json(ada, boots=site.web.settings.watch.boots, dry_run=True).json()["plan"]
    promised = {row["words"] for row in plan["cost"]["resolves"]}
    assert promised and promised == {row["words"] for row in facts["resolves"]}

    page = client.get("/testbox/vm-icount").text
    noise, table = page[page.index('id="noise"') :].split('id="boots"')
    marks = {boot["boot"] for kernel in of_metric["kernels"] for boot in kernel["boots"]}
    assert set(re.findall(r'href="/boot/(x\d+)"', noise)) == marks
    assert "noise alone keeps a boot within" in noise
    assert all(words in noise for words in promised)
    assert all(kernel["commit"][:12] in table for kernel in of_metric["kernels"])
