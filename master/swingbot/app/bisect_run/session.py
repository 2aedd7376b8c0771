"""One invocation of `swingbot bisect run`, from arguments to exit status."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final

import click

from swingbot.app import limits
from swingbot.app.bisect_run import output, process, result_json
from swingbot.app.bisect_run.bisector import Bisector, ProgressEvent, RangeResult, SearchOptions
from swingbot.app.bisect_run.command_pool import BenchmarkCommand, CommandPool
from swingbot.app.bisect_run.commit_range import CommitRange, make_range
from swingbot.app.bisect_run.control_images import ControlImages
from swingbot.app.bisect_run.failures import RunError, UsageError
from swingbot.app.bisect_run.journal import Journal, open_journal
from swingbot.app.bisect_run.layout_recipe import VariedLinks
from swingbot.app.bisect_run.repository import Repository
from swingbot.core.bisect.tell.journal import ENGINE
from swingbot.core.bisect.thresholds import Policy
from swingbot_jobs.terminal import say_json

# Old boots are invalid if one of these differs.
_STRICT: Final = ("format", "good", "bad", "cmd", "checkout", "pattern", "paths")
_LAYOUT: Final = "SWINGBOT_LAYOUT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """The arguments of the command line."""

    range_: str
    command: tuple[str, ...]
    repo: Path
    checkout: bool
    lower_is_better: bool
    pattern: str | None
    timeout: float | None
    jobs: int
    min_effect: float
    noise: float | None
    confidence: float
    boots_max: int
    first_parent: bool
    paths: tuple[str, ...]
    layouts: str | None  # a recipe
    image: Path | None
    state: Path | None
    restart: bool
    quiet: bool
    exit_code: bool
    json_: bool


def call(it: Invocation) -> int:
    """Bisect and print; return the exit status.

    0: answered, 1: failed, 2: invalid input, 130: interrupted; for 3 and 4 see `exit_status`.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        return _bisect(it)
    except UsageError as error:
        click.echo(f"swingbot: {error}", err=True)
        return 2
    except RunError as error:
        click.echo(f"swingbot: {error}", err=True)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        click.echo(f"swingbot: {error.filename or 'input or output'}: {error.strerror}", err=True)
        return 1
    except KeyboardInterrupt:
        click.echo("swingbot: interrupted; run the same command to resume", err=True)
        return 130


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _bisect(it: Invocation) -> int:
    def say(text: str) -> None:
        if not it.quiet:
            click.echo(text, err=True)

    pattern = _check(it)
    repository = Repository(it.repo)
    good, bad = _ends(repository, it.range_, say)
    whole = _range(repository, good, bad, it.paths)
    if it.layouts == "cmd" and not _reads_layout(it, repository, bad):
        say(
            "--layouts cmd has no effect: neither CMD, nor a file that it names, nor the bad commit"
            " with --checkout mentions SWINGBOT_LAYOUT"
        )
        it = replace(it, layouts=None)
    place = (
        it.state or repository.git_dir / "swingbot" / f"bisect-{good[:12]}-{bad[:12]}"
    ).resolve()
    begin = _begin(it, good, bad)
    journal = open_journal(
        place / "log", begin, restart=it.restart, loose=frozenset(begin) - set(_STRICT)
    )
    try:
        journal.vary_by(it.layouts)
        if journal.unanswered_anywhere() and (ended := process.end_leftovers(place)):
            say(f"killed {ended} processes left running by an interrupted invocation")
        if journal.booted:
            say(f"resuming after {len(journal.booted)} boots ({journal.path})")
            if (begun := journal.begin.get("engine")) != ENGINE:
                say(
                    f"engine {begun or 'unknown'} began this bisection; its boots count, and engine"
                    f" {ENGINE} decides from here"
                )
        changed = _changed(journal.begin, begin)
        if changed:
            say(
                f"{', '.join(changed)}: changed since the bisection started; --restart measures"
                " again"
            )
        lab = CommandPool(
            repository,
            place,
            BenchmarkCommand(
                argv=it.command,
                checkout=it.checkout,
                pattern=pattern,
                jobs=it.jobs,
                links=_links(it, place),
                image=it.image,
            ),
            _zero(journal),
        )
        controls = ControlImages(repository)
        if not it.layouts and not journal.booted:
            say(
                "images cannot be varied without --layouts: a commit that stays below --confidence"
                f" {it.confidence:g} ends as a suspect"
            )
            for missing in (controls.missing(whole, i) for i in (0, len(whole.shas) - 1)):
                if missing:
                    say(f"{missing}: a change by the commit beside it may stay a suspect")
        bisector = Bisector(
            journal,
            lab,
            repository,
            _wanted(it),
            output.teller(say) if not it.quiet else _silent,
            controls,
        )
        before = len(journal.booted)
        result = bisector.run(whole)
        lab.take_down()
        known = _answered_before(journal, before) | {"cmd_changed": changed}
        return _print(it, result, bisector, known, controls)
    finally:
        journal.close()


def _silent(event: ProgressEvent, bisector: Bisector) -> None:
    """Ignore progress: each line costs the computation of a posterior."""


def _check(it: Invocation) -> re.Pattern[str] | None:
    """Check the arguments before anything starts; return the compiled pattern.

    Raises UsageError.
    """
    if not it.command:
        raise UsageError(
            "CMD is missing; write it after --, as in `swingbot bisect run GOOD..BAD -- ./bench`"
        )
    if it.layouts in ("program", "kernel") and not it.checkout:
        raise UsageError(
            f"--layouts {it.layouts} needs --checkout: swingbot varies what CMD links in its own"
            " work tree"
        )
    name = it.command[0]
    relative = "/" in name and not os.path.isabs(name)
    if not (it.checkout and relative) and shutil.which(name) is None:
        why = (
            "is not executable (run chmod +x, or start it as `sh FILE`)"
            if Path(name).is_file()
            else "was not found"
        )
        raise UsageError(f"CMD {name!r} {why}")
    try:
        return re.compile(it.pattern) if it.pattern is not None else None
    except re.error as error:
        raise UsageError(f"--pattern {it.pattern!r} is not a regular expression: {error}") from None


def _ends(repository: Repository, text: str, say: Callable[[str], None]) -> tuple[str, str]:
    """Both ends as full commit ids, the older one first. Raises UsageError."""
    good_ref, dots, bad_ref = text.partition("..")
    if not dots or not good_ref or bad_ref.startswith("."):
        raise UsageError(f"{text!r}: write the range as GOOD..BAD")
    good, bad = repository.resolve(good_ref), repository.resolve(bad_ref or "HEAD")
    if good == bad:
        raise UsageError(
            f"{good_ref} and {bad_ref or 'HEAD'} are the same commit, {good[:12]}; there is nothing"
            " to bisect"
        )
    if repository.is_ancestor(good, bad):
        return good, bad
    if repository.is_ancestor(bad, good):
        say(
            f"{bad_ref} is older than {good_ref}; bisecting {bad_ref}..{good_ref}; the change is"
            " reported from older to newer"
        )
        return bad, good
    base = repository.merge_base(good, bad)
    hint = (
        f"bisect {base[:12]}..{bad_ref}, from the merge base, or {base[:12]}..{good_ref}"
        if base
        else "they have no commit in common"
    )
    raise UsageError(f"{good_ref} is not an ancestor of {bad_ref or 'HEAD'}; {hint}")


def _range(repository: Repository, good: str, bad: str, paths: tuple[str, ...]) -> CommitRange:
    relevant = repository.touching(good, bad, paths) if paths else None
    if relevant is not None and not relevant:
        raise UsageError(f"no commit between {good[:12]} and {bad[:12]} touches {' '.join(paths)}")
    return make_range(good, bad, repository.log(good, bad), relevant)


def _begin(it: Invocation, good: str, bad: str) -> dict[str, Any]:
    return {
        "good": good,
        "bad": bad,
        "cmd": list(it.command),
        "checkout": it.checkout,
        "pattern": it.pattern,
        "paths": list(it.paths),
        "cwd": os.getcwd(),
        "min_effect": it.min_effect,
        "noise": it.noise,
        "jobs": it.jobs,
        "layouts": it.layouts,
        "files": _files(it),
        "engine": ENGINE,
        "began": round(time.time(), 3),
    }


def _files(it: Invocation) -> dict[str, str]:
    """SHA-256 of each file that CMD names, except files that --checkout takes from the commit."""
    return {word: hashlib.sha256(content).hexdigest() for word, content in _contents(it)}


def _contents(it: Invocation) -> Iterator[tuple[str, bytes]]:
    for place, word in enumerate(it.command):
        path = Path((shutil.which(word) if place == 0 else word) or word)
        if it.checkout and not Path(word).is_absolute() and "/" in word:
            continue
        with contextlib.suppress(OSError, ValueError):
            if path.is_file() and path.stat().st_size <= limits.COMMAND_FILE_BYTES:
                yield word, path.read_bytes()


def _reads_layout(it: Invocation, repository: Repository, bad: str) -> bool:
    """Whether CMD, a file that it names, or the bad commit that it builds mentions the layout."""
    return (
        any(_LAYOUT in word for word in it.command)
        or any(_LAYOUT.encode() in content for _, content in _contents(it))
        or (it.checkout and repository.mentions(bad, _LAYOUT))
    )


def _links(it: Invocation, place: Path) -> VariedLinks | None:
    """The links of a recipe by which swingbot varies the layout itself."""
    if it.layouts in (None, "cmd"):
        return None
    links = VariedLinks(it.layouts, place)
    links.install()
    return links


def _changed(begun: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Files named by CMD that have changed since the bisection started."""
    old = begun.get("files", {})
    return [word for word, digest in now["files"].items() if old.get(word, digest) != digest]


def _answered_before(journal: Journal, before: int) -> dict[str, Any]:
    """Time and number of boots of the earlier answer, if this invocation booted nothing."""
    if not before or len(journal.booted) > before:
        return {"answered_before": None}
    ended = float(journal.begin.get("began", 0.0)) + max(b.at + b.seconds for b in journal.booted)
    at = datetime.fromtimestamp(ended, UTC).isoformat(timespec="seconds")
    return {"answered_before": {"at": at, "boots": before}}


def _zero(journal: Journal) -> float:
    """Offset by which the monotonic clock continues from the last boot despite wall-clock jumps."""
    last = max((b.at + b.seconds for b in journal.booted), default=0.0)
    return max(last, time.time() - float(journal.begin.get("began", 0.0))) - time.monotonic()


def _wanted(it: Invocation) -> SearchOptions:
    return SearchOptions(
        policy=Policy(confidence=it.confidence, max_boots=it.boots_max, parallel=it.jobs),
        min_effect_pct=it.min_effect,
        noise_pct=it.noise,
        timeout=it.timeout,
        first_parent=it.first_parent,
        paths=it.paths,
        layouts=it.layouts is not None,
    )


def _print(
    it: Invocation,
    result: RangeResult,
    bisector: Bisector,
    known: result_json.Facts,
    controls: ControlImages,
) -> int:
    journal, repository = bisector.journal, bisector.repository
    facts = known | result_json.facts(
        result, journal.booted, "lower" if it.lower_is_better else "higher", str(journal.path)
    )
    if (suspect := facts["suspect"]) and not bisector.layouts:
        whole = result.part.range
        idx = whole.shas.index(suspect["commit"])
        suspect["settled_by"] = controls.to_settle(suspect["settled_by"], whole, idx)
    if it.json_:
        say_json(facts)
    else:
        shown = repository.show(facts["culprit"]["commit"]) if facts["culprit"] else ""
        click.echo(output.answer(facts, shown, it.command, journal.booted, checkout=it.checkout))
    if facts["status"] == "failed":
        return 1
    return result_json.exit_status(facts) if it.exit_code else 0
