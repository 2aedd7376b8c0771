"""No command sends a control character to a terminal, whatever the database contains."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

import swingbot_jobs.terminal
from swingbot.app.cli import main
from swingbot.core.access.roles import Role
from swingbot.service.access import create_token
from swingbot.service.ports.access import NewToken
from swingbot_db.store import PgTransaction
from tests import scenario
from tests.fakes.mail import brain_environment

# clears the screen, reports what is on it, sets the title; the same in C1; reverses; hides
HOSTILE: Final = "\x1b[2J\x1b]0;title\x07\r\x08\x7f\x9b2J\x85\u202e\u2066"
CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

# Words of a command that prints rows; `{comparison}` is a number of the scenario.
PRINTS: Final = (
    "bisect explain b{bisection}",
    "bisect log b{bisection}",
    "bisect visualize b{bisection}",
    "compilers",
    "facts",
    "incident list",
    "incident show i{incident}",
    "incident invalid i{incident}",
    "list bisections",
    "list comparisons",
    "list incidents",
    "list metrics",
    "list orders",
    "list reports",
    "list testboxes",
    "list trees",
    "proof show i{incident}",
    "proof cost i{incident}",
    "recipients --tree {tree_name} HEAD",
    "report classes",
    "report list",
    "report show r{report}",
    "report drop r{report}",
    "retention",
    "show c{comparison}",
    "show c{comparison} --counters",
    "show c{comparison} --format mail",
    "show c{comparison} --format changelog",
    "show c{comparison} --format lkp",
    "show c{running_comparison}",
    "show b{bisection}",
    "show b{running_bisection}",
    "show i{incident}",
    "show r{report}",
    "show o{order}",
    "show v1",
    "show x{boot}",
    "show x{panicked}",
    "status",
    "testbox list",
    "testbox show {testbox}",
    "token list",
    "token log",
    "tree history {tree_name}",
    "tree list",
    "tree show {tree_name} --all",
    "tree poll {tree_name}",
    "wait c{comparison}",
    "wait b{bisection}",
    "worker list",
)


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name)


def poison(conn: sa.Connection) -> set[str]:
    """Append hostile text to every text that the schema does not restrict; return the columns."""
    columns = conn.execute(
        sa.text(
            "SELECT c.table_name, c.column_name, c.data_type FROM information_schema.columns c"
            " JOIN information_schema.tables t USING (table_schema, table_name)"
            " WHERE t.table_schema = 'swingbot' AND t.table_type = 'BASE TABLE'"
            " AND c.data_type IN ('text', 'jsonb') AND c.is_generated = 'NEVER'"
        )
    ).all()
    done = set()
    for table, column, kind in columns:
        name = f'swingbot."{table}"'
        try:
            with conn.begin_nested():
                if kind == "text":
                    query = f'UPDATE {name} SET "{column}" = "{column}" || :hostile'
                    rows = conn.execute(sa.text(query), {"hostile": HOSTILE}).rowcount
                else:
                    rows = _poison_documents(conn, name, column)
        except sa.exc.DBAPIError:
            continue  # a key, an enumeration, or a digest
        if rows:
            done.add(f"{table}.{column}")
    return done


def _poison_documents(conn: sa.Connection, table: str, column: str) -> int:
    rows = conn.execute(
        sa.text(f'SELECT ctid::text, "{column}" FROM {table} WHERE "{column}" IS NOT NULL')
    ).all()
    for place, document in rows:
        conn.execute(
            sa.text(
                f'UPDATE {table} SET "{column}" = CAST(:new AS jsonb) WHERE ctid = :place ::tid'
            ),
            {"new": json.dumps(_poisoned(document)), "place": place},
        )
    return len(rows)


def _poisoned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _poisoned(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_poisoned(one) for one in value]
    return value + HOSTILE if isinstance(value, str) and " " in value else value


class Hostile:
    """The command line over a poisoned database."""

    def __init__(self, environment: dict[str, str], lab: scenario.Lab, names: dict[str, str]):
        self.environment, self._lab, self._names = environment, lab, names

    def words(self, line: str) -> list[str]:
        numbers = {key: getattr(self._lab, key) for key in self._lab.__slots__}
        return [word.format(**numbers, **self._names) for word in line.split()]

    def run(self, *words: str) -> str:
        # color: click itself would delete some of the escapes
        result = CliRunner().invoke(main, list(words), env=self.environment, color=True)
        return result.output


@pytest.fixture
def hostile(engine: sa.Engine, db_url: str, tmp_path: Path) -> Hostile:
    with engine.connect() as conn:
        lab = scenario.a_lab(conn)
        new = NewToken(who="Ada", role=Role.READER, digest="0" * 64, note="n", by="t")
        create_token(PgTransaction(conn).access, new)
        done = poison(conn)
        names = {
            "tree_name": conn.execute(sa.text("SELECT name FROM swingbot.tree")).scalar_one(),
            "testbox": conn.execute(sa.text("SELECT min(name) FROM swingbot.testbox")).scalar_one(),
        }
        conn.commit()
    assert len(done) > 20, sorted(done)
    return Hostile(brain_environment(tmp_path / "state", db_url), lab, names)


def test_no_command_sends_what_the_database_says_to_the_terminal(hostile: Hostile) -> None:
    shown = []
    for line in PRINTS:
        printed = hostile.run(*hostile.words(line))
        assert not CONTROL.search(printed), (line, printed[:2000])
        shown += [line] if r"\u001b[2J" in printed else []
    assert len(set(shown)) >= 25, sorted(set(PRINTS) - set(shown))


def test_no_command_sends_its_own_arguments_to_the_terminal(hostile: Hostile) -> None:
    shown = []
    for words in leaves(main):
        printed = hostile.run(*words, HOSTILE, f"c1{HOSTILE}", f"--{HOSTILE}")
        assert not CONTROL.search(printed), (words, printed[:2000])
        shown += [words] if r"\u001b" in printed or r"\x1b" in printed else []
    assert len(set(shown)) >= 55, sorted(set(leaves(main)) - set(shown))


def test_without_the_stream_the_same_commands_do(
    hostile: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swingbot_jobs.terminal, "visible", lambda text: text)
    for line in ("incident show i{incident}", "list incidents", "report show r{report}"):
        assert CONTROL.search(hostile.run(*hostile.words(line))), line


def test_json_keeps_its_meaning(hostile: Hostile) -> None:
    for line in ("list incidents", "show i{incident}", "show b{bisection}", "status", "token log"):
        printed = hostile.run(*hostile.words(line), "--json")
        assert not CONTROL.search(printed), line
        assert any(HOSTILE in text for text in _strings(json.loads(printed))), line


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)
