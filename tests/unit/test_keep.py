"""Examples in the pages for operators are what the programs take."""

from __future__ import annotations

import re
from pathlib import Path

import click

from swingbot.app.cli import main
from swingbot.app.keep.progress import amount
from swingbot.app.settings import load
from swingbot.app.supervision import supervisor_config

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("operations.md", "install.md", "add-a-testbox.md")


def test_every_command_that_the_pages_name_is_there() -> None:
    named = set()
    for page in PAGES:
        named |= set(
            re.findall(
                r"(?:`|\$ |= ?/opt/swingbot/bin/)swingbot ([a-z]+)", (DOCS / page).read_text()
            )
        )
    assert {"backup", "restore", "retention", "db", "report"} <= named
    assert named <= set(main.list_commands(click.Context(main)))


def test_every_setting_that_the_pages_name_is_there() -> None:
    settings = load(environ={})
    for page in PAGES:
        for section, key in re.findall(
            r"`(retention|disk|mail|web|boxes|buildbot|db|paths|git)\.([a-z_]+)[` ]",
            (DOCS / page).read_text(),
        ):
            assert hasattr(getattr(settings, section), key), f"{page}: {section}.{key}"


def test_no_log_of_the_supervisor_grows_without_end() -> None:
    config = supervisor_config(load(environ={}), [])
    assert "silent=true" in config.splitlines()
    assert "logfile_maxbytes=5MB" in config.splitlines()


def test_amounts_are_said_as_people_say_them() -> None:
    assert [amount(size) for size in (0, 1023, 1024, 5 << 20, 3 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "5.0 MiB",
        "3.0 TiB",
    ]
