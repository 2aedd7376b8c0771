"""What is promised of the compilers that workers announce."""

from __future__ import annotations

from swingbot.core.model.records import WorkerCompiler
from swingbot_jobs.contract.compiler import Compiler
from tests.contract.store.world import Store, a_boot_order, a_lab, end_dispatch

GCC = Compiler(name="gcc", version="12.2.0")
CLANG = Compiler(name="clang-14", version="14.0.6", problem="ld.lld-14 not found")


def test_what_a_worker_announces_replaces_what_it_announced_before(store: Store) -> None:
    with store.transaction() as tx:
        tx.compilers.announce("b", [GCC, CLANG])
        tx.compilers.announce("a", [GCC])
        newer = Compiler(name="gcc", version="12.3.0")
        for _ in range(2):
            tx.compilers.announce("b", [newer])
        assert tx.compilers.all() == [
            WorkerCompiler(worker="a", name="gcc", version="12.2.0"),
            WorkerCompiler(worker="b", name="gcc", version="12.3.0"),
        ]
        tx.compilers.announce("a", [])
        assert [one.worker for one in tx.compilers.all()] == ["b"]


def test_compilers_are_in_order_and_keep_their_problem(store: Store) -> None:
    with store.transaction() as tx:
        tx.compilers.announce("b", [GCC, CLANG])
        clang, gcc = tx.compilers.all()
        assert (clang.name, clang.problem) == ("clang-14", "ld.lld-14 not found")
        assert (gcc.name, gcc.problem) == ("gcc", None)


def test_workers_that_are_no_longer_known_are_forgotten(store: Store) -> None:
    with store.transaction() as tx:
        for worker in "abc":
            tx.compilers.announce(worker, [GCC])
        tx.compilers.keep(["b"])
        assert [one.worker for one in tx.compilers.all()] == ["b"]
        tx.compilers.keep([])
        assert tx.compilers.all() == []


def test_builds_are_counted_by_their_compiler(store: Store) -> None:
    with store.transaction() as tx:
        lab = a_lab(tx, 2)
        assert tx.compilers.of_builds() == {}
        first, second = (tx.orders.ensure_build(kernel, 0) for kernel in lab.kernels)
        a_boot_order(tx, lab)
        compiler = lab.kernels[0].compiler
        assert tx.compilers.of_builds() == {first.id: compiler, second.id: compiler}
        tx.orders.set_state(second.id, "done")
        assert tx.compilers.of_builds() == {first.id: compiler}
        assert tx.compilers.under_way() == {}
        attempt = tx.attempts.add(first.id, 1)
        tx.dispatches.add(first.id, attempt, 1, 1, "kernel")
        assert tx.compilers.under_way() == {compiler: 1}
        end_dispatch(tx, attempt, "success")
        assert tx.compilers.under_way() == {}


def test_a_boot_is_not_a_build_under_way(store: Store) -> None:
    with store.transaction() as tx:
        order = a_boot_order(tx, a_lab(tx))
        attempt = tx.attempts.add(order.id, 1)
        tx.dispatches.add(order.id, attempt, 1, 1, "boot-box")
        assert tx.compilers.under_way() == {}
