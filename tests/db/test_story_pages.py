"""No page answers 500 in any state of honest data: the story of a lab is played on PostgreSQL, and
after each of its commits the pages and documents of the rows that it wrote are read, signed in and
not; after each act all of them.

A page is read again when a row behind it has a form that was not seen, and with SWINGBOT_TEST_ALL=1
after every commit.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from swingbot.adapters.artifacts import secret
from swingbot.app.cli import main
from swingbot.app.settings import load
from swingbot.app.web import service
from swingbot.core.model import ids
from swingbot.core.report.table.formats import FORMS
from swingbot.service import checkpoint
from swingbot.service.tick import tick
from swingbot.web.access.session import operator_key
from swingbot.web.pages.kinds import PLURALS
from swingbot_db.engine import make_engine
from tests.amount import ALL
from tests.database import next_transaction
from tests.db.crash_points import unhurried
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.loop import METRIC, plain
from tests.fakes.mail import brain_environment

# Tables with a page of their own, and the letter of its ids.
OWN: Final = {
    "comparison": "c", "bisection": "b", "incident": "i", "report": "r", "orders": "o", "boot": "x",
    "variant": "v", "tree": "", "testbox": "", "kernel_build": "",
}  # fmt: skip
# Tables whose rows no page shows, or which are written together with a boot or an attempt that one
# shows. Every other table leads to a page by its columns.
WITHOUT: Final = {
    "access_event", "access_token", "alert", "attempt_file", "boot_mean", "boot_spec",
    "build_forecast", "kept_answer", "mail_switch", "measured_metric", "patch", "reparse",
    "result_mail", "result_root", "sample", "schema_revision", "sent_commit", "unseen",
    "web_session", "worker_compiler",
}  # fmt: skip
# Columns with few values, which templates ask for.
_WORDS: Final = {
    "action", "act", "answer", "class", "gate", "kind", "outcome", "origin", "purpose", "result",
    "source", "state", "status", "verdict",
}  # fmt: skip
# Columns that name a row of another table by another name.
_NOUNS: Final = {
    "order_id": "orders", "build_key": "kernel_build", "proof": "comparison", "culprit": "variant",
    "anchor": "variant", "fix_check": "comparison", "merged_into": "incident",
}  # fmt: skip
_PAGES: Final = ("/", "/status.json", "/outbox", "/outbox.json", "/moderation", "/moderation.json")
_DOCUMENTS: Final = (".json", ".csv", ".svg", ".txt", ".atom", ".gz")
_LINK: Final = re.compile(r'(?:href|src)="(/(?:plot|mailbox|metric|raw)/[^"#]+)"')
# Need the token of an attempt, a kernel that was really built, the Message-ID of a mail, a built
# wheel, a request over the web, or another commit than the first variant's, which is a root.
_NEVER: Final = {
    "/artifacts/{sha256}", "/attempts/{id}", "/raw/{id}/order.json",
    "/report/{id}/reproduce.tar.gz", "/comparison/{id}/reproduce.tar.gz",
    "/experiment/{id}/reproduce.tar.gz", "/posted.json", "/install/{name}", "/person/{name}",
    "/variant/{id}/patch",
}  # fmt: skip


def form_of(value: Any, name: str = "", depth: int = 3) -> Any:
    """What of a value may decide how a page is made: its words, which keys it has, what is null."""
    match value:
        case None | bool():
            return value
        case str():
            return value if name in _WORDS else "text"
        case dict() if depth:
            return tuple(
                (key if len(value) < 20 else "", form_of(one, key, depth - 1))
                for key, one in sorted(value.items())[:20]
            )
        case list():
            return ("list", *sorted({repr(form_of(one, name, depth - 1)) for one in value[:20]}))
        case _:
            return type(value).__name__


@dataclass(kw_only=True)
class Readers:
    """Reads pages of the lab: one reader is signed in as the operator, one is not."""

    engine: sa.Engine
    app: Starlette
    clients: list[TestClient]
    seen: set[Any] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    answers: Counter[int] = field(default_factory=Counter)
    links: dict[str, str] = field(default_factory=dict)  # one of each kind, which need a query
    forms: set[Any] = field(default_factory=set)  # of rows that were read at the end of an act
    commits: int = 0
    _since: int = 0
    _busy: bool = False

    def look(self) -> None:
        """Read what has changed since the last look. Called at each checkpoint of the lab."""
        if self._busy:
            return
        self._busy = True
        try:
            with self.engine.connect() as conn:
                now = next_transaction(conn)
                if now == self._since:
                    return
                self.commits += 1
                rows = _written(conn, self._since)
                pages = self._pages(conn, rows)
            for address, forms in pages.items():
                self.read(address, forms)
            for address in _PAGES:
                words = {form[:2] for forms in pages.values() for form in forms}
                self.read(address, words)
            with self.engine.connect() as conn:  # a reader's own visit is no news
                self._since = next_transaction(conn)
        finally:
            self._busy = False

    def _pages(
        self, conn: sa.Connection, rows: list[tuple[str, dict[str, Any]]]
    ) -> dict[str, set[Any]]:
        """The pages of rows, each with the forms of its rows."""
        found: dict[str, set[Any]] = {}
        for table, row in rows:
            state = next((row[key] for key in ("state", "status", "outcome") if key in row), None)
            for address in addresses_of(conn, table, row):
                found.setdefault(address, set()).add((table, state, form_of(row)))
        return found

    def read(self, address: str, forms: set[Any]) -> None:
        """Read a page and its document, unless all of this was seen in a page of its kind."""
        kind = address.rpartition("/")[0] or address
        seen = {(kind, form) for form in forms}
        if not ALL and seen <= self.seen:
            return
        self.seen |= seen
        for path in (address, f"{address}.json") if address not in _PAGES else (address,):
            for client in self.clients if not path.endswith(".json") else self.clients[:1]:
                self.get(client, path)

    def get(self, client: TestClient, path: str) -> int:
        answer = client.get(path, follow_redirects=False)
        self.answers[answer.status_code] += 1
        if answer.status_code >= 500:
            self.failed.setdefault(_kind(path), path)
        for link in _LINK.findall(answer.text if path.count("/") < 3 else ""):
            self.links.setdefault(_kind(link), unescape(link))
        return int(answer.status_code)

    def read_all(self) -> dict[str, set[int]]:
        """Read every route with every name that the lab has; the answers by route.

        Without SWINGBOT_TEST_ALL, with one name of each form of row that was not read before.
        """
        self._busy = True
        statuses: dict[str, set[int]] = {}
        try:
            with self.engine.connect() as conn:
                names = _names(conn, set() if ALL else self.forms)
            for route in self.app.routes:
                if isinstance(route, Route) and "GET" in (route.methods or ()):
                    for path in _filled(route.path, names):
                        for number, client in enumerate(self.clients):
                            if ALL or not number or not path.endswith(_DOCUMENTS):
                                status = self.get(client, path)
                                statuses.setdefault(route.path, set()).add(status)
            for path in self.links.values():
                for route in self.app.routes:
                    if isinstance(route, Route) and route.path_regex.match(path.partition("?")[0]):
                        statuses.setdefault(route.path, set()).add(self.get(self.clients[0], path))
                        break
            self.links = {}
        finally:
            self._busy = False
        return statuses


def _written(conn: sa.Connection, since: int) -> list[tuple[str, dict[str, Any]]]:
    """Tables and rows that were written by transactions from `since` on."""
    names = sa.inspect(conn).get_table_names("swingbot")
    parts = [
        f"SELECT '{name}' AS name, to_jsonb(t) AS row FROM swingbot.{name} t"
        f" WHERE t.xmin::text::bigint >= {since}"
        for name in names
        if name not in WITHOUT
    ]
    return [(name, row) for name, row in conn.exec_driver_sql(" UNION ALL ".join(parts))]


def addresses_of(conn: sa.Connection, table: str, row: Mapping[str, Any]) -> list[str]:
    """The pages that show a row, by its columns."""
    found = [(table, row.get("id", row.get("name", row.get("build_key"))))] if table in OWN else []
    for column, value in row.items():
        noun = _NOUNS.get(column, column)
        if noun in OWN and value is not None and isinstance(value, int | str):
            found.append((noun, value))
    if "attempt" in row and "order_id" not in row and row["attempt"] is not None:
        order = sa.text("SELECT order_id FROM attempt WHERE id = :id")
        found.append(("orders", conn.execute(order, {"id": row["attempt"]}).scalar()))
    if table == "run":
        found = [("boot", row["boot"])]
    return sorted({_address(conn, noun, value) for noun, value in found} - {""})


def _address(conn: sa.Connection, noun: str, value: Any) -> str:
    match noun:
        case "tree" if isinstance(value, int):
            name = conn.execute(sa.text("SELECT name FROM tree WHERE id = :i"), {"i": value})
            return f"/tree/{name.scalar()}"
        case "tree" | "testbox":
            return f"/{noun}/{quote(str(value), safe='')}"
        case "kernel_build":
            known = sa.text("SELECT 1 FROM kernel_build WHERE build_key = :key")
            return f"/kernel/{value}" if conn.execute(known, {"key": value}).scalar() else ""
        case "comparison":
            kind = sa.text("SELECT kind FROM comparison WHERE id = :id")
            named = conn.execute(kind, {"id": value}).scalar_one()
            word = "experiment" if named == "experiment" else "comparison"
            return f"/{word}/{ids.of_table(named, value)}"
    return f"/{noun.removesuffix('s')}/{OWN[noun]}{value}"


def _kind(path: str) -> str:
    """A path without what names one of many."""
    return re.sub(r"[0-9a-f]{12,}|\d+", "*", path.partition("?")[0])


def _names(conn: sa.Connection, forms: set[Any]) -> dict[str, list[str]]:
    """Addresses of what has a page, by kind: of rows whose form is not in `forms`, which grows."""
    found: dict[str, list[str]] = {}
    for table in OWN:
        for (row,) in conn.exec_driver_sql(f"SELECT to_jsonb(t) FROM swingbot.{table} t"):
            key = row.get("id", row.get("name", row.get("build_key")))
            form = table, form_of(row, depth=1)
            if ALL or form not in forms:
                forms.add(form)
                address = _address(conn, table, key)
                found.setdefault(address.split("/")[1], []).append(address)
    row = conn.exec_driver_sql("SELECT testbox, unit_job, metric FROM comparison_row LIMIT 1")
    found["metric"] = ["/".join(quote(one, safe="") for one in one) for one in row]
    return found


def _filled(path: str, names: Mapping[str, list[str]]) -> Iterator[str]:
    """A route's path with names of the lab in place of its parameters."""
    nouns = {address for kind, found in names.items() if kind != "metric" for address in found}
    match path:
        case "/{plural}":
            yield from (f"/{plural}{end}" for plural in PLURALS for end in ("", ".json"))
        case "/{kind}/{id}" | "/{kind}/{id}/table.csv":
            ends = ("", ".json") if path.endswith("}") else ("/table.csv",)
            yield from (address + end for address in sorted(nouns) for end in ends)
        case "/{kind}/{id}/{form}.txt" | "/{kind}/{id}/show.txt":
            tables = [*names.get("comparison", ()), *names.get("experiment", ())]
            texts = ("show",) if path.endswith("/show.txt") else FORMS
            yield from (f"{address}/{text}.txt" for address in tables for text in texts)
        case "/feed/{kind}/{file}":
            for kind in ("tree", "testbox"):
                yield from (f"/feed{address}.atom" for address in names.get(kind, ()))
        case "/metric/{tree}/{testbox}/{names:path}":
            for metric in names["metric"]:
                yield from (f"/metric/fake/{metric}{end}" for end in ("", ".json", ".svg"))
        case "/metric.json":
            yield from (
                f"{path}?tree=fake&testbox={testbox}&unit_job={job}&metric={name}"
                for testbox, job, name in (metric.split("/", 2) for metric in names["metric"])
            )
        case "/results" | "/results.json" | "/results.csv":
            yield from (path, f"{path}?tree=fake", f"{path}?tree=fake&kernel=base&kernel=tip")
        case "/cover.json":
            yield f"{path}?tree=fake&code=mm/memory.c"
        case "/recipients.json":
            yield f"{path}?tree=fake&commit=tip"
        case "/compare" | "/experiment" | "/search" | "/search.json":
            yield from (path, f"{path}?tree=fake&base=base&head=tip&q=mm")
        case "/raw/{id}/{path:path}":
            ids_ = sorted(address.rpartition("/")[2] for address in nouns)
            yield from (f"/raw/{id_}/{end}" for id_ in ids_ for end in ("", "manifest.json"))
        case "/artifacts/{sha256}" | "/mailbox/{key}" | "/install/{name}":
            yield path.partition("{")[0] + "0" * 64
        case "/testbox/{name}/resume":
            yield from (
                f"{address}/resume" for address in sorted(nouns) if address.startswith("/testbox/")
            )
        case "/person/{name}":
            yield "/person/operator"
        case "/docs/{name:path}":
            yield "/docs/glossary"
        case _ if "{id}" in path:
            own = path.split("/")[1]
            chosen = names.get(own, sorted(nouns))
            yield from (path.replace("{id}", address.rpartition("/")[2]) for address in chosen)
        case _:
            assert "{" not in path, f"say how to read {path}"
            yield path


@dataclass(kw_only=True)
class Story:
    """The acts, in order."""

    brain: Brain
    environment: dict[str, str]
    made: list[str] = field(default_factory=list)

    def say(self, *words: str) -> Any:
        said = CliRunner().invoke(main, list(words), env=self.environment)
        assert said.exit_code == 0, (words, said.output)
        return json.loads(said.stdout) if "--json" in words else said.stdout

    def watch(self) -> None:
        self.brain.watch(self.brain.base)
        self.brain.run()

    def alarm(self) -> None:
        """Alarm, proof, bisection around kernels that do not build or boot, gates, mail."""
        self.made = self.brain.commit(
            FakeCommit(),
            FakeCommit(kind="unbootable"),
            FakeCommit(),
            FakeCommit(kind="broken"),
            FakeCommit(),
            FakeCommit(speed=88),
            *plain(2),
        )
        self.brain.poll()
        self.brain.run()
        assert self.brain.mails and self.brain.count("incident WHERE status = 'open'") == 1

    def fix(self) -> None:
        fix = self.brain.commit(FakeCommit(), FakeCommit(speed=100), FakeCommit())[1]
        self.say("incident", "fixed-by", "i1", fix)
        self.brain.poll()
        self.brain.run()
        assert self.brain.count("incident WHERE status = 'fixed'") == 1

    def rebase(self) -> None:
        self.brain.git("reset", "-q", "--hard", self.made[0])
        self.brain.commit(FakeCommit(), FakeCommit(speed=85), *plain(2))
        self.brain.poll()
        self.brain.run()

    def quarantine(self) -> None:
        self.brain.commit(*plain(2))
        self.brain.poll()
        tick(self.brain.lab)
        self.say("testbox", "quarantine", "vm-icount", "--reason", "it smells")
        self.brain.rounds(3)
        self.say("testbox", "resume", "vm-icount")
        self.say("testbox", "drain", "vm-icount", "--reason", "a new disk")
        self.brain.rounds(2)
        self.say("testbox", "resume", "vm-icount")
        self.brain.run()

    def experiment(self) -> None:
        told = self.say(
            "experiment", f"{self.made[0]}~1..{self.made[2]}", "--tree", "fake", "--json"
        )
        self.brain.run()
        self.say("extend", told["id"], "--boots", "2")
        self.brain.run()

    def cancel(self) -> None:
        job = ("--job", "vm-page-fault.yaml", "--testbox", "vm-icount", "--tree", "fake", "--json")
        told = self.say("compare", self.made[0], self.made[5], "--boots", "7", *job)
        hidden = self.say("compare", *self.made[:2], "--boots", "1", "--private-to", "me", *job)
        self.say("publish", hidden["id"])
        self.say("cancel", hidden["id"])
        self.brain.rounds(2)
        self.say("cancel", told["id"])
        ends = f"{self.made[0]}..{self.made[-1]}"
        searched = self.say("bisect", "start", ends, "--metric", METRIC, *job)["id"]
        self.brain.rounds(3)
        self.say("bisect", "skip", searched, self.made[2])
        self.say("bisect", "hint", searched, self.made[5])
        self.brain.rounds(2)
        self.say("cancel", searched)
        self.brain.run()

    def decisions(self) -> None:
        """What a person can decide about an incident and its mails."""
        last = self.say("incident", "list", "--json")[0]["id"]
        for words in (("expected", last), ("reopen", last), ("invalid", last), ("reopen", last)):
            self.say("incident", *words, "--reason", "as I say")
            self.brain.run()
        self.say("report", "stop", "--reason", "holidays")
        self.say("incident", "close", last, "--reason", "old")
        self.brain.run()
        self.say("report", "resume")
        self.say("tree", "remove", "fake")
        self.brain.run()


ACTS: Final[tuple[Callable[[Story], None], ...]] = (
    Story.watch, Story.alarm, Story.fix, Story.rebase, Story.quarantine, Story.experiment,
    Story.cancel, Story.decisions,
)  # fmt: skip


@unhurried
def test_no_page_fails_in_any_state_of_a_lab(
    tmp_path: Path, db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = brain_environment(tmp_path / "state", db_url) | {"SWINGBOT_WEB_RATE": "0"}
    settings, engine = load(environ=environment), make_engine(db_url)
    make_fakelinux(tmp_path / "linux", [])
    app = service(settings, engine)
    routes: Any = app
    while not isinstance(routes, Starlette):
        routes = routes._app
    with (
        TestClient(app, base_url=settings.web_url, raise_server_exceptions=False) as anybody,
        TestClient(app, base_url=settings.web_url, raise_server_exceptions=False) as operator,
        make_brain(settings, engine, tmp_path / "linux") as brain,
    ):
        operator.headers["authorization"] = f"Bearer {operator_key(secret(settings.secret_file))}"
        readers = Readers(engine=engine, app=routes, clients=[operator, anybody])
        monkeypatch.setattr(checkpoint, "_observers", [readers.look])
        story = Story(brain=brain, environment=environment)
        statuses: dict[str, set[int]] = {}
        for act in ACTS:
            act(story)
            for path, answers in readers.read_all().items():
                statuses.setdefault(path, set()).update(answers)
            assert not readers.failed, (act.__name__, sorted(readers.failed.values()))
    engine.dispose()
    assert readers.commits > 300 and readers.answers[200] > 1000, readers.answers
    never = {path for path, answers in statuses.items() if min(answers) >= 400}
    assert never <= _NEVER, never - _NEVER


def test_every_table_leads_to_a_page_or_is_named(conn: sa.Connection) -> None:
    """A new table is read by the story too."""
    leads = set()
    for table in sa.inspect(conn).get_table_names("swingbot"):
        columns = {one["name"] for one in sa.inspect(conn).get_columns(table, "swingbot")}
        if table in OWN or columns & {*OWN, "order_id", "attempt", "culprit"}:
            leads.add(table)
    assert leads | WITHOUT == set(sa.inspect(conn).get_table_names("swingbot"))
