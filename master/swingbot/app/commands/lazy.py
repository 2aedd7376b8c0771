"""A group of commands that imports a command's module when the command is used, and no other one."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click


class LazyGroup(click.Group):
    """A group whose commands are named by place: command -> "module:attribute", a module beside this one."""

    places: Mapping[str, str] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.places, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.places:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.places[cmd_name].partition(":")
        command = getattr(importlib.import_module(f"{__package__}.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command


def lazily(places: Mapping[str, str]) -> type[LazyGroup]:
    """The class of a group with these commands, for `click.group(cls=...)`."""
    return type("LazyGroup", (LazyGroup,), {"places": places})
