"""What a bisection is said to cost before it begins is about what it takes."""

from __future__ import annotations

import pytest

from swingbot.service.bisect.ask import prepared
from swingbot.service.bisect.request import BisectionRequest
from tests.fakelinux import FakeCommit
from tests.fakes.loop import METRIC, plain
from tests.fakes.memory_brain import MemoryBrain


@pytest.mark.parametrize(("before", "after"), [(0, 1), (4, 4), (20, 11)])
def test_the_boots_and_kernels_of_a_plan_are_about_those_of_the_search(
    brain: MemoryBrain, before: int, after: int
) -> None:
    base = brain.base
    brain.watch(base)
    brain.run()
    made = brain.commit(*plain(before), FakeCommit(speed=88), *plain(after))
    request = BisectionRequest(tree="fake", good=base, bad=made[-1], metric=METRIC)
    with prepared(brain.lab, request) as bisection:
        planned = bisection.plan()
        with brain.store.transaction() as tx:
            assert tx.bisections.running() == [], "a plan records nothing"
        number = bisection.queue(0.0).number
    assert planned.commits == len(made)
    brain.run()
    assert brain.culprit(number) == made[before]
    with brain.store.transaction() as tx:
        seen = tx.bisections.observations(number)
    boots, kernels = len(seen), len({one.idx for one in seen})
    assert boots / 1.6 <= planned.cost.boots <= 1.6 * boots, (boots, planned.cost)
    assert abs(kernels - planned.cost.kernels) <= 3, (kernels, planned.cost)
