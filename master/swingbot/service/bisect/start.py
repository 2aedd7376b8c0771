"""Open a bisection: by hand, or for the strongest swing of a watched branch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from swingbot.core.model.bisection import BisectionTerms, WantedBoot
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.records import Comparison, JobFile, NewBisection, Swing, Tree, Variant
from swingbot.core.plan import swings as plan
from swingbot.core.plan.metric_rules import metric_of
from swingbot.core.plan.noise import noise_prior
from swingbot.core.plan.relevance import of_patch, weight
from swingbot.service.kernel.variants import resolve_commit, trust_in, variant_of
from swingbot.service.ports import GitError, Lab, RequestError, Transaction
from swingbot.service.ports.testboxes import Testboxes
from swingbot.service.watch.resolve_jobs import pick_testboxes, resolve_parts
from swingbot.service.watch.trees import tree_of
from swingbot_jobs.contract.trust import Trust, accepted
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import find_metric


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionRequest:
    """The commit between `good` and `bad` (in any order) that moved `metric` is wanted; job files of the tree where none are given."""

    good: str
    bad: str
    metric: str
    tree: str | None = None  # None: the only one that has both ends
    testbox: str | None = None  # or a group; None: the first of the tree that may boot the kernels
    unit_job: str | None = None  # None: the only one that gives the metric
    job_files: Sequence[JobFile] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)
    trusted: bool = False  # the requester vouches for commits that were made of patches


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedBisection:
    """`good..bad` as it is bisected, once per `key`: its commits, testboxes and unit job are known.

    `series`: on a testbox whose boots are not shared, where the boots of its ends are that there are already; None: nowhere.
    """

    tree: Tree
    origin: Literal["asked", "watch"]
    good: str
    bad: str
    testboxes: Sequence[str]  # all that share its boots
    job: UnitJob
    metric: str
    key: str
    series: str | None = None
    vouched: bool = False
    factors: Mapping[str, float] = field(default_factory=dict)  # of a commit's prior weight


def start_bisection(lab: Lab, request: BisectionRequest) -> int:
    """Record that a bisection is wanted; its number. Raises RequestError."""
    tree = tree_of(lab, request.tree, [request.good, request.bad])
    ends = [resolve_commit(lab, tree, ref) for ref in (request.good, request.bad)]
    if not lab.git.is_ancestor(*ends):
        ends.reverse()
    if not lab.git.is_ancestor(*ends) or ends[0] == ends[1]:
        raise RequestError(
            f"{request.good} and {request.bad} are not on one line of history: one must be an ancestor of the other"
        )
    with lab.transaction("start bisection") as tx:
        # a commit made of a patch has only such ones after it
        trust = trust_in(tx.variants, tree, lab.git.facts(ends[1]), vouched=request.trusted)
        named = request.testbox
        boxes = pick_testboxes(
            lab, [named] if named else _first_for(lab, tree, trust), trust, asked=bool(named)
        )
        boxes = _alike(lab, tx.testboxes, boxes)
        parts = resolve_parts(
            lab, tx.specs, request.job_files or tree.job_files, boxes, request.overrides, trust
        )
        if len({spec for _, spec in parts}) > 1:
            raise RequestError(
                f"the testboxes of {named!r} run the job with different parameters, so their boots are not alike; name one of {', '.join(boxes)}"
            )
        job = _unit_job_of(lab, tx.specs.get(parts[0][1]), request.metric, request.unit_job)
        identity = json.dumps(
            [tree.id, *ends, tree.kconfig, tree.compiler, *boxes, job.to_json(), request.metric]
        )
        resolved = ResolvedBisection(
            tree=tree,
            origin="asked",
            good=ends[0],
            bad=ends[1],
            testboxes=boxes,
            job=job,
            metric=request.metric,
            key=f"asked:{hashlib.sha256(identity.encode()).hexdigest()}",
            vouched=request.trusted,
        )
        return open_bisection(lab, tx, resolved)


def _first_for(lab: Lab, tree: Tree, trust: Trust) -> list[str]:
    """The first of the tree's testboxes that may boot its kernels; its first one if none may, to be refused by name."""
    return [
        box
        for box in tree.testboxes
        if box in lab.testboxes.present and accepted(trust, lab.testboxes.present[box].accepts)
    ][:1] or list(tree.testboxes[:1])


def _alike(lab: Lab, testboxes: Testboxes, boxes: list[str]) -> list[str]:
    """Those of a group that work now; one alone is taken as it is. Raises RequestError if they differ in kind."""
    if len(boxes) == 1:
        return boxes
    states = testboxes.states()
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


def open_bisection(lab: Lab, tx: Transaction, new: ResolvedBisection) -> int:
    """Record a bisection along first parents; one boot runs the one unit job that matters. Raises RequestError."""
    points = _points(lab, tx, new)
    testbox, metric = new.testboxes[0], metric_of(lab.programs, new.metric)
    repeatable = lab.testboxes.known(testbox).repeatable
    noise = noise_prior(tx.noise.get(testbox, new.job.name, new.metric), repeatable)
    return tx.bisections.add(
        NewBisection(
            tree=new.tree.id,
            origin=new.origin,
            good=new.good,
            bad=new.bad,
            testbox=testbox,
            spec=tx.specs.add([new.job]),
            series="" if repeatable else new.series,
            unit_job=new.job.name,
            metric=new.metric,
            terms=BisectionTerms(
                unit=metric.unit,
                better=metric.better,
                noise=noise,
                testboxes=tuple(new.testboxes) if len(new.testboxes) > 1 else (),
            ),
            points=points,
            request_key=new.key,
        )
    )


def _points(lab: Lab, tx: Transaction, new: ResolvedBisection) -> list[tuple[Variant, float]]:
    """The commits of `good..bad` with the weights of their prior; that of `good` is 0."""
    try:
        commits = [new.good, *lab.git.first_parents(new.good, new.bad)]
        if not lab.git.is_ancestor(new.good, new.bad):
            raise RequestError(f"{new.good[:12]} is not an ancestor of {new.bad[:12]}")
        changed = lab.git.paths_along(new.good, new.bad)
        points: list[tuple[Variant, float]] = []
        for commit in commits:
            lab.git.keep(commit)
            trust = trust_in(tx.variants, new.tree, lab.git.facts(commit), vouched=new.vouched)
            points.append(
                (
                    variant_of(lab, tx, new.tree, commit, trust=trust),
                    weight(changed.get(commit, ())) * new.factors.get(commit, 1.0)
                    if points
                    else 0.0,
                )
            )
    except GitError as error:
        raise RequestError(str(error)) from None
    return points


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
    good = _before(lab, base.commit, head.commit)
    job = next(job for job in tx.specs.get(row.spec) if job.name == row.unit_job)
    number = open_bisection(
        lab,
        tx,
        ResolvedBisection(
            tree=tree,
            origin="watch",
            good=good,
            bad=head.commit,
            testboxes=[row.testbox],
            job=job,
            metric=row.metric,
            key=f"swing:{swing.id}",
            series=f"c{proof.id}" if proof is not None else None,
            factors=_factors(tx, comparison),
        ),
    )
    tx.swings.set_state(swing.id, "bisecting", number)
    if proof is not None:
        last = len(tx.bisections.points(number)) - 1
        for k in proof.numbers.ks:
            for idx in (0, last) if good == base.commit else (last,):
                tx.bisections.add_want(number, WantedBoot(idx, k, "history"))


def _before(lab: Lab, base: str, head: str) -> str:
    """`base`; or where the two lines parted, if it is a tip that was rebased away (creep): the change lies after that."""
    try:
        return base if lab.git.is_ancestor(base, head) else lab.git.merge_base(base, head) or base
    except GitError:
        return base


def _factors(tx: Transaction, comparison: Comparison) -> dict[str, float]:
    """Where a tip is that of a rebased branch: what each commit's prior weight is multiplied by, for what the branch had before is not new."""
    branch = tx.patches.branch(comparison.tree)
    head = tx.variants.get(comparison.head).commit
    if all(each.patch.commit != head for each in branch):
        return {}  # it has moved on since
    return {each.patch.commit: of_patch(each.state) for each in branch}
