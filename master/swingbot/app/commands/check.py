"""`swingbot check`: the measurements of a posted series, as a check of `b4 review`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from swingbot.adapters.mail_reader import read_heads, read_patches
from swingbot.adapters.patch_files import patch_sources
from swingbot.adapters.patch_ids import patch_ids
from swingbot.app import limits
from swingbot.app.commands.context import CommandContext, read_jobs, require_service, with_session
from swingbot.app.commands.requests import job_option, shown_plan, tree_option
from swingbot.app.queued_request import GoOn
from swingbot.app.remote.checkout import Checkout
from swingbot.core.limits import QUERY_VALUES, SERIES_BYTES
from swingbot.core.mail.message import is_message_id
from swingbot.core.mail.posting import series_ids
from swingbot.core.model import ids
from swingbot.core.patchset.model import PatchSeries, PatchSource, SeriesError
from swingbot.core.patchset.read import one_file
from swingbot.core.patchset.subject import read_subject
from swingbot.core.report.series_check import CheckResult, check_result
from swingbot.service.ports import RequestError
from swingbot.service.ports.results import Unreadable
from swingbot_jobs.terminal import say_json

_TRACKING: Final = "B4_TRACKING_FILE"
_TABLES: Final = 5  # the latest ones that count
_SHOWN: Final = 3  # of these, those in the details
_NOT_COMPARED: Final = "measured under these Message-IDs; the diffs were not compared"
_DIFFERENT: Final = "what was measured has not exactly these diffs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """`mails` maps the Message-ID of each patch to its number; empty if they are not known.
    `patch_ids` are those of the patches; empty without them, or without git.

    `series` is None if not all patches are here; `why` is the reason.
    """

    mails: Mapping[str, int]
    count: int  # of the patches
    sources: Sequence[PatchSource]
    series: PatchSeries | None
    patch_ids: Sequence[str] = ()
    why: str = ""


@click.command()
@click.argument(
    "files", metavar="[FILE]...", nargs=-1, type=click.Path(exists=True, path_type=Path)
)
@click.option("--ask", is_flag=True, help="Queue a comparison if there is none.")
@tree_option
@click.option(
    "--base", default="tip", metavar="COMMIT", help="With --ask: what the patches apply to (tip)."
)
@job_option
@with_session
def check(
    session: CommandContext,
    files: tuple[Path, ...],
    ask: bool,
    tree_name: str | None,
    base: str,
    jobs: tuple[str, ...],
) -> None:
    """Print the measurements of a posted series, for `b4 review`.

    Reads a mail or mailbox from FILE or standard input and prints the JSON of b4's check commands.
    The status is `fail` if a kernel of the series does not build or come up, `warn` if something
    got worse, is unclear or not measured yet, else `pass`. With a cover letter from b4 it finds the
    patches in b4's own records.

    \b
    Example:
      git config b4.review-series-check-cmd "swingbot check"
    """
    posting = _posting(files)
    result = _measured(session, posting)
    if result is None and ask:
        result = _asked(session, posting, tree_name, base, jobs)
    say_json([(result or _unmeasured(posting)).to_json()])


def _measured(session: CommandContext, posting: Posting) -> CheckResult | None:
    """Return what tables say of the series; None if no table has it."""
    mails = sorted(posting.mails, key=posting.mails.__getitem__)[-QUERY_VALUES:]
    patches = list(filter(None, posting.patch_ids))[-QUERY_VALUES:]
    documents = session.documents
    found = (
        [one for one in documents.posted(mails, patches) if one["tables"]]
        if mails or patches
        else []
    )
    places = {one["commit"]: number for one in found if (number := _same(posting, one))}
    doubt = ""
    if not places:
        places = {one["commit"]: number for one in found if (number := _alike(posting, one))}
        doubt = _DIFFERENT if patches else _NOT_COMPARED
    named = {id_ for one in found if one["commit"] in places for id_ in one["tables"]}
    latest = sorted(named, key=lambda id_: -ids.read(id_)[1])[:_TABLES]
    tables = [documents.document(id_) for id_ in latest]
    if not tables:
        return None
    page = f"{documents.url}/{ids.read(latest[0])[0]}/{latest[0]}"
    result = check_result(tables, places, posting.count, page)
    shown = [documents.shown(id_, counters=False).strip() for id_ in latest[:_SHOWN]]
    return replace(result.doubted(doubt), details="\n\n".join(shown))


def _same(posting: Posting, commit: Mapping[str, Any]) -> int:
    """How many patches of the posting a commit consists of; 0 if it has anything else."""
    own = commit["patch_ids"]
    same = commit["complete"] and all(own) and own == posting.patch_ids[: len(own)]
    return len(own) if same else 0


def _alike(posting: Posting, commit: Mapping[str, Any]) -> int:
    """The number of the patch whose Message-ID, or own diff, a commit has; 0 for none."""
    own = commit["patch_ids"][-1:]
    if own and own[0] in posting.patch_ids:
        return posting.patch_ids.index(own[0]) + 1
    return posting.mails.get(commit["message_id"], 0)


def _unmeasured(posting: Posting) -> CheckResult:
    if posting.mails:
        return CheckResult(
            status="warn",
            summary="not measured",
            details="To measure it: `swingbot check --ask FILE`, with a mailbox of the series.",
        )
    return CheckResult(
        status="warn",
        summary="the patches of this mail are not known",
        details=f"{posting.why}. Check the series out in b4 review, or give a mailbox as FILE.",
    )


def _asked(
    session: CommandContext,
    posting: Posting,
    tree: str | None,
    base: str,
    jobs: Sequence[str],
) -> CheckResult:
    """Queue a comparison of the series, and say how long it takes."""
    if posting.series is None:
        return CheckResult(
            status="warn",
            summary="not measured, and not all patches are here",
            details=f"{posting.why}. Give a mailbox of the series as FILE.",
        )
    said: list[str] = []

    def go_on(plan: dict[str, Any], lines: list[str]) -> bool:
        said.extend(lines)
        return shown_plan(plan, lines, {"dry_run": False, "yes": False, "json_": False})

    try:
        _queue(session, posting, tree, base, jobs, go_on)
    except RequestError as error:
        return CheckResult(status="warn", summary=f"not measured; refused: {error}")
    result = _measured(session, posting)
    if result is None:
        return CheckResult(status="warn", summary="queued", details="\n".join(said))
    return replace(result, details="\n".join(said))


def _queue(
    session: CommandContext,
    posting: Posting,
    tree: str | None,
    base: str,
    jobs: Sequence[str],
    go_on: GoOn,
) -> None:
    """Queue a comparison of the whole series with its base. Raises RequestError."""
    from swingbot.app.remote.http_tables import HttpTables, SourcedSeries
    from swingbot.service.table.kernels import KernelRequest, at, patched
    from swingbot.service.table.request import TableRequest

    assert posting.series is not None
    series = SourcedSeries(
        patches=posting.series.patches,
        left_out=posting.series.left_out,
        notes=posting.series.notes,
        sources=tuple(posting.sources),
    )
    kernels = KernelRequest(base=base, rows=patched([at(base)], series, base))
    request = TableRequest(kernels=kernels, tree=tree)
    if session.login is not None:
        HttpTables(session.login, Checkout.around(Path.cwd())).ask(request, jobs, go_on)
    else:
        require_service()
        from swingbot.app.database_tables import ask

        files = read_jobs(jobs, session.settings.paths.jobs)
        ask(session.lab, replace(request, job_files=files), go_on)


# -- reading ------------------------------------------------------------------


def _posting(files: Sequence[Path]) -> Posting:
    """Return the posting in the files, or that of the mail on standard input. Raises
    RequestError.
    """
    if files:
        sources = patch_sources(files)
        return _read(sources, sources[0].files[0].data)
    if sys.stdin.isatty():
        raise RequestError("give FILE, or a mail on standard input as b4 does")
    mail = sys.stdin.buffer.read(SERIES_BYTES + 1)
    if len(mail) > SERIES_BYTES:
        raise RequestError(f"the mail has more than {SERIES_BYTES >> 20} MiB")
    return _read([one_file("the mail", mail)], mail, _thread())


def _read(sources: Sequence[PatchSource], mail: bytes, thread: bytes = b"") -> Posting:
    """Read a series in `sources`, or else in the thread of `mail`. Raises RequestError."""
    try:
        head = read_heads([mail.partition(b"\n")[2] if mail.startswith(b"From ") else mail])[0]
        own = head["message-id"].strip()
        if own and own.encode() in thread:
            sources = [one_file("the thread", thread)]
        series = read_patches(sources)
    except Unreadable as error:
        raise RequestError(f"the mail cannot be read: {error}") from None
    except SeriesError as error:
        tagged = read_subject(head["subject"])
        number, count = tagged.number or 0, tagged.count or 1
        own_series = series_ids(own, number, count) if tagged.number is not None else []
        mails = dict(zip(own_series, range(1, count + 1), strict=False))
        if number:
            mails.setdefault(own, number)
        return Posting(
            mails=_usable(mails), count=count, sources=sources, series=None, why=str(error)
        )
    return Posting(
        mails=_usable({one.message_id or "": one.number for one in series.patches}),
        count=len(series.patches),
        sources=sources,
        series=series,
        patch_ids=patch_ids([one.diff for one in series.patches]),
    )


def _usable(mails: Mapping[str, int]) -> dict[str, int]:
    return {id_: number for id_, number in mails.items() if is_message_id(id_)}


def _thread() -> bytes:
    """Return the thread that b4 recorded for the series that it checks; empty if there is none.

    B4_TRACKING_FILE names a JSON document (`series.thread-blob`, a mailbox in the repository).
    """
    name = os.environ.get(_TRACKING)
    checkout = Checkout.around(Path.cwd()) if name else None
    if not name or checkout is None:
        return b""
    try:
        with Path(name).open("rb") as file:
            blob = json.loads(file.read(limits.TRACKING_BYTES))["series"]["thread-blob"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        click.echo(f"{_TRACKING}={name}: not read ({type(error).__name__})", err=True)
        return b""
    return checkout.blob(str(blob), SERIES_BYTES)
