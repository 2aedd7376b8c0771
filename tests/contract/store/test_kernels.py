"""What trees, variants, specs and kernel builds promise."""

from __future__ import annotations

import pytest

from swingbot.core.model.patches import BranchPatch, Patch
from swingbot.core.model.records import UNTRUSTED, KernelTrust
from tests.contract.store.world import (
    REFUSED,
    TESTBOX,
    UNIT_JOB,
    Lab,
    Store,
    a_build,
    a_comparison,
    a_job,
    a_lab,
    a_tree,
    a_variant,
    commit,
    facts_of,
    sha256,
)


@pytest.fixture
def lab(store: Store) -> Lab:
    with store.transaction() as tx:
        return a_lab(tx, 3)


def test_a_tree_is_found_by_name_and_number(store: Store) -> None:
    with store.transaction() as tx:
        one, other = a_tree(tx, "one"), a_tree(tx, "other")
        assert [tree.name for tree in tx.trees.all()] == ["one", "other"]
        assert tx.trees.named("other") == other == tx.trees.get(other.id)
        assert tx.trees.named("none") is None
        assert one.id != other.id


def test_a_name_is_watched_once_and_free_again_when_it_is_removed(store: Store) -> None:
    with store.transaction() as tx:
        tree = a_tree(tx)
    with pytest.raises(REFUSED), store.transaction() as tx:
        a_tree(tx)
    with store.transaction() as tx:
        tx.trees.remove(tree.id)
        tx.trees.remove(tree.id)
        assert tx.trees.all() == []
        assert tx.trees.get(tree.id).name == "demo"
        again = a_tree(tx)
        assert tx.trees.all() == [again]


def test_a_change_is_noted_once_and_moves_the_tip(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        tx.trees.add_change(lab.tree.id, "first", commit(0), commit(1))
        tx.trees.add_change(lab.tree.id, "first", commit(0), commit(1))
        tx.trees.add_change(lab.tree.id, "advance", commit(1), commit(2))
        tx.trees.note_poll(lab.tree.id, None)
        first, second = tx.trees.changes_to_compare()
        assert (first.kind, first.old_commit, first.new_commit) == ("first", commit(0), commit(1))
        assert tx.trees.get(lab.tree.id).tip_commit == commit(2)
        a_comparison(tx, lab, change=first.id)
        assert tx.trees.changes_to_compare() == [second]
        tx.trees.remove(lab.tree.id)
        assert tx.trees.changes_to_compare() == []


def test_the_latest_forecast_of_a_build_is_kept(store: Store, lab: Lab) -> None:
    one, other = (kernel.build_key for kernel in lab.kernels[:2])
    with store.transaction() as tx:
        tx.builds.put_forecasts({one: 300.0})
        tx.builds.put_forecasts({one: 12.0, other: 1e-7})
        tx.builds.put_forecasts({})
        assert tx.builds.forecasts([one, other]) == {one: 12.0, other: 1e-7}
        assert tx.builds.forecasts([one]) == {one: 12.0}
        assert tx.builds.forecasts([]) == {}


def test_a_variant_is_stored_once_for_each_layout_and_trust(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        kernel = lab.kernels[0]
        assert a_variant(tx, lab.tree, 0) == kernel == tx.variants.get(kernel.id)
        assert tx.variants.add(lab.tree, facts_of(0), sha256("other"), "request") == kernel
        laid_out = a_variant(tx, lab.tree, 0, layout=1)
        untrusted = a_variant(tx, lab.tree, 0, trust=UNTRUSTED)
        assert len({kernel.id, laid_out.id, untrusted.id}) == 3
        assert (laid_out.layout, untrusted.trust) == (1, "untrusted")


def test_a_commit_is_trusted_if_one_variant_of_it_is(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        a_variant(tx, lab.tree, 7, trust=UNTRUSTED)
        assert not tx.variants.is_trusted(lab.tree.id, commit(7))
        assert tx.variants.is_trusted(lab.tree.id, commit(0))
        a_variant(tx, lab.tree, 7)
        assert tx.variants.is_trusted(lab.tree.id, commit(7))


def test_what_a_token_vouches_for_is_trusted_for_ever_only_after_an_operator(
    store: Store, lab: Lab
) -> None:
    with store.transaction() as tx:
        key = tx.access.holder(None)
        assert key is not None
        by_token = KernelTrust("trusted", key.token)
        kernel = a_variant(tx, lab.tree, 7, trust=by_token)
        assert kernel.kernel_trust == by_token == tx.variants.get(kernel.id).kernel_trust
        assert not tx.variants.is_trusted(lab.tree.id, commit(7))
        assert a_variant(tx, lab.tree, 7).voucher is None
        assert tx.variants.is_trusted(lab.tree.id, commit(7))
        assert a_variant(tx, lab.tree, 7, trust=by_token).voucher is None


def test_a_spec_is_named_by_its_unit_jobs(store: Store) -> None:
    with store.transaction() as tx:
        jobs = [a_job("b"), a_job("a")]
        spec = tx.specs.add(jobs)
        assert tx.specs.add(jobs) == spec
        assert tx.specs.add([a_job("c")]) != spec
        assert tx.specs.get(spec) == jobs


def test_the_first_build_of_a_key_stays(store: Store, lab: Lab) -> None:
    image = a_build(store, lab)
    with store.transaction() as tx:
        order = tx.orders.of_build(lab.kernels[0].build_key)
        assert order is not None
        tx.orders.reopen(order.id, 5)
    a_build(store, lab, status="failed", reason="x.c:1: error: no")
    with store.transaction() as tx:
        keys = [kernel.build_key for kernel in lab.kernels]
        (build,) = tx.builds.by_key(keys).values()
        assert (build.status, build.image_sha256, build.seconds) == ("built", image, 60.0)
        (stored,) = tx.builds.stored(keys).values()
        assert stored == {
            "build_key": keys[0],
            "status": "built",
            "image_sha256": image,
            "files": {"bzImage": {"sha256": image, "size": 1}},
        }


def test_a_failed_build_says_why_and_has_no_image(store: Store, lab: Lab) -> None:
    a_build(store, lab, status="failed", reason="x.c:1: error: no")
    with store.transaction() as tx:
        (build,) = tx.builds.by_key([lab.kernels[0].build_key]).values()
        assert (build.image_sha256, build.errors) == (None, ("x.c:1: error: no",))


def test_past_builds_come_oldest_first(store: Store, lab: Lab) -> None:
    for kernel, seconds in enumerate((10.0, 20.0, 30.0)):
        a_build(store, lab, kernel, seconds=seconds)
        store.pass_time(1.0)
    with store.transaction() as tx:
        past = tx.builds.past("vm-x86_64", "gcc", 2)
        assert [(b.commit, b.seconds, b.built, b.worker) for b in past] == [
            (commit(1), 20.0, True, "builder"),
            (commit(2), 30.0, True, "builder"),
        ]
        assert tx.builds.past("vm-x86_64", "clang", 2) == []


def test_object_lists_are_those_of_builds_that_have_one(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert tx.builds.any_object_list("vm-x86_64", "gcc") is None
    a_build(store, lab, 0, files={"objects.json": {"sha256": sha256("one"), "size": 1}})
    store.pass_time(1.0)
    a_build(store, lab, 1, files={"objects.json": {"sha256": sha256("two"), "size": 1}})
    store.pass_time(1.0)
    a_build(store, lab, 2)
    with store.transaction() as tx:
        keys = [kernel.build_key for kernel in lab.kernels]
        assert tx.builds.object_lists(keys) == {keys[0]: sha256("one"), keys[1]: sha256("two")}
        assert tx.builds.any_object_list("vm-x86_64", "gcc") == sha256("two")


def test_unit_jobs_have_the_name_they_are_stored_under(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert [job.name for job in tx.specs.get(lab.spec)] == [UNIT_JOB]
        assert lab.parts == [(TESTBOX, lab.spec)]


def a_patch(number: int, **more: str) -> Patch:
    given = {
        "commit": commit(number),
        "parent": commit(number - 1) if number else "",
        "patch_id": f"p{number}",
        "subject": f"mm: {number}",
        "author": "Ada <ada@example.org>",
    }
    return Patch(**{**given, **more})


def test_a_branch_consists_of_its_last_patches_and_the_others_stay_known(store: Store) -> None:
    with store.transaction() as tx:
        one, other = a_tree(tx, "one"), a_tree(tx, "other")
        assert tx.patches.branch(one.id) == []
        tx.patches.set_branch(one.id, [BranchPatch(patch=a_patch(1), state="new")])
        tx.patches.set_branch(other.id, [BranchPatch(patch=a_patch(1), state="below")])
        rebuilt = [
            BranchPatch(patch=a_patch(3), state="new"),
            BranchPatch(patch=a_patch(2, patch_id="p1"), state="moved", was=a_patch(1)),
            BranchPatch(patch=a_patch(0, patch_id=""), state="dropped"),
        ]
        tx.patches.set_branch(one.id, rebuilt)
        assert tx.patches.branch(one.id) == rebuilt
        assert [each.state for each in tx.patches.branch(other.id)] == ["below"]
        tx.patches.set_branch(one.id, [])
        assert tx.patches.branch(one.id) == []
        assert tx.patches.get(commit(2)) == a_patch(2, patch_id="p1")
        assert tx.patches.get(commit(7)) is None
