"""`swingbot compare --patch` with a patch series: each patch is a commit of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from swingbot.app.cli import main
from swingbot.app.settings import load
from swingbot.app.wiring import make_lab, sync_testboxes
from swingbot.core.model.records import JobFile
from swingbot.service.ports import Git
from swingbot.service.watch.trees import NewTree, add_tree, poll_tree
from swingbot_db.engine import make_engine
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.patch_series import git


@dataclass(frozen=True, slots=True)
class Place:
    """A watched tree whose tip is the base; `mails` are three commits on it that the tree lacks."""

    git: Git
    conn: sa.Connection
    commits: list[str]
    mails: Path

    def compare(self, *patches: Path) -> Result:
        words = [word for path in patches for word in ("--patch", str(path))]
        return CliRunner().invoke(main, ["compare", "base", "base", "--tree", "fake", *words])

    def commits_of_head(self) -> list[str]:
        query = """SELECT v.commit FROM comparison_pair c JOIN variant v ON v.id = c.head
                   ORDER BY c.id DESC"""
        head = self.conn.execute(sa.text(query)).scalars().first()
        assert head is not None
        return self.git.first_parents(self.commits[0], head)


@pytest.fixture
def place(
    tmp_path: Path, db_url: str, conn: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> Place:
    environment = {"SWINGBOT_PATHS_STATE": str(tmp_path / "state"), "SWINGBOT_DB_URL": db_url}
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    settings = load(environ=environment)
    repo = tmp_path / "linux"
    commits = make_fakelinux(repo, [FakeCommit(speed=speed) for speed in (90, 80, 70)])
    git(repo, "format-patch", "-q", "--cover-letter", "-3", "-o", str(tmp_path / "mails"))
    git(repo, "reset", "-q", "--hard", commits[0])
    lab = make_lab(settings, make_engine(db_url))
    sync_testboxes(lab)
    job = Path(settings.paths.jobs) / "vm-hackbench.yaml"
    tree = NewTree(
        name="fake",
        url=str(repo),
        branch="main",
        base=commits[0],
        kconfig="vm-x86_64",
        compiler="gcc",
        job_files=[JobFile(name=job.name, text=job.read_text())],
        testboxes=["vm-icount"],
        paths=(),
    )
    assert poll_tree(lab.transaction, lab.tools.git, add_tree(lab, tree)) is None
    return Place(lab.tools.git, conn, commits, tmp_path / "mails")


def test_a_mailbox_gives_a_commit_for_each_of_its_mails(place: Place, tmp_path: Path) -> None:
    testbox = tmp_path / "series.mbx"
    testbox.write_bytes(b"".join(mail.read_bytes() for mail in sorted(place.mails.iterdir())[::-1]))
    said = place.compare(testbox)
    assert said.exit_code == 0, said.output
    for line in (
        "base+3 patches: 1/3 1",
        "base+3 patches: 3/3 3",
        "left out: [PATCH 0/3] *** SUBJECT HERE *** by Author (cover letter)",
    ):
        assert line in re.sub(" by .* <.*>", " by Author", said.output).splitlines()
    made = place.commits_of_head()
    assert [place.git.message(commit).strip() for commit in made] == ["1", "2", "3"]
    assert [place.git.facts(commit).tree_hash for commit in made] == [
        git(place.mails.parent / "linux", "rev-parse", f"{commit}^{{tree}}").decode().strip()
        for commit in place.commits[1:]
    ]


def test_a_directory_and_its_files_one_by_one_are_the_same_comparison(place: Place) -> None:
    one = place.compare(place.mails)
    assert one.exit_code == 0, one.output
    made = place.commits_of_head()
    other = place.compare(*sorted(place.mails.iterdir()))
    assert other.exit_code == 0 and place.commits_of_head() == made
    assert one.stdout == other.stdout


def test_a_series_with_a_gap_is_refused_and_nothing_is_queued(place: Place) -> None:
    next(place.mails.glob("0002-*")).unlink()
    said = place.compare(place.mails)
    assert said.exit_code == 2 and "mails: patch 2/3 is missing" in said.output
    assert "Traceback" not in said.output
    asked = sa.text("SELECT count(*) FROM comparison WHERE kind = 'asked'")
    assert place.conn.execute(asked).scalar_one() == 0
