"""docs/json.md has the shape of each document that scripts get, as a lab gives it that has done
a bit of everything."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from swingbot.app.cli import main
from swingbot.app.settings import load
from swingbot.app.web import service
from swingbot.core.stats.findings import look
from swingbot.service.visible import VISIBLE, Visible
from swingbot.web.api.operations import OPERATIONS
from swingbot.web.pages.kinds import PLURALS
from swingbot_db import read
from swingbot_db.engine import make_engine
from swingbot_jobs import codec
from tests.database import fresh
from tests.fakelinux import START_SPEED, FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import make_brain
from tests.fakes.loop import METRIC
from tests.fakes.mail import brain_environment, running_smtpd
from tests.json_page import Page, shapes
from tests.postgres import Server

Documents = dict[str, list[Any]]
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Answer:
    """An answer of the web service: to which request, and its document."""

    method: str
    path: str
    status: int
    document: Any


@dataclass
class Scripts:
    """Asks as scripts do, and keeps each document under its name in the page."""

    environment: dict[str, str]
    client: TestClient
    documents: Documents = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)

    def run(self, shape: str, *words: str) -> Any:
        said = CliRunner().invoke(main, [*words, "--json"], env=self.environment)
        assert said.exit_code == 0, (words, said.output)
        return self.keep(shape, json.loads(said.stdout))

    def get(self, shape: str, path: str, **headers: str) -> Any:
        return self.keep(shape, self.ask("GET", path, 200, headers=headers))

    def post(self, shape: str, path: str, token: str, status: int = 200, **body: Any) -> Any:
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        return self.keep(shape, self.ask("POST", path, status, headers=headers, json=body))

    def ask(self, method: str, path: str, status: int, **more: Any) -> Any:
        answer = self.client.request(method, path, **more)
        assert answer.status_code == status, (path, answer.text)
        self.answers.append(Answer(method, urlsplit(path).path, answer.status_code, answer.json()))
        return answer.json()

    def keep(self, shape: str, document: Any) -> Any:
        self.documents.setdefault(shape, []).append(document)
        return document


@pytest.fixture(scope="module")
def scripts(
    pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scripts]:
    place = tmp_path_factory.mktemp("scripts")
    with fresh(pg, template) as url:
        environment = brain_environment(place / "state", url)
        settings, engine = load(environ=environment), make_engine(url)
        (base,) = make_fakelinux(place / "linux", [])[:1]
        with (
            running_smtpd(settings),
            TestClient(service(settings, engine), base_url=settings.web_url) as client,
        ):
            brain = make_brain(settings, engine, place / "linux")
            scripts = Scripts(environment=environment, client=client)
            brain.watch(base)
            brain.run()
            made = add_commits(
                brain.repo,
                [
                    *[FakeCommit()] * 3,
                    FakeCommit(speed=88),
                    FakeCommit(kind="broken"),
                    FakeCommit(),
                ],
            )
            brain.poll()
            brain.run()
            with engine.begin() as conn:
                announced = "INSERT INTO worker_compiler VALUES ('worker', 'gcc', 'gcc 12', NULL)"
                conn.execute(sa.text(announced))
                conn.execute(sa.text("UPDATE variant SET posted = '<1@example.org>'"))
            monitor(engine)
            ask(scripts, [base, *made], brain.run)
            recover(engine, brain.repo, brain.poll)
            scripts.get("list of incidents", "/incidents.json")
            ask_over_http(scripts, [base, *made])
            ask_without_levels(scripts)
            yield scripts
        engine.dispose()


@pytest.fixture(scope="module")
def documents(scripts: Scripts) -> Documents:
    return scripts.documents


def monitor(engine: sa.Engine) -> None:
    """The runs recorded a counter and a profile too."""
    counter = {"class": "counter", "headline": False, "verdict": "changed", "better": None}
    share = {"class": "profile", "verdict": "same", "interval_pct": None}
    rows = (
        ("perf-stat.cache-misses", {"change_pct": 50.0, "interval_pct": [49.0, 51.0]}),
        ("perf-profile.self.cycles.copy_page", share),
    )
    with engine.begin() as conn:
        for metric, more in rows:
            detail = counter | more | {"metric": metric}
            added = sa.text(
                "INSERT INTO comparison_row (comparison, testbox, spec, unit_job, metric, against,"
                " arm, reference, verdict, change_pct, detail) SELECT comparison, testbox, spec,"
                " unit_job, :metric, against, arm, reference, :verdict, change_pct,"
                " detail || CAST(:detail AS jsonb) FROM comparison_row WHERE metric = :headline"
            )
            values = {"metric": metric, "verdict": detail["verdict"], "headline": METRIC}
            assert conn.execute(added, values | {"detail": json.dumps(detail)}).rowcount


def recover(engine: sa.Engine, repo: Path, poll: Callable[[], Any]) -> None:
    """Another tip, and a history of tips in which the level is back there."""
    (tip,) = add_commits(repo, [FakeCommit(speed=START_SPEED)])
    poll()
    levels = [(80.0 if at < 20 else 100.0) + 0.1 * (at % 3) for at in range(40)]
    findings = codec.plain(look(levels)) | {"tips": {"20": {"commit": tip, "comparison": "c1"}}}
    with engine.begin() as conn:
        kept = sa.text("UPDATE tree_history SET findings = CAST(:findings AS jsonb)")
        assert conn.execute(kept, {"findings": json.dumps(findings)}).rowcount


def ask(lab: Scripts, commits: Sequence[str], rest: Callable[[], None]) -> None:
    """Every command with `--json` and every address that answers JSON, once something has
    happened."""
    first, last = commits[0], commits[-1]
    job = ("--job", "vm-page-fault.yaml", "--testbox", "vm-icount")
    waiting = lab.run("comparison asked for", "compare", first, commits[2], *job)["id"]
    table = lab.run("experiment asked for", "experiment", f"{first}..{commits[2]}")["id"]
    lab.run("plan of a comparison", "compare", first, commits[1], *job, "--dry-run")
    lab.run("plan of an experiment", "experiment", f"{first}..{last}", "--dry-run")
    ends = ("bisect", "start", f"{first}..{last}")
    lab.run("plan of a bisection", *ends, *job, "--metric", METRIC, "--dry-run")
    lab.run("bisection asked for", *ends, *job, "--metric", METRIC)
    rest()
    lab.run("plan of an extension", "extend", table, "--boots", "2", "--dry-run")
    lab.run("status", "status")
    lab.get("status", "/status.json")
    for words in (first[:12], "vm-icount", METRIC, "nothing like this", ""):
        lab.get("search", f"/search.json?q={words}")
    for kind, shape, ids in (
        ("comparisons", "table", ("c1", "c2", waiting)),
        ("bisections", "bisection", ("b1", "b2")),
        ("incidents", "incident", ("i1",)),
        ("reports", "report", ("r1",)),
        ("orders", "order", ("o1", "o4")),
        ("experiments", "table", (table,)),
    ):
        lab.run(f"list of {kind}", "list", kind)
        lab.get(f"list of {kind}", f"/{kind}.json")
        for id_ in ids:
            lab.run(shape, "show", id_)
            lab.get(f"page of {shape}", f"/{kind.removesuffix('s')}/{id_}.json")
    for kind in ("testboxes", "trees", "metrics"):
        lab.run(f"list of {kind}", "list", kind)
        lab.get(f"list of {kind}", f"/{kind}.json")
    lab.get("list of compilers", "/compilers.json")
    boot = lab.run("boot", "show", "x1")
    lab.get("page of boot", "/boot/x1.json")
    lab.run("variant", "show", boot["variant"])
    lab.get("variant", f"/variant/{boot['variant']}.json")
    lab.get("page of kernel", f"/kernel/{boot['build_key']}.json")
    lab.run("tree", "tree", "show", "fake")
    lab.run("history", "tree", "history", "fake")
    lab.get("page of tree", "/tree/fake.json")
    shown = lab.run("testbox", "testbox", "show", "vm-icount")
    costs = {row["job"]: row for row in shown["jobs"]}
    assert costs["vm-hackbench.yaml"]["runs"] == 2 and costs["vm-hackbench.yaml"]["seconds"] > 10
    assert "netperf.yaml" not in costs
    lab.get("page of testbox", "/testbox/vm-icount.json")
    posted = lab.get("posted commit", "/posted.json?mail=<1@example.org>")
    assert posted[0]["tables"]
    lab.get("cover", "/cover.json?tree=fake&code=mm/memory.c")
    lab.get("choice of kernels", "/results.json")
    broken = commits[5]  # does not build, so it has gaps
    names = "&".join(f"kernel={commit}" for commit in ("base", "tip", broken))
    results = lab.get("results", f"/results.json?tree=fake&{names}")
    assert [gap["kernel"] for gap in results["missing"]] == [2] and results["moved"][0]["incidents"]
    row = results["rows"][0]
    place = "/".join(quote(row[key], safe="") for key in ("testbox", "unit_job", "metric"))
    lab.get("metric over commits", f"/metric/fake/{place}.json")
    known = "&".join(f"{key}={quote(row[key])}" for key in ("testbox", "unit_job", "metric"))
    lab.get("metric over commits", f"/metric.json?{known}")
    lab.get("moderation", "/moderation.json")
    lab.get("outbox", "/outbox.json")
    lab.get("health", "/healthz")
    lab.run("wait", "wait", "c1")
    lab.run("idle", "wait", "--idle", "--timeout", "0")
    lab.run("gates of an incident", "proof", "show", "i1")
    lab.run("explanation", "bisect", "explain", "b1")
    lab.run("classes of reports", "report", "classes")
    lab.run("recipients", "recipients", commits[3], "--tree", "fake")
    lab.run("reparse", "reparse", "--dry-run")
    lab.run("retention", "retention")
    lab.run("removal", "forget", "x1")
    lab.run("settings", "settings")
    lab.run("facts", "facts")
    lab.run("compilers", "compilers")
    made = lab.run("new token", "token", "create", "Ada", "--role", "submitter")
    lab.run("tokens", "token", "list")
    lab.get("tokens", "/tokens.json", Authorization=f"Bearer {made['token']}")
    raw = ROOT / "jobs" / "programs" / "netperf" / "samples" / "guest-udp-stream-2.raw"
    lab.keep("samples", json.loads(CliRunner().invoke(main, ["parse", "netperf", str(raw)]).stdout))
    sides = ("--base", "40.5;40.2;40.8;40.4", "--head", "44.1;44.4;43.9;44.2")
    lab.run("comparison of numbers", "stats", "compare", *sides)
    jobs = str(ROOT / "jobs" / "vm-page-fault.yaml")
    lab.run("unit jobs", "jobs", "expand", jobs, "--testbox", "vm-icount")
    lab.run("lint", "jobs", "lint", jobs)
    lab.run("cover", "jobs", "cover", "mm/memory.c", "--tree", "fake")


def ask_over_http(lab: Scripts, commits: Sequence[str]) -> None:
    """Every address that has no command here, and what is refused."""
    (token,) = (made["token"] for made in lab.documents["new token"])
    lab.get("whose token", "/login.json")
    lab.get("whose token", "/login.json", Authorization=f"Bearer {token}")
    lab.get("manifest of raw results", "/raw/x1/manifest.json")
    lab.ask("GET", "/raw/x1/order.json", 200)
    experiment = lab.documents["experiment asked for"][0]["id"]
    for address in ("comparison/c1", f"experiment/{experiment}", "report/r1"):
        lab.get("contents of a kit", f"/{address}/reproduce.json")
    post = partial(lab.post, token=token)
    kernels: dict[str, Any] = {"tree": "fake", "base": "base", "head": "tip", "boots": 9}
    for door in ("compare", "experiment"):
        private = kernels | {"private_to": ["me"]}
        post("answer to a request", f"/{door}", **private, dry_run=True)
        id = post("answer to a request", f"/{door}", status=201, **private)["id"]
        table = f"/{'comparison' if door == 'compare' else door}/{id}"
        post("published", f"{table}/publish")
        post("answer to an extension", f"{table}/extend", boots=2, dry_run=True)
        lab.get("progress of a request", f"{table}/progress.json")
        post("cancelled", f"{table}/cancel")
    search: dict[str, Any] = {"tree": "fake", "range": "base..tip", "metric": METRIC}
    search |= {"job": ["vm-page-fault.yaml"], "set": {"runs": "3"}}
    post("answer to a bisection", "/bisect", **search, dry_run=True)
    id = post("answer to a bisection", "/bisect", status=201, **search)["id"]
    post("steered bisection", f"/bisection/{id}/skip", commits=[commits[2][:12]], why="hangs")
    post("steered bisection", f"/bisection/{id}/hint", commits=["tip"], factor=2)
    lab.get("explanation", "/bisection/b1/explanation.json")
    lab.get("progress of a request", "/bisection/b1/progress.json")
    post("cancelled", f"/bisection/{id}/cancel")
    post("answer to a resumption", f"/bisection/{id}/resume", boots=3, dry_run=True)
    lab.run("plan of a resumption", "bisect", "resume", id, "--boots", "3", "--dry-run")
    post("known commits", "/commits/known", commits=[commits[0], "0" * 40])
    moderator = lab.run("new token", "token", "create", "Mo", "--role", "moderator")["token"]
    lab.post("decided incident", "/incident/i1/decide", token=moderator, act="reopen")
    lab.post("asked gates", "/incident/i1/prove", token=moderator, dry_run=True)
    named = f"tree=fake&commit={commits[3]}"
    lab.get("recipients", f"/recipients.json?{named}", Authorization=f"Bearer {moderator}")
    lab.post("decided report", "/report/r1/decide", token=moderator, act="release")
    lab.post("switched mail", "/outbox/switch", token=moderator, stopped=False)
    operator = lab.run("new token", "token", "create", "Op", "--role", "operator")["token"]
    lab.post("returned testbox", "/testbox/vm-icount/resume", token=operator)
    for method, path, status in (
        ("GET", "/comparison/c999.json", 404),
        ("GET", "/comparison/b1.json", 400),
        ("GET", "/orders.json?none=1", 400),
        ("GET", "/tokens.json", 401),
        ("POST", "/compare", 401),
    ):
        lab.ask(method, path, status, headers={"Accept": "application/json"})
    post("", "/commits/known", status=400, commits=["x"])
    post("", f"/comparison/{lab.documents['comparison asked for'][0]['id']}/cancel", status=403)
    del lab.documents[""]


def ask_without_levels(lab: Scripts) -> None:
    """What a token that sees changes only gets; here everybody may read everything."""
    settings = load(environ=lab.environment)
    before = VISIBLE.set(Visible(groups=("vm-icount",), levels=False))
    engine = make_engine(settings.db.url)
    try:
        with engine.connect() as conn:
            lab.keep("line of changes", read.list_of_changes(conn, "comparisons"))
            lab.keep("table of changes", read.table_of_changes(conn, "c1"))
    finally:
        VISIBLE.reset(before)
        engine.dispose()


# Names of documents that are not those of a shape, or lists of one.
SHAPE_OF = {
    "comparison asked for": "table",
    "experiment asked for": "table",
    "plan of a comparison": "plan of a table",
    "plan of an experiment": "plan of a table",
    "bisection asked for": "bisection",
    "wait": "table",
    "page of kernel": "kernel build",
    "list of comparisons": "line of a table",
    "list of experiments": "line of a table",
    "list of bisections": "line of a bisection",
    "list of incidents": "line of an incident",
    "list of reports": "line of a report",
    "list of orders": "line of an order",
    "list of testboxes": "line of a testbox",
    "list of trees": "line of a tree",
    "list of metrics": "line of a metric",
    "list of compilers": "line of a compiler",
    "compilers": "line of a compiler",
    "classes of reports": "record of a class",
    "tokens": "token",
    "facts": "listed fact",
    "unit jobs": "unit job",
}
# Documents that are described in words.
IN_WORDS = {
    "gates of an incident": {"incident", "gates"},
}


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(shapes())


def test_every_document_has_the_keys_and_types_that_the_page_gives(
    documents: Documents, page: Page
) -> None:
    problems = set()
    for name, found in documents.items():
        for document in found:
            if name in IN_WORDS:
                assert document.keys() == IN_WORDS[name]
                continue
            shape = SHAPE_OF.get(name, name.removeprefix("page of "))
            for one in document if isinstance(document, list) else [document]:
                problems |= {
                    re.sub(r"\.\d+", "[]", wrong) for wrong in page.shape(one, shape, name)
                }
        for gate in found[0]["gates"] if name == "gates of an incident" else []:
            problems |= set(page.shape(gate, "gate", name))
    assert sorted(problems) == []
    assert page.used == page.shapes.keys(), "no document has these"


def test_every_answer_fits_the_description_of_the_api(scripts: Scripts) -> None:
    api = scripts.client.get("/api/v1/openapi.json").json()
    strict = closed(api)
    answered = set()
    for one in scripts.answers:
        (path,) = (path for path in api["paths"] if fits(path, one.path, api["paths"]))
        operation = api["paths"][path][one.method.lower()]
        response = operation["responses"][str(one.status)]
        if "$ref" in response:
            response = strict["components"]["responses"][str(one.status)]
        (content,) = response["content"].values()  # a document's or a problem's
        schema = content["schema"]
        validator = Draft202012Validator(strict | {"$ref": "#/x"} | {"x": schema})
        problems = [
            f"{error.json_path}: {error.message:.200}"
            for error in validator.iter_errors(one.document)
        ]
        assert problems == [], (one.method, one.path)
        if one.status < 400:
            answered.add((one.method.lower(), path))
    every = {(method, path) for path, item in api["paths"].items() for method in item}
    # of a mail that is not sent yet, in test_remote_reports.py
    assert answered == every - {("post", "/report/{id}/readdress")}


def fits(path: str, address: str, all_paths: Collection[str]) -> bool:
    """Whether an address is one of a path; the path without parameters comes first."""
    if address in all_paths:
        return path == address
    pattern = "".join(
        "[^/]+" if part.startswith("{") else re.escape(part)
        for part in re.split(r"(\{\w+\})", path)
    )
    return re.fullmatch(pattern, address) is not None


def closed(api: dict[str, Any]) -> dict[str, Any]:
    """The description as if no document could have other keys than those of today."""
    strict = copy.deepcopy(api)
    for schema in strict["components"]["schemas"].values():
        schema["unevaluatedProperties"] = False
    for schema in list(strict["components"]["schemas"].values()):
        for base in schema.get("allOf", ()):
            if "$ref" in base:
                name = base["$ref"].rpartition("/")[2]
                strict["components"]["schemas"][name].pop("unevaluatedProperties", None)
    return strict


def test_each_filter_of_a_list_is_described(scripts: Scripts) -> None:
    for one in OPERATIONS:
        if one.path.removeprefix("/").removesuffix(".json") in PLURALS:
            refused = scripts.client.get(f"{one.path}?none=1").json()["detail"]
            filters = {*refused.partition("filters are ")[2].split(", ")}
            assert filters == one.query.keys() - {"limit", "after", "sort"}, one.path


def test_a_changed_document_is_noticed(documents: Documents, page: Page) -> None:
    (first, *_) = documents["table"]
    assert page.shape(first, "table", "c") == []
    assert page.shape({**first, "more": 1}, "table", "c")
    assert page.shape({key: first[key] for key in first if key != "rows"}, "table", "c")
    assert page.shape({**first, "boots": "3"}, "table", "c")
    assert page.shape({**first, "rows": [{}]}, "table", "c")
