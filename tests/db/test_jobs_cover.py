"""`swingbot jobs cover`: from counted boots to what runs the code of a commit or a file, on the
service's host and from elsewhere in the same bytes, for those who may read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from swingbot.app.cli import main
from swingbot.core.access.roles import Role, ref_name
from swingbot.core.model.records import NewComparison, base_and_head
from swingbot.core.patchset.bundle import read_bundle
from tests.database import fresh
from tests.db.test_remote import elsewhere, here
from tests.db.test_remote_commits import bundle_of
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.postgres import Server
from tests.served import Served, served
from tests.table_requests import compare

TEXT = "int do_fault(void)\n{\n\treturn 0;\n}\n\nint gone(void)\n{\n\treturn 1;\n}\n"
UNKNOWN = "f" * 40


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
    a_commit(brain, "mm/memory.c", TEXT)
    commit = a_commit(brain, "mm/memory.c", TEXT.replace("return", "return -"))
    brain.lab.tools.git.fetch_branch("fake", str(brain.repo), "main")
    shown = cover(environment, commit[:12])
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    assert lines[0].startswith(f"commit {commit[:12]}: 1 function in kernel ")
    assert lines[2].split()[0] == job and lines[2].endswith("32 768")
    assert lines[3].startswith("gone in mm/memory.c is not a function of the kernel ")
    called = TEXT.replace("return 0", "return gone()")
    a_commit(brain, "mm/memory.c", called)
    changed = called.replace("return 1", "return 2")
    inlined = a_commit(brain, "mm/memory.c", changed)
    comment = a_commit(brain, "mm/memory.c", f"/* faults */\n{changed}")
    brain.lab.tools.git.fetch_branch("fake", str(brain.repo), "main")
    lines = cover(environment, inlined).stdout.splitlines()
    assert lines[2].split()[0] == job and lines[2].endswith("32 768")
    assert lines[3].startswith("gone in mm/memory.c is inlined in the kernel ")
    assert lines[3].endswith("; looked up instead: do_fault")
    said = cover(environment, comment).stdout
    assert "mm/memory.c changes outside of its functions only" in said and "CALLS" not in said


def test_a_function_that_no_job_runs_is_named(brain: Brain, environment: dict[str, str]) -> None:
    brain.fake.calls = b"calls\n0 do_fault\nend\n"
    count_calls(brain)
    assert "run by none of these jobs (1): do_fault" in cover(environment, "mm/memory.c").stdout


def test_what_cannot_be_answered_is_said(brain: Brain, environment: dict[str, str]) -> None:
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    brain.watch(base)
    refused = cover(environment, "mm/memory.c")
    assert refused.exit_code == 2
    assert (
        "no boot of tree fake counted calls yet; to count those of all its jobs: swingbot"
        in refused.stderr
    )


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


Cover = Callable[[str, str], tuple[int, str]]


@pytest.fixture(scope="module")
def web(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place = tmp_path_factory.mktemp("cover")
    reading = {"SWINGBOT_WEB_READ": "token", "SWINGBOT_WEB_RATE": "0"}
    with fresh(pg, template) as url, served(url, place, filled=False, **reading) as running:
        yield running


@pytest.fixture(scope="module")
def counted(web: Served, tmp_path_factory: pytest.TempPathFactory) -> tuple[Brain, str, str]:
    """A lab that counted calls, a commit of its branch, and one that Ada sent."""
    linux = tmp_path_factory.mktemp("repository") / "linux"
    make_fakelinux(linux, [])
    brain = make_brain(web.settings, web.engine, linux)
    count_calls(brain)
    a_commit(brain, "mm/memory.c", TEXT)
    own = a_commit(brain, "mm/memory.c", TEXT.replace("return", "return -"))
    brain.poll()
    brain.git("checkout", "-q", "-b", "aside")
    sent = a_commit(brain, "mm/memory.c", TEXT.replace("return 0", "return 5"))
    with brain.lab.tools.git.quarantine() as aside:
        aside.unbundle(read_bundle(bundle_of(linux, f"{own}..aside")), ref_name("Ada"))
        aside.admit()
    brain.git("checkout", "-q", "main")
    return brain, own, sent


@pytest.fixture(scope="module")
def ask(web: Served, tmp_path_factory: pytest.TempPathFactory) -> Cover:
    """Status and output of the command for a person, or on the host."""
    place = tmp_path_factory.mktemp("clients")
    groups = {"Pat": ("vm-icount",), "Zoe": ("nothing",)}
    roles = {"Opal": Role.OPERATOR}
    tokens = {
        who: web.token(who, roles.get(who, Role.READER), groups.get(who))["Authorization"].split()[
            1
        ]
        for who in ("Ada", "Bob", "Opal", "Pat", "Zoe")
    }

    def ask(who: str, words: str) -> tuple[int, str]:
        away = elsewhere(web, place, SWINGBOT_TOKEN=tokens.get(who, ""))
        done = cover(here(web) if who == "host" else away, *words.split())
        return done.exit_code, done.output

    return ask


def test_from_elsewhere_it_is_the_same(counted: tuple[Brain, str, str], ask: Cover) -> None:
    _, own, sent = counted
    for words in ("mm/memory.c", "mm/memory.c --json", own[:12], f"{own} --json", "mm/memry.c"):
        on_host = ask("host", words)
        assert on_host[0] == (2 if "memry" in words else 0), on_host
        assert ask("Bob", words) == ask("Opal", words) == on_host, words
    assert ask("Opal", sent) == ask("host", sent)
    assert ask("Pat", "mm/memory.c") == ask("host", "mm/memory.c")


def test_a_commit_of_others_is_one_that_does_not_exist(
    counted: tuple[Brain, str, str], ask: Cover
) -> None:
    _, own, sent = counted
    status, shown = ask("Ada", sent)
    assert status == 0 and "1 function in kernel" in shown, shown
    status, refused = ask("Bob", sent)
    assert status == 2 and "has no commit, tag or branch" in refused
    assert refused.replace(sent, UNKNOWN) == ask("Bob", UNKNOWN)[1] == ask("host", UNKNOWN)[1]
    for commit in (own, sent, UNKNOWN):
        status, refused = ask("Pat", commit)
        assert status == 2 and "only for testboxes of some groups: name a source" in refused


def test_what_is_asked_for_is_a_tree_and_its_code(web: Served) -> None:
    token = web.token("Eve", Role.READER)
    for query in ("", "?tree=fake", "?tree=fake&code=a.c&x=1", f"?tree=fake&code={'a' * 301}.c"):
        assert web.client.get(f"/cover.json{query}", headers=token).status_code == 400, query


def test_boots_that_a_reader_may_not_see_counted_nothing(
    web: Served, counted: tuple[Brain, str, str], ask: Cover
) -> None:
    assert "fake" in ask("Zoe", "mm/memory.c")[1] and ask("Zoe", "mm/memory.c")[0] == 2
    for to, seen in ((["Ada"], 2), (None, 0)):
        with web.engine.begin() as conn:
            conn.execute(sa.text("UPDATE comparison SET private_to = :to"), {"to": to})
            conn.execute(sa.text("UPDATE variant SET origin = 'request'"))
        assert [ask(who, "mm/memory.c")[0] for who in ("Ada", "Bob")] == [0, seen]
