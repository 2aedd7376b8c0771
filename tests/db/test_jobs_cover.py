"""`swingbot jobs cover`: from counted boots to what runs the code of a commit or a file."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from swingbot.app.cli import main
from swingbot.core.model.records import NewComparison, base_and_head
from tests.fakelinux import FakeCommit, add_commits
from tests.fakes.brain import Brain
from tests.table_requests import compare


def cover(environment: dict[str, str], *words: str) -> Result:
    return CliRunner().invoke(main, ["jobs", "cover", *words, "--tree", "fake"], env=environment)


def a_commit(brain: Brain, path: str, text: str) -> str:
    """Commit a file of the tree."""
    file = brain.repo / path
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    brain.git("add", path)
    brain.git("commit", "-q", "-m", path)
    return brain.git("rev-parse", "HEAD")


def count_calls(brain: Brain) -> str:
    """Measure two kernels, and count the calls of one; returns the unit job."""
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    brain.watch(base)
    (head,) = add_commits(brain.repo, [FakeCommit(speed=90)])
    number = compare(brain.lab, base, head, boots=3)
    brain.run()
    with brain.lab.transaction("count") as tx:
        comparison = tx.comparisons.get(number)
        assert comparison is not None
        testbox, spec = comparison.parts[0]
        (job,) = tx.specs.get(spec)
        counting = type(job)(
            name=job.name,
            program=job.program,
            params=job.params,
            runs=1,
            monitors=("function-profile",),
        )
        tx.comparisons.add(
            NewComparison(
                kind="gate",
                tree=comparison.tree,
                arms=base_and_head(comparison.base, comparison.head),
                boots=1,
                parts=[(testbox, tx.specs.add([counting]))],
                first_k=300,
            )
        )
    brain.run()
    return str(job.name)


def test_what_runs_a_file_and_a_commit(brain: Brain, environment: dict[str, str]) -> None:
    job = count_calls(brain)
    found: dict[str, Any] = json.loads(cover(environment, "mm/memory.c", "--json").stdout)
    assert [(one["unit_job"], one["functions"], one["calls"]) for one in found["jobs"]] == [
        (job, 1, 32768.0)
    ]
    text = "int do_fault(void)\n{\n\treturn 0;\n}\n\nint gone(void)\n{\n\treturn 1;\n}\n"
    a_commit(brain, "mm/memory.c", text)
    commit = a_commit(brain, "mm/memory.c", text.replace("return", "return -"))
    brain.lab.tools.git.fetch_branch("fake", str(brain.repo), "main")
    shown = cover(environment, commit[:12])
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    assert lines[0].startswith(f"commit {commit[:12]}: 1 function in kernel ")
    assert lines[2].split()[0] == job and lines[2].endswith("32 768")
    assert lines[3].startswith("gone in mm/memory.c is not a function of the kernel ")


def test_a_function_that_no_job_runs_is_named(brain: Brain, environment: dict[str, str]) -> None:
    brain.fake.calls = b"calls\n0 do_fault\nend\n"
    count_calls(brain)
    assert "run by none of these jobs (1): do_fault" in cover(environment, "mm/memory.c").stdout


def test_what_cannot_be_answered_is_said(brain: Brain, environment: dict[str, str]) -> None:
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    brain.watch(base)
    refused = cover(environment, "mm/memory.c")
    assert refused.exit_code == 2
    assert "no boot of tree fake counted calls yet: measure a kernel with" in refused.stderr


def test_names_that_are_not_in_the_tree(brain: Brain, environment: dict[str, str]) -> None:
    count_calls(brain)
    readme = a_commit(brain, "README", "no code\n")
    brain.lab.tools.git.fetch_branch("fake", str(brain.repo), "main")
    for target, said in (
        ("mm/memry.c", "is included by another file; did you mean 'mm/memory.c'?"),
        ("/etc/passwd.c", "/etc/passwd.c is outside the kernel's tree"),
        ("mm/../../x.c", "is outside the kernel's tree"),
        ("include/linux/mm.h", "has no object of its own: only .c and .S files have"),
        ("no-such-branch", "no-such-branch"),
        ("a\nb.c", "neither control characters nor line ends"),
        (readme, "changes no .c, .S or .h file: no code to be run"),
    ):
        refused = cover(environment, target)
        assert refused.exit_code == 2 and said in refused.stderr, (target, refused.output)
    unknown = CliRunner().invoke(
        main, ["jobs", "cover", "mm/a.c", "--tree", "fak"], env=environment
    )
    assert unknown.exit_code == 2 and "did you mean 'fake'?" in unknown.stderr


def test_a_service_elsewhere_is_refused() -> None:
    away = {"SWINGBOT_URL": "http://127.0.0.1:9", "SWINGBOT_TOKEN": "t"}
    refused = CliRunner().invoke(main, ["jobs", "cover", "mm/a.c", "--tree", "fake"], env=away)
    assert refused.exit_code == 2
    assert "works on the service's own host only" in refused.stderr
