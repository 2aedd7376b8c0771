"""The command `swingbot-worker`."""

from __future__ import annotations

import signal
import sys
from typing import Final

import click

from swingbot_jobs.lazy_group import Place, lazily


def _at(path: str) -> Place:
    # `swingbot_worker.entry` has looked for the extra before this module is imported
    return Place(path, extras=())


# A command is imported on use: `attempt` starts for every boot, and all of them together take
# 0.2 s of processor time to import.
COMMANDS: Final = {
    "adopt": _at("testbox.adopt.adopt_commands:command"),
    "attempt": _at("attempt:command"),
    "bloat": _at("kbuild.bloat:command"),
    "boot": _at("order_commands:boot"),
    "build": _at("order_commands:build"),
    "check": _at("testbox.check:command"),
    "compilers": _at("kbuild.probe_compilers:command"),
    "config": _at("testbox.adopt.config_commands:command"),
    "program": _at("program.command:command"),
    "serve": _at("serve:command"),
    "walls": _at("walls.command:command"),
}


@click.group(
    cls=lazily(__package__, COMMANDS),
    help=(
        "Build kernels and boot them on testboxes by hand. Each command does what the service does "
        "for the same order file."
    ),
)
@click.version_option(package_name="swingbot")
def main() -> None:
    # Buildbot and process managers send SIGTERM: exit by an exception, which ends child processes.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


if __name__ == "__main__":
    main()
