"""What guests, submitters and visitors make grow in the database is listed, each with its bound."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from unittest import mock

import pytest
import sqlalchemy as sa

from swingbot.core.access import quota
from swingbot.core.access.roles import Role
from swingbot.core.access.tokens import digest
from swingbot.core.access.uploads import UploadLimits
from swingbot.core.results import metric_names
from swingbot.core.table import strongest
from swingbot.core.table.layout import Axis
from swingbot.service import access
from swingbot.service.limits import KEPT_ANSWERS, SESSIONS, WEB_ROWS
from swingbot.service.order.dispatch import MAX_DISPATCHES
from swingbot.service.order.worker_requests import WorkerRequests
from swingbot.service.result.reparse import ReparseRequest, reparse
from swingbot_db.store import testboxes, transactions
from tests.asking import a_site
from tests.fakelinux import FakeCommit
from tests.fakes.brain import Brain, make_brain
from tests.fakes.guest import Guest, a_guest, random_names
from tests.fakes.people import a_person
from tests.programs import PROGRAMS
from tests.table_requests import comparing, request_table

PAGE: Final = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
# Rows come from the operator, from people whose commits they trust, from watched trees, or from the
# loop's own decisions, a bounded number for each of them.
OWN: Final = frozenset(
    [
        "access_token",
        "alert",
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
        "sent_commit",
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


NAMES, COUNTERS, EVENTS, FILES, REQUESTS, LOGGED = 60, 20, 20, 3, 3, 5
DECLARED: Final = len(PROGRAMS["page-fault"].metrics)
# Of each table: how many rows there are of one of those whose number is its own, and the bound.
MOST: Final[Mapping[str, tuple[str, int]]] = {
    "measured_metric": ("GROUP BY testbox, unit_job, trusted", NAMES + DECLARED),
    "run": ("GROUP BY boot", 2),
    "result_root": ("JOIN run r ON r.result_root = t.id GROUP BY r.boot", 2),
    "reparse": ("GROUP BY run", 1),
    "sample": ("GROUP BY run", NAMES + DECLARED),
    "boot_mean": ("GROUP BY boot", NAMES + DECLARED),
    "noise_record": ("GROUP BY testbox, unit_job", DECLARED),
    "attempt": ("GROUP BY order_id", 3),
    "attempt_file": ("GROUP BY attempt", FILES),
    "dispatch": ("GROUP BY attempt", MAX_DISPATCHES),
    "testbox_event": ("GROUP BY testbox", EVENTS + 5),
    "boot": ("GROUP BY attempt", 1),
    "kernel_build": ("GROUP BY attempt", 1),
    "comparison_row": ("GROUP BY comparison, testbox, unit_job, arm", COUNTERS + DECLARED),
    "tree_history": ("GROUP BY tree, testbox, unit_job", DECLARED),
    "comparison_arm_spec": ("GROUP BY comparison, arm", 1),
    "asked": ("GROUP BY who", REQUESTS),
    "web_session": ("GROUP BY token", SESSIONS),
    "access_event": ("GROUP BY act, token", LOGGED),
    "kept_answer": ("GROUP BY token", KEPT_ANSWERS),
}
# Rows of requests, none of which a refused one leaves.
REQUESTED: Final = (
    *(
        "asked",
        "result_mail",
        "comparison",
        "comparison_arm",
        "comparison_part",
        "variant",
        "build_forecast",
    ),
    *("boot_spec", "orders", "want", "bisection", "bisection_point"),
)


def most_of(engine: sa.Engine, table: str) -> int:
    of = f"SELECT count(*) AS n FROM {table} t {MOST[table][0]}"
    with engine.connect() as conn:
        return int(conn.execute(sa.text(f"SELECT coalesce(max(n), 0) FROM ({of}) x")).scalar_one())


@pytest.fixture
def guest(brain: Brain, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guest]:
    monkeypatch.setattr(metric_names, "METRIC_NAMES", NAMES)
    monkeypatch.setattr(strongest, "JUDGED_COUNTERS", COUNTERS)
    with a_guest(brain) as guest:
        yield guest


def made_up_names(guest: Guest) -> None:
    """More names than the budget has, and a run that was not ordered."""
    names = random_names(8)

    def files(directory: str) -> dict[str, bytes]:
        found = names(directory)
        job = directory.rpartition("/")[0]
        return found | {f"{job}/{n}/stdout": b"faults_per_second=1\n" for n in range(2, 9)}

    guest.add = files
    for _ in range(2):
        guest.compare(2)


def many_counters(guest: Guest) -> None:
    """The same counters in each boot, more than are judged, on a watched branch."""
    text = "".join(f"{n},,event-{n},1000,100.00,,\n" for n in range(COUNTERS + 20))
    guest.add = lambda directory: {f"{directory}/perf-stat": text.encode()}
    brain = guest.brain
    for speed in (99, 98, 97):
        brain.commit(FakeCommit(speed=speed))
        brain.poll()
        brain.run()


def read_again(guest: Guest) -> None:
    """Results that are read again: a row for a run that changed, none for the same again."""
    made_up_names(guest)
    with mock.patch.object(metric_names, "METRIC_NAMES", 10 * NAMES):
        assert reparse(guest.brain.lab, ReparseRequest(again=True)).changed > 0
        assert reparse(guest.brain.lab, ReparseRequest(again=True)).changed == 0


def failing_lab(guest: Guest) -> None:
    """A lab that loses all that it is given."""
    guest.brain.fake.infra = 1000
    guest.brain.commit(FakeCommit(speed=99))
    guest.brain.poll()
    guest.brain.rounds(40)


def lost_dispatches(guest: Guest) -> None:
    """Dispatches that end without an outcome."""
    brain = guest.brain
    brain.commit(FakeCommit(speed=99))
    brain.poll()
    brain.fake.work = lambda: 0  # type: ignore[method-assign]
    for _ in range(3 * MAX_DISPATCHES):
        brain.rounds(1)
        with brain.lab.transaction("lose") as tx:
            for one in tx.dispatches.open():
                tx.dispatches.close(one.id, "retry")


def repeated_outcomes(guest: Guest) -> None:
    """Outcomes that are delivered three times, and files beyond what an attempt may bring."""
    brain, asked = guest.brain, WorkerRequests(guest.brain.lab.transaction)
    carry_out, cap = brain.fake.carry_out, UploadLimits(files=FILES)

    def again(order: object) -> None:
        for n in (*range(FILES), *range(2 * FILES)):  # a file that comes again counts once
            asked.admit(order.attempt, digest(f"file {n}"), 1, cap)  # type: ignore[attr-defined]
        for _ in range(3):
            carry_out(order)  # type: ignore[arg-type]

    brain.fake.carry_out = again  # type: ignore[method-assign]
    guest.compare(2)


def restless_testbox(guest: Guest) -> None:
    """A testbox whose events have numbers at which none is deleted, beside one with others."""
    engine = guest.brain.engine
    with engine.begin() as conn:
        conn.exec_driver_sql(
            "INSERT INTO testbox (name, tbox_group, facts) VALUES ('b', 'b', '{}')"
        )
        note = (
            "INSERT INTO testbox_event (testbox, was, state, why) VALUES ('b', 'idle', 'lost', 'x')"
        )
        for _ in range(5 * EVENTS):
            conn.exec_driver_sql(note)
    guest.compare(2)


def varied_settings(guest: Guest) -> None:
    values = tuple((f"n{n}", f"transparent_hugepage={n}") for n in ("never", "always"))
    brain = guest.brain
    base = brain.base
    (head,) = brain.commit(FakeCommit(speed=99))
    asked = comparing(base, head, axes=[Axis(name="cmdline", values=values)], boots=1)
    request_table(brain.lab, asked)
    brain.run()


DRIVERS: Final[Mapping[str, tuple[Callable[[Guest], None], ...]]] = {
    "measured_metric": (made_up_names,),
    "run": (made_up_names,),
    "result_root": (made_up_names,),
    "sample": (made_up_names,),
    "boot_mean": (made_up_names,),
    "noise_record": (made_up_names,),
    "reparse": (read_again,),
    "comparison_row": (many_counters,),
    "tree_history": (many_counters,),
    "attempt": (failing_lab,),
    "dispatch": (lost_dispatches,),
    "attempt_file": (repeated_outcomes,),
    "boot": (repeated_outcomes,),
    "kernel_build": (repeated_outcomes,),
    "testbox_event": (restless_testbox,),
    "comparison_arm_spec": (varied_settings,),
}
# These are driven to a bound that a monitor or benchmark reaches only as a whole.
BELOW: Final = {"measured_metric": 10, "sample": 10, "boot_mean": 30, "tree_history": DECLARED - 1}
BELOW_AT_MOST: Final = {"noise_record": DECLARED - 1, "result_root": 1, "comparison_row": DECLARED}


@pytest.mark.parametrize("table", sorted(DRIVERS))
def test_what_others_send_fills_a_table_to_its_bound_and_no_further(
    guest: Guest, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(testboxes, "KEPT_EVENTS", EVENTS)
    monkeypatch.setattr(testboxes, "TRIMMED_EVERY", 5)
    monkeypatch.setattr("swingbot.service.order.dispatch.patience", lambda made: 0.0)
    for drive in DRIVERS[table]:
        drive(guest)
    bound = MOST[table][1]
    slack = (BELOW | BELOW_AT_MOST).get(table, 5 if table == "testbox_event" else 0)
    assert bound - slack <= most_of(guest.brain.engine, table) <= bound


def test_requests_of_a_person_leave_rows_up_to_a_quota_and_refused_ones_none(
    db_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "DAILY_REQUESTS", REQUESTS)
    monkeypatch.setattr(access, "ACCESS_EVENTS", LOGGED)
    with ExitStack() as stack:
        site = a_site(stack, db_url, tmp_path, SWINGBOT_WEB_OPEN_REQUESTS="99")
        engine, ada = site.web.engine, site.web.token("Ada", Role.SUBMITTER)
        with engine.begin() as conn:
            conn.execute(sa.text("UPDATE access_token SET mail = 'ada@example.org'"))

        def counts() -> dict[str, int]:
            with engine.connect() as conn:
                return {
                    table: conn.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one()
                    for table in REQUESTED
                }

        ask: dict[str, Any] = {"boots": 1, "mail": True}
        asked = [site.json(ada, **ask, min_effect=n).status_code for n in range(1, REQUESTS)]
        search: dict[str, Any] = {"tree": "fake", "range": "base..tip", "mail": True}
        search["metric"] = "hackbench.throughput"
        asked += [site.web.client.post("/bisect", json=search, headers=ada).status_code]
        stack.enter_context(make_brain(site.web.settings, engine, site.linux)).run()
        full = counts()
        asked += [site.json(ada, **ask, min_effect=n).status_code for n in (50, 60)]
        many = {"tree": "fake", "base": "base", "rows": ["tip"] * (WEB_ROWS + 1)}
        asked += [site.web.client.post("/experiment", json=many, headers=ada).status_code]
        search |= {"set": {"runs": "3"}}
        asked += [site.web.client.post("/bisect", json=search, headers=ada).status_code]
        assert asked == [201] * REQUESTS + [429, 429, 400, 429]
        assert counts() == full and all(full.values())
        assert most_of(engine, "asked") == MOST["asked"][1]
        operator = site.web.token("Op", Role.OPERATOR)
        for _ in range(LOGGED + 2):  # what is queued already is logged, the latest times
            assert site.json(operator, boots=1, min_effect=1).status_code == 200
        assert most_of(engine, "access_event") == MOST["access_event"][1]


def test_each_listed_table_is_driven_to_its_bound() -> None:
    driven = {"web_session", "access_event", "bisection_steer", "kept_answer"}
    assert listed() == DRIVERS.keys() | set(REQUESTED) | driven


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
