"""Decisions about incidents from elsewhere are those of the service's host: the same words, the
same state; with the role of a moderator only, and with the person's name."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa

from swingbot.core.access.roles import Role
from swingbot.core.limits import COMMIT_NAME_CHARACTERS
from tests.database import fresh
from tests.db.test_remote import elsewhere, here, run
from tests.postgres import Server
from tests.served import Served, served

DECIDED: Final = (
    "incident list --status open",
    "incident show i1",
    "incident expected i1 --reason accepted",
    "incident expected i1",
    "incident close i1",
    "incident reopen i1 --json",
    "incident fixed-by i1 {commit}",
    "incident invalid i1 --reason wrong",
    "incident reopen i1",
    "incident merge i2 --into i1",
    "incident list --json",
    "incident duplicate i2 i1",
    "incident split i2",
    "incident split i1 --bisection b1",
    "incident show i2 --json",
    "incident close i99",
    "incident close c1",
    "incident show c1",
    "incident show i99",
    "incident merge i1 --into i1",
    "incident merge c1 --into i1",
    "incident split i1 --bisection c1",
    "incident fixed-by i1 nothing",
    "incident invalid i1 --reason {long}",
    "incident fixed-by i1 {long}",
    "incident merge {many} --into i1",
    "incident split i1 --bisection {long}",
    "incident list --status colourful",
)
# Who decided and when.
OWN: Final = re.compile(
    r'\d{4}-\d\d-\d\dT[\d:]+Z|(?<=by )\S+@\S+|(?<=by )Ada \(pages\)|(?<="who": )"[^"]+"'
    r'|(?<="owner": )"[^"]+"'
)


@pytest.fixture
def sites(pg: Server, template: str, tmp_path: Path) -> Iterator[list[Served]]:
    """Two services with the same two incidents: for the host, and for elsewhere."""
    with ExitStack() as stack:
        sites = []
        for name in ("host", "away"):
            url = stack.enter_context(fresh(pg, template))
            web = stack.enter_context(served(url, tmp_path / name))
            newest = sa.text("SELECT max(id) FROM variant WHERE tree = :t")
            variant = web.conn.execute(newest, {"t": web.lab.tree}).scalar_one()
            for sql in (
                "INSERT INTO incident (tree, culprit) VALUES (:t, :v)",
                "INSERT INTO sighting (incident, bisection, culprit) VALUES (2, :b, :v)",
            ):
                of = {"t": web.lab.tree, "v": variant, "b": web.lab.running_bisection}
                web.conn.execute(sa.text(sql), of)
            web.conn.commit()
            sites.append(web)
        yield sites


def test_a_decision_from_elsewhere_is_that_of_the_host(sites: list[Served], tmp_path: Path) -> None:
    host, away = sites
    token = away.token("Ada", Role.MODERATOR)["Authorization"].split()[1]
    named = {"commit": "4f" * 20, "long": "x" * 501, "many": "i2 " * 201}
    for typed in DECIDED:
        words = typed.format(**named)
        on_host = run(words, here(host))
        from_elsewhere = run(words, elsewhere(away, tmp_path, SWINGBOT_TOKEN=token))
        assert from_elsewhere.exit_code == on_host.exit_code, (words, from_elsewhere.output)
        assert OWN.sub("", from_elsewhere.output) == OWN.sub("", on_host.output), words
    shown = run("incident show i1", elsewhere(away, tmp_path, SWINGBOT_TOKEN=token)).output
    assert "expected by Ada (pages): accepted" in shown


def refused_to_others(away: Served, anonymous: dict[str, str], *typed: str) -> None:
    """A decision of somebody without the role of a moderator is refused in a sentence."""
    submitter = away.token("Bob", Role.SUBMITTER)["Authorization"].split()[1]
    refusals = (
        (anonymous, "asks for a token here", 1),
        (anonymous | {"SWINGBOT_TOKEN": submitter}, "needs the role moderator", 2),
        (anonymous | {"SWINGBOT_TOKEN": "swingbot_wrong"}, "This token is invalid", 1),
    )
    for words, (env, sentence, status) in itertools.product(typed, refusals):
        said = run(words, env)
        assert said.exit_code == status and sentence in said.output, said.output


def test_only_a_moderator_decides(sites: list[Served], tmp_path: Path) -> None:
    _, away = sites
    anonymous = elsewhere(away, tmp_path)
    refused_to_others(away, anonymous, "incident close i1")
    assert "i1 is open" in run("incident show i1", anonymous).output
    moderator = away.token("Ada", Role.MODERATOR)
    bodies: list[Any] = [{}, {"act": "burn"}, {"act": "close", "more": 1}, {"act": "merge"}, [], 5]
    long = "9" * 50_000
    bodies += [
        {"act": "fixed-by", "commit": "f" * (COMMIT_NAME_CHARACTERS + 1)},
        {"act": "fixed-by", "commit": long},
        {"act": "merge", "others": ["i2"] * 201},
        {"act": "merge", "others": [f"i{long}"]},
        {"act": "split", "bisection": f"b{long}"},
        {"act": "close", "reason": long},
    ]
    for body in bodies:
        answer = away.client.post("/incident/i1/decide", json=body, headers=moderator)
        assert answer.status_code == 400 and 0 < len(answer.json()["detail"]) < 400, body
