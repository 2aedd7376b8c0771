"""Experiments as a person types them: planned, queued, measured, extended and printed, on a real
database."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from swingbot.app.cli import main
from swingbot.app.settings import load
from swingbot_jobs import resources
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.loop import METRIC
from tests.fakes.mail import brain_environment, running_smtpd

COMMITS = [
    FakeCommit(speed=80, title="mm: hold the lock longer"),
    FakeCommit(kind="comment", title="mm: mend a comment"),
    FakeCommit(kind="broken", title="mm: break the build"),
    FakeCommit(speed=100, title="mm: hold the lock for as long as before"),
]


@dataclass(frozen=True, kw_only=True)
class Desk:
    """Somebody at a terminal of a lab that watches one tree."""

    brain: Brain
    commits: list[str]
    environment: dict[str, str]

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(main, words, env=self.environment)

    def json(self, *words: str) -> Any:
        found = self.run(*words, "--json")
        assert found.exit_code == 0, found.output
        return json.loads(found.stdout)

    def format_patch(self, *revisions: str) -> str:
        return subprocess.run(
            ["git", "-C", str(self.brain.repo), "format-patch", "--stdout", *revisions],
            check=True,
            capture_output=True,
            text=True,
        ).stdout


@pytest.fixture
def desk(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[Desk]:
    environment = brain_environment(tmp_path / "state", db_url)
    settings = load(environ=environment)
    commits = make_fakelinux(tmp_path / "linux", COMMITS)
    with running_smtpd(settings):
        brain = make_brain(settings, engine, tmp_path / "linux")
        # The tip is measured against the base once; what follows is of experiments alone.
        brain.watch(commits[0])
        brain.run()
        yield Desk(brain=brain, commits=commits, environment=environment)


def levels(facts: dict[str, Any], against: str) -> dict[int, tuple[int, str]]:
    """(reference, verdict) of each compared row of the headline metric."""
    return {
        row["arm"]: (row["reference"], row["verdict"])
        for row in facts["rows"]
        if row["metric"] == METRIC and row["against"] == against
    }


def test_a_range_is_a_table_in_which_a_patch_costs_and_another_takes_it_back(desk: Desk) -> None:
    words = ("experiment", f"{desk.commits[0]}..{desk.commits[4]}", "--boots", "3")
    names = [commit[:12] for commit in desk.commits]
    asked = desk.json(*words, "--against", f"above,first,{names[1]}")
    assert asked["id"].startswith("e") and asked["status"] == "waiting"
    desk.brain.run()
    facts = desk.json("show", asked["id"])
    assert [arm["name"] for arm in facts["arms"]] == names
    assert [arm["state"] for arm in facts["arms"]] == ["built", "built", "built", "failed", "built"]
    assert levels(facts, "above") == {
        1: (0, "worse"),
        2: (1, "same"),  # the image is identical
        3: (2, "invalid"),
        4: (2, "better"),  # against the nearest one above that was measured
    }
    assert levels(facts, "first") == {
        1: (0, "worse"),
        2: (0, "worse"),
        3: (0, "invalid"),
        4: (0, "same"),
    }
    assert levels(facts, names[1]) == {
        0: (1, "better"),
        2: (1, "same"),
        3: (1, "invalid"),
        4: (1, "better"),
    }
    notes = {
        row["arm"]: row["reason"]
        for row in facts["rows"]
        if row["metric"] == METRIC and row["against"] == "above"
    }
    assert f"{names[4]} reverts it" in notes[1]
    assert f"reverts {names[1]}, all of it" in notes[4]
    assert {
        row["arm"]: row["attributed_to"]
        for row in facts["rows"]
        if row["metric"] == METRIC and row["against"] == "above"
    } == {1: desk.commits[1], 2: None, 3: None, 4: None}  # the parent of 4 was not measured
    assert "attributed to this patch: the row above is its parent" in notes[1]
    assert all(row["attributed_to"] is None for row in facts["rows"] if row["against"] == "first")
    # The watched tree's own bisection found the same commit.
    assert [arm["incident"] for arm in facts["arms"]] == [None, None, None, None, None]
    broken = next(row for row in facts["rows"] if (row["arm"], row["against"]) == (3, "above"))
    assert "does not build: mm/x.c:1: error" in broken["reason"]


def test_the_reference_keeps_its_level_where_the_first_row_does_not_build(desk: Desk) -> None:
    asked = desk.json("compare", *(desk.commits[i] for i in (2, 3, 4)), "--boots", "3")
    desk.brain.run()
    text = desk.run("show", asked["id"], "--format", "text").stdout.splitlines()
    rows = [line.split() for line in text if line.strip().startswith(desk.commits[2][:12])]
    assert rows[-1][1] == "80225", "\n".join(text)
    assert desk.json("show", asked["id"])["reason"] is None  # nothing was lost in the lab


def test_the_same_request_is_the_same_experiment(desk: Desk) -> None:
    words = ("experiment", f"{desk.commits[0]}..{desk.commits[1]}")
    assert desk.json(*words)["id"] == desk.json(*words)["id"]
    assert desk.json(*words, "--boots", "4")["id"] != desk.json(*words)["id"]


def test_patches_of_a_series_are_rows_with_subjects_of_their_own(
    desk: Desk, tmp_path: Path
) -> None:
    mbox = tmp_path / "series.mbx"
    mbox.write_text(desk.format_patch("--cover-letter", f"{desk.commits[0]}..{desk.commits[2]}"))
    asked = desk.json("experiment", "--base", desk.commits[0], "--series", str(mbox))
    desk.brain.run()
    facts = desk.json("show", asked["id"])
    assert [arm["name"] for arm in facts["arms"]] == [desk.commits[0][:12], "1/2", "2/2"]
    assert [arm["variant"]["subject"] for arm in facts["arms"][1:]] == [
        "mm: hold the lock longer",
        "mm: mend a comment",
    ]
    assert levels(facts, "above") == {1: (0, "worse"), 2: (1, "same")}


def test_one_commit_is_compared_in_two_configurations(desk: Desk) -> None:
    configurations = ("--kconfig", "usual=", "--kconfig", "server-x86_64")
    asked = desk.json("compare", desk.commits[0], *configurations, "--boots", "2")
    desk.brain.run()
    facts = desk.json("show", asked["id"])
    named = [(arm["name"], arm["variant"]["kconfig"]) for arm in facts["arms"]]
    assert named == [("usual", "vm-x86_64"), ("server-x86_64", "server-x86_64")]
    assert levels(facts, facts["against"][0]) == {1: (0, "same")}
    (change,) = facts["kernel_changes"]
    assert (change["state"], change["config"]) == ("compared", [])


def test_named_stacks_times_a_fragment_are_pairs(desk: Desk, tmp_path: Path) -> None:
    patch = tmp_path / "slow.patch"
    patch.write_text(desk.format_patch("-1", desk.commits[1]))
    words = ("--base", desk.commits[0], "--variant", f"slow={patch}")
    fragments = ("--fragment", "default=", "--fragment", "align64=align64")
    asked = desk.json("experiment", *words, *fragments, "--boots", "3")
    desk.brain.run()
    facts = desk.json("show", asked["id"])
    base = desk.commits[0][:12]
    assert [arm["name"] for arm in facts["arms"]] == [
        f"default {base}",
        "default slow",
        f"align64 {base}",
        "align64 slow",
    ]
    assert facts["against"] == ["pair"]
    assert levels(facts, "pair") == {1: (0, "worse"), 3: (2, "worse")}
    assert {arm["variant"]["kconfig"] for arm in facts["arms"]} == {
        "vm-x86_64",
        "vm-x86_64+align64",
    }


def test_a_dry_run_prints_plan_and_cost_and_records_nothing(desk: Desk) -> None:
    def remembered() -> list[int]:
        return [desk.brain.count(table) for table in ("comparison", "variant", "orders")]

    before = remembered()
    range_ = f"{desk.commits[0]}..{desk.commits[4]}"
    for given in (["--against", "above,base"], ["--against", "above", "--against", "base"]):
        planned = desk.run("experiment", range_, *given, "--with", "size", "--dry-run")
        assert "against above and base" in planned.output
    words = ("experiment", range_, "--dry-run")
    said = desk.run(*words)
    assert said.exit_code == 0, said.output
    assert "5 rows of tree fake, 5 boots of each, against above" in said.output
    assert "kernels: 3 to build, about" in said.output and "2 known" in said.output
    assert "vm-icount:" in said.output and "in all" in said.output
    plan = desk.json(*words)
    assert plan["cost"]["builds"] == 3 and len(plan["rows"]) == 5
    assert plan["rows"][1]["subject"] == "mm: hold the lock longer"
    assert remembered() == before


def test_extending_adds_boots_and_a_row_that_stands_in_the_new_blocks_alone(
    desk: Desk, tmp_path: Path
) -> None:
    asked = desk.json("experiment", f"{desk.commits[0]}..{desk.commits[1]}", "--boots", "3")
    desk.brain.run()
    patch = tmp_path / "v2.patch"
    patch.write_text(desk.format_patch("-1", desk.commits[1]))
    said = desk.run("extend", asked["id"], "--boots", "2", "--variant", f"v2={patch}")
    assert said.exit_code == 0
    assert f"{asked['id']} will have 5 boots of each of its 3 rows; look 2" in said.output
    assert "added: v2" in said.output
    waiting = desk.json("show", asked["id"])
    assert (waiting["status"], levels(waiting, "above")) == ("waiting", {1: (0, "worse")})
    assert "these rows are from before they were requested" in desk.run("show", asked["id"]).output
    desk.brain.run()
    facts = desk.json("show", asked["id"])
    assert facts["status"] == "done" and [arm["boots"] for arm in facts["arms"]] == [5, 5, 2]
    by_arm = {row["arm"]: row for row in facts["rows"] if row["metric"] == METRIC}
    assert (by_arm[1]["head"]["boots"], by_arm[2]["head"]["boots"]) == (5, 2)
    assert (
        "a row named 'v2' already exists"
        in desk.run("extend", asked["id"], "--boots", "1", "--variant", f"v2={patch}").output
    )


def test_an_extension_is_planned_and_a_dry_run_of_it_records_nothing(desk: Desk) -> None:
    asked = desk.json("experiment", f"{desk.commits[0]}..{desk.commits[1]}", "--boots", "3")
    desk.brain.run()
    before = [desk.brain.count(table) for table in ("orders", "variant")]
    said = desk.run("extend", asked["id"], "--boots", "2", "--dry-run")
    assert said.exit_code == 0, said.output
    assert "kernels: 0 to build; 2 known" in said.output and "vm-icount: 4 boots" in said.output
    assert "look 2 may withdraw changes and narrow intervals" in said.output
    plan = desk.json("extend", asked["id"], "--boots", "2", "--dry-run")
    assert (plan["boots_each"], plan["look"], plan["looks_stated"]) == (5, 2, 1)
    assert plan["cost"]["boots"] == 4
    facts = desk.json("show", asked["id"])
    assert (facts["status"], facts["boots"], facts["looks"]) == ("done", 3, 1)
    assert [desk.brain.count(table) for table in ("orders", "variant")] == before


@pytest.mark.parametrize(("looks", "verdict"), [("1", "unclear"), ("2", "worse")])
def test_only_a_look_that_was_stated_claims_a_new_change(
    desk: Desk, looks: str, verdict: str
) -> None:
    words = ("experiment", f"{desk.commits[0]}..{desk.commits[1]}", "--looks", looks)
    asked = desk.json(*words, "--boots", "1")
    desk.brain.run()
    assert levels(desk.json("show", asked["id"]), "above") == {1: (0, "unclear")}
    assert desk.run("extend", asked["id"], "--boots", "5", "--yes").exit_code == 0
    desk.brain.run()
    facts = desk.json("show", asked["id"])
    assert (facts["looks"], facts["looks_stated"]) == (2, int(looks))
    assert levels(facts, "above") == {1: (0, verdict)}


def test_comparisons_are_extended_and_the_service_s_own_are_not(desk: Desk) -> None:
    own = desk.run("extend", "c1", "--boots", "2")
    assert own.exit_code == 2 and "c1 belongs to the service" in own.output
    asked = desk.json("compare", desk.commits[0], desk.commits[1], "--tree", "fake", "--boots", "3")
    desk.brain.run()
    assert desk.run("extend", asked["id"], "--boots", "2").exit_code == 0
    desk.brain.run()
    row = next(r for r in desk.json("show", asked["id"])["rows"] if r["metric"] == METRIC)
    assert (row["base"]["boots"], row["head"]["boots"], row["verdict"]) == (5, 5, "worse")


def test_three_kernels_against_two_references_are_one_table(desk: Desk) -> None:
    refs = [desk.commits[0], desk.commits[1], desk.commits[4]]
    names = [commit[:12] for commit in refs]
    asked = desk.json("compare", *refs, "--boots", "3", "--against", f"first,{names[1]}")
    assert asked["id"].startswith("c")
    assert asked["plan"]["against"] == ["first", names[1]]
    desk.brain.run()
    facts = desk.json("show", asked["id"])
    assert [arm["name"] for arm in facts["arms"]] == names
    assert levels(facts, "first") == {1: (0, "worse"), 2: (0, "same")}
    assert levels(facts, names[1]) == {0: (1, "better"), 2: (1, "better")}
    said = desk.run("show", asked["id"]).output
    tables = [line for line in said.splitlines() if line.strip().startswith("kernel ")]
    assert len(tables) == 1, said
    assert f"relative to the first row and row {names[1]}" in " ".join(said.split())


def test_every_form_prints_what_was_measured(desk: Desk, tmp_path: Path) -> None:
    asked = desk.json("experiment", f"{desk.commits[0]}..{desk.commits[2]}", "--boots", "3")
    empty = desk.run("show", asked["id"], "--format", "changelog")
    assert empty.exit_code == 2 and "has no rows yet" in empty.output
    desk.brain.run()
    for form in ("text", "mail", "changelog"):
        said = desk.run("show", asked["id"], "--format", form)
        assert said.exit_code == 0, said.output
        assert max(map(len, said.output.splitlines())) <= 78
        assert METRIC in said.output and "-20.0%" in said.output
    table = list(
        csv.DictReader(io.StringIO(desk.run("show", asked["id"], "--format", "csv").output))
    )
    rows = [row for row in table if row["metric"] == METRIC]
    assert [row["kernel"] for row in rows] == [commit[:12] for commit in desk.commits[:3]]
    change = 100 * (float(rows[1]["mean"]) / float(rows[0]["mean"]) - 1)
    assert float(rows[1]["change_pct"]) == pytest.approx(change, abs=1e-9)
    assert METRIC in desk.run("show", asked["id"], "--format", "lkp").output
    out = tmp_path / "raw"
    raw = desk.run("raw", asked["id"], "--out", str(out))
    assert raw.exit_code == 0, raw.output
    boots = json.loads((out / "manifest.json").read_text())["boots"]
    assert {role for boot in boots for role in boot["roles"]} == {row["kernel"] for row in rows}
    perf = desk.run("show", asked["id"], "--format", "perf")
    assert perf.exit_code == 0 and "task-clock" in perf.output, perf.output


def test_it_is_listed_waited_for_and_cancelled_by_its_own_letter(desk: Desk) -> None:
    asked = desk.json("experiment", f"{desk.commits[0]}..{desk.commits[2]}")["id"]
    assert asked in desk.run("list", "experiments").output
    assert asked.replace("e", "c") not in desk.run("list", "comparisons").output
    number = asked[1:]
    for words, sentence in (
        (
            ("show", f"c{number}"),
            f"comparison c{number} does not exist, but e{number} does",
        ),
        (("cancel", f"c{number}"), f"comparison c{number} does not exist"),
        (("show", "e1"), "experiment e1 does not exist, but c1 does"),
    ):
        wrong = desk.run(*words)
        assert (wrong.exit_code, sentence in wrong.output) == (2, True), wrong.output
    assert f"{asked} is cancelled" in desk.run("cancel", asked).output
    assert desk.run("wait", asked).exit_code == 1


def test_a_file_holds_all_of_it(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "slow.patch").write_text(desk.format_patch("-1", desk.commits[1]))
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(
        f"base: {desk.commits[0]}\nvariant:\n  slow: slow.patch\n"
        "fragment: {default: '', align64: align64}\nexclude:\n- {fragment: align64, kernel: slow}\n"
        "against: first\nboots: 3\n"
    )
    plan = desk.json("experiment", "--file", str(sweep), "--dry-run")
    base = desk.commits[0][:12]
    assert [row["name"] for row in plan["rows"]] == [
        f"default {base}",
        "default slow",
        f"align64 {base}",
    ]
    assert plan["boots_each"] == 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "name the kernels: two or more commits, a range A..B, or a base"),
        (("tip",), "a table needs at least two rows"),
        (("tip...base",), "write the range as A..B"),
        (("tip..base",), "is empty: tip is not an ancestor of base"),
        (("base..tip", "--base", "base"), "a range cannot be combined with a base"),
        (("base..tip", "--paths", "net/*"), "no commit of base..tip touches net/*"),
        (("--base", "base"), "needs at least two rows"),
        (("--base", "base", "--variant", "x"), "write it as NAME=FILE or NAME=REF"),
        (("--base", "base", "--variant", "x=no.patch"), "file no.patch does not exist"),
        (("--base", "base", "--variant", "x=nothing"), "swingbot: x: "),
        (("--base", "base", "--head", "tip", "--head", "tip"), "two variants are called 'tip'"),
        (("--base", "base", "--head", "tip", "--fragment", "x=none"), "no fragment 'none'"),
        (
            ("--base", "base", "--head", "tip", "--against", "left"),
            "there is no row 'left' to compare with: give one of",
        ),
        (("base..tip", "--tree", "other"), "tree 'other' does not exist; `swingbot tree list`"),
        (("base..tip", "--exclude", "compiler=gcc"), "there is no axis 'compiler'"),
    ],
)
def test_a_request_that_makes_no_table_is_refused_in_a_sentence(
    desk: Desk, words: tuple[str, ...], sentence: str
) -> None:
    said = desk.run("experiment", *words)
    assert said.exit_code == 2 and sentence in said.output, said.output
    assert desk.brain.count("comparison WHERE kind = 'experiment'") == 0


def test_locks_code_and_free_memory_stand_beside_the_numbers(desk: Desk) -> None:
    words = ("experiment", f"{desk.commits[0]}..{desk.commits[2]}", "--boots", "2")
    asked = desk.json(*words, "--with", "size,locks,buddyinfo,page-fault.per_process_ops")
    desk.brain.run()
    facts = desk.json("show", asked["id"])
    assert facts["columns"] == ["size", "locks", "buddyinfo", "page-fault.per_process_ops"]
    said = desk.run("show", asked["id"]).output
    assert "Code of" in said and "against" in said
    assert max(map(len, said.splitlines())) <= 78, said
    kinds = "SELECT DISTINCT jsonb_array_elements_text(u->'monitors')"
    jobs = f"{kinds} FROM want w JOIN orders o ON o.id = w.order_id JOIN boot_spec s"
    jobs += " ON s.sha256 = o.spec, jsonb_array_elements(s.unit_jobs) u WHERE w.comparison = 2"
    with desk.brain.engine.connect() as conn:
        monitors = set(conn.execute(sa.text(jobs)).scalars())
    assert "lock-contention" in monitors and "perf-profile" not in monitors
    calls = ("--with", "function-profile.counted,perf-stat.instructions")
    assert "add the fragment trace" in desk.run(*words, *calls).output
    counted = desk.json(*words, *calls, "--fragment", "traced=trace")
    with desk.brain.engine.connect() as conn:
        jobs = f"{kinds} FROM comparison_part p JOIN boot_spec s ON s.sha256 = p.spec,"
        jobs += " jsonb_array_elements(s.unit_jobs) u WHERE p.comparison = :id"
        monitors = set(conn.execute(sa.text(jobs), {"id": int(counted["id"][1:])}).scalars())
    assert monitors == {"function-profile"}, "a monitor that always runs needs no word"
    refused = desk.run(*words, "--with", "nothing")
    assert refused.exit_code == 2
    assert (
        "there is no column 'nothing': choose one of locks, buddyinfo, size, profile"
        in refused.output
    )


def test_rows_differ_in_what_their_boots_set(desk: Desk) -> None:
    words = ("--cmdline", "never=transparent_hugepage=never")
    more = ("--cmdline", "always=transparent_hugepage=always")
    sysctl = ("--sysctl", "high8=vm.percpu_pagelist_high_fraction=8")
    asked = desk.json(
        "experiment", "--base", "base", "--head", "tip", *words, *more, *sysctl, "--boots", "2"
    )
    desk.brain.run()
    facts = desk.json("show", asked["id"])
    assert [arm["name"] for arm in facts["arms"]] == [
        "never base",
        "never tip",
        "always base",
        "always tip",
    ]
    assert facts["arms"][0]["settings"] == {
        "cmdline": "transparent_hugepage=never",
        "sysctl": {"vm.percpu_pagelist_high_fraction": "8"},
    }
    assert [arm["up"] for arm in facts["arms"]] == [2, 2, 2, 2]
    refused = desk.run(
        "experiment", "--base", "base", "--head", "tip", "--cmdline", "x=init=/bin/sh"
    )
    assert refused.exit_code == 2 and "init" in refused.output


@pytest.mark.parametrize("axis", ["cmdline", "sysctl"])
def test_a_value_that_a_testbox_cannot_set_is_refused_before_anything_is_queued(
    desk: Desk, tmp_path: Path, axis: str
) -> None:
    workers = tmp_path / "workers"
    shutil.copytree(resources.folder("workers"), workers)
    with (workers / "testboxes" / "vm-icount.yaml").open("a") as file:
        file.write("can_set: []\n")
    incapable = replace(
        desk, environment={**desk.environment, "SWINGBOT_PATHS_WORKERS": str(workers)}
    )
    value = {"cmdline": "x=transparent_hugepage=never", "sysctl": "x=vm.swappiness=1"}[axis]
    words = ("experiment", "--base", "base", "--head", "tip", f"--{axis}", value)
    refused = incapable.run(*words)
    assert refused.exit_code == 2, refused.output
    assert "base: testbox vm-icount can't set what the job requests" in refused.output
    assert desk.brain.count("comparison WHERE kind = 'experiment'") == 0


@pytest.mark.parametrize(
    ("status", "why"),
    [("panicked", "Kernel panic - not syncing: no init found"), ("hung", "no output for 300 s")],
)
def test_a_kernel_that_never_comes_up_is_booted_three_times_and_costs_the_others_nothing(
    desk: Desk, status: str, why: str
) -> None:
    desk.brain.fake.failure = (status, why)
    _, last = add_commits(desk.brain.repo, [FakeCommit(kind="unbootable"), FakeCommit(speed=70)])
    desk.brain.poll()
    asked = desk.json("experiment", f"{desk.commits[4]}..{last}", "--boots", "6")
    desk.brain.run()
    facts = desk.json("show", asked["id"])
    assert facts["status"] == "done"
    assert [(arm["boots"], arm["up"]) for arm in facts["arms"]] == [(6, 6), (3, 0), (6, 6)]
    assert levels(facts, "above") == {1: (0, "invalid"), 2: (0, "worse")}
    row = next(row for row in facts["rows"] if row["arm"] == 1 and row["metric"] == METRIC)
    assert "no boot of the head gave a value" in row["reason"] and status in row["reason"]


def test_nine_kernels_on_two_testboxes_survive_a_kill_in_the_middle(desk: Desk) -> None:
    """The loop is killed with SIGKILL; nothing is lost, nothing counts twice."""
    last = add_commits(desk.brain.repo, [FakeCommit(speed=99 - n) for n in range(8)])[-1]
    desk.brain.poll()
    desk.brain.run()
    boots_before = desk.brain.count("boot")
    testboxes = ("--testbox", "vm-icount,vm-tcg")
    asked = desk.json("experiment", f"{desk.commits[4]}..{last}", *testboxes, "--boots", "2")
    loop = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.brain", str(desk.brain.repo), desk.commits[0]],
        env={**os.environ, **desk.environment},
    )
    while desk.brain.count("boot") < boots_before + 8 and loop.poll() is None:
        time.sleep(0.01)
    loop.kill()
    assert loop.wait() == -signal.SIGKILL
    half = desk.json("show", asked["id"])
    assert half["status"] == "running" and 0 < half["progress"]["boots"] < 36
    desk.brain.run()
    facts = desk.json("show", asked["id"])
    assert facts["status"] == "done" and facts["progress"]["failed"] == 0
    assert [(arm["boots"], arm["up"]) for arm in facts["arms"]] == [(4, 4)] * 9
    assert len({boot["id"] for boot in facts["boot_list"]}) == 36
    rows = [row for row in facts["rows"] if row["metric"] == METRIC]
    assert len(rows) == 16 and {row["head"]["boots"] for row in rows} == {2}
    assert (
        desk.brain.count("boot") - desk.brain.count("(SELECT DISTINCT order_id FROM boot) b") == 0
    )


def test_the_command_line_says_what_it_takes_to_resolve_a_small_change(desk: Desk) -> None:
    desk.brain.fake.origin = "measured"
    base, head = desk.commits[0], desk.commits[1]
    words = ("compare", base, head, "--tree", "fake", "--boots", "2", "--min-effect", "0.05")
    layouts = [word for n in range(5) for word in ("--layout", str(n))]
    table = desk.json("experiment", base, "--boots", "4", *layouts)
    assert [row["layout"] for row in table["plan"]["rows"]] == [0, 1, 2, 3, 4]
    assert [arm["name"] for arm in table["arms"]] == [f"layout{n}" for n in range(5)]
    desk.brain.run()
    same = desk.json("show", table["id"])
    assert {row["verdict"] for row in same["rows"] if row["metric"] == METRIC} == {"same"}
    images = {arm["variant"]["image_sha256"] for arm in same["arms"]}
    assert len(images) == 5

    plan = desk.json(*words, "--dry-run")
    (effect,) = plan["cost"]["resolves"]
    assert (effect["wanted_pct"], effect["layout_assumed"]) == (0.05, False)
    assert effect["needs"] > 2 and effect["needs_boots"] == 2 * effect["needs"]
    (part,) = plan["cost"]["testboxes"]
    assert effect["needs_seconds"] == effect["needs_boots"] * part["boot_seconds"]
    said = " ".join(desk.run(*words, "--dry-run").output.split())
    assert f"0.05 % needs {effect['needs']}: {effect['needs_boots']} boots in all, about" in said

    asked = desk.json(*words)
    assert asked["min_effect_pct"] == 0.05
    desk.brain.run()
    (row,) = (r for r in desk.json("show", asked["id"])["rows"] if r["metric"] == METRIC)
    assert (row["min_effect_pct"], row["verdict"]) == (0.05, "worse")
    assert row["layout"]["df"] >= 3 and row["layout"]["sd_pct"] < 0.1
    assert "assumed" not in desk.run("show", asked["id"]).output
