"""Command group that imports the module of a command only when the command is used.

A command whose extra is not installed stays listed and reports in one line which extra it needs.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import click

from swingbot_jobs import extras
from swingbot_jobs.terminal import ShownGroup

NOT_INSTALLED = 2  # exit status of a command whose extra is not installed


@dataclass(frozen=True, slots=True)
class Place:
    """Import path of a command, and its entry in the group's help."""

    path: str  # "module:attribute", relative to the package of the group
    summary: str = ""  # one line (default: the command's short help, or its first sentence)
    section: str = "Commands"  # heading in the group's help
    extras: tuple[str, ...] = ("master",)


class LazyGroup(ShownGroup):
    """A group whose commands are imported on use."""

    package: str = ""
    places: Mapping[str, Place] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.places, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.places:
            return super().get_command(ctx, cmd_name)
        place = self.places[cmd_name]
        if missing_extras := extras.missing(place.extras):
            return _Unavailable(cmd_name, place, missing_extras)
        module, _, attribute = place.path.partition(":")
        command = getattr(importlib.import_module(f"{self.package}.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section, in table order, without truncated sentences."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in [*self.places, *(n for n in self.commands if n not in self.places)]:
            place = self.places.get(name, Place(""))
            summary = place.summary or _summary(self.get_command(ctx, name))
            sections.setdefault(place.section, []).append((name, summary))
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


class _Unavailable(click.Command):
    """A command whose extra is missing: for any arguments it says so and exits with status 2."""

    def __init__(self, name: str, place: Place, missing_extras: tuple[str, ...]) -> None:
        note = f"(needs the extra {' and '.join(missing_extras)})"
        super().__init__(name, help=f"{place.summary} {note}".strip(), add_help_option=False)
        self.missing_extras = missing_extras

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> NoReturn:
        words = f"{parent.command_path if parent else ''} {self.name}".strip()
        click.echo(extras.advice(words, self.missing_extras), err=True)
        raise SystemExit(NOT_INSTALLED)


def _summary(command: click.Command | None) -> str:
    if command is None:
        return ""
    paragraph = command.short_help or (command.help or "").partition("\n\n")[0]
    return " ".join(paragraph.split()).partition(". ")[0].rstrip(".")


def lazily(package: str, places: Mapping[str, Place]) -> type[LazyGroup]:
    """Create a group class with these commands of `package`, for `click.group(cls=...)`."""
    return type("LazyGroup", (LazyGroup,), {"package": package, "places": places})
