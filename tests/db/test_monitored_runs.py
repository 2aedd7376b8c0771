"""A run that belongs to a monitor, from the job file to the rows of a comparison."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from swingbot.core.model.records import JobFile
from tests.fakelinux import FakeCommit, add_commits
from tests.fakes.brain import Brain
from tests.fakes.loop import METRIC, plain
from tests.table_requests import compare

JOB = JobFile(
    name="watched.yaml",
    text=(
        "runs: 2\nperf-profile:\npage-fault:\n  mode: process\n  nr_task: 1\n  cycles: 1\n  "
        "size: 128M\n"
    ),
)

SAMPLED = JobFile(name="sampled.yaml", text=JOB.text.replace("perf-profile", "memory-sampler"))


def test_more_memory_of_slab_is_a_regression_and_mailed(brain: Brain) -> None:
    brain.fake.blind = frozenset({"vm-icount"})  # no kernel is slower than another
    brain.watch(brain.base, job_files=[SAMPLED])
    brain.run()
    made = brain.commit(*plain(2), FakeCommit(speed=88), *plain(2))
    brain.poll()
    brain.run()
    rows = {row["metric"]: row for row in brain.facts("c", 2)["rows"]}
    slab = rows["memory-sampler.Slab.max"]
    assert (slab["verdict"], slab["better"], slab["unit"]) == ("worse", "lower", "bytes")
    assert slab["change_pct"] == pytest.approx(100 / 88 * 100 - 100, abs=0.2)
    (subject,) = brain.mails
    assert f"{made[2][:12]}: memory-sampler.Slab." in subject and "13.6% worse" in subject
    body = brain.facts("r")["body"]
    assert "in bytes: 13.6% worse" in body and "Lower is better" in body


def test_a_run_for_a_monitor_never_enters_the_comparison_of_the_benchmark(brain: Brain) -> None:
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    brain.watch(base, job_files=[JOB])
    (slow,) = add_commits(brain.repo, [FakeCommit(speed=90)])
    number = compare(brain.lab, base, slow)
    brain.run()
    rows = {row["metric"]: row for row in brain.facts("c", number)["rows"]}
    assert set(rows) == {
        METRIC,
        "perf-stat.task-clock",
        "perf-stat.context-switches",
        "perf-profile.lock_slowpath",
    }
    # the third run of each boot is twice as slow: neither the mean nor the number of runs knows of
    # it
    benchmark = rows[METRIC]
    assert (benchmark["base"]["boots"], benchmark["base"]["runs"], benchmark["verdict"]) == (
        5,
        10,
        "worse",
    )
    assert benchmark["change_pct"] == pytest.approx(-10, abs=0.2)
    assert benchmark["base"]["stddev_within"] < 0.001 * benchmark["base"]["mean"]
    lock = rows["perf-profile.lock_slowpath"]
    assert (lock["base"]["runs"], lock["base"]["mean"], lock["verdict"]) == (5, 7.0, "same")
    with brain.engine.connect() as conn:
        beside = (
            "SELECT r.number, r.reason, m.metric FROM run r JOIN sample s ON s.run = r.id "
            "JOIN measured_metric m ON m.id = s.measured WHERE m.metric LIKE '%.beside.%'"
        )
        kept = conn.execute(sa.text(beside)).all()
    assert {row.number for row in kept} == {2}
    assert {row.metric for row in kept} == {f"perf-profile.beside.{METRIC}"}
    assert kept[0].reason == "run for perf-profile: its other numbers are not compared"
