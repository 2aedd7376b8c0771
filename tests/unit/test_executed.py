"""Were changed functions called? The decision on kernels that are records made by hand; the
script that counts on a tracefs made by hand."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core import limits
from swingbot.core.proof.executed import (
    KernelCalls,
    gate_result,
    no_call,
    times,
    watched,
)
from swingbot.core.proof.gates import GateResult
from swingbot_jobs.kernel_diff import (
    KernelRecord,
    SymbolRecord,
    code_change,
    object_row,
    read_record,
    write_record,
)
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_file

SIZES = {"text": 4096, "data": 512, "bss": 64}
PROGRAM = Path(__file__).parents[2] / "jobs" / "programs" / "function-profile"
RUN = "one run of page-fault"


def f(name: str, shape: str = "aa", *uses: str) -> SymbolRecord:
    return SymbolRecord(name, 100, shape, "", uses)


def a_record(data: Sequence[SymbolRecord] = (), **objects: Sequence[SymbolRecord]) -> KernelRecord:
    rows = {
        path.replace("__", "/") + ".o": object_row(f"sha of {parts} {data}", SIZES, parts, data)
        for path, parts in objects.items()
    }
    return read_record(
        write_record(compiler="gcc", flags=["-O2"], sizes=SIZES, symbols={"t": {}}, objects=rows)
    )


def gate(
    base: KernelRecord,
    head: KernelRecord,
    calls: dict[str, float],
    before: dict[str, float] | None = None,
    asked: Sequence[str] | None = None,
) -> GateResult:
    change = code_change(base, head)
    names = watched(change, [head, base]) if asked is None else asked
    return gate_result(
        change,
        KernelCalls(record=base, calls=calls if before is None else before),
        KernelCalls(record=head, calls=calls),
        names,
        RUN,
    )


BASE = a_record(mm__slub=[f("alloc"), f("free"), f("init", "aa", "free")], net__tcp=[f("send")])
HEAD = a_record(
    mm__slub=[f("alloc", "bb"), f("free", "bb"), f("init", "aa", "free")], net__tcp=[f("send")]
)


def test_one_changed_function_that_was_called_is_enough() -> None:
    found = gate(BASE, HEAD, {"alloc": 1234567.0, "free": 0.0, "init": 0.0})
    assert (found.status, found.reason) == (
        "pass",
        "alloc called 1 234 567 times in one run of page-fault; 1 other never",
    )
    assert [(one["name"], one["called"]) for one in found.detail["functions"]] == [
        ("alloc", 1234567.0),
        ("free", 0.0),
    ]


def test_it_fails_only_if_every_changed_function_was_seen_and_none_was_called() -> None:
    found = gate(BASE, HEAD, {"alloc": 0.0, "free": 0.0, "init": 5.0})
    assert (found.status, found.reason) == (
        "fail",
        "alloc, free were never called in one run of page-fault",
    )


def test_a_function_without_a_hook_is_never_taken_for_one_that_was_not_called() -> None:
    found = gate(BASE, HEAD, {"alloc": 0.0, "init": 5.0})
    assert found.status == "not run"
    assert found.reason == (
        "free cannot be traced (inlined, run at boot only, or never hooked), its "
        "callers: init 5 times; alloc: never called"
    )


def test_calls_of_neighbours_and_of_other_objects_are_no_evidence() -> None:
    assert gate(BASE, HEAD, {"alloc": 0.0, "free": 0.0, "init": 9.0, "send": 9.0}).status == "fail"


def test_a_name_that_several_objects_have_tells_nothing() -> None:
    base = a_record(mm__slub=[f("show")], net__tcp=[f("show")])
    head = a_record(mm__slub=[f("show", "bb")], net__tcp=[f("show")])
    for calls in (0.0, 7.0):
        found = gate(base, head, {"show": calls})
        assert (found.status, found.reason) == (
            "not run",
            "show: other functions have the same name",
        )


def test_clones_belong_to_their_function() -> None:
    base, head = (
        a_record(mm__slub=[f("alloc.isra.0")]),
        a_record(mm__slub=[f("alloc.constprop.0", "bb"), f("alloc.cold", "cc")]),
    )
    assert watched(code_change(base, head), [head, base]) == ("alloc",)
    assert (
        gate(base, head, {"alloc": 3.0}).reason == "alloc called 3 times in one run of page-fault"
    )


def test_a_function_that_is_gone_is_looked_for_in_the_parent() -> None:
    base, head = a_record(mm__slub=[f("alloc"), f("old", "dd")]), a_record(mm__slub=[f("alloc")])
    found = gate(base, head, {"alloc": 1.0}, before={"alloc": 1.0, "old": 12.0})
    assert (found.status, found.reason) == (
        "pass",
        "old called 12 times in the parent in one run of page-fault",
    )
    assert gate(base, head, {"alloc": 1.0}, before={"alloc": 1.0, "old": 0.0}).status == "fail"
    assert gate(base, head, {"alloc": 1.0}, before={"alloc": 1.0}).status == "not run"


def test_a_new_function_counts_in_the_commit_s_kernel() -> None:
    base, head = a_record(mm__slub=[f("alloc")]), a_record(mm__slub=[f("alloc"), f("fresh", "ee")])
    assert (
        gate(base, head, {"alloc": 1.0, "fresh": 1.0}, before={"alloc": 1.0}).reason
        == "fresh called once in one run of page-fault"
    )


def test_what_only_the_parent_calls_was_changed_in_effect() -> None:
    assert (
        gate(BASE, HEAD, {"alloc": 0.0, "free": 0.0}, before={"alloc": 4.0, "free": 0.0}).status
        == "pass"
    )


def test_a_function_that_was_not_asked_for_is_not_taken_for_uncalled() -> None:
    found = gate(BASE, HEAD, {"alloc": 0.0}, asked=["alloc"])
    assert (found.status, found.reason) == (
        "not run",
        "1 more were not traced; alloc: never called",
    )


def test_where_no_function_differs_there_is_no_call_to_count() -> None:
    data = (
        a_record([f("limits")], mm__slub=[f("alloc")]),
        a_record([f("limits", "bb")], mm__slub=[f("alloc")]),
    )
    assert gate(*data, {}).reason == "it changes only data (limits): there is no call to count"
    assert (
        gate(BASE, BASE, {}).reason
        == "no function differs between the two kernels: there is no call to count"
    )
    assert (
        gate(BASE, BASE, {}).status == "not run" and watched(code_change(BASE, BASE), [BASE]) == ()
    )


def test_code_that_is_no_function_can_not_be_asked_for() -> None:
    base, head = a_record(arch__entry=[f("(.text)")]), a_record(arch__entry=[f("(.text)", "bb")])
    change = code_change(base, head)
    assert watched(change, [head, base]) == ()
    assert no_call(change).status == "not run" and "(.text)" in no_call(change).reason


def test_changed_functions_come_first_and_the_rest_as_far_as_there_is_room() -> None:
    many = [f(f"a{number:05}") for number in range(limits.COUNTED_FUNCTIONS)]
    change = code_change(
        a_record(mm__slub=[*many, f("z")]), a_record(mm__slub=[*many, f("z", "bb")])
    )
    names = watched(change, [a_record(mm__slub=[*many, f("z", "bb")])])
    assert names[0] == "z" and len(names) == limits.COUNTED_FUNCTIONS
    long = [f(f"{'a' * 110}{number:05}", "bb") for number in range(1000)]
    change = code_change(a_record(), a_record(mm__slub=long))
    assert (
        0 < len(" ".join(watched(change, [a_record(mm__slub=long)]))) <= limits.COUNTED_CHARACTERS
    )


def test_a_commit_that_changes_half_the_kernel_gives_a_short_reason() -> None:
    base = a_record(mm__slub=[f(f"a{number}") for number in range(400)])
    head = a_record(mm__slub=[f(f"a{number}", "bb") for number in range(400)])
    change = code_change(base, head)
    found = gate_result(
        change,
        KernelCalls(record=base, calls={}),
        KernelCalls(record=head, calls={"a1": 1.0}),
        watched(change, [head]),
        RUN,
    )
    assert (
        found.status == "pass"
        and len(found.reason) < 300
        and len(found.detail["functions"]) == 200
        and found.detail["functions_total"] == 400
    )


@pytest.mark.parametrize(
    ("calls", "words"), [(1.0, "once"), (2.0, "2 times"), (1234567.0, "1 234 567 times")]
)
def test_counts_are_written_as_people_read_them(calls: float, words: str) -> None:
    assert times(calls) == words


NAMES = st.sampled_from(["alloc", "free", "init", "show", "(.text)", "x" * 200, "naïve", "a b"])
OBJECTS = st.dictionaries(
    st.sampled_from(["mm__slub", "net__tcp"]),
    st.lists(st.builds(f, NAMES, st.sampled_from("ab"), NAMES), max_size=4),
)


@given(
    OBJECTS,
    OBJECTS,
    st.dictionaries(NAMES, st.integers(0, 9).map(float)),
    st.dictionaries(NAMES, st.integers(0, 9).map(float)),
)
def test_pass_needs_a_call_and_fail_needs_every_changed_function_to_have_been_counted(
    old: dict[str, list[SymbolRecord]],
    new: dict[str, list[SymbolRecord]],
    before: dict[str, float],
    now: dict[str, float],
) -> None:
    base, head = a_record(**old), a_record(**new)
    change = code_change(base, head)
    names = watched(change, [head, base])
    found = gate_result(
        change,
        KernelCalls(record=base, calls=before),
        KernelCalls(record=head, calls=now),
        names,
        RUN,
    )
    changed = {one.name for one in change.functions}
    if found.status == "pass":
        assert any(before.get(name, 0.0) + now.get(name, 0.0) > 0 for name in changed & set(names))
    if found.status == "fail":
        assert changed and all(
            not before.get(name) and not now.get(name) and (name in before or name in now)
            for name in changed
        )


# --- the script that counts -----------------------------------------------------------------------


@pytest.fixture
def tracefs(tmp_path: Path) -> Path:
    """What tracefs shows: two CPUs, one in the form with times; a function in two pieces; one of
    a module."""
    place = tmp_path / "tracing"
    (place / "trace_stat").mkdir(parents=True)
    head = (
        "  Function                               Hit\n  --------                            "
        "   ---\n"
    )
    (place / "trace_stat" / "function0").write_text(head + "  foo.isra.0      12\n  other      7\n")
    (place / "trace_stat" / "function1").write_text(
        head
        + (
            "  foo.isra.0      3    1.2 us    0.4 us    0.0 us\n  bar      1    1.0 us    "
            "1.0 us    0.0 us\n"
        )
    )
    (place / "available_filter_functions").write_text(
        "foo\nfoo.isra.0\nbar\nbaz [a_module]\nfoobar\nother\n"
    )
    for name in ("function_profile_enabled", "set_ftrace_filter"):
        (place / name).write_text("0\n")
    return place


def counted(tracefs: Path, command: str, functions: str | None) -> tuple[int, str]:
    """Exit status and output of the monitor's `run` around a shell command."""
    script, out = tracefs.parent / "run", tracefs.parent / "function-profile"
    script.write_text((PROGRAM / "run").read_text().replace("/sys/kernel/tracing", str(tracefs)))
    environment = {"sb_functions": functions} if functions is not None else {}
    done = subprocess.run(
        ["sh", script, "sh", "-c", command],
        env={"PATH": os.environ["PATH"], "sb_out": str(out)} | environment,
        check=False,
    )
    assert sorted(path.name for path in tracefs.parent.iterdir()) == [
        "function-profile",
        "run",
        "tracing",
    ]
    return done.returncode, out.read_text()


def test_calls_are_reported_for_all_cpus_with_functions_never_called_or_without_a_hook(
    tracefs: Path,
) -> None:
    status, printed = counted(tracefs, "exit 3", "foo bar baz gone")
    assert (status, printed) == (3, "calls\n15 foo.isra.0\n1 bar\n0 baz\n0 foo\n- gone\nend\n")
    assert parse_file(
        "function-profile", tracefs.parent / "function-profile", load_programs(PROGRAM.parent)
    )["samples"] == {
        "function-profile.counted": [4.0],
        "function-profile.calls.foo": [15.0],
        "function-profile.calls.bar": [1.0],
        "function-profile.calls.baz": [0.0],
    }


def test_without_a_question_what_was_called_most_is_reported(tracefs: Path) -> None:
    assert counted(tracefs, "true", None) == (0, "calls\n15 foo.isra.0\n7 other\n1 bar\nend\n")


def test_the_profiler_is_on_while_the_command_runs_and_off_behind_it(tracefs: Path) -> None:
    counted(tracefs, f"cp {tracefs}/function_profile_enabled {tracefs}/seen", "foo")
    assert [(tracefs / name).read_text() for name in ("seen", "function_profile_enabled")] == [
        "1\n",
        "0\n",
    ]


def test_a_kernel_without_a_profiler_is_reported_as_such_and_the_command_runs(
    tracefs: Path,
) -> None:
    (tracefs / "function_profile_enabled").unlink()
    assert counted(tracefs, "exit 4", "foo") == (4, "no profiler\n")
