"""What a shell completes: ids and names that the service has, on its host or elsewhere.

A service that does not answer completes nothing: a shell shows no errors while one types.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

from swingbot.app.commands.context import CommandContext
from swingbot.app.settings import load, with_place
from swingbot.core.model import ids

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_ALL: Final = ("comparisons", "experiments", "bisections", "incidents", "reports", "orders")
_IDS: Final = 50  # the latest of each kind
_NAMES: Final = 10_000


class _Bash(BashComplete):
    """Bash ends words at `=`, so that `--tree=mm` arrives as three."""

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        words: list[str] = []
        for word in (*args, incomplete):
            last = words[-1] if words else "--"
            if not last.startswith("--") and (word == "=" or last.endswith("=")):
                words[-1] += word
            elif word != "=":
                words.append(word)
        if incomplete == "=" and words[-1].startswith("--"):
            words.append("")
        return words[:-1], words[-1]


add_completion_class(_Bash)


def session_of(params: Mapping[str, Any]) -> CommandContext:
    """Return the context of a command from the options of `swingbot`. Raises SettingsError."""
    config, state, port = (params.get(name) for name in ("config", "state", "port"))
    here = any(value is not None for value in (config, state, port))
    return CommandContext(with_place(load(config), state, port), here=here)


def ids_of(*plurals: str) -> Complete:
    """Complete the latest ids of these lists, of all without any."""

    def found(session: CommandContext, typed: str) -> Iterable[CompletionItem]:
        for plural in plurals or _ALL:
            if ids.LETTERS[plural.removesuffix("s")].startswith(typed[:1]):
                for row in session.documents.listing(plural, {}, _IDS):
                    yield CompletionItem(row["id"], help=_about(row))

    return _completing(found)


def names_of(plural: str, key: str = "name") -> Complete:
    """Complete the values that `key` has in a list; after a comma the next one."""

    def found(session: CommandContext, typed: str) -> Iterable[CompletionItem]:
        before = typed[: typed.rfind(",") + 1]
        rows = session.documents.listing(plural, {}, _NAMES)
        for value in dict.fromkeys(row[key] for row in rows):
            if value not in before.split(","):
                yield CompletionItem(before + value)

    return _completing(found)


def _jobs(session: CommandContext, typed: str) -> Iterable[CompletionItem]:
    from swingbot_jobs.language.job_files import shipped

    if "/" in typed or typed.startswith((".", "~")):
        return [CompletionItem(typed, type="file")]
    return [CompletionItem(name) for name in shipped(Path(session.settings.paths.jobs))]


def _completing(found: Callable[[CommandContext, str], Iterable[CompletionItem]]) -> Complete:
    def complete(
        context: click.Context, parameter: click.Parameter, typed: str
    ) -> list[CompletionItem]:
        items: list[CompletionItem] = []
        # SystemExit: this package is not installed for a service on this host
        with contextlib.suppress(Exception, SystemExit):
            session = session_of(context.find_root().params)
            items = [
                item
                for item in found(session, typed)
                if item.type != "plain" or item.value.startswith(typed)
            ]
        return items

    return complete


def _about(row: Mapping[str, Any]) -> str:
    words = (row.get("status") or row.get("state"), row.get("tree"), row.get("subject"))
    return " ".join(str(word) for word in words if word)


TREES: Final = names_of("trees")
TESTBOXES: Final = names_of("testboxes")
METRICS: Final = names_of("metrics", "metric")
UNIT_JOBS: Final = names_of("metrics", "unit_job")
JOBS: Final = _completing(_jobs)
