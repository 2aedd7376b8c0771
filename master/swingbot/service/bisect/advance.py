"""Advance each bisection by one step: record new observations, decide, and order the next boots.

A step's requests (`bisection_want`) and their orders are recorded in one transaction, so a crash
at any line loses nothing and orders nothing twice. The belief is recomputed from the observations
each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from swingbot.core.bisect.decide.step import step
from swingbot.core.bisect.posterior.belief import belief as believe
from swingbot.core.bisect.posterior.belief import belief_json
from swingbot.core.bisect.state import (
    Action,
    Belief,
    BisectionState,
    Conclude,
    Conclusion,
    Measure,
    PointState,
)
from swingbot.core.bisect.tell.journal import canonical
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.bisection import Observation, WantedBoot
from swingbot.core.model.noise import NoisePrior
from swingbot.core.model.records import (
    UNBUILT,
    Bisection,
    BootNumbers,
    BootRecord,
    KernelBuild,
    Variant,
)
from swingbot.core.model.statuses import BisectionEnd
from swingbot.core.plan.metric_rules import metric_of
from swingbot.core.plan.noise import noise_prior
from swingbot.service.bisect.boot_keys import boot_key, order_boot
from swingbot.service.bisect.build_ahead import build_ahead
from swingbot.service.bisect.enter_merges import NAMED, enter_merges, settle
from swingbot.service.bisect.hand_over import hand_over
from swingbot.service.bisect.journal import note_step
from swingbot.service.bisect.weigh_points import Weighed, weigh_points
from swingbot.service.faults import Faults
from swingbot.service.incident.keep import note_culprit
from swingbot.service.kernel.foresee_boots import usual_boot_seconds
from swingbot.service.kernel.variants import in_layout
from swingbot.service.ports import Catalogue, Git, Lab, LabSettings, Tools, Transaction
from swingbot.service.ports.bisections import BisectionPoint, Bisections
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.builds import KernelBuilds
from swingbot_jobs.contract.kconfig import Kconfigs


def advance_bisections(lab: Lab, faults: Faults) -> None:
    """Advance every running bisection by one step, each in its own transaction."""
    with lab.transaction("find bisections") as tx:
        running = tx.bisections.running()
    for number in running:
        with faults.of(f"bisection b{number}"), lab.transaction("advance bisection") as tx:
            bisection = tx.bisections.get(number)
            if bisection is not None and bisection.status == "running":
                advance_bisection(lab.tools, lab.catalogue, lab.settings, tx, bisection)


def advance_bisection(
    tools: Tools, catalogue: Catalogue, settings: LabSettings, tx: Transaction, bisection: Bisection
) -> None:
    points = tx.bisections.points(bisection.id)
    variants = [variant for variant, _, _ in points]
    builds = tx.builds.by_key([variant.build_key for variant in variants])
    lost = _observe(catalogue.kconfigs, tx, bisection, variants, builds)
    if lost is not None:
        why = (
            f"the lab could not measure a kernel: {lost}; restart the bisection when the lab "
            "works again"
        )
        _end(tx.builds, tx.bisections, bisection, points, "failed", None, why)
        settle(tools.git, tx, bisection.id)
        return
    state = canonical(state_of(tools, catalogue, tx, bisection, points, builds))
    policy = policy_of(settings, bisection)
    action = step(state, policy)
    note_step(tx.steering, bisection.id, state, policy, action)
    known = _remember_belief(tx.bisections, bisection, state, policy, action)
    if isinstance(action, Conclude):
        conclusion = action.conclusion
        _end(
            tx.builds,
            tx.bisections,
            bisection,
            points,
            conclusion.kind,
            conclusion,
            conclusion.reason,
        )
        named = [points[culprit.idx][0] for culprit in conclusion.culprits]
        _enter(tools.git, catalogue, tx, bisection, named if conclusion.kind in NAMED else [])
    elif isinstance(action, Measure):
        for request in action.requests:
            tx.bisections.add_want(bisection.id, request)
            order_boot(catalogue.kconfigs, tx, bisection, variants[request.idx], request)
    else:
        build_ahead(catalogue.testboxes, tx.orders, bisection, variants, state, known)
    if not isinstance(action, Conclude):
        hand_over(catalogue, settings, tx, bisection, variants)


def policy_of(settings: LabSettings, bisection: Bisection) -> Policy:
    """Return the policy from the settings, with the boot limits that a person raised for this
    bisection."""
    terms = bisection.terms
    limits = {"max_boots": terms.max_boots, "max_end_boots": terms.max_end_boots}
    return replace(
        Policy(confidence=settings.confidence, max_boots=settings.max_boots),
        **{name: boots for name, boots in limits.items() if boots is not None},
    )


def noise_of(bisection: Bisection, paired: bool) -> NoisePrior:
    """Return the noise that was expected when the bisection started."""
    return bisection.terms.noise or noise_prior(None, paired)


def _observe(
    kconfigs: Kconfigs,
    tx: Transaction,
    bisection: Bisection,
    variants: Sequence[Variant],
    builds: Mapping[str, KernelBuild],
) -> str | None:
    """Record completed boots and failed builds as observations.

    Returns the reason if an order failed for infrastructure reasons, else None.
    """
    seen = {o.key for o in tx.bisections.observations(bisection.id)}
    orders = {order.key: order for order in tx.orders.wanted(bisection=bisection.id)}
    for request in tx.bisections.wants(bisection.id):
        if request.key in seen:
            continue
        variant = in_layout(kconfigs, tx.trees, tx.variants, variants[request.idx], request.layout)
        build = (tx.builds.by_key([variant.build_key]) if request.layout else builds).get(
            variant.build_key
        )
        if build is not None and build.image_sha256 is None:
            tx.bisections.add_observation(bisection.id, *request.key, None, (), build.trouble)
            continue
        boots = (
            tx.boots.find(
                build.image_sha256,
                bisection.testboxes[request.testbox],
                bisection.spec,
                bisection.series,
                BootNumbers([request.k]),
            )
            if build and build.image_sha256
            else []
        )
        if boots:
            _learn(tx.boots, tx.bisections, bisection, request, boots[0])
            continue
        order = orders.get(str(boot_key(bisection, variant, request.k, request.testbox)))
        if order is not None and order.state == "failed":
            return order.reason or "an order was abandoned"
    return None


def _learn(
    boots: Boots,
    bisections: Bisections,
    bisection: Bisection,
    request: WantedBoot,
    boot: BootRecord,
) -> None:
    if boot.outcome != "up":
        bisections.add_observation(bisection.id, *request.key, boot.id, (), boot.trouble)
        return
    values = boots.values(boot.id).get((bisection.unit_job, bisection.metric), [])
    problems = boots.problems(boot.id, bisection.unit_job)
    bisections.add_observation(
        bisection.id,
        *request.key,
        boot.id,
        values,
        None if values else (problems[0] if problems else f"no run reported {bisection.metric}"),
    )


def state_of(
    tools: Tools,
    catalogue: Catalogue,
    tx: Transaction,
    bisection: Bisection,
    points: Sequence[BisectionPoint],
    builds: Mapping[str, KernelBuild],
) -> BisectionState:
    """Load everything that the next step depends on from stored facts."""
    testbox = catalogue.testboxes.known(bisection.testbox)
    metric = metric_of(catalogue.programs, bisection.metric)
    job = tx.specs.get(bisection.spec)[0]
    observed = tx.bisections.observations(bisection.id)
    seen = {o.key for o in observed}
    return BisectionState(
        points=tuple(
            _points(
                points,
                builds,
                weigh_points(
                    tools, tx.builds, [(variant, weight) for variant, weight, _ in points]
                ),
            )
        ),
        observations=tuple(observed),
        in_flight=tuple(
            request for request in tx.bisections.wants(bisection.id) if request.key not in seen
        ),
        testboxes=len(bisection.testboxes),
        layouts=True,  # the same worker builds all layouts
        paired=testbox.repeatable,
        better=metric.better,
        min_effect_pct=bisection.terms.min_effect_pct or metric.min_effect(job.params),
        noise=noise_of(bisection, testbox.repeatable),
        boot_cost_seconds=usual_boot_seconds(tx.boots, tx.specs, testbox, bisection.spec),
    )


def _points(
    points: Sequence[BisectionPoint],
    builds: Mapping[str, KernelBuild],
    weighed: Weighed,
) -> list[PointState]:
    """Return the points with the state of their kernels.

    A commit whose image equals its parent's cannot be the culprit and gets weight 0.
    """
    first_with: dict[str, int] = {}
    states: list[PointState] = []
    previous: str | None = None
    for idx, (variant, _, skipped) in enumerate(points):
        build = builds.get(variant.build_key)
        image = build.image_sha256 if build else None
        same_as = first_with.setdefault(image, idx) if image else None
        if build is not None and image is None:
            skipped = skipped or build.trouble
        states.append(
            PointState(
                idx=idx,
                weight=0.0 if image is not None and image == previous else weighed.weights[idx],
                build_cost_seconds=0.0 if build else weighed.build_seconds[idx],
                built=image is not None,
                skipped=skipped,
                same_as=same_as if same_as != idx else None,
            )
        )
        previous = image
    return states


def _remember_belief(
    bisections: Bisections,
    bisection: Bisection,
    state: BisectionState,
    policy: Policy,
    action: Action,
) -> Belief:
    known = believe(state, policy)
    bisections.set_belief(bisection.id, belief_json(known, state, policy, action))
    return known


def _end(
    builds: KernelBuilds,
    bisections: Bisections,
    bisection: Bisection,
    points: Sequence[BisectionPoint],
    status: BisectionEnd,
    conclusion: Conclusion | None,
    reason: str,
) -> None:
    """Record the conclusion (docs/json.md) and the reason."""
    observed = bisections.observations(bisection.id)
    built = builds.by_key([points[idx][0].build_key for idx in {o.idx for o in observed}])
    bisections.conclude(
        bisection.id,
        status,
        _words(bisection, points, status, conclusion, observed, built),
        reason,
    )


def _enter(
    git: Git, catalogue: Catalogue, tx: Transaction, bisection: Bisection, named: Sequence[Variant]
) -> None:
    """Note each named culprit as an incident, or search the branches that it merged."""
    merges = enter_merges(git, catalogue, tx, bisection, named)
    for variant in named:
        if variant not in merges:
            note_culprit(git, tx.trees, tx.sightings, tx.incidents, bisection, variant)
    settle(git, tx, bisection.id)


def _words(
    bisection: Bisection,
    points: Sequence[BisectionPoint],
    status: BisectionEnd,
    conclusion: Conclusion | None,
    observed: Sequence[Observation],
    builds: Mapping[str, KernelBuild],
) -> dict[str, Any]:
    def named(idx: int) -> dict[str, str]:
        return {"commit": points[idx][0].commit, "subject": points[idx][0].subject}

    culprits = [
        {
            **named(c.idx),
            "probability": c.probability,
            "change_pct": c.change_pct,
            "interval_pct": c.interval_pct,
            "parent": points[c.parent_idx][0].commit,
        }
        for c in (conclusion.culprits if conclusion else ())
    ]
    return {
        "status": status,
        "culprit": named(conclusion.culprits[0].idx)
        if status == "culprit" and conclusion and conclusion.culprits
        else None,
        "culprits": culprits,
        "suspect": {
            **named(conclusion.suspect),
            "probability": conclusion.probability,
            "settled_by": conclusion.settled_by,
        }
        if conclusion and conclusion.suspect is not None
        else None,
        "members": [named(idx) for idx in (conclusion.members if conclusion else ())],
        "probability": conclusion.probability if conclusion else None,
        "change_pct": conclusion.change_pct if conclusion else None,
        "interval_pct": list(conclusion.interval_pct)
        if conclusion and conclusion.interval_pct
        else None,
        "spread_ratio": conclusion.spread_ratio if conclusion else None,
        "boots": len(
            {
                (points[o.idx][0].build_key, o.k)
                for o in observed
                if not (o.skip or "").startswith(UNBUILT)
            }
        ),
        "kernels": len({o.idx for o in observed}),
        "builds": sum(not build.cached for build in builds.values()),
        "build_seconds": sum(build.seconds for build in builds.values()),
        "candidates": [
            {**named(c.idx), "probability": c.probability, "state": c.state}
            for c in (conclusion.candidates if conclusion else ())
        ],
    }
