"""Reading and steering a bisection: log and replay, skips, hints, resuming, merges. On a real
database and real git repositories."""

from __future__ import annotations

import dataclasses
import json
import select
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from starlette.testclient import TestClient

from swingbot.app.cli import main
from swingbot.app.loop import run
from swingbot.app.settings import load
from swingbot.app.wiring import make_lab, sync_testboxes
from swingbot.service.bisect.advance import advance_bisections
from swingbot.service.bisect.cancel import cancel_bisection
from swingbot.service.bisect.start import BisectionRequest, start_bisection
from swingbot.service.bisect.steer import hint, resume, skip
from swingbot.service.faults import Faults
from swingbot.service.lab.set_testboxes import drain
from swingbot.service.lab.set_testboxes import resume as let_work
from swingbot.service.ports import Lab, RequestError
from swingbot.service.tick import tick
from swingbot.web.app import make_app
from swingbot_db import read
from swingbot_db.engine import make_engine
from tests import scenario
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.loop import METRIC
from tests.fakes.mail import brain_environment, running_smtpd


@pytest.fixture
def brain(
    tmp_path: Path, db_url: str, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Brain]:
    environment = brain_environment(tmp_path / "state", db_url)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)  # for the command line
    monkeypatch.setenv("SWINGBOT_USER", "ada")
    settings = load(environ=environment)
    make_fakelinux(tmp_path / "linux", [])
    with running_smtpd(settings):
        yield make_brain(settings, engine, tmp_path / "linux")


def plain(n: int, title: str = "") -> list[FakeCommit]:
    return [FakeCommit(title=f"{title} {i}" if title else None) for i in range(n)]


def swingbot(*words: str, input: str | None = None) -> Result:
    return CliRunner().invoke(main, words, input=input)


def asked(brain: Brain, *commits: FakeCommit) -> tuple[int, list[str]]:
    """A bisection by hand over these commits, and their ids (base first)."""
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    brain.watch(base)
    brain.run()
    made = add_commits(brain.repo, commits)
    number = start_bisection(
        brain.lab,
        BisectionRequest(
            tree="fake",
            good=base,
            bad=made[-1],
            job_files=[],
            overrides={},
            metric=METRIC,
            testbox=None,
        ),
    )
    return number, [base, *made]


def rounds(brain: Brain, n: int) -> None:
    """Some rounds of brain and lab, which leave the bisection running."""
    for _ in range(n):
        tick(brain.lab)
        brain.fake.work()


def measured(brain: Brain) -> set[str]:
    return {commit for kind, commit, _ in brain.fake.done if kind == "boot"}


def test_a_bisection_whose_testbox_may_not_work_says_what_it_waits_for(brain: Brain) -> None:
    number, _ = asked(brain, *plain(4), FakeCommit(speed=88), *plain(4))
    rounds(brain, 2)
    testbox = brain.facts("b", number)["testbox"]
    drain(brain.lab.transaction, testbox, "its fan is loud")
    tick(brain.lab)
    why = (
        f"testbox {testbox} is drained: its fan is loud; run `swingbot testbox resume {testbox}` "
        f"when it is fit"
    )
    shown = json.loads(swingbot("show", f"b{number}", "--json").output)
    assert (shown["status"], shown["waits"], shown["eta_seconds"]) == ("running", [why], None)
    assert f"waits for a testbox\n  waiting: {why}\n" in swingbot("show", f"b{number}").output
    assert f"open      b{number}  running, waits for a testbox\n" in swingbot("status").output
    page = (
        TestClient(
            make_app(
                brain.settings, brain.engine, read, lambda sha256: brain.settings.artifacts / sha256
            )
        )
        .get(f"/bisection/b{number}")
        .text
    )
    assert "waiting for a testbox" in page
    assert "Waiting: testbox" in page
    let_work(brain.lab.transaction, testbox)
    brain.run()
    assert (brain.facts("b", number)["status"], brain.facts("b", number)["waits"]) == (
        "culprit",
        [],
    )


def test_a_bisection_whose_testbox_has_no_file_any_more_waits_and_keeps_nobody_else_from_working(
    brain: Brain,
) -> None:
    number, ids = asked(brain, *plain(4), FakeCommit(speed=88), *plain(4))
    rounds(brain, 2)
    name = brain.facts("b", number)["testbox"]
    without = brain.without(name)
    sync_testboxes(without)
    tick(without)
    tick(without)
    shown = swingbot("show", f"b{number}").output
    assert (
        f"  waiting: testbox {name} no longer has a file in workers/testboxes; restore the "
        f"file, or `swingbot cancel` the work that waits for it\n"
    ) in shown
    assert name not in without.catalogue.testboxes.present
    assert without.catalogue.testboxes.known(name).name == name
    with pytest.raises(KeyError):
        without.catalogue.testboxes.known("never")
    sync_testboxes(brain.lab)
    brain.run()
    assert brain.facts("b", number)["culprit"]["commit"] == ids[5]


def test_a_bisection_that_cannot_be_read_keeps_nobody_else_from_working(
    brain: Brain, capfd: pytest.CaptureFixture[str]
) -> None:
    other, ids = asked(brain, *plain(4), FakeCommit(speed=88), *plain(4))
    broken = start_bisection(
        brain.lab,
        BisectionRequest(
            tree="fake",
            good=ids[0],
            bad=ids[3],
            job_files=[],
            overrides={},
            metric=METRIC,
            testbox=brain.facts("b", other)["testbox"],
        ),
    )
    with brain.engine.begin() as conn:
        conn.execute(
            sa.text('UPDATE bisection SET terms = \'{"noise": {"sd": 1}}\' WHERE id = :id'),
            {"id": broken},
        )
    for _ in range(200):
        with pytest.raises(
            ExceptionGroup, match=f"^bisection b{broken}: TypeError: .*'sd'"
        ) as failed:
            tick(brain.lab)
        assert len(failed.value.exceptions) == 1
        if brain.facts("b", other)["status"] != "running":
            break
        brain.fake.work()
    assert brain.facts("b", other)["culprit"]["commit"] == ids[5]
    rounds_left = iter((False, False, True))
    run(brain.settings, brain.engine, brain.lab, until=lambda: next(rounds_left))
    assert capfd.readouterr().err.count("| TypeError: ") == 1  # twice the same is logged once
    assert (
        f"the loop's last round failed and is repeated: round: bisection b{broken}: TypeError: "
        in swingbot("status").output
    )
    swingbot("cancel", f"b{broken}")
    tick(brain.lab)


def test_a_round_without_a_database_ends_at_its_first_fault(brain: Brain) -> None:
    away = make_engine("postgresql://none@127.0.0.1:9/nothing")
    with pytest.raises(sa.exc.OperationalError, match="Connection refused"):
        tick(make_lab(brain.settings, away))


def test_a_log_replays_to_the_same_decisions_byte_for_byte(brain: Brain, tmp_path: Path) -> None:
    number, ids = asked(
        brain,
        *plain(4),
        FakeCommit(kind="comment"),
        FakeCommit(kind="broken"),
        FakeCommit(),
        FakeCommit(speed=88),
        *plain(4),
    )
    rounds(brain, 3)
    skip(brain.lab, number, [ids[10]], who="ada", why="hangs\nhere")
    hint(brain.lab, number, [ids[8][:10]], 20.0, who="bob", why=None)
    brain.run()
    assert brain.facts("b", number)["culprit"]["commit"] == ids[8]
    log = swingbot("bisect", "log", f"b{number}")
    assert log.exit_code == 0, log.output
    assert log.output == swingbot("bisect", "log", f"b{number}").output
    for sentence in (
        "ada: skip " + ids[10][:12] + " (hangs here)",
        "bob: hint " + ids[8][:12] + ": 20 times",
        "ended: culprit",
    ):
        assert sentence in log.output
    (tmp_path / "b.log").write_text(log.output)
    (tmp_path / "b.json").write_text(swingbot("bisect", "log", f"b{number}", "--json").output)
    for what in (str(tmp_path / "b.log"), str(tmp_path / "b.json"), f"b{number}"):
        done = swingbot("bisect", "replay", what)
        assert (done.exit_code, "every decision is the same" in done.output) == (0, True), (
            done.output
        )
    assert swingbot("bisect", "replay", "-", input=log.output).exit_code == 0


def test_a_replay_names_the_first_step_that_is_decided_differently(
    brain: Brain, tmp_path: Path
) -> None:
    number, _ = asked(brain, *plain(3), FakeCommit(speed=88), *plain(3))
    brain.run()
    lines = swingbot("bisect", "log", f"b{number}", "--json").output.splitlines()
    steps = [i for i, line in enumerate(lines) if '"step":' in line]
    changed = json.loads(lines[steps[2]])
    changed["action"]["points"] = [9]
    lines[steps[2]] = json.dumps(changed)
    (tmp_path / "b.log").write_text("\n".join(lines))
    done = swingbot("bisect", "replay", str(tmp_path / "b.log"))
    assert done.exit_code == 1
    assert "step 3 of" in done.output and "[9]" in done.output
    replayed = json.loads(swingbot("bisect", "replay", str(tmp_path / "b.log"), "--json").output)
    assert (replayed["same"], replayed["difference"]["step"]) == (False, 3)
    with brain.engine.begin() as conn:
        conn.execute(sa.text("UPDATE bisection_step SET engine = '0'"))
    explained = swingbot("bisect", "explain", f"b{number}")
    assert explained.exit_code == 0 and "conclude culprit" in explained.output
    assert "This step was decided by engine 0; this is engine" in explained.output
    assert swingbot("bisect", "replay", f"b{number}").exit_code == 3


def test_advice_wakes_the_loop(brain: Brain) -> None:
    number, ids = asked(brain, *plain(3), FakeCommit(speed=88), *plain(4))
    with brain.engine.connect() as conn:
        raw = conn.connection.driver_connection
        assert raw is not None
        raw.set_isolation_level(0)
        with raw.cursor() as cursor:
            cursor.execute("LISTEN swingbot")
        skip(brain.lab, number, [ids[2]], who="ada", why=None)
        assert select.select([raw], [], [], 30)[0], "no notification came"
        raw.poll()
        assert [n.payload for n in raw.notifies] == ["bisection_steer"]


REFUSED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("skip", "b1", "0123456789"), "0123456789"),
    (("skip", "b9", "tip"), "b9 does not exist"),
    (("skip", "c1", "tip"), "is the id of a comparison"),
    (("skip", "b1", "GOOD"), "is the good end"),
    (("skip", "b1", "BAD"), "is the bad end"),
    (("skip", "b1", "BAD..GOOD"), "does not come before"),
    (("skip", "b1", "--undo", "SECOND"), "none of these commits is skipped in b1"),
    (("skip", "b1", "nosuch"), "nosuch"),
    (("hint", "b1", "SECOND", "--factor", "0"), "between 0.001 and 1000"),
    (("hint", "b1", "SECOND", "--factor", "nan"), "between 0.001 and 1000"),
    (("hint", "b1", "GOOD"), "is the good end"),
    (("hint", "b1", "SECOND", "--why", "x" * 501), "--why is longer"),
    (("resume", "b1", "--boots", "10"), "b1 is running"),
    (("resume", "b1", "--boots", "0"), "--boots must be between 1 and 10000"),
    (("replay", "b1"), "no recorded steps"),
    (("replay", "README.md"), "not JSON"),
    (("log", "b77"), "b77 does not exist"),
)


def test_advice_that_makes_no_sense_is_refused_in_one_sentence(brain: Brain) -> None:
    _, ids = asked(brain, *plain(3))
    names = {"GOOD": ids[0], "SECOND": ids[2], "BAD": ids[-1]}
    for given, sentence in REFUSED:
        words = list(given)
        for name, commit in names.items():
            words = [word.replace(name, commit) for word in words]
        done = swingbot("bisect", *words)
        assert done.exit_code == 2, (given, done.output)
        assert sentence in done.output, (given, done.output)
        assert len(done.output.strip().splitlines()) == 1, (given, done.output)
    assert brain.count("bisection_steer") == 0


def test_a_bisection_that_is_over_takes_no_advice_but_goes_on_with_more_boots(brain: Brain) -> None:
    number, ids = asked(brain, *plain(6), FakeCommit(speed=88), *plain(5))
    brain.lab = with_budget(brain, 5)
    brain.run()
    assert brain.facts("b", number)["status"] == "inconclusive"
    with pytest.raises(RequestError, match=f"resume b{number}"):
        skip(brain.lab, number, [ids[2]], who="ada", why=None)
    before = brain.count("observation")
    assert resume(brain.lab, number, 40, who="ada", why="worth it") == before + 40
    brain.run()
    found = brain.facts("b", number)
    assert found["culprit"]["commit"] == ids[7]
    with brain.lab.transaction("look") as tx:
        assert [steer.act for steer in tx.steering.all(number)] == ["resume"]
        assert len(tx.bisections.observations(number)) > before
    assert swingbot("bisect", "replay", f"b{number}").exit_code == 0
    assert swingbot("bisect", "resume", f"b{number}", "--boots", "3").exit_code == 2


def with_budget(brain: Brain, boots: int) -> Lab:
    return dataclasses.replace(
        brain.lab, settings=dataclasses.replace(brain.lab.settings, max_boots=boots)
    )


def test_a_bisection_from_before_journals_goes_on_with_one_that_replays(
    brain: Brain, conn: sa.Connection
) -> None:
    lab = scenario.a_lab(conn)
    old, running = f"b{lab.bisection}", f"b{lab.running_bisection}"
    assert "no recorded steps" in swingbot("bisect", "replay", old).output
    assert swingbot("bisect", "log", old).output.count("\n") > 20
    assert swingbot("bisect", "visualize", old, "--ascii", "--width", "90").exit_code == 0
    advance_bisections(brain.lab, Faults(brain.lab.transaction))
    log = swingbot("bisect", "log", running).output
    assert log.count("# result: ") == 4  # at once: what was there when the journal began
    done = swingbot("bisect", "replay", running)
    assert (done.exit_code, done.output[:16]) == (0, "replayed 1 step:"), done.output
    assert "bits of uncertainty" in swingbot("bisect", "explain", running).output


# --- merges ---------------------------------------------------------------------------------------


def git(brain: Brain, *words: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    return subprocess.run(
        ["git", "-C", str(brain.repo), *identity, *words],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def merged(
    brain: Brain,
    main: Sequence[FakeCommit],
    side: Sequence[FakeCommit],
    after: Sequence[FakeCommit],
    clean: bool = True,
) -> tuple[str, str, list[str]]:
    """main-line commits, then a merge of a branch that left before them, then more. Returns
    (base, merge, ids of the branch)."""
    base = git(brain, "rev-parse", "HEAD")
    git(brain, "checkout", "-q", "-b", "side")
    branch = add_commits(brain.repo, side)
    git(brain, "checkout", "-q", "main")
    add_commits(brain.repo, main)
    state = json.loads((brain.repo / "state.json").read_text())
    other = json.loads(git(brain, "show", "side:state.json"))
    git(brain, "merge", "-q", "--no-commit", "-s", "ours", "side")
    # What both sides did together: the branch's speed if it changed it, both counters of code.
    add_state = state | {
        "number": state["number"] + 100,
        "code": state["code"] + other["code"],
        "speed": min(state["speed"], other["speed"]) if clean else 80,
    }
    (brain.repo / "state.json").write_text(json.dumps(add_state) + "\n")
    git(brain, "commit", "-q", "-a", "-m", "Merge branch 'side'")
    merge = git(brain, "rev-parse", "HEAD")
    add_commits(brain.repo, after)
    return base, merge, branch


def test_a_blamed_merge_leads_into_its_branch_and_the_mail_names_the_commit_there(
    brain: Brain,
) -> None:
    base, merge, branch = merged(
        brain,
        plain(3, "main"),
        [*plain(3), FakeCommit(speed=86, title="slow in a branch"), *plain(2)],
        plain(3),
    )
    brain.watch(base)
    brain.run()
    above, below = brain.facts("b", 1), brain.facts("b", 2)
    assert above["culprit"]["commit"] == merge
    assert (below["parent"], below["merged"], below["culprit"]["commit"]) == (
        "b1",
        merge,
        branch[3],
    )
    assert above["within"]["commit"] == branch[3]
    assert (
        above["branches"][0]["words"]
        == f"in the branch merged by {merge[:12]}: commit {branch[3][:12]} (slow in a branch)"
    )
    assert brain.facts("i")["culprit"]["commit"] == branch[3]
    assert brain.count("incident") == 1
    (subject,) = brain.mails
    assert branch[3][:12] in subject
    assert below["swing"] == above["swing"] is not None
    with brain.lab.transaction("look") as tx:
        assert {swing.state for swing in tx.swings.in_state("bisecting", "open")} == set()


def until_the_branch_is_searched(brain: Brain) -> None:
    for _ in range(60):
        tick(brain.lab)
        if brain.count("bisection") == 2:
            break
        brain.fake.work()


def test_while_the_branch_is_searched_nobody_is_named_and_waiting_goes_on(brain: Brain) -> None:
    base, merge, _ = merged(
        brain, plain(1, "main"), [*plain(2), FakeCommit(speed=86), *plain(2)], plain(1)
    )
    brain.watch(base)
    until_the_branch_is_searched(brain)
    above = brain.facts("b", 1)
    assert (above["status"], above["culprit"]["commit"], above["within"]) == (
        "culprit",
        merge,
        None,
    )
    assert "b2 searches the merged branch" in above["branches"][0]["words"]
    assert brain.count("incident") == 0
    done = swingbot("wait", "b1", "--timeout", "0")
    assert done.exit_code == 1
    assert "has not finished" in done.output


def test_a_merge_that_is_slow_by_itself_is_named_itself(brain: Brain) -> None:
    base, merge, _ = merged(brain, plain(2, "main"), plain(3), plain(2), clean=False)
    brain.watch(base)
    brain.run()
    above, below = brain.facts("b", 1), brain.facts("b", 2)
    assert (above["culprit"]["commit"], below["status"]) == (merge, "not_reproduced")
    assert above["branches"][0]["words"].endswith("itself: neither side alone shows the change")
    assert brain.facts("i")["culprit"]["commit"] == merge
    assert len(brain.mails) == 1


def test_calling_off_the_search_of_a_branch_leaves_the_merge_as_the_culprit(brain: Brain) -> None:
    base, merge, _ = merged(
        brain, plain(1, "main"), [*plain(2), FakeCommit(speed=86), *plain(2)], plain(1)
    )
    brain.watch(base)
    until_the_branch_is_searched(brain)
    assert cancel_bisection(brain.lab, 2)
    brain.run()
    assert brain.facts("i")["culprit"]["commit"] == merge
    assert brain.facts("b", 1)["branches"][0]["status"] == "cancelled"


def test_the_page_shows_next_boot_noise_advice_and_branches(brain: Brain) -> None:
    number, ids = asked(brain, *plain(5), FakeCommit(speed=88), *plain(6))
    for _ in range(20):
        tick(brain.lab)
        if brain.facts("b", number)["next"] and brain.facts("b", number)["levels"][0] is not None:
            break
        brain.fake.work()
    skip(brain.lab, number, [ids[9]], who="ada", why="<b>hangs</b>")
    hint(brain.lab, number, [ids[3]], 20.0, who="bob", why=None)
    app = make_app(
        brain.settings, brain.engine, read, lambda sha256: brain.settings.artifacts / sha256
    )
    with TestClient(app) as client:
        page, plot = (
            client.get(f"/bisection/b{number}").text,
            client.get(f"/plot/b{number}.svg").text,
        )
        facts = client.get(f"/bisection/b{number}.json").json()
    (boot, *_) = facts["next"]
    assert f"boot k={boot['k']} of" in page
    assert (
        "noise expected" in page
        and "ada: skip" in page
        and "&lt;b&gt;hangs" in page
        and "hint × 20" in page
    )
    assert "×20" in plot and "the next boot is of commit" in plot and "skipped by ada" in plot
    assert [steer["act"] for steer in facts["steers"]] == ["skip", "hint"]
    assert facts["noise"]["sd_run"] > 0 and facts["levels"][0] > facts["levels"][1]
    explained = swingbot("bisect", "explain", f"b{number}")
    assert explained.exit_code == 0, explained.output
    for sentence in (
        "bits of uncertainty remain",
        "Next (search)",
        "Boots that changed the belief most",
        "What would change the belief",
        "Remaining, if boots behave",
    ):
        assert sentence in explained.output
    assert (
        json.loads(swingbot("bisect", "explain", f"b{number}", "--json").output)["forecast"][
            "boots"
        ]
        >= 4
    )
    drawn = swingbot("bisect", "visualize", f"b{number}", "--width", "120", "--ascii")
    assert drawn.exit_code == 0 and drawn.output.isascii()
    assert "[skipped]" in drawn.output and "hint x20" in drawn.output
    assert max(map(len, drawn.output.splitlines()[-10:])) <= 120
