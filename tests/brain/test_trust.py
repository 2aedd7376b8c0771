"""Patches and untrusted trees, from the request to the order, with a lab that answers at once."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from swingbot.app.settings import load
from swingbot.core.model.records import Variant
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.patchset.model import SeriesPatch
from swingbot.core.patchset.read import read_file
from swingbot.service.bisect.start import BisectionRequest, start_bisection
from swingbot.service.kernel.variants import in_layout, variant_of
from swingbot.service.ports import RequestError
from swingbot.service.table.plan import request_table
from swingbot.service.watch.trees import known_tree
from swingbot_db import read
from swingbot_db.attempts import order_facts
from swingbot_jobs.contract.trust import key_at
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.loop import METRIC
from tests.fakes.mail import brain_environment
from tests.table_requests import comparing


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Brain:
    repo = tmp_path / "linux"
    base, _ = make_fakelinux(repo, [FakeCommit()])
    made = make_brain(load(environ=brain_environment(tmp_path / "state", db_url)), engine, repo)
    made.watch(base)
    return made


def a_patch(brain: Brain) -> tuple[SeriesPatch, ...]:
    """A mail with a patch that makes the kernel slow; the tree does not get it."""
    add_commits(brain.repo, [FakeCommit(speed=80)])
    patch = subprocess.run(
        ["git", "-C", str(brain.repo), "format-patch", "--stdout", "-1"],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    subprocess.run(["git", "-C", str(brain.repo), "reset", "-q", "--hard", "HEAD~1"], check=True)
    return read_file("x.patch", patch).patches


def compare(
    brain: Brain,
    patches: Sequence[SeriesPatch],
    *,
    trusted: bool = False,
    testboxes: tuple[str, ...] = (),
) -> int:
    request = comparing(
        "tip", "tip", patches=patches, boots=3, testboxes=testboxes, vouched=trusted
    )
    return request_table(brain.lab, request).number


def sides(brain: Brain, number: int) -> tuple[Variant, Variant]:
    with brain.lab.transaction("read") as tx:
        comparison = tx.comparisons.get(number)
        assert comparison is not None
        return tx.variants.get(comparison.base), tx.variants.get(comparison.head)


def picky(brain: Brain, *names: str) -> None:
    """Let these testboxes take trusted kernels only."""
    testboxes = {
        name: replace(testbox, accepts="trusted" if name in names else testbox.accepts)
        for name, testbox in brain.lab.catalogue.testboxes.present.items()
    }
    object.__setattr__(brain.lab, "testboxes", KnownTestboxes(present=testboxes))


def test_a_patch_is_untrusted_and_its_base_is_not(brain: Brain) -> None:
    base, head = sides(brain, compare(brain, a_patch(brain)))
    assert (base.trust, head.trust) == ("trusted", "untrusted")


def test_an_operator_can_vouch_for_a_patch_and_then_it_has_another_key(brain: Brain) -> None:
    patch = a_patch(brain)
    first, second = compare(brain, patch), compare(brain, patch, trusted=True)
    (_, untrusted), (_, trusted) = sides(brain, first), sides(brain, second)
    assert first != second and untrusted.commit == trusted.commit
    assert trusted.trust == "trusted" and untrusted.build_key == key_at(
        trusted.build_key, "untrusted"
    )


def test_a_commit_that_was_made_of_a_patch_stays_untrusted_however_it_is_named_later(
    brain: Brain,
) -> None:
    base, head = sides(brain, compare(brain, a_patch(brain)))
    asked = {"tree": "fake", "job_files": [], "overrides": {}}
    again = request_table(brain.lab, comparing(base.commit, head.commit[:12], boots=3)).number
    assert [side.trust for side in sides(brain, again)] == ["trusted", "untrusted"]
    number = start_bisection(
        brain.lab,
        BisectionRequest(
            good=base.commit,
            bad=head.commit,
            metric=METRIC,
            testbox=None,
            **asked,  # type: ignore[arg-type]
        ),
    )
    with brain.lab.transaction("read") as tx:
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


def test_all_of_an_untrusted_tree_is_untrusted(brain: Brain) -> None:
    brain.watch(brain.lab.tools.git.resolve("fake", "base"), name="stranger", trust="untrusted")
    with brain.lab.transaction("read") as tx:
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


def test_untrusted_boots_go_only_where_they_are_accepted(brain: Brain) -> None:
    patch = a_patch(brain)
    picky(brain, "vm-tcg")
    with pytest.raises(RequestError, match="vm-tcg accepts only trusted kernels.*vm-icount"):
        compare(brain, patch, testboxes=("vm-tcg",))
    picky(brain, "vm-tcg", "vm-icount")
    with pytest.raises(RequestError, match="accepts only trusted kernels"):
        compare(brain, patch)
    assert compare(brain, patch, testboxes=("vm-tcg",), trusted=True)


def test_a_testbox_that_does_not_accept_any_more_is_handed_no_untrusted_order(brain: Brain) -> None:
    number = compare(brain, a_patch(brain))
    picky(brain, "vm-icount")
    brain.run()
    with brain.lab.transaction("read") as tx:
        assert not tx.orders.ready(())
    with brain.engine.connect() as conn:
        failed = conn.execute(
            sa.text(
                "SELECT DISTINCT o.reason FROM orders o JOIN variant v ON v.id = "
                "o.variant WHERE o.kind = 'boot' AND v.trust = 'untrusted'"
            )
        )
        assert failed.scalars().all() == [
            "vm-icount accepts only trusted kernels, and this kernel is untrusted"
        ]
        assert not [row for row in read.table(conn, number)["rows"] if row["head"]["boots"]]


def test_orders_and_what_is_shown_say_the_level(brain: Brain) -> None:
    _, head = sides(brain, compare(brain, a_patch(brain)))
    brain.run()
    with brain.engine.connect() as conn:
        row = conn.execute(
            sa.text(
                "SELECT a.id, a.order_id FROM attempt a JOIN orders o ON o.id = "
                "a.order_id WHERE o.variant = :v LIMIT 1"
            ),
            {"v": head.id},
        ).one()
        facts = order_facts(conn, row.id)
        assert facts is not None and facts.trust == "untrusted"
        assert read.order(conn, row.order_id)["trust"] == "untrusted"
        assert read.variant(conn, head.id)["trust"] == "untrusted"
