"""Rounds of the brain on the store in memory: orders, comparisons and bisections from request to
answer, in milliseconds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from swingbot.core.bisect.tell.journal import JournalStep, replay
from swingbot.core.model.lookup import NotFound
from swingbot.core.model.records import Bisection, Comparison
from swingbot.core.model.statuses import ComparisonKind
from swingbot.core.model.testbox_state import TestboxPhase
from swingbot.service.bisect.advance import advance_bisections
from swingbot.service.bisect.cancel import cancel_bisection
from swingbot.service.bisect.explain import Explained, explain_bisection
from swingbot.service.bisect.resume import ResumeRequest, resume
from swingbot.service.bisect.steer import hint, logbook, skip
from swingbot.service.faults import Faults
from swingbot.service.order.dispatch import dispatch_orders
from swingbot.service.order.place import place_comparisons, settle_orders
from swingbot.service.ports import RequestError
from swingbot.service.table.cancel import cancel_table
from swingbot.service.tick import tick
from tests.contract.store.world import (
    TESTBOX,
    Lab,
    a_bisection,
    a_comparison,
    a_lab,
    a_testbox,
    add_testboxes,
    commit,
)
from tests.fakes.memory_lab import MemoryLab

CULPRIT = 6
SLOW = {commit(n): 0.88 for n in range(CULPRIT, 12)}


def world(memory: MemoryLab, kernels: int = 12) -> Lab:
    with memory.store.transaction() as tx:
        return a_lab(tx, kernels, testboxes=memory.testboxes)


def compared(memory: MemoryLab, lab: Lab, head: int = 11) -> int:
    with memory.store.transaction() as tx:
        return a_comparison(tx, lab, head=lab.kernels[head].id)


def bisected(memory: MemoryLab, lab: Lab) -> int:
    with memory.store.transaction() as tx:
        return a_bisection(tx, lab, origin="asked", series="")


def comparison_of(memory: MemoryLab, number: int) -> Comparison:
    return memory.store.db.comparisons[number].comparison


def bisection_of(memory: MemoryLab, number: int) -> Bisection:
    return memory.store.db.bisections[number].bisection


def culprit_of(memory: MemoryLab, number: int) -> str:
    (culprit,) = (memory.store.db.bisections[number].conclusion or {})["culprits"]
    return str(culprit["commit"])


def members_of(memory: MemoryLab, number: int) -> set[str]:
    """Commits of a credible set."""
    conclusion = memory.store.db.bisections[number].conclusion or {}
    return {member["commit"] for member in conclusion["members"]}


def measured(memory: MemoryLab) -> set[str]:
    """Commits that were booted."""
    db = memory.store.db
    return {db.variants[row.order.variant].commit for row in db.boots.values()}


def mails(memory: MemoryLab) -> list[str]:
    return [row.kind for row in memory.store.db.reports.values() if row.kind != "alert"]


def states(memory: MemoryLab) -> list[str]:
    return [row.order.state for row in memory.store.db.orders.values()]


def test_a_comparison_orders_two_kernels_and_its_boots_in_turns() -> None:
    memory = MemoryLab()
    number = compared(memory, lab := world(memory))
    for _ in range(2):  # placing again changes nothing
        with memory.store.transaction() as tx:
            place_comparisons(memory.lab.catalogue.testboxes, tx)
    with memory.store.transaction() as tx:
        orders = tx.orders.wanted(comparison=number)
        assert [order.kind for order in orders] == ["build"] * 2 + ["boot"] * 6
        sides = [order.build_key for order in orders[2:]]
    base, head = lab.kernels[0].build_key, lab.kernels[11].build_key
    assert sides == [base, head, head, base, base, head]
    assert comparison_of(memory, number).status == "running"


def test_trusted_kernels_are_built_before_the_patches_that_start_from_their_objects() -> None:
    memory = MemoryLab()
    lab = world(memory)
    db = memory.store.db
    base = lab.kernels[0].id
    db.variants[base] = replace(db.variants[base], trust="untrusted")
    number = compared(memory, lab)
    with memory.store.transaction() as tx:
        place_comparisons(memory.lab.catalogue.testboxes, tx)
        orders = tx.orders.wanted(comparison=number)
    keys = [order.build_key for order in orders]
    untrusted, trusted = lab.kernels[0].build_key, lab.kernels[11].build_key
    assert keys[:2] == [trusted, untrusted]
    assert keys[2:4] == [untrusted, trusted]  # the blocks of boots are as ever


def test_boots_wait_for_their_kernels() -> None:
    memory = MemoryLab()
    compared(memory, world(memory))
    with memory.store.transaction() as tx:
        place_comparisons(memory.lab.catalogue.testboxes, tx)
        settle_orders(
            memory.lab.tools.artifacts, memory.lab.catalogue.testboxes, memory.lab.clock.now, tx
        )
    assert states(memory) == ["ready"] * 2 + ["waiting"] * 6


def booted(memory: MemoryLab) -> list[str]:
    """Commits in the order in which their boots were handed out."""
    db = memory.store.db
    orders = [
        db.orders[db.attempts[d.attempt].order].order for _, d in sorted(db.dispatches.items())
    ]
    return [db.variants[order.variant].commit for order in orders if order.kind == "boot"]


def noisy(memory: MemoryLab) -> None:
    """No testbox is repeatable: boots are not shared, and when they run matters."""
    memory.boot_on(a_testbox(name, repeatable=False) for name in memory.testboxes)


@pytest.mark.parametrize("late", [0, 11])
# checks of a fix are "asked"
@pytest.mark.parametrize("kind", ["asked", "watch", "prove", "attribute", "gate"])
def test_the_sides_take_turns_however_long_a_kernel_takes_to_build(
    kind: ComparisonKind, late: int
) -> None:
    memory = MemoryLab()
    noisy(memory)
    lab = world(memory)
    with memory.store.transaction() as tx:
        number = a_comparison(tx, lab, head=lab.kernels[11].id, kind=kind, boots=3)
    for _ in range(8):  # one kernel is there, the other is still being built
        tick(memory.lab)
        memory.work(but={commit(late)})
    assert booted(memory) == []
    for _ in range(5):
        tick(memory.lab)
        memory.work()
    with memory.store.transaction() as tx:
        tx.comparisons.extend(number, 6)
    memory.run()
    order = booted(memory)[:12]
    base, head = commit(0), commit(11)
    assert order == [base, head, head, base] * 3


def test_boots_do_not_wait_for_a_kernel_that_the_lab_could_not_build() -> None:
    memory = MemoryLab(infra=3)
    noisy(memory)
    lab = world(memory)
    number = compared(memory, lab)
    memory.run()
    assert comparison_of(memory, number).status in ("done", "failed")
    assert "waiting" not in states(memory)


def test_a_testbox_gets_one_boot_at_a_time() -> None:
    memory = MemoryLab()
    compared(memory, world(memory))
    tick(memory.lab)
    memory.work()
    tick(memory.lab)
    with memory.store.transaction() as tx:
        assert tx.dispatches.by_builder() == {f"boot-{TESTBOX}": 1}
        assert tx.attempts.leased() == {TESTBOX}
        dispatch_orders(memory.lab, tx)
        assert tx.dispatches.by_builder() == {f"boot-{TESTBOX}": 1}
        assert tx.testboxes.lock(TESTBOX).state is TestboxPhase.LEASED


def test_the_next_boot_is_handed_out_as_soon_as_the_results_of_one_are_there() -> None:
    memory = MemoryLab()
    compared(memory, world(memory))
    tick(memory.lab)
    memory.work()
    tick(memory.lab)
    (first,) = [d for d in memory.store.db.dispatches.values() if d.state != "over"]
    order = memory.store.db.orders[memory.store.db.attempts[first.attempt].order].order
    with memory.store.transaction() as tx:
        tx.attempts.end(first.attempt, memory._outcome(order))
    tick(memory.lab)  # Buildbot has not ended the build yet
    boots = [d for d in memory.store.db.dispatches.values() if d.builder == f"boot-{TESTBOX}"]
    assert [d.attempt for d in boots if d.state != "over"] == [d.attempt for d in boots]
    assert len(boots) == 2
    tick(memory.lab)
    assert len(memory.store.db.dispatches) == 4, "one boot at a time"


def test_a_slower_kernel_is_judged_worse() -> None:
    memory = MemoryLab(speeds=SLOW)
    number = compared(memory, world(memory))
    memory.run()
    assert comparison_of(memory, number).status == "done"
    with memory.store.transaction() as tx:
        (row,) = [row for row in tx.comparisons.rows(number) if row.headline]
    assert row.verdict == "worse"
    assert row.change_pct == pytest.approx(-12.0, abs=0.5)
    assert set(states(memory)) == {"done"}


def test_an_equal_kernel_is_judged_the_same() -> None:
    memory = MemoryLab()
    number = compared(memory, world(memory))
    memory.run()
    with memory.store.transaction() as tx:
        assert {row.verdict for row in tx.comparisons.rows(number) if row.headline} == {"same"}


def test_a_comparison_of_a_kernel_that_does_not_build_fails() -> None:
    memory = MemoryLab(broken={commit(11)})
    number = compared(memory, world(memory))
    memory.run()
    found = comparison_of(memory, number)
    assert found.status == "failed"
    assert "does not compile" in (found.reason or "")


def test_identical_images_are_measured_once() -> None:
    memory = MemoryLab(alike={commit(11): commit(0)})
    number = compared(memory, world(memory))
    memory.run()
    boots = [row.order.k for row in memory.store.db.boots.values()]
    assert sorted(boots, key=lambda k: k or 0) == [0, 1, 2]
    with memory.store.transaction() as tx:
        (row,) = [row for row in tx.comparisons.rows(number) if row.headline]
    assert row.verdict == "same"
    assert "identical" in (row.reason or "")


def test_trouble_of_the_lab_is_retried_and_never_a_vote() -> None:
    memory = MemoryLab(speeds=SLOW, infra=2)
    lab = world(memory)
    comparison, bisection = compared(memory, lab), bisected(memory, lab)
    memory.run()
    assert comparison_of(memory, comparison).status == "done"
    assert comparison_of(memory, comparison).reason is None
    assert culprit_of(memory, bisection) == commit(CULPRIT)


def test_a_lab_that_stays_broken_fails_the_comparison_with_its_reason() -> None:
    memory = MemoryLab(infra=10_000)
    number = compared(memory, world(memory))
    memory.run()
    found = comparison_of(memory, number)
    assert found.status == "failed"
    assert "the disk is full" in (found.reason or "")
    assert mails(memory) == []


def test_a_removed_testbox_gets_no_boot() -> None:
    memory = MemoryLab()
    compared(memory, world(memory))
    with memory.store.transaction() as tx:
        add_testboxes(tx, "another")
    for _ in range(3):
        tick(memory.lab)
        memory.work()
    with memory.store.transaction() as tx:
        assert tx.attempts.leased() == set()


def test_a_cancelled_comparison_calls_its_orders_off() -> None:
    memory = MemoryLab()
    number = compared(memory, world(memory))
    tick(memory.lab)
    assert len(memory.store.db.attempts) == 2
    assert cancel_table(memory.lab.transaction, f"c{number}") in ("waiting", "running")
    assert cancel_table(memory.lab.transaction, f"c{number}") == "cancelled"
    tick(memory.lab)
    tick(memory.lab)
    assert comparison_of(memory, number).status == "cancelled"
    with memory.store.transaction() as tx:
        assert tx.orders.open() == []
        assert tx.attempts.leased() == set()
        assert tx.attempts.in_state("running") == []
    with pytest.raises(NotFound, match="^comparison c99 does not exist"):
        cancel_table(memory.lab.transaction, "c99")


def test_two_requests_share_the_boots_of_a_repeatable_testbox() -> None:
    memory = MemoryLab(speeds=SLOW)
    lab = world(memory)
    compared(memory, lab)
    memory.run()
    before = len(memory.store.db.boots)
    compared(memory, lab)
    memory.run()
    assert len(memory.store.db.boots) == before
    assert {row.comparison.status for row in memory.store.db.comparisons.values()} == {"done"}


def test_one_step_of_a_bisection_records_what_it_wants_before_it_is_placed() -> None:
    memory = MemoryLab(speeds=SLOW)
    number = bisected(memory, world(memory))
    tick(memory.lab)
    with memory.store.transaction() as tx:
        wants, orders = tx.bisections.wants(number), tx.orders.wanted(bisection=number)
        assert {want.phase for want in wants} == {"ends"}
        assert {want.idx for want in wants} == {0, 11}
        assert len([order for order in orders if order.kind == "boot"]) == len(wants)
        assert tx.steering.last_step(number) is not None
    tick(memory.lab)
    with memory.store.transaction() as tx:
        assert tx.bisections.wants(number) == wants


def test_a_bisection_goes_on_with_another_engine_and_its_journal_tells_them_apart() -> None:
    memory = MemoryLab(speeds=SLOW)
    number = bisected(memory, world(memory))
    for _ in range(4):
        tick(memory.lab)
        memory.work()
    rows = memory.store.db.steps
    earlier = sorted(rows)
    rows.update({key: replace(row, engine="0") for key, row in rows.items()})
    shown = explain_bisection(memory.lab.transaction, number)
    assert isinstance(shown, JournalStep) and (shown.number, shown.engine) == (len(earlier), "0")
    memory.run()
    assert bisection_of(memory, number).status == "culprit"
    done = replay(logbook(memory.lab.transaction, number).steps)
    assert [step.number for step in done.foreign] == [step for _, step in earlier]
    assert done.difference is None and done.steps > 0
    assert isinstance(explain_bisection(memory.lab.transaction, number), Explained)


def test_a_bisection_names_the_commit_that_made_it_slower() -> None:
    memory = MemoryLab(speeds=SLOW)
    number = bisected(memory, world(memory))
    memory.run()
    assert bisection_of(memory, number).status == "culprit"
    with memory.store.transaction() as tx:
        conclusion = tx.bisections.conclusion(number)
        (incident,) = tx.incidents.in_status("open")
    assert conclusion.culprits[0].commit == commit(CULPRIT) == incident.commit
    assert conclusion.culprits[0].change_pct == pytest.approx(-12.0, abs=0.5)


def test_commits_that_do_not_build_or_boot_never_vote() -> None:
    memory = MemoryLab(speeds=SLOW, broken={commit(3)}, hung={commit(8)})
    number = bisected(memory, world(memory))
    memory.run()
    assert culprit_of(memory, number) == commit(CULPRIT)
    with memory.store.transaction() as tx:
        seen = tx.bisections.observations(number)
    assert all(not o.values for o in seen if o.idx in (3, 8))


def test_a_bisection_without_a_difference_says_so() -> None:
    memory = MemoryLab()
    number = bisected(memory, world(memory))
    memory.run()
    assert bisection_of(memory, number).status == "not_reproduced"
    assert memory.store.db.incidents == {}


def test_a_cancelled_bisection_asks_for_nothing_more() -> None:
    memory = MemoryLab(speeds=SLOW)
    number = bisected(memory, world(memory))
    tick(memory.lab)
    assert cancel_bisection(memory.lab.transaction, memory.lab.tools.git, number) == "running"
    assert cancel_bisection(memory.lab.transaction, memory.lab.tools.git, number) == "cancelled"
    memory.run()
    assert bisection_of(memory, number).status == "cancelled"
    assert memory.store.db.boots == {}
    with pytest.raises(NotFound, match="^bisection b99 does not exist"):
        cancel_bisection(memory.lab.transaction, memory.lab.tools.git, 99)


def test_a_culprit_next_to_an_unbuildable_commit_is_one_of_a_set() -> None:
    broken = commit(CULPRIT - 1)
    memory = MemoryLab(speeds={**SLOW, broken: 0.88}, broken={broken})
    number = bisected(memory, world(memory))
    memory.run()
    assert bisection_of(memory, number).status == "credible_set"
    assert {broken, commit(CULPRIT)} <= members_of(memory, number)
    assert mails(memory) == []


def test_a_step_that_is_shown_nothing_new_is_noted_once() -> None:
    memory = MemoryLab(speeds=SLOW)
    bisected(memory, world(memory))
    tick(memory.lab)
    tick(memory.lab)
    before = len(memory.store.db.steps)
    for _ in range(3):
        advance_bisections(memory.lab, Faults(memory.lab.transaction))
    assert len(memory.store.db.steps) == before > 0


def test_a_skipped_commit_is_never_measured_and_stays_a_suspect_with_its_neighbour() -> None:
    memory = MemoryLab(speeds=SLOW)
    number = bisected(memory, world(memory))
    words = [f"{commit(CULPRIT - 1)}..{commit(CULPRIT)}"]
    assert skip(
        memory.lab.transaction, memory.lab.tools.git, number, words, who="ada", why="breaks the rig"
    ) == [commit(CULPRIT)]
    memory.run()
    assert commit(CULPRIT) not in measured(memory)
    assert bisection_of(memory, number).status == "credible_set"
    assert {commit(CULPRIT), commit(CULPRIT + 1)} <= members_of(memory, number)
    with memory.store.transaction() as tx:
        (request,) = tx.steering.all(number)
    assert (request.act, request.points, request.who, request.why) == (
        "skip",
        (CULPRIT,),
        "ada",
        "breaks the rig",
    )
    with pytest.raises(RequestError, match="has ended .* and cannot be steered"):
        skip(
            memory.lab.transaction,
            memory.lab.tools.git,
            number,
            words,
            who="ada",
            why=None,
            undo=True,
        )


def test_a_skip_can_be_taken_back() -> None:
    memory = MemoryLab(speeds=SLOW)
    number = bisected(memory, world(memory))
    skip(
        memory.lab.transaction, memory.lab.tools.git, number, [commit(CULPRIT)], who="ada", why=None
    )
    skip(
        memory.lab.transaction,
        memory.lab.tools.git,
        number,
        [commit(CULPRIT)],
        who="bob",
        why=None,
        undo=True,
    )
    memory.run()
    assert culprit_of(memory, number) == commit(CULPRIT)


def test_a_hint_leads_the_search_and_a_wrong_one_does_not_mislead_it() -> None:
    memory = MemoryLab(speeds={commit(n): 0.88 for n in range(12, 17)})
    number = bisected(memory, world(memory, 17))
    hint(
        memory.lab.transaction,
        memory.lab.tools.git,
        number,
        [commit(3)],
        500.0,
        who="ada",
        why="looks odd",
    )
    with memory.store.transaction() as tx:
        assert [weight for _, weight, _ in tx.bisections.points(number)][3] == 500.0
    memory.run()
    assert {commit(2), commit(3)} & measured(memory)
    assert culprit_of(memory, number) == commit(12)


def test_no_hint_makes_a_commit_impossible() -> None:
    memory = MemoryLab(speeds=SLOW)
    number = bisected(memory, world(memory))
    hint(
        memory.lab.transaction,
        memory.lab.tools.git,
        number,
        [commit(CULPRIT)],
        0.001,
        who="ada",
        why=None,
    )
    with memory.store.transaction() as tx:
        weights = [weight for _, weight, _ in tx.bisections.points(number)]
    others = [weights[n] for n in range(1, 12) if n != CULPRIT]
    assert weights[CULPRIT] == pytest.approx(0.1 * sum(others) / len(others), rel=0.2)
    memory.run()
    assert culprit_of(memory, number) == commit(CULPRIT)


def test_a_hint_is_for_candidates_and_within_bounds() -> None:
    memory = MemoryLab(speeds=SLOW)
    number = bisected(memory, world(memory))
    assert hint(
        memory.lab.transaction, memory.lab.tools.git, number, [commit(6)], 5.0, who="me", why=None
    ) == [commit(6)]
    with memory.store.transaction() as tx:
        assert tx.bisections.points(number)[6][1] == 5.0
    with pytest.raises(RequestError, match="is the good end"):
        hint(
            memory.lab.transaction,
            memory.lab.tools.git,
            number,
            [commit(0)],
            5.0,
            who="me",
            why=None,
        )
    with pytest.raises(RequestError, match="must be between"):
        hint(
            memory.lab.transaction,
            memory.lab.tools.git,
            number,
            [commit(6)],
            5e9,
            who="me",
            why=None,
        )
    with memory.store.transaction() as tx:
        assert len(tx.steering.all(number)) == 1


def test_a_cancelled_bisection_resumes_where_it_was() -> None:
    memory = MemoryLab(speeds=SLOW)
    number = bisected(memory, world(memory))
    tick(memory.lab)
    cancel_bisection(memory.lab.transaction, memory.lab.tools.git, number)
    tick(memory.lab)
    again = ResumeRequest(id=f"b{number}", boots=40, by="me")
    assert resume(memory.lab.transaction, memory.lab.catalogue, again).limit == 40
    memory.run()
    assert bisection_of(memory, number).status == "culprit"
    with pytest.raises(RequestError, match="there is nothing left to search"):
        resume(memory.lab.transaction, memory.lab.catalogue, again)
    book = logbook(memory.lab.transaction, number)
    assert [steer["act"] for steer in book.steers] == ["resume"]
    assert book.end is not None and book.end["status"] == "culprit"
