"""Stage 2 of detection: boot both kernels in pairs until the evidence for or against a suspected
swing suffices.

The pairs are a comparison of their own (kind `prove`). Each boot runs only the unit job of the
swing, as in the bisection that may follow, which starts from these boots. The boots that raised the
alarm are never evidence.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final, Literal

from swingbot.core.bisect.thresholds import SPREAD_PAIRS
from swingbot.core.model.records import Comparison, NewComparison, Swing, base_and_head
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan import swings as plan
from swingbot.core.plan.boot_series import series_of
from swingbot.core.plan.metric_rules import metric_of, rule_of
from swingbot.core.plan.noise import layout_sd, pair_prior
from swingbot.core.plan.screen import boots_wanted, screen_rule
from swingbot.core.stats.compare import compare
from swingbot.core.stats.evidence import (
    Decision,
    EvidenceThresholds,
    PairPrior,
    sequential,
    threshold,
    wanted,
)
from swingbot.core.stats.fact_differences import against
from swingbot.core.table.rows import fact_differences
from swingbot.core.thresholds import (
    MAX_PAIRS,
    MIN_PAIRS,
    MIN_PAIRS_REPEATABLE,
    ROUND_PAIRS,
    ROUND_PAIRS_REPEATABLE,
    SPARE_PAIRS,
)
from swingbot.service.detect.recognise_culprits import Recogniser
from swingbot.service.detect.screen_tips import past_of
from swingbot.service.kernel.images import all_images_of
from swingbot.service.lab.anchors import order_anchor
from swingbot.service.ports import Catalogue, Git, LabSettings, Transaction
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.builds import KernelBuilds
from swingbot.service.ports.specs import Specs
from swingbot.service.ports.variants import Variants
from swingbot.service.result.boots import booted_arm, boots_of
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.definition import Testbox

# A comparison is rebooted until this many boot numbers were discarded. If the facts of a testbox
# still differ then, its rows say so.
RENEWED: Final = 60
_ACCEPTED: Final = ("open", "bisecting", "explained", "not_found")


def prove_swings(git: Git, catalogue: Catalogue, tx: Transaction) -> None:
    """For each comparison with suspected swings and no proof under way, order pairs for the
    strongest swing. The others wait, because one commit usually explains them."""
    recognising = Recogniser(git=git, catalogue=catalogue, tx=tx).recognise()
    suspected = tx.swings.in_state("suspected")
    busy = (
        recognising
        | {s.comparison for s in tx.swings.in_state("open", "bisecting")}
        | {s.comparison for s in suspected if s.proof is not None}
    )
    busy |= set(tx.incidents.comparisons_being_attributed())
    for number in sorted({s.comparison for s in suspected} - busy):
        swings = {(s.testbox, s.unit_job, s.metric): s for s in suspected if s.comparison == number}
        rows = {row.key: row for row in tx.comparisons.rows(number)}
        first = plan.strongest(
            [
                dataclasses.replace(rows[key], change_pct=swing.change_pct)
                for key, swing in swings.items()
            ]
        )
        _open(catalogue.testboxes, tx, swings[first.key], first.spec)


def _open(testboxes: KnownTestboxes, tx: Transaction, swing: Swing, spec: str) -> None:
    comparison = tx.comparisons.get(swing.comparison)
    assert comparison is not None
    job = next(job for job in tx.specs.get(spec) if job.name == swing.unit_job)
    own, repeatable = tx.specs.add([job]), testboxes.known(swing.testbox).repeatable
    # On a repeatable testbox boots are shared. The boots that raised the alarm have the lowest k
    # where they ran the same.
    first_k = comparison.first_k + comparison.boots if repeatable and own == spec else 0
    proof = tx.comparisons.add(
        NewComparison(
            kind="prove",
            tree=comparison.tree,
            arms=base_and_head(
                comparison.base if swing.anchor is None else swing.anchor,
                comparison.head if swing.upto is None else swing.upto,
            ),
            boots=_first_pairs(swing, repeatable),
            parts=[(swing.testbox, own)],
            first_k=first_k,
            request_key=_request_of(swing),
        )
    )
    tx.swings.set_proof(swing.id, proof)


def _first_pairs(swing: Swing, repeatable: bool) -> int:
    if swing.source == "spread":
        return SPREAD_PAIRS[0]
    return MIN_PAIRS_REPEATABLE if repeatable else MIN_PAIRS


def _request_of(swing: Swing) -> str:
    """Return the request key: one proof per swing, or per stretch of the branch that is searched
    for it."""
    if swing.upto is None:
        return f"swing:{swing.id}"
    return f"swing:{swing.id}:{swing.anchor or 'base'}..{swing.upto}"


def extend_comparisons(
    git: Git, catalogue: Catalogue, settings: LabSettings, tx: Transaction
) -> None:
    """Order more boots for completed comparisons without an answer: pairs of a swing, and unclear
    rows of a tip, within a budget."""
    swings = {swing.proof: swing for swing in tx.swings.in_state("suspected")}
    unfinished = tx.orders.unfinished_comparisons()
    for comparison in tx.comparisons.open():
        if comparison.kind not in ("prove", "watch", "still") or comparison.status != "running":
            continue
        if comparison.id in unfinished:
            continue
        orders = tx.orders.wanted(comparison=comparison.id)
        if not orders or _images(tx.variants, tx.builds, comparison) is None:
            continue
        began = min((o.k for o in orders if o.k is not None), default=comparison.first_k)
        if comparison.first_k - began <= RENEWED and _stale(catalogue.testboxes, tx, comparison):
            tx.comparisons.renew(comparison.id, comparison.first_k + comparison.boots)
            continue
        if comparison.kind == "watch":
            boots = _boots_of_tip(catalogue, settings, tx, comparison)
        elif comparison.kind == "still":
            recogniser = Recogniser(git=git, catalogue=catalogue, tx=tx)
            undecided = recogniser.recognition(comparison).answer == "more"
            boots = comparison.boots + 1 if undecided else None
        elif (swing := swings.get(comparison.id)) is not None:
            repeatable = catalogue.testboxes.known(swing.testbox).repeatable
            decision = decide(catalogue, tx, comparison, swing)
            boots = _boots_of_proof(comparison.boots, swing, decision, repeatable=repeatable)
        else:
            continue
        if boots is not None and boots > comparison.boots:
            tx.comparisons.extend(comparison.id, boots)


def _images(variants: Variants, builds: KernelBuilds, comparison: Comparison) -> list[str] | None:
    """Return the image sha256 of base and head; None if one is not built or both are equal."""
    images = all_images_of(
        builds, [variants.get(number) for number in (comparison.base, comparison.head)]
    )
    return images if images is not None and images[0] != images[1] else None


def _stale(testboxes: KnownTestboxes, tx: Transaction, comparison: Comparison) -> bool:
    """Return whether the shared boots of the base come from another state of the testbox
    (microcode, root file system, QEMU) than those of the tip.

    Both kernels are then booted again in pairs, so that changes of the testbox cancel out.
    """
    images = _images(tx.variants, tx.builds, comparison)
    if images is None:
        return False
    shared = [
        (testbox, spec) for testbox, spec in comparison.parts if testboxes.known(testbox).repeatable
    ]
    return any(
        _differ(tx.specs, tx.boots, images, testboxes.known(testbox), spec, comparison)
        for testbox, spec in shared
    )


def _differ(
    specs: Specs,
    boots: Boots,
    images: Sequence[str],
    testbox: Testbox,
    spec: str,
    comparison: Comparison,
) -> bool:
    """Return whether facts differ that must be equal for every job."""
    series, numbers = series_of(testbox, ""), comparison.numbers
    arms = [
        booted_arm(specs, boots, image, testbox.name, spec, series, numbers) for image in images
    ]
    return against(fact_differences(arms[0], arms[1], paired=testbox.repeatable)) is not None


def _boots_of_proof(
    boots: int, swing: Swing, decision: Decision | plan.SpreadDecision, *, repeatable: bool
) -> int | None:
    """Return the boots per side that a proof with `boots` needs next; None if it has enough."""
    most = SPREAD_PAIRS[-1] if swing.source == "spread" else MAX_PAIRS
    if decision.answer != "more" or boots >= most + SPARE_PAIRS:
        return None
    if swing.source == "spread":
        lost = boots - decision.pairs
        return lost + next(pairs for pairs in SPREAD_PAIRS if pairs > decision.pairs)
    return boots + (ROUND_PAIRS_REPEATABLE if repeatable else ROUND_PAIRS)


def _boots_of_tip(
    catalogue: Catalogue, settings: LabSettings, tx: Transaction, comparison: Comparison
) -> int | None:
    """Return the largest number of boots per side that a headline metric needs to settle its row or
    to test an apparent difference; None if none needs more."""
    images, boots = _images(tx.variants, tx.builds, comparison), 0
    assert images is not None
    for testbox, spec in comparison.parts:
        series = series_of(catalogue.testboxes.known(testbox), f"c{comparison.id}")
        sides = [
            boots_of(tx.specs, tx.boots, image, testbox, spec, series, comparison.numbers)[0]
            for image in images
        ]
        for job in tx.specs.get(spec):
            for metric in (
                m for m in catalogue.programs[job.program].metrics.values() if m.headline
            ):
                record = tx.noise.get(testbox, job.name, metric.name)
                rule = rule_of(
                    catalogue.testboxes.known(testbox),
                    metric,
                    job,
                    record,
                    comparison.min_effect_pct,
                )
                base, head = (side.get((job.name, metric.name), []) for side in sides)
                least = math.log1p(rule.min_effect_pct / 100.0)
                past = past_of(
                    catalogue.testboxes,
                    settings,
                    tx,
                    comparison,
                    (testbox, job.name, metric.name),
                    least,
                )
                row = compare(base, head, screen_rule(rule, past))
                tip = [math.fsum(boot.values) / len(boot.values) for boot in head if boot.values]
                boots = max(boots, boots_wanted(row, tip, comparison.boots, past) or 0)
    return boots or None


def decide(
    catalogue: Catalogue, tx: Transaction, proof: Comparison, swing: Swing
) -> Decision | plan.SpreadDecision:
    """Return the decision about `swing` from the pairs of `proof` so far.

    It depends only on the boots, not on when it is called.
    """
    (testbox, spec), images = proof.parts[0], _images(tx.variants, tx.builds, proof)
    (job,) = tx.specs.get(spec)
    if images is None:
        return Decision(
            answer="reject",
            bf=0.0,
            pairs=0,
            mean=0.0,
            reason="the two kernel images are byte-identical",
        )
    series, key = (
        series_of(catalogue.testboxes.known(testbox), f"c{proof.id}"),
        (swing.unit_job, swing.metric),
    )
    sides = [
        boots_of(tx.specs, tx.boots, image, testbox, spec, series, proof.numbers)[0].get(key, [])
        for image in images
    ]
    rule = rule_of(
        catalogue.testboxes.known(testbox), metric_of(catalogue.programs, swing.metric), job
    )
    if swing.source == "spread":
        return plan.decide_spread(sides[0], sides[1], rule.form, wider=swing.direction != "better")
    prior, gate = gate_of(catalogue, tx, swing, job)
    return sequential(
        plan.pair_differences(sides[0], sides[1], rule.form),
        prior,
        gate,
        plan.path_odds(sides[0], sides[1], rule.form, gate.min_effect),
    )


def gate_of(
    catalogue: Catalogue, tx: Transaction, swing: Swing, job: UnitJob
) -> tuple[PairPrior, EvidenceThresholds]:
    """Return the noise prior and the evidence that the swing needs, given the number of benchmark
    metrics of its head."""
    testbox, metric = (
        catalogue.testboxes.known(swing.testbox),
        metric_of(catalogue.programs, swing.metric),
    )
    record = tx.noise.get(swing.testbox, swing.unit_job, swing.metric)
    comparison = tx.comparisons.get(swing.comparison)
    assert comparison is not None
    rule = rule_of(testbox, metric, job, min_effect_pct=comparison.min_effect_pct)
    metrics = sum(row.headline for row in tx.comparisons.rows(swing.comparison))
    accepted = sum(
        s.comparison == swing.comparison and s.proof is not None
        for s in tx.swings.in_state(*_ACCEPTED)
    )
    side: Literal[-1, 1] = 1 if swing.change_pct > 0 else -1
    return pair_prior(record, testbox.repeatable), EvidenceThresholds(
        threshold=threshold(metrics, accepted),
        min_effect=math.log1p(rule.min_effect_pct / 100.0),
        direction=side,
        layout=layout_sd(record, rule.layout, testbox.repeatable),
        min_pairs=MIN_PAIRS_REPEATABLE if testbox.repeatable else MIN_PAIRS,
    )


def weigh_swings(git: Git, catalogue: Catalogue, tx: Transaction) -> None:
    """Decide the suspected swings whose pairs are judged: open (a bisection follows) or refuted."""
    for swing in tx.swings.in_state("suspected"):
        proof = tx.comparisons.get(swing.proof) if swing.proof is not None else None
        if proof is None or proof.status in ("waiting", "running"):
            continue
        if proof.status != "done":
            tx.swings.weigh(
                swing.id,
                "not_found",
                {
                    "answer": "none",
                    "reason": f"c{proof.id}, the comparison of its pairs, is {proof.status}",
                },
            )
            continue
        decision = decide(catalogue, tx, proof, swing)
        (job,) = tx.specs.get(proof.parts[0][1])
        evidence = dataclasses.asdict(decision)
        if isinstance(decision, Decision):
            evidence |= {
                "wanted": wanted(*gate_of(catalogue, tx, swing, job)),
                "bf": min(decision.bf, 1e12),
            }
        if decision.answer == "accept":
            tx.swings.weigh(swing.id, "open", evidence, 100.0 * math.expm1(decision.mean))
        elif not Recogniser(git=git, catalogue=catalogue, tx=tx).another_stretch(swing):
            tx.swings.weigh(swing.id, "refuted", evidence | _why(swing, decision))
            if decision.answer == "reject":
                order_anchor(
                    tx.comparisons, tx.anchors, swing.testbox
                )  # the testbox may have moved


def _why(swing: Swing, decision: Decision | plan.SpreadDecision) -> dict[str, str]:
    """Return the reason of a decision.

    A shift against the history, or a spread, that disappears in pairs is caused by the testbox.
    """
    if swing.source == "spread" and decision.answer == "reject":
        return {
            "reason": "the boots of the testbox spread differently, not those of the kernel:"
            f" {decision.reason}"
        }
    if swing.source == "history" and decision.answer == "reject":
        return {
            "reason": "the testbox moved, not the kernel: pairs of base and tip show no such "
            f"change; {decision.reason}"
        }
    return {
        "reason": decision.reason
        if decision.answer == "reject"
        else f"too few pairs came up; {decision.reason}"
    }
