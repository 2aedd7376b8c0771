"""What a bisection would do and cost. Times are in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.records import Variant
from swingbot.core.plan.relevance import weight
from swingbot.core.plan.remaining_boots import foreseen_boots
from swingbot.core.text.numbers import count, duration
from swingbot.service.bisect.start import ResolvedBisection, trust_of
from swingbot.service.kernel.foresee_boots import usual_boot_seconds
from swingbot.service.kernel.foresee_builds import build_seconds
from swingbot.service.kernel.variants import on_testbox, variant_of
from swingbot.service.ports import Catalogue, Git, GitError, LabSettings, RequestError, Transaction
from swingbot.service.ports.variants import Variants


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionCost:
    """Of a search that halves the range with each kernel; only the commits' own boots tell more."""

    kernels: int  # that it measures
    builds: int  # of these, kernels to build
    build_seconds: float
    boots: int  # the median of searches that find a culprit
    most_boots: int  # limit of the search, without its confirmation
    boot_seconds: float  # of one boot
    seconds: float  # until the end on an idle lab
    testbox_seconds: float  # of all testboxes together
    at_most: bool  # no such boot was timed there yet: an upper estimate from its unit job


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionPlan:
    """A bisection as it would be queued."""

    tree: str
    good: str
    bad: str
    commits: int  # after `good`, along first parents
    metric: str
    unit_job: str
    testboxes: Sequence[str]  # that share the boots
    cost: BisectionCost

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"testboxes": list(self.testboxes)}


def plan_of(
    git: Git,
    catalogue: Catalogue,
    settings: LabSettings,
    tx: Transaction,
    new: ResolvedBisection,
    commits: Sequence[str],
) -> BisectionPlan:
    """Return the plan of a bisection of `commits`, those after its good end. Raises RequestError.

    Records the kernels that it counts: for a transaction that is rolled back.
    """
    known = [catalogue.testboxes.known(name) for name in new.testboxes]
    spec, repeatable = tx.specs.add([new.job]), known[0].repeatable
    try:
        changed = git.paths_along(new.good, new.bad)
        kernels = _kernels(git, catalogue, tx.variants, new, [new.good, *commits])
    except GitError as error:
        raise RequestError(str(error)) from None
    built = tx.builds.by_key([kernel.build_key for kernel in kernels])
    missing = [kernel for kernel in kernels if kernel.build_key not in built]
    building = sum(build_seconds(git, tx.builds, missing))
    policy = Policy(confidence=settings.confidence, max_boots=settings.max_boots)
    weights = [weight(changed.get(commit, ())) for commit in commits]
    boots = round(foreseen_boots(weights, policy, repeatable=repeatable))
    boot = max(usual_boot_seconds(tx.boots, tx.specs, testbox, spec) for testbox in known)
    return BisectionPlan(
        tree=new.tree.name,
        good=new.good,
        bad=new.bad,
        commits=len(commits),
        metric=new.metric,
        unit_job=new.job.name,
        testboxes=new.testboxes,
        cost=BisectionCost(
            kernels=len(kernels),
            builds=len(missing),
            build_seconds=building,
            boots=boots,
            most_boots=policy.max_boots,
            boot_seconds=boot,
            seconds=building + boots * boot / len(known),
            testbox_seconds=boots * boot,
            at_most=any(tx.boots.seconds(testbox.name, spec) is None for testbox in known),
        ),
    )


def plan_lines(planned: BisectionPlan) -> list[str]:
    """Format the plan and its cost as text."""
    cost = planned.cost
    known = cost.kernels - cost.builds
    building = f", about {duration(cost.build_seconds)}" if cost.builds else ""
    at_most = "at most" if cost.at_most else "about"
    boots = duration(cost.boot_seconds)
    return [
        f"{count(planned.commits, 'commit')} of tree {planned.tree},"
        f" {planned.good[:12]}..{planned.bad[:12]}, for {planned.metric}",
        f"  of {planned.unit_job}",
        f"kernels: about {cost.builds} to build{building}; {known} known",
        f"{', '.join(planned.testboxes)}: about {cost.boots} boots of {at_most} {boots};"
        f" a small change takes more, up to {cost.most_boots}",
        f"in all {at_most} {duration(cost.seconds)} on an idle lab",
    ]


def _kernels(
    git: Git,
    catalogue: Catalogue,
    variants: Variants,
    new: ResolvedBisection,
    commits: Sequence[str],
) -> list[Variant]:
    """Return the kernels that a search by halves measures, in its order. Raises GitError."""
    tree = on_testbox(catalogue.kconfigs, new.tree, catalogue.testboxes.known(new.testboxes[0]))
    return [
        variant_of(
            git,
            catalogue.kconfigs,
            variants,
            tree,
            commits[idx],
            trust=trust_of(git, variants, new, commits[idx]),
        )
        for idx in _halves(len(commits) - 1)
    ]


def _halves(last: int) -> list[int]:
    """Return the points that a search of 0..last measures, whose answers alternate."""
    low, high, points = 0, last, [0, last]
    while high - low > 1:
        middle = (low + high) // 2
        points.append(middle)
        low, high = (low, middle) if len(points) % 2 else (middle, high)
    return points
