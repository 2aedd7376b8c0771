"""What the lab whose time limits are cut to a hundredth shows: its pages, JSON documents, tables
and commands say that work was lost, and nothing about a kernel."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.app import database_documents
from swingbot.app.cli import main
from swingbot.core.plan import queue
from swingbot_db.engine import make_engine
from tests.brain.test_limits_cut import compare_within_cut_limits, cut_all
from tests.fakes.brain import Brain
from tests.served import Served, served

VERDICT = re.compile(
    r"does(?: not|n't) (?:build|boot)|did not (?:build|boot)|panicked|\bhung\b|\boops|unbootable"
    r"|no kernel[:,<]|\d ?% (?:worse|better|slower)|regressed|first bad commit",
    re.I,
)
READ = re.compile(r"text/|application/json|application/atom")
MOST_PAGES = 300
COMMANDS = (
    *(["status"], ["tree", "show", "fake"], ["list", "comparisons"]),
    *(["show", "c1"], ["show", "c1", "--json"], ["show", "c2"], ["show", "o1"], ["show", "o4"]),
)


def fetched(web: Served, path: str) -> httpx.Response:
    """Return the answer of a service whose limits may be shorter than a busy machine takes."""
    for _ in range(20):
        try:
            return web.client.get(path, follow_redirects=True)
        except httpx.TransportError:
            continue
    raise AssertionError(f"no answer to {path}")


def printed(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the output of a command; a busy machine may not show its state in time."""
    for _ in range(20):
        done = CliRunner(env=environment).invoke(main, words)
        if done.exit_code == 0:
            return done.output
        assert "statement timeout" in done.output, done.output
    raise AssertionError(done.output)


def pages(web: Served) -> Iterator[tuple[str, str]]:
    """Follow all links from the start page, but into the documentation: addresses and texts."""
    todo, seen = ["/", "/comparison/c1.json", "/status.json"], set[str]()
    while todo and len(seen) < MOST_PAGES:
        path = todo.pop(0)
        if path in seen or path.endswith((".tar.gz", ".svg", ".css", ".js")):
            continue
        if path.startswith("/docs"):
            continue
        seen.add(path)
        answer = fetched(web, path)
        assert answer.status_code < 500, (path, answer.text)
        if READ.match(answer.headers["content-type"]):
            yield path, answer.text
            todo += [
                link.replace("&amp;", "&") for link in re.findall(r'href="(/[^"#]*)"', answer.text)
            ]


def values(document: Any, key: str) -> Iterator[Any]:
    """Yield what stands under a key anywhere in a document."""
    if isinstance(document, dict):
        yield from (document[key] for _ in range(key in document))
    for inner in document.values() if isinstance(document, dict) else document:
        if isinstance(inner, dict | list):
            yield from values(inner, key)


@pytest.mark.parametrize("real", ["builds", "boots"])
def test_nothing_that_can_be_read_says_anything_about_a_kernel(
    brain: Brain,
    environment: dict[str, str],
    db_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    real: str,
) -> None:
    monkeypatch.setattr(queue, "_BACKOFF", (0.0,))
    compare_within_cut_limits(brain, tmp_path / "worker", monkeypatch, real, cut_all)
    lost = brain.count("orders WHERE state = 'failed'")
    assert lost and brain.count("attempt") > lost, "nothing was tried again"
    assert brain.mails == []

    with served(db_url, tmp_path, filled=False, SWINGBOT_WEB_RATE="0") as web:
        read = dict(pages(web))
    for words in COMMANDS:
        read["swingbot " + " ".join(words)] = printed(words, environment)
    ended = "The build was stopped" if real == "builds" else "A limit ended the boot"
    for path in ("/", "/comparison/c1", "/comparison/c1.json", "/orders", "swingbot show c1"):
        assert ended in read[path], path
    said = {path: found for path, text in read.items() if (found := VERDICT.findall(text))}
    assert said == {}
    documents = [json.loads(text) for path, text in read.items() if path.endswith(".json")]
    for key, allowed in (("verdict", {"invalid", "unclear"}), ("outcome", {"up"})):
        found = [one for each in documents for one in values(each, key) if isinstance(one, str)]
        assert set(found) <= allowed, key


def test_a_state_that_cannot_be_read_in_time_is_a_problem(
    brain: Brain, environment: dict[str, str], db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_documents, "ANSWER_SECONDS", 0.2)
    engine = make_engine(db_url)
    with engine.begin() as conn:
        conn.execute(sa.text("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE"))
        done = CliRunner(env=environment).invoke(main, ["status"])
    engine.dispose()
    assert done.exit_code == 1
    assert done.output.startswith("PROBLEM   the database does not respond: canceling statement")
