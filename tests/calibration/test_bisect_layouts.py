"""`swingbot bisect run --layouts` on a C program that is slow where a function lies badly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from swingbot.app.commands.bisect_run import run
from tests.noisy_repo import git

MAKEFILE = """\
bench: main.o fill.o work.o
\t$(CC) $(FLAGS) -o $@ $^
%.o: %.c
\t$(CC) -O2 -c -o $@ $<
"""
# The cost of work.c, and 4 % more where work() begins at 48 modulo 64.
CMD = """
make -s >&2
at=$((0x$(nm bench | sed -n 's/ T work$//p')))
cost=$(sed -n 's/.*cost = \\(.*\\);/\\1/p' work.c)
echo $((cost * (at % 64 == 48 ? 104 : 100) + SWINGBOT_BOOT * 7 % 300))
"""


class Program:
    """A commit for each pair of the number of functions before work() and of its cost."""

    def __init__(self, place: Path, commits: list[tuple[int, int]]) -> None:
        self.repo = place
        git(place, "init", "-q", "-b", "main")
        (place / "Makefile").write_text(MAKEFILE)
        (place / ".gitignore").write_text("*.o\nbench\n")
        (place / "main.c").write_text("int work(int); int main(void) { return work(3) & 1; }\n")
        for i, (functions, cost) in enumerate(commits):
            lines = [f"int f{n}(int x) {{ return x + {n}; }}\n" for n in range(functions)]
            (place / "fill.c").write_text(f"/* commit {i} */\n" + "".join(lines))
            work = f"int cost = {cost};\nint work(int x) {{ return x * {cost}; }}\n"
            (place / "work.c").write_text(work)
            git(place, "add", ".")
            git(place, "commit", "-q", "-m", f"commit {i}")
        self.ids = git(place, "rev-list", "--reverse", "main").split()

    def bisect(
        self, *options: str, cmd: str = CMD, restart: bool = True
    ) -> tuple[dict[str, Any], str]:
        """The answer, and the progress."""
        again = ["--restart"] if restart else []
        ends = f"{self.ids[0]}..main"
        words = [ends, "--repo", str(self.repo), "--checkout", "--json", *again, *options]
        done = CliRunner().invoke(run, [*words, "--", "sh", "-ec", cmd])
        assert done.stdout, done.stderr
        return dict(json.loads(done.stdout)), done.stderr


def odd_at_the_bad_end(place: Path) -> Program:
    """Nothing changes the code that is measured; behind two functions it lies badly."""
    return Program(place, [*((i % 2, 1000) for i in range(7)), (2, 1000)])


def test_without_a_recipe_an_odd_image_stays_a_suspect(tmp_path: Path) -> None:
    facts, told = odd_at_the_bad_end(tmp_path).bisect()
    assert "images cannot be varied without --layouts" in told
    assert (facts["status"], facts["culprit"]) == ("inconclusive", None)
    assert facts["suspect"]["commit"].startswith(git(tmp_path, "rev-parse", "main"))
    assert "(--layouts)" in facts["suspect"]["settled_by"]


def test_with_a_recipe_an_odd_image_is_recognised(tmp_path: Path) -> None:
    facts, told = odd_at_the_bad_end(tmp_path).bisect("--layouts", "program")
    assert "images cannot be varied" not in told
    assert " layout 1 " in told
    assert facts["culprits"] == [] and facts["suspect"] is None, facts["reason"]


def test_a_change_of_code_is_named_after_a_check_in_other_layouts(tmp_path: Path) -> None:
    program = Program(tmp_path, [(i % 2, 1000 if i < 4 else 950) for i in range(7)])
    facts, _ = program.bisect("--layouts", "program")
    assert facts["culprit"]["commit"] == program.ids[4]
    assert facts["layout_checked"] is True
    assert facts["change_pct"] == pytest.approx(-5.0, abs=0.5)


@pytest.mark.parametrize(
    ("cmd", "why"),
    [
        (
            "echo $(($(grep -o '=.[0-9]*' work.c | tr -dc 0-9) * 100 + SWINGBOT_BOOT * 7 % 300))",
            "CMD linked no program in its work tree with an ld from PATH",
        ),
        (f"export FLAGS=-fuse-ld=gold\n{CMD}", "bench: ld.gold is not GNU ld"),
        (
            "kept=$SWINGBOT_COMMIT.bench; make() { [ -x $kept ] || { command make -s; mv bench"
            f" $kept; }} >&2; cp $kept bench; }}\n{CMD}",
            "CMD did not link bench again",
        ),
    ],
)
def test_a_recipe_without_effect_is_said_and_the_search_goes_on_as_without(
    tmp_path: Path, cmd: str, why: str
) -> None:
    program = Program(tmp_path, [*((i % 2, 1000) for i in range(7)), (1, 950)])
    cmd = cmd.replace("? 104", "? 100")  # a step that no layout hides
    facts, told = program.bisect("--layouts", "program", cmd=cmd)
    assert told.count(f"layouts cannot be varied, so the search goes on without: {why}") == 1
    assert f"layouts could not be varied: {why}" in facts["reason"]
    assert facts["culprits"] == []
    assert facts["suspect"]["commit"] == program.ids[-1]
    again, told = program.bisect("--layouts", "program", cmd=cmd, restart=False)
    assert "cannot be varied" not in told  # said once
    assert {k: again[k] for k in ("suspect", "reason", "boots")} == {
        k: facts[k] for k in ("suspect", "reason", "boots")
    }


def test_boots_in_layouts_of_another_recipe_do_not_count(tmp_path: Path) -> None:
    program = Program(tmp_path, [(i % 2, 1000 if i < 4 else 950) for i in range(7)])
    cmd = CMD.replace("make -s", "make -s -B")
    words = [f"{program.ids[0]}..main", "--repo", str(tmp_path), "--checkout", "--json"]

    def goes_on(*options: str) -> Result:
        return CliRunner().invoke(run, [*words, *options, "--", "sh", "-ec", cmd])

    assert goes_on("--boots-max", "4").exit_code == 0  # no other image yet
    assert json.loads(goes_on("--layouts", "program").stdout)["layout_checked"] is True
    again = goes_on("--layouts", "program")
    assert json.loads(again.stdout)["layout_checked"] is True and "resuming" in again.stderr
    other = goes_on("--layouts", "kernel")
    assert other.exit_code == 2 and "other images by --layouts program" in other.stderr
    state = tmp_path / ".git" / "swingbot"
    assert {path.name for path in state.glob("*/*")} == {"boots", "log"}


@pytest.mark.parametrize("again", [False, True])
def test_a_cmd_whose_image_stays_the_same_has_no_layouts(tmp_path: Path, again: bool) -> None:
    """make does not compile again because a flag is another one."""
    program = Program(tmp_path, [*((i % 2, 1000) for i in range(7)), (1, 950)])
    flags = "gcc -falign-functions=$((16 << SWINGBOT_LAYOUT % 4))"
    cmd = CMD.replace("make -s", f'make -s {"-B" if again else ""} CC="{flags}"')
    cmd = cmd.replace("? 104", "? 100")
    facts, told = program.bisect("--layouts", "cmd", "--image", "bench", cmd=cmd)
    why = "the image of layout 1 is that of layout 0"
    assert (why in told) == (why in facts["reason"]) == (not again)
    if again:
        assert facts["culprit"]["commit"] == program.ids[-1] and facts["layout_checked"]
    else:
        assert facts["suspect"]["commit"] == program.ids[-1] and not facts["culprits"]


@pytest.mark.parametrize("cmd", ["true", "mkdir image", "mkfifo image"])
def test_an_image_that_cmd_does_not_build_is_refused(tmp_path: Path, cmd: str) -> None:
    program = Program(tmp_path, [(0, 1000), (0, 900)])
    words = [f"{program.ids[0]}..main", "--repo", str(tmp_path), "--image", "image"]
    done = CliRunner().invoke(run, [*words, "--checkout", "--", "sh", "-c", f"{cmd}; echo 1"])
    assert done.exit_code == 1
    assert "--image image is no file after CMD" in done.stderr


def test_a_recipe_needs_a_work_tree_of_our_own(tmp_path: Path) -> None:
    program = Program(tmp_path, [(0, 1000), (0, 900)])
    words = [f"{program.ids[0]}..main", "--repo", str(tmp_path), "--layouts", "kernel"]
    done = CliRunner().invoke(run, [*words, "--", "echo", "1"])
    assert done.exit_code == 2
    assert "--layouts kernel needs --checkout" in done.stderr
