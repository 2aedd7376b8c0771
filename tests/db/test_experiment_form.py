"""Asking for an experiment over the web: plan and cost first, within a quota, of known commits."""

from __future__ import annotations

import re
import subprocess
from contextlib import suppress
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from swingbot.app.wiring import make_lab
from swingbot.core.access.roles import Role
from swingbot.core.patchset.read import read_file
from swingbot.service import limits
from swingbot.web.pages.form_body import read_form, read_json
from tests.asking import Serve, Site
from tests.db.test_compare_page import used

HOSTILE = "<script>alert('x')</script>"


def ask(site: Site, headers: dict[str, str], **keys: Any) -> httpx.Response:
    document = {"tree": "fake", **keys}
    return site.web.client.post("/experiment", json=document, headers=headers)


def count(site: Site) -> int:
    query = "SELECT count(*) FROM comparison WHERE kind = 'experiment'"
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


def test_a_script_learns_plan_and_cost_then_queues_and_the_same_again_is_the_same(
    serve: Serve,
) -> None:
    site = serve()
    ada = site.web.token("Ada", Role.SUBMITTER)
    foreseen = ask(site, ada, range="base..tip", boots=3, dry_run=True)
    assert foreseen.status_code == 200 and foreseen.json()["id"] is None and count(site) == 0
    plan = foreseen.json()["plan"]
    assert [row["commit"] for row in plan["rows"]] == site.commits
    assert plan["against"] == ["above"]
    assert (plan["cost"]["builds"], plan["cost"]["boots"]) == (3, 9)
    assert plan["cost"]["testbox_seconds"] == 9 * 900
    first = ask(site, ada, range="base..tip", boots=3)
    id = first.json()["id"]
    assert (first.status_code, first.headers["location"]) == (201, f"/experiment/{id}")
    assert first.json()["used"] == used(9 * 900)
    assert [arm.commit for arm in arms_of(site, id)] == site.commits
    branch = site.web.client.get("/trees.json").json()[0]["branch"]
    again = ask(site, site.web.token("Bob", Role.SUBMITTER), range=f"base..{branch}", boots=3)
    assert (again.status_code, again.json()["id"]) == (200, id)
    assert again.json()["used"] == used(0.0)
    assert site.web.client.get(f"/experiment/{id}.json").json()["status"] == "waiting"
    assert f"Experiment {id}" in site.web.client.get(f"/experiment/{id}").text
    query = "SELECT detail FROM access_event WHERE act = 'compare' ORDER BY id"
    assert site.web.conn.execute(sa.text(query)).scalars().all() == [id, id]


def test_patches_of_a_series_are_kernels_that_are_not_trusted_whoever_sends_them(
    serve: Serve,
) -> None:
    site = serve()
    headers = site.web.token("Op", Role.OPERATOR)
    mbox = series(site, f"{site.commits[0]}..{site.commits[2]}")
    answer = ask(site, headers, base="base", series=mbox, against=["above", "first"], looks=3)
    assert answer.status_code == 201, answer.text
    assert len(answer.json()["patches"]) == 2
    base, *patched = arms_of(site, answer.json()["id"])
    assert (base.commit, base.trust) == (site.commits[0], "trusted")
    assert [arm.name for arm in patched] == ["1/2", "2/2"]
    assert {(arm.origin, arm.trust) for arm in patched} == {("patch", "untrusted")}
    facts = site.web.client.get(f"/experiment/{answer.json()['id']}.json").json()
    assert (facts["against"], facts["looks_stated"]) == (["above", "first"], 3)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({}, "name the kernels: two or more commits, a range A..B, or a base with patches"),
        ({"tree": ""}, "tree is missing"),
        ({"tree": "nope", "range": "base..tip"}, "tree 'nope' does not exist"),
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
        ({"range": "base..tip", "boots": 0}, "from 1 to 1000"),
        ({"range": "base..tip", "boots": 1001}, "from 1 to 1000"),
        ({"range": "base..tip", "boots": 10**9}, "from 1 to 1000"),
        ({"range": "base..tip", "looks": 0}, "from 1 to 20, not '0'"),
        ({"range": "base..tip", "looks": 21}, "from 1 to 20"),
        ({"range": "base..tip", "looks": "x"}, "boots and looks numbers"),
        ({"range": "base..tip", "against": "left"}, "there is no row 'left' to compare with"),
        (
            {"range": "base..tip", "job": "../../etc/passwd"},
            "job file '../../etc/passwd' does not exist; use one of",
        ),
        (
            {"range": "base..tip", "testbox": "nope"},
            "testbox or group 'nope' does not exist; choose from",
        ),
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
    answer = ask(idle, ada, **keys)
    assert answer.status_code == 400 and sentence in answer.json()["error"], answer.text
    assert count(idle) == 0


def test_commits_of_other_trees_and_other_peoples_patches_are_not_of_this_tree(
    idle: Site, ada: dict[str, str]
) -> None:
    lab = make_lab(idle.web.settings, idle.web.engine)
    patches = read_file("x.patch", idle.patch().encode()).patches
    foreign = lab.tools.git.apply_series(idle.commits[0], patches)[-1]
    for keys in ({"range": f"base..{foreign}"}, {"base": foreign}):
        answer = ask(idle, ada, **keys)
        assert answer.status_code == 400
        assert "is not in branch main of tree fake" in answer.json()["error"]


def test_more_patches_than_one_person_may_have_built_are_refused_before_they_are_applied(
    idle: Site, ada: dict[str, str]
) -> None:
    one = series(idle, "-1", idle.commits[1])
    many = "".join(
        one.replace("[PATCH]", f"[PATCH {number}/{limits.WEB_ROWS}]")
        for number in range(1, limits.WEB_ROWS + 1)
    )
    answer = ask(idle, ada, base="base", series=many)
    assert answer.status_code == 400, answer.text
    assert (
        f"that makes {limits.WEB_ROWS + 1} rows with the base; at most {limits.WEB_ROWS}"
        " are allowed" in answer.json()["error"]
    )


def test_only_who_may_submit_does(idle: Site) -> None:
    assert ask(idle, {}, range="base..tip").status_code == 403
    refused = ask(idle, idle.web.token("Rea", Role.READER), range="base..tip")
    assert refused.status_code == 403 and "needs the role submitter" in refused.json()["error"]
    assert count(idle) == 0


def test_a_quota_counts_all_boots_of_an_experiment(serve: Serve) -> None:
    site = serve(SWINGBOT_WEB_OPEN_REQUESTS="2", SWINGBOT_WEB_TESTBOX_MINUTES="200")
    ada = site.web.token("Ada", Role.SUBMITTER)
    refused = ask(site, ada, range="base..tip", boots=5)
    assert refused.status_code == 429 and "takes 225 testbox minutes" in refused.text
    assert ask(site, ada, range="base..tip", boots=5, dry_run=True).json()["refused"]
    assert ask(site, ada, range="base..tip", boots=1).status_code == 201
    assert site.json(ada, boots=1).status_code == 201, "comparisons share the quota"
    assert ask(site, ada, range="base..tip", boots=2).status_code == 429
    op = site.web.token("Op", Role.OPERATOR)
    assert ask(site, op, range="base..tip", boots=5).status_code == 201


@given(st.binary(max_size=300), st.booleans())
def test_whatever_is_sent_is_a_form_or_a_sentence(body: bytes, framed: bool) -> None:
    if framed:
        body = b'--b\r\nContent-Disposition: form-data; name="' + body + b"\r\n--b--\r\n"
    for read in (
        lambda: read_form("multipart/form-data; boundary=b", body, 100),
        lambda: read_json(body, 100),
    ):
        with suppress(HTTPException):
            read()


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of the first form to /experiment."""
    form = page[page.index('action="/experiment"') :]
    form = form[: form.index("</form>")]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))


def test_a_person_sees_plan_and_cost_before_the_form_queues_anything(
    serve: Serve,
) -> None:
    site = serve()
    client = site.web.client
    token = site.web.token("Ada", Role.SUBMITTER)["Authorization"].removeprefix("Bearer ")
    assert "Sign in" in client.get("/experiment").text
    client.post("/login", data={"key": token, "next": "/experiment"})
    page = client.get("/experiment").text
    assert "0 of your 5 requests" in page and "<option>fake" in page
    mbox = series(site, f"{site.commits[0]}..{site.commits[2]}").replace(
        "Subject: [PATCH 2/2] ", f"Subject: [PATCH 2/2] {HOSTILE} "
    )
    fields = {
        **hidden(page),
        "tree": "fake",
        "base": "base",
        "against": ["above", "first"],
        "job": ["vm-hackbench.yaml"],
        "boots": "2",
        "act": "foresee",
    }
    first = client.post("/experiment", data=fields, files={"series": ("x.mbox", mbox.encode())})
    assert first.status_code == 200 and count(site) == 0, first.text
    assert "3 kernels" in first.text and "against the row above and the first row" in first.text
    assert "6 boots" in first.text and "at most" in first.text and "Queue it" in first.text
    assert "<script" not in first.text and "&lt;script&gt;" in first.text
    queued = client.post(
        "/experiment", data={**hidden(first.text), "act": "ask"}, files={"none": b""}
    )
    assert queued.status_code == 303, queued.text
    where = queued.headers["location"]
    assert re.fullmatch(r"/experiment/e\d+", where) and where in client.get("/experiment").text
    shown = client.get(where).text
    assert "<script" not in shown and "&lt;script&gt;" in shown and "untrusted" in shown
    without = {name: value for name, value in hidden(first.text).items() if name != "token"}
    for data in ({**without, "act": "ask"}, {**without, "token": "x", "act": "ask"}):
        refused = client.post("/experiment", data=data, files={"none": b""})
        assert refused.status_code == 403
    unsigned = client.post("/experiment", json={"tree": "fake", "range": "base..tip"})
    assert unsigned.status_code == 403, "JSON is for bearers"
    wrong = client.post("/experiment", data={**fields, "base": "<b>nosuch"}, files={"none": b""})
    assert wrong.status_code == 400 and "Nothing was queued" in wrong.text
    assert "<b>nosuch" not in wrong.text and count(site) == 1
