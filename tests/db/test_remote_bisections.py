"""A bisection asked for from another machine is that of the service's host: the same plan, the same
words, the same bisection, charged to the person."""

from __future__ import annotations

import base64
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa

from swingbot.app.submitter import DatabaseSubmitter
from swingbot.core.access.quota import Quota, QuotaUsage
from swingbot.core.access.roles import Person, Role
from swingbot.service import limits
from swingbot.service.bisect import start
from tests.asking import Serve, Site
from tests.db.test_remote_commits import bundle_of, checkout, commit, git, mirror_of, state, trusts
from tests.db.test_remote_tables import elsewhere, here, run
from tests.fakes.brain import make_brain

assert checkout  # a fixture
METRIC: Final = "--metric hackbench.throughput"
ELAPSED: Final = re.compile(r'^  "seconds": [0-9.]+', re.MULTILINE)
ASKED: Final = (
    f"bisect start base..tip {METRIC}",
    f"bisect start tip..base {METRIC}",
    f"bisect start --good base --bad tip {METRIC}",
    f"bisect start base..tip {METRIC} --set runs=3",
    "bisect start base..tip --metric page-fault.per_process_ops --job vm-page-fault",
    "bisect start base..tip --metric perf-stat.instructions --job vm-page-fault",
)
REFUSED: Final = (
    f"bisect start base {METRIC}",
    f"bisect start base.. {METRIC}",
    f"bisect start base..base {METRIC}",
    f"bisect start base..tip {METRIC} --good base",
    f"bisect start base..tip {METRIC} --tree other",
    f"bisect start base..tip {METRIC} --testbox nosuch",
    f"bisect start base..tip {METRIC} --unit-job nosuch",
    f"bisect start base..tip {METRIC} --set runs=many",
    "bisect start base..tip --metric no.such_metric",
    "bisect start base..tip --metric page-fault.per_process_ops",
    "bisect start base..tip --metric perf-stat.\x1b[31m",
    "bisect start base..tip",
)


@pytest.fixture
def site(serve: Serve) -> Site:
    return serve()


def scalar(site: Site, query: str) -> float:
    with site.web.engine.connect() as conn:
        return float(conn.execute(sa.text(query)).scalar_one())


def test_a_bisection_asked_for_from_elsewhere_is_that_of_the_host(
    serve: Serve, tmp_path: Path
) -> None:
    site = serve(SWINGBOT_WEB_OPEN_REQUESTS="100", SWINGBOT_WEB_TESTBOX_MINUTES="100000")
    away = elsewhere(site, tmp_path)
    for words in ASKED:
        for more in (" --dry-run", " --dry-run --json", "", " --json"):
            on_host, from_elsewhere = (run(words + more, env) for env in (here(site), away))
            assert on_host.exit_code == 0, (words, on_host.output)
            assert from_elsewhere.exit_code == 0, (words, from_elsewhere.output)
            assert ELAPSED.sub("", from_elsewhere.stdout) == ELAPSED.sub("", on_host.stdout)
            assert from_elsewhere.stderr == on_host.stderr, words + more
    assert scalar(site, "SELECT count(*) FROM bisection") == 4, "the same question is the same"


def test_what_is_refused_is_refused_in_the_same_words(site: Site, tmp_path: Path) -> None:
    away = elsewhere(site, tmp_path)
    before = state(site)
    for words in REFUSED:
        on_host, from_elsewhere = (run(words, env) for env in (here(site), away))
        assert on_host.exit_code == from_elsewhere.exit_code == 2, (words, on_host.output)
        assert from_elsewhere.output[:60] == on_host.output[:60], words
        assert "Traceback" not in from_elsewhere.output
    unknown = {
        f"bisect start base..nosuch {METRIC}": "has no commit, tag or branch 'nosuch'",
        f"bisect start base..tip {METRIC} --job nosuch": "'nosuch.yaml' does not exist; choose",
        f"bisect start base..tip {METRIC} --job ../jobs/x": "runs the jobs that it ships",
    }
    for words, sentence in unknown.items():
        refused = run(words, away)
        assert refused.exit_code == 2 and sentence in refused.output, refused.output
    assert state(site) == before and not scalar(site, "SELECT count(*) FROM bisection")


def test_commits_of_the_checkout_travel_and_are_bisected_untrusted(
    site: Site, checkout: Path, tmp_path: Path
) -> None:
    made = [commit(checkout, f"mm/new{number}.c", "int x;\n") for number in range(3)]
    ada, before = elsewhere(site, tmp_path), state(site)
    words = f"bisect start origin/main..HEAD {METRIC}"
    planned = run(f"{words} --dry-run", ada)
    assert planned.exit_code == 0, planned.output
    assert "sends 3 commits of" in planned.output and "3 commits of tree fake" in planned.output
    assert state(site) == before, "a plan leaves nothing"
    started = run(f"{words} --yes", ada)
    assert started.exit_code == 0 and started.stdout.startswith("b1 is running"), started.output
    trusted = trusts(site)
    assert [trusted[one] for one in made] == ["untrusted"] * 3
    assert trusted[site.commits[-1]] == "trusted"
    assert mirror_of(site).sent() == set(made)
    again = run(f"{words} --yes", ada)
    assert again.stdout == started.stdout and "sends" not in again.output
    bob = ada | {"SWINGBOT_TOKEN": site.web.token("Bob", Role.SUBMITTER)["Authorization"][7:]}
    git(checkout, "checkout", "-q", "--detach", site.commits[-1])
    refused = run(f"bisect start base..{made[-1][:12]} {METRIC}", bob)
    assert refused.exit_code == 0, "the checkout still has it and sends it"
    document = {"tree": "fake", "range": f"base..{made[-1]}", "metric": "hackbench.throughput"}
    token = site.web.token("Eve", Role.SUBMITTER)
    eve = site.web.client.post("/bisect", json=document, headers=token)
    assert eve.status_code == 400 and "is not in branch main" in eve.json()["detail"]


def test_uncommitted_changes_are_refused_or_sent(
    site: Site, checkout: Path, tmp_path: Path
) -> None:
    commit(checkout, "mm/new.c", "int x;\n")
    (checkout / "mm/new.c").write_text("int y;\n")
    ada, words = elsewhere(site, tmp_path), f"bisect start origin/main..HEAD {METRIC} --dry-run"
    assert "has uncommitted changes, such as mm/new.c" in run(words, ada).output
    assert "sends 2 commits of" in run(f"{words} --dirty", ada).output
    planned = run(f"{words} --dirty", here(site))
    assert planned.exit_code == 0 and "origin/main" not in planned.output, planned.output


def test_it_is_charged_once_and_what_it_took_beyond_its_estimate_too(
    serve: Serve, tmp_path: Path
) -> None:
    site = serve(SWINGBOT_WEB_TESTBOX_MINUTES="1000", SWINGBOT_WEB_OPEN_REQUESTS="2")
    ada = elsewhere(site, tmp_path)
    bob = ada | {"SWINGBOT_TOKEN": site.web.token("Bob", Role.SUBMITTER)["Authorization"][7:]}
    words = f"bisect start base..tip {METRIC}"
    cost = json.loads(run(f"{words} --dry-run --json", ada).stdout)["cost"]
    assert cost["testbox_seconds"] == cost["boots"] * cost["boot_seconds"] > 0
    for env in (ada, ada, bob):
        assert run(words, env).stdout.startswith("b1 is running")
    charged = "SELECT testbox_seconds FROM asked WHERE bisection = 1 AND who = '{}'"
    assert scalar(site, charged.format("Ada submitter")) == cost["testbox_seconds"]
    assert scalar(site, charged.format("Bob")) == 0
    brain = make_brain(site.web.settings, site.web.engine, site.linux)
    with brain.lab.transaction("look") as tx:
        before = tx.access.used("Ada submitter")
    assert (before.open_requests, before.daily_requests) == (1, 1)
    brain.run()
    taken = (
        "SELECT sum(x.seconds) FROM observation o JOIN boot x ON x.id = o.boot"
        " WHERE o.bisection = 1"
    )
    assert scalar(site, taken) > 0
    with site.web.engine.begin() as conn:
        conn.execute(sa.text("UPDATE boot SET seconds = 1000"))
    with brain.lab.transaction("look") as tx:
        after, other = tx.access.used("Ada submitter"), tx.access.used("Bob")
    assert after.testbox_seconds == scalar(site, taken) > before.testbox_seconds
    assert after.open_requests == 0 and other.testbox_seconds == 0


def test_a_quota_that_is_used_up_refuses_before_anything_is_queued(
    serve: Serve, tmp_path: Path
) -> None:
    site = serve(SWINGBOT_WEB_TESTBOX_MINUTES="1")
    ada = elsewhere(site, tmp_path)
    for more in ("--dry-run", "--yes"):
        refused = run(f"bisect start base..tip {METRIC} {more}", ada)
        assert refused.exit_code == 2 and "of your 1 in 24 hours are left" in refused.output
    operator = elsewhere(site, tmp_path, Role.OPERATOR)
    assert run(f"bisect start base..tip {METRIC} --yes", operator).exit_code == 0
    assert scalar(site, "SELECT count(*) FROM bisection") == 1


def test_a_token_without_the_role_or_of_another_tree_or_over_is_refused(
    site: Site, tmp_path: Path
) -> None:
    words = f"bisect start base..tip --tree fake {METRIC}"
    reader = elsewhere(site, tmp_path, Role.READER)
    assert "needs the role submitter" in run(words, reader).output
    ada = elsewhere(site, tmp_path)
    for change, sentence in (
        ("trees = ARRAY['mm']", "is only for"),
        ("trees = NULL, made_at = now() - interval '2 d', expires_at = now()", "expired"),
    ):
        with site.web.engine.begin() as conn:
            conn.execute(sa.text(f"UPDATE access_token SET {change} WHERE who = 'Ada submitter'"))
        refused = run(words, ada)
        assert refused.exit_code != 0 and sentence in refused.output, refused.output
    anonymous = {name: text for name, text in ada.items() if name != "SWINGBOT_TOKEN"}
    assert "asks for a token here" in run(words, anonymous).output
    assert "--trusted works on the service's own host only" in run(f"{words} --trusted", ada).output
    assert not scalar(site, "SELECT count(*) FROM bisection")


def test_who_asked_cancels_and_asks_again(site: Site, tmp_path: Path) -> None:
    ada, moderator = (elsewhere(site, tmp_path, role) for role in (Role.SUBMITTER, Role.MODERATOR))
    bob = ada | {"SWINGBOT_TOKEN": site.web.token("Bob", Role.SUBMITTER)["Authorization"][7:]}
    words = f"bisect start base..tip {METRIC}"
    assert run(words, ada).exit_code == 0
    refused = run("cancel b1", bob)
    assert refused.exit_code == 2 and "b1 is not yours" in refused.output
    assert (
        run("cancel b1", ada).output == run("cancel b1", here(site)).output == "b1 is cancelled\n"
    )
    assert "cancelled by Ada submitter" in run("show b1", ada).output
    assert run(words, here(site)).stdout.startswith("b2 is running"), "not the cancelled one"
    assert run(words, bob).stdout.startswith("b2 is running")
    assert "b2 is not yours" in run("cancel b2", bob).output
    assert run("cancel b2", moderator).output == "b2 is cancelled\n"
    assert run("cancel b9", ada).output == run("cancel b9", here(site)).output


def test_commits_that_are_gone_when_it_is_queued_are_named(site: Site, checkout: Path) -> None:
    first = commit(checkout, "mm/new.c", "int x;\n")
    second = commit(checkout, "mm/new.c", "int y;\n")
    document = {"tree": "fake", "range": "base..HEAD", "metric": "hackbench.throughput"}
    document |= {"commits": {"HEAD": second}}  # type: ignore[dict-item]
    headers, before = site.web.token("Ada", Role.SUBMITTER), state(site)
    gone = site.web.client.post("/bisect", json=document, headers=headers)
    assert gone.status_code == 400 and second[:12] in gone.json()["detail"], gone.text
    thin = base64.b64encode(bundle_of(checkout, f"{first}..main")).decode()
    lacks = site.web.client.post("/bisect", json=document | {"bundle": thin}, headers=headers)
    assert lacks.status_code == 400 and "builds on commit" in lacks.json()["detail"], lacks.text
    assert state(site) == before, "nothing is half-done"


def test_a_range_over_the_web_has_a_limit(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swingbot.service.bisect.ask.WEB_BISECTED_COMMITS", 1)
    words = f"bisect start base..tip {METRIC} --dry-run"
    refused = run(words, elsewhere(site, tmp_path))
    assert refused.exit_code == 2 and "at most 1 are accepted over the web" in refused.output
    assert run(words, here(site)).exit_code == 0
    assert limits.WEB_BISECTED_COMMITS > 600, "a release of the kernel has as many merges"


def test_malformed_requests_get_one_sentence(idle: Site, ada: dict[str, str]) -> None:
    bodies: list[object] = [
        {},
        {"tree": "fake", "range": "base..tip"},
        {"tree": "fake", "range": "base..tip", "metric": "x" * 201},
        {"tree": "fake", "range": "base..tip", "metric": "a.b", "more": 1},
        {"tree": "fake", "range": "x" * 50_000, "metric": "a.b"},
        {"tree": "fake", "range": "..", "metric": "hackbench.throughput"},
        {"tree": "fake", "range": "--all..tip", "metric": "hackbench.throughput"},
        {"tree": "fake", "range": "base..tip", "metric": "a.b", "bundle": "%"},
        {"tree": "fake", "range": "base..tip", "metric": "hackbench.throughput", "bundle": "UEs="},
        [],
    ]
    for body in bodies:
        refused = idle.web.client.post("/bisect", json=body, headers=ada)
        assert refused.status_code == 400 and 0 < len(refused.json()["detail"]) < 400, refused.text
        assert not re.search("Traceback|Error:", refused.text)


STEERED: Final = (
    "bisect skip b1 {middle} --why hangs",
    "bisect skip b1 base..{middle}",
    "bisect skip b1 {middle} --undo",
    "bisect hint b1 tip",
    "bisect hint b1 {middle} --factor 0.5 --why unlikely",
    "bisect hint b1 {middle} --factor 5000",
    "bisect hint b1 base",
    "bisect skip b1 tip",
    "bisect skip b1 tip..base",
    "bisect skip b9 tip",
    "bisect skip c1 tip",
    "bisect hint b1 {base} --why {long}",
)


def test_who_asked_steers_with_the_same_words_and_others_do_not(
    serve: Serve, tmp_path: Path
) -> None:
    site = serve(SWINGBOT_WEB_WRITE_RATE="0")
    ada, moderator = (elsewhere(site, tmp_path, role) for role in (Role.SUBMITTER, Role.MODERATOR))
    bob = ada | {"SWINGBOT_TOKEN": site.web.token("Bob", Role.SUBMITTER)["Authorization"][7:]}
    assert run(f"bisect start base..tip {METRIC}", ada).exit_code == 0
    base, middle, _ = site.commits
    for words in STEERED:
        typed = words.format(middle=middle[:9], base=base, long="x" * 501)
        both = []
        for env in (here(site), ada):
            if "--undo" in words:
                assert run(f"bisect skip b1 {middle}", ada).exit_code == 0
            both.append(run(typed, env))
        on_host, away = both
        assert away.exit_code == on_host.exit_code, (words, away.output)
        if len(typed) < 500:
            assert away.output == on_host.output, words
    for words in (f"bisect skip b1 {middle}", "bisect hint b1 tip"):
        refused = run(words, bob)
        assert refused.exit_code == 2 and "b1 is not yours" in refused.output
        assert run(words, moderator).exit_code == 0
    reader = run("bisect hint b1 tip", elsewhere(site, tmp_path, Role.READER))
    assert "needs the role submitter" in reader.output
    log = run("bisect log b1", ada).stdout
    assert "Ada submitter: hint" in log and "(unlikely)" in log
    assert log == run("bisect log b1", here(site)).stdout


NOT_RESUMED: Final = (
    "bisect resume b9 --boots 5",
    "bisect resume c1 --boots 5",
    "bisect resume b1 --boots 0",
    "bisect resume b1 --boots 10001",
    "bisect resume b1 --boots many",
    "bisect resume b1 --boots 5 --why {long}",
    "bisect resume b1",
)


def test_who_asked_resumes_with_the_same_plan_and_pays_for_it_once(
    serve: Serve, tmp_path: Path
) -> None:
    site = serve(SWINGBOT_WEB_WRITE_RATE="0", SWINGBOT_WEB_TESTBOX_MINUTES="100")
    ada, moderator = (elsewhere(site, tmp_path, role) for role in (Role.SUBMITTER, Role.MODERATOR))
    bob = ada | {"SWINGBOT_TOKEN": site.web.token("Bob", Role.SUBMITTER)["Authorization"][7:]}
    assert run(f"bisect start base..tip {METRIC}", ada).exit_code == 0
    resume = "bisect resume b1 --boots 5"
    running = [run(resume, env) for env in (here(site), ada)]
    assert running[0].output == running[1].output and "b1 is running" in running[1].output
    assert run("cancel b1", ada).exit_code == 0
    for words in (f"{resume} --dry-run", f"{resume} --dry-run --json", *NOT_RESUMED):
        typed = words.format(long="x" * 501)
        on_host, away = (run(typed, env) for env in (here(site), ada))
        assert away.exit_code == on_host.exit_code == (0 if "dry" in words else 2), away.output
        if len(typed) < 500:
            assert (away.stdout, away.stderr) == (on_host.stdout, on_host.stderr), words
    for env, sentence in (
        (bob, "b1 is not yours"),
        (elsewhere(site, tmp_path, Role.READER), "needs the role submitter"),
    ):
        refused = run(resume, env)
        assert refused.exit_code == 2 and sentence in refused.output
    too_many = run("bisect resume b1 --boots 9000", ada)
    assert too_many.exit_code == 2 and "of your 100 in 24 hours are left" in too_many.output
    charged = "SELECT testbox_seconds FROM asked WHERE bisection = 1 AND who = 'Ada submitter'"
    status = "SELECT count(*) FROM bisection WHERE status = 'running'"
    before, cost = scalar(site, charged), json.loads(run(f"{resume} --dry-run --json", ada).stdout)
    assert scalar(site, status) == 0 and cost["testbox_seconds"] > 0
    resumed = [run(f"{resume} --why more", ada) for _ in range(2)]
    assert [one.exit_code for one in resumed] == [0, 2], "it runs already"
    assert scalar(site, charged) == before + cost["testbox_seconds"]
    assert scalar(site, status) == 1
    for env in (here(site), moderator):
        assert run("cancel b1", ada).exit_code == 0
        again = run(f"{resume} --why more", env)
        assert (again.stdout, again.stderr) == (resumed[0].stdout, resumed[0].stderr)
    assert scalar(site, charged) == before + cost["testbox_seconds"]
    log = run("bisect log b1", ada).stdout
    assert "Ada submitter: resume" in log and "(more)" in log


def test_a_submitter_steers_a_bounded_number_of_times(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WEB_STEERS", 3)
    site = serve(SWINGBOT_WEB_WRITE_RATE="0")
    ada, moderator = (elsewhere(site, tmp_path, role) for role in (Role.SUBMITTER, Role.MODERATOR))
    assert run(f"bisect start base..tip {METRIC}", ada).exit_code == 0
    assert run("bisect hint b1 tip --factor 2", ada).exit_code == 0
    said = [run(f"bisect hint b1 tip --factor {factor}", ada) for factor in (2, 3, 4, 5)]
    assert [one.exit_code for one in said] == [0, 0, 0, 2]
    assert "only a moderator may steer it further" in said[3].output
    assert scalar(site, "SELECT count(*) FROM bisection_steer") == 3
    assert run("bisect hint b1 tip", moderator).exit_code == 0


def test_a_table_and_a_bisection_at_once_do_not_both_use_the_remaining_quota(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits between the look at the quota and its charge until the other has looked too."""
    site = serve(SWINGBOT_WEB_OPEN_REQUESTS="1", SWINGBOT_WEB_TESTBOX_MINUTES="100000")
    ada, both = site.web.token("Ada", Role.SUBMITTER), threading.Barrier(2)
    used = DatabaseSubmitter.used

    def seen(submitter: DatabaseSubmitter, person: Person) -> tuple[QuotaUsage, Quota | None]:
        looked = used(submitter, person)
        with suppress(threading.BrokenBarrierError):
            both.wait(2)
        return looked

    monkeypatch.setattr(DatabaseSubmitter, "used", seen)
    document = {"tree": "fake", "range": "base..tip", "metric": "hackbench.throughput"}
    with ThreadPoolExecutor(2) as pool:
        bisection = pool.submit(site.web.client.post, "/bisect", json=document, headers=ada)
        table = pool.submit(site.json, ada)
        answers = sorted(one.result().status_code for one in (bisection, table))
    assert answers == [201, 429]
    assert scalar(site, "SELECT count(*) FROM asked") == 1


def test_one_of_two_who_ask_for_the_same_at_once_pays(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits until the other, too, has found that nobody asked for it before."""
    both, opened = threading.Barrier(2), start.open_bisection

    def open_together(*parts: Any) -> int:
        both.wait(120)
        return opened(*parts)

    monkeypatch.setattr("swingbot.service.bisect.ask.open_bisection", open_together)
    document = {"tree": "fake", "range": "base..tip", "metric": "hackbench.throughput"}
    people = [site.web.token(who, Role.SUBMITTER) for who in ("Ada", "Bob")]
    with ThreadPoolExecutor(2) as pool:
        asked = [
            pool.submit(site.web.client.post, "/bisect", json=document, headers=who)
            for who in people
        ]
        answers = [one.result() for one in asked]
    assert sorted(one.status_code for one in answers) == [200, 201]
    assert {one.json()["id"] for one in answers} == {"b1"}
    assert scalar(site, "SELECT count(*) FROM asked WHERE testbox_seconds > 0") == 1


def test_who_repeats_the_request_of_another_does_not_steer_it(site: Site, tmp_path: Path) -> None:
    """One that an operator started on the host, too."""
    ada, words = elsewhere(site, tmp_path), f"bisect start base..tip {METRIC}"
    bob = ada | {"SWINGBOT_TOKEN": site.web.token("Bob", Role.SUBMITTER)["Authorization"][7:]}
    assert run(words, here(site)).stdout.startswith("b1 is running")
    assert run(f"{words} --set runs=3", ada).stdout.startswith("b2 is running")
    for id_, more in (("b1", ""), ("b2", " --set runs=3")):
        assert run(f"{words}{more}", bob).stdout.startswith(f"{id_} is running")
        for act in ("skip", "hint"):
            refused = run(f"bisect {act} {id_} {site.commits[1]}", bob)
            assert refused.exit_code == 2 and f"{id_} is not yours" in refused.output
    assert run(f"bisect skip b2 {site.commits[1]}", ada).exit_code == 0


def test_a_bisection_is_cancelled_and_asked_for_again_any_number_of_times(site: Site) -> None:
    document = {"tree": "fake", "range": "base..tip", "metric": "hackbench.throughput"}
    operator = site.web.token("Ada", Role.OPERATOR)
    lengths = set()
    for _ in range(4):
        started = site.web.client.post("/bisect", json=document, headers=operator)
        assert started.status_code == 201, started.text
        id_ = started.json()["id"]
        assert site.web.client.post(f"/bisection/{id_}/cancel", headers=operator).is_success
        lengths.add(scalar(site, "SELECT max(length(request_key)) FROM bisection"))
    assert len(lengths) == 2, "an index takes keys of a limited length"
