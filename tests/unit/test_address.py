"""The address of the running service, as commands in another terminal learn it."""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot.app.address import file_of, record, with_recorded
from swingbot.app.settings import SettingsError, load, with_place


def test_a_command_takes_the_port_that_the_service_was_started_with(tmp_path: Path) -> None:
    record(with_place(load(environ={}), tmp_path, 9123))
    asked = with_recorded(with_place(load(environ={}), tmp_path, None))
    assert asked.web_url == "http://127.0.0.1:9123"
    assert asked.web.port == 8010, "only links change: a service that starts keeps its own port"


def test_a_record_is_replaced_by_the_next_start(tmp_path: Path) -> None:
    for port in (9123, 9200):
        record(with_place(load(environ={}), tmp_path, port))
    assert file_of(tmp_path).read_text() == "http://127.0.0.1:9200\n"
    assert [path.name for path in tmp_path.iterdir()] == ["address"]


def test_the_public_address_is_what_is_recorded(tmp_path: Path) -> None:
    public = load(environ={"SWINGBOT_WEB_PUBLIC_URL": "https://bot.example.org/swing/"})
    record(with_place(public, tmp_path, None))
    asked = with_recorded(with_place(load(environ={}), tmp_path, None))
    assert asked.web_url == "https://bot.example.org/swing"


def test_a_port_of_the_command_line_wins_and_no_record_changes_nothing(tmp_path: Path) -> None:
    plain = with_place(load(environ={}), tmp_path, None)
    assert with_recorded(plain) == plain
    record(with_place(plain, tmp_path, 9123))
    assert with_recorded(with_place(plain, None, 9300)).web_url == "http://127.0.0.1:9300"


@pytest.mark.parametrize(
    "text", [b"", b"javascript:alert(1)", b"http://a b", b"\xff\xfe", b"http://a/\nhttp://b/"]
)
def test_a_record_that_is_not_an_address_is_refused_with_what_to_do(
    tmp_path: Path, text: bytes
) -> None:
    file_of(tmp_path).write_bytes(text)
    with pytest.raises(SettingsError, match="the service writes it again"):
        with_recorded(with_place(load(environ={}), tmp_path, None))
