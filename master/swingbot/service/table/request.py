"""Queue a comparison: by hand, for a change of a branch, or of a culprit with its parent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from swingbot.core.model.records import JobFile, NewComparison, Tree, Variant, base_and_head
from swingbot.core.model.statuses import VariantOrigin
from swingbot.core.patchset.model import SeriesPatch
from swingbot.service.kernel.foresee_builds import foresee_builds
from swingbot.service.kernel.variants import resolve_commit, trust_in, variant_of
from swingbot.service.ports import GitError, Lab, RequestError, Transaction
from swingbot.service.table.cost import ExperimentCost, cost_of
from swingbot.service.table.dry_run import rehearse
from swingbot.service.table.find_existing import asked_before
from swingbot.service.watch.resolve_jobs import pick_testboxes, resolve_parts
from swingbot.service.watch.trees import tree_of
from swingbot_jobs.contract.trust import least

DEFAULT_BOOTS = 5  # per side: enough for a paired verdict at the stated error rate, plus one spare


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRequest:
    """A requested comparison; without job files or testboxes, those of the tree are used."""

    base: str
    head: str
    tree: str | None = None  # None: the only tree with both commits
    job_files: Sequence[JobFile] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)
    testboxes: Sequence[str] = ()
    boots: int | None = None  # per side
    patches: Sequence[SeriesPatch] = ()  # applied on head, one commit per patch
    # the requester vouches for these patches, and for existing commits made from patches
    trusted: bool = False
    looks: int = 1  # how often it may be judged, counting extensions


def request_comparison(lab: Lab, request: ComparisonRequest) -> int:
    """Record a comparison and return its number.

    An identical request for the same kernels returns the existing comparison. Raises RequestError.
    """
    tree, commits = _resolved(lab, request)
    try:
        for commit in commits:
            lab.tools.git.keep(commit)
    except GitError as error:
        raise RequestError(str(error)) from None
    with lab.transaction("request comparison") as tx:
        new, kernels = _laid_out(lab, tx, request, tree, commits)
        number, new = asked_before(tx, new)
        if number is not None:
            return number
        foresee_builds(lab.tools.git, tx.builds, kernels)
        return tx.comparisons.add(new)


def plan_comparison(lab: Lab, request: ComparisonRequest) -> ExperimentCost:
    """Return the cost of `request`. Nothing is recorded. Raises RequestError."""
    tree, commits = _resolved(lab, request)

    def plan(tx: Transaction) -> ExperimentCost:
        return cost_of(lab, tx, *_laid_out(lab, tx, request, tree, commits))

    return rehearse(lab, "plan comparison", plan)


def _resolved(lab: Lab, request: ComparisonRequest) -> tuple[Tree, tuple[str, str]]:
    """Return the tree, and the commits of base and head, the latter with its patches applied."""
    tree = tree_of(lab.transaction, lab.tools.git, request.tree, [request.base, request.head])
    base, head = (resolve_commit(lab.tools.git, tree, ref) for ref in (request.base, request.head))
    try:
        if request.patches:
            head = lab.tools.git.apply_series(head, request.patches)[-1]
    except GitError as error:
        raise RequestError(str(error)) from None
    if base == head:
        raise RequestError(
            f"{request.base} and {request.head} are the same commit {base[:12]}; there is "
            "nothing to compare"
        )
    return tree, (base, head)


def _laid_out(
    lab: Lab, tx: Transaction, request: ComparisonRequest, tree: Tree, commits: tuple[str, str]
) -> tuple[NewComparison, list[Variant]]:
    levels = [
        trust_in(tx.variants, tree, lab.tools.git.facts(commit), vouched=request.trusted)
        for commit in commits
    ]
    testboxes = pick_testboxes(
        lab.catalogue.testboxes,
        lab.settings,
        request.testboxes or tree.testboxes,
        least(levels),
        asked=bool(request.testboxes),
    )
    parts = resolve_parts(
        lab.catalogue.programs,
        lab.catalogue.testboxes,
        tx.specs,
        request.job_files or tree.job_files,
        testboxes,
        request.overrides,
        least(levels),
    )
    identity = json.dumps(
        [
            tree.id,
            *commits,
            tree.kconfig,
            tree.compiler,
            sorted(parts),
            request.boots,
            *(["vouched"] if request.trusted else []),
            *(["looks", request.looks] if request.looks > 1 else []),
        ]
    )
    origins: list[VariantOrigin] = ["request", "patch" if request.patches else "request"]
    variants = [
        variant_of(lab.tools.git, lab.catalogue.kconfigs, tx.variants, tree, commit, origin, level)
        for commit, origin, level in zip(commits, origins, levels, strict=True)
    ]
    new = NewComparison(
        kind="asked",
        tree=tree.id,
        arms=base_and_head(*(variant.id for variant in variants)),
        boots=request.boots or DEFAULT_BOOTS,
        parts=parts,
        looks_stated=request.looks,
        request_key=f"asked:{hashlib.sha256(identity.encode()).hexdigest()}",
    )
    return new, variants


def compare_changes(lab: Lab, tx: Transaction) -> None:
    """Open the comparison of each change that has none yet."""
    for change in tx.trees.changes_to_compare():
        tree = tx.trees.get(change.tree)
        tx.comparisons.add(
            NewComparison(
                kind="watch",
                tree=tree.id,
                change=change.id,
                arms=base_and_head(
                    variant_of(
                        lab.tools.git, lab.catalogue.kconfigs, tx.variants, tree, change.old_commit
                    ).id,
                    variant_of(
                        lab.tools.git, lab.catalogue.kconfigs, tx.variants, tree, change.new_commit
                    ).id,
                ),
                boots=lab.settings.watch_boots,
                parts=resolve_parts(
                    lab.catalogue.programs,
                    lab.catalogue.testboxes,
                    tx.specs,
                    tree.job_files,
                    tree.testboxes,
                    {},
                    tree.trust,
                ),
            )
        )
