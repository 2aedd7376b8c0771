"""Two builds compared by their records: sizes, functions, data, configuration. No object is read
here."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot_jobs import limits
from swingbot_jobs.kernel_diff import (
    VERSION,
    BadRecord,
    CodeChange,
    ComparedBuild,
    KernelRecord,
    SymbolRecord,
    asked_rows,
    bloat,
    bloat_text,
    change_text,
    code_change,
    config_difference,
    config_part,
    headline,
    kernel_change,
    matters,
    object_row,
    of_classes,
    read_record,
    source_name,
    symbol_table,
    write_record,
)

Parts = Sequence[SymbolRecord]
SIZES = {"text": 4096, "data": 512, "bss": 64}
# Its text takes a level of the stack for each of its lists.
_NESTED: Any = json.loads("[" * 700 + "]" * 700)


def f(
    name: str, shape: str = "aa", *uses: str, size: int = 100, constants: str = ""
) -> SymbolRecord:
    return SymbolRecord(name, size, shape, constants, uses)


def packed(
    *, symbols: dict[str, dict[str, int]] | None = None, **objects: tuple[Parts, Parts]
) -> bytes:
    rows = {
        path.replace("__", "/") + ".o": object_row(f"sha of {parts}", SIZES, *parts)
        for path, parts in objects.items()
    }
    return write_record(
        compiler="gcc 12.2.0",
        flags=["-O2"],
        sizes=SIZES,
        symbols=symbols or {"t": {}},
        objects=rows,
    )


def a_record(**objects: tuple[Parts, Parts]) -> KernelRecord:
    return read_record(packed(symbols=None, **objects))


def change(base: Parts, head: Parts, base_data: Parts = (), head_data: Parts = ()) -> CodeChange:
    return code_change(a_record(mm__slub=(base, base_data)), a_record(mm__slub=(head, head_data)))


def test_a_function_with_other_bytes_is_a_change_of_code() -> None:
    found = change([f("alloc", "aa"), f("free")], [f("alloc", "bb", size=116), f("free")])
    assert not found.nothing
    [one] = found.functions
    assert (one.object, one.name, one.kind, one.what, one.base, one.head) == (
        "mm/slub.o",
        "alloc",
        "changed",
        ("code",),
        100,
        116,
    )
    assert [(one.object, one.parts) for one in found.objects] == [("mm/slub.o", 1)]


def test_an_object_with_other_bytes_and_the_same_functions_is_no_change() -> None:
    base = a_record(mm__slub=([f("alloc")], []))
    head = replace(
        base, raw_objects={path: ["other", *row[1:]] for path, row in base.raw_objects.items()}
    )
    found = code_change(base, head)
    assert found.nothing and [(one.object, one.parts) for one in found.objects] == [
        ("mm/slub.o", 0)
    ]


def test_a_call_of_another_function_is_a_change_of_references_and_is_named() -> None:
    [one] = change(
        [f("alloc", "aa", "slow", "unlock")], [f("alloc", "aa", "slower", "unlock")]
    ).functions
    assert (one.what, one.now_uses, one.used) == (("references",), ("slower",), ("slow",))


def test_another_string_is_a_change_of_constants_alone() -> None:
    [one] = change([f("alloc", constants="11")], [f("alloc", constants="22")]).functions
    assert one.what == ("constants",)


def test_a_variable_with_another_initial_value_changes_no_function_but_not_nothing() -> None:
    found = change(
        [f("alloc")], [f("alloc")], [f("limit", "01", size=4)], [f("limit", "02", size=4)]
    )
    assert (
        not found.functions and [one.name for one in found.data] == ["limit"] and not found.nothing
    )


def test_functions_and_variables_come_and_go() -> None:
    found = change([f("alloc"), f("old", "o1")], [f("alloc"), f("fresh", "f1", size=7)])
    assert [(one.name, one.kind, one.base, one.head) for one in found.functions] == [
        ("fresh", "new", None, 7),
        ("old", "gone", 100, None),
    ]


def test_a_static_function_under_another_name_is_no_change_even_to_its_callers() -> None:
    found = change(
        [f("alloc", "aa", "helper"), f("helper", "h1", "helper")],
        [f("alloc", "aa", "__helper"), f("__helper", "h1", "__helper")],
    )
    assert found.nothing
    assert [(one.was, one.name) for one in found.renamed] == [("helper", "__helper")]


def test_a_renamed_function_that_calls_a_renamed_one_is_found_too() -> None:
    found = change([f("a", "a1", "b"), f("b", "b1")], [f("a2", "a1", "b2"), f("b2", "b1")])
    assert found.nothing and {(one.was, one.name) for one in found.renamed} == {
        ("a", "a2"),
        ("b", "b2"),
    }


def test_a_renaming_hides_no_call_that_went_elsewhere() -> None:
    base = [f("alloc", "aa", "helper"), f("helper", "h1"), f("other", "x1")]
    head = [f("alloc", "aa", "other"), f("__helper", "h1"), f("other", "x1")]
    found = change(base, head)
    assert [one.name for one in found.functions] == ["alloc"] and found.functions[0].now_uses == (
        "other",
    )


def test_what_could_be_two_renamings_is_none() -> None:
    found = change([f("a", "e"), f("b", "e")], [f("c", "e"), f("d", "e")])
    assert not found.renamed and len(found.functions) == 4


def test_a_function_that_moved_to_another_file_is_no_change() -> None:
    base = a_record(mm__slub=([f("alloc"), f("moved", "m1")], []), mm__util=([f("x")], []))
    head = a_record(mm__slub=([f("alloc")], []), mm__util=([f("x"), f("moved", "m1")], []))
    found = code_change(base, head)
    assert found.nothing
    assert [(one.was_object, one.object, one.name) for one in found.renamed] == [
        ("mm/slub.o", "mm/util.o", "moved")
    ]


def test_clones_and_cold_parts_belong_to_their_function() -> None:
    assert {
        source_name(name)
        for name in (
            "foo",
            "foo.cold",
            "foo.isra.0",
            "foo.constprop.0.cold",
            "foo.part",
            "__pfx_foo",
            "foo.llvm.123",
        )
    } == {"foo"}
    found = change(
        [f("foo"), f("foo.cold", "c1", size=20)], [f("foo"), f("foo.cold", "c2", size=30)]
    )
    assert [(one.name, one.base, one.head) for one in found.functions] == [("foo", 120, 130)]


def test_a_clone_that_only_got_its_suffix_is_no_change() -> None:
    assert change(
        [f("foo", "aa", "bar"), f("bar", "b1")], [f("foo", "aa", "bar"), f("bar.isra", "b1")]
    ).nothing


def test_comparing_the_other_way_round_swaps_new_and_gone() -> None:
    one, other = [f("a", "1"), f("b", "2")], [f("a", "9"), f("c", "3")]
    forth, back = change(one, other), change(other, one)
    assert {(c.name, c.base, c.head) for c in forth.functions} == {
        (c.name, c.head, c.base) for c in back.functions
    }


# --- sizes by symbol ------------------------------------------------------------------------------


def test_symbols_are_counted_without_numbers_weak_ones_and_what_macros_make() -> None:
    symbols = [
        ("t", "foo.isra.0", 10),
        ("T", "foo.isra.1", 5),
        ("b", "key.12", 8),
        ("R", "table", 64),
        ("W", "weak", 99),
        ("d", "__mod_x", 4),
    ]
    symbols += [
        ("t", "__se_sys_read", 7),
        ("r", "linux_banner", 200),
        ("d", "empty", 0),
        ("D", "__addressable_y1", 8),
    ]
    table = symbol_table(symbols)
    assert table == {"t": {"foo.isra": 15}, "d": {}, "b": {"key": 8}, "r": {"table": 64}}
    assert of_classes(table, "br") == {"key": 8, "table": 64}


def test_the_table_is_that_of_the_script() -> None:
    found = bloat(
        {"grown": 10, "gone": 7, "same": 100, "shrunk": 50},
        {"grown": 30, "new": 4, "same": 100, "shrunk": 49},
    )
    assert bloat_text(found) == (
        "add/remove: 1/1 grow/shrink: 1/1 up/down: 24/-8 (16)\n"
        "Function                                     old     new   delta\n"
        "grown                                         10      30     +20\n"
        "new                                            -       4      +4\n"
        "shrunk                                        50      49      -1\n"
        "gone                                           7       -      -7\n"
        "Total: Before=167, After=183, chg +9.58%\n"
    )


def test_a_name_as_long_as_it_likes_moves_its_row_and_nothing_else() -> None:
    text = bloat_text(bloat({}, {"n" * 60: 5}))
    assert f"{'n' * 60}       -       5      +5\n" in text and text.endswith(
        "Total: Before=0, After=5, chg +0.00%\n"
    )


# --- records --------------------------------------------------------------------------------------


def test_a_record_reads_as_it_was_written_and_equal_ones_are_equal_bytes() -> None:
    parts = ([f("alloc", "aa", "slow", constants="cc")], [f("limit", "01", size=4)])
    assert packed(mm__slub=parts) == packed(mm__slub=parts)
    read = a_record(mm__slub=parts).object("mm/slub.o")
    assert (list(read.code), list(read.data), dict(read.sizes)) == (*parts, SIZES)


def test_a_record_cut_anywhere_is_refused() -> None:
    whole = packed(mm__slub=([f("alloc")], []))
    for length in range(len(whole)):
        with pytest.raises(BadRecord):
            read_record(whole[:length])


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"version": 99},
        {
            "version": VERSION,
            "compiler": "",
            "flags": [],
            "sizes": {"text": -1, "data": 0, "bss": 0},
            "symbols": {},
            "objects": {},
        },
        {
            "version": VERSION,
            "compiler": "",
            "flags": 3,
            "sizes": SIZES,
            "symbols": {},
            "objects": {},
        },
        {
            "version": VERSION,
            "compiler": "",
            "flags": [_NESTED],
            "sizes": SIZES,
            "symbols": {},
            "objects": {},
        },
        {"version": _NESTED},
        {
            "version": VERSION,
            "compiler": "",
            "flags": [],
            "sizes": SIZES | {"text": _NESTED},
            "symbols": {},
            "objects": {},
        },
        {
            "version": VERSION,
            "compiler": "",
            "flags": [],
            "sizes": SIZES,
            "symbols": {"t": {"x": True}},
            "objects": {},
        },
        {
            "version": VERSION,
            "compiler": "",
            "flags": [],
            "sizes": SIZES,
            "symbols": {},
            "objects": {"a.o": [1, 2]},
        },
    ],
)
def test_what_is_no_record_is_refused_with_a_sentence(document: Any) -> None:
    with pytest.raises(BadRecord, match=r"^it "):
        read_record(gzip.compress(json.dumps(document).encode()))


@pytest.mark.parametrize(
    "row",
    [
        ["sha", [1, 2], [], []],
        ["sha", [1, 2, 3], [["f", "x", "", "", []]], []],
        ["sha", [1, 2, 3], [[]], []],
        ["sha", 5, [], []],
        ["sha", [1, 2, 3], [["f", 10**4299, "", "", []]], []],
        ["sha", [1, 2, 3], [["f", 1, "", "", [_NESTED]]], []],
        ["sha", _NESTED, [], []],
    ],
)
def test_a_damaged_object_is_named_when_it_is_needed(row: list[Any]) -> None:
    head = read_record(
        write_record(compiler="", flags=[], sizes=SIZES, symbols={}, objects={"mm/slub.o": row})
    )
    with pytest.raises(BadRecord, match="mm/slub.o"):
        code_change(a_record(), head)


def test_a_small_file_that_unpacks_to_gigabytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swingbot_jobs.limits.KERNEL_RECORD_BYTES", 1 << 16)
    with pytest.raises(BadRecord, match="larger than"):
        read_record(gzip.compress(b" " * (1 << 20)))


@pytest.mark.parametrize("pump", ["[]", "{}", '{"":0}', '"ab"', "[" * 500 + "]" * 500])
def test_the_memory_of_a_record_is_limited_whatever_its_text(pump: str) -> None:
    """As much of it as its bytes allow is refused; the most that is read takes a tenth of what that
    took.
    """
    for repeated in (limits.KERNEL_RECORD_BYTES, _most_allowed(pump) * (len(pump) + 1)):
        rows = ",".join([pump] * (repeated // (len(pump) + 1) - 100))
        child = subprocess.run(
            [sys.executable, "-c", _READ_WITHIN, str(400 << 20)],
            input=gzip.compress(_DOCUMENT.replace(b"ROWS", rows.encode()), 1),
            capture_output=True,
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            check=False,
        )
        expected = b"it has more than" if repeated == limits.KERNEL_RECORD_BYTES else b"read"
        assert child.stdout.startswith(expected), child


def _most_allowed(pump: str) -> int:
    names = pump.count(":")
    most = limits.KERNEL_RECORD_VALUES // (1 + pump.count("["))
    return min(most, limits.KERNEL_RECORD_NAMES // names) if names else most


_DOCUMENT = (
    f'{{"version":{VERSION},"compiler":"","flags":[],"sizes":{json.dumps(SIZES)},'
    '"symbols":{},"objects":{"a.o":["",[0,0,0],[ROWS],[]]}}'
).encode()
_READ_WITHIN = """
import resource, sys
from swingbot_jobs.kernel_diff import BadRecord, read_record
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]),) * 2)
try:
    read_record(sys.stdin.buffer.read())
    print("read")
except BadRecord as error:
    print(error)
"""


@given(st.binary(max_size=300))
def test_any_bytes_are_a_record_or_refused(junk: bytes) -> None:
    for packed_ in (junk, gzip.compress(junk)):
        with pytest.raises(BadRecord):
            read_record(packed_)


# --- all of it together ---------------------------------------------------------------------------

CONFIG = "CONFIG_SMP=y\nCONFIG_HZ=250\n# CONFIG_NUMA is not set\n"


def test_configurations_differ_by_values_and_by_symbols_that_one_does_not_know() -> None:
    head = "CONFIG_SMP=y\nCONFIG_HZ=1000\nCONFIG_NUMA=y\nCONFIG_NEW=m\n# a remark\n"
    assert config_difference(CONFIG, head) == [
        {"symbol": "CONFIG_HZ", "base": "250", "head": "1000"},
        {"symbol": "CONFIG_NEW", "base": None, "head": "m"},
        {"symbol": "CONFIG_NUMA", "base": "n", "head": "y"},
    ]
    assert config_difference(CONFIG, CONFIG) == []


def test_a_configuration_with_a_value_of_megabytes_fills_no_page() -> None:
    one, other = (f'CONFIG_A="{"x" * 3_000_000}{end}"\n' for end in "yz")
    (row,) = config_difference(one, other)
    assert row["base"] == row["head"] == f'"{"x" * 299}... (3000003 characters)'


def test_a_symbol_that_is_off_or_unknown_in_both_kernels_is_counted_and_not_listed() -> None:
    head = "CONFIG_SMP=y\nCONFIG_HZ=1000\n# CONFIG_NEW is not set\n"
    rows = config_difference(CONFIG, head)
    assert [(row["symbol"], matters(row)) for row in rows] == [
        ("CONFIG_HZ", True),
        ("CONFIG_NEW", False),
        ("CONFIG_NUMA", False),
    ]
    assert config_part(rows) == [
        "config: 3 symbols differ",
        "  CONFIG_HZ: 250 -> 1000",
        "  2 off in one kernel and unknown to the other",
    ]
    many = config_difference("", "".join(f"CONFIG_N{i}=y\n" for i in range(9)))
    assert config_part(many, most=2)[-2:] == ["  CONFIG_N1: unknown -> y", "  and 7 more"]
    assert config_part(config_difference(CONFIG, CONFIG)) == ["config: the same"]


def test_a_configuration_asks_for_the_symbols_that_its_text_sets() -> None:
    rows = config_difference("CONFIG_PREEMPT_NONE=y\nCONFIG_A=y\n", "# CONFIG_B is not set\n")
    asked = "# why\nCONFIG_PREEMPT_NONE=y\n# CONFIG_B is not set\n"
    assert [row["symbol"] for row in asked_rows(rows, asked)] == ["CONFIG_PREEMPT_NONE"]


def a_side(symbols: dict[str, int], parts: Parts, config: str | None = CONFIG) -> ComparedBuild:
    return ComparedBuild(
        record=read_record(packed(symbols={"t": symbols}, mm__slub=(parts, []))), config=config
    )


def test_the_text_says_what_differs_and_that_vmlinux_hides_it() -> None:
    facts = kernel_change(
        a_side({"alloc": 100}, [f("alloc")]),
        a_side({"alloc": 93}, [f("alloc", "bb", size=93)], CONFIG.replace("250", "100")),
    )
    text = change_text(facts)
    assert headline(facts) == "1 function changed."
    assert (
        "alloc    mm/slub.o  100   93    code" in text
        and "grow/shrink: 0/1 up/down: 0/-7 (-7)" in text
    )
    assert (
        "CONFIG_HZ: 250 -> 100" in text
        and "flags: the same" in text
        and "gcc 12.2.0, the same on both sides" in text
    )
    assert re.search(r"^vmlinux +4096 +512 +64$", text, re.MULTILINE) and facts["sizes"][
        "note"
    ] in " ".join(text.split())


def test_the_headline_counts_what_changed_came_and_went() -> None:
    facts = kernel_change(
        a_side({}, [f("a"), f("b"), f("c")]), a_side({}, [f("a", "1"), f("b", "2"), f("d", "3")])
    )
    assert headline(facts) == "2 functions changed, 1 new, 1 gone."


def test_nothing_is_said_to_be_nothing_and_a_config_that_was_not_kept_is_not_the_same() -> None:
    facts = kernel_change(a_side({}, [f("alloc")]), a_side({}, [f("alloc")], None))
    assert (
        facts["nothing"]
        and headline(facts).startswith("No function and no variable")
        and facts["config"] is None
    )
    assert "config: not stored for both sides" in change_text(facts)


def test_tens_of_thousands_of_rows_are_cut_and_counted() -> None:
    many = [f(f"f{i}", str(i)) for i in range(2500)]
    facts = kernel_change(a_side({}, []), a_side({part.name: 1 for part in many}, many))
    assert len(facts["functions"]) == 2000 and facts["left_out"] == {"functions": 500, "bloat": 500}
    assert (
        facts["counts"]["functions"]["new"] == 2500
        and len(change_text(facts, 40).splitlines()) < 120
    )


def test_a_flag_of_one_side_is_shown() -> None:
    head = a_side({}, [])
    other = replace(head.record, compiler="gcc 13", flags=("-O3",))
    facts = kernel_change(head, ComparedBuild(record=other, config=CONFIG))
    assert facts["flags"] == {"base_only": ["-O2"], "head_only": ["-O3"], "both": []}
    assert "compiler: base gcc 12.2.0, head gcc 13" in change_text(
        facts
    ) and "flags: base -O2, head -O3" in change_text(facts)
