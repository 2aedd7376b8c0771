"""What somebody does with a swingbot in containers, from outside of them:
commands through the engine, pages and requests over HTTP, kills.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final

from tests.lab.compose.engine import Engine, until

ONCE: Final = ("keys", "migrate")  # they end
# they stay
PARTS: Final = (
    "postgres",
    "mail",
    "git",
    "web",
    "loop",
    "master",
    "build-worker",
    "testbox-worker",
    "grafana",
)
JOB: Final = "vm-hackbench.yaml"
WELL_SECONDS: Final = 400.0  # on two busy cores, where each Python takes seconds to start
OVER_SECONDS: Final = 3600.0
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Project:
    """The project that `engine` runs, with the ports that it publishes."""

    def __init__(self, engine: Engine, port: int, grafana_port: int) -> None:
        self.engine, self._port, self._grafana_port = engine, port, grafana_port

    # -- commands and questions

    def swingbot(self, *words: str) -> str:
        """A command, as users type it."""
        return self.engine.compose("exec", "-T", "loop", "swingbot", *words, seconds=600)

    def rows(self, query: str) -> list[str]:
        """Rows of one word each, from the database's own superuser in its container."""
        return self.engine.exec(
            "postgres",
            "psql",
            "-qtA",
            "-h",
            "/run/postgresql",
            "-U",
            "postgres",
            "swingbot",
            "-c",
            query,
        ).split()

    def page(self, path: str) -> str:
        return _fetch(f"http://localhost:{self._port}{path}")[1]

    def post(self, path: str, document: Any, token: str = "") -> tuple[int, Any]:
        """Status and answer to JSON, as a script sends it."""
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {token}"} if token else {}
        )
        status, said = _fetch(
            f"http://localhost:{self._port}{path}", json.dumps(document).encode(), headers
        )
        return status, json.loads(said)

    def grafana(self, path: str, sql: str | None = None) -> tuple[int, Any]:
        """Status and answer of the substitute for Grafana."""
        status, said = _fetch(
            f"http://localhost:{self._grafana_port}{path}", None if sql is None else sql.encode()
        )
        return status, json.loads(said)

    # -- comparisons

    def compare(self, *words: str, patch: str) -> int:
        """Queue a comparison of the base and the base with a patch; says its number."""
        self.engine.exec("loop", "sh", "-c", "cat >/tmp/my.patch", text=patch)
        said = self.swingbot(
            "compare",
            "base",
            "base",
            "--tree",
            "demo",
            "--job",
            JOB,
            "--patch",
            "/tmp/my.patch",
            *words,
        )
        match = re.search(r"\bc(\d+) is ", said)
        assert match is not None, said
        return int(match[1])

    def status(self, comparison: int) -> str:
        return self.rows(f"SELECT status FROM swingbot.comparison WHERE id = {comparison}")[0]

    def see_done(self, comparison: int) -> None:
        """Wait for its end, which is a good one."""
        until(
            f"c{comparison} is over",
            lambda: self.status(comparison) not in ("waiting", "running"),
            OVER_SECONDS,
            pause=5,
        )
        assert self.status(comparison) == "done", self.swingbot(
            "show", f"c{comparison}"
        ) + self.engine.logs("build-worker", "testbox-worker")

    def outcomes(self, comparison: int, kind: str) -> list[str]:
        """How the attempts at its builds (`build`) or boots (`boot`) ended, in their order:
        a status, `dead` or `running`.
        """
        ended = "coalesce(a.outcome->>'status', a.state)"
        of_it = (
            "JOIN swingbot.orders o ON o.id = a.order_id JOIN swingbot.want w ON w.order_id ="
            f" o.id WHERE w.comparison = {comparison} AND o.kind = '{kind}'"
        )
        return self.rows(f"SELECT {ended} FROM swingbot.attempt a {of_it} ORDER BY a.id")

    # -- stopping, dying, coming back

    def runs(self, part: str, program: str) -> bool:
        return program in self.engine.exec(part, "ps", "-eo", "comm", check=False).split()

    def kill(self, part: str) -> None:
        """End a container by SIGKILL from outside, as a host without memory does.

        Waits until the engine has started another first process.
        """
        before = self.engine.pid(part)
        assert before, f"{part} does not run"
        os.kill(before, signal.SIGKILL)
        until(f"{part} was started again", lambda: self.engine.pid(part) not in (0, before), 120)

    def see_well(self) -> None:
        """Wait until the health check of every part passes."""

        def ill() -> list[str]:
            return [part for part in PARTS if not self.engine.is_well(part)]

        try:
            until("every part is well", lambda: not ill(), WELL_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.engine.logs(*ill())}") from None

    def up(self) -> None:
        self.engine.compose("up", "--detach", seconds=1200)
        self.see_well()


def a_patch(trees: Path, word: str) -> str:
    """A mail with a patch of the tree's `init/version.c`, a little different for each `word`."""
    name = "init/version.c"
    shown = subprocess.run(
        ["git", "--git-dir", trees / "linux.git", "show", f"base:{name}"],
        check=True,
        capture_output=True,
        text=True,
    )
    old = shown.stdout.splitlines(keepends=True)
    new = [*old, "\n", f'const char swingbot_was_here[] = "{word}";\n']
    head = (
        "From: Demo Author <author@demo.invalid>\nDate: Thu,"
        f" 1 Jan 2026 12:00:00 +0000\nSubject: [PATCH] init: say {word}\n\n---\n"
    )
    return (
        head
        + f"diff --git a/{name} b/{name}\n"
        + "".join(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"))
    )


def _fetch(
    url: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, str]:
    try:
        with _OPENER.open(urllib.request.Request(url, body, headers or {}), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
