"""What is promised of the mails to requesters of tables and bisections."""

from __future__ import annotations

from datetime import timedelta

import pytest

from swingbot.core.access.roles import Role
from swingbot.core.access.tokens import digest
from swingbot.service.access import create_token, revoke_token
from swingbot.service.ports import Transaction
from swingbot.service.ports.access import NewToken
from swingbot.service.ports.reports import NewReport
from tests.contract.store.world import Store, a_bisection, a_comparison, a_lab

DAY = 86400.0


def a_token(tx: Transaction, who: str, life: timedelta | None = None) -> int:
    address = f"{who.lower()}@example.org"
    new = NewToken(
        who=who, role=Role.SUBMITTER, digest=digest(who), life=life, mail=address, by="root@host"
    )
    return create_token(tx.access, new)


def wanted(tx: Transaction) -> list[tuple[str, str | None]]:
    return [(one.id, one.address) for one in tx.reports.wanted_results()]


def write_all(tx: Transaction) -> None:
    for one in tx.reports.wanted_results():
        number = tx.reports.reserve()
        tx.reports.add(
            NewReport(
                number=number,
                kind="result",
                revision=1,
                message_id=f"<result{one.number}@example.org>",
                to=[one.address or "operator@example.org"],
                subject="over",
                body="over\n",
                message=b"mail",
                state="queued",
                result=one.number,
            )
        )


def test_who_wants_a_mail_gets_one_when_it_is_over(store: Store) -> None:
    with store.transaction() as tx:
        lab, ada = a_lab(tx), a_token(tx, "Ada")
        table, search = a_comparison(tx, lab), a_bisection(tx, lab, request_key="asked")
        for _ in range(2):  # wanted twice is wanted once
            tx.reports.want_result(f"c{table}", ada)
            tx.reports.want_result(f"b{search}", None)
        assert wanted(tx) == []
        tx.comparisons.set_status(table, "done")
        assert wanted(tx) == [(f"c{table}", "ada@example.org")]
        tx.bisections.conclude(search, "cancelled", {}, None)
        assert wanted(tx) == [(f"c{table}", "ada@example.org"), (f"b{search}", None)]
        write_all(tx)
        assert wanted(tx) == []
        tx.reports.want_result(f"c{table}", ada)
        assert wanted(tx) == [], "it has been mailed"
        assert len(tx.outbox.in_state("queued")) == 2


@pytest.mark.parametrize("end", ["expired", "revoked"])
def test_a_token_that_is_over_gets_no_mail(store: Store, end: str) -> None:
    with store.transaction() as tx:
        lab = a_lab(tx)
        ada, bob = a_token(tx, "Ada", timedelta(days=1)), a_token(tx, "Bob")
        table = a_comparison(tx, lab)
        for token in (ada, bob, None):
            tx.reports.want_result(f"c{table}", token)
        tx.comparisons.set_status(table, "failed")
        if end == "revoked":
            revoke_token(tx.access, ada, by="root@host")
            revoke_token(tx.access, 1, by="root@host")  # the operator needs no token
    if end == "expired":
        store.pass_time(DAY + 1)
    with store.transaction() as tx:
        assert wanted(tx) == [(f"c{table}", "bob@example.org"), (f"c{table}", None)]
