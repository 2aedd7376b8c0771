"""Compilers: their names, what a worker announces, where a kernel goes, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.model.records import Order, WorkerCompiler
from swingbot.core.plan.kernel_queue import (
    KernelQueue,
    may_build,
    may_retry,
    refusal,
    workers_by_compiler,
)
from swingbot.core.plan.queue import AHEAD, choose
from swingbot.service.check_compiler import check_compiler
from swingbot.service.kernel.variants import in_layout
from swingbot.service.ports import RequestError
from swingbot_jobs.contract.compiler import (
    BadAnnouncement,
    Compiler,
    from_announcement,
    is_compiler,
    make_variables,
    order_of,
    programs,
    to_announcement,
)
from swingbot_worker import InfraError
from swingbot_worker.kbuild import toolchain
from swingbot_worker.kbuild.probe_compilers import probe
from swingbot_worker.kbuild.recipe import kept_name
from tests.contract.store.world import a_lab
from tests.fakes.memory_lab import MemoryLab

GCC = "gcc (Debian 12.2.0-14+deb12u1) 12.2.0"


def has(worker: str, *names: str, problem: str | None = None) -> list[WorkerCompiler]:
    return [WorkerCompiler(worker=worker, name=n, version="1", problem=problem) for n in names]


@pytest.mark.parametrize("name", ["gcc", "clang", "gcc-11", "gcc-12", "clang-13", "clang-22"])
def test_a_compiler_is_a_family_and_a_version(name: str) -> None:
    assert is_compiler(name)


@pytest.mark.parametrize(
    "name",
    ["", "gcc-", "gcc-012", "clang-1000", "tcc", "gcc-12 -O3", "gcc-12\n", "clang++-14", "../gcc"],
)
def test_what_is_not_the_name_of_a_compiler_never_becomes_an_argument(name: str) -> None:
    assert not is_compiler(name)
    with pytest.raises(InfraError, match="not a compiler"):
        toolchain.compiler_version(name)


def test_compilers_are_listed_by_family_and_version() -> None:
    names = ["clang-9", "gcc-12", "clang", "gcc-9", "clang-14", "gcc"]
    assert sorted(names, key=order_of) == ["gcc", "gcc-9", "gcc-12", "clang", "clang-9", "clang-14"]


def test_gcc_takes_the_hosts_binutils() -> None:
    assert make_variables("gcc-11", prefix="ccache ") == [
        "CC=ccache gcc-11",
        "HOSTCC=ccache gcc-11",
    ]
    assert programs("gcc-11") == {"gcc-11": "gcc-11"}


def test_clang_takes_every_tool_of_its_own_version() -> None:
    given_ = make_variables("clang-19", prefix="ccache ")
    assert given_[:3] == ["CC=ccache clang-19", "HOSTCC=ccache clang-19", "LLVM=-19"]
    assert "LD=ld.lld-19" in given_
    tools = {word.partition("=")[2] for word in given_[3:]}
    assert tools <= set(programs("clang-19"))
    assert set(programs("clang-19").values()) == {"clang-19", "lld-19", "llvm-19"}


def test_plain_clang_is_the_default_llvm() -> None:
    assert "LLVM=1" in make_variables("clang")
    assert "LD=ld.lld" in make_variables("clang")


def test_a_build_by_llvm_is_not_taken_for_one_that_gnu_ld_linked() -> None:
    assert kept_name("0" * 64, "v", 0, "clang-14") != kept_name("0" * 64, "v", 0, "gcc")
    assert kept_name("0" * 64, "v", 1, "clang-14") != kept_name("0" * 64, "v", 0, "clang-14")
    # Kernels that are kept under this name must be found again.
    assert kept_name("0" * 64, "v", 0, "gcc-12") == kept_name("0" * 64, "v")


def a_program(directory: Path, name: str, text: str) -> None:
    file = directory / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def test_a_worker_looks_for_every_compiler_on_its_path(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    a_program(first, "gcc-12", "echo 'gcc-12 (Debian) 12.2.0'; echo 'Copyright'")
    a_program(second, "gcc-12", "echo 'hidden by the one before'")
    a_program(second, "gcc-11", "echo 'cannot execute cc1' >&2; exit 1")
    a_program(second, "gcc-ar-12", "echo 'not a compiler'")
    for name in ("clang-14", "clang-19"):
        a_program(second, name, f"echo '{name} version'")
    for name in programs("clang-19"):
        if name not in ("clang-19", "ld.lld-19"):
            a_program(first, name, "exit 0")
    (first / "gcc").write_text("not executable")
    (first / "gcc").chmod(0o644)
    path = f"{first}:{second}:{tmp_path / 'absent'}"
    announced = {one.name: one for one in probe(path)}
    assert list(announced) == ["gcc-11", "gcc-12", "clang-14", "clang-19"]
    assert announced["gcc-12"] == Compiler(name="gcc-12", version="gcc-12 (Debian) 12.2.0")
    assert "reinstall package gcc-11" in str(announced["gcc-11"].problem)
    assert announced["clang-19"].problem == "ld.lld-19 not found; install package lld-19"
    assert "install package lld-14 llvm-14" in str(announced["clang-14"].problem)


def test_this_host_announces_what_it_builds_with() -> None:
    gcc = next(one for one in probe() if one.name == "gcc")
    assert gcc == Compiler(name="gcc", version=toolchain.compiler_version("gcc"))


def test_an_announcement_comes_back_as_it_was_sent() -> None:
    sent = [
        Compiler(name="gcc", version=GCC),
        Compiler(name="clang-14", version="x", problem="ld.lld-14 not found"),
    ]
    assert from_announcement(json.dumps(to_announcement(sent))) == sent
    assert from_announcement("[]") == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not valid JSON"),
        ("[" * 60_000, "not valid JSON"),
        ("x" * 100_000, "more than"),
        ('{"name": "gcc"}', "not a list"),
        ('["gcc"]', "not an object"),
        ('[{"name": "rm -rf", "version": "1"}]', "not the name of a compiler"),
        ('[{"name": "gcc"}]', "version missing"),
        ('[{"name": "gcc", "version": "1", "problem": 7}]', "problem is not a string"),
    ],
)
def test_an_announcement_from_a_strange_worker_is_refused_whole(text: str, why: str) -> None:
    with pytest.raises(BadAnnouncement, match=why):
        from_announcement(text)


@given(st.text())
def test_no_announcement_puts_control_characters_on_a_page(version: str) -> None:
    text = json.dumps([{"name": "gcc", "version": version, "problem": None}])
    (one,) = from_announcement(text)
    assert one.version.isprintable()
    assert len(one.version) <= 500


def test_a_kernel_goes_where_its_compiler_is() -> None:
    announced = {
        "builder": has("builder", "gcc"),
        "old": [*has("old", "gcc", "gcc-11"), *has("old", "clang-14", problem="no ld.lld-14")],
    }
    assert may_build(announced, "old", "gcc-11")
    assert not may_build(announced, "builder", "gcc-11")
    assert all(may_build(announced, worker, "gcc") for worker in announced)


def test_a_compiler_that_no_worker_has_keeps_no_kernel_waiting() -> None:
    announced = {"builder": has("builder", "gcc", "clang-14", problem="broken")}
    assert may_build(announced, "builder", "clang-14")
    assert may_build({}, "builder", "gcc")


def test_a_refusal_lists_what_there_is() -> None:
    announced = [*has("a", "gcc", "clang-19"), *has("b", "gcc-12", "gcc")]
    assert refusal(announced, "gcc-12") is None
    assert refusal(announced, "gcc-11") == (
        "no build worker has gcc-11; available compilers: gcc, gcc-12, clang-19"
    )
    broken = [*announced, *has("b", "clang-14", problem="ld.lld-14 not found")]
    assert refusal(broken, "clang-14") == (
        "clang-14 cannot build kernels on any build worker (b: ld.lld-14 not found);"
        " available compilers: gcc, gcc-12, clang-19"
    )
    assert refusal(has("b", "gcc", problem="broken"), "clang") == (
        "no build worker has clang; no build worker has a usable compiler, see `swingbot compilers`"
    )


def test_before_any_worker_has_come_only_a_bad_name_is_refused() -> None:
    assert refusal([], "clang-22") is None
    assert "use gcc, clang, gcc-N or clang-N" in str(refusal([], "icc"))


def a_build(number: int, priority: int = 30) -> Order:
    return Order(
        id=number,
        kind="build",
        key=f"build:{number}",
        build_key=str(number),
        variant=number,
        testbox=None,
        spec=None,
        series=None,
        k=None,
        state="ready",
        reason=None,
        priority=priority,
        budget=3,
    )


def picked(orders: list[Order], queue: KernelQueue) -> list[int]:
    return [o.id for o in choose(orders, busy={}, leased=(), usable=(), kernels=queue)]


def test_a_worker_that_is_away_does_not_hold_up_other_compilers() -> None:
    queue = KernelQueue(
        compilers={1: "clang-22", 2: "gcc", 3: "gcc", 4: "gcc"}, under_way={"clang-22": 2}
    )
    assert picked([a_build(n) for n in (1, 2, 3, 4)], queue) == [2, 3]


def test_each_worker_gets_two_kernels_ahead() -> None:
    workers = workers_by_compiler([*has("a", "gcc"), *has("b", "gcc"), *has("c", "clang")])
    queue = KernelQueue(
        compilers=dict.fromkeys(range(9), "gcc"), under_way={"gcc": 1}, workers=workers
    )
    assert picked([a_build(n) for n in range(9)], queue) == [0, 1, 2]
    ahead = [a_build(n, AHEAD) for n in range(9)]
    assert picked(ahead, queue) == [0]


@pytest.fixture
def memory() -> MemoryLab:
    return MemoryLab()


def announce(memory: MemoryLab, *names: str) -> None:
    with memory.store.transaction() as tx:
        tx.compilers.announce("builder", [Compiler(name=name, version=name) for name in names])


def test_a_compiler_that_no_worker_has_is_refused_at_once(memory: MemoryLab) -> None:
    announce(memory, "gcc", "gcc-12")
    with memory.store.transaction() as tx:
        with pytest.raises(
            RequestError, match="no build worker has gcc-11; available.*gcc, gcc-12"
        ):
            check_compiler(tx.compilers, "gcc-11")
        check_compiler(tx.compilers, "gcc-12")
        with pytest.raises(RequestError, match="not a compiler name"):
            check_compiler(tx.compilers, "gcc; true")


def test_another_layout_keeps_the_compiler(memory: MemoryLab) -> None:
    with memory.store.transaction() as tx:
        kernel = a_lab(tx, 1, testboxes=memory.testboxes).kernels[0]
        by_clang = replace(kernel, compiler="clang-19")
        again = in_layout(memory.lab.catalogue.kconfigs, tx.trees, tx.variants, by_clang, 1)
        assert (again.commit, again.compiler, again.layout) == (kernel.commit, "clang-19", 1)
        assert (
            again.build_key
            != in_layout(memory.lab.catalogue.kconfigs, tx.trees, tx.variants, kernel, 1).build_key
        )


def test_a_retry_goes_to_another_worker_if_there_is_one() -> None:
    assert may_retry("a", (), ("a", "b"))
    assert not may_retry("a", ("a",), ("a", "b"))
    assert may_retry("b", ("a",), ("a", "b"))
    assert may_retry("a", ("a",), ("a",))
    assert may_retry("a", ("a", "b"), ("a", "b"))
