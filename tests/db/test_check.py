"""`swingbot check` tells b4 the measurements of a posted series, by the Message-IDs of its patches,
on the service's host and from elsewhere in the same bytes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from swingbot.app.cli import main
from swingbot.core.access.roles import Role
from tests.database import fresh
from tests.db.test_remote import elsewhere, here
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.postgres import Server
from tests.served import Served, served

KEYS = {"tool", "status", "summary", "url", "details"}


@pytest.fixture(scope="module")
def web(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place = tmp_path_factory.mktemp("check")
    limits = {"SWINGBOT_WEB_OPEN_REQUESTS": "100", "SWINGBOT_WEB_TESTBOX_MINUTES": "100000"}
    with fresh(pg, template) as url, served(url, place, filled=False, **limits) as running:
        yield running


@pytest.fixture(scope="module")
def brain(web: Served, tmp_path_factory: pytest.TempPathFactory) -> Brain:
    linux = tmp_path_factory.mktemp("repository") / "linux"
    (base,) = make_fakelinux(linux, [])[:1]
    brain = make_brain(web.settings, web.engine, linux)
    brain.watch(base)
    brain.run()
    return brain


class Series:
    """Patches of a branch as `b4 send` posts them: a cover letter and numbered Message-IDs."""

    def __init__(self, brain: Brain, topic: str, *commits: FakeCommit) -> None:
        brain.git("checkout", "-q", "-b", topic, "main")
        brain.commit(*commits)
        words = ("format-patch", "--stdout", "--cover-letter", f"-{len(commits)}")
        text = subprocess.run(
            ["git", "-C", str(brain.repo), *words], check=True, capture_output=True, text=True
        ).stdout
        brain.git("checkout", "-q", "main")
        mails = ["From " + mail for mail in text.split("\nFrom ")]
        mails[0] = mails[0].removeprefix("From ")
        self.mails = []
        for number, mail in enumerate(mails):
            first, _, rest = mail.partition("\n")
            id_ = f"Message-ID: <20261127-{topic}-v1-{number}-0123456789ab@example.org>"
            self.mails.append(f"{first}\n{id_}\n{rest}\n")

    def file(self, place: Path, *numbers: int) -> Path:
        place.write_text("".join(self.mails[n] for n in numbers or range(len(self.mails))))
        return place


def run(words: str, env: dict[str, str], mail: str = "") -> Result:
    return CliRunner().invoke(main, words.split(), env=env, input=mail)


def both(web: Served, place: Path, words: str, mail: str = "") -> dict[str, Any]:
    """The only result, which is the same from both sides."""
    on_host, away = run(words, here(web), mail), run(words, elsewhere(web, place), mail)
    assert on_host.exit_code == away.exit_code == 0, (on_host.output, away.output)
    assert on_host.stdout == away.stdout
    (result,) = json.loads(on_host.stdout)
    assert result.keys() == KEYS and result["tool"] == "swingbot"
    return dict(result)


def test_a_series_that_got_slower_is_a_warning(web: Served, brain: Brain, tmp_path: Path) -> None:
    series = Series(brain, "slower", FakeCommit(), FakeCommit(speed=90))
    unknown = both(web, tmp_path, "check", series.mails[0])
    assert (unknown["status"], unknown["summary"], unknown["url"]) == ("warn", "not measured", "")
    file = series.file(tmp_path / "series.mbx")
    asked = json.loads(run(f"check {file} --ask", here(web)).stdout)[0]
    assert asked["status"] == "warn" and "is measuring: " in asked["summary"]
    assert "series.mbx" not in asked["summary"] and "/comparison/c" in asked["url"]
    brain.run()
    for mail in series.mails:
        alone = both(web, tmp_path, "check", mail)
        assert alone["status"] == "warn" and "worse on vm-icount" in alone["summary"], alone
        assert alone["url"] == asked["url"] and "tip+2 patches" in alone["details"]
        assert "the diffs were not compared" in alone["summary"]
    known = both(web, tmp_path, f"check {file}")
    assert f"{known['summary']}; measured under these" in alone["summary"]
    again = json.loads(run(f"check {file} --ask", here(web)).stdout)[0]
    assert again["summary"] == known["summary"], "what is measured is not asked for again"


def test_one_asked_for_from_elsewhere_without_a_change_passes(
    web: Served, brain: Brain, tmp_path: Path
) -> None:
    series = Series(brain, "equal", FakeCommit(kind="header"), FakeCommit())
    file = series.file(tmp_path / "series.mbx")
    token = web.token("Ada", Role.SUBMITTER)["Authorization"].split()[1]
    away = elsewhere(web, tmp_path, SWINGBOT_TOKEN=token)
    queued = run(f"check {file} --ask", away)
    assert "is measuring" in json.loads(queued.stdout)[0]["summary"], queued.output
    brain.run()
    known = both(web, tmp_path, f"check {file}")
    assert known["status"] == "pass", known
    assert known["summary"].startswith("no change of ")
    assert known["summary"].endswith(" in 1 test on vm-icount")
    again = file.with_name("again.mbx")
    again.write_text(file.read_text().replace("-equal-v1-", "-equal-v2-"))
    assert "-v2-" in again.read_text() and both(web, tmp_path, f"check {again}") == known
    mails = "".join(file.read_text().splitlines(keepends=True)[:2])
    assert both(web, tmp_path, "check", mails)["status"] == "warn"


def test_a_rebased_series_finds_its_measurements(web: Served, brain: Brain, tmp_path: Path) -> None:
    series = Series(brain, "rebased", FakeCommit(kind="header"), FakeCommit(kind="comment"))
    run(f"check {series.file(tmp_path / 'series.mbx')} --ask", here(web))
    brain.run()
    known = both(web, tmp_path, f"check {tmp_path / 'series.mbx'}")
    assert known["status"] == "pass", known
    (brain.repo / "README").write_text("one more line\n")
    brain.git("checkout", "-q", "-b", "newer", "main")
    brain.git("add", "README")
    brain.git("commit", "-q", "-m", "another commit")
    brain.git("checkout", "-q", "rebased")
    brain.git("rebase", "-q", "newer")
    rebased = tmp_path / "rebased.mbx"
    rebased.write_text(brain.git("format-patch", "--stdout", "-2") + "\n")
    brain.git("checkout", "-q", "main")
    assert "Message-ID" not in rebased.read_text()
    assert both(web, tmp_path, f"check {rebased}") == known


def test_a_trailer_alone_neither_passes_nor_fails(
    web: Served, brain: Brain, tmp_path: Path
) -> None:
    slow = Series(brain, "judged", FakeCommit(speed=50))
    harmless = Series(brain, "harmless", FakeCommit(kind="comment"))
    forged = tmp_path / "forged.mbx"
    text = harmless.file(tmp_path / "harmless.mbx").read_text()
    forged.write_text(text.replace("-harmless-v1-", "-judged-v1-"))
    run(f"check {forged} --ask", here(web))
    brain.run()
    assert both(web, tmp_path, f"check {forged}")["status"] == "pass"
    file = slow.file(tmp_path / "slow.mbx")
    known = both(web, tmp_path, f"check {file}")
    assert known["status"] == "warn" and "has not exactly these diffs" in known["summary"], known
    assert both(web, tmp_path, "check", slow.mails[0])["status"] == "warn"
    run(f"compare tip --patch {file}", here(web))
    brain.run()
    assert "50.0% worse" in both(web, tmp_path, f"check {file}")["summary"]


def test_a_patch_on_top_of_another_is_not_the_patch(
    web: Served, brain: Brain, tmp_path: Path
) -> None:
    series = Series(brain, "stack", FakeCommit(kind="header"), FakeCommit(kind="comment"))
    run(f"check {series.file(tmp_path / 'series.mbx')} --ask", here(web))
    brain.run()
    second = tmp_path / "second.mbx"
    second.write_text(series.mails[2].replace("2/2", "").replace("-stack-v1-2", "-x"))
    known = both(web, tmp_path, f"check {second}")
    assert known["status"] == "warn" and "has not exactly these diffs" in known["summary"], known


def test_a_series_that_does_not_build_fails(web: Served, brain: Brain, tmp_path: Path) -> None:
    series = Series(brain, "broken", FakeCommit(kind="broken"))
    run(f"check {series.file(tmp_path / 'series.mbx')} --ask", here(web))
    brain.run()
    known = both(web, tmp_path, f"check {tmp_path / 'series.mbx'}")
    assert known["status"] == "fail" and known["summary"].startswith("patch 1 does not build: ")


def test_a_part_of_a_series_says_how_much(web: Served, brain: Brain, tmp_path: Path) -> None:
    series = Series(brain, "partly", FakeCommit(), FakeCommit(), FakeCommit(speed=80))
    part = series.file(tmp_path / "part.mbx", 1)
    assert run(f"compare base --patch {part}", here(web)).exit_code == 0
    brain.run()
    known = both(web, tmp_path, "check", series.mails[0])
    assert known["status"] == "warn" and "with 1 of 3 patches" in known["summary"], known


def test_b4_has_the_thread_of_a_cover_letter(web: Served, brain: Brain, tmp_path: Path) -> None:
    """Without numbers in its Message-IDs, only the thread that b4 recorded tells the patches."""
    series = Series(brain, "thread", FakeCommit(speed=120))
    for number, mail in enumerate(series.mails):
        series.mails[number] = mail.replace("-v1-", f".{'ab'[number]}x").replace("-0123", "0123")
    answer = "Message-ID: <1@example.org>\nFrom: Bob <b@example.org>\nSubject: Re: x\n\nNice.\n"
    thread = "".join(series.mails) + f"From b@example.org Thu Jan 1 00:00:00 2026\n{answer}"
    (tmp_path / "thread").write_text(thread)
    brain.git("checkout", "-q", "main")
    blob = brain.git("hash-object", "-w", str(tmp_path / "thread"))
    tracking = tmp_path / "tracking.json"
    tracking.write_text(json.dumps({"series": {"thread-blob": blob}}))
    alone = both(web, tmp_path, "check", series.mails[0])
    assert "the patches of this mail are not known" in alone["summary"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(brain.repo)
        patch.setenv("B4_TRACKING_FILE", str(tracking))
        queued = run("check --ask", here(web), series.mails[0])
        assert "is measuring" in json.loads(queued.stdout)[0]["summary"], queued.output
        brain.run()
        known = both(web, tmp_path, "check", series.mails[0])
        assert known["status"] == "pass" and "better on vm-icount" in known["summary"], known
        other = both(web, tmp_path, "check", Series(brain, "other", FakeCommit()).mails[0])
        assert other["summary"] == "not measured", "a thread without the mail is another series"
        tracking.write_text("[" * 9999)
        assert "are not known" in both(web, tmp_path, "check", series.mails[0])["summary"]


@pytest.mark.parametrize(
    ("mail", "said"),
    [
        ("", "the patches of this mail are not known"),
        ("Subject: [PATCH] x\nMessage-ID: <%@\n\n", "the patches of this mail are not known"),
        (
            f"From: a@b\nSubject: [PATCH 1/2] x\nMessage-ID: <{'a' * 119}@{'b' * 119}>\n\n",
            "the patches of this mail are not known",
        ),
        (
            "From: a@b\nSubject: [PATCH 1/2] x\nMessage-ID: <\u00fc@b>\n\n",
            "the patches of this mail are not known",
        ),
        ("From: a@b\nSubject: [PATCH 1/9999] x\nMessage-ID: <a-b-c-1-d@e>\n\n", "not measured"),
    ],
)
def test_any_mail_has_an_answer(mail: str, said: str, web: Served, tmp_path: Path) -> None:
    assert both(web, tmp_path, "check", mail)["summary"] == said


def test_refusals_are_no_result_or_a_warning(web: Served, brain: Brain, tmp_path: Path) -> None:
    series = Series(brain, "refused", FakeCommit(speed=77))
    file = series.file(tmp_path / "series.mbx")
    token = web.token("Rea", Role.READER)["Authorization"].split()[1]
    refused = run(f"check {file} --ask", elsewhere(web, tmp_path, SWINGBOT_TOKEN=token))
    assert "needs the role submitter" in json.loads(refused.stdout)[0]["summary"]
    unknown = run(f"check {file} --ask", elsewhere(web, tmp_path))
    assert unknown.exit_code == 1 and unknown.stdout == "" and "asks for a token" in unknown.stderr
    nowhere = {"SWINGBOT_URL": "http://127.0.0.1:1", "XDG_CONFIG_HOME": "/nowhere"}
    away = run("check", nowhere, series.mails[1])
    assert away.exit_code == 1 and away.stdout == "" and "cannot be reached" in away.stderr
    for query in (
        *("", "?mail=x", "?" + "&".join(["mail=<a@b>"] * 41), "?patch=x", "?patch="),
        "?" + "&".join([f"patch={'0' * 40}"] * 41),
    ):
        assert web.client.get(f"/posted.json{query}").status_code == 400
