"""`swingbot bisect start`, `wait`, `cancel`: requests made by hand."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from swingbot.app.commands import text
from swingbot.app.commands.completion import JOBS, METRICS, TESTBOXES, TREES, UNIT_JOBS, ids_of
from swingbot.app.commands.confirm import confirm
from swingbot.app.commands.context import (
    CommandContext,
    as_json,
    read_jobs,
    read_overrides,
    require_service,
    with_session,
    with_session_json,
)
from swingbot.app.documents import Documents, Facts, ServiceAway
from swingbot.app.queued_request import QueuedRequest
from swingbot.core.model import ids
from swingbot.core.text.numbers import duration
from swingbot.service.ports import RequestError
from swingbot_jobs.printable import printable
from swingbot_jobs.terminal import say_json

if TYPE_CHECKING:
    from swingbot.core.patchset.bundle import SentCommits

F = TypeVar("F", bound=Callable[..., Any])
_POLL_SECONDS: Final = 1.0
_AWAY_SECONDS: Final = 600.0  # for which a service may not answer while one waits
_AWAY_PAUSE_SECONDS: Final = 10.0

tree_option = click.option(
    "--tree",
    "tree_name",
    shell_complete=TREES,
    help="Tree of the commits (default: the only tree that contains them).",
)
job_option = click.option(
    "--job",
    "jobs",
    shell_complete=JOBS,
    multiple=True,
    metavar="FILE",
    help="Job file: a path or the name of a shipped job (default: the tree's jobs).",
)
set_option = click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key of the job file."
)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Print the plan and its cost; queue nothing."
)
yes_option = click.option("--yes", is_flag=True, help="Queue without confirmation.")
wait_option = click.option(
    "--wait", "wait_", is_flag=True, help="Wait for the result and show progress."
)
exit_code_option = click.option(
    "--exit-code",
    is_flag=True,
    help="Wait, then exit with 3 if a metric got worse, 4 if the answer is unclear or invalid.",
)
dirty_option = click.option(
    "--dirty",
    is_flag=True,
    help="Measure uncommitted changes of this checkout, as a commit of their own.",
)


def queueing(command: F) -> F:
    """Add the options of every command that queues something."""
    for option in (as_json, exit_code_option, wait_option, yes_option, dry_run_option):
        command = option(command)
    return command


def sent_changes(session: CommandContext, refs: Sequence[str], *, dirty: bool) -> SentCommits:
    """Return the commits that `refs` name in the checkout around the working directory, with its
    uncommitted changes, for the service on this host; none without `dirty`. Raises RequestError.
    """
    from swingbot.core.patchset.bundle import SentCommits

    if not dirty:
        return SentCommits()
    from swingbot.app.remote.checkout import Checkout
    from swingbot.service.asked.commits import sender

    if (checkout := Checkout.around(Path.cwd(), note)) is None:
        raise RequestError("--dirty: this is not a git checkout")
    git = session.lab.tools.git
    return checkout.to_send(refs, lambda ask: git.known(ask, sender(None)), dirty=True).sent


def note(line: str) -> None:
    """Print a line about a request, without control characters: others choose the names in it."""
    click.echo(printable(line), err=True)


def shown_plan(document: Facts, lines: list[str], given: Mapping[str, Any]) -> bool:
    """Show a plan, and return whether it is to be queued. Raises RequestError."""
    if given["dry_run"] and given["json_"]:
        say_json(document)
        return False
    for line in lines:
        click.echo(line, err=not given["dry_run"])
    if given["dry_run"]:
        return False
    confirm(yes=given["yes"] or given["json_"])
    return True


def answer_queued(session: CommandContext, asked: QueuedRequest, given: Mapping[str, Any]) -> None:
    answer(
        session,
        asked.id,
        wait_=given["wait_"] or given["exit_code"],
        exit_code=given["exit_code"],
        json_=given["json_"],
        more={"plan": asked.plan},
    )


@click.command()
@click.argument("range_", metavar="GOOD..BAD", required=False)
@click.option("--good", help="One end of the range; requires --bad; the order does not matter.")
@click.option("--bad", help="Other end of the range.")
@tree_option
@job_option
@set_option
@click.option(
    "--metric",
    required=True,
    shell_complete=METRICS,
    help="Full metric name, such as netperf.Throughput_Mbps.",
)
@click.option("--unit-job", shell_complete=UNIT_JOBS, help="Unit job, if several have the metric.")
@click.option(
    "--testbox",
    metavar="ID|GROUP",
    shell_complete=TESTBOXES,
    help="Testbox to use (default: the tree's first).",
)
@click.option(
    "--trusted",
    is_flag=True,
    help="Treat commits in the range that swingbot created from patches as trusted.",
)
@click.option(
    "--mail",
    is_flag=True,
    help="Send a mail when it is over: to the address of your token, on the service's own host to"
    " the operator.",
)
@dirty_option
@queueing
@with_session
def start(session: CommandContext, /, **given: Any) -> None:
    """Bisect GOOD..BAD for METRIC.

    Measures the ends first, then the most informative commits, and finally confirms the culprit
    with fresh boots of it and its parent. Logged in elsewhere, commits of the checkout in this
    directory are sent along. The command prints the plan and its cost first; on a terminal it asks
    for confirmation before it queues anything.

    \b
    Example:
      swingbot bisect start base..tip --tree linus --metric netperf.Throughput_Mbps --wait
    """
    from swingbot.service.bisect.request import BisectionRequest

    good, bad = _ends(given["range_"], given["good"], given["bad"])
    request = BisectionRequest(
        tree=given["tree_name"],
        good=good,
        bad=bad,
        overrides=read_overrides(given["overrides"]),
        metric=given["metric"],
        testbox=given["testbox"],
        unit_job=given["unit_job"],
        trusted=given["trusted"],
        mail=given["mail"],
    )

    def go_on(plan: Facts, lines: list[str]) -> bool:
        return shown_plan(plan, lines, given)

    if session.login is not None:
        from swingbot.app.remote.checkout import Checkout
        from swingbot.app.remote.http_bisections import HttpBisections

        bisections = HttpBisections(session.login, Checkout.around(Path.cwd(), note), note)
        asked = bisections.start(request, given["jobs"], go_on, dirty=given["dirty"])
    else:
        require_service()
        from swingbot.app.database_bisections import start as start_here

        jobs = read_jobs(given["jobs"], session.settings.paths.jobs)
        sent = sent_changes(session, (good, bad), dirty=given["dirty"])
        asked = start_here(session.lab, replace(request, job_files=jobs, sent=sent), go_on)
    if asked is not None:
        answer_queued(session, asked, given)


def _ends(range_: str | None, good: str | None, bad: str | None) -> tuple[str, str]:
    """Return the ends of the range, whichever way they are given. Raises RequestError."""
    if range_ is not None and (good or bad):
        raise RequestError("give either GOOD..BAD or --good and --bad, not both")
    if range_ is not None:
        good, dots, bad = range_.partition("..")
        if not dots:
            raise RequestError(f"{range_}: write the range as GOOD..BAD")
    if not good or not bad:
        raise RequestError("give both ends of the range: GOOD..BAD, or --good G --bad B")
    return good, bad


@click.command()
@click.argument(
    "id_",
    metavar="ID",
    required=False,
    shell_complete=ids_of("comparisons", "experiments", "bisections", "orders"),
)
@click.option("--idle", is_flag=True, help="Wait until no work is open, including mails.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="S",
    help="Timeout in seconds (exit status 1).",
)
@exit_code_option
@with_session_json
def wait(
    session: CommandContext,
    id_: str | None,
    idle: bool,
    timeout: float | None,
    exit_code: bool,
    json_: bool,
) -> None:
    """Wait for a comparison, experiment or bisection, or (--idle) for all open work.

    Idle means that no work is open and that processing the latest results would not start any. Exit
    status 1 on timeout; --timeout 0 only checks the current state.

    \b
    Examples:
      swingbot wait c5 --timeout 3600
      swingbot wait --idle --timeout 3600 && swingbot list reports
    """
    if idle == (id_ is not None):
        raise RequestError("give either an ID or --idle")
    if id_ is not None:
        answer(session, id_, wait_=True, exit_code=exit_code, json_=json_, timeout=timeout)
    elif exit_code:
        raise RequestError("--exit-code requires the ID of a comparison, experiment or bisection")
    else:
        _wait_idle(session.documents, timeout, json_)


@click.command()
@click.argument(
    "id_", metavar="ID", shell_complete=ids_of("comparisons", "experiments", "bisections")
)
@with_session
def cancel(session: CommandContext, id_: str) -> None:
    """Cancel a comparison, experiment or bisection and stop work needed only by it.

    \b
    Example:
      swingbot cancel c5
    """
    kind, number = ids.read(id_)
    before: str
    if kind not in ids.REQUESTS:
        raise RequestError(
            f"{id_} cannot be cancelled; give a comparison (c5), experiment (e6) or bisection (b2)"
        )
    if session.login is not None:
        from swingbot.app.remote.http_requests import HttpRequests

        before = HttpRequests(session.login).cancel(id_)
    elif kind in ids.TABLES:
        require_service()
        from swingbot.service.table.cancel import cancel_table

        before = cancel_table(session.lab.transaction, id_)
    else:
        require_service()
        from swingbot.service.bisect.cancel import cancel_bisection

        before = cancel_bisection(session.lab.transaction, session.lab.tools.git, number)
    ended = before not in ("waiting", "running", "cancelled")
    click.echo(f"{id_} had already ended: {before}" if ended else f"{id_} is cancelled")


@click.command()
@click.argument("id_", metavar="ID", shell_complete=ids_of("comparisons", "experiments"))
@with_session
def publish(session: CommandContext, id_: str) -> None:
    """Let everybody read a private comparison or experiment, and its kernels.

    \b
    Example:
      swingbot publish c5
    """
    if ids.read(id_)[0] not in ids.TABLES:
        raise RequestError(
            f"{id_} is not private; give a comparison (c5) or an experiment (e6) that is"
        )
    if session.login is not None:
        from swingbot.app.remote.http_requests import HttpRequests

        HttpRequests(session.login).publish(id_)
    else:
        require_service()
        from swingbot.service.table.publish import publish as publish_table

        publish_table(session.lab.transaction, id_)
    click.echo(f"everybody may read {id_}")


def answer(
    session: CommandContext,
    id_: str,
    *,
    wait_: bool,
    exit_code: bool,
    json_: bool,
    timeout: float | None = None,
    more: Facts | None = None,
) -> None:
    kind, _ = ids.read(id_)
    if kind not in ids.REQUESTS:
        raise RequestError(
            f"cannot wait for {kind} {id_}; give a comparison (c5), experiment (e6) or bisection"
            " (b2)"
        )
    documents = session.documents
    facts = _wait(documents, id_, timeout) if wait_ else documents.progress(id_)
    if json_ or exit_code or (wait_ and kind == "bisection"):
        facts = documents.document(id_)
    if json_:
        say_json(facts | (more or {}))
    elif not wait_:
        click.echo(
            f"{id_} is {facts['status']}: {documents.url}/{kind}/{id_}  (swingbot wait {id_})"
        )
    elif kind == "bisection":
        click.echo(text.bisection(facts))
    else:
        click.echo(documents.shown(id_, counters=False).rstrip())
    if exit_code:
        sys.exit(verdict_status(facts))
    if wait_ and facts["status"] in ("failed", "cancelled"):
        sys.exit(1)


def _wait(documents: Documents, id_: str, timeout: float | None) -> Facts:
    return _poll(
        lambda: documents.progress(id_),
        lambda: documents.news(id_, _POLL_SECONDS),
        lambda facts: bool(facts["over"]),
        _progress,
        timeout,
        lambda facts, waited: (
            f"{id_} has not finished after {waited}; it continues, run `swingbot wait {id_}` again"
        ),
    )


def _wait_idle(documents: Documents, timeout: float | None, json_: bool) -> None:
    def later() -> Facts:
        time.sleep(_POLL_SECONDS)
        return documents.open_work()

    facts = _poll(
        documents.open_work,
        later,
        lambda facts: bool(facts["idle"]),
        lambda facts: text.open_work(facts["open"]),
        timeout,
        lambda facts, waited: (
            f"not idle after {waited} ({text.open_work(facts['open'])}); work continues"
        ),
    )
    if json_:
        say_json(facts)
    else:
        click.echo("idle: no open work")


def _poll(
    load: Callable[[], Facts],
    news: Callable[[], Facts | None],
    over: Callable[[Facts], bool],
    progress: Callable[[Facts], str],
    timeout: float | None,
    late: Callable[[Facts, str], str],
) -> Facts:
    """Load, and look for news until finished, showing progress; for a while also where the service
    does not answer. `news` waits for some, or returns None.

    Raises TimeoutError with the text that `late` gives for the last state, ServiceAway.
    """
    began, printed, facts = time.monotonic(), "", load()
    while True:
        if over(facts):
            return facts
        line = progress(facts)
        if line != printed:
            click.echo(f"[{duration(time.monotonic() - began)}] {line}", err=True)
            printed = line
        if timeout is not None and time.monotonic() - began > timeout:
            raise TimeoutError(late(facts, duration(timeout)))
        facts = _again(news) or facts


def _again(load: Callable[[], Facts | None]) -> Facts | None:
    """Load; a service that is away may be started again meanwhile. Raises ServiceAway."""
    began = time.monotonic()
    while True:
        try:
            return load()
        except ServiceAway as error:
            if time.monotonic() - began > _AWAY_SECONDS:
                raise
            click.echo(f"{error}; trying again", err=True)
            time.sleep(_AWAY_PAUSE_SECONDS)


def _progress(facts: Facts) -> str:
    waits = facts["waits"]
    remaining = [] if waits and facts["eta_seconds"] is None else [text.left(facts)]
    return "; ".join([f"{facts['id']} {facts['words']}", *waits, *remaining])


def verdict_status(facts: Facts) -> int:
    """Exit status for --exit-code: 3 worse, 4 unclear or invalid, 1 failed, else 0."""
    if facts["status"] in ("failed", "cancelled"):
        return 1
    if facts["id"].startswith("b"):
        return {"culprit": 3, "several": 3, "not_reproduced": 0}.get(facts["status"], 4)
    verdicts = {row["verdict"] for row in facts["rows"] if row.get("class") == "benchmark"}
    if "worse" in verdicts:
        return 3
    return 4 if verdicts & {"unclear", "invalid"} or not verdicts else 0
