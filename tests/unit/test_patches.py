"""Two tips of a branch, aligned patch by patch."""

from __future__ import annotations

import random

import pytest

from swingbot.core.incident.recognise import PairNoise, beyond_known, recognise
from swingbot.core.model.patches import BranchPatch, Patch
from swingbot.core.model.statuses import PatchState
from swingbot.core.plan.branch_patches import align, grown, tally

QUIET = PairNoise(sd=0.002, df=10.0)
NOISY = PairNoise(sd=0.03, df=20.0)


def patches(words: str, tip: int = 1) -> list[Patch]:
    """`a` is patch a; `a2` another version of it, with the same subject."""
    return [
        Patch(
            commit=f"{tip}{word}",
            parent="",
            patch_id=word,
            subject=word[0],
            author="Ada <ada@example.org>",
        )
        for word in words.split()
    ]


def aligned(old: str, new: str) -> str:
    found = align(patches(old, 1), patches(new, 2))
    return " ".join(f"{each.patch.patch_id}:{each.state}" for each in found)


def test_a_patch_is_the_same_changed_new_or_dropped() -> None:
    assert aligned("a b c d", "a b2 e d") == "a:same b2:changed e:new d:same c:dropped"


def test_one_patch_that_goes_to_the_end_moves_alone() -> None:
    assert aligned("a b c d e", "a c d e b") == "a:same c:same d:same e:same b:moved"


def test_what_comes_before_all_that_was_there_is_the_newer_base() -> None:
    assert aligned("a b", "u v a w b") == "u:below v:below a:same w:new b:same"


def test_nothing_in_common_is_all_new() -> None:
    assert aligned("a b", "c d") == "c:new d:new a:dropped b:dropped"
    assert aligned("", "c") == "c:new"


def test_patches_that_are_there_twice_are_paired_in_order() -> None:
    found = align(patches("a a b"), patches("a b a a", 2))
    assert [each.state for each in found].count("new") == 1
    assert all(
        each.was is None or each.was.patch_id == "a" or each.was.patch_id == "b" for each in found
    )


def test_commits_without_a_patch_id_are_identified_by_their_subject() -> None:
    old = [Patch(commit="1", parent="", patch_id="", subject="empty", author="A")]
    new = [Patch(commit="2", parent="", patch_id="", subject="empty", author="A")]
    assert [each.state for each in align(old, new)] == ["changed"]


def test_every_patch_has_one_place_whatever_was_rebuilt() -> None:
    """Properties of an alignment over random rebuilds, with versions, copies and other orders."""
    draw = random.Random(17)
    names = [f"{letter}{version}" for letter in "abcdefgh" for version in ("", "2", "3")]
    for _ in range(2000):
        old, new = (
            patches(" ".join(draw.choices(names, k=draw.randrange(12))), tip) for tip in (1, 2)
        )
        found = align(old, new)
        assert [each.patch for each in found if each.state != "dropped"] == new
        was = [each.was for each in found if each.was is not None]
        gone = [each.patch for each in found if each.state == "dropped"]
        assert sorted(p.patch_id for p in [*was, *gone]) == sorted(p.patch_id for p in old)
        for each in found:
            assert (each.was is not None) == (each.state in ("same", "moved", "changed"))
            if each.was is not None:
                assert (each.was.patch_id == each.patch.patch_id) == (each.state != "changed")
                assert each.was.subject == each.patch.subject
        if old == []:
            assert {each.state for each in found} <= {"new"}


def test_what_both_tips_have_stays_and_a_base_that_moved_is_no_part_of_the_branch() -> None:
    states: tuple[PatchState, ...] = ("below", "same", "new", "same")
    known = [BranchPatch(patch=p, state=s) for p, s in zip(patches("u a b c"), states, strict=True)]
    grew = grown(known, "1a", patches("b c"), patches("b d", 2))
    assert [(each.patch.patch_id, each.state) for each in grew] == [
        ("a", "same"),
        ("b", "same"),
        ("d", "new"),
        ("c", "dropped"),
    ]
    moved = grown(known, "1u", patches("a b c"), patches("v a b c", 2))
    assert [each.state for each in moved] == ["below", "same", "same", "same"]


def test_a_branch_is_counted_in_words() -> None:
    assert tally(["same", "same", "changed", "new"]) == "4 patches: 2 unchanged, 1 changed, 1 new"
    assert tally(["below", "same", "dropped"]) == (
        "1 patch: 1 unchanged; 1 dropped; the base moved by 1 commit below them"
    )
    assert tally([]) == "0 patches"


def test_one_pair_recognises_a_change_well_above_the_noise() -> None:
    assert recognise([-0.12], -0.128, QUIET).answer == "still"
    assert recognise([-0.09], -0.10, NOISY).answer == "still"


def test_a_change_that_is_gone_or_less_than_it_was_is_not_recognised() -> None:
    assert recognise([0.001], -0.12, QUIET).answer == "gone"
    assert recognise([-0.03, -0.031], -0.12, QUIET).answer == "gone"


def test_noise_asks_for_more_pairs_and_gives_up() -> None:
    assert recognise([-0.005], -0.02, NOISY).answer == "more"
    assert recognise([-0.01] * 4, -0.02, NOISY).answer in ("still", "unclear")
    assert recognise([], -0.02, NOISY).answer == "unclear"
    with pytest.raises(ValueError, match="not a finite number"):
        recognise([float("nan")], -0.02, NOISY)


def test_what_is_within_the_error_of_the_known_change_is_not_looked_for() -> None:
    assert not beyond_known(-0.03, [0.02, 0.01], 0.01)
    assert beyond_known(-0.08, [0.02, 0.01], 0.01)
    assert not beyond_known(-0.005, [0.0], 0.01)
