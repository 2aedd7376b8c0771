"""The command `swingbot`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from swingbot.app.commands.completion import session_of
from swingbot.app.commands.context import sentence
from swingbot.app.settings import SettingsError
from swingbot_jobs.lazy_group import Place, lazily

# Commands by audience. A command is imported on use, because importing numpy, the database and
# Buildbot takes most of a second.
_DEVELOPER: Final = "Measure and bisect (developers)"
_LOOK: Final = "Inspect results (developers)"
_MAINTAINER: Final = "Decide and report (maintainers)"
_SERVICE: Final = "Run the service (operators)"
_LAB: Final = "Maintain the lab (operators)"

COMMANDS: Final = {
    "compare": Place("table:compare", "Compare kernels in one table", _DEVELOPER, ()),
    "experiment": Place("table:experiment", "Measure kernels in one table", _DEVELOPER, ()),
    "extend": Place("table:extend", "Add boots or rows to a table", _DEVELOPER, ()),
    "bisect": Place(
        "bisect:bisect",
        "Find the commit behind a change; `bisect run` needs no service",
        _DEVELOPER,
        (),
    ),
    "check": Place("check:check", "Print the measurements of a posted series for b4", _LOOK, ()),
    "wait": Place(
        "requests:wait", "Wait until a measurement, or everything, has finished", _DEVELOPER, ()
    ),
    "cancel": Place(
        "requests:cancel", "Cancel a comparison, experiment or bisection", _DEVELOPER, ()
    ),
    "publish": Place("requests:publish", "Let everybody read a private table", _DEVELOPER, ()),
    "login": Place(
        "login:login", "Log in to a service elsewhere, for all other commands", _DEVELOPER, ()
    ),
    "logout": Place("login:logout", "Forget the login", _DEVELOPER, ()),
    "here": Place(
        "here:here", "Measure commits of this checkout (needs no service)", _DEVELOPER, ()
    ),
    "jobs": Place("jobs:jobs", "Expand and check job files; what code they run", _DEVELOPER, ()),
    "show": Place(
        "inspection:show", "Show an object by its id: c5, e6, b2, i1, r4, o12, v3, x7", _LOOK, ()
    ),
    "list": Place(
        "inspection:list_", "List comparisons, bisections, incidents and so on", _LOOK, ()
    ),
    "results": Place("results:results", "Compare kernels by boots that exist", _LOOK, ()),
    "history": Place("results:history", "Show a metric over all measured commits", _LOOK, ()),
    "raw": Place("raw:raw", "Fetch every file and sample behind a result", _LOOK, ()),
    "reproduce": Place(
        "reproduce:reproduce", "Create a kit that reproduces measured numbers", _LOOK, ()
    ),
    "kcidb": Place("kcidb:kcidb_", "Print a table as KCIDB JSON", _LOOK, ()),
    "stats": Place(
        "stats:stats",
        "Compare your own numbers, analyse their history (needs no service)",
        _LOOK,
        (),
    ),
    "parse": Place(
        "parse:parse_", "Print the samples in a program's raw output (needs no service)", _LOOK, ()
    ),
    "facts": Place("facts:facts_", "List the facts recorded for every boot", _LOOK, ()),
    "incident": Place(
        "incidents:incident", "Show, merge, split and close incidents", _MAINTAINER, ()
    ),
    "report": Place(
        "reports:report", "Read, release and drop reports; stop all mail", _MAINTAINER, ()
    ),
    "proof": Place(
        "proof:proof", "Show and run the gates that a culprit must pass", _MAINTAINER, ()
    ),
    "recipients": Place(
        "recipients:recipients", "Show who would receive a report about a commit", _MAINTAINER, ()
    ),
    "up": Place(
        "service:up",
        "Run the whole service on this machine until Ctrl-C",
        _SERVICE,
        ("master", "worker"),
    ),
    "status": Place(
        "inspection:status", "Show the state of all components, and problems", _SERVICE, ()
    ),
    "settings": Place(
        "service:settings_", "Show the effective settings and their origin", _SERVICE
    ),
    "master": Place("fleet:master", "Run only the Buildbot master", _SERVICE, ("master", "worker")),
    "loop": Place("service:loop", "Run only the loop that decides what to measure", _SERVICE),
    "web": Place("service:web", "Run only the web pages, API and artifact store", _SERVICE),
    "git": Place("fleet:git_", "Serve the mirror to build workers on other hosts", _SERVICE),
    "smtpd": Place("service:smtpd", "Run only the local mail server", _SERVICE),
    "db": Place("service:db", "Upgrade the database, set up its roles", _SERVICE),
    "backup": Place("keep:backup", "Back up the database and the state directory", _SERVICE),
    "restore": Place("keep:restore", "Restore a backup into a new state directory", _SERVICE),
    "retention": Place("keep:retention", "Show and delete expired files", _SERVICE),
    "forget": Place("keep:forget_", "Remove what a boot or a kernel caused", _SERVICE),
    "tree": Place("trees:tree", "Add, show, poll and remove watched git trees", _LAB),
    "testbox": Place("testboxes:testbox", "Show, check, drain and quarantine testboxes", _LAB),
    "worker": Place("fleet:worker", "Manage secrets and certificates of the workers", _LAB),
    "compilers": Place("compilers:compilers", "List the compilers of the build workers", _LAB),
    "token": Place("access:token", "Create and revoke tokens for the pages", _LAB),
    "key": Place("reports:key", "Print the operator's first token", _LAB),
    "reparse": Place("raw:reparse", "Parse stored raw results again after a parser changed", _LAB),
}


@click.group(
    cls=lazily("swingbot.app.commands", COMMANDS),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Settings file (default: SWINGBOT_CONFIG or /etc/swingbot/swingbot.toml).",
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help="State directory (paths.state).",
)
@click.option("--port", type=click.IntRange(1, 65000), help="First port of the service (web.port).")
@click.version_option(package_name="swingbot")
@click.pass_context
def main(context: click.Context, config: Path | None, state: Path | None, port: int | None) -> None:
    """swingbot builds kernels, boots and measures them, and names the commit behind a change.

    \b
    Quick start:
      swingbot up                                            (in one terminal)
      swingbot tree add linux /srv/linux.git --branch master --base v6.1 --job vm-netperf.yaml
      swingbot compare base tip --tree linux --wait          (in another)

    Shell completion: eval "$(_SWINGBOT_COMPLETE=bash_source swingbot)"
    """
    try:
        context.obj = session_of(context.params)
    except SettingsError as error:
        click.echo(f"swingbot: {sentence(error)}", err=True)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
