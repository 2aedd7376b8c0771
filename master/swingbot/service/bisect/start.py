"""Open a bisection: a requested one, or one for the strongest swing of a watched branch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from swingbot.core.model.bisection import BisectionTerms, WantedBoot
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.records import (
    UNTRUSTED,
    Comparison,
    KernelTrust,
    NewBisection,
    Swing,
    Tree,
    Variant,
)
from swingbot.core.plan import swings as plan
from swingbot.core.plan.metric_rules import metric_of
from swingbot.core.plan.noise import noise_prior
from swingbot.core.plan.relevance import of_patch, weight
from swingbot.service.kernel.variants import on_testbox, trust_in, variant_of
from swingbot.service.ports import Catalogue, Git, GitError, RequestError, Transaction
from swingbot.service.ports.patches import Patches
from swingbot.service.ports.variants import Variants
from swingbot_jobs.contract.kconfig import Kconfigs
from swingbot_jobs.contract.unit_job import UnitJob


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedBisection:
    """`good..bad` ready to be bisected: commits, testboxes and unit job are resolved.

    There is at most one bisection per `key`. Kernels of `foreign` commits are untrusted unless
    the token `voucher` vouches for them; it vouches for all of them or for none.

    `series`: on a testbox that does not share boots, the series that has existing boots of the two
    ends, or None if there is none.
    """

    tree: Tree
    origin: Literal["asked", "watch"]
    good: str
    bad: str
    testboxes: Sequence[str]  # all testboxes that share the boots
    job: UnitJob
    metric: str
    key: str
    series: str | None = None
    vouched: bool = False
    foreign: Collection[str] = ()
    voucher: int | None = None
    factors: Mapping[str, float] = field(default_factory=dict)  # of prior weights, by commit


def open_bisection(git: Git, catalogue: Catalogue, tx: Transaction, new: ResolvedBisection) -> int:
    """Record a bisection along first parents and return its number.

    Each boot runs only the unit job that reports the metric. Raises RequestError.
    """
    known = catalogue.testboxes.known(new.testboxes[0])
    new = replace(new, tree=on_testbox(catalogue.kconfigs, new.tree, known))
    points = _points(git, catalogue.kconfigs, tx.variants, new)
    testbox, metric = new.testboxes[0], metric_of(catalogue.programs, new.metric)
    repeatable = catalogue.testboxes.known(testbox).repeatable
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
                min_effect_pct=new.tree.min_effect_pct,
            ),
            points=points,
            request_key=new.key,
        )
    )


def _points(
    git: Git, kconfigs: Kconfigs, variants: Variants, new: ResolvedBisection
) -> list[tuple[Variant, float]]:
    """Return the commits of `good..bad` with their prior weights; `good` has weight 0."""
    try:
        commits = [new.good, *git.first_parents(new.good, new.bad)]
        if not git.is_ancestor(new.good, new.bad):
            raise RequestError(f"{new.good[:12]} is not an ancestor of {new.bad[:12]}")
        changed = git.paths_along(new.good, new.bad)
        points: list[tuple[Variant, float]] = []
        for commit in commits:
            git.keep(commit)
            points.append(
                (
                    variant_of(
                        git,
                        kconfigs,
                        variants,
                        new.tree,
                        commit,
                        trust=trust_of(git, variants, new, commit),
                    ),
                    weight(changed.get(commit, ())) * new.factors.get(commit, 1.0)
                    if points
                    else 0.0,
                )
            )
    except GitError as error:
        raise RequestError(str(error)) from None
    return points


def trust_of(git: Git, variants: Variants, new: ResolvedBisection, commit: str) -> KernelTrust:
    """Return how far a commit of the bisection is trusted. Raises GitError."""
    if commit not in new.foreign:
        return trust_in(variants, new.tree, git.facts(commit), vouched=new.vouched)
    return UNTRUSTED if new.voucher is None else KernelTrust("trusted", new.voucher)


def bisect_swings(git: Git, catalogue: Catalogue, tx: Transaction) -> None:
    """For each comparison that has open swings but no running bisection, bisect the strongest
    swing. The others wait, because the same commit usually explains them."""
    busy = {swing.comparison for swing in tx.swings.in_state("bisecting")} | set(
        tx.incidents.comparisons_being_attributed()
    )
    waiting = [swing for swing in tx.swings.in_state("open") if swing.comparison not in busy]
    for number in sorted({swing.comparison for swing in waiting}):
        comparison = tx.comparisons.get(number)
        assert comparison is not None
        swings = {(s.testbox, s.unit_job, s.metric): s for s in waiting if s.comparison == number}
        rows = [row for row in tx.comparisons.rows(number) if row.key in swings]
        _bisect(git, catalogue, tx, comparison, plan.strongest(rows), swings)


def _bisect(
    git: Git,
    catalogue: Catalogue,
    tx: Transaction,
    comparison: Comparison,
    row: ComparisonRow,
    swings: Mapping[tuple[str, str, str], Swing],
) -> None:
    """Bisect between the kernels whose pairs proved the swing, starting from the boots of these
    pairs."""
    tree, swing = (
        tx.trees.get(comparison.tree),
        swings[row.key],
    )
    proof = tx.comparisons.get(swing.proof) if swing.proof is not None else None
    ends = proof or comparison
    base, head = tx.variants.get(ends.base), tx.variants.get(ends.head)
    good = _before(git, base.commit, head.commit)
    job = next(job for job in tx.specs.get(row.spec) if job.name == row.unit_job)
    number = open_bisection(
        git,
        catalogue,
        tx,
        ResolvedBisection(
            tree=tree,
            origin="watch",
            good=good,
            bad=head.commit,
            # the pairs may have moved to another testbox of the group
            testboxes=[proof.parts[0][0] if proof is not None else row.testbox],
            job=job,
            metric=row.metric,
            key=f"swing:{swing.id}",
            series=f"c{proof.id}" if proof is not None else None,
            factors=_factors(tx.patches, tx.variants, comparison),
        ),
    )
    tx.swings.set_state(swing.id, "bisecting", number)
    if proof is not None:
        last = len(tx.bisections.points(number)) - 1
        for k in proof.numbers.ks:
            for idx in (0, last) if good == base.commit else (last,):
                tx.bisections.add_want(number, WantedBoot(idx, k, "history"))


def _before(git: Git, base: str, head: str) -> str:
    """Return `base`, or its merge base with `head` if `base` was rebased away (creep): the change
    is after that commit."""
    try:
        return base if git.is_ancestor(base, head) else git.merge_base(base, head) or base
    except GitError:
        return base


def _factors(patches: Patches, variants: Variants, comparison: Comparison) -> dict[str, float]:
    """Return the factor for each commit's prior weight where the tip is on a rebased branch:
    patches that the branch already had are less likely culprits."""
    branch = patches.branch(comparison.tree)
    head = variants.get(comparison.head).commit
    if all(each.patch.commit != head for each in branch):
        return {}  # the branch has moved since
    return {each.patch.commit: of_patch(each.state) for each in branch}
