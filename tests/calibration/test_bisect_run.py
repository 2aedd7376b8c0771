"""`swingbot bisect run` on real repositories, with commands that print what a commit is worth."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from swingbot.app.bisect_run import process
from swingbot.app.commands.bisect_run import run
from swingbot.core.bisect.tell.journal import ENGINE
from tests.bisect_run_worlds import World, bisect
from tests.noisy_repo import git, make_repo


@dataclass(frozen=True)
class Bench:
    """A repository, and a directory with what each commit makes CMD say."""

    repo: Path
    ids: list[str]
    table: Path

    def says(self, level: Callable[[int], str]) -> list[str]:
        """A CMD that runs for commit i the shell words `level(i)`."""
        self.table.mkdir(exist_ok=True)
        for i, sha in enumerate(self.ids):
            (self.table / sha).write_text(level(i))
        return [
            "sh",
            "-c",
            (
                f'echo "$SWINGBOT_COMMIT $SWINGBOT_BOOT" >> {self.table}/started; . '
                f"{self.table}/$SWINGBOT_COMMIT"
            ),
        ]

    def started(self) -> list[str]:
        return (self.table / "started").read_text().splitlines()

    def bisect(
        self, command: list[str], *options: str, ends: str | None = None
    ) -> tuple[int, str, str]:
        words = [ends or f"{self.ids[0]}..main", "--repo", str(self.repo), *options, "--", *command]
        done = CliRunner().invoke(run, words)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout, done.stderr

    def facts(self, command: list[str], *options: str, ends: str | None = None) -> dict[str, Any]:
        _, out, err = self.bisect(command, "--json", *options, ends=ends)
        assert out, err
        return dict(json.loads(out))

    @property
    def journal(self) -> Path:
        return next((self.repo / ".git" / "swingbot").glob("*/log"))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "repo", make_repo(tmp_path / "repo", 12), tmp_path / "table")


def step_at(culprit: int, before: float = 100.0, after: float = 90.0) -> Callable[[int], str]:
    return lambda i: f"echo {before if i < culprit else after}"


def wobbling(culprit: int) -> Callable[[int], str]:
    """Each boot has another number, which only depends on commit and boot."""
    return lambda i: (
        f"echo $(( {1000 if i < culprit else 900} + ({i} * 7 + SWINGBOT_BOOT * 5) % 11 ))"
    )


def test_the_answer_begins_as_that_of_git_bisect_does(bench: Bench) -> None:
    status, out, err = bench.bisect(bench.says(step_at(7)))
    assert status == 0
    assert out.splitlines()[0] == f"{bench.ids[7]} is the first bad commit"
    assert out.splitlines()[1] == f"commit {bench.ids[7]}"
    assert "    commit 7" in out and "-10 % (worse" in out
    assert "boot 1: " in err and "left" in err


@pytest.mark.parametrize("culprit", [4, 5, 9])
def test_the_culprit_is_found_at_either_end_by_commits_beside_the_range(
    bench: Bench, culprit: int
) -> None:
    facts = bench.facts(bench.says(wobbling(culprit)), ends=f"{bench.ids[3]}..{bench.ids[9]}")
    assert facts["status"] == "culprit"
    assert facts["culprit"] == {"commit": bench.ids[culprit], "subject": f"commit {culprit}"}
    assert facts["probability"] >= 0.99
    started = {line.split()[0] for line in bench.started()}
    beside = {*bench.ids[:3], *bench.ids[10:]}
    assert bool(started & beside) == (culprit != 5)


@pytest.mark.parametrize("culprit", [1, 12])
def test_without_a_commit_beside_the_range_its_end_is_a_suspect_at_once(
    bench: Bench, culprit: int
) -> None:
    command = bench.says(wobbling(culprit))
    status, said, _ = bench.bisect(command, "--exit-code")
    assert status == 4
    lines = said.splitlines()
    assert lines[0] == f"no culprit; {bench.ids[culprit]} is a suspect"
    settle = next(line for line in lines if line.startswith("to settle"))
    assert "--layouts" in settle
    end = bench.ids[0] if culprit == 1 else bench.ids[12]
    assert f"end {end[:12]} has no" in settle
    facts = bench.facts(command)
    assert facts["suspect"]["commit"] == bench.ids[culprit]
    assert 0.5 < facts["suspect"]["probability"] < 0.99
    assert (facts["culprit"], facts["culprits"], facts["verdict"]) == (None, [], "worse")
    assert facts["boots"] <= 40


def test_json_is_alone_on_stdout_and_has_the_keys_of_a_bisection(bench: Bench) -> None:
    facts = bench.facts(bench.says(step_at(4)))
    wanted = (
        "id",
        "status",
        "culprit",
        "culprits",
        "probability",
        "change_pct",
        "interval_pct",
        "boots",
        "builds",
        "seconds",
        "candidates",
    )
    assert all(key in facts for key in wanted)
    assert facts["id"] is None and facts["boots"] == len(bench.started())
    assert {tuple(sorted(c)) for c in facts["candidates"]} == {
        ("commit", "probability", "state", "subject")
    }
    assert [c["commit"] for c in facts["candidates"]] == bench.ids[1:]
    assert facts["culprits"][0].keys() >= {"commit", "subject", "probability", "change_pct"}


@pytest.mark.parametrize(
    ("before", "after", "options", "verdict", "status"),
    [
        (100, 90, (), "worse", 3),
        (100, 110, (), "better", 0),
        (100, 110, ("--lower-is-better",), "worse", 3),
        (100, 90, ("--lower-is-better",), "better", 0),
    ],
)
def test_direction_is_a_matter_of_words_and_exit_status(
    bench: Bench, before: float, after: float, options: tuple[str, ...], verdict: str, status: int
) -> None:
    command = bench.says(step_at(6, before, after))
    facts = bench.facts(command, *options)
    assert (facts["culprit"]["commit"], facts["verdict"]) == (bench.ids[6], verdict)
    assert bench.bisect(command, *options, "--exit-code")[0] == status
    assert bench.bisect(command, *options)[0] == 0


def test_equal_ends_are_not_bisected(bench: Bench) -> None:
    status, out, _ = bench.bisect(bench.says(lambda i: "echo 5.125"), "--exit-code")
    assert (status, out.splitlines()[0]) == (0, "no change between the ends; nothing to bisect")
    assert len(bench.started()) == 4


@pytest.mark.parametrize(
    ("before", "after"), [("0", "5"), ("-10", "-20"), ("1e-9", "2e-9"), ("3e12", "4e12")]
)
def test_levels_of_any_sign_and_size_are_bisected(bench: Bench, before: str, after: str) -> None:
    assert (
        bench.facts(bench.says(lambda i: f"echo {before if i < 5 else after}"))["culprit"]["commit"]
        == bench.ids[5]
    )


# --- commits that cannot be tested ----------------------------------------------------------------


def test_status_125_skips_the_commit_and_its_neighbourhood_stays_possible(bench: Bench) -> None:
    facts = bench.facts(bench.says(lambda i: "exit 125" if i in (5, 6) else step_at(6)(i)))
    assert facts["status"] == "credible_set"
    assert [m["commit"] for m in facts["members"]] == bench.ids[5:8]
    assert all(sum(sha in line for line in bench.started()) <= 1 for sha in bench.ids[5:7])
    assert {c["state"] for c in facts["candidates"] if c["commit"] in bench.ids[5:7]} == {"skipped"}


def test_ends_that_cannot_be_tested_leave_their_commits_possible(bench: Bench) -> None:
    def level(culprit: int) -> Callable[[int], str]:
        return lambda i: "exit 125" if i >= 10 else step_at(culprit)(i)

    status, out, _ = bench.bisect(bench.says(level(11)), "--exit-code")
    assert (status, out.splitlines()[0]) == (4, "no culprit could be identified")
    assert [line.split()[0] for line in out.splitlines()[1:4]] == bench.ids[10:]
    assert f"outside {bench.ids[0][:12]}..{bench.ids[9][:12]} may hold the change" in out
    facts = bench.facts(bench.says(level(6)), "--restart")
    assert facts["culprit"]["commit"] == bench.ids[6]
    assert "may hold another change" in facts["reason"]
    assert (facts["good"], facts["bad"]) == (bench.ids[0], bench.ids[12])
    again = bench.facts(bench.says(level(6)))
    assert again["culprit"] == facts["culprit"] and again["boots"] == facts["boots"]


@pytest.mark.parametrize(
    "skipped", ["0", "8", "08", "012", "5678", "68", "0178", "0238", "2345678"]
)
def test_no_innocent_commit_is_named_beside_ends_that_cannot_be_tested(skipped: str) -> None:
    for culprit in range(1, 9):
        world = World(
            commits=8,
            effects={culprit: -0.1},
            run_sd=0.002,
            skipped=frozenset(map(int, skipped)),
            seed=culprit,
        )
        facts = bisect(world).facts
        members = [int(member["commit"]) for member in facts["members"]]
        assert culprit in members, (culprit, facts["status"], facts["reason"])
        assert facts["status"] == "inconclusive" or len(members) <= 1 + len(skipped)
        assert sum(c["probability"] for c in facts["candidates"]) <= 1.0 + 1e-9


def test_a_boot_that_fails_once_is_tried_again(bench: Bench) -> None:
    facts = bench.facts(bench.says(lambda i: "[ $SWINGBOT_BOOT = 0 ] && exit 1; " + step_at(6)(i)))
    assert facts["culprit"]["commit"] == bench.ids[6]


def test_that_only_one_commit_can_be_measured_is_a_failure(bench: Bench) -> None:
    status, out, _ = bench.bisect(
        bench.says(lambda i: "echo no such host >&2; exit 3" if i != 0 else "echo 1")
    )
    assert status == 1
    assert "could not be measured" in out and "no such host" in out


@pytest.mark.parametrize("words", ["exit 127", "exit 128", "kill -SEGV $$"])
def test_what_says_that_cmd_is_at_fault_stops_and_can_be_resumed(bench: Bench, words: str) -> None:
    broken = bench.says(lambda i: words if i == 12 else "echo 100")
    status, out, err = bench.bisect(broken)
    assert (status, out) == (1, "")
    assert "CMD" in err.splitlines()[-1] and bench.ids[12][:12] in err.splitlines()[-1]
    assert bench.facts(bench.says(step_at(3)))["culprit"]["commit"] == bench.ids[3]


def test_a_cmd_that_never_ends_is_ended_with_all_that_it_started(bench: Bench) -> None:
    command = bench.says(lambda i: "sleep 100 & sleep 100" if i == 6 else step_at(6)(i))
    facts = bench.facts(command, "--timeout", "5")
    assert facts["status"] == "credible_set"
    assert {m["commit"] for m in facts["members"]} == {bench.ids[6], bench.ids[7]}
    assert "did not end within 5 s" in facts["reason"]
    assert marked(bench) == []


def marked(bench: Bench) -> list[int]:
    """Processes that CMD left behind."""
    left = []
    for one in psutil.process_iter():
        try:
            if str(bench.repo) in one.environ().get(process.MARK, ""):
                left.append(one.pid)
        except psutil.Error:
            continue
    return left


# --- what CMD prints ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("echo 'took 1.5 s'", "'took 1.5 s', which is not a number"),
        ("echo 1_000", "'1_000', which is not a number"),
        ("echo 1,5", "'1,5', which is not a number"),
        ("true", "printed no number"),
        ("printf '\\377\\000'", "is not a number"),
    ],
)
def test_output_that_is_no_number_is_quoted(bench: Bench, words: str, sentence: str) -> None:
    status, out, err = bench.bisect(bench.says(lambda i: words))
    assert (status, out) == (1, "")
    assert sentence in err.splitlines()[-1]


def test_a_flood_is_stopped_and_not_kept(bench: Bench) -> None:
    status, _, err = bench.bisect(["yes", "1"], "--quiet")
    assert status == 1
    assert "more than 64 MB" in err
    assert sum(f.stat().st_size for f in bench.journal.parent.glob("boots/*")) <= 2 << 20
    assert marked(bench) == []


def test_values_that_are_not_finite_tell_nothing(bench: Bench) -> None:
    facts = bench.facts(
        bench.says(lambda i: "echo NaN; echo -inf" if i == 4 else "echo nan; " + step_at(9)(i))
    )
    assert facts["culprit"]["commit"] == bench.ids[9]
    assert facts["runs"] < facts["boots"] + 1


def test_a_pattern_picks_the_numbers(bench: Bench) -> None:
    command = bench.says(
        lambda i: (
            f"echo warm-up 7; echo 'time: {1.0 if i < 5 else 1.5} s'; echo 'time: "
            f"{1.0 if i < 5 else 1.5} s'"
        )
    )
    facts = bench.facts(command, "--pattern", r"time: ([\d.]+) s", "--lower-is-better")
    assert (facts["culprit"]["commit"], facts["runs"]) == (bench.ids[5], 2 * facts["boots"])


# --- the journal ----------------------------------------------------------------------------------


def test_cut_off_anywhere_it_goes_on_from_there(bench: Bench) -> None:
    command = bench.says(wobbling(8))
    answer = bench.facts(command)
    lines = bench.journal.read_bytes().splitlines(keepends=True)
    for keep in range(4, len(lines), 9):
        (bench.table / "started").unlink()
        bench.journal.write_bytes(b"".join(lines[:keep]) + lines[keep][: len(lines[keep]) // 2])
        kept = sum(line.startswith(b'{"boot"') for line in lines[:keep])
        again = bench.facts(command)
        assert again["culprit"] == answer["culprit"]
        assert len(bench.started()) == again["boots"] - kept


def test_a_finished_bisection_is_answered_without_a_boot(bench: Bench) -> None:
    command = bench.says(step_at(8))
    first = bench.facts(command)
    boots = len(bench.started())
    again = bench.facts(command)
    assert again.pop("answered_before")["boots"] == boots
    assert first.pop("answered_before") is None and again == first
    assert len(bench.started()) == boots


def test_boots_that_another_engine_asked_for_count_and_that_is_said(bench: Bench) -> None:
    command = bench.says(step_at(8))
    first = bench.facts(command)
    text = bench.journal.read_text()
    assert text.count(f'"engine": "{ENGINE}"') == 1
    bench.journal.write_text(text.replace(f'"engine": "{ENGINE}"', '"engine": "0"'))
    status, out, err = bench.bisect(command, "--json")
    assert status == 0 and json.loads(out)["culprit"] == first["culprit"]
    assert f"engine 0 began this bisection; its boots count, and engine {ENGINE} decides" in err


def test_another_cmd_on_the_same_range_is_refused_until_restarted(bench: Bench) -> None:
    bench.facts(bench.says(step_at(8)))
    other = ["sh", "-c", "echo 1"]
    status, out, err = bench.bisect(other)
    assert (status, out) == (2, "")
    assert "--restart" in err and "--state" in err
    assert bench.facts(other, "--restart")["status"] == "not_reproduced"


@pytest.mark.parametrize(
    "damage", ["no journal at all\n", '{"boot": 1}\n', '{"begin": 3}\n', '{"ask": [["x"]]}\n']
)
def test_a_damaged_journal_is_named_with_its_line(bench: Bench, damage: str) -> None:
    command = bench.says(step_at(8))
    bench.facts(command)
    lines = bench.journal.read_text().splitlines(keepends=True)
    bench.journal.write_text("".join([*lines[:3], damage, *lines[3:]]))
    status, _, err = bench.bisect(command)
    assert status == 1
    assert "line 4 is damaged" in err and "--restart" in err


def test_killed_in_the_middle_it_goes_on_and_nothing_runs_twice_at_once(bench: Bench) -> None:
    command = bench.says(
        lambda i: 'touch "$0.$SWINGBOT_COMMIT"; [ -e "$0.go" ] || sleep 100; ' + step_at(3)(i)
    )
    command = [*command, str(bench.table / "flag")]
    argv = [
        sys.executable,
        "-c",
        "import sys; from swingbot.app.commands.bisect_run import run; run()",
    ]
    words = [f"{bench.ids[0]}..main", "--repo", str(bench.repo), "--", *command]
    child = subprocess.Popen([*argv, *words], stderr=subprocess.DEVNULL)
    wait_for(lambda: (bench.table / f"flag.{bench.ids[0]}").exists())
    child.send_signal(signal.SIGKILL)
    child.wait()
    (bench.table / "flag.go").touch()
    facts = bench.facts(command)
    assert facts["culprit"]["commit"] == bench.ids[3]
    assert facts["boots"] == len(bench.started()) - 1
    assert marked(bench) == []


def test_interrupted_it_says_how_to_go_on(bench: Bench) -> None:
    command = [*bench.says(lambda i: "touch $0; sleep 100"), str(bench.table / "flag")]
    argv = [
        sys.executable,
        "-c",
        "import sys; from swingbot.app.commands.bisect_run import run; run()",
    ]
    words = [f"{bench.ids[0]}..main", "--repo", str(bench.repo), "--", *command]
    # As at a terminal: where these tests run in the background SIGINT is ignored, and that is
    # inherited.
    heard = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    child = subprocess.Popen([*argv, *words], stderr=subprocess.PIPE, text=True, preexec_fn=heard)
    wait_for(lambda: (bench.table / "flag").exists())
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=20)
    assert child.returncode == 130
    assert "run the same command to resume" in err.splitlines()[-1]
    assert marked(bench) == []


def wait_for(happened: Callable[[], bool]) -> None:
    for _ in range(600):
        if happened():
            return
        time.sleep(0.05)
    raise AssertionError("it never happened")


# --- checked-out commits --------------------------------------------------------------------------


def test_checkout_gives_cmd_the_commit_and_leaves_the_users_tree_alone(bench: Bench) -> None:
    (bench.repo / "number").write_text("mine\n")
    (bench.repo / "untracked").write_text("mine too\n")
    before = git(bench.repo, "status", "--porcelain", "--branch")
    command = [
        "sh",
        "-c",
        (
            'test "$(git rev-parse HEAD)" = "$SWINGBOT_COMMIT" || exit 127; [ $(cat number) '
            "-lt 9 ] && echo 100 || echo 103"
        ),
    ]
    assert bench.facts(command, "--checkout", "--jobs", "2")["culprit"]["commit"] == bench.ids[9]
    assert git(bench.repo, "status", "--porcelain", "--branch") == before
    assert git(bench.repo, "rev-parse", "--abbrev-ref", "HEAD") == "main"
    assert git(bench.repo, "worktree", "list").count("\n") == 0


def test_a_cmd_that_the_commit_does_not_hold_is_named(bench: Bench) -> None:
    status, _, err = bench.bisect(["./bench"], "--checkout")
    assert status == 1
    assert "./bench does not exist in commit" in err and "absolute path" in err


def test_several_at_once_find_the_same(bench: Bench) -> None:
    assert (
        bench.facts(bench.says(wobbling(10)), "--jobs", "3")["culprit"]["commit"] == bench.ids[10]
    )


# --- history --------------------------------------------------------------------------------------


@pytest.fixture
def merged(tmp_path: Path) -> Bench:
    """Ten commits on main; commit 6 merges 20..24, which left main at commit 4."""
    return Bench(
        tmp_path / "repo", make_repo(tmp_path / "repo", 10, {6: range(20, 25)}), tmp_path / "table"
    )


def worth(culprits: Mapping[int, float], order: list[int]) -> Callable[[int], str]:
    """Levels on the graph of `merged`: commit by number, each culprit acts on all that hold it."""

    def holds(number: int, culprit: int) -> bool:
        if number >= 20:
            return culprit <= 4 or 20 <= culprit <= number
        return culprit <= number or (culprit >= 20 and number >= 6)

    def level(i: int) -> str:
        value = 100.0
        for culprit, effect in culprits.items():
            value *= 1 + effect if holds(order[i], culprit) else 1
        return f"echo {value}"

    return level


ORDER = [*range(11), *range(20, 25)]


def test_the_branch_of_a_blamed_merge_is_entered(merged: Bench) -> None:
    facts = merged.facts(merged.says(worth({22: -0.1}, ORDER)))
    assert facts["status"] == "culprit"
    assert facts["culprit"]["subject"] == "commit 22"
    assert facts["culprits"][0]["merge"] == merged.ids[6]
    assert f"merged by {merged.ids[6][:12]}" in facts["reason"]
    assert sum(c["probability"] for c in facts["candidates"]) <= 1.0 + 1e-9
    assert next(c["probability"] for c in facts["candidates"] if c["subject"] == "commit 22") > 0.97


@pytest.mark.parametrize(("wide", "apart"), [(80, 17), (100, 37)])
def test_a_commit_of_a_branch_has_the_probability_that_was_asked_for(
    merged: Bench, wide: int, apart: int
) -> None:
    """It is the product of that of the merge and that within its branch."""

    def noisy(i: int) -> str:
        level = round(10 * float(worth({22: -0.1}, ORDER)(i).split()[1]))
        return f"echo $(( {level} + ({i} * 7 + SWINGBOT_BOOT * {apart}) % {wide} ))"

    facts = merged.facts(merged.says(noisy), ends=f"{merged.ids[1]}..{merged.ids[9]}")
    assert (facts["status"], facts["culprit"]["subject"]) == ("culprit", "commit 22")
    assert facts["probability"] >= 0.99
    again = merged.facts(merged.says(noisy), ends=f"{merged.ids[1]}..{merged.ids[9]}")
    for key in ("culprit", "boots", "probability", "interval_pct"):
        assert again[key] == facts[key]


def test_first_parent_stays_on_the_main_line(merged: Bench) -> None:
    command = merged.says(worth({22: -0.1}, ORDER))
    facts = merged.facts(command, "--first-parent")
    assert facts["culprit"]["commit"] == merged.ids[6]
    assert (
        f"{merged.ids[6][:12]} is a merge of 5 commits, where the change may be" in facts["reason"]
    )
    assert "without --first-parent" in facts["reason"]
    again = merged.facts(command)
    assert again["culprit"]["commit"] == merged.ids[11 + 2] and again["boots"] > facts["boots"]
    assert "where the change may be" not in again["reason"]


@pytest.mark.parametrize("skipped", [5, 6])
def test_the_branch_of_a_merge_among_untestable_commits_is_searched(
    merged: Bench, skipped: int
) -> None:
    def level(culprit: int) -> Callable[[int], str]:
        return lambda i: "exit 125" if i == skipped else worth({culprit: -0.1}, ORDER)(i)

    facts = merged.facts(merged.says(level(22)))
    assert facts["culprit"]["commit"] == merged.ids[11 + 2]
    assert "shows the change by itself" in facts["reason"]
    facts = merged.facts(merged.says(level(skipped)), "--restart")
    assert facts["status"] == "credible_set"
    assert [m["commit"] for m in facts["members"]] == merged.ids[skipped : skipped + 2]
    assert "the merge itself is left" in facts["reason"]
    facts = merged.facts(merged.says(level(22)), "--restart", "--first-parent")
    assert [m["commit"] for m in facts["members"]] == merged.ids[skipped : skipped + 2]
    assert "is a merge of 5 commits, where the change may be" in facts["reason"]


def test_a_merge_whose_branch_is_innocent_is_blamed_itself(merged: Bench) -> None:
    facts = merged.facts(merged.says(worth({6: -0.1}, ORDER)))
    assert facts["culprit"]["commit"] == merged.ids[6]
    assert "the merge itself is left" in facts["reason"]


def test_a_good_end_on_a_merged_branch_is_followed_through_the_merge(merged: Bench) -> None:
    facts = merged.facts(merged.says(worth({23: -0.1}, ORDER)), ends=f"{merged.ids[11 + 1]}..main")
    assert facts["culprit"]["subject"] == "commit 23"


def test_commits_that_touch_the_given_paths_are_preferred(merged: Bench) -> None:
    command = merged.says(worth({22: -0.1}, ORDER))
    facts = merged.facts(command, "--paths", "side-*", "--first-parent")
    assert facts["culprit"]["commit"] == merged.ids[6]
    status, _, err = merged.bisect(command, "--paths", "nothing/*", "--restart")
    assert status == 2
    assert "touches nothing/*" in err


def test_paths_without_the_culprit_blame_no_innocent_commit(tmp_path: Path) -> None:
    """Commits that touch the paths lie on both sides of the culprit, which touches none of them."""
    repo = tmp_path / "repo"
    make_repo(repo, 0)
    for i in range(1, 13):
        (repo / f"f{i % 4}.c").write_text(str(i))
        git(repo, "add", "--all")
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        git(repo, *who, "commit", "--quiet", f"--message=commit {i}")
    ids = git(repo, "log", "--reverse", "--format=%H").split()
    bench = Bench(repo, ids, tmp_path / "table")
    facts = bench.facts(bench.says(wobbling(7)), "--paths", "f1.c")
    assert facts["culprit"]["commit"] == ids[7]
    assert f"{ids[7][:12]} touches none of --paths" in facts["reason"]
    facts = bench.facts(bench.says(wobbling(5)), "--paths", "f1.c", "--restart")
    assert facts["culprit"]["commit"] == ids[5]
    assert "--paths" not in facts["reason"]
    first = bench.facts(bench.says(wobbling(1)), "--paths", "f2.c", "--restart")
    assert max(first["candidates"], key=lambda row: row["probability"])["commit"] == ids[1]
    assert f"{ids[1][:12]} touches none of --paths" in first["reason"]


def test_reversed_ends_are_taken_in_the_order_of_history(bench: Bench) -> None:
    _, out, err = bench.bisect(bench.says(step_at(7)), ends=f"main..{bench.ids[0]}")
    assert out.startswith(f"{bench.ids[7]} is the first bad commit")
    assert "is older than main" in err


@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        ("main", "write the range as GOOD..BAD"),
        ("..main", "write the range as GOOD..BAD"),
        ("main~3...main", "write the range as GOOD..BAD"),
        ("main..main", "same commit"),
        ("nosuch..main", "'nosuch' is not a commit in this repository"),
        ("--help..main", "'--help' is not a commit in this repository"),
        ("main^{tree}..main", "is not a commit in this repository"),
    ],
)
def test_a_range_that_is_none_is_refused_in_one_sentence(
    bench: Bench, ends: str, sentence: str
) -> None:
    done = CliRunner().invoke(run, ["--repo", str(bench.repo), "--", ends, "true"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert sentence in done.stderr and done.stderr.count("\n") == 1


def test_diverged_ends_are_reported_with_their_fork_point(merged: Bench) -> None:
    status, _, err = merged.bisect(["true"], ends=f"{merged.ids[5]}..{merged.ids[13]}")
    assert status == 2
    assert f"bisect {merged.ids[4][:12]}.." in err


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ([], "CMD is missing"),
        (["nosuch-command"], "CMD 'nosuch-command' was not found"),
        (["./number"], "CMD './number' was not found"),
        (["/etc/passwd"], "CMD '/etc/passwd' is not executable"),
    ],
)
def test_a_cmd_that_cannot_be_started_is_refused_first(
    bench: Bench, command: list[str], sentence: str
) -> None:
    status, out, err = bench.bisect(command)
    assert (status, out) == (2, "")
    assert sentence in err


def test_outside_of_a_repository_it_says_so(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        run,
        ["a..b", "--repo", str(tmp_path), "--", "true"],
        env={"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)},
    )
    assert done.exit_code == 2
    assert "not a git repository" in done.stderr


def test_a_script_without_first_line_is_run_by_sh(bench: Bench) -> None:
    script = bench.table.parent / "bench"
    script.write_text('[ "$SWINGBOT_COMMIT" = x ] && exit 1; echo 4\n')
    script.chmod(0o755)
    assert bench.facts([str(script)])["status"] == "not_reproduced"


def test_git_variables_of_a_hook_do_not_lead_elsewhere(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", os.devnull)
    assert bench.facts(bench.says(step_at(2)))["culprit"]["commit"] == bench.ids[2]


def odd_in_layout_0(culprit: int, odd: int) -> Callable[[int], str]:
    """A step of -10 %; the build of commit `odd` is 4 % low in layout 0, and in no other one."""

    def level(i: int) -> str:
        value = 900 if i >= culprit else 1000
        wobble = f"({i} * 7 + SWINGBOT_BOOT * 5) % 11"
        if i != odd:
            return f"echo $(( {value} + {wobble} ))"
        return f'[ "$SWINGBOT_LAYOUT" = 0 ] && n=960 || n={value}; echo $(( n + {wobble} ))'

    return level


def test_an_odd_build_at_the_bad_end_is_distinguished_from_a_step_by_another_layout(
    bench: Bench,
) -> None:
    facts = bench.facts(bench.says(odd_in_layout_0(99, 12)), "--layouts", "cmd")
    assert facts["status"] not in ("culprit", "several", "credible_set"), facts["reason"]


def test_without_other_layouts_an_odd_build_is_believed_less_and_the_answer_says_so(
    bench: Bench,
) -> None:
    facts = bench.facts(bench.says(odd_in_layout_0(99, 12)))
    assert facts["status"] != "culprit" or facts["probability"] < 0.99
    step = bench.facts(bench.says(wobbling(6)), "--restart")
    assert step["status"] == "culprit" and step["layout_checked"] is False
    assert "layout not checked" in step["reason"]


def test_with_layouts_a_step_is_checked_in_other_ones(bench: Bench) -> None:
    command = [*bench.says(wobbling(6)), "builds in $SWINGBOT_LAYOUT"]
    facts = bench.facts(command, "--layouts", "cmd")
    assert facts["culprit"]["commit"] == bench.ids[6] and facts["layout_checked"] is True
    assert "layout not checked" not in facts["reason"]


def test_layouts_of_a_cmd_that_does_not_mention_them_are_none(bench: Bench) -> None:
    command = bench.says(wobbling(6))
    _, _, told = bench.bisect(command, "--layouts", "cmd")
    assert "--layouts cmd has no effect" in told
    assert bench.facts(command, "--restart", "--layouts", "cmd")["layout_checked"] is False


def test_an_answer_that_was_there_before_says_when_and_that_a_file_of_cmd_changed(
    bench: Bench, tmp_path: Path
) -> None:
    script = tmp_path / "bench.sh"
    script.write_text(f". {bench.table}/$SWINGBOT_COMMIT\n")
    bench.says(wobbling(5))
    first = bench.facts(["sh", str(script)])
    assert first["answered_before"] is None and first["cmd_changed"] == []
    _, out, _ = bench.bisect(["sh", str(script)])
    assert f"from {first['boots']} boots; --restart measures again" in out
    script.write_text(f"# faster now\n. {bench.table}/$SWINGBOT_COMMIT\n")
    again = bench.facts(["sh", str(script)])
    assert again["answered_before"]["boots"] == first["boots"]
    assert again["cmd_changed"] == [str(script)]
    assert bench.facts(["sh", str(script)], "--restart")["cmd_changed"] == []
