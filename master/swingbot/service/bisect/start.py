"""Open a bisection: by hand, or for the strongest swing of a watched branch."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Literal

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.records import Comparison, JobFile, NewBisection, Swing, Tree, Variant
from swingbot.core.plan import swings as plan
from swingbot.core.plan.noise import noise_prior
from swingbot.core.plan.relevance import weight
from swingbot.core.plan.rules import metric_of
from swingbot.service.kernel.variants import resolve_commit, trust_in, variant_of
from swingbot.service.ports import GitError, Lab, RequestError, Transaction
from swingbot.service.watch.resolve_jobs import pick_testboxes, resolve_parts
from swingbot.service.watch.trees import known_tree
from swingbot_jobs.contract.trust import Trust, accepted
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import find_metric


def start_bisection(
    lab: Lab,
    *,
    tree_name: str,
    good: str,
    bad: str,
    job_files: Sequence[JobFile],
    overrides: Mapping[str, str],
    metric: str,
    testbox: str | None,
    unit_job: str | None = None,
    trusted: bool = False,
) -> int:
    """Record the wish to find the commit between `good` and `bad` (in any order) that moved `metric`. Raises RequestError."""
    tree = known_tree(lab, tree_name)
    ends = [resolve_commit(lab, tree, ref) for ref in (good, bad)]
    if not lab.git.is_ancestor(*ends):
        ends.reverse()
    if not lab.git.is_ancestor(*ends) or ends[0] == ends[1]:
        raise RequestError(
            f"{good} and {bad} are not on one line of history: one must be an ancestor of the other"
        )
    with lab.transaction("start bisection") as tx:
        trust = trust_in(
            tx, tree, lab.git.facts(ends[1]), vouched=trusted
        )  # a commit made of a patch has only such ones after it
        boxes = pick_testboxes(
            lab, [testbox] if testbox else _first_for(lab, tree, trust), trust, asked=bool(testbox)
        )
        boxes = _alike(lab, tx, boxes)
        parts = resolve_parts(lab, tx, job_files or tree.job_files, boxes, overrides)
        if len({spec for _, spec in parts}) > 1:
            raise RequestError(
                f"the testboxes of {testbox!r} run the job with different parameters, so their boots are not alike; name one of {', '.join(boxes)}"
            )
        job = _unit_job_of(lab, tx.specs.get(parts[0][1]), metric, unit_job)
        request = json.dumps(
            [tree.id, *ends, tree.kconfig, tree.compiler, *boxes, job.to_json(), metric]
        )
        key = f"asked:{hashlib.sha256(request.encode()).hexdigest()}"
        return open_bisection(
            lab,
            tx,
            tree,
            "asked",
            ends[0],
            ends[1],
            boxes[0],
            job,
            metric,
            key,
            group=boxes,
            vouched=trusted,
        )


def _first_for(lab: Lab, tree: Tree, trust: Trust) -> list[str]:
    """The first of the tree's testboxes that may boot its kernels; its first one if none may, to be refused by name."""
    return [
        box
        for box in tree.testboxes
        if box in lab.testboxes.present and accepted(trust, lab.testboxes.present[box].accepts)
    ][:1] or list(tree.testboxes[:1])


def _alike(lab: Lab, tx: Transaction, boxes: list[str]) -> list[str]:
    """Those of a group that work now; one alone is taken as it is. Raises RequestError if they differ in kind."""
    if len(boxes) == 1:
        return boxes
    states = tx.testboxes.states()
    if len({lab.testboxes.known(box).repeatable for box in boxes}) > 1:
        raise RequestError(
            f"some of {', '.join(boxes)} repeat their results exactly and some do not, so they cannot share a bisection; name one"
        )
    return [box for box in boxes if states.get(box) == "active"] or boxes[:1]


def _unit_job_of(lab: Lab, unit_jobs: Sequence[UnitJob], metric: str, name: str | None) -> UnitJob:
    """The one unit job that gives `metric`."""
    if find_metric(lab.programs, metric) is None:
        known = sorted(m for job in unit_jobs for m in lab.programs[job.program].metrics)
        raise RequestError(
            f"there is no metric {metric!r}; these jobs give {', '.join(dict.fromkeys(known))}"
        )
    fitting = [
        job
        for job in unit_jobs
        if name in (None, job.name) and (metric.startswith(("perf-stat.", f"{job.program}.")))
    ]
    if not fitting:
        raise RequestError(
            f"none of the unit jobs gives {metric!r}; they are {', '.join(job.name for job in unit_jobs)}"
        )
    if len(fitting) > 1:
        raise RequestError(
            f"{len(fitting)} unit jobs give {metric!r}: {', '.join(job.name for job in fitting)}; choose one with --unit-job"
        )
    return fitting[0]


def open_bisection(
    lab: Lab,
    tx: Transaction,
    tree: Tree,
    origin: Literal["asked", "watch"],
    good: str,
    bad: str,
    testbox: str,
    job: UnitJob,
    metric: str,
    key: str,
    series: str | None = None,
    group: Sequence[str] = (),
    vouched: bool = False,
) -> int:
    """Record a bisection of `good..bad` along first parents; one boot runs the one unit job that matters.

    `group`: all testboxes that share its boots, `testbox` the first of them. `series`: on a testbox whose boots are not shared,
    where the boots of its ends are that there are already; None: nowhere.
    """
    try:
        commits = [good, *lab.git.first_parents(good, bad)]
        if not lab.git.is_ancestor(good, bad):
            raise RequestError(f"{good[:12]} is not an ancestor of {bad[:12]}")
        changed = lab.git.paths_along(good, bad)
        points: list[tuple[Variant, float]] = []
        for commit in commits:
            lab.git.keep(commit)
            trust = trust_in(tx, tree, lab.git.facts(commit), vouched=vouched)
            points.append(
                (
                    variant_of(lab, tx, tree, commit, trust=trust),
                    weight(changed.get(commit, ())) if points else 0.0,
                )
            )
    except GitError as error:
        raise RequestError(str(error)) from None
    found = metric_of(lab.programs, metric)
    noise = noise_prior(
        tx.noise.get(testbox, job.name, metric), lab.testboxes.known(testbox).repeatable
    )
    return tx.bisections.add(
        NewBisection(
            tree=tree.id,
            origin=origin,
            good=good,
            bad=bad,
            testbox=testbox,
            spec=tx.specs.add([job]),
            series="" if lab.testboxes.known(testbox).repeatable else series,
            unit_job=job.name,
            metric=metric,
            policy={
                "unit": found.unit,
                "better": found.better,
                "noise": dataclasses.asdict(noise),
                **({"testboxes": list(group)} if len(group) > 1 else {}),
            },
            points=points,
            request_key=key,
        )
    )


def bisect_swings(lab: Lab, tx: Transaction) -> None:
    """For each comparison with open swings and none being bisected: bisect the strongest. The others wait, for the same commit mostly explains them."""
    busy = {swing.comparison for swing in tx.swings.in_state("bisecting")} | set(
        tx.incidents.comparisons_being_attributed()
    )
    waiting = [swing for swing in tx.swings.in_state("open") if swing.comparison not in busy]
    for number in sorted({swing.comparison for swing in waiting}):
        comparison = tx.comparisons.get(number)
        assert comparison is not None
        swings = {(s.testbox, s.unit_job, s.metric): s for s in waiting if s.comparison == number}
        rows = [row for row in tx.comparisons.rows(number) if row.key in swings]
        _bisect(lab, tx, comparison, plan.strongest(rows), swings)


def _bisect(
    lab: Lab,
    tx: Transaction,
    comparison: Comparison,
    row: ComparisonRow,
    swings: Mapping[tuple[str, str, str], Swing],
) -> None:
    """Bisect between the kernels whose pairs proved the swing; these pairs are what it begins with."""
    tree, swing = (
        tx.trees.get(comparison.tree),
        swings[row.key],
    )
    proof = tx.comparisons.get(swing.proof) if swing.proof is not None else None
    ends = proof or comparison
    base, head = tx.variants.get(ends.base), tx.variants.get(ends.head)
    job = next(job for job in tx.specs.get(row.spec) if job.name == row.unit_job)
    series = f"c{proof.id}" if proof is not None else None
    number = open_bisection(
        lab,
        tx,
        tree,
        "watch",
        base.commit,
        head.commit,
        row.testbox,
        job,
        row.metric,
        f"swing:{swing.id}",
        series,
    )
    tx.swings.set_state(swing.id, "bisecting", number)
    if proof is not None:
        last = len(tx.bisections.points(number)) - 1
        for k in range(proof.first_k, proof.first_k + proof.boots):
            for idx in (0, last):
                tx.bisections.add_want(number, idx, k, "history")
