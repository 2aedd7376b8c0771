"""Asking for a comparison over the web: by form and by script, within a quota, with nothing
fetched and nothing binary."""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from swingbot.app.cli import main
from swingbot.app.wiring import make_lab
from swingbot.core.access.quota import Quota, QuotaUsage, quota_of, refusal
from swingbot.core.access.roles import Person, Role
from swingbot.core.patchset.read import read_file
from swingbot.web.pages.form_body import read_form, read_json
from tests.asking import Serve, Site


def used(seconds: float) -> dict[str, float]:
    return {"open_requests": 1, "testbox_seconds": seconds}


def test_a_script_learns_the_cost_then_queues_and_the_same_again_is_the_same(serve: Serve) -> None:
    site = serve()
    ada = site.web.token("Ada", Role.SUBMITTER)
    asked = site.json(ada, boots=3, dry_run=True)
    assert asked.status_code == 200 and asked.json()["id"] is None and site.count() == 0
    cost = asked.json()["plan"]["cost"]
    assert (cost["boots"], cost["testbox_seconds"]) == (6, 6 * 900)
    assert [(part["testbox"], part["at_most"]) for part in cost["testboxes"]] == [
        ("vm-icount", True)
    ]
    first = site.json(ada, boots=3)
    assert (first.status_code, first.headers["location"]) == (
        201,
        f"/comparison/{first.json()['id']}",
    )
    assert first.json()["used"] == used(6 * 900)
    again = site.json(site.web.token("Bob", Role.SUBMITTER), boots=3)
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    assert again.json()["used"] == used(0.0), "what was queued already costs nothing more"
    assert (
        site.web.client.get(f"/comparison/{first.json()['id']}.json").json()["status"] == "waiting"
    )


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


def test_each_patch_of_a_mailbox_is_a_commit_of_its_own(serve: Serve) -> None:
    site = serve()
    answer = site.json(site.web.token("Ada", Role.SUBMITTER), head="base", patch=site.mailbox())
    assert answer.status_code == 201, answer.text
    assert answer.json()["patches"] == ["1", "2"]
    assert answer.json()["left_out"] == [
        {"subject": "[PATCH 0/2] *** SUBJECT HERE ***", "reason": "cover letter"}
    ]
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
        ({"job": "../../etc/passwd"}, "job file '../../etc/passwd' does not exist; use one of"),
        ({"job": ["vm-netperf.yaml", "/etc/passwd"]}, "does not exist; use one of"),
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
        ({"boots": True}, "boots and looks numbers"),
        ({"set": {"x": 1}}, "Send an object with only these keys"),
        ({"tree": {"a": 1}}, "must be strings"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(
    idle: Site, ada: dict[str, str], keys: dict[str, Any], sentence: str
) -> None:
    answer = idle.json(ada, **keys)
    assert answer.status_code == 400 and sentence in answer.json()["error"], answer.text
    assert idle.count() == 0


def test_commits_of_other_trees_and_other_peoples_patches_are_not_of_this_tree(
    idle: Site, ada: dict[str, str]
) -> None:
    lab = make_lab(idle.web.settings, idle.web.engine)
    patches = read_file("x", idle.patch().encode()).patches
    foreign = lab.tools.git.apply_series(idle.commits[0], patches)[-1]
    answer = idle.json(ada, head=foreign)
    assert (
        answer.status_code == 400 and "is not in branch main of tree fake" in answer.json()["error"]
    )


def test_only_who_may_submit_does(idle: Site) -> None:
    assert idle.json({}).status_code == 403
    refused = idle.json(idle.web.token("Rea", Role.READER))
    assert (
        refused.status_code == 403
        and "needs the role submitter, and Rea's token has the role reader"
        in refused.json()["error"]
    )
    assert idle.count() == 0


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"[" * 50_000, b"\xff", b'{"tree": NaN}'])
def test_what_is_no_json_object_is_refused(idle: Site, ada: dict[str, str], body: bytes) -> None:
    answer = idle.web.client.post(
        "/compare", content=body, headers=ada | {"content-type": "application/json"}
    )
    assert answer.status_code == 400 and answer.json()["error"]


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
    assert idle.count() == 0


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
    site = serve(SWINGBOT_WEB_OPEN_REQUESTS="2", SWINGBOT_WEB_TESTBOX_MINUTES="200")
    laptop, script = site.web.token("Ada", Role.SUBMITTER), site.web.token("Ada", Role.MODERATOR)
    refused = site.json(laptop, boots=7)
    assert (
        refused.status_code == 429
        and "takes 210 testbox minutes, and 200 of your 200" in refused.json()["error"]
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


def form_of(page: str) -> dict[str, str]:
    """The hidden fields of the first form to /compare."""
    form = page[page.index('action="/compare"') :]
    return dict(
        re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form[: form.index("</form>")])
    )


def test_a_person_sees_the_cost_before_the_form_queues_anything(serve: Serve) -> None:
    site = serve()
    client, token = (
        site.web.client,
        site.web.token("Ada", Role.SUBMITTER)["Authorization"].removeprefix("Bearer "),
    )
    assert "Sign in" in client.get("/compare").text
    assert (
        client.post("/login", data={"key": token, "next": "/compare"}).headers["location"]
        == "/compare"
    )
    page = client.get("/compare").text
    assert "0 of your 5 requests" in page and "vm-hackbench.yaml" in page and "<option>fake" in page
    fields = {
        **form_of(page),
        "tree": "fake",
        "base": "base",
        "head": "base",
        "boots": "2",
        "act": "foresee",
    }
    first = client.post(
        "/compare", data=fields, files={"patch": ("x.mbox", site.mailbox().encode())}
    )
    assert "<code>base+2 patches</code>" in first.text
    assert "*** SUBJECT HERE *** (cover letter)" in first.text
    assert first.status_code == 200 and site.count() == 0
    assert "4 boots" in first.text and "at most" in first.text and "Queue it" in first.text
    queued = client.post(
        "/compare", data={**form_of(first.text), "act": "ask"}, files={"none": b""}
    )
    assert queued.status_code == 303 and re.fullmatch(
        r"/comparison/c\d+", queued.headers["location"]
    )
    assert site.head_of(queued.headers["location"].rpartition("/")[2]).origin == "patch"
    assert queued.headers["location"] in client.get("/compare").text
    without = {name: value for name, value in form_of(first.text).items() if name != "token"}
    assert (
        client.post("/compare", data={**without, "act": "ask"}, files={"none": b""}).status_code
        == 403
    )
    assert (
        client.post("/compare", json={"tree": "fake", "base": "base", "head": "tip"}).status_code
        == 403
    ), "JSON is for bearers"
    wrong = client.post("/compare", data={**fields, "head": "<b>nosuch"}, files={"none": b""})
    assert (
        wrong.status_code == 400
        and "Nothing was queued" in wrong.text
        and "<b>nosuch" not in wrong.text
    )
    assert site.count() == 1


def test_a_quota_is_counted_in_requests_and_in_seconds() -> None:
    ada, op = (Person(who="x", role=role, token=1) for role in (Role.SUBMITTER, Role.OPERATOR))
    quota = Quota(open_requests=2, testbox_seconds=100.0)
    assert quota_of(op, quota) is None and quota_of(ada, quota) == quota
    assert refusal(QuotaUsage(open_requests=1, testbox_seconds=60.0), 40.0, quota) is None
    assert refusal(QuotaUsage(open_requests=9, testbox_seconds=999.0), 1e9, None) is None
    assert "wait until one is over" in str(refusal(QuotaUsage(open_requests=2), 1.0, quota))
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
    assert "there are 51 patches; at most 50 are accepted over the web" in answer.json()["error"]
