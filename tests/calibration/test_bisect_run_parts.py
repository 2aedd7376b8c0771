"""The parts of `swingbot bisect run`: what CMD said, noise, history, journal, and bisections of
simulated worlds."""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.app import limits
from swingbot.app.bisect_run import command_result, noise_prior
from swingbot.app.bisect_run.commit_range import RangeCommit, make_range
from swingbot.app.bisect_run.failures import RunError, UsageError
from swingbot.app.bisect_run.journal import BootRequest, BootResult, Journal, open_journal
from swingbot.app.bisect_run.session import _zero
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.plan.remaining_boots import capacity
from tests.bisect_run_worlds import World, a_wish, bisect, right

# --- what CMD said --------------------------------------------------------------------------------


def test_each_line_is_a_run() -> None:
    assert command_result.read(0, "1\n-2.5\n\n +3e2 \n.5\n", "", None).values == (
        1.0,
        -2.5,
        300.0,
        0.5,
    )


def test_a_failed_cmd_is_quoted_by_its_last_words() -> None:
    result = command_result.read(7, "12\n", "one\nno route to host\n\n", None)
    assert result.values == () and result.failed == "CMD exited with status 7: no route to host"


def test_too_many_numbers_are_refused() -> None:
    with pytest.raises(RunError, match="one number per run"):
        command_result.read(0, "1\n" * (limits.BOOT_VALUES + 1), "", None)


def test_a_number_too_large_for_a_double_tells_nothing() -> None:
    result = command_result.read(0, "1e999\n", "", None)
    assert result.values == () and result.failed is not None


def test_a_pattern_without_a_group_takes_all_it_found() -> None:
    assert command_result.read(0, "x 1\ny 2\n", "", re.compile(r"\d")).values == (1.0, 2.0)
    with pytest.raises(RunError, match="'x abc'"):
        command_result.read(0, "x abc\n", "", re.compile(r"x (\w+)"))


@pytest.mark.parametrize(
    ("status", "meaning"),
    [(126, "not executable"), (127, "command not found"), (139, "SIGSEGV")],
)
def test_a_status_that_means_a_broken_cmd_is_explained(status: int, meaning: str) -> None:
    with pytest.raises(RunError) as error:
        command_result.read(status, "", "", None)
    assert str(error.value) == (
        f"CMD exited with status {status} ({meaning}), which means that CMD itself is broken"
    )


@given(st.text(), st.integers(0, 127))
def test_any_output_gives_values_a_reason_or_a_sentence(out: str, status: int) -> None:
    try:
        result = command_result.read(status, out, out, None)
    except RunError as trouble:
        kinds, said = 1, str(trouble)
    else:
        kinds, said = bool(result.values) + bool(result.failed) + bool(result.untestable), ""
    assert kinds == 1 and "\n" not in said


# --- noise ----------------------------------------------------------------------------------------

ENDS = ("a", "b")


def test_noise_that_was_seen_is_expected() -> None:
    boots = {
        "a": [[100.0, 102.0], [95.0, 97.0], [104.0, 105.0]],
        "b": [[80.0, 82.0], [85.0, 84.0], [78.0, 79.5]],
    }
    found = noise_prior.estimate(boots, ENDS, 0.01)
    assert 0.008 < found.sd_run < 0.02
    assert 0.03 < found.sd_boot < 0.06


def test_equal_values_are_expected_to_repeat_well_but_not_exactly() -> None:
    found = noise_prior.estimate({"a": [[100.125], [100.125]], "b": [[90.25], [90.25]]}, ENDS, 0.01)
    assert 1e-4 < found.sd_run < 0.002


def test_boots_that_lie_close_by_chance_do_not_make_a_step_of_all_others() -> None:
    few = noise_prior.SumOfSquares(2 * 0.01**2, 2)
    many = noise_prior.SumOfSquares(50 * 0.01**2, 50)
    assert few.careful() > 0.015 > 0.0115 > many.careful() > many.mode()


def test_what_few_digits_hide_is_expected() -> None:
    coarse = noise_prior.estimate({"a": [[12.0], [12.0]], "b": [[13.0], [13.0]]}, ENDS, 0.01)
    fine = noise_prior.estimate({"a": [[12.001], [12.001]], "b": [[13.002], [13.002]]}, ENDS, 0.01)
    assert coarse.sd_run > 5 * fine.sd_run


@given(st.floats(1e-6, 1e6))
def test_the_unit_of_the_numbers_makes_no_difference(factor: float) -> None:
    boots = {"a": [[10.13, 10.71], [10.37, 10.59]], "b": [[9.11, 9.23], [9.07, 9.61]]}
    scaled = {sha: [[v * factor for v in boot] for boot in of] for sha, of in boots.items()}
    one, other = noise_prior.estimate(boots, ENDS, 0.01), noise_prior.estimate(scaled, ENDS, 0.01)
    assert other.sd_boot == pytest.approx(one.sd_boot, rel=0.1)


def test_without_any_boot_a_machine_in_use_is_expected() -> None:
    assert noise_prior.estimate({}, ENDS, 0.01).sd_run == pytest.approx(noise_prior.USUAL / 2**0.5)


def test_a_smaller_effect_looked_for_leaves_less_to_layout() -> None:
    assert (
        noise_prior.estimate({}, ENDS, 0.001).sd_layout
        < noise_prior.estimate({}, ENDS, 0.01).sd_layout
    )


def test_the_capacity_fits_the_table_of_the_bound() -> None:
    for d, bits in (
        (0.71, 0.085),
        (1, 0.161),
        (1.77, 0.409),
        (2.5, 0.637),
        (3.6, 0.865),
        (5, 0.975),
    ):
        assert capacity(d) == pytest.approx(bits, abs=0.012)


# --- history --------------------------------------------------------------------------------------


def graph(*edges: tuple[str, str]) -> list[RangeCommit]:
    """Commits with their parents, given oldest first, as git log lists them: newest first."""
    return [RangeCommit(sha, tuple(parents.split()), sha) for sha, parents in reversed(edges)]


def test_a_merge_weighs_what_it_brings_in() -> None:
    found = make_range(
        "g", "4", graph(("1", "g"), ("x", "g"), ("y", "x"), ("2", "1 y"), ("3", "2"), ("4", "3"))
    )
    assert found.shas == ("g", "1", "2", "3", "4")
    assert found.weights == (0.0, 1.0, 3.0, 1.0, 1.0)


def test_the_chain_leads_through_the_parent_that_holds_the_good_commit() -> None:
    found = make_range("g", "3", graph(("x", "o"), ("1", "g"), ("2", "x 1"), ("3", "2")))
    assert found.shas == ("g", "1", "2", "3")


def test_a_bad_end_that_does_not_descend_from_the_good_one_is_refused() -> None:
    with pytest.raises(ValueError, match="does not descend"):
        make_range("g", "2", graph(("1", "o"), ("2", "1")))


def test_a_long_range_is_laid_out_at_once() -> None:
    n = 20_000
    found = make_range("0", str(n), graph(*((str(i), str(i - 1)) for i in range(1, n + 1))))
    assert len(found.shas) == n + 1 and set(found.weights[1:]) == {1.0}


# --- the journal ----------------------------------------------------------------------------------

BOOT = BootResult(
    part="",
    sha="a",
    k=0,
    phase="ends",
    values=(1.5, 2.0),
    failed=None,
    untestable=None,
    at=3.0,
    seconds=1.0,
)


def a_journal(path: Path) -> Journal:
    return open_journal(path, {"cmd": ["x"]}, restart=False, loose=frozenset())


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    journal = a_journal(tmp_path / "log")
    asked = [BootRequest(part="", sha=s, k=0, phase="ends") for s in "ab"]
    journal.ask(asked, "both ends first: \N{LINE SEPARATOR} \udcff")
    journal.boot(replace(BOOT, failed="\N{LINE SEPARATOR}"))
    journal.close()
    again = a_journal(tmp_path / "log")
    assert (again.asked, again.booted, again.unanswered("")) == (
        journal.asked,
        journal.booted,
        asked[1:],
    )
    again.close()


def test_two_calls_do_not_share_a_journal(tmp_path: Path) -> None:
    journal = a_journal(tmp_path / "log")
    with pytest.raises(UsageError, match="another `swingbot bisect run` is using"):
        a_journal(tmp_path / "log")
    journal.close()
    a_journal(tmp_path / "log").close()


def test_a_full_disk_stops_before_anything_is_believed(tmp_path: Path) -> None:
    journal = a_journal(tmp_path / "log")
    os.dup2(full := os.open("/dev/full", os.O_WRONLY), journal.file)
    os.close(full)
    with pytest.raises(RunError, match="No space left"):
        journal.boot(BOOT)
    assert journal.booted == []
    journal.close()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="--state"):
        a_journal(tmp_path / "file" / "log")


def test_time_never_runs_backwards_in_the_journal(tmp_path: Path) -> None:
    journal = Journal(
        path=tmp_path, begin={"began": time.time() + 1e6}, booted=[replace(BOOT, at=500.0)]
    )
    assert _zero(journal) + time.monotonic() >= 501.0


# --- worlds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "world",
    [
        World(commits=70, effects={44: -0.05}, run_sd=0.02, runs=5),
        World(commits=90, effects={3: 0.2}, run_sd=0.05, boot_sd=0.02),
        World(commits=64, effects={64: 0.015}, run_sd=0.0001, controls=(4, 4, 4)),
        World(commits=2, effects={1: -0.1}, run_sd=0.02, controls=(4, 4, 4)),
        World(commits=1, effects={1: -0.1}, run_sd=0.02, controls=(4, 4, 4)),
        World(commits=1000, effects={777: -0.1}, run_sd=0.02),
        World(commits=60, effects={31: -0.18}, run_sd=0.02, heavy=0.1),
        World(commits=60, effects={31: -0.10}, run_sd=0.01, low=0.3),
        World(commits=60, effects={31: 0.5}, level=10.0, run_sd=0.05, offset=-40.0),
        World(commits=60, effects={31: -0.08}, run_sd=0.02, skipped=frozenset(range(29, 34))),
        World(commits=60, effects={31: -0.08}, run_sd=0.02, flaky=0.2),
    ],
    ids=lambda world: f"{world.commits}-{dict(world.effects)}",
)
def test_a_world_of_unknown_noise_is_solved(world: World) -> None:
    found = bisect(world)
    assert right(world, found.facts), found.facts["reason"]


@pytest.mark.parametrize("culprit", [1, 2, 4])
def test_no_commit_stays_a_suspect_while_controls_are_left(culprit: int) -> None:
    world = World(
        commits=4,
        effects={culprit: -0.05},
        seed=4000 + 100 * culprit,
        controls=(4, 4, 4),
        run_sd=0.02,
        boot_sd=0.02,
        runs=3,
    )
    found = bisect(world)
    assert right(world, found.facts), found.facts["reason"]
    assert found.facts["probability"] >= 0.99
    assert found.steps <= 60


def test_cut_off_at_any_line_the_same_decisions_follow_byte_for_byte(tmp_path: Path) -> None:
    world, log = (
        World(commits=50, effects={31: -0.06}, run_sd=0.02, runs=3, skipped=frozenset({30})),
        tmp_path / "log",
    )
    answer = bisect(world, path=log).facts
    whole = log.read_bytes()
    lines = whole.splitlines(keepends=True)
    for keep in range(1, len(lines), 5):
        log.write_bytes(b"".join(lines[:keep]) + lines[keep][: len(lines[keep]) // 2])
        assert bisect(world, path=log).facts == answer
        assert log.read_bytes() == whole


def test_no_change_names_nobody() -> None:
    for seed in range(3):
        assert bisect(World(commits=60, run_sd=0.01, seed=seed)).facts["status"] in (
            "not_reproduced",
            "inconclusive",
        )


def test_the_budget_ends_it_with_the_likeliest_commits() -> None:
    world = World(commits=60, effects={31: -0.05}, run_sd=0.04)
    found = bisect(world, a_wish(policy=Policy(parallel=1, max_boots=20)))
    assert found.facts["status"] == "inconclusive" and found.steps <= 24
