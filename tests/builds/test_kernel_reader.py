"""Records of kernels are compared in a child, which strangers' code cannot make large or slow."""

from __future__ import annotations

import io
import threading
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, BinaryIO

import psutil
import pytest

from swingbot.adapters import kernel_reader, limits, process
from swingbot.adapters.kernel_reader import ChildKernelRecords
from swingbot.service.ports.kernels import NoRecord, RecordFiles
from swingbot_jobs.kernel_diff import SymbolRecord, object_row, write_record
from tests.attack.hostile_records import largest_record
from tests.fakes.kernels import KernelRecordsHere

SIZES = {"text": 100, "data": 10, "bss": 1}
BASE, HEAD = RecordFiles("base", "config"), RecordFiles("head", "config")


class Store:
    """Stored files by name, and how often one was opened."""

    def __init__(self, **files: bytes) -> None:
        self.files, self.opened = files, 0

    def open(self, sha256: str) -> BinaryIO:
        self.opened += 1
        if sha256 not in self.files:
            raise FileNotFoundError(sha256)
        return io.BytesIO(self.files[sha256])


def a_record(shape: str, names: list[str], **more: Any) -> bytes:
    code = [SymbolRecord(name, 16, f"{shape} of {name}", "", ("spin_lock",)) for name in names]
    document = {
        "compiler": "gcc",
        "flags": ["-O2", shape],
        "sizes": SIZES,
        "symbols": {"t": dict.fromkeys(names, len(shape))},
        "objects": {"mm/x.o": object_row(shape, SIZES, code, [])},
    }
    return write_record(**document | more)


QUESTIONS: dict[str, Callable[[ChildKernelRecords], object]] = {
    "change": lambda kernels: kernels.change(BASE, HEAD),
    "config": lambda kernels: kernels.config("config", "other_config"),
    "growth": lambda kernels: kernels.growth(BASE, HEAD),
    "code": lambda kernels: kernels.code(BASE, HEAD),
    "watched": lambda kernels: kernels.watched(BASE, HEAD),
    "executed": lambda kernels: kernels.executed(BASE, HEAD, [{"f": 2.0}, {}], ["f", "g"], "a run"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_child_answers_as_this_process_would_and_is_asked_once(name: str) -> None:
    base, head = a_record("one", ["f", "g", "\ud800"]), a_record("other", ["f", "g", "h"])
    store = Store(base=base, head=head, config=b"CONFIG_X=y\n", other_config=b"")
    kernels, ask = ChildKernelRecords(store.open), QUESTIONS[name]
    answer = ask(kernels)
    here = repr(ask(KernelRecordsHere(store.open)))
    assert repr(answer) == here.replace("\\ud800", "?")
    opened = store.opened
    assert ask(kernels) == answer and store.opened == opened


@pytest.mark.parametrize("name", ["change", "executed"])
def test_the_worst_records_take_no_memory_here_and_bounded_memory_there(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(base=largest_record("a"), head=largest_record("b"))
    tracemalloc.start()
    try:
        with pytest.raises(NoRecord, match="its entry for a.o is damaged"):
            QUESTIONS[name](ChildKernelRecords(store.open))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    monkeypatch.setattr(limits, "RECORD_READER_BYTES", 200 << 20)
    small, opened = ChildKernelRecords(store.open), set[int]()
    for _ in range(2):
        with pytest.raises(NoRecord, match="needs too much memory"):
            QUESTIONS[name](small)
        opened.add(store.opened)
    assert len(opened) == 1


def test_threads_take_turns() -> None:
    names = [f"f{number}" for number in range(4_000)]
    store = Store(
        base=a_record("one", names),
        head=a_record("other", names),
        config=b"CONFIG_X=y\n",
        other_config=b"",
    )
    kernels = ChildKernelRecords(store.open)
    threads = [threading.Thread(target=ask, args=[kernels]) for ask in QUESTIONS.values()]
    for thread in threads:
        thread.start()
    most = 0
    while any(thread.is_alive() for thread in threads):
        most = max(most, sum(map(is_reader, psutil.Process().children())))
        time.sleep(0.005)
    assert most == 1


def is_reader(child: psutil.Process) -> bool:
    try:
        return "swingbot.adapters.kernel_child" in child.cmdline()
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def endless() -> Store:
    """Records about which gate `executed` asks each function for its callers among all others."""
    names = [f"f{number}" for number in range(30_000)]
    return Store(base=a_record("one", names), head=a_record("other", names))


def ask_all(kernels: ChildKernelRecords) -> object:
    asked = [f"f{number}" for number in range(1500)]
    return kernels.executed(BASE, HEAD, [{}, {}], asked, "a run")


def test_that_an_answer_takes_too_much_work_is_remembered_and_counts(
    endless: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RECORD_READER_SECONDS", 1.0)
    monkeypatch.setattr(kernel_reader, "PATIENCE", 600.0)
    kernels, before = ChildKernelRecords(endless.open), process.seconds()
    for _ in range(2):
        with pytest.raises(NoRecord, match="reading them takes more than 1 s"):
            ask_all(kernels)
    assert endless.opened == 2
    assert process.seconds() - before > 1.0  # of the client that asked


def test_that_others_used_the_processors_is_not_remembered(
    endless: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = ChildKernelRecords(endless.open)
    with monkeypatch.context() as patched:
        patched.setattr(kernel_reader, "PATIENCE", 1e-5)
        with pytest.raises(NoRecord, match="were not compared: reading them took longer"):
            kernels.code(BASE, HEAD)
    assert kernels.code(BASE, HEAD).status == "pass"


def test_flags_of_two_builds_are_compared_in_linear_time() -> None:
    flags = [f"-D{number}" for number in range(100_000)]
    store = Store(
        base=a_record("one", [], flags=flags), head=a_record("one", [], flags=flags[::-1])
    )
    assert ChildKernelRecords(store.open).change(BASE, HEAD)["flags"]["both"] == flags[::-1]
