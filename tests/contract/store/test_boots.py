"""What boots, runs and noise records promise."""

from __future__ import annotations

import dataclasses

import pytest

from swingbot.core.model.noise import NoiseRecord, Spread
from swingbot.core.model.outcome import Outcome
from swingbot.core.model.records import UNTRUSTED, BootNumbers
from swingbot.core.raw.changes import ChangedValues
from swingbot_jobs.reading.result import ParsedRun
from tests.contract.store.world import (
    METRIC,
    TESTBOX,
    UNIT_JOB,
    Lab,
    Store,
    a_bisection,
    a_boot,
    a_boot_order,
    a_build,
    a_comparison,
    a_job,
    a_lab,
    a_variant,
    sha256,
)

KEY = (UNIT_JOB, METRIC)


@pytest.fixture
def lab(store: Store) -> Lab:
    with store.transaction() as tx:
        made = a_lab(tx, 2)
    for kernel in range(2):
        a_build(store, made, kernel)
    return made


def test_a_boot_is_found_by_image_and_number(store: Store, lab: Lab) -> None:
    boots = [a_boot(store, lab, k=k) for k in (2, 0)]
    a_boot(store, lab, k=0, series="c1")
    a_boot(store, lab, kernel=1)
    with store.transaction() as tx:
        found = tx.boots.find(sha256("image", 0), TESTBOX, lab.spec, "", BootNumbers(range(5)))
        assert [(boot.id, boot.k, boot.outcome) for boot in found] == [
            (boots[1], 0, "up"),
            (boots[0], 2, "up"),
        ]
        assert tx.boots.find(sha256("image", 0), TESTBOX, lab.spec, "", BootNumbers([1])) == []
        assert (
            tx.boots.find(sha256("image", 0), TESTBOX, lab.spec, "", BootNumbers([0], "fresh"))
            == []
        )
        assert found[0].facts == {"nr_cpu": 1, "rootfs": "r"}


def test_the_same_boot_is_stored_once(store: Store, lab: Lab) -> None:
    a_boot(store, lab)
    with store.transaction() as tx:
        order = a_boot_order(tx, lab)
        attempt = tx.attempts.add(order.id, 2)
        outcome = Outcome(kind="boot", status="up", seconds=1.0, files={})
        assert tx.boots.add(attempt, order, sha256("image", 0), outcome) is None


def test_values_are_one_a_run_in_the_order_of_the_runs(store: Store, lab: Lab) -> None:
    boot = a_boot(store, lab, values=())
    runs = [
        ParsedRun(unit_job=UNIT_JOB, number=2, status="ok", samples={METRIC: [3.0, 5.0]}),
        ParsedRun(unit_job=UNIT_JOB, number=1, status="ok", samples={METRIC: [2.0], "b": [1.0]}),
        ParsedRun(unit_job=UNIT_JOB, number=0, status="warmup", reason="warms up"),
        ParsedRun(unit_job=UNIT_JOB, number=3, status="failed", reason="it crashed"),
        ParsedRun(unit_job="other", number=0, status="missing", reason="no file"),
    ]
    with store.transaction() as tx:
        tx.runs.add(boot, runs, {UNIT_JOB: sha256("parser")})
        assert tx.boots.values(boot) == {KEY: [2.0, 4.0], (UNIT_JOB, "b"): [1.0]}
        assert tx.boots.problems(boot, UNIT_JOB) == ["it crashed"]
        assert tx.boots.problems(boot, "other") == ["no file"]


def test_facts_are_those_of_the_latest_boot_that_came_up(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert tx.boots.latest_facts(TESTBOX) == {}
    a_boot(store, lab, kernel=0, facts={"n": 1, "rootfs": "r"})
    a_boot(store, lab, kernel=1, facts={"n": 2, "rootfs": "r"})
    a_boot(store, lab, kernel=1, k=1, status="panicked", reason="oops", values=(), facts={})
    with store.transaction() as tx:
        assert tx.boots.latest_facts(TESTBOX)["n"] == 2
        assert tx.boots.latest_facts(TESTBOX, image=sha256("image", 0))["n"] == 1
        assert tx.boots.latest_facts("other") == {}
        facts = tx.boots.latest_facts_of([TESTBOX, "other"])
        assert facts == {TESTBOX: tx.boots.latest_facts(TESTBOX), "other": {}}


def test_seconds_of_a_boot_are_the_mean_of_its_spec(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert tx.boots.seconds(TESTBOX, lab.spec) is None
    for k, seconds in enumerate((10.0, 30.0)):
        a_boot(store, lab, k=k, seconds=seconds)
    # one that hung lasted as long as its limit allowed
    a_boot(store, lab, k=2, seconds=900.0, status="hung", reason="no sign of life")
    with store.transaction() as tx:
        assert tx.boots.seconds(TESTBOX, lab.spec) == 20.0
        assert tx.boots.seconds(TESTBOX, sha256("new")) is None
        assert tx.boots.seconds("other", lab.spec) is None


def test_boots_with_results_are_paged_and_chosen_by_program(store: Store, lab: Lab) -> None:
    boots = [a_boot(store, lab, k=k) for k in range(3)]
    a_boot(store, lab, k=3, files={}, values=())
    with store.transaction() as tx:
        assert [b.id for b in tx.runs.boots_with_results(0, 2)] == boots[:2]
        assert [b.id for b in tx.runs.boots_with_results(boots[0], 9, "page-fault")] == boots[1:]
        assert tx.runs.boots_with_results(0, 9, "netperf") == []
        assert tx.runs.count_boots_with_results() == 3
        assert tx.runs.count_boots_with_results("netperf") == 0


def test_what_a_mended_parser_reads_replaces_what_was_there(store: Store, lab: Lab) -> None:
    boot = a_boot(store, lab, values=(100.0, 102.0))
    with store.transaction() as tx:
        first, second = tx.runs.of_boot(boot, lock=True)
        assert (first.number, first.samples, first.parser) == (
            0,
            {METRIC: [100.0]},
            sha256("parser"),
        )
        mended = ParsedRun(unit_job=UNIT_JOB, number=0, status="ok", samples={"new": [1.0]})
        changes = {METRIC: ChangedValues((100.0,), ()), "new": ChangedValues((), (1.0,))}
        tx.runs.replace(first, mended, sha256("mended"), changes)
        now, unchanged = tx.runs.of_boot(boot)
        assert (now.samples, now.parser) == ({"new": [1.0]}, sha256("mended"))
        assert unchanged == second


def test_requests_of_boots_are_those_who_wanted_their_orders(store: Store, lab: Lab) -> None:
    boots = [a_boot(store, lab, k=k) for k in range(2)]
    with store.transaction() as tx:
        comparison, bisection = a_comparison(tx, lab), a_bisection(tx, lab)
        tx.orders.want(a_boot_order(tx, lab, k=0).id, comparison=comparison)
        tx.orders.want(a_boot_order(tx, lab, k=1).id, bisection=bisection)
        assert tx.runs.requests_of_boots(boots) == ([comparison], [bisection])
        assert tx.runs.requests_of_boots(boots[:1]) == ([comparison], [])
        assert tx.runs.requests_of_boots([]) == ([], [])


def test_measured_boots_come_oldest_first_with_what_tells_them_apart(
    store: Store, lab: Lab
) -> None:
    a_boot(store, lab, k=4, values=(100.0, 102.0))
    store.pass_time(10.0)
    a_boot(store, lab, kernel=1, k=2, series="c1", values=(90.0,))
    a_boot(store, lab, k=5, origin="simulated")
    a_boot(store, lab, k=6, status="panicked", reason="oops", values=())
    a_boot(store, lab, k=7, purpose="doctor")
    with store.transaction() as tx:
        found = tx.noise.measured_boots(TESTBOX)
        assert set(found) == {KEY}
        boots, since, until = found[KEY]
        assert [(b.values, b.k, b.shared) for b in boots] == [
            ((100.0, 102.0), 2, True),
            ((90.0,), 1, False),
        ]
        assert boots[0].code != boots[1].code and boots[0].image != boots[1].image
        assert since < until
        assert tx.noise.measured_boots("other") == {}
        assert tx.noise.measured_jobs(TESTBOX) == {UNIT_JOB: a_job()}
        assert tx.noise.measured_jobs("other") == {}


def test_a_noise_record_replaces_the_one_before(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert tx.noise.with_fresh_boots([TESTBOX], 0, 0.0) == {}
        assert tx.noise.get(TESTBOX, *KEY) is None
    boots = [a_boot(store, lab, k=k) for k in range(3)]
    a_boot(store, lab, purpose="doctor")
    with store.transaction() as tx:
        assert tx.noise.with_fresh_boots([TESTBOX, "other"], 3, 1.0) == {TESTBOX: boots[2]}
        assert tx.noise.with_fresh_boots([TESTBOX], 4, 0.0) == {}
        tx.noise.put(TESTBOX, *KEY, NoiseRecord(run=Spread(sd=0.01, df=4.0)), boots[0])
        record = NoiseRecord(run=Spread(sd=0.02, df=4.0))
        tx.noise.put(TESTBOX, *KEY, record, boots[1])
        assert tx.noise.get(TESTBOX, *KEY) == record
        assert tx.noise.with_fresh_boots([TESTBOX], 1, 0.33) == {TESTBOX: boots[2]}
        assert tx.noise.with_fresh_boots([TESTBOX], 2, 0.0) == {}
        assert tx.noise.with_fresh_boots([TESTBOX], 1, 0.34) == {}


def test_names_that_only_untrusted_kernels_reported_are_counted_apart(
    store: Store, lab: Lab
) -> None:
    with store.transaction() as tx:
        untrusted = a_variant(tx, lab.tree, 7, trust=UNTRUSTED)
    lab = dataclasses.replace(lab, kernels=[*lab.kernels, untrusted])
    guest_kernel = len(lab.kernels) - 1
    a_build(store, lab, guest_kernel)
    trusted, guest = a_boot(store, lab), a_boot(store, lab, kernel=guest_kernel)
    runs = [
        ParsedRun(
            unit_job=UNIT_JOB, number=9, status="ok", samples={METRIC: [1.0], "own.guest": [1.0]}
        )
    ]

    def names(boot: int) -> tuple[set[str], int]:
        with store.transaction() as tx:
            (of_job,) = tx.runs.metric_names(boot, runs).values()
        return set(of_job.free), of_job.counted

    assert names(guest) == ({METRIC}, 0)
    with store.transaction() as tx:
        tx.runs.add(guest, runs, {})
    assert names(guest) == ({METRIC, "own.guest"}, 1)
    assert names(trusted) == ({METRIC}, 1)
    with store.transaction() as tx:
        tx.runs.add(trusted, runs, {})
    assert names(guest) == ({METRIC, "own.guest"}, 0)
    assert names(trusted) == ({METRIC, "own.guest"}, 2)
