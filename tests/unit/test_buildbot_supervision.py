from __future__ import annotations

import configparser
import dataclasses
import shlex
from pathlib import Path

from swingbot.app import postgres, supervision
from swingbot.app.settings import DbSection, MailSection, PathSection, Settings, WebSection, load


def settings_at(state: str) -> Settings:
    settings = Settings(
        paths=PathSection(state=state, cache="/cache"),
        web=WebSection(port=9000),
        mail=MailSection(release="release", to="a@example.org, b@example.org"),
    )
    return dataclasses.replace(settings, db=DbSection(url=postgres.url(settings.state)))


def test_every_process_reads_the_same_settings_as_up_has() -> None:
    settings = settings_at("/srv/state")
    read = load(
        environ=supervision.environment(
            settings, {"SWINGBOT_CONFIG": "/nowhere.toml", "SWINGBOT_WEB_PORT": "1"}
        )
    )
    assert dataclasses.replace(read, sources={}) == settings


def test_workers_stop_before_the_master_and_the_database_stops_last() -> None:
    programs = supervision.programs(settings_at("/srv/state"))
    order = {program.name: program.order for program in programs}
    workers = [order[name] for name in order if name.startswith("worker-")]
    assert (
        min(workers)
        > order["buildbot-master"]
        > order["web"]
        > order["postgres"]
        == min(order.values())
    )
    assert len(workers) == 5  # builds and four testboxes


def test_an_external_database_or_mail_server_is_not_started() -> None:
    settings = dataclasses.replace(
        settings_at("/srv/state"),
        db=DbSection(url="postgresql://db.example.org/x"),
        mail=MailSection(host="mail.example.org"),
    )
    assert {"postgres", "smtpd"}.isdisjoint(
        program.name for program in supervision.programs(settings)
    )


def test_the_supervisors_file_carries_any_path() -> None:
    settings = settings_at('/srv/100% "odd" state')
    programs = supervision.programs(settings)
    parser = configparser.ConfigParser(strict=True)
    parser.read_string(supervision.supervisor_config(settings, programs))
    for program in programs:
        section = parser[f"program:{program.name}"]
        assert shlex.split(section["command"]) == list(program.argv)
        assert section["directory"] == str(program.directory)


def test_a_unix_socket_fits_whatever_the_state_directory_is_called() -> None:
    short, long = Path("/srv/state"), Path("/srv") / ("x" * 120)
    assert postgres.socket_directory(short) == short / "postgres"
    assert len(str(postgres.socket_directory(long) / ".s.PGSQL.5432")) < 107
    assert len(str(supervision.socket(long)) + ".1234567") < 107
    assert postgres.socket_directory(long) != postgres.socket_directory(long / "y")


def test_the_embedded_databases_address_is_the_same_at_every_start() -> None:
    assert (
        postgres.url(Path("/srv/state"))
        == "postgresql+psycopg2://postgres@/swingbot?host=/srv/state/postgres"
    )


def test_a_password_in_a_database_address_is_not_shown() -> None:
    assert "hunter2" not in postgres.hidden("postgresql://me:hunter2@db.example.org/x")
