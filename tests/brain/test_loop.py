"""The brain from a moved branch to a queued mail."""

from __future__ import annotations

from typing import Any

import pytest

from swingbot.core.model.records import JobFile
from swingbot.service.ports import RequestError
from tests.fakelinux import FakeCommit
from tests.fakes.loop import plain
from tests.fakes.memory_brain import MemoryBrain
from tests.table_requests import compare


def test_a_branch_without_a_culprit_makes_no_mail(brain: MemoryBrain) -> None:
    base = brain.base
    brain.commit(*plain(12))
    brain.watch(base)
    brain.run()
    assert brain.reports == []
    assert {row.verdict for row in brain.rows() if row.klass == "benchmark"} == {"same"}
    assert brain.store.db.bisections == {}


def test_an_improvement_is_recorded_and_not_mailed(brain: MemoryBrain) -> None:
    base = brain.base
    brain.commit(*plain(3), FakeCommit(speed=109), *plain(3))
    brain.watch(base)
    brain.run()
    assert brain.reports == []
    assert [row.verdict for row in brain.headlines()] == ["better"]


def test_commits_that_do_not_build_or_boot_never_vote(brain: MemoryBrain) -> None:
    base = brain.base
    made = brain.commit(
        *plain(3),
        FakeCommit(kind="broken"),
        *plain(2),
        FakeCommit(speed=90),
        *plain(1),
        FakeCommit(kind="unbootable"),
        *plain(4),
    )
    brain.watch(base)
    brain.run()
    assert brain.culprit() == made[6]
    assert len(brain.mails) == 1


def test_a_rebased_branch_is_compared_with_the_merge_base(brain: MemoryBrain) -> None:
    base = brain.base
    old = brain.commit(*plain(4))
    brain.watch(base)
    brain.run()
    brain.git("reset", "-q", "--hard", old[1])
    new = brain.commit(FakeCommit(speed=85), *plain(2))
    brain.poll()
    brain.run()
    assert (brain.base_of(2), brain.head_of(2)) == (old[1], new[-1])
    assert brain.culprit() == new[0]


def test_asking_twice_is_asking_once(brain: MemoryBrain) -> None:
    base = brain.base
    made = brain.commit(*plain(2))
    brain.watch(base)

    first = compare(brain.lab, "base", "tip", boots=2)
    assert compare(brain.lab, base, made[1], boots=2) == first
    brain.run()
    assert compare(brain.lab, base, made[1], boots=2) == first


def test_a_bisection_by_hand_finds_an_improvement_too_and_sends_nothing(
    brain: MemoryBrain,
) -> None:
    base = brain.base
    made = brain.commit(*plain(2), FakeCommit(speed=110), *plain(3))
    brain.watch(base)
    number = brain.bisect(good=made[-1], bad=base)
    brain.run()
    assert brain.culprit(number) == made[2]
    assert brain.conclusion(number)["change_pct"] == pytest.approx(10, abs=0.3)
    assert brain.reports == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"url": "/nowhere/at/all"}, "/nowhere/at/all"),
        ({"branch": "nosuch"}, "nosuch"),
        ({"base": "v9.99"}, "v9.99"),
        ({"testboxes": ["toaster"]}, "toaster"),
        ({"kconfig": "nosuch"}, "nosuch"),
        (
            {"job_files": [JobFile(name="bad.yaml", text="page-fault:\n  nr_tusk: 3\n")]},
            "bad.yaml:2",
        ),
        ({"job_files": []}, "--job"),
    ],
)
def test_a_tree_that_makes_no_sense_is_refused_in_one_sentence(
    brain: MemoryBrain, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(RequestError, match=r".") as refused:
        brain.watch(**{"base": brain.base, **change})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    with brain.store.transaction() as tx:
        assert tx.trees.all() == []


def test_two_trees_on_two_testboxes_do_not_disturb_each_other(brain: MemoryBrain) -> None:
    base = brain.base
    brain.git("checkout", "-q", "-b", "other")
    other = brain.commit(*plain(2), FakeCommit(speed=80), *plain(4))
    brain.git("checkout", "-q", "main")
    first = brain.commit(*plain(5), FakeCommit(speed=90), *plain(2))
    brain.watch(base)
    brain.watch(base, name="noisy", branch="other", testboxes=["vm-tcg"])
    brain.run()
    named = {brain.bisection(n).testbox: brain.culprit(n) for n in (1, 2)}
    assert named == {"vm-icount": first[5], "vm-tcg": other[2]}
    assert len(brain.mails) == 2
