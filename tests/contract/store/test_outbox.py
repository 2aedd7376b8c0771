"""What is promised of mails on their way, and of what people decide about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from swingbot.core.model.lookup import NotFound
from swingbot.core.model.statuses import ReportAct, ReportState
from swingbot.core.moderation.filing import Addressed, Filing
from swingbot.core.moderation.ruling import ClassRecord, ReportClass
from swingbot.core.moderation.send_check import SendRules
from swingbot.service.ports import RequestError, Transaction
from swingbot.service.ports.outbox import OutboxMail
from swingbot.service.ports.reports import NewReport
from swingbot.service.report.decide import decide, switch_mail
from swingbot.service.report.send import DeliveryFate, MailDelayed, MailRefused
from tests.contract.store.world import METRIC, TESTBOX, Store, a_tree, a_variant, commit
from tests.fakes.mail import MemoryServer, memory_sender

KIND = ReportClass(metric=METRIC, testbox=TESTBOX, gates=("code", "reproduced"))
LIST = "linux-mm@lists.example.org"
STATES: tuple[ReportState, ...] = (
    *("draft", "held", "queued", "sending", "sent", "unknown", "dropped"),
)
GOALS: dict[ReportAct, dict[ReportState, ReportState]] = {
    "hold": {"draft": "held", "queued": "held", "held": "held"},
    "release": {
        "draft": "queued",
        "held": "queued",
        "unknown": "queued",
        "queued": "queued",
        "sending": "sending",
        "sent": "sent",
    },
    "drop": dict.fromkeys(("draft", "held", "queued", "unknown", "dropped"), "dropped"),
}


def now(tx: Transaction) -> datetime:
    return datetime.fromtimestamp(tx.attempts.clock(), UTC)


@pytest.fixture
def report(store: Store) -> Callable[..., int]:
    """A stored first mail about a commit of its own."""
    with store.transaction() as tx:
        tree = a_tree(tx)
    made: list[int] = []

    def add(
        tx: Transaction,
        state: Any = "held",
        to: tuple[str, ...] = ("dev@example.org",),
        cc: tuple[str, ...] = (),
        kind: ReportClass = KIND,
    ) -> int:
        number = tx.reports.reserve()
        made.append(number)
        lists = tuple(address for address in cc if "lists" in address)
        found = Addressed(to=to, cc=cc, would_to=to, lists=lists)
        return tx.reports.add(
            NewReport(
                number=number,
                incident=tx.incidents.add(tree.id, a_variant(tx, tree, len(made)).id),
                kind="first",
                revision=1,
                message_id=f"<r{number}@example.org>",
                to=to,
                cc=cc,
                subject="worse",
                body="hello\n",
                message=b"mail",
                state=state,
                filing=Filing(state="held", reason="for the test", addressed=found, kind=kind),
            )
        )

    return add


def the_mail(store: Store, number: int) -> OutboxMail:
    with store.transaction() as tx:
        mail = tx.outbox.lock(number)
    assert mail is not None
    return mail


def change(store: Store, number: int, **changes: Any) -> None:
    with store.transaction() as tx:
        mail = tx.outbox.lock(number)
        assert mail is not None
        tx.outbox.update(replace(mail, **changes))


def send(
    store: Store, rules: SendRules | None = None, server: MemoryServer | None = None, later: int = 0
) -> list[DeliveryFate]:
    """Send what is due, `later` hours from now."""
    with store.transaction() as tx:
        at = now(tx) + timedelta(hours=later)
    return [s.fate for s in memory_sender(store.transaction, server, rules).send_due(at)]


def act(store: Store, verb: ReportAct, number: int, why: str = "") -> ReportState:
    with store.transaction() as tx:
        return decide(tx.outbox, number, verb, now(tx), who="ada", why=why)


@pytest.mark.parametrize("verb", ["hold", "release", "drop"])
def test_each_decision_moves_a_report_as_the_table_says_and_twice_is_once(
    store: Store, report: Callable[..., int], verb: ReportAct
) -> None:
    with store.transaction() as tx:
        number = report(tx)
    for start in STATES:
        change(store, number, state=start)
        goal = GOALS[verb].get(start)
        if goal is None:
            refusal = f"cannot {verb} r{number}, which is {start}: .+"
            with pytest.raises(RequestError, match=refusal):
                act(store, verb, number)
        else:
            assert act(store, verb, number) == act(store, verb, number) == goal
        assert the_mail(store, number).state == (goal or start)
    with pytest.raises(NotFound, match="report r99999 does not exist"):
        act(store, verb, 99999)


def test_a_hold_says_why_and_a_release_is_due_at_once(
    store: Store, report: Callable[..., int]
) -> None:
    with store.transaction() as tx:
        number, due = report(tx, "queued"), now(tx)
    change(store, number, next_try=due + timedelta(days=1), error="450 not now")
    assert send(store) == []
    act(store, "hold", number, "asking first")
    assert the_mail(store, number).reason == "asking first"
    act(store, "release", number)
    assert the_mail(store, number).error is None and send(store) == [DeliveryFate.SENT]


def test_mails_leave_in_the_order_of_their_next_try(
    store: Store, report: Callable[..., int]
) -> None:
    with store.transaction() as tx:
        first, second, future, held = (
            *(report(tx, "queued") for _ in range(3)),
            report(tx, "held"),
        )
        begin = now(tx)
    change(store, first, next_try=begin - timedelta(minutes=1))
    change(store, second, next_try=begin - timedelta(minutes=2))
    change(store, future, next_try=begin + timedelta(hours=1))
    with store.transaction() as tx:
        assert [mail.report for mail in tx.outbox.in_state("queued", begin)] == [second, first]
        assert [mail.report for mail in tx.outbox.in_state("queued")] == [second, first, future]
        assert [mail.report for mail in tx.outbox.in_state("held")] == [held]


def test_what_people_decided_is_the_record_of_its_class(
    store: Store, report: Callable[..., int]
) -> None:
    other = replace(KIND, gates=("reproduced",))
    with store.transaction() as tx:
        numbers, _ = [report(tx) for _ in range(4)], report(tx, kind=other)
    for number in numbers[:3]:
        act(store, "release", number)
    act(store, "drop", numbers[3], "noise")
    with store.transaction() as tx:
        assert tx.reports.class_record(KIND) == ClassRecord(released=3, dropped=1)
        assert tx.reports.class_record(other) == ClassRecord()


def test_the_last_decision_counts_and_each_report_once(
    store: Store, report: Callable[..., int]
) -> None:
    with store.transaction() as tx:
        number = report(tx)
    first: tuple[ReportAct, ...] = ("release", "hold", "release")
    for verb in first:
        act(store, verb, number)
    with store.transaction() as tx:
        assert tx.reports.class_record(KIND) == ClassRecord(released=1)
    act(store, "hold", number)
    act(store, "drop", number)
    with store.transaction() as tx:
        assert tx.reports.class_record(KIND) == ClassRecord(dropped=1)


def test_what_left_by_itself_or_had_met_a_server_counts_for_nothing(
    store: Store, report: Callable[..., int]
) -> None:
    with store.transaction() as tx:
        report(tx, "queued")
    send(store)
    with store.transaction() as tx:
        tried = report(tx)
    change(store, tried, tries=1)
    act(store, "drop", tried, "its recipient is gone")
    with store.transaction() as tx:
        assert tx.reports.class_record(KIND) == ClassRecord()


def test_while_mail_is_stopped_none_leaves(store: Store, report: Callable[..., int]) -> None:
    with store.transaction() as tx:
        number = report(tx, "queued")
        assert switch_mail(tx.outbox, True, who="ada", why="wrong facts")
        assert not switch_mail(tx.outbox, True, who="bob", why="again")
    assert send(store) == [] and the_mail(store, number).state == "queued"
    with store.transaction() as tx:
        assert switch_mail(tx.outbox, False, who="bob", why="")
    assert send(store, SendRules(stop=True)) == []
    assert send(store) == [DeliveryFate.SENT]


def test_a_list_that_had_its_mails_of_the_day_holds_the_next_one_and_a_day_later_it_leaves(
    store: Store, report: Callable[..., int]
) -> None:
    with store.transaction() as tx:
        numbers = [report(tx, "queued", cc=(LIST,)) for _ in range(3)]
        elsewhere = report(tx, "queued", cc=("other@lists.example.org",))
    rules = SendRules(per_list=2)
    send(store, rules)
    states = [the_mail(store, number).state for number in (*numbers, elsewhere)]
    assert states == ["sent", "sent", "held", "sent"]
    reason = the_mail(store, numbers[2]).reason or ""
    assert f"{LIST} had 2 of 2 mails in the last 24 hours" in reason
    for hours, state in ((23, "held"), (25, "sent")):
        act(store, "release", numbers[2])
        send(store, rules, later=hours)
        assert the_mail(store, numbers[2]).state == state


def test_a_recipient_who_had_the_mails_of_the_day_gets_the_next_one_a_day_later(
    store: Store, report: Callable[..., int]
) -> None:
    with store.transaction() as tx:
        numbers = [report(tx, "queued", to=("ada@example.org",)) for _ in range(3)]
        operators = report(tx, "queued", to=("Ada@example.org",))
    send(store, SendRules(per_recipient=2))
    states = [the_mail(store, number).state for number in (*numbers, operators)]
    assert states == ["sent", "sent", "held", "held"]
    reason = the_mail(store, numbers[2]).reason or ""
    assert "ada@example.org had 2 of 2 mails in the last 24 hours" in reason
    act(store, "release", numbers[2])
    send(store, SendRules(per_recipient=2), later=25)
    assert the_mail(store, numbers[2]).state == "sent"
    # the operator's own address has no limit
    act(store, "release", operators)
    send(store, SendRules(per_recipient=1, operator=("ada@example.org",)), later=25)
    assert the_mail(store, operators).state == "sent"


def test_who_opts_out_after_a_mail_was_written_does_not_get_it(
    store: Store, report: Callable[..., int]
) -> None:
    with store.transaction() as tx:
        number = report(tx, "queued", cc=("ada@example.net",))
    server = MemoryServer()
    assert send(store, SendRules(opt_outs=("@example.net",)), server) == []
    assert the_mail(store, number).state == "held" and server.taken == []


def test_a_mail_in_doubt_waits_for_its_copy_or_for_a_person(
    store: Store, report: Callable[..., int]
) -> None:
    with store.transaction() as tx:
        number = report(tx, "queued")
    change(store, number, state="sending")  # its sender died
    server = MemoryServer()
    assert send(store, server=server) == [DeliveryFate.UNKNOWN]
    assert "may or may not" in (the_mail(store, number).error or "")
    assert send(store, server=server, later=1) == []
    server.archived.add(f"<r{number}@example.org>")
    assert send(store, server=server, later=1) == [], "it was looked up a moment ago"
    assert send(store, server=server, later=2) == [DeliveryFate.SENT]
    assert the_mail(store, number).state == "sent" and server.taken == []


def test_an_interrupted_mail_is_sent_again_once_its_server_has_settled(
    store: Store, report: Callable[..., int]
) -> None:
    with store.transaction() as tx:
        number, later = report(tx, "queued"), now(tx) + timedelta(minutes=30)
    change(store, number, state="sending", next_try=later)
    server = MemoryServer(authoritative=True)
    assert send(store, server=server) == [DeliveryFate.UNSETTLED]
    assert the_mail(store, number).state == "sending" and server.taken == []
    assert send(store, server=server, later=1) == [DeliveryFate.SENT]
    assert the_mail(store, number).tries == 1 and len(server.taken) == 1


def test_a_server_that_is_away_delays_and_one_that_refuses_holds(
    store: Store, report: Callable[..., int]
) -> None:
    with store.transaction() as tx:
        numbers = [report(tx, "queued") for _ in range(2)]
    away = MailDelayed("cannot be reached", unreachable=True)
    assert send(store, server=MemoryServer(fault=away)) == [DeliveryFate.DELAYED]
    mails = [the_mail(store, number) for number in numbers]
    assert [(mail.state, mail.tries) for mail in mails] == [("queued", 1), ("queued", 0)]
    refusing = MemoryServer(fault=MailRefused("550 no such user"))
    assert send(store, server=refusing, later=1) == [DeliveryFate.HELD] * 2
    mail = the_mail(store, numbers[0])
    assert (mail.state, mail.error) == ("held", "550 no such user")


def test_a_mail_is_stored_with_its_commit_and_gets_other_recipients(
    store: Store, report: Callable[..., int]
) -> None:
    with store.transaction() as tx:
        number = report(tx)
        mail = tx.outbox.written(number)
        assert mail is not None
        assert (mail.state, mail.commit, mail.base) == ("held", commit(1), commit(0))
        assert (mail.subject, mail.body, mail.message) == ("worse", "hello\n", b"mail")
        tx.outbox.readdress(number, Addressed(to=("b@c.org",), cc=(LIST,), lists=(LIST,)), b"new")
    found = the_mail(store, number)
    assert (found.recipients, found.lists, found.message) == (("b@c.org", LIST), (LIST,), b"new")


def test_a_mail_that_a_person_readdressed_during_the_pass_goes_to_the_new_recipients(
    store: Store, report: Callable[..., int]
) -> None:
    with store.transaction() as tx:
        report(tx, "queued")
        second = report(tx, "queued", to=("wrong@example.org",))

    class SlowServer(MemoryServer):
        def send(
            self, message: bytes, recipients: Sequence[str], *, patient: bool = False
        ) -> dict[str, str]:
            if not self.taken:
                act(store, "hold", second)
                with store.transaction() as tx:
                    tx.outbox.readdress(second, Addressed(to=("right@example.org",)), b"new")
                act(store, "release", second)
            return super().send(message, recipients, patient=patient)

    server = SlowServer()
    assert send(store, server=server, later=1) == [DeliveryFate.SENT] * 2
    assert server.taken == [("dev@example.org",), ("right@example.org",)]
