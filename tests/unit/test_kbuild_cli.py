"""`swingbot-worker build` as a person or a script calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from swingbot_worker.cli import main
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.unit.test_kbuild import make_site


@pytest.fixture
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    site = make_site(tmp_path, "cache")
    monkeypatch.setenv("SWINGBOT_PATHS_CACHE", str(site.cache))
    monkeypatch.setenv("SWINGBOT_PATHS_WORKERS", str(site.workers))
    make_fakelinux(tmp_path / "linux", [FakeCommit(), FakeCommit(kind="broken")])
    return tmp_path / "linux"


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_a_build_by_hand_prints_its_outcome_and_writes_it(linux: Path, tmp_path: Path) -> None:
    result = call("build", "--repo", linux, "--commit", "main~1", "--kconfig", "tiny", "--out", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["status"] == "built"
    assert json.loads((tmp_path / "out" / "outcome.json").read_text()) == json.loads(result.stdout)


def test_a_commit_that_does_not_build_exits_1_and_shows_why(linux: Path, tmp_path: Path) -> None:
    result = call("build", "--repo", linux, "--commit", "main", "--kconfig", "tiny", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "mm/memory.c:3:1: error:" in result.stderr and "Traceback" not in result.output


def test_an_order_file_gives_the_kernel_it_names(linux: Path, tmp_path: Path) -> None:
    call("build", "--repo", linux, "--commit", "main~2", "--kconfig", "tiny", "--out", tmp_path / "out")
    by_hand = json.loads((tmp_path / "out" / "outcome.json").read_text())
    kernel = {"build_key": by_hand["kernel_build"]["build_key"], "repo": str(linux), "kconfig": "tiny", "compiler": "gcc", "layout": 0}
    kernel["commit"] = (linux / ".git" / "refs" / "heads" / "main").read_text().strip()
    order = tmp_path / "order.json"
    order.write_text(json.dumps({"version": 1, "kind": "build", "order": "o7", "attempt": "a8", "kernel": kernel}))
    result = call("build", "--order", order, "--out", tmp_path / "out", "--json")
    outcome = json.loads(result.stdout)
    assert (outcome["order"], outcome["attempt"], outcome["status"]) == ("o7", "a8", "failed")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "order.yaml: "),
        ("version: 1", "is a required property"),
        ("[1, 2]", "order.yaml: order: top level"),
        (
            '{version: 1, kind: boot, order: o1, attempt: a1, kernel: {build_key: "%s", image: /x}, testbox: b, k: 0, unit_jobs: '
            "[{name: n, program: p, params: {}, runs: 1}]}" % ("0" * 64),
            "is a boot order; use `swingbot-worker boot`",
        ),
    ],
)
def test_a_wrong_order_exits_2_with_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    order = tmp_path / "order.yaml"
    order.write_text(text)
    result = call("build", "--order", order, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert sentence in result.stderr and "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_a_commit_that_is_not_there_exits_2(linux: Path, tmp_path: Path) -> None:
    result = call("build", "--repo", linux, "--commit", "v9.9", "--kconfig", "tiny", "--out", tmp_path / "out")
    assert result.exit_code == 2 and "There is no commit, tag or branch 'v9.9'" in result.stderr


def test_help_shows_an_example() -> None:
    for command in ("build", "boot"):
        assert f"swingbot-worker {command} --order order.yaml" in call(command, "--help").output
