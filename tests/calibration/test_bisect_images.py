"""Where a step may be one of images and not of code, and where boots repeat to the last digit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from swingbot.app.bisect_run.journal import open_journal
from tests.bisect_run_worlds import World, bisect, wrong
from tests.calibration.families import DIFFICULT, EIGHT, Family, world
from tests.calibration.score import Verdict, judge


@pytest.mark.parametrize("culprit", [1, 5, 12])
def test_no_kernel_but_the_suspect_and_the_ends_is_booted_again_where_boots_repeat(
    tmp_path: Path, culprit: int
) -> None:
    world = World(commits=12, level=100.12345, effects={culprit: -0.05}, controls=(4, 4, 4))
    path = tmp_path / "log"
    facts = bisect(world, path=path).facts
    assert facts["status"] == "culprit"
    assert int(facts["culprit"]["commit"]) == culprit
    journal = open_journal(path, {"cmd": ["bench"]}, restart=False, loose=frozenset())
    boots = Counter((int(b.sha), b.layout) for b in journal.booted)
    journal.close()
    again = {image: n for image, n in boots.items() if n > 1}
    assert {commit for commit, _ in again} <= {0, culprit - 1, culprit, 12}
    assert max(again.values()) <= 5


@pytest.mark.parametrize("seed", range(8))
def test_equal_boots_are_not_asked_for_because_images_are_odd(seed: int) -> None:
    """91 pairs of boots that repeat were said not to show the step that each of them shows."""
    world = World(
        commits=12,
        level=100.12345,
        effects={1 + 5 * seed % 12: -0.05},
        odd=0.3,
        controls=(4, 4, 4),
        seed=seed,
    )
    facts = bisect(world).facts
    assert facts["boots"] <= 40
    assert not wrong(world, facts)
    if facts["suspect"]:
        assert facts["suspect"]["probability"] >= 0.5


def test_a_step_below_the_layout_ends_after_few_equal_boots() -> None:
    facts = bisect(World(commits=12, level=100.12345, layout_sd=0.01, seed=2)).facts
    assert facts["status"] in ("inconclusive", "not_reproduced")
    assert facts["boots"] <= 30


def judge_odd_images(seed: int, steps: int) -> Verdict:
    """Of 8 to 16 commits, 30 % of the images are 4 % off, and boots repeat but for 0.01 %."""
    noise = {"run_noise": 1e-4, "boot_noise": 1e-4, "image_modes": 0.3, "image_apart": 0.04}
    make = world(steps=steps, **{**EIGHT, "commits": (8, 16), **noise})
    return judge(Family(name="odd", make=make), seed)


@pytest.mark.parametrize("seed", [3005, 3008, 3019, 3020])
def test_a_change_that_two_odd_images_explain_is_not_two_steps(seed: int) -> None:
    """The level falls and rises again within a few kernels, and none can be built again."""
    assert judge_odd_images(seed, steps=1).kind != "several"


@pytest.mark.parametrize("seed", [3005, 3022])
def test_all_images_beside_a_suspect_are_awaited(seed: int) -> None:
    """The first of four that were asked for agreed, and the others do not."""
    assert judge_odd_images(seed, steps=0).boots > 16


def test_a_set_below_the_confidence_that_was_asked_for_names_no_commit() -> None:
    (found,) = (f for f in DIFFICULT if f.name == "each image off by 1 %, -5 %")
    stated = [v.stated for v in (judge(found, seed) for seed in range(8)) if v.stated is not None]
    assert stated and min(stated) >= 0.99


@pytest.mark.parametrize(
    ("family", "seed"), [("Cauchy boots, -5 %", 1), ("modes stick for five boots, -5 %", 1)]
)
def test_images_are_checked_until_their_levels_are_known(family: str, seed: int) -> None:
    (found,) = (f for f in DIFFICULT if f.name == family)
    verdict = judge(found, seed)
    assert (verdict.kind, verdict.right) == ("culprit", True)
    assert verdict.boots <= 100
