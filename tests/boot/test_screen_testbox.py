"""A night of real boots on an emulated testbox, from the request to the answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swingbot.core.model.records import NewComparison, Order, base_and_head
from swingbot.core.plan.long_screening import plan_screening
from swingbot.service.lab.doctor_testbox import plan_doctor
from swingbot.service.lab.screen_testbox import NightRequest, begin_night
from swingbot.service.ports.anchors import AnchorKernel
from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.file import load_all
from swingbot_jobs.testbox.tuning import load_all as load_tunings
from tests.boot.lab import virtual_lab
from tests.contract.labs import ROOT, Lab
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


def test_a_doctor_measures_what_huge_pages_are_worth_and_names_what_does_not_apply(
    tmp_path: Path, base_kernel: Path
) -> None:
    """Without them memory takes more than twice as long to fault in; a shared host decides whether
    four boots prove it.
    """
    here = virtual_lab(tmp_path, base_kernel, testbox="vm-tcg")
    quiet = load_tunings(ROOT / "workers" / "tuning")["quiet"]
    items = [item.name for item in quiet.items]
    applies = ("huge_pages", "panic")
    tuning = quiet.without([name for name in items if name not in applies])
    plain = load_all(here.site.workers / "testboxes")["vm-tcg"]
    testbox = replace(plain, tuning=tuning, demand=tuning.demand)
    lab = BootingLab(here=here)
    lab.boot_on([testbox])
    with lab.store.transaction() as tx:
        tx.testboxes.sync([(testbox, testbox.to_json())])
        tree = a_tree(tx)
        kernel = a_variant(tx, tree, 1)
        spec = tx.specs.add(testbox.demanded([JOB]))
        tx.comparisons.add(
            NewComparison(
                kind="asked",
                tree=tree.id,
                arms=base_and_head(kernel.id, kernel.id),
                boots=1,
                parts=((testbox.name, spec),),
            )
        )
    with lab.store.transaction() as tx:
        night = plan_doctor(lab.lab.catalogue.testboxes, tx, testbox.name, 8.0)
    assert list(night.items) == ["huge_pages"]
    night = replace(night, plan=replace(night.plan, boots=BOOTS))
    number = begin_night(lab.lab.transaction, lab.lab.catalogue.testboxes, night)
    lab.run()

    answer = lab.store.db.comparisons[number].answer
    assert answer is not None and answer["boots"] == 2 * BOOTS, answer
    (item,) = answer["items"]
    (metric,) = (m for m in item["metrics"] if m["metric"] == "page-fault.per_process_ops")
    print(item["words"], *answer["skipped"], sep="\n")
    level = metric["level_pct"]
    assert item["item"] == "huge_pages" and metric["boots"] == BOOTS
    assert level["low"] < level["value"] < -20.0 and level["value"] < level["high"]
    assert item["boot_seconds"]["low"] < item["boot_seconds"]["high"]
    assert answer["skipped"][0].startswith("governor, turbo, epp")
    assert answer["skipped"][0].endswith(": no frequency driver")
    assert any(why.startswith("panic: it concerns the idle system") for why in answer["skipped"])


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
