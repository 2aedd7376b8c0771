"""Patches and untrusted trees, from the request to the order, with a lab that answers at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from swingbot.core.model.records import Variant
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.patchset.model import SeriesPatch
from swingbot.core.patchset.read import read_file
from swingbot.service.kernel.variants import in_layout, variant_of
from swingbot.service.ports import RequestError
from swingbot.service.watch.trees import known_tree
from swingbot_jobs.contract.trust import key_at
from tests.fakelinux import FakeCommit
from tests.fakes.memory_brain import MemoryBrain, make_memory_brain
from tests.table_requests import comparing, request_table


@pytest.fixture
def brain(tmp_path: Path) -> MemoryBrain:
    made = make_memory_brain(tmp_path, [FakeCommit()])
    made.watch(made.git("rev-parse", "HEAD~1"))
    return made


def a_patch(brain: MemoryBrain) -> tuple[SeriesPatch, ...]:
    """A mail with a patch that makes the kernel slow; the tree does not get it."""
    brain.commit(FakeCommit(speed=80))
    patch = brain.git("format-patch", "--stdout", "-1") + "\n"
    brain.git("reset", "-q", "--hard", "HEAD~1")
    return read_file("x.patch", patch.encode()).patches


def compare(
    brain: MemoryBrain,
    patches: Sequence[SeriesPatch],
    *,
    trusted: bool = False,
    testboxes: tuple[str, ...] = (),
) -> int:
    request = comparing(
        "tip", "tip", patches=patches, boots=3, testboxes=testboxes, vouched=trusted
    )
    return request_table(brain.lab, request).number


def sides(brain: MemoryBrain, number: int) -> tuple[Variant, Variant]:
    with brain.store.transaction() as tx:
        comparison = tx.comparisons.get(number)
        assert comparison is not None
        return tx.variants.get(comparison.base), tx.variants.get(comparison.head)


def picky(brain: MemoryBrain, *names: str) -> None:
    """Let these testboxes take trusted kernels only."""
    testboxes = {
        name: replace(testbox, accepts="trusted" if name in names else testbox.accepts)
        for name, testbox in brain.lab.catalogue.testboxes.present.items()
    }
    catalogue = replace(brain.lab.catalogue, testboxes=KnownTestboxes(present=testboxes))
    brain.lab = replace(brain.lab, catalogue=catalogue)


def test_a_patch_is_untrusted_and_its_base_is_not(brain: MemoryBrain) -> None:
    base, head = sides(brain, compare(brain, a_patch(brain)))
    assert (base.trust, head.trust) == ("trusted", "untrusted")


def test_an_operator_can_vouch_for_a_patch_and_then_it_has_another_key(brain: MemoryBrain) -> None:
    patch = a_patch(brain)
    first, second = compare(brain, patch), compare(brain, patch, trusted=True)
    (_, untrusted), (_, trusted) = sides(brain, first), sides(brain, second)
    assert first != second and untrusted.commit == trusted.commit
    assert trusted.trust == "trusted" and untrusted.build_key == key_at(
        trusted.build_key, "untrusted"
    )


def test_a_commit_that_was_made_of_a_patch_stays_untrusted_however_it_is_named_later(
    brain: MemoryBrain,
) -> None:
    base, head = sides(brain, compare(brain, a_patch(brain)))
    again = request_table(brain.lab, comparing(base.commit, head.commit[:12], boots=3)).number
    assert [side.trust for side in sides(brain, again)] == ["trusted", "untrusted"]
    number = brain.bisect(base.commit, head.commit)
    with brain.store.transaction() as tx:
        assert [variant.trust for variant, _, _ in tx.bisections.points(number)] == [
            "trusted",
            "untrusted",
        ]
        tree = known_tree(brain.lab.transaction, "fake")
        assert (
            variant_of(
                brain.lab.tools.git, brain.lab.catalogue.kconfigs, tx.variants, tree, head.commit
            ).trust
            == "untrusted"
        )
        assert (
            in_layout(brain.lab.catalogue.kconfigs, tx.trees, tx.variants, head, 2).trust
            == "untrusted"
        )


def test_all_of_an_untrusted_tree_is_untrusted(brain: MemoryBrain) -> None:
    brain.watch(brain.lab.tools.git.resolve("fake", "base"), name="stranger", trust="untrusted")
    with brain.store.transaction() as tx:
        tree = known_tree(brain.lab.transaction, "stranger")
        assert (
            variant_of(
                brain.lab.tools.git,
                brain.lab.catalogue.kconfigs,
                tx.variants,
                tree,
                brain.lab.tools.git.resolve("stranger", "tip"),
            ).trust
            == "untrusted"
        )


def test_untrusted_boots_go_only_where_they_are_accepted(brain: MemoryBrain) -> None:
    patch = a_patch(brain)
    picky(brain, "vm-tcg")
    with pytest.raises(RequestError, match="vm-tcg accepts only trusted kernels.*vm-icount"):
        compare(brain, patch, testboxes=("vm-tcg",))
    picky(brain, "vm-tcg", "vm-icount")
    with pytest.raises(RequestError, match="accepts only trusted kernels"):
        compare(brain, patch)
    assert compare(brain, patch, testboxes=("vm-tcg",), trusted=True)


def test_a_testbox_that_does_not_accept_any_more_is_handed_no_untrusted_order(
    brain: MemoryBrain,
) -> None:
    number = compare(brain, a_patch(brain))
    picky(brain, "vm-icount")
    brain.run()
    with brain.store.transaction() as tx:
        assert not tx.orders.ready(())
        orders = [order for order in tx.orders.wanted(comparison=number) if order.kind == "boot"]
    db = brain.store.db
    untrusted = [order for order in orders if db.variants[order.variant].trust == "untrusted"]
    assert {order.reason for order in untrusted} == {
        "vm-icount accepts only trusted kernels, and this kernel is untrusted"
    }
    assert not [row for row in brain.rows(number) if row.head.boots]
