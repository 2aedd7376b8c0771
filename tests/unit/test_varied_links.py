"""Links of real programs in other layouts, by the linker that CMD finds."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from swingbot.app.bisect_run.failures import UsageError
from swingbot.app.bisect_run.layout_recipe import VariedLinks
from swingbot.app.bisect_run.linker import placed_code, read_link

SOURCES = {
    "main.c": "int work(int); int fill(int); int main(void) { return work(2) - fill(2); }\n",
    "work.c": "int work(int x) { return x * 3 - 4; }\n",
    "fill.c": "int fill(int x) { return x * 7 - 12; }\n",
}
SCRIPT = (
    "SECTIONS { . = 0x100000; .text : { *(.text.hot) *(.text .text.fixup) }"
    " /DISCARD/ : { *(.eh_frame .note*) } }\n"
)


class Builder:
    """A work tree as that of `bisect run`, and builds in it."""

    def __init__(self, place: Path, recipe: str) -> None:
        self.tree, self.links = place / "tree-0", VariedLinks(recipe, place)
        self.tree.mkdir(parents=True)
        self.links.install()
        for name, text in SOURCES.items():
            (self.tree / name).write_text(text)
        self.run("gcc -O2 -c main.c work.c fill.c")

    def run(self, command: str, layout: int | None = None) -> subprocess.CompletedProcess[str]:
        """Run in the tree, plainly or in a layout."""
        env = dict(os.environ)
        if layout is not None:
            self.links.prepare(self.tree, layout)
            env |= {"SWINGBOT_LAYOUT": str(layout), **self.links.environment(self.tree)}
        return subprocess.run(
            ["sh", "-c", command], cwd=self.tree, env=env, capture_output=True, text=True
        )

    def addresses(self, name: str = "bench") -> dict[str, str]:
        out = subprocess.run(["nm", self.tree / name], capture_output=True, text=True).stdout
        rows = (line.split() for line in out.splitlines())
        return {row[2]: row[0] for row in rows if len(row) == 3 and row[1] in "Tt"}

    def image(self, command: str, layout: int | None = None) -> dict[str, str]:
        """Addresses of the functions after a build; it runs, and exits with status 0."""
        done = self.run(f"rm -f bench && {command} && ./bench", layout)
        assert (done.returncode, done.stderr) == (0, "")
        return self.addresses()

    def why(self, layout: int) -> str | None:
        return self.links.without_effect(self.tree, layout)


@pytest.fixture
def program(tmp_path: Path) -> Builder:
    return Builder(tmp_path, "program")


@pytest.mark.parametrize(
    "command",
    [
        "gcc -o bench main.o work.o fill.o",
        "gcc -O2 -o bench main.c work.c fill.c",
        "ar rcsT all.a work.o fill.o && gcc -o bench main.o all.a",
        "ar rcs all.a work.o fill.o && gcc -static -s -no-pie -o bench main.o all.a",
        "echo -o bench main.o work.o fill.o > words && gcc @words",
        "gcc -O2 -flto -o bench main.c work.c fill.c",
        "gcc -o bench main.o work.o fill.o -Wl,-Map=own.map && test -s own.map",
    ],
)
def test_each_layout_of_a_program_has_functions_at_other_addresses(
    program: Builder, command: str
) -> None:
    plain = program.image(command)
    kept = (program.tree / "bench").read_bytes()
    images = [(program.image(command, k), program.why(k)) for k in (0, 1, 2, 1)]
    contents = (program.tree / "bench").read_bytes()
    assert [why for _, why in images] == [None] * 4
    zero, one, two, again = (image for image, _ in images)
    assert (zero, one) == (plain, again)
    assert contents != kept
    if plain:  # not stripped
        assert len({image["main"] for image in (zero, one, two)}) == 3
    program.image(command, 0)
    if "flto" not in command:  # names its objects at random
        assert (program.tree / "bench").read_bytes() == kept


def test_four_layouts_begin_at_four_places_of_a_cache_line(program: Builder) -> None:
    for command in ("gcc -o bench main.o work.o fill.o", "gcc -O2 -o bench main.c work.c fill.c"):
        images = [program.image(command, k) for k in range(4)]
        for name in ("work", "main") if ".o" in command else ("work",):
            places = [int(image[name], 16) % 64 for image in images]
            assert places == [(places[0] + 16 * k) % 64 for k in range(4)], name


def test_objects_change_places_and_not_only_their_distance(program: Builder) -> None:
    command = "gcc -o bench main.o work.o fill.o"
    images = [program.image(command, k) for k in range(1, 9)]
    assert {image["work"] < image["fill"] for image in images} == {True, False}


def test_make_links_again_what_is_in_another_layout(program: Builder) -> None:
    (program.tree / "Makefile").write_text("bench: main.o work.o fill.o\n\tgcc -o $@ $^\n")
    seen = []
    for layout in (0, 1, 1, 0):
        done = program.run("make", layout)
        seen.append(("up to date" in done.stdout, program.why(layout)))
    assert seen == [(False, None), (False, None), (True, None), (False, None)]


def test_a_program_that_is_not_linked_again_has_no_other_layout(program: Builder) -> None:
    assert program.why(0) == "CMD linked no program in its work tree with an ld from PATH"
    program.image("gcc -o bench main.o work.o fill.o", 0)
    assert program.why(1) == "CMD did not link bench again"


def test_another_linker_links_as_ever_and_it_is_said(program: Builder) -> None:
    command = "gcc -fuse-ld=gold -o bench main.o work.o fill.o"
    plain = program.image(command)
    assert program.image(command, 1) == plain
    assert program.why(1) == "bench: ld.gold is not GNU ld"


def test_a_link_that_fails_says_what_it_says_without_layouts(program: Builder) -> None:
    command = "gcc -o bench main.o work.o"
    plain, varied = program.run(command), program.run(command, 1)
    assert varied.returncode == plain.returncode != 0
    assert varied.stderr == plain.stderr and "undefined reference to `fill'" in varied.stderr


def test_what_is_left_of_other_builds_is_not_asked_about(program: Builder) -> None:
    program.image("gcc -o old main.o work.o fill.o && cp old bench", 0)
    (program.tree / "old").unlink()
    program.image("gcc -o bench main.o work.o fill.o", 1)
    assert program.why(1) is None


def test_a_link_whose_process_was_killed_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    kill = 'case "$DIE $*" in 1*--verbose*) ;; 1*) kill -9 $PPID ;; esac'
    real = shutil.which("ld")
    (folder / "ld").write_text(f'#!/bin/sh\n{real} "$@" || exit\n{kill}\n')
    (folder / "ld").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    program, command = Builder(tmp_path, "program"), "gcc -o bench main.o work.o fill.o"
    plain = program.image(command, 0)
    assert program.run(f"export DIE=1; {command}", 1).returncode != 0
    assert program.addresses() != plain
    assert program.why(0) == "CMD did not link bench again"
    (program.tree / "Makefile").write_text(f"bench: main.o work.o fill.o\n\t{command}\n")
    program.run("make", 0)
    assert (program.addresses(), program.why(0)) == (plain, None)


def test_a_cmd_that_clears_its_environment_links_as_ever(program: Builder) -> None:
    command = "gcc -o bench main.o work.o fill.o"
    plain = program.image(command)
    assert program.image(f'env -i PATH="$PATH" {command}', 1) == plain
    assert program.why(1) == "CMD linked no program in its work tree with an ld from PATH"


def test_programs_that_are_not_in_the_work_tree_are_left_alone(program: Builder) -> None:
    command = "gcc -o ../bench main.o work.o fill.o"
    program.run(command)
    plain = program.addresses("../bench")
    program.run(command, 1)
    assert program.addresses("../bench") == plain
    assert program.why(1) == "CMD linked no program in its work tree with an ld from PATH"


def test_work_trees_have_the_same_layouts_where_a_build_names_whole_paths(tmp_path: Path) -> None:
    command = "gcc -o bench $PWD/main.o $PWD/work.o $PWD/fill.o"
    one, other = (Builder(tmp_path / name, "program") for name in ("one", "other"))
    for layout in range(1, 7):
        assert one.image(command, layout) == other.image(command, layout)


def test_path_cannot_hold_a_folder_with_a_colon(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give a --state DIR without one"):
        VariedLinks("program", tmp_path / "a:b").install()
    spaced = Builder(tmp_path / "a b", "program")
    spaced.image("gcc -o bench main.o work.o fill.o", 1)
    assert spaced.why(1) is None


def test_only_the_link_of_the_kernel_itself_is_varied_by_its_recipe(tmp_path: Path) -> None:
    kernel = Builder(tmp_path, "kernel")
    for place in ("arch/x86/kernel", "arch/x86/boot/compressed"):
        (kernel.tree / place).mkdir(parents=True)
        (kernel.tree / place / "vmlinux.lds").write_text(SCRIPT)
    assert kernel.why(0) == "CMD linked no vmlinux in its work tree with an ld from PATH"
    command = (
        "gcc -o bench main.o work.o fill.o && ar rcsT all.a main.o work.o fill.o"
        " && ld -r -o small.o work.o fill.o"
        " && for i in kernel boot/compressed; do ld -e main -o arch/x86/$i/vmlinux"
        " --script=./arch/x86/$i/vmlinux.lds --whole-archive all.a; done"
    )
    images = []
    for layout in (0, 1):
        done = kernel.run(command, layout)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert kernel.why(layout) is None
        names = ("arch/x86/kernel/vmlinux", "arch/x86/boot/compressed/vmlinux", "bench")
        images.append([kernel.addresses(name) for name in names])
    assert [one == other for one, other in zip(*images, strict=True)] == [False, True, True]


@pytest.mark.parametrize(
    ("words", "output", "script", "partial"),
    [
        (["-o", "a", "x.o"], "a", None, False),
        (["-oa", "x.o", "-T", "s.lds"], "a", "s.lds", False),
        (["--output=a", "-r", "x.o", "--script=s.lds"], "a", "s.lds", True),
        (["--output", "a", "-o", "b"], "b", None, False),
        (["--omagic", "-version", "@missing", "-o"], None, None, False),
    ],
)
def test_the_options_of_ld_are_read(
    words: Sequence[str], output: str | None, script: str | None, partial: bool
) -> None:
    link = read_link(words)
    assert (link.output, link.script, link.partial) == (output, script, partial)


def test_a_map_names_code_that_is_in_the_image() -> None:
    text = (
        " .text          0x0000000000000000       0x10 gone.o\n"
        " .text          0x0000000000001050       0x22 /usr/lib/Scrt1.o\n"
        " .text.unlikely.a_long_name\n                0x0000000000001072        0x5 l.a(m.o)\n"
        " .text          0x0000000000001080        0x0 empty.o\n"
    )
    assert placed_code(text) == {
        (".text", "/usr/lib/Scrt1.o"): 0x1050,
        (".text.unlikely.a_long_name", "l.a:m.o"): 0x1072,
    }
