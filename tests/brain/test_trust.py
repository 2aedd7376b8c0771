"""Patches and untrusted trees, from the request to the order, with a lab that answers at once."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from swingbot.core.access.roles import Person, Role
from swingbot.core.access.tokens import digest
from swingbot.core.model.records import KernelTrust, Variant
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.patchset.bundle import SentCommits, read_bundle
from swingbot.core.patchset.model import SeriesPatch
from swingbot.core.patchset.read import read_file
from swingbot.service.access import create_token, revoke_token
from swingbot.service.kernel.variants import in_layout, variant_of
from swingbot.service.ports import RequestError
from swingbot.service.ports.access import NewToken
from swingbot.service.table.extend import ExtensionRequest, extend
from swingbot.service.table.kernels import at
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


# -- tokens that vouch for what they send first

ALL = ("vm-icount", "vm-tcg", "vm-mm", "cs-vm")
ONLY_TRUSTED = "accepts only trusted kernels"


@pytest.fixture
def walled(brain: MemoryBrain) -> MemoryBrain:
    """The lab of `brain`, without a testbox that accepts untrusted kernels."""
    picky(brain, *ALL)
    return brain


def a_person(
    brain: MemoryBrain, who: str, *, vouches: bool = True, life: timedelta | None = None
) -> Person:
    with brain.store.transaction() as tx:
        secret = digest(f"{who} {len(brain.store.db.tokens)}")
        create_token(
            tx.access,
            NewToken(
                who=who, role=Role.SUBMITTER, digest=secret, vouches=vouches, life=life, by="root"
            ),
        )
        person = tx.access.holder(secret)
    assert person is not None
    return person


def commits(brain: MemoryBrain, *speeds: int) -> list[str]:
    """Commits on the tip that the tree does not get."""
    for speed in speeds:
        brain.commit(FakeCommit(speed=speed))
    made = brain.git("rev-list", "--reverse", f"HEAD~{len(speeds)}..HEAD").split()
    brain.git("reset", "-q", "--hard", f"HEAD~{len(speeds)}")
    return made


def bundled(brain: MemoryBrain, *revisions: str) -> SentCommits:
    brain.git("update-ref", "refs/heads/sent", revisions[-1])
    words = ("git", "-C", str(brain.repo), "bundle", "create", "-q", "-", "sent", *revisions[:-1])
    done = subprocess.run(words, check=True, capture_output=True)
    return SentCommits(bundle=read_bundle(done.stdout))


def ask(brain: MemoryBrain, person: Person, head: str, *, base: str = "tip") -> int:
    """A table that `person` asks for over the web, with all that the branch lacks."""
    sent = bundled(brain, "^main", head)
    request = comparing(base, head, boots=3, asked_by=person, sent=sent)
    return request_table(brain.lab, request).number


def test_a_token_vouches_for_the_commits_that_it_sends_first(walled: MemoryBrain) -> None:
    ada, (below, above) = a_person(walled, "Ada"), commits(walled, 80, 70)
    first, second = ask(walled, ada, below), ask(walled, ada, above)
    searched = walled.bisect("tip", above, asked_by=ada, sent=SentCommits(), testbox="vm-icount")
    with walled.store.transaction() as tx:
        points = [variant.kernel_trust for variant, _, _ in tx.bisections.points(searched)]
        assert not tx.variants.is_trusted(1, above)
    own = KernelTrust("trusted", ada.token)
    assert points == [KernelTrust(), own, own]
    assert [sides(walled, one)[1].kernel_trust for one in (first, second)] == [own, own]
    walled.run()
    assert all(row.head.boots for row in walled.rows(first) + walled.rows(second))
    assert walled.bisection(searched).status not in ("running", "failed")
    said = [
        event.detail for event in walled.store.db.access_events.values() if event.act == "vouch"
    ]
    assert said == ["c1: 1 commit", "c2: 1 commit", f"b{searched}: 2 commits"]


def test_a_token_vouches_for_the_patches_that_it_sends_first(walled: MemoryBrain) -> None:
    patches, ada, bob = a_patch(walled), a_person(walled, "Ada"), a_person(walled, "Bob")
    request = comparing("tip", "tip", patches=patches, boots=3, asked_by=ada)
    number = request_table(walled.lab, request).number
    assert sides(walled, number)[1].kernel_trust == KernelTrust("trusted", ada.token)
    with pytest.raises(RequestError, match=ONLY_TRUSTED):
        request_table(walled.lab, replace(request, asked_by=bob))


@pytest.mark.parametrize(
    ("who", "vouches"), [("Bob", True), ("Ada", True), ("Ada", False)], ids=str
)
def test_no_other_token_is_trusted_with_the_same_commit(
    walled: MemoryBrain, who: str, vouches: bool
) -> None:
    ada, other = a_person(walled, "Ada"), a_person(walled, who, vouches=vouches)
    (commit,) = commits(walled, 80)
    first = ask(walled, ada, commit)
    with pytest.raises(RequestError, match=ONLY_TRUSTED):
        ask(walled, other, commit)
    with pytest.raises(RequestError, match=ONLY_TRUSTED):
        walled.bisect("tip", commit, asked_by=other, sent=bundled(walled, "^main", commit))
    # an operator who names it has not vouched either, in a table of its own or in that of Ada
    with pytest.raises(RequestError, match=ONLY_TRUSTED):
        request_table(walled.lab, comparing("base", commit, boots=3))
    extend(
        walled.lab,
        ExtensionRequest(id=f"c{first}", boots=1, rows=[replace(at(commit), name="again")]),
    )
    with walled.store.transaction() as tx:
        comparison = tx.comparisons.get(first)
        assert comparison is not None
        assert tx.variants.get(comparison.arms[-1].variant).trust == "untrusted"


def test_what_is_on_top_of_commits_of_another_is_not_vouched_for(brain: MemoryBrain) -> None:
    ada, bob = a_person(brain, "Ada"), a_person(brain, "Bob", vouches=False)
    below, middle, above = commits(brain, 80, 70, 60)
    ask(brain, bob, below)
    picky(brain, *ALL)
    for head in (middle, above):
        with pytest.raises(RequestError, match=ONLY_TRUSTED):
            ask(brain, ada, head)
    with pytest.raises(RequestError, match=ONLY_TRUSTED):
        brain.bisect("tip", above, asked_by=ada, sent=bundled(brain, "^main", above))


@pytest.mark.parametrize("when", ["before its build", "after its build"])
@pytest.mark.parametrize("end", ["revoked", "expired"])
def test_a_token_that_ends_ends_the_trust_in_what_was_not_booted_yet(
    walled: MemoryBrain, when: str, end: str
) -> None:
    life = timedelta(seconds=30) if end == "expired" else None
    ada, (commit,) = a_person(walled, "Ada", life=life), commits(walled, 80)
    number = ask(walled, ada, commit)
    key = sides(walled, number)[1].build_key
    while when == "after its build" and key not in walled.store.db.builds:
        walled.rounds(1)
    before = walled.booted.count(commit)
    if end == "expired":
        walled.store.pass_time(60.0)
    else:
        with walled.store.transaction() as tx:
            revoke_token(tx.access, ada.token, "root")
    walled.run()
    assert walled.booted.count(commit) == before
    assert (key in walled.store.db.builds) == (when == "after its build")
    with walled.store.transaction() as tx:
        orders = tx.orders.wanted(comparison=number)
        reasons = {order.reason for order in orders if order.build_key == key and order.reason}
    assert reasons == {
        f"token {ada.token} of Ada, which vouched for this kernel, "
        + ("expired" if end == "expired" else "was revoked")
    }
    with pytest.raises(RequestError, match=ONLY_TRUSTED):
        ask(walled, a_person(walled, "Ada"), commit)
