"""The page of a person: what they asked for, what came of it, and who finds it empty."""

from __future__ import annotations

import re

import sqlalchemy as sa

from swingbot.core.access.roles import Role
from tests import builders as make
from tests.asking import Serve

HTML = {"accept": "text/html"}


def test_a_patch_has_its_verdict_and_a_request_its_state(serve: Serve) -> None:
    site = serve()
    client, conn = site.web.client, site.web.conn
    ada, bob = (site.web.token(who, Role.SUBMITTER) for who in ("Ada Lovelace", "Bob"))
    asked = site.json(ada, head="base", patch=site.patch(), boots=2).json()["id"]
    page = client.get("/person/Ada Lovelace").text
    waits, sent = page[page.index('id="waits"') :].split('id="sent"')
    assert f"/comparison/{asked}" in waits and "0 of 2 builds" in waits
    assert "waiting" in sent.split('id="tables"')[0]
    assert "/person/Ada%20Lovelace" in client.get(f"/comparison/{asked}").text
    assert "/person/Ada%20Lovelace" in client.get("/comparisons").text

    testbox = make.Testbox(
        name="vm-icount",
        spec=conn.execute(sa.text("SELECT min(spec) FROM comparison_part")).scalar_one(),
        unit_job="job",
    )
    make.a_row(conn, int(asked[1:]), testbox, "some.rate", base=[100.0] * 3, head=[90.0] * 3)
    conn.execute(sa.text("UPDATE comparison SET status = 'done', ended_at = now()"))
    conn.commit()
    page = client.get("/person/Ada Lovelace").text
    patch = page[page.index('id="sent"') :].split('id="tables"')[0]
    assert "some.rate" in patch and "\u221210.0" in patch and f"/comparison/{asked}" in patch
    assert "Nothing: no request" in page

    assert client.get("/person/Bob").status_code == 404
    client.post("/login", data={"key": bob["Authorization"].removeprefix("Bearer ")})
    own = client.get("/person/Bob", headers=HTML)
    assert own.status_code == 200 and 'class="reader" href="/person/Bob"' in own.text
    assert "/docs/remote" in own.text and "/docs/remote" not in page


def test_its_tables_are_paged(serve: Serve) -> None:
    site = serve()
    client, conn = site.web.client, site.web.conn
    site.web.token("Ada", Role.SUBMITTER)
    tree = make.a_tree(conn)
    base, head = (make.a_kernel(conn, tree, at) for at in range(2))
    testbox = make.a_testbox(conn)
    made = [make.a_comparison(conn, tree, base, head, [testbox]) for _ in range(51)]
    conn.execute(
        sa.text(
            "INSERT INTO asked (comparison, who, token, testbox_seconds) SELECT c.id, 'Ada', t.id,"
            " 1 FROM comparison c, access_token t WHERE t.who = 'Ada' AND c.status = 'done'"
        )
    )
    conn.commit()
    seen: list[str] = []
    address = "/person/Ada"
    while address:
        page = client.get(address)
        assert page.status_code == 200
        seen += re.findall(r'href="/comparison/(c\d+)"', page.text.split('id="tables"')[1])
        [address] = re.findall(r'rel="next" href="([^"]+)"', page.text) or [""]
    assert seen == [f"c{one}" for one in reversed(made)]
    assert client.get("/person/Ada?after=none").status_code == 400
