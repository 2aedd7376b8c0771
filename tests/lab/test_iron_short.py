"""A bare-metal testbox carries out orders and recovers: the short form, part of `make test`."""

from __future__ import annotations

import pytest

from swingbot_jobs.reading.parse import read_results
from tests.contract.labs import a_job
from tests.lab.iron import Iron

pytestmark = pytest.mark.timeout(1800)


def test_an_order_is_run_by_kexec_and_the_testbox_is_home_again(testbox: Iron) -> None:
    before = testbox.machine.boot_id()
    outcome = testbox.boot(a_job("prints", runs=2, word="7"), a_job("fails"))
    assert (outcome["status"], outcome["reason"]) == ("up", None), testbox.log()
    assert [run["status"] for run in outcome["runs"]] == ["ok", "ok", "failed"]
    assert (
        read_results(testbox.out / "results.tar").runs["prints-job", 1]["stdout"] == "result: 7\n"
    )
    facts = outcome["facts"]
    assert (facts["nr_cpu"], facts["entered_by"]) == (2, "kexec")
    assert facts["kernel_release"] != facts["idle_release"]
    assert [phase for phase, _ in testbox.phases] == ["booting", "running", "returning", "idle"]
    assert testbox.machine.boot_id() != before
    assert "swingbot=" not in testbox.machine.ssh("cat /proc/cmdline")


def test_a_panic_is_a_result_and_the_testbox_is_home_again(testbox: Iron) -> None:
    outcome = testbox.boot(a_job("panics"))
    assert outcome["status"] == "panicked", testbox.log()
    assert outcome["reason"].startswith("Kernel panic - not syncing: Out of memory")
    assert testbox.phases[-1][0] == "idle"
    assert "swingbot=" not in testbox.machine.ssh("cat /proc/cmdline")
