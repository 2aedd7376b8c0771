"""Asking for a table over the web, through either door: by form and by script, plan and cost first,
within a quota, with nothing fetched and nothing binary."""

from __future__ import annotations

import base64
import html
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from swingbot.app import submitter
from swingbot.app.cli import main
from swingbot.app.wiring import make_lab
from swingbot.core.access.quota import PlanningTime, Quota, QuotaUsage, quota_of, refusal
from swingbot.core.access.roles import Person, Role
from swingbot.core.limits import DAILY_REQUESTS
from swingbot.core.patchset.read import read_file
from swingbot.service.limits import WEB_ROWS
from swingbot.web.pages.form_body import read_form, read_json
from tests import builders as make
from tests.asking import Serve, Site
from tests.fakes.brain import make_brain
from tests.git_shim import git_shim

# A boot of vm-icount with the job of the tree, computed: none was timed yet.
BOOT_SECONDS = 58.8


def used(seconds: float) -> dict[str, float]:
    return {"open_requests": 1, "testbox_seconds": seconds, "daily_requests": 1}


def ask(site: Site, headers: dict[str, str], door: str, **keys: Any) -> httpx.Response:
    return site.web.client.post(door, json={"tree": "fake", **keys}, headers=headers)


def queued(site: Site) -> int:
    query = "SELECT count(*) FROM comparison WHERE kind IN ('asked', 'experiment')"
    return int(site.web.conn.execute(sa.text(query)).scalar_one())


def arms_of(site: Site, id: str) -> list[Any]:
    query = """SELECT a.name, v.commit, v.origin, v.trust FROM comparison_arm a
        JOIN variant v ON v.id = a.variant WHERE a.comparison = :id ORDER BY a.arm"""
    return list(site.web.conn.execute(sa.text(query), {"id": int(id[1:])}))


def series(site: Site, *revisions: str) -> str:
    return subprocess.run(
        ["git", "-C", str(site.linux), "format-patch", "--stdout", *revisions],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.parametrize(
    ("door", "page", "kernels", "commits"),
    [
        ("/compare", "comparison", {"base": "base", "head": "tip"}, [0, 2]),
        ("/experiment", "experiment", {"range": "base..tip"}, [0, 1, 2]),
    ],
)
def test_a_script_learns_plan_and_cost_then_queues_and_the_same_again_is_the_same(
    serve: Serve, door: str, page: str, kernels: dict[str, str], commits: list[int]
) -> None:
    site = serve()
    ada = site.web.token("Ada", Role.SUBMITTER)
    planned = ask(site, ada, door, **kernels, boots=3, dry_run=True)
    assert planned.status_code == 200 and planned.json()["id"] is None and queued(site) == 0
    plan = planned.json()["plan"]
    assert [row["commit"] for row in plan["rows"]] == [site.commits[n] for n in commits]
    boots = 3 * len(commits)
    assert plan["cost"]["boots"] == boots
    assert plan["cost"]["testbox_seconds"] == pytest.approx(boots * BOOT_SECONDS)
    assert [(part["testbox"], part["at_most"]) for part in plan["cost"]["testboxes"]] == [
        ("vm-icount", True)
    ]
    first = ask(site, ada, door, **kernels, boots=3)
    id = first.json()["id"]
    assert (first.status_code, first.headers["location"]) == (201, f"/{page}/{id}")
    assert first.json()["used"] == pytest.approx(used(boots * BOOT_SECONDS))
    bob = site.web.token("Bob", Role.SUBMITTER)
    branch = site.web.client.get("/trees.json").json()[0]["branch"]
    named = {key: ref.replace("tip", branch) for key, ref in kernels.items()}
    again = ask(site, bob, door, **named, boots=3)
    assert (again.status_code, again.json()["id"]) == (200, id)
    assert again.json()["used"] == used(0.0), "what was queued already costs nothing more"
    assert site.web.client.get(f"/{page}/{id}.json").json()["status"] == "waiting"
    query = "SELECT detail FROM access_event WHERE act = 'compare' ORDER BY id"
    assert site.web.conn.execute(sa.text(query)).scalars().all() == [id, id]


@pytest.mark.parametrize("door", ["/compare", "/experiment"])
def test_form_and_command_line_show_the_same_plan_and_cost(
    idle: Site, ada: dict[str, str], door: str
) -> None:
    wish = {"tree": "fake", "base": "base", "head": "tip", "boots": 3, "dry_run": True}
    web = idle.web.client.post(door, json=wish, headers=ada).json()["plan"]
    settings = idle.web.settings
    words = ["base", "tip", "--tree", "fake", "--boots", "3", "--dry-run", "--json"]
    environment = {
        "SWINGBOT_DB_URL": settings.db.url,
        "SWINGBOT_PATHS_STATE": str(settings.state),
    }
    said = CliRunner().invoke(main, [door.removeprefix("/"), *words], env=environment)
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout) == web
    assert web["cost"]["boots"] == 6 and web["cost"]["resolves"]


def test_the_smallest_change_of_interest_is_asked_for_in_the_form_and_in_json(
    serve: Serve,
) -> None:
    site = serve()
    ada = site.web.token("Ada", Role.SUBMITTER)
    first = site.json(ada, min_effect=0.5).json()["id"]
    assert site.json(ada, min_effect=0.5).json()["id"] == first
    assert site.json(ada).json()["id"] != first
    assert site.web.client.get(f"/comparison/{first}.json").json()["min_effect_pct"] == 0.5
    assert (
        "<th>minimum effect</th><td>0.5 %</td>" in site.web.client.get(f"/comparison/{first}").text
    )


def test_kernels_that_are_measured_cost_nothing_at_any_door(serve: Serve) -> None:
    site = serve()
    settings, ada = site.web.settings, site.web.token("Ada", Role.SUBMITTER)
    first = site.json(ada, boots=2)
    assert first.status_code == 201
    make_brain(settings, site.web.engine, site.linux).run()
    wish: dict[str, Any] = {"base": "tip", "head": "base", "boots": 2}
    web = ask(site, ada, "/compare", **wish, dry_run=True).json()["plan"]
    environment = {
        "SWINGBOT_DB_URL": settings.db.url,
        "SWINGBOT_PATHS_STATE": str(settings.state),
    }
    words = ["compare", "tip", "base", "--tree", "fake", "--boots", "2", "--dry-run"]
    command = partial(CliRunner().invoke, main, env=environment)
    assert json.loads(command([*words, "--json"]).stdout) == web
    assert (web["cost"]["builds"], web["cost"]["boots"], web["cost"]["testbox_seconds"]) == (
        0,
        0,
        0,
    )
    assert "0 to build; 2 known" in (told := command(words).stdout), told
    assert "vm-icount: 0 boots" in told and "4 known" in told
    client, token = site.web.client, ada["Authorization"].removeprefix("Bearer ")
    client.post("/login", data={"key": token, "next": "/compare"})
    fields = {**hidden(client.get("/compare").text, "/compare"), "tree": "fake", "act": "foresee"}
    fields |= {key: str(value) for key, value in wish.items()}
    page = client.post("/compare", data=fields, files={"none": b""}).text
    assert "0 boots" in page, page
    asked = ask(site, ada, "/compare", **wish)
    assert (asked.status_code, asked.json()["used"]) == (
        201,
        first.json()["used"] | {"daily_requests": 2},
    )


def test_both_doors_lead_to_one_table(serve: Serve) -> None:
    site = serve()
    ada = site.web.token("Ada", Role.SUBMITTER)
    compared = site.json(ada, boots=3)
    document = {"tree": "fake", "base": "base", "head": "tip", "boots": 3}
    again = site.web.client.post("/experiment", json=document, headers=ada)
    assert (again.status_code, again.json()["id"]) == (200, compared.json()["id"])
    three = site.json(ada, head=["tip~1", "tip"], boots=1, dry_run=True)
    assert [row["name"] for row in three.json()["plan"]["rows"]] == ["base", "tip~1", "tip"]


def test_a_patch_makes_a_kernel_of_its_own_that_is_not_trusted_whoever_sends_it(
    serve: Serve,
) -> None:
    site = serve()
    answer = site.json(site.web.token("Op", Role.OPERATOR), head="base", patch=site.patch())
    assert answer.status_code == 201, answer.text
    head = site.head_of(answer.json()["id"])
    assert head.commit not in site.commits and (head.origin, head.trust) == ("patch", "untrusted")


def test_patches_of_a_series_are_kernels_that_are_not_trusted_whoever_sends_them(
    serve: Serve,
) -> None:
    site = serve()
    headers = site.web.token("Op", Role.OPERATOR)
    mbox = series(site, f"{site.commits[0]}..{site.commits[2]}")
    more: dict[str, Any] = {"against": ["above", "1/2"], "looks": 3}
    answer = ask(site, headers, "/experiment", base="base", series=mbox, **more)
    assert answer.status_code == 201, answer.text
    assert len(answer.json()["patches"]) == 2
    base, *patches = arms_of(site, answer.json()["id"])
    assert (base.name, base.commit, base.trust) == ("base", site.commits[0], "trusted")
    assert [arm.name for arm in patches] == ["1/2", "2/2"]
    assert {(arm.origin, arm.trust) for arm in patches} == {("patch", "untrusted")}
    facts = site.web.client.get(f"/experiment/{answer.json()['id']}.json").json()
    assert (facts["against"], facts["looks_stated"]) == (["above", "1/2"], 3)


def test_each_patch_of_a_mailbox_is_a_commit_of_its_own(serve: Serve) -> None:
    site = serve()
    answer = site.json(site.web.token("Ada", Role.SUBMITTER), head="base", patch=site.mailbox())
    assert answer.status_code == 201, answer.text
    assert answer.json()["patches"] == ["1", "2"]
    (left_out,) = answer.json()["left_out"]
    assert left_out["author"].endswith(">") and left_out == {
        "subject": "[PATCH 0/2] *** SUBJECT HERE ***",
        "reason": "cover letter",
        "author": left_out["author"],
    }
    lab = make_lab(site.web.settings, site.web.engine)
    head = site.head_of(answer.json()["id"]).commit
    made = lab.tools.git.first_parents(site.commits[0], head)
    assert [lab.tools.git.message(commit).strip() for commit in made] == ["1", "2"]
    trees = [lab.tools.git.facts(commit).tree_hash for commit in (*made, *site.commits[1:])]
    assert trees[:2] == trees[2:]


def encoded(patch: str) -> str:
    """A mail whose body is base64."""
    body = base64.encodebytes(patch.encode()).decode()
    return f"Subject: [PATCH] x\nContent-Transfer-Encoding: base64\n\n{body}"


def test_a_patch_encoded_in_base64_is_decoded(idle: Site, ada: dict[str, str]) -> None:
    answer = idle.json(ada, head="base", patch=encoded(idle.patch()), dry_run=True)
    assert (answer.status_code, answer.json()["patches"]) == (200, ["x"]), answer.text


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"tree": "nope"}, "tree 'nope' does not exist"),
        ({"head": ""}, "needs at least two rows, but this one has 1"),
        ({"head": "base"}, "the same commit"),
        ({"head": "nosuch"}, "only fetched commits can be compared"),
        ({"head": ":/commit"}, "not a valid commit name"),
        ({"head": "HEAD^{/x}"}, "not a valid commit name"),
        ({"head": "--output=x"}, "not a valid commit name"),
        ({"head": "a" * 5000}, "characters"),
        ({"boots": 0}, "boots must be a number from 1 to 1000, not '0'"),
        ({"boots": 10**9}, "from 1 to 1000"),
        ({"min_effect": 0}, "must be 0.01 to 100 percent, got 0"),
        ({"min_effect": 101}, "must be 0.01 to 100 percent"),
        ({"min_effect": "0.5"}, "boots, looks, min_effect numbers"),
        ({"job": "../../etc/passwd"}, "job file '../../etc/passwd' does not exist; choose from"),
        ({"job": ["vm-netperf.yaml", "/etc/passwd"]}, "does not exist; choose from"),
        ({"testbox": "nope"}, "testbox or group 'nope' does not exist; choose from"),
        ({"patch": "no patch"}, "patch of a web request: it has no diff"),
        (
            {"patch": "diff --git a/f b/f\nnew file mode 100644\nGIT binary patch\nliteral 9\n"},
            "is binary",
        ),
        (
            {"patch": encoded("diff --git a/f b/f\nindex 1..2\nGIT binary patch\nliteral 9\n")},
            "is binary",
        ),
        ({"patch": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"}, "does not apply"),
        (
            {"series": "Subject: [PATCH 2/2] x\n\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"},
            "patch 1/2 is missing",
        ),
        ({"patch": 5}, "patch and series strings"),
        ({"boots": True}, "boots, looks, min_effect numbers"),
        ({"sett": {"x": "1"}}, "Send an object with only these keys"),
        ({"set": {"x": 1}}, "set.x: 1 is not a string"),
        ({"set": {"x": "1"}}, "x"),
        ({"rows": [{"ref": "tip", "patches": "x"}]}, "rows[0].patches"),
        (
            {"rows": [{"patches": [{"name": "p", "files": [{"name": "f", "data": "?"}]}]}]},
            "is not base64",
        ),
        ({"rows": [{"patches": [{"name": "p", "files": []}]}]}, "no patch in it"),
        ({"rows": [{"ref": "tip"}]}, "one of `rows` has no name"),
        ({"rows": [{"name": "x", "ref": "tip", "each": True}]}, "x: `each` needs patches"),
        ({"rows": [{"name": "x\ny", "ref": "tip"}]}, "rows[0].name: must have at most 200"),
        ({"rows": [{"name": "x", "ref": "tip"}] * 201}, "rows: has 201 entries"),
        ({"paths": ["*"] * 201}, "paths: has 201 entries"),
        ({"exclude": [{"kernel": "tip"}] * 201}, "exclude: has 201 entries"),
        ({"axes": [{"name": "sysctl", "values": {"\x1b[31m": ""}}]}, "a label must have"),
        ({"axes": [{"name": "sysctl", "values": {"": ""}}]}, "a label is empty"),
        ({"axes": [{"name": "sysctl", "values": {"a": ""}}] * 2}, "sysctl is given 2 times"),
        ({"axes": [{"name": "layout", "values": {"a": "x"}}]}, "layouts are numbered from 0"),
        ({"axes": [{"name": "layout", "values": {"a": "1" * 20}}]}, "layouts are numbered from 0"),
        ({"axes": [{"name": "colour", "values": {"a": "b"}}]}, "'colour' is not one of compiler"),
        ({"axes": [{"name": "sysctl", "values": {"a": "kernel.core_pattern=|x"}}]}, "core_pattern"),
        ({"axes": [{"name": "cmdline", "values": {"a": "iommu=off"}}]}, "reaches the machine"),
        ({"set": {"kernel_cmdline": "iommu=off"}}, "reaches the machine"),
        ({"axes": [{"name": "layout", "values": {str(n): "1" for n in range(99)}}]}, "rows"),
        ({"tree": {"a": 1}}, "must be strings"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(
    idle: Site, ada: dict[str, str], keys: dict[str, Any], sentence: str
) -> None:
    answer = idle.json(ada, **keys)
    assert answer.status_code == 400 and sentence in answer.json()["detail"], answer.text
    assert queued(idle) == 0


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({}, "name the kernels: two or more commits, a range A..B, or a base with patches"),
        ({"range": "tip"}, "write the range as A..B"),
        ({"range": "a...b"}, "write the range as A..B"),
        ({"range": "tip..base"}, "is empty"),
        ({"range": "base..nosuch"}, "over the web only fetched commits can be compared"),
        ({"range": "base..HEAD^{/x}"}, "not a valid commit name"),
        ({"range": "--output=x..tip"}, "not a valid commit name"),
        ({"base": ":/commit"}, "not a valid commit name"),
        ({"base": "base"}, "needs at least two rows"),
        ({"base": "a" * 5000}, "characters"),
        ({"range": "base..tip", "base": "base"}, "a range cannot be combined with a base"),
        ({"range": "base..tip", "boots": 1001}, "from 1 to 1000"),
        ({"range": "base..tip", "looks": 0}, "from 1 to 20, not '0'"),
        ({"range": "base..tip", "looks": 21}, "from 1 to 20"),
        ({"range": "base..tip", "looks": "x"}, "boots, looks, min_effect numbers"),
        ({"range": "base..tip", "against": "left"}, "there is no row 'left' to compare with"),
        ({"base": "base", "series": "no patch"}, "no diff"),
        ({"base": "base", "series": "GIT binary patch\nliteral 9\n"}, "no diff"),
        ({"base": "base", "series": 5}, "patch and series strings"),
        ({"range": {"a": 1}}, "must be strings"),
        ({"range": "base..tip", "trusted": True}, "Send an object with only these keys"),
        ({"range": "base..tip", "compiler": "gcc-11"}, "Send an object with only these keys"),
    ],
)
def test_what_makes_no_table_is_refused_in_a_sentence(
    idle: Site, ada: dict[str, str], keys: dict[str, Any], sentence: str
) -> None:
    answer = ask(idle, ada, "/experiment", **keys)
    assert answer.status_code == 400 and sentence in answer.json()["detail"], answer.text
    assert queued(idle) == 0


def test_commits_of_other_trees_and_other_peoples_patches_are_not_of_this_tree(
    idle: Site, ada: dict[str, str]
) -> None:
    lab = make_lab(idle.web.settings, idle.web.engine)
    patches = read_file("x", idle.patch().encode()).patches
    foreign = lab.tools.git.apply_series(idle.commits[0], patches)[-1]
    for keys in ({"head": foreign}, {"range": f"base..{foreign}"}, {"base": foreign}):
        answer = ask(idle, ada, "/compare", **keys)
        assert answer.status_code == 400
        assert "is not in branch main of tree fake" in answer.json()["detail"]


def test_only_who_may_submit_does(idle: Site) -> None:
    reader = idle.web.token("Rea", Role.READER)
    for door in ("/compare", "/experiment"):
        assert ask(idle, {}, door, range="base..tip").status_code == 401
        refused = ask(idle, reader, door, range="base..tip")
        assert refused.status_code == 403
        assert (
            "needs the role submitter, and Rea's token has the role reader"
            in refused.json()["detail"]
        )
    assert queued(idle) == 0


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"[" * 50_000, b"\xff", b'{"tree": NaN}'])
def test_what_is_no_json_object_is_refused(idle: Site, ada: dict[str, str], body: bytes) -> None:
    answer = idle.web.client.post(
        "/compare", content=body, headers=ada | {"content-type": "application/json"}
    )
    assert answer.status_code == 400 and answer.json()["detail"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=b", b"--b\r\n\r\nno name\r\n--b--"),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="tree"\r\n\r\nnever ends',
        ),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="kept_patch"\r\n\r\n!!\r\n--b--\r\n',
        ),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="tree"\r\n\r\n\xff\r\n--b--\r\n',
        ),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n' * 300 + b"--b--\r\n",
        ),
        ("application/x-www-form-urlencoded", b"tree=fake"),
        ("text/plain", b"tree=fake"),
    ],
)
def test_what_is_no_form_is_refused(
    idle: Site, ada: dict[str, str], kind: str, body: bytes
) -> None:
    answer = idle.web.client.post("/compare", content=body, headers=ada | {"content-type": kind})
    assert answer.status_code == 400 and "The form is malformed; nothing was queued." in answer.text
    assert queued(idle) == 0


@given(st.binary(max_size=300), st.booleans())
def test_whatever_is_sent_is_a_form_or_a_sentence(body: bytes, framed: bool) -> None:
    """Any bytes, and any bytes as the first part of a form."""
    if framed:
        body = b'--b\r\nContent-Disposition: form-data; name="' + body + b"\r\n--b--\r\n"
    for read in (
        lambda: read_form("multipart/form-data; boundary=b", body, 100),
        lambda: read_json(body, 100),
    ):
        with suppress(HTTPException):
            read()


def test_a_patch_has_a_size(serve: Serve) -> None:
    site = serve(SWINGBOT_WEB_PATCH_KIB="8")
    bearer = site.web.token("Ada", Role.SUBMITTER)
    assert site.json(bearer, patch="+" * 9000).status_code == 413
    assert (
        site.web.client.post(
            "/compare", files={"patch": b"+" * 9000}, data={"tree": "fake"}, headers=bearer
        ).status_code
        == 413
    )
    assert site.json(bearer, patch="+" * 200_000).status_code == 413, "refused before it is read"


def test_a_quota_holds_for_a_person_whatever_tokens_the_person_has(serve: Serve) -> None:
    site = serve(SWINGBOT_WEB_OPEN_REQUESTS="2", SWINGBOT_WEB_TESTBOX_MINUTES="13")
    laptop, script = site.web.token("Ada", Role.SUBMITTER), site.web.token("Ada", Role.MODERATOR)
    refused = site.json(laptop, boots=7)
    assert (
        refused.status_code == 429
        and "takes 14 testbox minutes, and 13 of your 13" in refused.json()["detail"]
    )
    assert [
        site.json(headers, boots=boots).status_code
        for headers, boots in ((laptop, 1), (script, 2), (script, 1), (laptop, 3))
    ] == [201, 201, 429, 429]
    assert site.json(site.web.token("Bob", Role.SUBMITTER), boots=1).status_code == 200
    assert site.json(site.web.token("Op", Role.OPERATOR), boots=7).status_code == 201, (
        "an operator has no quota"
    )
    events = (
        site.web.conn.execute(
            sa.text("SELECT who FROM access_event WHERE act = 'compare' ORDER BY id")
        )
        .scalars()
        .all()
    )
    assert events == ["Ada", "Ada", "Bob", "Op"]


def objects(site: Site) -> set[Path]:
    return set((site.web.settings.mirror / "objects").rglob("*"))


def test_only_an_accepted_request_leaves_something_in_the_mirror(serve: Serve) -> None:
    site = serve(SWINGBOT_WEB_TESTBOX_MINUTES="13")
    ada, before = site.web.token("Ada", Role.SUBMITTER), objects(site)
    good, bad = series(site, "-2"), series(site, "-1").replace("Subject: ", "Subject: x") * 2
    asked = {"tree": "fake", "base": "base"}
    for door, wish, status in (
        ("/compare", {"patch": site.patch(), "dry_run": True}, 200),
        ("/compare", {"patch": site.patch(), "boots": 7}, 429),
        ("/compare", {"patch": site.patch(), "job": "none.yaml"}, 400),
        ("/experiment", {"series": good, "testbox": "none"}, 400),
        ("/experiment", {"series": bad}, 400),
    ):
        answer = site.web.client.post(door, json={**asked, **wish}, headers=ada)
        assert (answer.status_code, objects(site)) == (status, before), answer.text
    assert site.json(ada, head="base", patch=site.patch(), boots=1).status_code == 201
    assert len(objects(site)) > len(before)


def test_another_person_is_answered_while_git_works_for_the_first(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = serve()
    ada, bob = (site.web.token(who, Role.SUBMITTER) for who in ("Ada", "Bob"))
    begun, end = tmp_path / "begun", tmp_path / "end"
    waits = f"touch '{begun}'; while [ ! -e '{end}' ]; do sleep 0.1; done"
    git_shim(tmp_path, monkeypatch, f'case " $* " in *" apply "*) {waits} ;; esac')
    with ThreadPoolExecutor() as threads:
        try:
            first = threads.submit(site.json, ada, head="base", patch=site.patch(), boots=1)
            while not begun.exists():
                assert not first.done(), first.result().text
                time.sleep(0.05)
            second = threads.submit(site.json, ada, boots=1)
            assert site.json(bob, boots=2).status_code == 201
            assert not first.done() and not second.done(), "one person's are answered in turn"
        finally:
            end.touch()
        assert (first.result().status_code, second.result().status_code) == (201, 201)


def test_what_git_takes_for_a_plan_is_charged_to_the_client(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = serve(SWINGBOT_WEB_RATE="3", SWINGBOT_WEB_PROXIES="127.0.0.1")
    ada = site.web.token("Ada", Role.SUBMITTER)
    near, far = ({**ada, "x-forwarded-for": f"192.0.2.{number}"} for number in (1, 2))
    loop = "import time\nwhile time.process_time() < 4.0: pass"
    burns = f"'{sys.executable}' -S -c '{loop}'"
    git_shim(tmp_path, monkeypatch, f'case " $* " in *" apply "*) {burns} ;; esac')
    assert site.json(near, patch=site.patch(), head="base", dry_run=True).status_code == 200
    late, other = (site.json(headers, dry_run=True) for headers in (near, far))
    assert (late.status_code, other.status_code) == (429, 200), late.text
    assert "took too much processor time" in late.text


def test_the_time_in_which_requests_are_planned_is_a_quota_of_its_own(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submitter, "PlanningTime", partial(PlanningTime, most=0.0))
    site = serve()
    ada, bob = (site.web.token(who, Role.SUBMITTER) for who in ("Ada", "Bob"))
    op = site.web.token("Op", Role.OPERATOR)
    wish = {"patch": site.patch().replace("-", "+"), "boots": 1}
    assert [site.json(who, **wish).status_code for who in (ada, bob, ada, op, op)] == [
        400, 400, 429, 400, 400,
    ]  # fmt: skip
    refused = site.json(ada, dry_run=True)
    assert refused.status_code == 429 and "planning your requests took" in refused.json()["detail"]


def test_planning_is_counted_for_a_day() -> None:
    ada = Person(who="Ada", role=Role.SUBMITTER, token=1)
    planning = PlanningTime(most=100.0)
    planning.add(ada, 60.0, 0.0)
    assert planning.refusal(ada, 1.0) is None
    planning.add(ada, 50.0, 50_000.0)
    assert "try again later" in str(planning.refusal(ada, 50_001.0))
    assert planning.refusal(ada, 90_000.0) is None
    assert planning.refusal(Person(who="Bob", role=Role.SUBMITTER, token=2), 50_001.0) is None


def test_a_quota_counts_the_boots_of_all_kernels(serve: Serve) -> None:
    site = serve(SWINGBOT_WEB_OPEN_REQUESTS="2", SWINGBOT_WEB_TESTBOX_MINUTES="13")
    ada = site.web.token("Ada", Role.SUBMITTER)
    wish = {"range": "base..tip", "boots": 5}
    refused = ask(site, ada, "/experiment", **wish)
    assert refused.status_code == 429 and "takes 15 testbox minutes" in refused.text
    assert ask(site, ada, "/experiment", **wish, dry_run=True).json()["refused"]
    assert ask(site, ada, "/experiment", range="base..tip", boots=1).status_code == 201
    assert site.json(ada, boots=1).status_code == 201, "both doors share the quota"
    assert ask(site, ada, "/experiment", range="base..tip", boots=2).status_code == 429


@pytest.fixture(scope="module")
def signed(idle: Site, ada: dict[str, str]) -> Iterator[httpx.Client]:
    """Ada's browser."""
    with httpx.Client(base_url=idle.web.client.base_url, timeout=60, trust_env=False) as client:
        client.post("/login", data={"key": ada["Authorization"].removeprefix("Bearer ")})
        yield client


def offered(page: str, field: str) -> list[str]:
    """The options of a list with this id, or of a field with this name."""
    part = re.search(f'<(?:select name|datalist id)="{field}".*?</(?:select|datalist)>', page)
    assert part is not None, page
    return [
        value or text
        for value, text in re.findall(r'<option(?: value="([^"]*)")?[^>]*>([^<]*)', part[0])
    ]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (f"base={'a' * 301}", "base has 301 characters; the limit is 300"),
        (f"head=tip&head={'a' * 301}", "head has 301 characters; the limit is 300"),
        (f"job={'a' * 400}.yaml", "job has 405 characters"),
        ("with=" + ",".join(map(str, range(201))), "with has 201 values; the limit is 200"),
        ("boots=0", "boots must be a number from 1 to 1000"),
        ("looks=x", "looks must be a number from 1 to 20"),
        ("min_effect=x", "min_effect must be a number of percent"),
        ("tree=fakes", "did you mean &#39;fake&#39;?"),
        ("job=vm-hackbensch.yaml", "did you mean &#39;vm-hackbench.yaml&#39; or"),
        ("testbox=vm-icont", "did you mean &#39;vm-icount&#39;?"),
        ("job=wire-netperf.yaml", "choose a testbox of the group cs-vm"),
    ],
)
def test_nothing_in_an_address_is_dropped_without_a_word(
    signed: httpx.Client, query: str, sentence: str
) -> None:
    answer = signed.get(f"/compare?{query}")
    assert answer.status_code == 400, answer.text
    notice = answer.text.split('<p class="notice">')[1].split("</p>")[0]
    assert sentence in notice


def test_the_limit_of_a_list_is_that_of_each_value(
    idle: Site, signed: httpx.Client, ada: dict[str, str]
) -> None:
    jobs = [job for job in offered(signed.get("/compare").text, "job") if "will-it" in job]
    assert len(jobs) > 3
    heads = [f"{idle.commits[2]}~0", f"{idle.commits[2]}^0", *idle.commits[1:], *["tip~1"] * 40]
    wish: dict[str, Any] = {"head": heads, "job": jobs, "with": [f"perf.{n:060}" for n in range(9)]}
    answer = idle.json(ada, **wish, dry_run=True)
    assert "characters" not in answer.text, answer.text


def test_jobs_that_the_testboxes_cannot_run_are_not_offered_and_refused_with_that_reason(
    idle: Site, signed: httpx.Client, ada: dict[str, str]
) -> None:
    page = signed.get("/compare?tree=fake").text
    assert "vm-hackbench.yaml" in (jobs := offered(page, "job"))
    assert "wire-netperf.yaml" not in jobs and "<code>wire-netperf.yaml</code>" in page
    why = idle.json(ada, job="wire-netperf.yaml", dry_run=True)
    assert why.status_code == 400
    assert why.json()["detail"] in html.unescape(page)
    for job in ("vm-hackbench.yaml", "vm-netperf-udp.yaml"):
        assert job in jobs and idle.json(ada, job=job, dry_run=True).status_code == 200
    fields = {**hidden(page, "/compare"), "tree": "fake", "testbox": "cs-vm", "act": "choose"}
    page = signed.post("/compare", data={**fields, "base": "v6"}, files={"none": b""}).text
    assert offered(page, "job") == ["wire-netperf.yaml"]
    assert 'name="base" list="kernels" maxlength="200" value="v6"' in page


def test_names_of_kernels_are_completed_with_those_that_can_be_asked_for(
    idle: Site, signed: httpx.Client, ada: dict[str, str]
) -> None:
    page = signed.get("/compare?tree=fake&head=x,y&head=z").text
    names, ranges = offered(page, "kernels"), offered(page, "ranges")
    assert names == ["tip", "base", idle.commits[2][:12]]
    assert ranges == ["base..tip", f"{idle.commits[0][:12]}..{idle.commits[2][:12]}"]
    assert re.findall(r'name="head" [^>]*value="(\w*)"', page) == ["x", "y", "z", ""]
    for one in names:
        asked = ask(idle, ada, "/compare", range=f"base~0..{one}", dry_run=True)
        assert asked.status_code == 200 or "is empty" in asked.text, asked.text
    for one in ranges:
        assert ask(idle, ada, "/compare", range=one, dry_run=True).status_code == 200


def test_releases_are_offered_and_taken_by_their_name_without_a_tag(
    idle: Site, signed: httpx.Client, ada: dict[str, str]
) -> None:
    conn, first, last = idle.web.conn, idle.commits[0], idle.commits[2]
    tree = conn.execute(sa.text("SELECT id FROM tree WHERE name = 'fake'")).scalar_one()
    made = [
        make.a_variant(conn, tree, commit, subject=subject).variant
        for commit, subject in (
            (idle.commits[1], "Linux 6.1.111"),
            (first, "Linux 6.1.110"),
            (last, "Linux 6.1.111"),
        )
    ]
    conn.commit()
    try:
        page = signed.get("/compare?tree=fake").text
        assert offered(page, "kernels") == ["tip", "base", "v6.1.111", "v6.1.110"]
        assert offered(page, "ranges") == ["base..tip", "v6.1.110..v6.1.111"]
        for door in ("/compare", "/experiment"):
            answer = ask(idle, ada, door, range="v6.1.110..v6.1.111", dry_run=True).json()
            rows = answer["plan"]["rows"]
            assert [one["commit"] for one in rows] == idle.commits[:3]
            assert rows[0]["name"] == "v6.1.110"
        step = idle.json(ada, base="v6.1.111~1", head="v6.1.111", dry_run=True).json()
        assert [one["commit"] for one in step["plan"]["rows"]] == idle.commits[1:3]
        assert idle.json(ada, base="v6.1.109", head="tip", dry_run=True).status_code == 400
    finally:
        conn.execute(sa.text("DELETE FROM variant WHERE id = ANY(:ids)"), {"ids": made})
        conn.commit()


HOSTILE = "<script>alert('x')</script>"


def hidden(page: str, door: str) -> dict[str, str]:
    """The hidden fields of the first form to a door."""
    form = page[page.index(f'action="{door}"') :]
    form = form[: form.index("</form>")]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))


@pytest.mark.parametrize(
    ("door", "address", "kernels", "file", "shown"),
    [
        (
            "/compare",
            r"/comparison/c\d+",
            {"head": "base"},
            "patch",
            [
                "<code>base+2 patches</code>",
                "*** SUBJECT HERE *** by ",
                "(cover letter)",
                "4 boots",
            ],
        ),
        (
            "/experiment",
            r"/experiment/e\d+",
            {"against": ["above", "first"], "job": ["vm-hackbench.yaml"]},
            "series",
            ["3 kernels", "against the row above and the first row", "6 boots"],
        ),
    ],
)
def test_a_person_sees_plan_and_cost_before_the_form_queues_anything(
    serve: Serve, door: str, address: str, kernels: dict[str, Any], file: str, shown: list[str]
) -> None:
    site = serve()
    client = site.web.client
    token = site.web.token("Ada", Role.SUBMITTER)["Authorization"].removeprefix("Bearer ")
    assert "Sign in" in client.get(door).text
    signed = client.post("/login", data={"key": token, "next": door})
    assert signed.headers["location"] == door
    page = client.get(door).text
    assert (
        "0 of your 5 requests" in page
        and "vm-hackbench.yaml" in page
        and "<option selected>fake" in page
    )
    fields = {**hidden(page, door), "tree": "fake", "base": "base", **kernels}
    fields |= {"boots": "2", "min_effect": "0.5", "act": "foresee"}
    mbox = site.mailbox().replace("Subject: [PATCH 2/2] ", f"Subject: [PATCH 2/2] {HOSTILE} ")
    first = client.post(door, data=fields, files={file: ("x.mbox", mbox.encode())})
    assert first.status_code == 200 and queued(site) == 0, first.text
    assert all(words in first.text for words in (*shown, "at most", "Queue it")), first.text
    assert "<script" not in first.text and "&lt;script&gt;" in first.text

    def post(data: dict[str, str]) -> httpx.Response:
        return client.post(door, data=data, files={"none": b""})

    asked = post({**hidden(first.text, door), "act": "ask"})
    assert asked.status_code == 303, asked.text
    where = asked.headers["location"]
    [own] = re.findall(r'<a href="(/person/[^"]+)">Your requests', client.get(door).text)
    assert re.fullmatch(address, where) and where in client.get(own).text
    assert client.get(f"{where}.json").json()["min_effect_pct"] == 0.5
    table = client.get(where).text
    assert "<script" not in table and "&lt;script&gt;" in table and "untrusted" in table
    assert arms_of(site, where.rpartition("/")[2])[-1].origin == "patch"
    without = {name: value for name, value in hidden(first.text, door).items() if name != "token"}
    for data in (without, {**without, "token": "x"}):
        assert post({**data, "act": "ask"}).status_code == 403
    unsigned = client.post(door, json={"tree": "fake", "range": "base..tip"})
    assert unsigned.status_code == 401, "JSON is for bearers"
    assert "must be a number of percent, such as 0.5" in post({**fields, "min_effect": "x"}).text
    wrong = post({**fields, "base": "<b>nosuch"})
    assert wrong.status_code == 400 and "Nothing was queued" in wrong.text
    assert "<b>nosuch" not in wrong.text and queued(site) == 1


def test_a_quota_is_counted_in_requests_and_in_seconds() -> None:
    ada, op = (Person(who="x", role=role, token=1) for role in (Role.SUBMITTER, Role.OPERATOR))
    quota = Quota(open_requests=2, testbox_seconds=100.0)
    assert quota_of(op, quota) is None and quota_of(ada, quota) == quota
    assert refusal(QuotaUsage(open_requests=1, testbox_seconds=60.0), 40.0, quota) is None
    assert refusal(QuotaUsage(open_requests=9, testbox_seconds=999.0), 1e9, None) is None
    assert "wait until one is over" in str(refusal(QuotaUsage(open_requests=2), 1.0, quota))
    many = QuotaUsage(daily_requests=DAILY_REQUESTS)
    assert "at most 200 are allowed per person" in str(refusal(many, 0.0, quota))
    assert "1 of your 2 in 24 hours are left" in str(
        refusal(QuotaUsage(testbox_seconds=60.0), 41.0, quota)
    )


def test_a_series_of_more_patches_than_one_request_may_apply_is_refused(
    idle: Site, ada: dict[str, str]
) -> None:
    mails = [
        "From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\n"
        f"From: Ada <ada@example.org>\nSubject: [PATCH {n:02}/51] mm: patch {n}\n\nWhy.\n---\n"
        f"{idle.patch()}\n"
        for n in range(1, 52)
    ]
    answer = idle.json(ada, patch="".join(mails))
    assert answer.status_code == 400
    assert "there are 51 patches; at most 50 are accepted over the web" in answer.json()["detail"]
    one = series(idle, "-1", idle.commits[1])
    many = "".join(
        one.replace("[PATCH]", f"[PATCH {number}/{WEB_ROWS}]") for number in range(1, WEB_ROWS + 1)
    )
    answer = ask(idle, ada, "/experiment", base="base", series=many)
    assert (
        f"that makes {WEB_ROWS + 1} rows with the base; at most {WEB_ROWS} are allowed"
        in answer.json()["detail"]
    )
