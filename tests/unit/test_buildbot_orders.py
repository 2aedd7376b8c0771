from __future__ import annotations

import dataclasses

import pytest

from swingbot.adapters.buildbot.dispatcher import result_word
from swingbot.core.model.dispatch import OrderFacts, Terms, attempt_of_token, order_document
from swingbot_jobs import codec
from swingbot_jobs.contract.orders import ContractError, check_order
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.boot_time import boot_limit, limit_of
from tests.contract.store.world import a_testbox

TESTBOX = a_testbox("vm-icount")
TERMS = Terms(
    exchange_url="http://127.0.0.1:8010",
    repo="/srv/mirror.git",
    build_deadline_seconds=3600,
    testboxes={"vm-icount": TESTBOX},
)
BUILD = OrderFacts(
    attempt=12,
    attempt_state="running",
    order=7,
    order_state="running",
    kind="build",
    build_key="a" * 64,
    tree=3,
    commit="1" * 40,
    kconfig="vm-x86_64",
    compiler="gcc",
    layout=0,
    image_sha256=None,
    testbox=None,
    k=None,
    unit_jobs=[],
)
JOB = {"name": "hackbench-1", "program": "hackbench", "params": {"nr_threads": "4"}, "runs": 3}
BOOT = dataclasses.replace(
    BUILD, kind="boot", image_sha256="b" * 64, testbox="vm-icount", k=2, unit_jobs=[JOB]
)


@pytest.mark.parametrize("facts", [BUILD, BOOT])
def test_order_documents_fit_the_contract_and_carry_their_attempts_token(facts: OrderFacts) -> None:
    document = check_order(order_document(facts, TERMS, b"secret"))
    assert (document["kind"], document["order"], document["attempt"]) == (facts.kind, "o7", "a12")
    assert attempt_of_token(b"secret", document["exchange"]["token"]) == 12


def test_a_boot_order_names_image_testbox_and_perturbation_and_no_repository() -> None:
    document = order_document(BOOT, TERMS, b"secret")
    named = {"commit": "1" * 40, "kconfig": "vm-x86_64", "compiler": "gcc"}
    assert document["kernel"] == {
        "build_key": "a" * 64,
        "image_sha256": "b" * 64,
        "trust": "trusted",
        **named,
    }
    assert (
        document["testbox"],
        document["k"],
        document["unit_jobs"],
        document["deadline_seconds"],
    ) == ("vm-icount", 2, [JOB], boot_limit(TESTBOX, [codec.typed(UnitJob, JOB)]))


def test_a_testbox_that_takes_longer_than_computed_gets_three_times_its_own_time() -> None:
    computed, slow, fast = (
        order_document(dataclasses.replace(BOOT, measured_seconds=seconds), TERMS, b"secret")
        for seconds in (None, 4000.0, 1.0)
    )
    assert computed["deadline_seconds"] < slow["deadline_seconds"]
    assert slow["deadline_seconds"] == limit_of(4000.0)
    assert fast["deadline_seconds"] == computed["deadline_seconds"]


def test_only_a_boot_of_another_purpose_than_the_search_names_its_purpose() -> None:
    # A worker that knows no purposes refuses what it cannot perturb: the field is one that its
    # schema does not have.
    assert "purpose" not in order_document(BOOT, TERMS, b"secret")
    fresh = check_order(
        order_document(dataclasses.replace(BOOT, purpose="gate-2"), TERMS, b"secret")
    )
    assert (fresh["purpose"], fresh["k"]) == ("gate-2", 2)
    for unknown in ({"purpose": "Gate 2"}, {"purposes": "gate"}):
        with pytest.raises(ContractError):
            check_order({**order_document(BOOT, TERMS, b"secret"), **unknown})


def test_a_boot_on_a_testbox_without_a_file_has_no_order() -> None:
    with pytest.raises(ValueError, match="has no file any more"):
        order_document(dataclasses.replace(BOOT, testbox="gone"), TERMS, b"secret")


def test_a_kernel_without_image_cannot_be_booted() -> None:
    with pytest.raises(ValueError, match="no image"):
        order_document(dataclasses.replace(BOOT, image_sha256=None), TERMS, b"secret")


def test_buildbots_results_become_our_words() -> None:
    words = ["success", "success", "failure", "success", "exception", "retry", "cancelled"]
    assert [result_word(code) for code in range(7)] == words
    assert result_word(None) == result_word(99) == "exception"
