"""What is read out of build logs, and the pure parts of the recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot_jobs.code_layout import NoLayout, permuted
from swingbot_jobs.contract.build_key import build_key
from swingbot_worker.kbuild import accepted, log, recipe
from swingbot_worker.order import Spec

GCC = """\
  CC      mm/page_alloc.o
In file included from ../include/linux/mm.h:7,
                 from ../mm/page_alloc.c:18:
../include/linux/gfp.h:12:1: warning: no semicolon at end of struct or union
../mm/page_alloc.c: In function 'free_pcppages_bulk':
../mm/page_alloc.c:1501:9: error: 'batch' undeclared (first use in this function)
 1501 |         batch = 1;
make[3]: *** [../scripts/Makefile.build:250: mm/page_alloc.o] Error 1
make[2]: *** [../scripts/Makefile.build:500: mm] Error 2
"""


def test_the_compilers_words_come_first_and_name_files_as_in_the_tree() -> None:
    assert log.error_lines(GCC) == [
        "mm/page_alloc.c:1501:9: error: 'batch' undeclared (first use in this function)",
        "make[3]: *** [../scripts/Makefile.build:250: mm/page_alloc.o] Error 1",
        "make[2]: *** [../scripts/Makefile.build:500: mm] Error 2",
    ]


@pytest.mark.parametrize(
    "line",
    [
        (
            "ld: mm/memory.o: in function `do_fault': memory.c:(.text+0x1): undefined "
            "reference to `gone'"
        ),
        'ERROR: modpost: "gone" [fs/ext4/ext4.ko] undefined!',
        "mm/Kconfig:12: syntax error",
        "mm/a.c:1:10: fatal error: linux/gone.h: No such file or directory",
    ],
)
def test_errors_of_linker_modpost_kconfig_and_preprocessor_are_found(line: str) -> None:
    assert log.error_lines(f"  CC      x.o\n{line}\nmake: *** [Makefile:1: x] Error 1\n")[0] == line


def test_a_log_without_known_errors_gives_its_last_lines() -> None:
    assert log.error_lines("a\nb\n\nSegmentation fault\n") == ["a", "b", "Segmentation fault"]


def test_a_hostile_log_is_cut_and_cleaned() -> None:
    lines = log.error_lines(
        "".join(f"a.c:{n}:1: error: \x1b[31m\x07{'x' * 9000}\n" for n in range(500))
    )
    assert len(lines) == 20
    assert all(len(line) == 500 and line.isprintable() for line in lines)


@pytest.mark.parametrize(
    "line",
    [
        "ld: final link failed: No space left on device",
        "gcc: fatal error: Killed signal terminated program cc1",
        "a.c:1:10: fatal error: gelf.h: No such",
    ],
)
def test_faults_of_the_lab_are_distinguished_from_those_of_the_commit(line: str) -> None:
    assert log.lab_fault(f"  CC      x.o\n{line}\n")
    assert log.lab_fault(GCC) is None


def test_lost_lines_of_a_fragment_are_those_the_config_does_not_honour() -> None:
    fragment = (
        "# a comment about CONFIG_A\nCONFIG_A=y\nCONFIG_B=y\n# CONFIG_C is not set\n# "
        "CONFIG_D is not set\nCONFIG_E=8\n"
    )
    config = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_D=y\nCONFIG_E=64\n"
    assert accepted.lost_lines(fragment, config) == [
        "CONFIG_B=y",
        "# CONFIG_D is not set",
        "CONFIG_E=8",
    ]


def test_the_build_key_follows_everything_that_goes_into_a_build() -> None:
    key = build_key("t", "k", "f", "gcc", 0)
    others = {
        build_key("u", "k", "f", "gcc", 0),
        build_key("t", "l", "f", "gcc", 0),
        build_key("t", "k", "g", "gcc", 0),
    }
    others |= {build_key("t", "k", "f", "clang", 0), build_key("t", "k", "f", "gcc", 1)}
    assert len(others | {key}) == 6
    assert key == build_key("t", "k", "f", "gcc", 0)
    # Stored in databases and caches: it must never change by accident.
    assert key == "f2cdd500bd75a3e5aa32bce270e78566a7e128529d16b18949ce4838c7b57719"


def test_a_kept_build_is_named_by_the_exact_compiler_too() -> None:
    assert recipe.kept_name("0" * 64, "gcc 12.2.0") != recipe.kept_name("0" * 64, "gcc 12.2.1")


def test_layouts_share_their_objects() -> None:
    spec = Spec(repo="r", commit="c", kconfig="k", compiler="gcc", layout=0)
    other = Spec(repo="r", commit="c", kconfig="k", compiler="gcc", layout=1)
    plain = recipe.make_argv(spec, Path("/s"), jobs=2, ccache=True, targets=("bzImage",))
    assert recipe.make_argv(other, Path("/s"), jobs=2, ccache=True, targets=("bzImage",)) == plain


KERNEL_SCRIPT = (
    " .text : {\n . = ALIGN(8); *(.text.hot .text.hot.*) *(.text .text.fixup) "
    "*(.text.unlikely) }\n .init.text : { *(.init.text) }\n"
)


def moved(script: str) -> list[str]:
    return [line.split("(")[0] for line in script.splitlines() if line.startswith("[")]


def test_each_layout_is_another_order_of_all_objects() -> None:
    names = [f"mm/{n}.o" for n in range(20)]
    orders = {tuple(moved(permuted(KERNEL_SCRIPT, names, layout))) for layout in range(1, 30)}
    assert len(orders) == 29 and all(
        sorted(order) == sorted(f"[m]{name[1:]}" for name in names) for order in orders
    )


def test_an_object_more_moves_no_other_out_of_order() -> None:
    names = [f"mm/{n}.o" for n in range(20)]
    before, after = (
        moved(permuted(KERNEL_SCRIPT, some, 1)) for some in (names, [*names, "mm/new.o"])
    )
    assert [name for name in after if name != "[m]m/new.o"] == before


def test_only_plain_text_is_placed_again_and_the_rest_of_the_script_stays() -> None:
    text = permuted(KERNEL_SCRIPT, ["b.o", "a.o", "a.o"], 2)
    added = [line for line in text.splitlines() if line.startswith((". = . +", "["))]
    assert len(added) == 3 and all(".text .text.fixup" in line for line in added[1:])
    rest = "\n".join(line for line in text.splitlines() if line not in added)
    assert rest.replace("\n*(.text .text", "*(.text .text") == KERNEL_SCRIPT.rstrip("\n")
    with pytest.raises(NoLayout):
        permuted(".text : { *(.text.hot) }", ["a.o"], 1)
