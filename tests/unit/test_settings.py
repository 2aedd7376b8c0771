"""Settings: where a value comes from, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot.app.commands.settings_page import page
from swingbot.app.keep.retain import KITS_DAYS
from swingbot.app.loop import TICK_SECONDS
from swingbot.app.settings import (
    CONSTANTS,
    FORMER_SECTIONS,
    GROUPS,
    RENAMED,
    SECTIONS,
    SettingsError,
    load,
    variable_of,
    with_place,
)
from swingbot.app.web import CONNECTIONS, UPLOADS
from swingbot.core.moderation.improvements import Plausible
from swingbot.core.plan.testbox_rules import TestboxRules


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "swingbot.toml"
    file.write_text(text)
    return file


def test_the_environment_wins_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    file = write(tmp_path, "[watch]\nboots = 7\npoll_seconds = 5\n")
    settings = load(file, {"SWINGBOT_WATCH_BOOTS": "9"})
    assert (settings.watch.boots, settings.watch.poll_seconds, settings.watch.testbox) == (
        9,
        5.0,
        "vm-icount",
    )
    assert settings.sources == {
        "watch.boots": "SWINGBOT_WATCH_BOOTS",
        "watch.poll_seconds": str(file),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[watch]\nbots = 7\n", "unknown key watch.bots"),
        ("[wotch]\nboots = 7\n", r"unknown section \[wotch\]"),
        ("[watch]\nboots = 'many'\n", r"watch.boots must be an integer, got 'many'"),
        ("[mail]\nrelease = 'maybe'\n", "must be one of hold, earned, release"),
        ("watch = 3\n", r"\[watch\] must be a table"),
        ("[watch\n", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused_by_name_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load(write(tmp_path, text), {})


def test_a_file_that_is_not_there_is_an_error_when_it_was_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="nosuch.toml"):
        load(None, {"SWINGBOT_CONFIG": str(tmp_path / "nosuch.toml")})


def test_one_port_moves_all(tmp_path: Path) -> None:
    settings = with_place(
        load(None, {"SWINGBOT_CONFIG": str(write(tmp_path, ""))}), tmp_path / "state", 9000
    )
    assert (settings.web_url, settings.buildbot_www_port, settings.smtp_port) == (
        "http://127.0.0.1:9000",
        9001,
        9003,
    )
    assert settings.state == tmp_path / "state"


def test_a_setting_that_is_a_constant_now_is_accepted_with_its_value(tmp_path: Path) -> None:
    file = write(tmp_path, "[loop]\ntick_seconds = 2\n[web]\nuploads = 16\nrate = 7\n")
    settings = load(file, {"SWINGBOT_BOXES_LEASE_SECONDS": "300"})
    assert settings.web.rate == 7
    assert set(settings.sources) == {"web.rate"}


@pytest.mark.parametrize("former", RENAMED)
def test_a_former_name_of_a_setting_still_works(tmp_path: Path, former: str) -> None:
    section, _, name = former.partition(".")
    current, _, key = RENAMED[former].partition(".")
    default = getattr(getattr(load(write(tmp_path, ""), {}), current), key)
    value, text = (not default, "false") if isinstance(default, bool) else (7, "7")
    file = write(tmp_path, f"[{section}]\n{name} = {text}\n")
    for settings, source in (
        (load(file, {}), str(file)),
        (load(write(tmp_path, ""), {variable_of(former): text}), variable_of(former)),
    ):
        assert getattr(getattr(settings, current), key) == value
        assert settings.sources == {RENAMED[former]: source}


def test_the_current_name_of_a_setting_wins_in_the_environment(tmp_path: Path) -> None:
    given = {"SWINGBOT_BOXES_FAILURES": "7", "SWINGBOT_TESTBOXES_FAILURES": "8"}
    assert load(write(tmp_path, ""), given).testboxes.failures == 8
    assert load(write(tmp_path, "[boxes]\nfailures = 6\n"), given).testboxes.failures == 8


def test_both_names_of_a_setting_in_one_file_are_refused(tmp_path: Path) -> None:
    text = "[boxes]\nfailures = 3\n[testboxes]\nfailures = 4\n"
    with pytest.raises(SettingsError, match="former name of testboxes.failures, which is set too"):
        load(write(tmp_path, text), {})


@pytest.mark.parametrize("section", FORMER_SECTIONS)
def test_a_former_section_may_be_empty_and_its_keys_are_checked(
    tmp_path: Path, section: str
) -> None:
    assert load(write(tmp_path, f"[{section}]\n"), {}).sources == {}
    with pytest.raises(SettingsError, match=rf"unknown section \[{section}\]"):
        load(write(tmp_path, f"[{section}]\nfailuers = 3\n"), {})
    answer = CliRunner().invoke(main, ["settings", section, "--json"])
    keys = [row["key"] for row in json.loads(answer.output)["settings"]]
    assert keys and all(key.startswith(f"{FORMER_SECTIONS[section]}.") for key in keys)


def test_every_former_setting_is_the_constant_that_is_in_force() -> None:
    rules, plausible = TestboxRules(), Plausible()
    assert {
        "web.uploads": UPLOADS.open_files,
        "web.connections": CONNECTIONS,
        "web.attempt_files": UPLOADS.files,
        "web.attempt_mib": UPLOADS.size >> 20,
        "boxes.lease_seconds": rules.lease_seconds,
        "boxes.invalid_runs": rules.invalid_runs,
        "mail.suspicious_synced_pct": plausible.synced_pct,
        "mail.suspicious_write_pct": plausible.buffered_pct,
        "retention.kits_days": KITS_DAYS,
        "loop.tick_seconds": TICK_SECONDS,
    } == CONSTANTS


@pytest.mark.parametrize("key", CONSTANTS)
def test_a_setting_that_is_a_constant_now_is_refused_with_another_value(
    tmp_path: Path, key: str
) -> None:
    section, _, name = key.partition(".")
    message = (
        rf"{key} is no longer a setting: its value is always {CONSTANTS[key]:g}, not 7; remove it"
    )
    with pytest.raises(SettingsError, match=message):
        load(write(tmp_path, f"[{section}]\n{name} = 7\n"), {})
    with pytest.raises(SettingsError, match=f"{variable_of(key)} is no longer a setting"):
        load(write(tmp_path, ""), {variable_of(key): "7"})


def test_every_section_is_in_one_group_and_every_example_is_accepted(tmp_path: Path) -> None:
    assert sorted(name for group in GROUPS for name in group.sections) == sorted(SECTIONS)
    for group in GROUPS:
        sources = load(write(tmp_path, group.example), {}).sources
        assert {key.partition(".")[0] for key in sources} <= set(group.sections)
        assert sources


def test_the_reference_is_what_the_settings_are() -> None:
    reference = Path(__file__).parents[2] / "docs" / "settings.md"
    assert reference.read_text() == page(), "swingbot settings --reference >docs/settings.md"
