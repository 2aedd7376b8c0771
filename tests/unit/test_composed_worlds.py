"""Rules that composed worlds keep, and what is made of them."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.calibration import compose as composing
from tests.calibration.compose import Judged, compose, draw, findings, groups, judged, shrunk, worst
from tests.calibration.families import Family
from tests.calibration.ingredients import EXCLUDE, INGREDIENTS
from tests.calibration.score import Verdict, judge
from tests.worlds import SimulatedBench

TESTS = Path(__file__).parents[1]


def a_claim(seed: int, *ingredients: str, right: bool, stated: float = 0.99) -> Judged:
    verdict = Verdict(
        seed=seed, kind="culprit", stated=stated, right=right, boots=9, intervals=((True, True),)
    )
    return Judged(ingredients=ingredients, culprits=(1,), verdict=verdict)


def test_a_seed_is_one_world() -> None:
    for seed in range(40):
        one, again = compose(seed), compose(seed)
        assert one.ingredients == again.ingredients
        assert one.bench == again.bench
        assert replace(one.family, make=again.family.make) == again.family


def test_without_an_ingredient_the_others_stay_as_they_are() -> None:
    seed = next(s for s in range(999) if {"wild boots", "layout"} < set(compose(s).ingredients))
    whole, rest = compose(seed), compose(seed, without=["wild boots"])
    assert set(whole.ingredients) - set(rest.ingredients) == {"wild boots"}
    assert rest.bench == replace(whole.bench, heavy=0.0)


def test_every_ingredient_comes_as_often_as_its_share_and_none_beside_what_it_excludes() -> None:
    worlds = [set(compose(seed).ingredients) for seed in range(1500)]
    seen = Counter(name for names in worlds for name in names)
    later = {name for _, name in EXCLUDE}
    for name, (share, _) in INGREDIENTS.items():
        assert seen[name] / 1500 == pytest.approx(share, abs=0.05 + 0.1 * share * (name in later))
    assert not any({*pair} <= names for pair in EXCLUDE for names in worlds)


@pytest.mark.parametrize("module", ["worlds.py", "calibration/ingredients.py"])
def test_what_worlds_are_made_of_knows_nothing_of_the_engine(module: str) -> None:
    tree = ast.parse((TESTS / module).read_text())
    imported = [
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    ]
    assert not [name for name in imported if name.startswith("swingbot")]


def test_the_first_seed_is_given_or_comes_from_the_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert composing.first_seed("17") == 17
    here = composing.first_seed(None)
    assert here == composing.first_seed("")
    # a folder without git, and without the engine: still a seed, the same each time
    monkeypatch.setattr(composing, "ROOT", tmp_path)
    assert composing.first_seed(None) == composing.first_seed(None) != here


def test_drawing_ends_at_the_clock_or_at_the_last_world() -> None:
    assert draw(1, 5, seconds=-1.0) == []
    assert [j.verdict.seed for j in draw(1, 1, seconds=600.0)] == [1]


def test_a_world_is_judged_by_the_commits_that_change_something() -> None:
    found = judged(1)
    assert (found.culprits, found.verdict.error) == ((), None)
    assert not found.wrong


def test_a_capped_world_without_a_change_is_rightly_called_one() -> None:
    bench = SimulatedBench(culprit=None, commits=4, run_noise=0.02, runs=2, cap=990.0, seed=3)
    assert bench.measured(0) < -0.012  # what the cap takes off, of every kernel
    verdict = judge(Family(name="capped", make=lambda _: bench), 3)
    assert (verdict.kind, verdict.right) == ("not_reproduced", True)


def test_the_ingredient_that_makes_claims_wrong_stands_first() -> None:
    found = [a_claim(i, "layout", right=True) for i in range(50)]
    found += [a_claim(50 + i, "layout", "history", right=i > 3) for i in range(10)]
    first, second = groups(found)[:2]
    assert (first.name, first.worlds, first.wrong) == ("all", 60, 4)
    assert (second.name, second.claims, second.wrong) == ("history", 10, 4)
    assert second.seeds == (50, 51, 52, 53)
    assert second.p < 1e-5 < groups(found[:50])[0].p


def test_ingredients_are_judged_in_worlds_without_those_known_to_be_wrong() -> None:
    found = [a_claim(i, "layout", "history", right=False) for i in range(9)]
    found += [a_claim(9 + i, "layout", right=True) for i in range(9)]
    by_name = {g.name: g for g in groups(found, ["history"])}
    assert (by_name["history"].wrong, by_name["layout"].wrong, by_name["all the rest"].wrong) == (
        9,
        0,
        0,
    )


def test_changes_that_are_called_not_reproduced_are_found_too() -> None:
    def denied(seed: int) -> Judged:
        claim = a_claim(seed, "history", right=False)
        verdict = replace(claim.verdict, kind="not_reproduced", stated=None, intervals=())
        return replace(claim, verdict=verdict)

    found = [denied(i) for i in range(5)]
    (first, *_) = findings(found)
    assert (first.claims, first.denied, first.not_reproduced) == (0, 5, 5)
    assert first.p_denied == pytest.approx(0.05**5)
    assert worst([*found, a_claim(7, right=False)])[0].verdict.seed == 7


def test_a_weak_finding_is_written_down_and_honesty_is_not(tmp_path: Path) -> None:
    honest = [a_claim(i, right=True) for i in range(50)]
    assert findings(honest) == []
    assert composing.write_findings(7, honest, tmp_path) is None
    found = honest + [a_claim(50 + i, "history", right=False) for i in range(3)]
    path = composing.write_findings(7, found, tmp_path / "build")
    assert path is not None
    said = json.loads(path.read_text())
    assert (said["seed"], said["worlds"]) == (7, 53)
    assert "history" in {group["name"] for group in said["groups"]}
    assert {seed for group in said["groups"] for seed in group["seeds"]} == {50, 51, 52}


def test_the_worst_are_failures_then_the_surest_then_the_simplest() -> None:
    broken = a_claim(9, "layout", "history", right=False)
    broken = replace(broken, verdict=replace(broken.verdict, stated=None, error="IndexError: 3"))
    found = [
        a_claim(1, "layout", right=False, stated=0.95),
        a_claim(2, "layout", "history", right=False, stated=0.999),
        a_claim(3, "layout", right=False, stated=0.999),
        a_claim(4, right=True, stated=0.999),
        broken,
    ]
    assert [j.verdict.seed for j in worst(found)] == [9, 3, 2, 1]
    assert "IndexError: 3" in composing.line(broken)


def test_a_wrong_world_shrinks_to_what_it_needs() -> None:
    def again(seed: int, without: Sequence[str]) -> Judged:
        left = [name for name in ("layout", "history", "drift", "rebuilds") if name not in without]
        return a_claim(seed, *left, right=not {"history", "rebuilds"} <= set(left))

    bad = a_claim(3, "layout", "history", "drift", "rebuilds", right=False)
    assert shrunk(bad, again).ingredients == ("history", "rebuilds")
