"""Reading and steering a bisection: log and replay, skips, hints, resuming, merges. On a real
database and real git repositories."""

from __future__ import annotations

import json
import select
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from starlette.testclient import TestClient

from swingbot.app.cli import main
from swingbot.app.loop import run
from swingbot.app.wiring import make_lab, sync_testboxes
from swingbot.service.bisect.advance import advance_bisections
from swingbot.service.bisect.steer import hint, skip
from swingbot.service.faults import Faults
from swingbot.service.lab.set_testboxes import drain
from swingbot.service.lab.set_testboxes import resume as let_work
from swingbot.service.tick import tick
from swingbot.web.app import make_app
from swingbot_db import read
from swingbot_db.engine import make_engine
from tests import scenario
from tests.fakelinux import FakeCommit
from tests.fakes.brain import Brain
from tests.fakes.kernels import kept_by
from tests.fakes.loop import plain


@pytest.fixture(autouse=True)
def command_line(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SWINGBOT_USER", "ada")


def swingbot(*words: str, input: str | None = None) -> Result:
    return CliRunner().invoke(main, words, input=input)


def asked(brain: Brain, *commits: FakeCommit) -> tuple[int, list[str]]:
    """A bisection by hand over these commits, and their ids (base first)."""
    base = brain.base
    brain.watch(base)
    brain.run()
    made = brain.commit(*commits)
    return brain.bisect(base, made[-1]), [base, *made]


def test_a_bisection_whose_testbox_may_not_work_says_what_it_waits_for(brain: Brain) -> None:
    number, _ = asked(brain, *plain(4), FakeCommit(speed=88), *plain(4))
    brain.rounds(2)
    testbox = brain.facts("b", number)["testbox"]
    drain(brain.lab.transaction, testbox, "its fan is loud")
    tick(brain.lab)
    why = (
        f"testbox {testbox} is drained: its fan is loud; run `swingbot testbox resume {testbox}` "
        f"when it is fit"
    )
    shown = json.loads(swingbot("show", f"b{number}", "--json").output)
    assert (shown["status"], shown["waits"], shown["eta_seconds"]) == ("running", [why], None)
    assert f"waits\n  waiting: {why}\n" in swingbot("show", f"b{number}").output
    assert f"open      b{number}  running, waits\n" in swingbot("status").output
    page = (
        TestClient(
            make_app(
                brain.settings,
                brain.engine,
                read,
                kept_by(lambda sha256: (brain.settings.artifacts / sha256).open("rb")),
            )
        )
        .get(f"/bisection/b{number}")
        .text
    )
    assert "· waiting</p>" in page
    assert "Waiting: testbox" in page
    let_work(brain.lab.transaction, testbox)
    tick(brain.lab)
    assert brain.facts("b", number)["waits"] == []
    brain.fake.work()
    without = brain.without(testbox)
    sync_testboxes(without)
    tick(without)
    tick(without)
    assert (
        f"  waiting: testbox {testbox} no longer has a file in workers/testboxes; restore the "
        f"file, or `swingbot cancel` the work that waits for it\n"
    ) in swingbot("show", f"b{number}").output


def test_a_bisection_that_cannot_be_read_keeps_nobody_else_from_working(
    brain: Brain, capfd: pytest.CaptureFixture[str]
) -> None:
    other, ids = asked(brain, *plain(4), FakeCommit(speed=88), *plain(4))
    broken = brain.bisect(ids[0], ids[3], testbox=brain.facts("b", other)["testbox"])
    with brain.engine.begin() as conn:
        conn.execute(
            sa.text('UPDATE bisection SET terms = \'{"noise": {"sd": 1}}\' WHERE id = :id'),
            {"id": broken},
        )
    for _ in range(200):
        with pytest.raises(
            ExceptionGroup, match=f"^bisection b{broken}: BadDocument: terms.noise: key 'sd'"
        ) as failed:
            tick(brain.lab)
        assert len(failed.value.exceptions) == 1
        if brain.facts("b", other)["status"] != "running":
            break
        brain.fake.work()
    assert brain.facts("b", other)["culprit"]["commit"] == ids[5]
    rounds_left = iter((False, False, True))
    run(brain.settings, brain.engine, brain.lab, until=lambda: next(rounds_left))
    assert (
        capfd.readouterr().err.count("| swingbot_jobs.codec.BadDocument: ") == 1
    )  # twice the same is logged once
    assert (
        f"the loop's last round failed and is repeated: round: bisection b{broken}: BadDocument: "
        in swingbot("status").output
    )
    swingbot("cancel", f"b{broken}")
    tick(brain.lab)


def test_a_round_without_a_database_ends_at_its_first_fault(brain: Brain) -> None:
    away = make_engine("postgresql://none@127.0.0.1:9/nothing")
    with pytest.raises(sa.exc.OperationalError, match="Connection refused"):
        tick(make_lab(brain.settings, away))


def test_a_log_replays_to_the_same_decisions_byte_for_byte_and_a_changed_one_does_not(
    brain: Brain, tmp_path: Path
) -> None:
    number, ids = asked(
        brain,
        *plain(4),
        FakeCommit(kind="comment"),
        FakeCommit(kind="broken"),
        FakeCommit(),
        FakeCommit(speed=88),
        *plain(4),
    )
    brain.rounds(3)
    skip(
        brain.lab.transaction, brain.lab.tools.git, number, [ids[10]], who="ada", why="hangs\nhere"
    )
    hint(
        brain.lab.transaction, brain.lab.tools.git, number, [ids[8][:10]], 20.0, who="bob", why=None
    )
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
        skip(brain.lab.transaction, brain.lab.tools.git, number, [ids[2]], who="ada", why=None)
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


def test_a_blamed_merge_leads_into_its_branch_and_the_mail_names_the_commit_there(
    brain: Brain,
) -> None:
    base, merge, branch = brain.merge(
        plain(3, "main"),
        [*plain(3), FakeCommit(speed=86, title="slow in a branch"), *plain(2)],
        plain(3),
    )
    brain.watch(base)
    for _ in range(60):
        tick(brain.lab)
        if brain.count("bisection") == 2:
            break
        brain.fake.work()
    above = brain.facts("b", 1)
    assert (above["status"], above["culprit"]["commit"], above["within"]) == (
        "culprit",
        merge,
        None,
    )
    assert "b2 searches the merged branch" in above["branches"][0]["words"]
    done = swingbot("wait", "b1", "--timeout", "0")
    assert done.exit_code == 1
    assert "has not finished" in done.output
    brain.run()
    above, below = brain.facts("b", 1), brain.facts("b", 2)
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
    assert below["swing"] == above["swing"] is not None


def test_the_page_shows_next_boot_noise_advice_and_branches(brain: Brain) -> None:
    number, ids = asked(brain, *plain(5), FakeCommit(speed=88), *plain(6))
    for _ in range(20):
        tick(brain.lab)
        if brain.facts("b", number)["next"] and brain.facts("b", number)["levels"][0] is not None:
            break
        brain.fake.work()
    skip(
        brain.lab.transaction, brain.lab.tools.git, number, [ids[9]], who="ada", why="<b>hangs</b>"
    )
    hint(brain.lab.transaction, brain.lab.tools.git, number, [ids[3]], 20.0, who="bob", why=None)
    app = make_app(
        brain.settings,
        brain.engine,
        read,
        kept_by(lambda sha256: (brain.settings.artifacts / sha256).open("rb")),
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
    assert "×20" in plot and "the next boot is k=" in plot and "skipped by ada" in plot
    assert [steer["act"] for steer in facts["steers"]] == ["skip", "hint"]
    assert facts["noise"]["sd_run"] > 0 and facts["levels"][0] > facts["levels"][1]
    explained = swingbot("bisect", "explain", f"b{number}")
    assert explained.exit_code == 0, explained.output
    for sentence in (
        "bits of uncertainty remain",
        "Next (search)",
        "Boots that changed the belief most",
        "What would change the belief",
    ):
        assert sentence in explained.output
    facts = json.loads(swingbot("bisect", "explain", f"b{number}", "--json").output)
    assert "\n".join(facts["text"]) == explained.output.strip() and facts["bits_left"] > 0
    drawn = swingbot("bisect", "visualize", f"b{number}", "--width", "120", "--ascii")
    assert drawn.exit_code == 0 and drawn.output.isascii()
    assert "[skipped]" in drawn.output and "hint x20" in drawn.output
    assert max(map(len, drawn.output.splitlines()[-10:])) <= 120
