"""States of a testbox, quarantine, changed hardware, and alerts to the operator."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.testclient import TestClient

from swingbot.adapters.reachability import Reachability
from swingbot.app import check_testbox
from swingbot.core.model.dispatch import token
from swingbot.core.model.testbox_state import (
    Assigned,
    AttemptCancelled,
    AttemptEnded,
    AttemptFailed,
    ControllerLost,
    Event,
    PhaseReported,
    Quarantined,
    Released,
    TestboxPhase,
    TestboxStatus,
    transition,
)
from swingbot.core.plan.alerts import AlertSubject, InvalidRuns, QueueState, changes
from swingbot.core.plan.testbox_rules import (
    TestboxRules,
    failures_allowed,
    hardware,
    hardware_changes,
    interchangeable,
    quarantine_reason,
    screening_boots,
    stand_in,
)
from swingbot.core.report.mails.alert import Alert, alert_mail
from swingbot.service.order.worker_requests import WorkerRequests
from swingbot.web.workers import exchange
from swingbot_jobs.contract.orders import CONTROLLER_HEADER, PHASES, ContractError, check_phase
from swingbot_jobs.testbox.definition import CommandDriver, QemuDriver, Testbox
from swingbot_worker import InfraError
from swingbot_worker.executor import __main__ as executor
from swingbot_worker.executor.attempt_directory import AttemptDirectory
from swingbot_worker.executor.client import ExchangeClient
from swingbot_worker.executor.held_lease import Grant, HeldLease
from swingbot_worker.order import BootOrder, BuildOrder, Spec
from tests.contract.store.world import TESTBOX, a_boot_order, a_lab
from tests.fakes.store import MemoryStore
from tests.golden.remake import ALERTS, alert_text, text_of

RACK = Testbox(
    name="rack7",
    tbox_group="rack",
    driver=CommandDriver(argv=("boot",)),
    description="",
    model="EPYC 7443P",
    nr_cpu=48,
    memory_mb=65536,
)
VM = replace(RACK, name="vm", driver=QemuDriver(accel="icount"), repeatable=True)
BEGAN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
NO_QUEUE = QueueState(orders=0, oldest=None, still_seconds=0.0)


def played(*events: Event, barred: bool = False) -> TestboxStatus:
    testbox = TestboxStatus(testbox="rack7")
    for event in events:
        testbox = transition(testbox, event, barred=barred)
    return testbox


def one_boot(end: Event) -> tuple[Event, ...]:
    return (
        Assigned(3),
        PhaseReported("booting", "kexec"),
        PhaseReported("running", "job began"),
        PhaseReported("returning", "reboot"),
        end,
    )


def test_a_boot_takes_a_testbox_out_and_home_again() -> None:
    states = [played(*one_boot(AttemptEnded(up=True, why="up"))[:n]).state.value for n in range(6)]
    assert states == ["idle", "leased", "booting", "running", "returning", "idle"]


@pytest.mark.parametrize(
    "end",
    [
        AttemptEnded(up=False, why="panicked"),
        AttemptEnded(up=False, why="hung"),
        AttemptFailed("no network"),
        AttemptCancelled("cancelled"),
    ],
)
def test_whatever_a_boot_ends_with_leads_home(end: Event) -> None:
    testbox = played(*one_boot(end))
    assert (testbox.state, testbox.attempt) == (TestboxPhase.IDLE, None)


def test_a_kernel_that_does_not_come_up_is_no_failure_of_its_testbox() -> None:
    testbox = played(
        *[event for _ in range(9) for event in one_boot(AttemptEnded(up=False, why="panicked"))]
    )
    assert (testbox.failures, testbox.down) == (0, 9)


def test_a_testbox_whose_driver_lost_it_stays_lost_whatever_the_outcome_says() -> None:
    for end in (AttemptFailed("dead after the power cycle"), AttemptEnded(up=False, why="hung")):
        testbox = played(Assigned(3), PhaseReported("lost", "dead after the power cycle"), end)
        assert (testbox.state, testbox.attempt, testbox.failures) == (TestboxPhase.LOST, 3, 1)


def test_a_lost_testbox_is_found_by_its_next_boot_and_forgets_its_failures() -> None:
    lost = played(Assigned(3), ControllerLost("no word"))
    assert lost.state is TestboxPhase.LOST
    found = lost
    for event in one_boot(AttemptEnded(up=True, why="up")):
        found = transition(found, event)
    assert (found.state, found.failures) == (TestboxPhase.IDLE, 0)


def test_a_quarantined_testbox_that_boots_its_anchor_goes_back_to_quarantine() -> None:
    assert (
        played(Quarantined("moved"), *one_boot(AttemptEnded(up=True, why="up")), barred=True).state
        is TestboxPhase.QUARANTINED
    )


def test_a_testbox_at_work_is_quarantined_when_it_is_home() -> None:
    assert played(Assigned(3), Quarantined("by hand")).state is TestboxPhase.LEASED


def test_failures_in_a_row_quarantine_and_a_success_between_them_does_not() -> None:
    failed, good = AttemptFailed("no route to the testbox"), AttemptEnded(up=True, why="up")
    assert quarantine_reason(played(failed, failed, good, failed, failed), 3) is None
    assert quarantine_reason(played(failed, failed, failed), 3) == (
        "failed: 3 attempts in a row were lost to the testbox or its controller; the "
        "last: no route to the testbox"
    )
    assert quarantine_reason(played(*[failed] * 50), 0) is None


_EVENTS = st.one_of(
    st.builds(Assigned, st.integers(1, 9)),
    st.builds(PhaseReported, st.sampled_from(PHASES), st.text(max_size=5)),
    st.builds(AttemptEnded, st.booleans(), st.text(max_size=5)),
    st.builds(AttemptFailed, st.text()),
    st.builds(ControllerLost, st.text()),
    st.builds(AttemptCancelled, st.text()),
    st.builds(Quarantined, st.text()),
    st.builds(Released, st.text()),
)


@given(st.lists(_EVENTS, max_size=12), st.booleans())
def test_no_order_of_events_leaves_a_testbox_at_work_once_its_attempt_is_over(
    events: list[Event], barred: bool
) -> None:
    testbox = played(*events, AttemptCancelled("over"), barred=barred)
    assert testbox.state in (TestboxPhase.IDLE, TestboxPhase.QUARANTINED, TestboxPhase.LOST)
    assert (testbox.attempt is None) == (
        testbox.state is not TestboxPhase.LOST
    ) or testbox.state is TestboxPhase.LOST
    assert testbox.why.isprintable() and len(testbox.why) <= 500


def test_a_program_on_its_host_is_neither_screened_nor_quarantined_for_failures() -> None:
    policy = TestboxRules(failures=3, screening_boots=10)
    assert (screening_boots(VM, policy), failures_allowed(VM, policy)) == (0, 0)
    assert (screening_boots(RACK, policy), failures_allowed(RACK, policy)) == (10, 3)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ({"microcode": "0x2"}, "microcode 0x1 -> 0x2"),
        ({"nr_cpu": 47}, "nr_cpu 48 -> 47"),
        ({"memory_kb": 33_000_000}, "memory_kb 65000000 -> 33000000"),
        ({"memory_kb": 64_200_000}, None),
        ({"cpu_model": "AMD EPYC 7443P"}, None),
        ({}, None),
    ],
)
def test_hardware_is_another_one_only_where_both_sides_know_it(
    now: Mapping[str, Any], expected: str | None
) -> None:
    before = hardware(
        RACK, {"microcode": "0x1", "nr_cpu": 48, "memory_kb": 65_000_000, "uname": "6.1"}
    )
    assert "uname" not in before
    assert hardware_changes(before, hardware(RACK, now)) == expected


def test_a_stand_in_is_of_the_group_alike_and_fit() -> None:
    testboxes = {
        testbox.name: testbox
        for testbox in (
            RACK,
            replace(RACK, name="rack8"),
            replace(RACK, name="rack9"),
            replace(RACK, name="small", nr_cpu=8),
            replace(RACK, name="x", tbox_group="y"),
        )
    }
    assert stand_in(RACK, testboxes, {"rack9", "rack8", "small", "x", "rack7"}) == "rack8"
    assert stand_in(RACK, testboxes, {"rack9", "small", "x"}) == "rack9"
    assert stand_in(RACK, testboxes, {"small", "x", "rack7", "unknown"}) is None
    assert not interchangeable(RACK, replace(RACK, name="r", demand={"thp_enabled": "never"}))


def alerts(
    open_: set[AlertSubject], *testboxes: TestboxStatus, **more: Any
) -> tuple[set[AlertSubject], set[AlertSubject]]:
    wishes = more.pop("wishes", {testbox.testbox: ("active", None) for testbox in testboxes})
    found = changes(
        open_,
        testboxes,
        wishes,
        more.pop("invalid", ()),
        more.pop("queue", NO_QUEUE),
        TestboxRules(),
    )
    return set(found.begun), set(found.over)


LOST = AlertSubject("lost", "rack7")


def test_a_testbox_that_is_lost_is_reported_once_until_a_boot_there_went_well() -> None:
    lost = played(Assigned(3), ControllerLost("no word"))
    assert alerts(set(), lost) == ({LOST}, set())
    for again in (
        lost,
        transition(lost, Assigned(4)),
        transition(transition(lost, Assigned(4)), AttemptFailed("no route")),
    ):
        assert alerts({LOST}, again) == (set(), set())
    home = played(
        Assigned(3), ControllerLost("no word"), *one_boot(AttemptEnded(up=True, why="up"))
    )
    assert alerts({LOST}, home) == (set(), {LOST})


def test_a_quarantine_takes_the_place_of_a_loss_without_a_mail_that_it_is_over() -> None:
    lost = played(Assigned(3), ControllerLost("no word"))
    found = changes(
        {LOST},
        [lost],
        {"rack7": ("quarantined", "failed: 3 attempts")},
        (),
        NO_QUEUE,
        TestboxRules(),
    )
    assert (set(found.begun), set(found.over), set(found.quiet)) == (
        {AlertSubject("quarantined", "rack7")},
        set(),
        {LOST},
    )


def test_what_a_person_did_is_no_news_to_the_operator_and_what_an_anchor_showed_is() -> None:
    testbox = played(Quarantined("fan is loud"))
    assert alerts(set(), testbox, wishes={"rack7": ("quarantined", "fan is loud")}) == (
        set(),
        set(),
    )
    assert alerts(set(), testbox, wishes={"rack7": ("quarantined", "moved: 10 % below")}) == (
        {AlertSubject("moved", "rack7")},
        set(),
    )


def test_a_share_of_invalid_runs_begins_above_its_limit_and_is_over_below_half_of_it() -> None:
    subject = AlertSubject("invalid", "rack7")

    def with_share(invalid: int, runs: int = 100) -> list[InvalidRuns]:
        return [
            InvalidRuns(testbox="rack7", runs=runs, invalid=invalid, reason="governor is powersave")
        ]

    assert alerts(set(), invalid=with_share(21)) == ({subject}, set())
    assert alerts(set(), invalid=with_share(20)) == (set(), set())
    assert alerts(set(), invalid=with_share(9, runs=19)) == (set(), set())
    assert alerts({subject}, invalid=with_share(11)) == (set(), set())
    assert alerts({subject}, invalid=with_share(10)) == (set(), {subject})


def test_a_queue_is_stuck_when_orders_wait_and_nothing_ends() -> None:
    stuck = AlertSubject("stuck", None)
    still = QueueState(orders=2, oldest=7, still_seconds=7200.0)
    assert alerts(set(), queue=still) == ({stuck}, set())
    assert alerts({stuck}, queue=still) == (set(), set())
    assert alerts({stuck}, queue=replace(still, still_seconds=5.0)) == (set(), {stuck})
    assert alerts(set(), queue=replace(still, orders=0)) == (set(), set())


@pytest.mark.parametrize(
    "document", sorted(ALERTS.glob("*.in.yaml")), ids=lambda document: document.name
)
def test_mails_to_the_operator_read_as_their_goldens(document: Path) -> None:
    text = alert_text(document)
    assert text == text_of(document).read_text(encoding="utf-8")
    assert all(len(line) <= 78 for line in text.splitlines())


def test_a_hostile_reason_stays_in_its_paragraph() -> None:
    alert = Alert(
        kind="lost",
        testbox="rack7",
        reason="x\r\nBcc: all@example.org\n\u202e" + "y" * 5000,
        began=BEGAN,
    )
    body = alert_mail(alert, url="https://swingbot.example.org").body
    assert len(body) < 3000 and "\nBcc" not in body and "\u202e" not in body


SECRET = b"s" * 32
STORE: Any = None  # no file is asked for


@pytest.fixture
def memory() -> MemoryStore:
    """Attempt 1 has a testbox, attempt 2 builds."""
    store = MemoryStore()
    with store.transaction() as tx:
        lab = a_lab(tx)
        boot = tx.attempts.add(a_boot_order(tx, lab).id, 1)
        assert tx.attempts.take_lease(TESTBOX, boot)
        build = tx.attempts.add(tx.orders.ensure_build(lab.kernels[0], 0).id, 1)
    assert (boot, build) == (1, 2)
    return store


@pytest.fixture
def client(memory: MemoryStore) -> TestClient:
    requests = WorkerRequests(memory.transaction)
    return TestClient(Starlette(routes=list(exchange.routes(STORE, requests, SECRET))))


def events(memory: MemoryStore) -> list[tuple[int | None, str, str]]:
    return [(event.attempt, event.state, event.why) for event in memory.db.events.values()]


def of(controller: str, attempt: int = 1) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(SECRET, attempt)}", CONTROLLER_HEADER: controller}


def test_a_second_controller_is_refused_with_the_name_of_the_first(
    client: TestClient, memory: MemoryStore
) -> None:
    outcome = {
        "version": 1,
        "kind": "boot",
        "order": "o1",
        "attempt": "a1",
        "status": "infra",
        "reason": "x",
        "seconds": 1,
        "files": {},
    }
    assert client.get("/attempts/a1", headers=of("host1")).json() == {
        "attempt": "a1",
        "wanted": True,
        "lease": {"fence": 1, "seconds": 300.0},
    }
    for answer in (
        client.get("/attempts/a1", headers=of("host2")),
        client.put(
            "/attempts/a1/phase", headers=of("host2"), json={"phase": "booting", "why": "x"}
        ),
        client.put("/attempts/a1/outcome.json", headers=of("host2"), json=outcome),
    ):
        assert answer.status_code == 409
        refusal = f"testbox {TESTBOX} is held by controller host1 for attempt a1"
        assert answer.json()["detail"].startswith(refusal)
    assert events(memory) == [] and memory.db.attempts[1].state == "running"
    assert (
        client.put("/attempts/a1/outcome.json", headers=of("host1"), json=outcome).status_code
        == 201
    )


def test_a_phase_is_taken_from_the_holder_alone_and_once_it_has_a_testbox(
    client: TestClient, memory: MemoryStore
) -> None:
    phase = {"phase": "running", "why": "job began", "boot_id": "6f1c"}
    assert client.put("/attempts/a1/phase", headers=of("host1"), json=phase).status_code == 200
    assert client.put("/attempts/a2/phase", headers=of("host1", 2), json=phase).status_code == 409
    assert client.put("/attempts/a2/phase", headers=of("host1", 1), json=phase).status_code == 401
    assert events(memory) == [(1, "running", "job began (boot 6f1c)")]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"phase": "asleep", "why": ""}',
        b'{"phase": "idle"}',
        b'{"phase": "idle", "why": "", "more": 1}',
        b'{"phase": NaN, "why": 1}',
        b"\xff",
    ],
)
def test_what_is_no_phase_is_refused_in_one_sentence(
    client: TestClient, memory: MemoryStore, body: bytes
) -> None:
    answer = client.put("/attempts/a1/phase", headers=of("host1"), content=body)
    assert answer.status_code in (400, 413) and answer.json()["detail"]
    assert events(memory) == []


def test_every_phase_of_the_contract_is_a_state() -> None:
    for phase in PHASES:
        assert check_phase({"phase": phase, "why": ""})["phase"] == TestboxPhase(phase).value
    with pytest.raises(ContractError):
        check_phase({"phase": "quarantined", "why": ""})


def test_silence_means_nothing_before_the_service_could_be_reached_for_a_while() -> None:
    clock = iter([0.0, 20.0, 40.0, 500.0, 501.0, 520.0])
    with socket.create_server(("127.0.0.1", 0)) as server:
        listening = Reachability(f"http://127.0.0.1:{server.getsockname()[1]}", lambda: next(clock))
        # no check for a long time: the service may have been down
        assert [listening() for _ in range(4)] == [0.0, 20.0, 40.0, 0.0]
    assert [listening() for _ in range(2)] == [0.0, 0.0]


def test_findings_are_printed_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = [
        {"what": "kexec", "ok": True, "found": "kexec 2.0.25", "do": None},
        {"what": "power", "ok": False, "found": "no answer", "do": "plug it in"},
    ]
    worker = tmp_path / "swingbot-worker"
    worker.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(found)}\nEND\nexit 1\n")
    worker.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    checks = check_testbox.check("rack7", None)
    assert check_testbox.as_text("rack7", checks).splitlines() == [
        "ok   kexec: kexec 2.0.25",
        "NOT  power: no answer",
        "     do: plug it in",
        "testbox rack7 failed 1 of 2 checks; follow the advice above and check again",
    ]
    with pytest.raises(check_testbox.CannotCheck, match="run there: swingbot-worker check rack7"):
        check_testbox.check("rack7", "lab1.example")
    worker.write_text("#!/bin/sh\necho '[{\"what\": 1}]'\n")
    with pytest.raises(check_testbox.CannotCheck, match="printed no findings"):
        check_testbox.check("rack7", None)
    worker.write_text("#!/bin/sh\necho 'rack7 is not described on this worker' >&2; exit 2\n")
    with pytest.raises(check_testbox.CannotCheck, match="status 2.: rack7 is not described"):
        check_testbox.check("rack7", None)


@pytest.fixture
def service() -> Iterator[tuple[str, list[tuple[int, dict[str, Any]]], list[tuple[str, str, Any]]]]:
    """A web service that gives the answers of a list, the last one for ever, and notes what it
    is asked: URL, answers, (method, controller, body)."""
    answers: list[tuple[int, dict[str, Any]]] = []
    asked: list[tuple[str, str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            asked.append(
                (self.command, self.headers[CONTROLLER_HEADER], json.loads(body) if body else None)
            )
            status, answer = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_PUT = do_GET

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", answers, asked
        server.shutdown()


HELD = (409, {"detail": "testbox rack7 is held by controller lab1"})
ORDER = BootOrder.from_json(
    {
        "kind": "boot",
        "order": "o1",
        "attempt": "a1",
        "deadline_seconds": 60,
        "kernel": {"build_key": "0" * 64, "image_sha256": "0" * 64},
        "testbox": "rack7",
        "k": 0,
        "unit_jobs": [],
    }
)
BUILD = BuildOrder(
    order="o2",
    attempt="a1",
    build_key="0" * 64,
    spec=Spec(repo="r", commit="0" * 40, kconfig="tiny", compiler="gcc", layout=0),
)


def a_lease(patience: float = 60.0) -> HeldLease:
    return HeldLease(patience=patience, tell=lambda line: None)


def test_an_executor_waits_until_no_other_controller_drives_its_testbox(
    service: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, answers, asked = service
    monkeypatch.setattr(executor, "ASK_SECONDS", 0.01)
    answers += [HELD, HELD, (200, {"wanted": True, "lease": {"fence": 7, "seconds": 285.0}})]
    lease = a_lease()
    executor._take_testbox(ORDER, ExchangeClient(url, "t"), lease)
    assert lease.token == 7
    assert [method for method, _, _ in asked] == ["GET"] * 3
    assert {controller for _, controller, _ in asked} == {socket.gethostname()}
    assert capsys.readouterr().out == "Waiting: testbox rack7 is held by controller lab1\n"


@pytest.mark.parametrize(
    ("then", "why"),
    [
        ([HELD], "held by controller lab1"),
        ([HELD, (200, {"wanted": False})], "this attempt is no longer needed"),
    ],
)
def test_an_executor_boots_nothing_when_it_waited_in_vain(
    service: Any, monkeypatch: pytest.MonkeyPatch, then: list[Any], why: str
) -> None:
    url, answers, _ = service
    monkeypatch.setattr(executor, "ASK_SECONDS", 0.01)
    answers += then
    with pytest.raises(InfraError, match=why):
        executor._take_testbox(
            replace(ORDER, deadline=0.05 if len(then) == 1 else 60),
            ExchangeClient(url, "t"),
            a_lease(),
        )


def test_a_build_and_a_boot_by_hand_wait_for_no_testbox(service: Any) -> None:
    url, answers, asked = service
    answers.append(HELD)
    executor._take_testbox(BUILD, ExchangeClient(url, "t"), a_lease())
    executor._take_testbox(ORDER, None, a_lease())
    assert asked == []
    ExchangeClient("http://127.0.0.1:9", "t").tell_phase("a1", "running", "x")


def test_work_renews_its_lease_and_stops_when_another_controller_has_its_testbox(
    service: Any, tmp_path: Path
) -> None:
    url, answers, _ = service
    lease, exchange = a_lease(), ExchangeClient(url, "t")
    watchdog = executor._Watchdog(AttemptDirectory(tmp_path), ORDER, exchange, lease)
    answers += [(200, {"wanted": True, "lease": {"fence": 7, "seconds": 285.0}})]
    assert watchdog._over(exchange) is None
    lease.hold(120.0)
    answers[:] = [(503, {"detail": "the database does not respond"})]
    assert watchdog._over(exchange) is None
    answers[:] = [HELD]
    why = "This attempt was stopped: testbox rack7 is held by controller lab1."
    assert watchdog._over(exchange) == why


def test_a_lease_ends_by_the_clock_of_its_controller() -> None:
    """It counts from when the question was sent, and a later answer renews it."""
    now = [1000.0]
    waits: list[str] = []
    lease = HeldLease(patience=60.0, tell=waits.append, clock=lambda: now[0])
    lease.renew(Grant(fence=7, seconds=285.0), asked=990.0)
    lease.hold(275.0)
    assert waits == []
    now[0] = 1000.1
    lease.tell = lambda line: lease.renew(Grant(fence=7, seconds=285.0), asked=now[0])
    lease.hold(275.0)

    def pass_by(line: str) -> None:
        waits.append(line)
        lease.clock = lambda: 2000.0

    lease.tell = pass_by
    with pytest.raises(InfraError, match="did not renew the lease for 60 s"):
        lease.hold(286.0)
    assert "neither powered nor booted" in waits[0]


def test_nothing_is_booted_before_the_service_has_given_a_lease(
    service: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, answers, asked = service
    monkeypatch.setattr(executor, "ASK_SECONDS", 0.01)
    away = (503, {"detail": "the database does not respond"})
    answers += [away, away, (200, {"wanted": True, "lease": {"fence": 8, "seconds": 285.0}})]
    lease = a_lease()
    executor._take_testbox(ORDER, ExchangeClient(url, "t"), lease)
    assert (lease.token, len(asked)) == (8, 3)
    assert "Waiting: the service is unavailable" in capsys.readouterr().out
    answers[:] = [away]
    with pytest.raises(InfraError, match="Nothing was booted: the service is unavailable"):
        executor._take_testbox(replace(ORDER, deadline=0.05), ExchangeClient(url, "t"), a_lease())


def test_a_phase_is_reported_with_its_reason_and_a_refusal_of_it_stops_nothing(
    service: Any,
) -> None:
    url, answers, asked = service
    answers.append(HELD)
    ExchangeClient(url, "t").tell_phase("a1", "lost", "x" * 3000, "6f1c")
    assert asked == [
        ("PUT", socket.gethostname(), {"phase": "lost", "why": "x" * 2000, "boot_id": "6f1c"})
    ]
