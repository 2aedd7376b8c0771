"""A night of real boots on an emulated testbox, from the request to the answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swingbot.core.model.records import Order
from swingbot.core.plan.long_screening import plan_screening
from swingbot.service.lab.screen_testbox import NightRequest, begin_night
from swingbot.service.ports.anchors import AnchorKernel
from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.file import load_all
from tests.boot.lab import virtual_lab
from tests.contract.labs import Lab
from tests.contract.store.world import a_tree, a_variant
from tests.fakes.memory_lab import MemoryLab

BOOTS = 4
JOB = UnitJob(
    name="page-fault-process-1",
    program="page-fault",
    params={"mode": "process", "nr_task": "1", "cycles": "1", "size": "33554432"},
    runs=3,
)


@dataclass
class BootingLab(MemoryLab):
    """Boots are real; kernels are not built, and the store is in memory."""

    here: Lab | None = None

    def _boot(self, order: Order) -> dict[str, Any]:
        assert self.here is not None
        jobs = [codec.plain(job) for job in self.store.db.specs[order.spec or ""]]
        outcome = self.here.boot(jobs, k=order.k, purpose=order.purpose)
        results = self.artifacts.put((self.here.out / "results.tar").read_bytes())
        return {**outcome, "files": {"results.tar": results}}


def test_a_few_boots_of_a_night_give_an_answer_and_a_noise_record(
    tmp_path: Path, base_kernel: Path
) -> None:
    here = virtual_lab(tmp_path, base_kernel, testbox="vm-tcg")
    testbox = load_all(here.site.workers / "testboxes")["vm-tcg"]
    lab = BootingLab(here=here)
    lab.boot_on([testbox])
    with lab.store.transaction() as tx:
        tx.testboxes.sync([(testbox, testbox.to_json())])
        tree = a_tree(tx)
        kernel = a_variant(tx, tree, 1)
        spec = tx.specs.add([JOB])
    night = NightRequest(
        testbox=testbox.name,
        kernel=AnchorKernel(tree.id, kernel.id, spec),
        commit=kernel.commit,
        build_key=kernel.build_key,
        plan=replace(plan_screening(testbox, [JOB], 8.0), boots=BOOTS),
    )
    number = begin_night(lab.lab.transaction, lab.lab.catalogue.testboxes, night)
    assert begin_night(lab.lab.transaction, lab.lab.catalogue.testboxes, night) == number
    began = time.monotonic()
    lab.run()
    print(f"{BOOTS} boots in {time.monotonic() - began:.0f} s")

    row = lab.store.db.comparisons[number]
    assert row.comparison.status == "done" and row.answer is not None
    assert row.answer["boots"] == BOOTS
    (metric,) = (m for m in row.answer["metrics"] if m["metric"] == "page-fault.per_process_ops")
    assert metric["boots"] == BOOTS and metric["noise_pct"] > 0
    assert "% of page-fault.per_process_ops with 5 boots a side" in metric["words"]
    assert metric["measured"] == ("warm-up",)  # four boots say nothing about drift and modes
    print(metric["words"])
    with lab.store.transaction() as tx:
        record = tx.noise.get(testbox.name, JOB.name, "page-fault.per_process_ops")
        assert record is not None and record.boots == BOOTS
