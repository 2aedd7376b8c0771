"""The form in which two builds of one function are compared, on objects that the compiler makes
here."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swingbot_jobs.kernel_diff import (
    CodeChange,
    code_change,
    object_row,
    read_record,
    symbol_table,
    write_record,
)
from swingbot_worker.kbuild.elf import NotAnObject, read_elf
from swingbot_worker.kbuild.normal_form import normal_name, normal_parts
from tests.amount import examples

# As kbuild with frame pointers, where no function ends in a jump to another one.
FLAGS = [
    "-O2",
    "-ffreestanding",
    "-fno-pie",
    "-fno-asynchronous-unwind-tables",
    "-mcmodel=kernel",
    "-mno-red-zone",
    "-fno-optimize-sibling-calls",
]
JUMPS = ("-foptimize-sibling-calls",)

SOURCE = r"""
extern int printk(const char *format, ...);
extern void might_sleep_at(const char *file, int line);
extern int slow(int), other(int);
static int calls;
int limit = 31;
static const int table[4] = {1, 2, 3, 5};
static __attribute__((noinline)) int helper(int x) { calls += x; return x > limit ? slow(x) : table[x & 3]; }
int checked(int x)
{
    might_sleep_at(__FILE__, __LINE__);
    return helper(x) + 1;
}
int warned(int x) { if (x > 12) printk("too many: %d\n", x); return helper(x); }
int chosen(int x)
{
    switch (x) { case 0: return slow(1); case 1: return other(7); case 2: return slow(9); case 3: return helper(4); case 4: return other(3); }
    return limit;
}
int last(int x) { limit = 7; calls = x; return other(x); }
"""


def compiled(source: str, out: Path, *flags: str) -> Path:
    # By its relative name, as kbuild gives it: __FILE__ must not depend on the directory.
    out.mkdir(exist_ok=True)
    (out / "mm").mkdir(exist_ok=True)
    (out / "mm" / "some.c").write_text(source)
    subprocess.run(["gcc", *FLAGS, *flags, "-c", "-o", "some.o", "mm/some.c"], cwd=out, check=True)
    return out / "some.o"


@pytest.fixture
def compare(tmp_path: Path) -> Comparer:
    return Comparer(tmp_path)


class Comparer:
    """Compiles two sources and says what differs."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def __call__(
        self,
        base: str,
        head: str,
        base_flags: tuple[str, ...] = (),
        head_flags: tuple[str, ...] = (),
    ) -> CodeChange:
        sides = []
        for name, source, flags in (("base", base, base_flags), ("head", head, head_flags)):
            elf = read_elf(compiled(source, self._place / name, *flags))
            row = object_row(name, elf.sizes(), *normal_parts(elf))
            sides.append(
                read_record(
                    write_record(
                        compiler="",
                        flags=[],
                        sizes=elf.sizes(),
                        symbols={},
                        objects={"some.o": row},
                    )
                )
            )
        return code_change(*sides)


def names(found: CodeChange) -> set[str]:
    return {one.name for one in (*found.functions, *found.data)}


def edited(old: str, new: str) -> str:
    assert old in SOURCE
    return SOURCE.replace(old, new, 1)


def test_lines_that_move_change_nothing(compare: Comparer) -> None:
    found = compare(SOURCE, "\n\n\n" + SOURCE)
    assert found.nothing


def test_a_function_before_the_others_moves_them_and_changes_none(compare: Comparer) -> None:
    fresh = (
        "int calls_before; __attribute__((noinline)) int fresh(int x) { calls_before = x; "
        "return x * 7; }\n"
    )
    found = compare(SOURCE, fresh + SOURCE)
    assert names(found) == {"fresh", "calls_before"}


def test_sections_of_their_own_change_no_function(compare: Comparer) -> None:
    assert compare(SOURCE, SOURCE, (), ("-ffunction-sections", "-fdata-sections")).nothing


def test_short_jumps_to_a_neighbour_are_references_as_calls_are(compare: Comparer) -> None:
    source = (
        "int a(int x) { return x * 5; } __attribute__((noinline)) int b(int x) { return x + "
        "2; } int c(int x) { return b(x * 3); }\n"
    )
    found = compare(
        source, source.replace("x + 2", "(x + 2) * 11 + (x >> 3) * 17 + x / 3"), JUMPS, JUMPS
    )
    assert names(found) == {"b"}


@pytest.mark.parametrize(
    ("old", "new", "function", "what"),
    [
        ("return helper(x) + 1", "return helper(x) + 2", "checked", "code"),
        ("x > 12", "x > 13", "warned", "code"),
        ("too many", "too much", "warned", "constants"),
        ("return slow(9)", "return slow(8)", "chosen", "code"),
        ("limit = 7", "limit = 8", "last", "code"),
        ("calls = x; return other(x)", "calls = x; return slow(x)", "last", "references"),
        ("? slow(x)", "? other(x)", "helper", "references"),
    ],
)
def test_an_edit_is_found_in_its_function_alone(
    compare: Comparer, old: str, new: str, function: str, what: str
) -> None:
    found = compare(SOURCE, "\n" + edited(old, new))
    assert names(found) == {function}
    assert what in found.functions[0].what


@pytest.mark.parametrize(
    ("old", "new", "variable"),
    [("limit = 31", "limit = 63", "limit"), ("{1, 2, 3, 5}", "{1, 2, 3, 6}", "table")],
)
def test_an_initial_value_is_found_in_its_variable_alone(
    compare: Comparer, old: str, new: str, variable: str
) -> None:
    assert names(compare(SOURCE, edited(old, new))) == {variable}


def test_cases_that_swap_their_places_in_a_jump_table_change_the_function(
    compare: Comparer,
) -> None:
    swapped = SOURCE.replace(
        "case 1: return other(7); case 2: return slow(9);",
        "case 2: return other(7); case 1: return slow(9);",
    )
    assert names(compare(SOURCE, swapped)) == {"chosen"}


def test_a_static_function_that_is_renamed_is_no_change(compare: Comparer) -> None:
    found = compare(SOURCE, SOURCE.replace("helper", "__helper"))
    assert found.nothing and [(one.was, one.name) for one in found.renamed] == [
        ("helper", "__helper")
    ]


def test_the_second_of_two_equal_references_is_not_taken_for_the_first(compare: Comparer) -> None:
    source = "extern int a, b; int f(void) { return a * 3 + b; }\n"
    assert names(compare(source, source.replace("a * 3 + b", "b * 3 + a"))) == {"f"}


def test_a_constant_behind_an_address_does_not_hide_whose_address_it_is(compare: Comparer) -> None:
    # movl $imm32, static(%rip): the processor counts from behind the constant.
    source = (
        "static volatile int a[4], b, c; void f(void) { b = 1000; } int g(void) { return "
        "a[1] + b + c; }\n"
    )
    found = compare(
        source,
        source.replace("b = 1000", "c = 1000"),
        ("-fpie", "-mcmodel=small"),
        ("-fpie", "-mcmodel=small"),
    )
    assert "f" in names(found)
    grown = source.replace("a[4], b", "a[400], b")
    assert names(
        compare(source, grown, ("-fpie", "-mcmodel=small"), ("-fpie", "-mcmodel=small"))
    ) == {"a"}


KEYED = r"""
struct key { int on; };
struct key one, two;
static inline __attribute__((always_inline)) int branch(struct key *key)
{
    asm goto("1: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n .pushsection __jump_table, \"aw\"\n .balign 8\n .long 1b - ., %l[yes] - .\n .quad %c0 - .\n .popsection"
             : : "i"(key) : : yes);
    return 0;
yes:
    return 1;
}
extern int slow(int);
int fast(int x) { return branch(&one) ? slow(x) : x; }
int still(int x) { return branch(&two) ? slow(x) : x + 1; }
"""


def test_a_static_branch_on_another_key_is_a_change_though_its_code_is_the_same_nop(
    compare: Comparer,
) -> None:
    found = compare(KEYED, KEYED.replace("branch(&one)", "branch(&two)"))
    assert names(found) == {"fast"} and found.functions[0].what == ("references",)
    assert (
        compare(KEYED, "int before(int x) { return x / 3; }\n" + KEYED).functions[0].name
        == "before"
    )


ALTERNATIVE = r"""
#define alternative(from, to) asm volatile("661: " from "\n662: .pushsection .altinstructions, \"a\"\n .long 661b - ., 663f - .\n .word 33\n" \
    " .byte 662b - 661b, 664f - 663f\n .popsection\n .pushsection .altinstr_replacement, \"ax\"\n663: " to "\n664: .popsection")
void first(void) { alternative("nop; nop; nop", "lfence"); }
void second(void) { alternative("nop; nop; nop", "clflush (%rax)"); }
"""


def test_replacement_code_belongs_to_the_function_that_it_replaces(compare: Comparer) -> None:
    found = compare(ALTERNATIVE, ALTERNATIVE.replace("lfence", "mfence"))
    assert names(found) == {"first"}
    fresh = ALTERNATIVE.replace(
        "void first", 'void zeroth(void) { alternative("nop; nop", "pause"); }\nvoid first'
    )
    assert names(compare(ALTERNATIVE, fresh)) == {"zeroth"}
    assert names(compare(ALTERNATIVE, ALTERNATIVE.replace(".word 33", ".word 34"))) == {
        "first",
        "second",
    }


def test_a_table_that_points_to_itself_comes_to_an_end(compare: Comparer) -> None:
    lines = (
        ".section .rodata",
        ".Lself: .rept 500",
        ".quad .Lself",
        ".endr",
        ".text",
        ".globl f",
        ".type f, @function",
    )
    table = (
        'asm("' + r"\n".join((*lines, "f: mov $.Lself, %edi", "ret", ".size f, .-f", "")) + '");\n'
    )
    assert compare(table, table).nothing
    assert names(compare(table, table.replace("rept 500", "rept 499"))) == {"f"}


def test_an_initcall_of_another_level_or_function_is_a_change(compare: Comparer) -> None:
    source = (
        'int a(void) { return 1; } int b(void) { return 2; }\nasm(".section .initcall4.init, '
        '\\"a\\"\\n__initcall__k__12_34_a4: .long a - .\\n.previous");\n'
    )
    assert compare(source, source.replace("12_34", "56_78")).nothing
    assert names(compare(source, source.replace(".long a", ".long b"))) == {"(.initcall4.init)"}
    assert names(compare(source, source.replace(".initcall4", ".initcall7"))) == {
        "(.initcall4.init)",
        "(.initcall7.init)",
    }


def test_a_number_behind_a_file_name_in_a_variable_is_no_line(compare: Comparer) -> None:
    source = 'struct { const char *name; int level; } entry = {"mm/slub.c", 3};\n'
    assert names(compare(source, source.replace("3}", "4}"))) == {"entry"}


def test_stamps_of_the_build_do_not_count(compare: Comparer) -> None:
    source = (
        'const char linux_banner[] = "Linux version 6.1 #1 Thu Jan 1"; struct { char '
        'version[65]; } init_uts_ns = {"#1"}; int kept = 1;\n'
    )
    head = source.replace("6.1 #1", "6.1 #2").replace('{"#1"}', '{"#2"}')
    assert compare(source, head, ("-Wl,--build-id=none",), ("-g0", "-frandom-seed=7")).nothing


def test_assembler_without_sizes_is_compared_and_its_padding_is_not(compare: Comparer) -> None:
    source = (
        'asm(".text\\n .globl raw\\nraw: mov %edi, %eax\\n ret\\n .balign 32\\n"); int f(int '
        "x) { return x; }\n"
    )
    padded = source.replace(".balign 32", ".balign 64")
    assert compare(source, padded).nothing
    assert names(compare(source, source.replace("%edi", "%esi"))) == {"(.text)"}


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("__key.7", "__key"),
        ("foo.constprop.0.cold", "foo.constprop.cold"),
        (
            "__initcall__kmod_slub__312_5043_slab_sysfs_init6",
            "__initcall__kmod_slub___slab_sysfs_init6",
        ),
        ("__UNIQUE_ID_ddebug123", "__UNIQUE_ID_ddebug"),
        ("sha256_x8", "sha256_x8"),
    ],
)
def test_names_lose_the_numbers_that_move(name: str, normal: str) -> None:
    assert normal_name(name) == normal


# --- reading objects ------------------------------------------------------------------------------


def test_symbols_and_sizes_are_those_of_nm_and_size(tmp_path: Path) -> None:
    weak = SOURCE + (
        "__attribute__((weak)) int w(void) { return 1; } int wd __attribute__((weak)) = "
        '3; int c __attribute__((section(".init.data"))) = 4;\n'
    )
    for file in (compiled(weak, tmp_path), Path("/bin/true")):
        elf = read_elf(file)
        sizes = subprocess.run(
            ["nm", "--size-sort", file], capture_output=True, text=True, check=True
        ).stdout
        assert Counter(elf.letters()) == Counter(
            (kind, name, int(size, 16))
            for size, kind, name in (line.split() for line in sizes.splitlines())
        )
        line = subprocess.run(
            ["size", file], capture_output=True, text=True, check=True
        ).stdout.splitlines()[1]
        assert list(elf.sizes().values()) == [int(word) for word in line.split()[:3]]


def test_what_is_no_object_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for text in (b"", b"\x7fELF", b"#!/bin/sh\n" * 100):
        (tmp_path / "x.o").write_bytes(text)
        with pytest.raises(NotAnObject, match="is not a readable x86-64 ELF file"):
            read_elf(tmp_path / "x.o")


@given(data=st.data())
@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_object_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = bytearray(
        _WHOLE.setdefault(
            "object",
            compiled(SOURCE, tmp_path_factory.mktemp("whole")).read_bytes() if not _WHOLE else b"",
        )
    )
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.o"
    path.write_bytes(whole[: data.draw(st.integers(1, len(whole)))])
    try:
        elf = read_elf(path)
        normal_parts(elf)
        symbol_table(elf.letters())
    except NotAnObject:
        pass


_WHOLE: dict[str, bytes] = {}
