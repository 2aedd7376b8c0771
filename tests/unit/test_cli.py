"""The commands are imported when they are used: each place leads to one, and none brings what it
does not need."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from itertools import takewhile

import click
import pytest
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot_worker.cli import main as worker


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


def test_every_example_in_a_help_is_a_command_with_options_that_exist() -> None:
    commands = {"swingbot": main, **dict(_commands(main, "swingbot"))}
    examples = 0
    for path in commands:
        said = CliRunner().invoke(main, [*path.split()[1:], "--help"], env={"COLUMNS": "80"}).output
        for line in re.findall(r"^ +(?:Example: +)?(swingbot .+)$", said.replace("\\\n", ""), re.M):
            words = list(takewhile(lambda word: word not in ("--", "|", "&&"), shlex.split(line)))
            names = [word for word in words if not word.startswith("-")]
            called = next(
                (c for n in (3, 2) if (c := commands.get(" ".join(names[:n]))) is not None), None
            )
            if called is None:
                continue  # a sentence, or an option of `swingbot` with a value before the command
            known = {opt for p in (*called.params, *main.params) for opt in p.opts}
            known |= {opt for p in called.params for opt in p.secondary_opts}
            assert {word for word in words if word.startswith("--")} <= known, line
            examples += 1
    assert examples > 80


def groups() -> Iterator[tuple[str, click.Group]]:
    for path, command in (("swingbot", main), ("swingbot-worker", worker)):
        yield path, command
        for inner, each in _commands(command, path):
            if isinstance(each, click.Group):
                yield inner, each


def test_no_group_cuts_off_the_help_of_a_command() -> None:
    paths = []
    for path, group in groups():
        said = CliRunner().invoke(group, ["--help"], prog_name=path, terminal_width=80).output
        _, _, listed = said.partition("[ARGS]...\n")
        assert listed, path
        assert "..." not in listed, f"{path}: {listed}"
        paths.append(path)
    assert {"swingbot testbox", "swingbot db", "swingbot-worker", "swingbot worker"} <= {*paths}


def test_a_group_lists_a_command_with_its_short_help() -> None:
    said = CliRunner().invoke(main, ["bisect", "--help"]).output
    assert "  run        Find the commit that changed the number printed by a command\n" in said


@pytest.mark.parametrize("command", [main, worker])
def test_each_command_prints_the_version_of_the_package(command: click.Command) -> None:
    said = CliRunner().invoke(command, ["--version"], prog_name="x")
    assert (said.exit_code, said.output) == (0, f"x, version {version('swingbot')}\n")


@pytest.mark.parametrize("words", [["bisect", "run", "--help"], ["facts"]])
def test_a_command_that_needs_no_service_loads_neither_database_nor_buildbot(
    words: list[str],
) -> None:
    program = (
        "import sys\nfrom swingbot.app.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "finally:\n    print({'sqlalchemy', 'twisted', 'scipy'} & set(sys.modules), "
        "file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
    )
    assert ended.stderr.splitlines()[-1] == "set()"


def test_an_attempt_starts_without_what_builds_kernels_or_drives_testboxes() -> None:
    # it starts for every boot, on the host that is measured
    program = (
        "import sys\nfrom swingbot_worker.cli import main\n"
        "try:\n    main(['attempt', '--help'])\n"
        "finally:\n    print(sorted(name for name in sys.modules if name.startswith("
        "('swingbot_worker.kbuild', 'swingbot_worker.testbox', 'swingbot_worker.walls', 'twisted',"
        " 'httpx', 'yaml', 'jsonschema'))), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stderr.splitlines()[-1] == "[]"


def test_a_boot_loads_one_driver() -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom swingbot_worker.site import from_environment\n"
        "from swingbot_worker.testbox import boot, select_driver\n"
        "site = from_environment()\n"
        "select_driver.driver_of(select_driver.testbox_of('vm-icount', site))\n"
        "print(sorted({'swingbot_worker.testbox.qemu.driver', 'swingbot_worker.testbox.ssh.driver',"
        " 'swingbot_worker.testbox.cluster.driver', 'swingbot_worker.engine.lkp'}"
        " & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stdout == "['swingbot_worker.testbox.qemu.driver']\n", ended.stderr
