"""Calls of changed functions, from two built kernels to the answer of the gate, with a lab that
answers at once."""

from __future__ import annotations

import pytest

from swingbot.core.model.records import NewComparison, base_and_head
from swingbot.core.proof.gates import GateResult
from swingbot.service.prove.trace import BOOTS, TraceOrder, trace_order, traced
from tests.fakelinux import FakeCommit, add_commits
from tests.fakes.brain import Brain
from tests.table_requests import compare


def asked(brain: Brain, commit: FakeCommit) -> TraceOrder | GateResult:
    """What it takes to see whether a commit's functions are called, once the commit and its
    parent were compared."""
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    brain.watch(base)
    (head,) = add_commits(brain.repo, [commit])
    number = compare(brain.lab, base, head, boots=3)
    brain.run()
    with brain.lab.transaction("ask") as tx:
        comparison = tx.comparisons.get(number)
        assert comparison is not None
        (job,) = tx.specs.get(comparison.parts[0][1])
        pair = tx.variants.get(comparison.base), tx.variants.get(comparison.head)
        return trace_order(
            brain.lab.tools.kernels,
            brain.lab.catalogue.kconfigs,
            tx.trees,
            tx.variants,
            tx.builds,
            pair,
            job,
        )


def answer(brain: Brain, order: TraceOrder) -> GateResult:
    with brain.lab.transaction("order") as tx:
        parts = [("vm-icount", tx.specs.add([order.job]))]
        number = tx.comparisons.add(
            NewComparison(
                kind="gate",
                tree=order.head.tree,
                arms=base_and_head(order.base.id, order.head.id),
                boots=BOOTS,
                parts=parts,
                first_k=300,
            )
        )
    brain.run()
    with brain.lab.transaction("read") as tx:
        comparison = tx.comparisons.get(number)
        assert comparison is not None and comparison.status == "done"
        return traced(brain.lab.tools.kernels, brain.lab.catalogue.testboxes, tx, comparison)


def test_calls_of_a_changed_function_are_counted_in_kernels_with_hooks_and_in_a_run_of_its_own(
    brain: Brain,
) -> None:
    order = asked(brain, FakeCommit(speed=90))
    assert isinstance(order, TraceOrder)
    assert {order.base.kconfig, order.head.kconfig} == {"vm-x86_64+trace"}
    assert (order.job.runs, order.job.monitors, order.job.functions) == (
        1,
        ("function-profile",),
        ("do_fault",),
    )
    found = answer(brain, order)
    assert (found.status, found.reason) == (
        "pass",
        "do_fault called 32 768 times in one run of page-fault",
    )
    assert found.detail["functions"][0]["base_calls"] == 32768


@pytest.mark.parametrize(
    ("calls", "status", "words"),
    [
        (b"calls\n0 do_fault\nend\n", "fail", "do_fault was never called in one run of page-fault"),
        (b"calls\n- do_fault\nend\n", "not run", "do_fault cannot be traced"),
        (
            b"no profiler\n",
            "not run",
            "calls were not counted: this kernel has no function profiler",
        ),
        (b"calls\n12 do_fa", "not run", "calls were not counted: the list of calls is incomplete"),
    ],
)
def test_what_was_counted_decides(brain: Brain, calls: bytes, status: str, words: str) -> None:
    brain.fake.calls = calls
    order = asked(brain, FakeCommit(speed=90))
    assert isinstance(order, TraceOrder)
    found = answer(brain, order)
    assert found.status == status and words in found.reason


def test_a_commit_without_any_change_of_code_is_not_traced(brain: Brain) -> None:
    found = asked(brain, FakeCommit(kind="comment"))
    assert isinstance(found, GateResult)
    assert (found.status, found.reason) == (
        "not run",
        "no function differs between the two kernels: there is no call to count",
    )
