"""`swingbot here` says what it lacks, lends commits without touching the checkout, and takes no
settings of another service."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from swingbot.app import here, here_packages, process
from swingbot.app.cli import main
from swingbot.app.remote.checkout import Checkout
from swingbot.app.settings import load
from swingbot.service.ports import RequestError
from swingbot_jobs import extras
from swingbot_worker.executor.attempt_directory import AttemptDirectory
from swingbot_worker.executor.process import start_executor
from tests.patch_series import Change, git, make_repo

INSTALL = (Path(__file__).parents[2] / "docs" / "install.md").read_text()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    change = [Change(files={"a": b"%d\n" % n}, message=f"commit {n}\n") for n in range(3)]
    make_repo(tmp_path / "linux.git", change)
    git(tmp_path, "clone", "-q", "linux.git", "clone")
    return tmp_path / "clone"


def run(words: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.chdir(place)
    return CliRunner().invoke(main, words.split(), env={"XDG_STATE_HOME": str(place / "state")})


def test_missing_packages_are_those_that_the_installation_names(tmp_path: Path) -> None:
    lacking = here_packages.missing_packages(lambda program: None, tmp_path)
    named = set(INSTALL.replace("\\\n", " ").split())
    essential = {"binutils", "gzip", "perl-base", "mawk"}  # a Debian system or gcc has them
    assert set(lacking) - essential <= named
    assert {"qemu-system-x86", "gcc", "libelf-dev"} <= set(lacking)
    for name in ("x86_64-linux-gnu/openssl/opensslv.h", "gelf.h", "stdio.h"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert here_packages.missing_packages(lambda program: "/bin/true", tmp_path) == []


def test_what_is_missing_is_said_before_anything_starts(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(here_packages, "missing_packages", lambda: ["bc", "flex"])
    said = run("here", clone, monkeypatch)
    assert said.exit_code == 2 and "apt-get install --no-install-recommends bc flex" in said.output
    monkeypatch.setattr(extras, "missing", lambda names: tuple(names))
    said = run("here", clone, monkeypatch)
    assert said.exit_code == 2 and 'needs the extras "master" and "worker"' in said.output
    assert "install --no-install-recommends bc flex" in said.output, "both at once"
    assert not (clone / "state").exists()


def test_what_a_job_lacks_is_said_before_anything_starts(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(here_packages, "missing_packages", list)
    monkeypatch.setenv("SWINGBOT_PATHS_CACHE", str(tmp_path / "cache"))
    said = run("here --job vm-page-fault --job vm-will-it-scale", clone, monkeypatch)
    assert said.exit_code == 2 and "swingbot-worker program build will-it-scale" in said.output
    assert "page-fault" not in said.output and not (clone / "state").exists()


def test_mistakes_end_in_one_sentence(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(here_packages, "missing_packages", list)
    (tmp_path / "empty").mkdir()
    for words, place, sentence in (
        ("here", tmp_path / "empty", "not a git checkout"),
        ("here nosuch..HEAD", clone, "no commit 'nosuch'"),
        ("here HEAD", clone, "write the range as A..B"),
        ("here --job nosuch", clone, "job file nosuch: No such file"),
    ):
        said = run(words, place, monkeypatch)
        assert said.exit_code == 2 and sentence in said.output and said.output.count("\n") == 1


def test_head_is_compared_with_where_it_left_its_upstream(clone: Path) -> None:
    checkout = Checkout(clone)
    assert checkout.recent() == ("HEAD^", "HEAD")
    left = git(clone, "rev-parse", "HEAD").decode().strip()
    for name in ("b", "c"):
        git(
            clone,
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@b",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            name,
        )
    assert checkout.recent() == (left[:12], "HEAD")
    git(clone, "checkout", "-q", "--detach", "HEAD~4")
    with pytest.raises(RequestError, match="has no parent"):
        checkout.recent()


def test_a_checkout_lends_its_commits_and_stays_as_it_is(clone: Path, tmp_path: Path) -> None:
    before = {file: file.read_bytes() for file in clone.rglob("*") if file.is_file()}
    for ref in ("HEAD", "HEAD~2"):
        commit = git(clone, "rev-parse", ref).decode().strip()
        place = here.lend(clone, commit, tmp_path / "here.git")
        fetched = tmp_path / f"fetched-{ref}"
        subprocess.run(["git", "init", "-q", "--bare", fetched], check=True)
        git(fetched, "fetch", "-q", str(place), here.BRANCH)
        assert git(fetched, "rev-parse", "FETCH_HEAD").decode().strip() == commit
    assert {file: file.read_bytes() for file in clone.rglob("*") if file.is_file()} == before


def test_executors_of_its_workers_end_with_it_and_others_stay(tmp_path: Path) -> None:
    logs = []
    for name in ("own", "other"):
        place = AttemptDirectory(tmp_path / name / "workers" / "builder" / "state" / "attempts/a1")
        place.root.mkdir(parents=True)
        os.mkfifo(place.order)  # the executor waits for its order
        lock = place.try_lock()
        assert lock is not None
        start_executor(place.root, lock, place.log)
        os.close(lock)
        logs.append(place)
    own, other = logs
    assert own.try_lock() is None and other.try_lock() is None
    assert process.kill_executors(tmp_path / "own") == 1
    assert own.try_lock() is not None, "its executor is gone"
    assert other.try_lock() is None
    assert process.kill_executors(tmp_path) == 1


def test_no_setting_of_another_service_reaches_it(tmp_path: Path) -> None:
    given = {
        "XDG_STATE_HOME": str(tmp_path),
        "SWINGBOT_DB_URL": "postgresql+psycopg2://lab/swingbot",
        "SWINGBOT_CONFIG": "/etc/nosuch.toml",
        "SWINGBOT_PATHS_CACHE": "/var/cache/kernels",
        "SWINGBOT_URL": "https://lab.example",
    }
    settings = load(environ=here.environment(given))
    assert settings.db.url == "" and settings.state == tmp_path / "swingbot-here"
    assert str(settings.cache) == "/var/cache/kernels"
