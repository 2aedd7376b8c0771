"""The commands are imported when they are used: each place leads to one, and none brings what it
does not need."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from swingbot.app.cli import main


def _commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}")


def test_every_command_is_where_the_table_says_under_the_name_that_it_has() -> None:
    found = dict(_commands(main, "swingbot"))
    assert {"swingbot bisect run", "swingbot db roles", "swingbot status"} <= found.keys()
    for path, command in found.items():
        assert path.rsplit(" ", 1)[1] == command.name
        assert command.help, path


@pytest.mark.parametrize("words", [["bisect", "run", "--help"], ["facts"]])
def test_a_command_that_needs_no_service_loads_neither_database_nor_buildbot(
    words: list[str],
) -> None:
    program = (
        "import sys\nfrom swingbot.app.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "finally:\n    print({'sqlalchemy', 'twisted', 'scipy'} & set(sys.modules), file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
    )
    assert ended.stderr.splitlines()[-1] == "set()"
