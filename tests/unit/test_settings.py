"""Settings: where a value comes from, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot.app.commands.settings_page import page
from swingbot.app.settings import (
    GROUPS,
    SECTIONS,
    SettingsError,
    load,
    with_place,
)


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
        ("[watch]\nbots = 7\n", "watch: key 'bots' is unknown here"),
        ("[wotch]\nboots = 7\n", "key 'wotch' is unknown here; known are paths"),
        ("[watch]\nboots = 'many'\n", "watch.boots: 'many' is not a whole number"),
        (
            "[mail]\nrelease = 'maybe'\n",
            "mail.release: 'maybe' is not one of hold, earned, release",
        ),
        ("watch = 3\n", "watch: 3 is not a mapping"),
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


def test_every_section_is_in_one_group_and_every_example_is_accepted(tmp_path: Path) -> None:
    assert sorted(name for group in GROUPS for name in group.sections) == sorted(SECTIONS)
    for group in GROUPS:
        sources = load(write(tmp_path, group.example), {}).sources
        assert {key.partition(".")[0] for key in sources} <= set(group.sections)
        assert sources


def test_the_reference_is_what_the_settings_are() -> None:
    reference = Path(__file__).parents[2] / "docs" / "settings.md"
    assert reference.read_text() == page(), "swingbot settings --reference >docs/settings.md"
