"""What an installation without an extra says, and the help that names every command."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from swingbot.app.cli import COMMANDS, main
from swingbot.app.commands.bisect import bisect
from swingbot.app.commands.errors import OURS, USAGE
from swingbot_jobs import extras, resources
from swingbot_jobs.lazy_group import LazyGroup


def test_an_extra_is_missing_when_one_of_its_modules_is() -> None:
    asked = ("master", "worker")
    assert extras.missing(asked, lambda module: True) == ()
    assert extras.missing(asked, lambda module: module != "sqlalchemy") == ("master",)
    assert extras.missing(asked, lambda module: False) == asked


def test_the_advice_is_one_line_that_can_be_typed() -> None:
    recorded = importlib.metadata.distribution("swingbot").read_text("direct_url.json")
    assert recorded is not None  # of an installation from a directory or a file
    origin = json.loads(recorded)["url"]
    assert origin.startswith("file:///")
    assert extras.advice("swingbot up", ["master"]) == (
        f"swingbot up needs the extra \"master\": pip install 'swingbot[master] @ {origin}'"
    )


def test_the_advice_inside_an_environment_of_pipx_is_for_pipx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    for arguments, words in (
        ([], "install --force"),
        (["--constraint", "a b"], """install --force --pip-args '--constraint '"'"'a b'"'"''"""),
    ):
        recorded = {"main_package": {"pip_args": arguments}}
        (tmp_path / "pipx_metadata.json").write_text(json.dumps(recorded))
        assert f": pipx {words} 'swingbot[worker] @ " in extras.advice("swingbot up", ["worker"])


def test_a_command_without_its_extra_refuses_whatever_follows_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(extras.PROBES, "worker", ("a_module_that_nothing_installs",))
    ended = CliRunner().invoke(main, ["up", "--help", "--nonsense"], prog_name="swingbot")
    assert ended.exit_code == 2
    assert ended.output == extras.advice("swingbot up", ["worker"]) + "\n"


@pytest.mark.parametrize("name", sorted(USAGE | OURS))
def test_every_expected_error_is_a_class_of_that_very_name(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    kind = getattr(importlib.import_module(module), attribute)
    assert issubclass(kind, Exception)
    assert f"{kind.__module__}.{kind.__qualname__}" == name


@pytest.mark.parametrize("width", ["80", "60"])
def test_the_help_names_every_command_under_who_types_it_and_cuts_nothing_off(width: str) -> None:
    said = CliRunner().invoke(main, ["--help"], env={"COLUMNS": width}).output
    for name, place in COMMANDS.items():
        assert re.search(rf"^  {name} +\S", said, re.M), name
        assert f"{place.section}:" in said
    assert "..." not in said.replace("[ARGS]...", "")
    assert len({place.section for place in COMMANDS.values()}) == 5


def test_resources_are_beside_the_package_of_a_wheel_and_else_in_the_checkout(
    tmp_path: Path,
) -> None:
    checkout = tmp_path / "jobs" / "swingbot_jobs"
    assert resources.root(checkout) == tmp_path
    site = tmp_path / "site-packages"
    (site / "swingbot_resources").mkdir(parents=True)
    assert resources.root(site / "swingbot_jobs") == site / "swingbot_resources"


def test_every_folder_of_resources_is_there() -> None:
    assert all(resources.folder(name).is_dir() for name in resources.FOLDERS)


def test_a_verb_that_works_from_elsewhere_needs_no_extra() -> None:
    page = (Path(__file__).parents[2] / "docs" / "remote.md").read_text()
    rows = [row.split("|")[1:3] for row in page.splitlines() if row.startswith("| `")]
    away = [verbs for verbs, answer in rows if not answer.strip().startswith(("no:", "not yet"))]
    assert isinstance(bisect, LazyGroup)
    places = COMMANDS | {f"bisect {name}": place for name, place in bisect.places.items()}
    checked = set()
    for verbs in away:
        for verb in re.findall("`([^`]+)`", verbs):
            place = places.get(verb) or places[verb.split()[0]]
            assert place.extras == (), verb
            checked.add(verb)
    assert {"bisect start", "bisect hint", "extend", "raw"} <= checked
