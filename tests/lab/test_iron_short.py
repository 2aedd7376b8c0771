"""A box of iron goes through orders and comes back: the short form that is part of `make test`."""

from __future__ import annotations

import pytest

from swingbot_jobs.reading.parse import read_results
from tests.contract.labs import a_job
from tests.lab.iron import Iron

pytestmark = pytest.mark.timeout(1800)


def test_an_order_is_run_by_kexec_and_the_box_is_home_again(box: Iron) -> None:
    before = box.machine.boot_id()
    outcome = box.boot(a_job("prints", runs=2, word="7"), a_job("fails"))
    assert (outcome["status"], outcome["reason"]) == ("up", None), box.log()
    assert [run["status"] for run in outcome["runs"]] == ["ok", "ok", "failed"]
    assert read_results(box.out / "results.tar").runs["prints-job", 1]["stdout"] == "result: 7\n"
    facts = outcome["facts"]
    assert (facts["nr_cpu"], facts["entered_by"]) == (2, "kexec")
    assert facts["kernel_release"] != facts["idle_release"]
    assert [phase for phase, _ in box.phases] == ["booting", "running", "returning", "idle"]
    assert box.machine.boot_id() != before
    assert "swingbot=" not in box.machine.ssh("cat /proc/cmdline")


def test_a_panic_is_a_result_and_the_box_is_home_again(box: Iron) -> None:
    outcome = box.boot(a_job("panics"))
    assert outcome["status"] == "panicked", box.log()
    assert outcome["reason"].startswith("Kernel panic - not syncing: Out of memory")
    assert box.phases[-1][0] == "idle"
    assert "swingbot=" not in box.machine.ssh("cat /proc/cmdline")
