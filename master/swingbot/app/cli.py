"""The command `swingbot`."""

from __future__ import annotations

from pathlib import Path

import click

from swingbot.app.commands import (
    access,
    bisect_run,
    facts,
    fleet,
    incidents,
    jobs,
    keep,
    look,
    proof,
    raw,
    recipients,
    reports,
    reproduce,
    requests,
    service,
    stats,
    testboxes,
    trees,
)
from swingbot.app.commands.context import Session, sentence
from swingbot.app.settings import SettingsError, load, with_place


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
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


for command in (
    service.up,
    service.loop,
    service.web,
    fleet.master,
    fleet.worker,
    fleet.git_,
    service.smtpd,
    service.db,
    service.settings_,
    service.describe_,
    trees.tree,
    testboxes.testbox,
    requests.compare,
    requests.bisect,
    requests.wait,
    requests.cancel,
    look.status,
    look.list_,
    look.show,
    raw.raw,
    raw.reparse,
    reproduce.reproduce,
    look.parse_,
    facts.facts_,
    stats.stats,
    jobs.jobs,
    incidents.incident,
    reports.report,
    proof.proof,
    reports.key,
    recipients.recipients,
    access.token,
    keep.backup,
    keep.restore,
    keep.retention,
):
    main.add_command(command)

requests.bisect.add_command(bisect_run.run)
service.db.add_command(fleet.roles)


if __name__ == "__main__":
    main()
