"""The command `swingbot`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from swingbot.app.commands.context import Session, sentence
from swingbot.app.commands.lazy import lazily
from swingbot.app.settings import SettingsError, load, with_place

# command -> its place, imported when it is used: numbers, database and Buildbot take most of a second
COMMANDS: Final = {
    "up": "service:up",
    "loop": "service:loop",
    "web": "service:web",
    "master": "fleet:master",
    "worker": "fleet:worker",
    "git": "fleet:git_",
    "smtpd": "service:smtpd",
    "db": "service:db",
    "settings": "service:settings_",
    "describe": "service:describe_",
    "tree": "trees:tree",
    "testbox": "testboxes:testbox",
    "compilers": "compilers:compilers",
    "compare": "requests:compare",
    "experiment": "experiment:experiment",
    "extend": "extend:extend",
    "bisect": "bisect:bisect",
    "wait": "requests:wait",
    "cancel": "requests:cancel",
    "status": "look:status",
    "list": "look:list_",
    "show": "look:show",
    "raw": "raw:raw",
    "reparse": "raw:reparse",
    "reproduce": "reproduce:reproduce",
    "parse": "look:parse_",
    "facts": "facts:facts_",
    "stats": "stats:stats",
    "jobs": "jobs:jobs",
    "incident": "incidents:incident",
    "report": "reports:report",
    "proof": "proof:proof",
    "key": "reports:key",
    "recipients": "recipients:recipients",
    "token": "access:token",
    "backup": "keep:backup",
    "restore": "keep:restore",
    "retention": "keep:retention",
}


@click.group(
    cls=lazily(COMMANDS),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Settings file; default: SWINGBOT_CONFIG or /etc/swingbot/swingbot.toml.",
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help="State directory (paths.state).",
)
@click.option("--port", type=click.IntRange(1, 65000), help="First port of the service (web.port).")
@click.pass_context
def main(context: click.Context, config: Path | None, state: Path | None, port: int | None) -> None:
    """swingbot builds kernels, boots and measures them, and names the commit behind a change.

    \b
    A first look:
      swingbot up                                            (in one terminal)
      swingbot tree add linux /srv/linux.git --branch master --base v6.1 --job vm-netperf.yaml
      swingbot compare base tip --tree linux --wait          (in another)

    Shell completion: eval "$(_SWINGBOT_COMPLETE=bash_source swingbot)"
    """
    try:
        context.obj = Session(with_place(load(config), state, port))
    except SettingsError as error:
        click.echo(f"swingbot: {sentence(error)}", err=True)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
