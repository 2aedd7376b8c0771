"""From a suspicion to a proof: pairs of fresh boots, testboxes that move, creeping branches,
noise records, anchors."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import pytest

from swingbot.core.model.comparison_row import ComparisonRow, Side
from swingbot.core.model.noise import NoiseRecord, Spread
from swingbot.core.model.records import Comparison, JobFile
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.costs import FULL_SECONDS
from swingbot.core.table.layout import Axis
from swingbot.service.detect.screen_tips import screen_tip
from swingbot.service.lab.set_testboxes import quarantine, resume
from swingbot.service.ports import Git, RequestError
from swingbot.service.table.kernels import KernelRequest
from swingbot.service.table.request import TableRequest
from swingbot.service.tick import tick
from swingbot_jobs import codec
from tests.contract.store import world
from tests.fakelinux import FakeCommit
from tests.fakes.loop import JOB, METRIC, plain
from tests.fakes.memory_brain import MemoryBrain
from tests.table_requests import compare, comparing, plan_table, request_table

HOUR = 3600.0


def watch_and_move(brain: MemoryBrain, *made: FakeCommit, **more: Any) -> list[str]:
    brain.watch(brain.base, **more)
    brain.run()
    hashes = brain.commit(*made)
    brain.poll()
    brain.run()
    return hashes


def evidence(brain: MemoryBrain, swing: int = 1) -> Mapping[str, Any]:
    return brain.store.db.swings[swing].evidence


def state_of_testbox(brain: MemoryBrain) -> tuple[str, str]:
    row = brain.store.db.testboxes["vm-icount"]
    return row.state, row.reason or ""


def specs_of(brain: MemoryBrain, comparison: Comparison) -> list[str]:
    """The unit jobs of a comparison."""
    jobs = [brain.store.db.specs[spec] for _, spec in comparison.parts]
    return [job.name for of_part in jobs for job in of_part]


def test_a_swing_is_proven_by_fresh_pairs_which_the_bisection_begins_with(
    brain: MemoryBrain,
) -> None:
    watch_and_move(brain, *plain(3), FakeCommit(speed=90), *plain(3))
    (swing,) = brain.swings
    assert (swing.state, swing.source, evidence(brain)["answer"]) == ("explained", "base", "accept")
    (proof,) = brain.comparisons("prove")
    assert proof.id == swing.proof
    assert proof.first_k == brain.lab.settings.watch_boots  # not the boots that raised the alarm
    assert proof.boots <= 4
    with brain.store.transaction() as tx:
        history = {want.key for want in tx.bisections.wants(1) if want.phase == "history"}
        learnt = [seen for seen in tx.bisections.observations(1) if seen.key in history]
    assert {k for _, k in history} == set(range(proof.first_k, proof.first_k + proof.boots))
    assert len(learnt) == 2 * proof.boots
    noise = codec.plain(brain.bisection().terms)["noise"]  # that it began with
    assert set(noise) >= {"sd_run", "sd_boot", "sd_layout", "certainty"}


def test_of_several_jobs_only_the_one_that_swung_is_booted_for_proof(brain: MemoryBrain) -> None:
    other = JobFile(name="other.yaml", text=JOB.text.replace("128M", "256M"))
    made = watch_and_move(brain, *plain(2), FakeCommit(speed=88), *plain(4), job_files=[JOB, other])
    assert len(brain.headlines(2)) == 2
    (proof,) = brain.comparisons("prove")
    assert len(specs_of(brain, proof)) == 1
    assert (proof.first_k, proof.boots <= 4) == (0, True)
    assert brain.culprit() == made[2]
    # The bisection begins with the pairs, and asks for no boot of an end that they were.
    with brain.store.transaction() as tx:
        assert "history" in {want.phase for want in tx.bisections.wants(1) if want.idx == 0}
    assert {swing.state for swing in brain.swings} == {"explained"}


def test_a_testbox_that_moved_is_no_swing(brain: MemoryBrain) -> None:
    brain.watch(brain.base)
    brain.run()
    brain.fake.level = 0.9
    brain.commit(*plain(2))
    brain.poll()
    brain.run()
    # the base's shared boots are older than the move
    assert [row.verdict for row in brain.headlines(2)] == ["worse"]
    (swing,) = brain.swings
    assert (swing.state, evidence(brain)["answer"]) == ("refuted", "reject")
    assert brain.store.db.bisections == {}
    assert brain.mails == []


def test_an_alarm_that_was_none_makes_the_testbox_boot_its_anchor(brain: MemoryBrain) -> None:
    brain.watch(brain.base)
    for _ in range(3):
        brain.run()
        brain.store.pass_time(HOUR)
    assert {anchor.status for anchor in brain.comparisons("anchor")} == {"done"}
    brain.fake.level = 0.9
    brain.commit(*plain(2))
    brain.poll()
    brain.run()
    assert [swing.state for swing in brain.swings] == ["refuted"]
    assert state_of_testbox(brain)[1].startswith("moved: ")


def test_shared_boots_of_an_older_testbox_are_made_afresh(brain: MemoryBrain) -> None:
    brain.watch(brain.base)
    brain.run()
    brain.fake.level, brain.fake.facts = 0.9, {"qemu_version": "9.2"}
    brain.commit(FakeCommit())
    brain.poll()
    brain.run()
    assert brain.headlines(2)[0].verdict == "same"
    assert brain.comparison(2).first_k == brain.lab.settings.watch_boots
    assert brain.swings == []


def test_an_unclear_row_of_a_tip_is_booted_more_within_the_budget(brain: MemoryBrain) -> None:
    brain.fake.wobble = 0.02
    watch_and_move(brain, FakeCommit(speed=93), testboxes=["vm-tcg"])
    boots = max(tip.boots for tip in brain.comparisons("watch"))
    assert brain.lab.settings.watch_boots < boots <= 12


def test_on_a_noisy_testbox_the_pairs_are_the_bisections_own(brain: MemoryBrain) -> None:
    brain.fake.wobble = 0.004
    made = watch_and_move(brain, *plain(2), FakeCommit(speed=80), *plain(2), testboxes=["vm-tcg"])
    assert brain.bisection().series == f"c{brain.swings[0].proof}"
    assert brain.culprit() == made[2]


def test_compare_says_what_it_can_resolve_once_there_is_a_record(brain: MemoryBrain) -> None:
    brain.fake.origin = "measured"
    base = brain.base
    made = brain.commit(*plain(2))
    brain.watch(base)
    request = comparing(base, made[0], boots=6)
    request_table(brain.lab, request)
    (before,) = plan_table(brain.lab, request).cost.resolves
    assert before.sentence.endswith(": its noise on this testbox is unknown")
    brain.run()
    (after,) = plan_table(brain.lab, request).cost.resolves
    assert "6 boots a side resolve" in after.sentence
    assert after.resolves_pct is not None
    assert after.wanted_pct is not None
    assert (after.needs is not None and after.needs <= 6) == (
        after.resolves_pct <= after.wanted_pct
    )


def test_a_comparison_foresees_a_full_build_where_no_work_tree_stands_and_a_small_one_after(
    brain: MemoryBrain,
) -> None:
    brain.fake.origin = "measured"
    base = brain.base
    first, second = brain.commit(*plain(2))
    brain.watch(base)

    def asked(old: str, new: str) -> list[float]:
        number = compare(brain.lab, old, new)
        db = brain.store.db
        keys = [db.variants[arm.variant].build_key for arm in brain.comparison(number).arms]
        with brain.store.transaction() as tx:
            found = tx.builds.forecasts(keys)
        return [found[key] for key in keys if key not in db.builds]

    full, step = asked(base, first)
    assert full == FULL_SECONDS
    assert step < 0.1 * FULL_SECONDS
    brain.run()
    (third,) = brain.commit(FakeCommit())
    brain.poll()
    (after,) = asked(second, third)
    assert after < 0.1 * FULL_SECONDS


def test_builds_that_the_loop_orders_are_foreseen(brain: MemoryBrain) -> None:
    brain.watch(brain.base)
    tick(brain.lab)
    with brain.store.transaction() as tx:
        keys = {order.build_key for order in tx.orders.open() if order.kind == "build"}
        assert keys
        assert tx.builds.forecasts(keys).keys() == keys
        assert FULL_SECONDS in tx.builds.forecasts(keys).values()


def test_an_idle_testbox_boots_its_anchor_and_one_that_moved_is_quarantined_until_it_is_well(
    brain: MemoryBrain,
) -> None:
    watch_and_move(brain, FakeCommit())

    def anchor() -> Comparison:
        brain.store.pass_time(HOUR)
        brain.run()
        return brain.comparisons("anchor")[-1]

    for _ in range(3):
        assert anchor().status == "done"
    assert state_of_testbox(brain) == ("active", "")
    brain.fake.level = 0.9
    sick = anchor()
    assert (sick.reason or "").startswith("moved: ")
    state, reason = state_of_testbox(brain)
    assert state == "quarantined"
    assert f"c{sick.id}" in reason
    brain.commit(FakeCommit())
    brain.poll()
    brain.rounds(4)
    with brain.store.transaction() as tx:
        waiting = [order for order in tx.orders.open() if order.kind == "boot"]
    assert {order.state for order in waiting} >= {"ready"}
    brain.fake.level = 1.0
    brain.store.pass_time(HOUR)
    brain.run()
    assert state_of_testbox(brain) == ("active", "")


def test_an_operator_takes_a_testbox_out_and_lets_it_work_again(brain: MemoryBrain) -> None:
    quarantine(brain.lab.transaction, "vm-icount", "smells of smoke")
    base = brain.base
    brain.commit(FakeCommit())
    brain.watch(base)
    brain.rounds(4)
    assert brain.booted == []
    resume(brain.lab.transaction, "vm-icount")
    brain.run()
    assert brain.booted
    with pytest.raises(RequestError, match="testbox 'toaster' does not exist; choose from"):
        resume(brain.lab.transaction, "toaster")


@pytest.mark.parametrize(
    ("spread", "verdict", "words"),
    [(None, "unclear", "in 3.1 %"), (0.01, "worse", ""), (0.12, "unclear", "noise record")],
)
def test_the_noise_record_says_what_three_boots_on_a_noisy_testbox_prove(
    brain: MemoryBrain, spread: float | None, verdict: str, words: str
) -> None:
    """-20 %: two modes that spread boots by 12 % explain it, those of 1 % do not."""
    brain.fake.wobble = 0.003
    base = brain.base
    same, head = brain.commit(FakeCommit(), FakeCommit(speed=80))
    brain.watch(base, testboxes=["vm-tcg"])
    request = comparing(base, head, boots=3)
    before = compare(brain.lab, base, same, boots=3)
    brain.run()
    (row,) = brain.headlines(before)
    if spread is not None:
        record = NoiseRecord(boot_mean=Spread(sd=spread, df=30.0), boots=45)
        through = max(brain.store.db.boots)  # a record is made of boots
        with brain.store.transaction() as tx:
            tx.noise.put("vm-tcg", row.unit_job, METRIC, record, through=through)
        (planned,) = plan_table(brain.lab, request).cost.resolves
        assert planned.resolves_pct is not None
        assert planned.resolves_pct > 200 * spread  # 2.7 spreads and more
    number = request_table(brain.lab, request).number
    brain.run()
    assert {row.verdict for row in brain.headlines(number)} == {verdict}
    assert all(words in (row.reason or "") for row in brain.headlines(number))


# --- tips ----------------------------------------------------------------------------------------


class _Line:
    """A history without branches."""

    def is_ancestor(self, old: str, new: str) -> bool:
        return True


def side(boots: Sequence[float]) -> Side:
    mean, sd = float(np.mean(boots)), float(np.std(boots, ddof=1))
    return Side(boots=len(boots), runs=3 * len(boots), mean=mean, stddev=sd)


def judged(brain: MemoryBrain, tips: Sequence[Sequence[float]], *, repeatable: bool) -> list[int]:
    """A branch whose tips, oldest first, measured these means of boots, as a round finds it when
    it has judged the last one; the variants of the tips."""
    with brain.store.transaction() as tx:
        lab = world.a_lab(tx, len(tips) + 1)
        for n, boots in enumerate(tips):
            arms = {"base": lab.kernels[n].id, "head": lab.kernels[n + 1].id}
            number = world.a_comparison(tx, lab, kind="watch", **arms)
            row = dataclasses.replace(
                world.a_row(pct=0.0),
                verdict="same",
                headline=True,
                min_effect_pct=4.0,
                base=side(tips[max(0, n - 1)]),
                head=side(boots),
            )
            tx.comparisons.replace_rows(number, [(lab.spec, row)])
            tx.comparisons.set_status(number, "done")
        comparison = tx.comparisons.get(number)
        assert comparison is not None
        testbox = world.a_testbox(repeatable=repeatable)
        catalogue = dataclasses.replace(
            brain.lab.catalogue, testboxes=KnownTestboxes(present={testbox.name: testbox})
        )
        means = {row.key: list(tips[-1])}
        git = cast(Git, _Line())  # ancestry alone
        screen_tip(git, catalogue, brain.lab.settings, tx, comparison, means)
    return [kernel.id for kernel in lab.kernels[1:]]


def test_small_steps_that_add_up_are_suspected_against_an_older_tip(brain: MemoryBrain) -> None:
    rng = np.random.default_rng(2)
    levels = [1000.0 * math.exp(-0.0025 * n + rng.normal(0.0, 0.002)) for n in range(40)]
    judged(brain, [[level] * 3 for level in levels], repeatable=True)
    (swing,) = brain.swings
    assert (swing.source, swing.state) == ("creep", "suspected")
    assert swing.change_pct < -4


QUIET, NOISY = 40, 12  # tips before boots spread further, and from there on


def spreading(noisy: int) -> list[list[float]]:
    """Tips with three boots each, the last `noisy` of them with four times the spread."""
    rng = np.random.default_rng(8)
    sds = [0.01] * QUIET + [0.04] * noisy
    return [(1000.0 * np.exp(rng.normal(0.0, sd, 3))).tolist() for sd in sds]


def test_tips_whose_boots_spread_further_are_suspected(brain: MemoryBrain) -> None:
    tips = judged(brain, spreading(NOISY), repeatable=False)
    (swing,) = brain.swings
    assert (swing.source, swing.state, swing.direction) == ("spread", "suspected", "worse")
    assert "times the spread between boots in the last" in evidence(brain)["alarm"]
    assert tips.index(swing.anchor or 0) < QUIET  # its boots did not spread further yet


def test_tips_that_spread_alike_are_not_suspected(brain: MemoryBrain) -> None:
    judged(brain, spreading(0), repeatable=False)
    assert brain.swings == []


def suspected(brain: MemoryBrain, noise: int) -> str:
    """A branch of three commits, the second of which multiplies the spread between boots by
    `noise`, and an alarm about it; gives that commit."""
    brain.fake.wobble, brain.fake.steady = 0.01, True
    brain.watch(brain.base, testboxes=["vm-tcg"])
    brain.run()
    brain.commit(FakeCommit())
    (brain.repo / "later").write_text(json.dumps({"noise": noise}))  # part of the next commit
    culprit, _ = brain.commit(*plain(2))
    brain.poll()
    brain.run()
    assert brain.swings == []
    (row,) = brain.headlines(2)
    testbox, unit_job, metric = row.key
    with brain.store.transaction() as tx:
        tx.swings.add(
            world.new_swing(
                2,
                testbox=testbox,
                unit_job=unit_job,
                metric=metric,
                change_pct=0.1,
                source="spread",
                anchor=brain.comparison(2).base,
                reason="5 times the spread between boots in the last 8 tips",
            )
        )
    brain.run()
    return culprit


def test_a_commit_that_multiplies_the_spread_between_boots_is_named(brain: MemoryBrain) -> None:
    culprit = suspected(brain, 8)
    (swing,) = brain.swings
    found = evidence(brain)
    assert (swing.state, found["answer"]) == ("explained", "accept"), brain.conclusion()
    assert found["spread_ratio"] > 2
    assert "times the spread between boots" in found["reason"]
    assert brain.culprit() == culprit
    assert brain.conclusion()["spread_ratio"] > 2
    (mail,) = [report for report in brain.reports if report.kind == "first"]
    assert "times the spread between boots" in mail.subject
    assert mail.state == "held"  # the gates measure levels, so a person reads it


def test_pairs_refute_a_spread_that_was_only_the_testbox(brain: MemoryBrain) -> None:
    suspected(brain, 1)
    assert [swing.state for swing in brain.swings] == ["refuted"]
    found = evidence(brain)
    assert (found["answer"], found["pairs"]) == ("reject", 32)
    assert "not those of the kernel" in found["reason"]
    assert brain.store.db.bisections == {}


# --- small effects --------------------------------------------------------------------------------


def small_change(
    brain: MemoryBrain, base: str, head: str, boots: int = 3, **more: Any
) -> ComparisonRow:
    """The row of `head` against `base`, of which it has 99.7 % of the speed."""
    number = request_table(brain.lab, comparing(base, head, boots=boots, **more)).number
    brain.run()
    (row,) = brain.headlines(number)
    assert row.change_pct == pytest.approx(-0.3, abs=0.01)
    return row


def measure_layouts(brain: MemoryBrain, commit: str) -> None:
    """A table of one kernel in five layouts."""
    axis = Axis(name="layout", values=tuple((f"layout{n}", str(n)) for n in range(5)))
    kernels = KernelRequest(base=commit, rows=[])
    request_table(brain.lab, TableRequest(kernels=kernels, tree="fake", axes=[axis], boots=3))
    brain.run()
    images = {boot.image for boot in brain.store.db.boots.values()}
    assert len(images) >= 5


def test_a_change_below_the_minimum_of_the_program_is_claimed_once_layouts_are_measured(
    brain: MemoryBrain,
) -> None:
    brain.fake.origin = "measured"
    base = brain.base
    (head,) = brain.commit(FakeCommit(speed=99.7))
    brain.watch(base)
    brain.run()
    assert small_change(brain, base, head).verdict == "same"
    before = small_change(brain, base, head, min_effect_pct=0.2)
    assert (before.verdict, before.min_effect_pct) == ("unclear", 0.2)
    assert before.layout is not None and before.layout.assumed
    assert "its layout spread is assumed" in (before.reason or "")

    request = comparing(base, head, boots=3, min_effect_pct=0.2)
    (planned,) = plan_table(brain.lab, request).cost.resolves
    assert (planned.wanted_pct, planned.needs, planned.layout_assumed) == (0.2, None, True)
    assert "0.2 % is out of reach here; the spread between layouts is assumed" in planned.sentence

    measure_layouts(brain, base)
    (planned,) = plan_table(brain.lab, request).cost.resolves
    assert planned.needs is not None and not planned.layout_assumed
    assert planned.needs_boots == 2 * planned.needs
    after = small_change(brain, base, head, min_effect_pct=0.21)
    assert (after.verdict, after.min_effect_pct) == ("worse", 0.21)
    assert after.layout is not None and after.layout.df is not None
    low, high = after.interval_pct or (0.0, 0.0)
    assert low < -0.3 < high and high - low < 0.15
    assert small_change(brain, base, head, boots=4).verdict == "same"


def test_a_tree_states_the_smallest_change_of_interest_for_all_that_it_measures(
    brain: MemoryBrain,
) -> None:
    brain.fake.origin = "measured"
    base = brain.base
    brain.watch(base, min_effect_pct=0.2)
    measure_layouts(brain, base)
    (head,) = brain.commit(FakeCommit(speed=99.7))
    brain.poll()
    brain.run()
    assert small_change(brain, base, head, boots=4).verdict == "worse"
    (swing,) = brain.swings
    assert (evidence(brain)["answer"], swing.source) == ("accept", "base")
    assert brain.bisection().terms.min_effect_pct == 0.2
    own = small_change(brain, base, head, min_effect_pct=0.5)  # the request's goes before it
    assert (own.verdict, own.min_effect_pct) == ("same", 0.5)


@pytest.mark.parametrize("pct", [0.0, -1.0, math.nan, math.inf, 101.0])
def test_a_minimum_effect_that_is_no_percentage_is_refused(brain: MemoryBrain, pct: float) -> None:
    base = brain.base
    (head,) = brain.commit(FakeCommit(speed=90))
    with pytest.raises(RequestError, match="must be 0.01 to 100 percent"):
        brain.watch(base, min_effect_pct=pct)
    brain.watch(base)
    with pytest.raises(RequestError, match="must be 0.01 to 100 percent"):
        plan_table(brain.lab, comparing(base, head, min_effect_pct=pct))
