"""`swingbot-worker build` as a person or a script calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from swingbot_worker import kbuild
from swingbot_worker.cli import main
from swingbot_worker.order import BuildOrder
from tests.builds.test_kbuild import make_site
from tests.fakelinux import FakeCommit, make_fakelinux


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
    result = call(
        "build",
        "--repo",
        linux,
        "--commit",
        "main~1",
        "--kconfig",
        "tiny",
        "--out",
        tmp_path / "out",
        "--json",
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["status"] == "built"
    assert json.loads((tmp_path / "out" / "outcome.json").read_text()) == json.loads(result.stdout)


def test_a_commit_that_does_not_build_exits_1_and_shows_why(linux: Path, tmp_path: Path) -> None:
    result = call(
        "build", "--repo", linux, "--commit", "main", "--kconfig", "tiny", "--out", tmp_path / "out"
    )
    assert result.exit_code == 1
    assert "mm/memory.c:3:1: error:" in result.stderr and "Traceback" not in result.output


def test_what_a_kernel_does_not_accept_is_printed_whether_it_is_built_or_kept(
    linux: Path, tmp_path: Path
) -> None:
    file = tmp_path / "workers" / "kconfig" / "tiny.config"
    file.write_text(f"{file.read_text()}CONFIG_NOWHERE=y\n")
    order = ("build", "--repo", linux, "--commit", "main~1", "--kconfig", "tiny")
    for _ in range(2):
        result = call(*order, "--out", tmp_path / "out", "--json")
        assert result.exit_code == 0, result.output
        assert result.stderr == (
            "tiny.config: this kernel does not accept: CONFIG_NOWHERE=y (it has no such option)\n"
        )


def test_an_order_file_gives_the_kernel_it_names(linux: Path, tmp_path: Path) -> None:
    call(
        "build",
        "--repo",
        linux,
        "--commit",
        "main~2",
        "--kconfig",
        "tiny",
        "--out",
        tmp_path / "out",
    )
    by_hand = json.loads((tmp_path / "out" / "outcome.json").read_text())
    kernel = {
        "build_key": by_hand["kernel_build"]["build_key"],
        "repo": str(linux),
        "kconfig": "tiny",
        "compiler": "gcc",
        "layout": 0,
    }
    kernel["commit"] = (linux / ".git" / "refs" / "heads" / "main").read_text().strip()
    order = tmp_path / "order.json"
    order.write_text(
        json.dumps(
            {"version": 1, "kind": "build", "order": "o7", "attempt": "a8", "kernel": kernel}
        )
    )
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
            '{version: 1, kind: boot, order: o1, attempt: a1, kernel: {build_key: "%s", image: '
            "/x}, testbox: b, k: 0, unit_jobs: "
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
    result = call(
        "build", "--repo", linux, "--commit", "v9.9", "--kconfig", "tiny", "--out", tmp_path / "out"
    )
    assert result.exit_code == 2 and "There is no commit, tag or branch 'v9.9'" in result.stderr


def test_help_shows_an_example() -> None:
    for command in ("build", "boot"):
        assert f"swingbot-worker {command} --order order.yaml" in call(command, "--help").output


# --- swingbot-worker bloat ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`base` and `head` as `build` left them, and `objects`, the object directory of head."""
    place = tmp_path_factory.mktemp("bloat")
    site = make_site(place, "cache")
    ids = make_fakelinux(place / "linux", [FakeCommit(speed=82)])
    for name, commit in zip(("base", "head"), ids, strict=True):
        order = kbuild.order_by_hand(
            site,
            repo=str(place / "linux"),
            commit=commit,
            kconfig="tiny",
            compiler="gcc",
            layout=0,
        )
        kbuild.build(BuildOrder.from_json(order), place / name, site)
    (place / "objects").symlink_to(next((site.cache / "work" / "linux-0.1" / "src").glob("o-*")))
    return place


def test_two_builds_are_compared_by_what_they_left(two_builds: Path) -> None:
    text = call("bloat", two_builds / "base", two_builds / "head")
    assert text.exit_code == 0, text.output
    assert (
        text.stdout.startswith("1 variable changed.")
        and "mm/page_alloc.o" in text.stdout
        and "config: the same" in text.stdout
    )
    facts = json.loads(call("bloat", two_builds / "base", two_builds / "head", "--json").stdout)
    assert not facts["nothing"] and [one["name"] for one in facts["data"]] == ["speed"]


def test_an_object_directory_is_read_as_it_is_and_not_written_to(two_builds: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (two_builds / "objects").rglob("*")}
    assert call("bloat", two_builds / "head", two_builds / "objects").stdout.startswith(
        "No function and no variable of the kernel differs."
    )
    assert {path: path.stat().st_mtime_ns for path in (two_builds / "objects").rglob("*")} == before


def test_two_elf_files_give_the_table_alone(two_builds: Path) -> None:
    main_o, sched_o = (two_builds / "objects" / path for path in ("init/main.o", "kernel/sched.o"))
    done = call("bloat", "-t", main_o, sched_o)
    assert (
        done.exit_code == 0
        and done.stdout.startswith("add/remove: ")
        and done.stdout.splitlines()[-1].startswith("Total: Before=")
    )
    assert json.loads(call("bloat", main_o, main_o, "--json").stdout)["rows"] == []


@pytest.mark.parametrize(
    ("base", "head", "sentence"),
    [
        ("linux", "linux", "has neither functions.json.gz nor a vmlinux"),
        ("base", "base/config", "give two directories or two files"),
        ("base/config", "base/config", "is not a readable x86-64 ELF file"),
        ("damaged", "damaged", "functions.json.gz: it "),
    ],
)
def test_what_cannot_be_compared_exits_2_with_one_sentence(
    two_builds: Path, base: str, head: str, sentence: str
) -> None:
    (two_builds / "damaged").mkdir(exist_ok=True)
    (two_builds / "damaged" / "functions.json.gz").write_bytes(b"no gzip")
    done = call("bloat", two_builds / base, two_builds / head)
    assert done.exit_code == 2 and sentence in done.stderr and "Traceback" not in done.output


@pytest.mark.parametrize("group", [(), ("program",)])
def test_no_summary_of_a_command_is_cut_at_80_columns(group: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, [*group, "--help"], terminal_width=80)
    assert result.exit_code == 0
    assert "Commands:" in result.output
    assert "..." not in result.output.partition("Commands:")[2]
