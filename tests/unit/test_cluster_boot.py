"""Pure parts of booting a cluster: scripts of both nodes, combined outcome, all-or-none leases."""

from __future__ import annotations

import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.resources import root
from swingbot_jobs.testbox.definition import ClusterDriver
from swingbot_jobs.testbox.file import load_all
from swingbot_jobs.testbox.wire import CLIENT, SERVER
from swingbot_worker import InfraError, OrderError, lease
from swingbot_worker.testbox.cluster import pair, script, wire
from swingbot_worker.testbox.cluster.check import card_in
from swingbot_worker.testbox.cluster.cluster_verdict import NodeOutcome, judge
from swingbot_worker.testbox.verdict import BootStatus, Verdict

CLUSTER = cast(ClusterDriver, load_all(root() / "workers" / "testboxes")["cs-vm"].driver)
JOBS = [
    UnitJob(
        name="rr",
        program="netperf",
        params={"test": "TCP_RR", "runtime": "1", "cluster": "cs-vm"},
        runs=2,
        demand={"thp_enabled": "always"},
    ),
    UnitJob(name="udp", program="netperf", params={"send_size": "it's"}, runs=1),
]
UP = Verdict(status=BootStatus.UP)
GOOD_SERVER, GOOD_CLIENT = (
    NodeOutcome(role=SERVER, testbox="a", verdict=UP),
    NodeOutcome(role=CLIENT, testbox="b", verdict=UP),
)


def broken(ending: NodeOutcome, status: BootStatus, *, given_up: bool = False) -> NodeOutcome:
    return replace(ending, verdict=Verdict(status=status, reason="it broke"), given_up=given_up)


# --- what is run


@pytest.mark.parametrize("role", [SERVER, CLIENT])
def test_the_scripts_are_sound_shell_and_all_places_are_filled(role: str) -> None:
    read = (root() / "jobs" / "programs").joinpath
    entries = script.entries(
        role,
        CLUSTER,
        JOBS,
        lambda path: read(path).read_bytes(),
        script.HandshakeTerms(token="7f", wait=60),
    )
    for entry in entries:
        text = entry.content.decode()
        assert not [word for word in text.split() if word.startswith("@") and word.endswith("@")], (
            entry.path
        )
        checked = subprocess.run(
            [root() / ".venv" / "bin" / "shellcheck", "-s", "busybox", "-S", "error", "-"],
            input=text,
            text=True,
            capture_output=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout
        assert (
            subprocess.run(["busybox", "sh", "-n"], input=text, text=True, check=False).returncode
            == 0
        )
    assert [entry.path for entry in entries] == {
        SERVER: ["job/run.sh", "job/wire/answer", "job/programs/netperf/serve"],
        CLIENT: ["job/run.sh", "job/programs/netperf/run"],
    }[role]


def test_the_client_measures_with_its_own_part_and_knows_the_server() -> None:
    read = (root() / "jobs" / "programs").joinpath
    entries = script.entries(
        CLIENT,
        CLUSTER,
        JOBS,
        lambda path: read(path).read_bytes(),
        script.HandshakeTerms(token="7f", wait=60),
    )
    assert entries[1].content == read("netperf/client").read_bytes()
    assert (
        "one_run rr 0 63 - netperf cluster=cs-vm runtime=1 server=198.18.0.1 "
        "server6=2001:2::1 test=TCP_RR"
    ) in entries[0].content.decode()


def test_only_what_has_the_token_is_answered(tmp_path: Path) -> None:
    read = (root() / "jobs" / "programs").joinpath
    _, answer, _ = script.entries(
        SERVER,
        CLUSTER,
        JOBS,
        lambda path: read(path).read_bytes(),
        script.HandshakeTerms(token="7f", wait=60),
    )
    (tmp_path / "state").write_text("serving rr 0\n")

    def said(text: str) -> str:
        env = {"SWINGBOT_WORK": str(tmp_path), "PATH": "/usr/bin:/bin"}
        return subprocess.run(
            ["busybox", "sh", "-c", answer.content.decode()],
            input=text,
            text=True,
            capture_output=True,
            env=env,
            check=False,
            timeout=20,
        ).stdout

    assert (said("7f state\n"), said("7e state\n"), said("\n"), said("7f rm -rf /\n")) == (
        "serving rr 0\n",
        "",
        "",
        "",
    )
    assert said("7f serve rr 1\n") == "ok\n"
    assert (tmp_path / "asked").read_text() == "serve rr 1\n"


def test_the_wire_of_virtual_machines_is_a_socket_file_and_never_an_address(tmp_path: Path) -> None:
    ends = {role: wire.devices(CLUSTER, role, tmp_path) for role in (SERVER, CLIENT)}
    for role, end in ends.items():
        assert f"addr.type=unix,addr.path={tmp_path}/wire" in end.argv[1], role
    assert "server=on" in ends[SERVER].argv[1]
    assert ends[SERVER].socket is None and ends[CLIENT].socket == tmp_path / "wire"


# --- what came of it


def test_two_that_went_well_are_up() -> None:
    assert judge("c", (GOOD_SERVER, GOOD_CLIENT)) == UP


@pytest.mark.parametrize(
    ("server", "client", "status", "says"),
    [
        (
            broken(GOOD_SERVER, BootStatus.PANICKED),
            broken(GOOD_CLIENT, BootStatus.LIMIT, given_up=True),
            BootStatus.PANICKED,
            "server a: it broke",
        ),
        (
            broken(GOOD_SERVER, BootStatus.LIMIT, given_up=True),
            broken(GOOD_CLIENT, BootStatus.OOPSED),
            BootStatus.OOPSED,
            "client b: it broke",
        ),
        (
            broken(GOOD_SERVER, BootStatus.OOPSED),
            broken(GOOD_CLIENT, BootStatus.PANICKED),
            BootStatus.PANICKED,
            "client b: it broke",
        ),
        (
            broken(GOOD_SERVER, BootStatus.HUNG),
            replace(GOOD_CLIENT, trouble="silence 198.18.0.1"),
            BootStatus.HUNG,
            "server a: it broke",
        ),
        (
            GOOD_SERVER,
            replace(GOOD_CLIENT, trouble="silence 198.18.0.1"),
            BootStatus.HUNG,
            "client b: the server did not answer at 198.18.0.1",
        ),
        (
            replace(GOOD_SERVER, trouble="card 00:01"),
            broken(GOOD_CLIENT, BootStatus.LIMIT, given_up=True),
            BootStatus.HUNG,
            "server a: the kernel under test has no",
        ),
        (
            replace(GOOD_SERVER, trouble="silence x"),
            GOOD_CLIENT,
            BootStatus.HUNG,
            "server a: the client did not send a request",
        ),
        (
            GOOD_SERVER,
            replace(GOOD_CLIENT, trouble="program cannot serve: no\x1b port"),
            BootStatus.HUNG,
            "server: cannot serve: no",
        ),
        (
            broken(GOOD_SERVER, BootStatus.LIMIT, given_up=True),
            GOOD_CLIENT,
            BootStatus.LIMIT,
            "it broke",
        ),
        (
            GOOD_SERVER,
            replace(GOOD_CLIENT, trouble="odd"),
            BootStatus.HUNG,
            "client b: the wire could not be used (odd)",
        ),
        (
            broken(GOOD_SERVER, BootStatus.PANICKED),
            NodeOutcome(role=CLIENT, testbox="b", fault=InfraError("no power"), given_up=False),
            BootStatus.PANICKED,
            "server a: it broke",
        ),
    ],
)
def test_one_that_breaks_is_named_and_the_one_that_we_ended_for_it_is_not(
    server: NodeOutcome, client: NodeOutcome, status: BootStatus, says: str
) -> None:
    verdict = judge("c", (server, client))
    assert (verdict.status, says in str(verdict.reason)) == (status, True), verdict
    assert "\x1b" not in str(verdict.reason)


def test_a_fault_of_ours_is_reported_with_its_testbox_and_not_that_of_the_one_that_waited() -> None:
    waited = NodeOutcome(
        role=CLIENT, testbox="b", fault=InfraError("Nothing was booted on it"), given_up=True
    )
    with pytest.raises(InfraError, match="Cluster c, server a: no kexec"):
        judge("c", (NodeOutcome(role=SERVER, testbox="a", fault=InfraError("no kexec")), waited))


def test_an_order_that_cannot_be_done_there_is_not_tried_again() -> None:
    with pytest.raises(OrderError, match="Cluster c, client b: another architecture"):
        judge(
            "c",
            (
                replace(GOOD_SERVER, verdict=None, fault=InfraError("waited"), given_up=True),
                NodeOutcome(role=CLIENT, testbox="b", fault=OrderError("another architecture")),
            ),
        )


@pytest.mark.parametrize(
    ("server", "client", "at"),
    [
        ("carrier eth0", "", r"at server a \(eth0\); check the cable"),
        ("carrier eth0", "carrier eth1", r"server a \(eth0\) and client b \(eth1\)"),
    ],
)
def test_a_cable_that_is_out_is_the_labs_fault(server: str, client: str, at: str) -> None:
    with pytest.raises(InfraError, match=at):
        judge("c", (replace(GOOD_SERVER, trouble=server), replace(GOOD_CLIENT, trouble=client)))


@pytest.mark.parametrize(
    ("phases", "both"),
    [
        ({SERVER: "booting"}, None),
        ({SERVER: "lost"}, "lost"),
        ({SERVER: "running", CLIENT: "booting"}, "booting"),
        ({SERVER: "running", CLIENT: "running"}, "running"),
        ({SERVER: "idle", CLIENT: "returning"}, "returning"),
        ({SERVER: "idle", CLIENT: "lost"}, "lost"),
        ({SERVER: "idle", CLIENT: "idle"}, "idle"),
    ],
)
def test_a_cluster_does_what_the_one_does_that_has_come_least_far(
    phases: dict[str, str], both: str | None
) -> None:
    assert pair.together(phases) == both


# --- leases


def test_controllers_that_want_two_testboxes_in_opposite_order_all_get_them(tmp_path: Path) -> None:
    """Four of them, two with each order, fifty times each; one that waits for the other's testbox
    while it holds its own would stand still for ever."""
    inside, most, done = threading.Semaphore(1), [], []

    def want(*names: str) -> None:
        for _ in range(50):
            with lease.for_testboxes(tmp_path, names, patience=60):
                most.append(inside.acquire(blocking=False))
                inside.release()
        done.append(names)

    threads = [
        threading.Thread(target=want, args=names, daemon=True)
        for names in (("a", "b"), ("b", "a")) * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(done) == 4
    assert all(most)


def test_who_waits_for_two_testboxes_holds_neither(tmp_path: Path) -> None:
    messages: list[str] = []
    busy = r"a and b are needed together, and testbox b is busy.*b\.lease"
    with (
        lease.for_testboxes(tmp_path, ["b"]),
        pytest.raises(InfraError, match=busy),
        lease.for_testboxes(tmp_path, ["b", "a"], tell=messages.append, patience=0.1),
    ):
        raise AssertionError("b is busy")
    assert messages == [
        "Waiting: a and b are needed together, and testbox b is busy with another boot."
    ]
    with (
        lease.for_testboxes(tmp_path, ["a"], patience=-1),
        lease.for_testboxes(tmp_path, ["b"], patience=-1),
    ):
        pass


def test_while_one_waits_for_both_the_free_one_can_be_used(tmp_path: Path) -> None:
    got = threading.Event()

    def want() -> None:
        with lease.for_testboxes(tmp_path, ["a", "b"], patience=30):
            got.set()

    with lease.for_testboxes(tmp_path, ["b"]):
        thread = threading.Thread(target=want, daemon=True)
        thread.start()
        with lease.for_testboxes(tmp_path, ["a"], patience=5):
            assert not got.is_set()
    thread.join(30)
    assert got.is_set()


# --- the check


@pytest.mark.parametrize(
    ("card", "ok", "found"),
    [
        ("3c:ec:ef:00:00:01", True, "enp2s0, with a carrier"),
        ("3c:ec:ef:00:00:02", False, "enp3s0, without a carrier"),
        ("3c:ec:ef:00:00:03", True, "enp4s0, down in the idle system"),
        ("3c:ec:ef:00:00:04", False, "missing; the cards are lo 00:00:00:00:00:00, enp2s0"),
        ("eth1", True, "the kernel under test may use other names"),
        ("enp3s0", False, "enp3s0, without a carrier"),
    ],
)
def test_a_card_is_looked_for_in_the_idle_system(card: str, ok: bool, found: str) -> None:
    cards = (
        "lo 00:00:00:00:00:00 1\nenp2s0 3c:ec:ef:00:00:01 1\nenp3s0 3c:ec:ef:00:00:02 0\n"
        "enp4s0 3c:ec:ef:00:00:03 \n"
    )
    finding = card_in("it is there", card, cards)
    assert (finding.ok, found in finding.found) == (ok, True), finding
