"""Which functions a diff changes, and which jobs ran them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from swingbot.core.proof.cover import (
    LISTED,
    ChangedSource,
    CodeFunction,
    CountedRun,
    by_job,
    changed_sources,
    covered,
    written,
)
from swingbot.core.proof.executed import hooked
from swingbot_jobs import limits
from swingbot_jobs.kernel_diff import SymbolRecord, object_row, read_record, write_record

RUN = Path(__file__).parents[2] / "jobs" / "programs" / "function-profile" / "run"
BEFORE = """\
#include <linux/mm.h>
#define TWICE(x) (2 * (x))
static int limit = 3;

static unsigned long
shrink_list(struct list *list,
		int nr)
{
	int i = 0;
out:
	return i + nr;
}

int kept(void)
{
	return 1;
}
EXPORT_SYMBOL(kept);

SYSCALL_DEFINE2(swapon, const char __user *, name, int, flags)
{
	return flags;
}
"""


def changed(tmp_path: Path, old: str, new: str) -> set[str]:
    return compared(tmp_path, old, new).functions


def compared(tmp_path: Path, old: str, new: str) -> ChangedSource:
    """What differs of mm/a.c, by git's diff of two files."""
    for side, text in (("a", old), ("b", new)):
        (tmp_path / side / "mm").mkdir(parents=True)
        (tmp_path / side / "mm" / "a.c").write_text(text)
    diff = ["git", "diff", "--no-index", "--no-prefix", "--unified=1000000", "a", "b"]
    out = subprocess.run(diff, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=False).stdout
    return changed_sources(out)["mm/a.c"]


@pytest.mark.parametrize(
    ("old", "new", "functions"),
    [
        ("return i + nr;", "return i;", {"shrink_list"}),  # behind a label
        ("\t\tint nr)", "\t\tint nr, int more)", {"shrink_list"}),
        ("return 1;", "return 2;", {"kept"}),
        ("	return flags;", "	return -flags;", {"__do_sys_swapon"}),
        ("limit = 3", "limit = 4", set()),
        ("EXPORT_SYMBOL(kept);", "EXPORT_SYMBOL_GPL(kept);", set()),
        ("(2 * (x))", "(x + x)", set()),
        ("#include <linux/mm.h>\n", "", set()),
        ("int kept(void)\n{\n	return 1;\n}\nEXPORT_SYMBOL(kept);\n", "", {"kept"}),
    ],
)
def test_a_change_belongs_to_the_function_around_it(
    tmp_path: Path, old: str, new: str, functions: set[str]
) -> None:
    assert BEFORE.count(old) == 1
    assert changed(tmp_path, BEFORE, BEFORE.replace(old, new)) == functions


def test_a_new_function_is_one_that_changed(tmp_path: Path) -> None:
    assert changed(tmp_path, BEFORE, BEFORE + "\nvoid added(void)\n{\n	kept();\n}\n") == {
        "added"
    }


def test_a_label_begins_no_function(tmp_path: Path) -> None:
    """As in shrink_folio_list(): git's own context begins at the label before."""
    body = "\n".join(f"\tput({number});" for number in range(9))
    text = f"int scan(void)\n{{\n{body}\nkeep_locked:\n{body}\nkeep:\n{body}\n\treturn 0;\n}}\n"
    assert changed(tmp_path, text, text.replace("return 0", "return 1")) == {"scan"}


INLINED = """\
static bool check(int nr)
{
	return nr;
}

static int walk(int nr)
{
	/* scan() is not called */
	return check(nr);
}

int scan(void)
{
	return walk (1);
}

int idle(void)
{
	int check = 0;
	return check;
}

SYSCALL_DEFINE1(brk, int, nr)
{
	return check(nr);
}
"""


def test_of_an_inlined_function_what_calls_it_is_looked_up(tmp_path: Path) -> None:
    source = compared(tmp_path, INLINED, INLINED.replace("return nr;", "return !nr;"))
    assert source.functions == {"check"}
    code = {"scan", "idle", "__x64_sys_brk", "__x64_sys_mbrk"}
    assert source.in_code("check", code) == {"scan"}
    assert source.in_code("check", code | {"walk", "__do_sys_brk"}) == {"walk", "__do_sys_brk"}
    assert source.in_code("__do_sys_brk", code) == {"__x64_sys_brk"}
    assert source.in_code("idle", {"scan"}) == set()


def f(name: str, *, alike: bool = False, hooked: bool = True) -> CodeFunction:
    return CodeFunction(name=name, object="mm/a.o", alike=alike, hooked=hooked)


def a_run(
    calls: dict[str, float], *asked: str, job: str = "swap", counted: int = 2, boot: int = 1
) -> CountedRun:
    return CountedRun(
        boot=boot,
        unit_job=job,
        testbox="vm-mm",
        asked=frozenset(asked),
        counted=counted,
        calls=calls,
    )


@pytest.mark.parametrize(
    ("function", "run", "seen", "calls"),
    [
        (f("scan"), a_run({"scan": 7.0}), "counted", 7.0),
        (f("scan"), a_run({}), "counted", 0.0),  # the list has all that was called
        (f("scan"), a_run({}, counted=LISTED), "not asked", None),  # it may have been cut off
        (f("scan"), a_run({"scan": 7.0}, counted=LISTED), "counted", 7.0),
        (f("scan", hooked=False), a_run({}), "no hook", None),
        (f("show", alike=True), a_run({"show": 7.0}), "namesakes", None),
        (f("scan"), a_run({"scan": 0.0}, "scan"), "counted", 0.0),
        (f("scan"), a_run({}, "scan"), "no hook", None),
        (f("scan"), a_run({"other": 1.0}, "other"), "not asked", None),
    ],
)
def test_only_a_function_that_was_counted_can_be_one_that_nothing_runs(
    function: CodeFunction, run: CountedRun, seen: str, calls: float | None
) -> None:
    (found,) = covered([function], [run])
    assert found.seen == seen
    assert found.calls.get(("swap", "vm-mm")) == calls


def test_what_a_tracepoint_generates_is_not_written() -> None:
    """As mm/vmscan.o has it."""
    made = ("__traceiter_{}", "__SCT__tp_func_{}", "perf_trace_{}", "trace_event_raw_event_{}")
    for name in (*made, "trace_raw_output_{}"):
        assert not written(f(name.format("mm_shrink_slab_end"))), name
    assert written(f("shrink_slab")) and written(f("trace_parser_get_init"))


def test_of_a_job_the_latest_run_that_counted_a_function_is_right() -> None:
    runs = [
        a_run({"other": 1.0}, "other", boot=3),
        a_run({"scan": 5.0}, boot=2),
        a_run({"scan": 9.0}, boot=1),
        a_run({}, job="fault"),
    ]
    found = covered([f("scan"), f("idle")], runs)
    assert found[0].calls == {("swap", "vm-mm"): 5.0, ("fault", "vm-mm"): 0.0}
    assert list(by_job(found)) == [(("swap", "vm-mm"), 1, 5.0), (("fault", "vm-mm"), 0, 0.0)]


def test_what_has_a_hook_calls_it_in_one_of_its_parts() -> None:
    def part(name: str, *uses: str) -> SymbolRecord:
        return SymbolRecord(name, 10, "aa", "", uses)

    parts = [part("scan", "__fentry__", "x"), part("scan.cold"), part("idle", "x"), part("(.text)")]
    sizes = {"text": 1, "data": 0, "bss": 0}
    record = read_record(
        write_record(
            compiler="gcc",
            flags=[],
            sizes=sizes,
            symbols={},
            objects={"mm/a.o": object_row("sha", sizes, parts, [])},
        )
    )
    assert hooked(record, "mm/a.o") == {"scan": True, "idle": False}


def test_a_run_lists_as_many_functions_as_can_be_kept() -> None:
    assert f"echo {LISTED})" in RUN.read_text()
    assert LISTED < limits.RUN_METRICS - 50  # beside what the benchmark itself reports
