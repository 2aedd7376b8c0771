"""`swingbot master`, `worker`, `git`: components that run on separate hosts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from swingbot.adapters import worker_secrets
from swingbot.app import buildmaster, database
from swingbot.app.buildmaster import MasterError
from swingbot.app.commands import text
from swingbot.app.commands.context import CommandContext, with_session, with_session_json
from swingbot.app.settings import Settings, SettingsError
from swingbot.app.wiring import connect
from swingbot_jobs.terminal import say_json

FILE: Final = click.Path(dir_okay=False, path_type=Path)


@click.command(epilog="Example:  swingbot --config /etc/swingbot/swingbot.toml master")
@with_session
def master(session: CommandContext) -> None:
    """Run only the Buildbot master, in the foreground, for use by a process manager.

    Creates the master's directory and, if the database user may, Buildbot's tables. SIGTERM stops
    it; running boots and builds continue and are picked up at the next start.
    """
    from swingbot.app import master as program

    program.run(session.settings, click.echo)


@click.group()
def worker() -> None:
    """Manage Buildbot workers: names, secrets and the master's certificate."""


@worker.command("list", epilog="Example:  swingbot worker list --json")
@with_session_json
def list_(session: CommandContext, json_: bool) -> None:
    """List all workers and the command that starts them."""
    rows = [_row(session.settings, name) for name in buildmaster.worker_names(session.settings)]
    if json_:
        say_json(rows)
        return
    click.echo(
        text.table(
            [
                (
                    r["name"],
                    "elsewhere" if r["elsewhere"] else "this host",
                    "yes" if r["secret"] else "no",
                )
                for r in rows
            ],
            ("WORKER", "RUNS ON", "SECRET"),
        )
    )
    click.echo(f"\non another host:  {serve_command(session.settings, 'NAME')}")


def _row(settings: Settings, name: str) -> dict[str, Any]:
    file = buildmaster.secret_file(settings, name)
    return {
        "name": name,
        "elsewhere": buildmaster.is_elsewhere(settings, name),
        "secret": file.exists(),
        "secret_file": str(file),
        "command": serve_command(settings, name),
    }


def serve_command(settings: Settings, name: str) -> str:
    """Command that starts worker `name` on its host."""
    tls = " --tls-ca CA.pem" if settings.buildbot.tls_certificate else ""
    return (
        f"swingbot-worker serve {name} --master {settings.master_address} --secret-file FILE{tls}"
    )


@worker.command(
    epilog="""\b
Examples:
  swingbot worker secret builder
  swingbot worker secret testbox-rack3 --new |
    ssh rack3 'umask 077; cat >/etc/swingbot/testbox-rack3'"""
)
@click.argument("name")
@click.option(
    "--new",
    is_flag=True,
    help="Replace the secret; the old one is rejected at the worker's next login.",
)
@with_session
def secret(session: CommandContext, name: str, new: bool) -> None:
    """Print the secret of worker NAME. Creates it if it does not exist."""
    _check_name(session.settings, name)
    file = buildmaster.secret_file(session.settings, name)
    if new:
        worker_secrets.renew(file)
    created = worker_secrets.make(file)
    click.echo(worker_secrets.read(file))
    if new or created:
        click.echo(
            f"new secret, stored in {file}; on the worker's host run:"
            f" {serve_command(session.settings, name)}",
            err=True,
        )


def _check_name(settings: Settings, name: str) -> None:
    names = buildmaster.worker_names(settings)
    if name not in names:
        raise SettingsError(
            f"worker {name!r} does not exist; the workers are {', '.join(names)} (the worker of a"
            " testbox is testbox-NAME, declared in workers/testboxes/NAME.yaml)"
        )


@worker.command(
    epilog="""\b
Example:
  swingbot worker certificate --name lab.example.org --out /etc/swingbot/tls"""
)
@click.option(
    "--name",
    "names",
    multiple=True,
    required=True,
    help="Name or address by which workers reach the master; may be repeated.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for ca.pem, ca.key, master.pem and master.key.",
)
@click.option(
    "--days",
    default=1095,
    show_default=True,
    type=click.IntRange(1, 3650),
    help="Validity of the master's certificate, in days.",
)
@with_session
def certificate(session: CommandContext, names: tuple[str, ...], out: Path, days: int) -> None:
    """Create a CA and a certificate for the master.

    For a lab without its own CA. A CA that already exists in the directory is reused, so workers
    that trust it need no change.
    """
    from swingbot.adapters import certificates

    try:
        pair = certificates.make(out, names, days)
    except certificates.CertificateError as error:
        raise SettingsError(str(error)) from None
    click.echo(f"{pair.certificate}\n{pair.key}\n{pair.ca}")
    click.echo(
        f'[buildbot] tls_certificate = "{pair.certificate}", tls_key = "{pair.key}",'
        f' tls_ca = "{pair.ca}"; copy {pair.ca} to the workers',
        err=True,
    )


@click.command(
    "roles",
    epilog="""\b
Example:
  swingbot db roles --url postgresql://postgres@/swingbot \\
      --service-password-file /etc/swingbot/db_service
  swingbot db roles --try --grafana-password-file /etc/swingbot/db_grafana

Exit status of --try: 0 all walls hold, 1 some do not, 2 invalid usage or setting.""",
)
@click.option(
    "--try",
    "try_",
    is_flag=True,
    help="Change nothing; log in as Grafana's roles and try what they must not do.",
)
@click.option(
    "--url",
    envvar="SWINGBOT_DB_ADMIN_URL",
    help="Database URL of a superuser (default: db.owner_url, db.url). Also SWINGBOT_DB_ADMIN_URL.",
)
@click.option(
    "--url-password-file",
    envvar="SWINGBOT_DB_ADMIN_PASSWORD_FILE",
    type=FILE,
    help="Password file for --url. Also SWINGBOT_DB_ADMIN_PASSWORD_FILE.",
)
@click.option(
    "--owner-password-file",
    envvar="SWINGBOT_DB_OWNER_PASSWORD_FILE",
    type=FILE,
    help="Password file of swingbot_owner (default: db.owner_password_file).",
)
@click.option(
    "--service-password-file",
    envvar="SWINGBOT_DB_PASSWORD_FILE",
    type=FILE,
    help="Password file of swingbot_service (default: db.password_file).",
)
@click.option(
    "--grafana-password-file",
    envvar="SWINGBOT_DB_GRAFANA_PASSWORD_FILE",
    type=FILE,
    help="Password file of swingbot_grafana and swingbot_alerts."
    " Also SWINGBOT_DB_GRAFANA_PASSWORD_FILE.",
)
@with_session
def roles(
    session: CommandContext,
    try_: bool,
    url: str | None,
    url_password_file: Path | None,
    owner_password_file: Path | None,
    service_password_file: Path | None,
    grafana_password_file: Path | None,
) -> None:
    """Create the roles swingbot_owner, swingbot_service and swingbot_grafana and grant their
    rights.

    The owner migrates, the service reads and writes rows, Grafana reads the views of panels. A role
    without a password file keeps its password. Safe to repeat; `swingbot db upgrade` keeps rights.
    """
    from swingbot_db import migrate
    from swingbot_db import roles as db_roles

    if try_:
        _try_roles(session.settings, url, grafana_password_file)
        return
    chosen = session.settings.db
    files = {
        db_roles.OWNER: owner_password_file or _path(chosen.owner_password_file),
        db_roles.SERVICE: service_password_file or _path(chosen.password_file),
        db_roles.GRAFANA: grafana_password_file,
    }
    passwords = {
        role: database.password(file, f"the password of {role}")
        for role, file in files.items()
        if file
    }
    address = (
        database.with_password(url, url_password_file)
        if url
        else database.owner_url(session.settings)
    )
    engine = connect(session.settings, address)
    with engine.connect() as conn:
        migrate.check(conn, older_too=False)
    try:
        db_roles.make(engine, passwords)
    except db_roles.RolesError as error:
        raise MasterError(str(error)) from None
    click.echo(
        f"granted rights to roles {', '.join(db_roles.ROLES)}; passwords set:"
        f" {', '.join(passwords) or 'none'}"
    )


def _try_roles(settings: Settings, url: str | None, password_file: Path | None) -> None:
    """Print what each wall of Grafana's roles did; exit with status 1 if one did not hold."""
    from swingbot_db import role_trials
    from swingbot_db import roles as db_roles

    address, failed = url or database.owner_url(settings), False
    for role in db_roles.READERS:
        try:
            for trial in role_trials.trials(database.of_role(address, role, password_file)):
                failed = failed or not trial.held
                word = "held" if trial.held else "FAILED"
                click.echo(f"{word:<8} {trial.wall:<10} {role} {trial.attempt}: {trial.saw}")
        except role_trials.LoginError as error:
            raise MasterError(f"cannot log in as {role}: {error}") from None
    if failed:
        click.echo("Repeat `swingbot db roles`; memory needs `swingbot web` on the server's host")
        sys.exit(1)


def _path(text: str) -> Path | None:
    return Path(text) if text else None


@click.command("git", epilog="Example:  swingbot --config /etc/swingbot/swingbot.toml git")
@with_session
def git_(session: CommandContext) -> None:
    """Serve the mirror read-only to build workers on other hosts, in the foreground.

    Listens on git.host and git.port. Anyone who can reach that address can read all commits,
    including patches under test. To restrict access, do not run this; set git.url to another
    address of the mirror, such as ssh://.
    """
    from swingbot.app import git_server

    git_server.run(session.settings, click.echo)
