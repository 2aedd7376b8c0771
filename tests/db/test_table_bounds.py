"""What guests, submitters and visitors make grow in the database is listed, each with its bound."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
import sqlalchemy as sa

from swingbot.core.access.roles import Role
from swingbot.core.access.tokens import digest
from swingbot.service import access
from swingbot.service.limits import SESSIONS
from swingbot_db.store import transactions
from tests.fakes.people import a_person

PAGE: Final = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
# Rows come from the operator, from watched trees, or from the loop's own decisions, a bounded
# number for each of them.
OWN: Final = frozenset(
    [
        "access_token",
        "alert",
        "bisection",
        "bisection_point",
        "bisection_steer",
        "bisection_step",
        "bisection_want",
        "branch_patch",
        "change",
        "incident",
        "incident_bisection",
        "incident_event",
        "incident_gate",
        "lease",
        "mail_switch",
        "moderation",
        "observation",
        "outbox",
        "patch",
        "report",
        "schema_revision",
        "sighting",
        "swing",
        "testbox",
        "testbox_now",
        "tree",
        "unseen",
        "worker_compiler",
    ]
)


def listed() -> set[str]:
    table = PAGE.partition("| tables | at most")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_each_table_is_listed_with_its_bound_or_grows_by_our_own_doing(engine: sa.Engine) -> None:
    named = "SELECT tablename FROM pg_tables WHERE schemaname = 'swingbot'"
    with engine.connect() as conn:
        tables = set(conn.execute(sa.text(named)).scalars())
    assert listed() | OWN == tables
    assert not listed() & OWN


def test_signing_in_again_and_again_leaves_a_bounded_number_of_rows(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "ACCESS_EVENTS", 5)
    person = a_person(engine, "Ada", Role.SUBMITTER, "swingbot_" + "t" * 43)
    begin, names = transactions(engine), [digest(f"session {n}") for n in range(SESSIONS + 3)]
    for name in names:
        with begin("sign in") as tx:
            access.sign_in(tx.access, person, name, 3600, "192.0.2.1")
        with begin("refuse") as tx:
            access.refuse_sign_in(tx.access, "192.0.2.2")
    with begin("look") as tx:
        alive = [tx.access.session_holder(name) is not None for name in names]
        for name in names:
            access.sign_out(tx.access, name)
    assert alive == [False] * 3 + [True] * SESSIONS
    counted = "SELECT act, count(*) FROM access_event WHERE act <> 'create' GROUP BY act"
    with engine.connect() as conn:
        counts = dict(tuple(row) for row in conn.execute(sa.text(counted)))
    assert counts == {"sign in": 5, "sign out": 5, "refused": 5}
