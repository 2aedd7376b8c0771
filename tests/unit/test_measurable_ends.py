"""Ends of a bisection that cannot be measured are moved, in few boots, and lose no commit."""

from __future__ import annotations

import itertools

from swingbot.app.bisect_run.measurable_ends import Ends, next_ends


def moved(commits: int, measurable: set[int], culprit: int) -> tuple[Ends | None, int]:
    """The last ends, and how many commits were tried in vain."""
    can, alike, ends = [True] * (commits + 1), None, (0, commits)
    for _ in range(4 * commits):
        failed = [end for end in ends if end not in measurable]
        for end in failed:
            can[end] = False
        if not failed and ends[0] < culprit <= ends[1]:
            return ends, can.count(False)
        alike = alike if failed else ends
        following = next_ends(can, alike)
        if following is None or following == alike:
            return following, can.count(False)
        ends = following
    raise AssertionError("it never ends")


def test_a_commit_that_changes_is_between_the_ends_or_beyond_what_can_be_measured() -> None:
    for good, bad in itertools.product(range(12), range(12)):
        if good >= bad:
            continue
        measurable = set(range(good, bad + 1))
        for culprit in range(1, 13):
            ends, _ = moved(12, measurable, culprit)
            inside = ends is not None and ends[0] < culprit <= ends[1]
            assert inside == (good < culprit <= bad) or ends is None, (good, bad, culprit, ends)


def test_a_long_stretch_that_cannot_be_measured_costs_the_logarithm_of_its_length() -> None:
    ends, tried = moved(4000, set(range(3000)), 3500)
    assert ends == (0, 2999) and tried <= 24


def test_where_nothing_can_be_measured_there_are_no_ends() -> None:
    assert moved(5000, set(), 7) == (None, 26)
    assert moved(3, {0}, 2)[0] is None
