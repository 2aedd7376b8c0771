"""Queue a comparison: by hand, for a change of a branch, or of a culprit with its parent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from swingbot.core.model.records import JobFile, NewComparison, base_and_head
from swingbot.core.patchset.model import SeriesPatch
from swingbot.service.kernel.variants import resolve_commit, trust_in, variant_of
from swingbot.service.ports import GitError, Lab, RequestError, Transaction
from swingbot.service.watch.resolve_jobs import pick_testboxes, resolve_parts
from swingbot.service.watch.trees import known_tree
from swingbot_jobs.contract.trust import least

DEFAULT_BOOTS = 5  # a side: what a paired comparison needs for a verdict at the stated error rate, with one to spare


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRequest:
    """What somebody wants compared; job files and testboxes of the tree where none are given."""

    tree: str
    base: str
    head: str
    job_files: Sequence[JobFile] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)
    testboxes: Sequence[str] = ()
    boots: int | None = None  # a side
    patches: Sequence[SeriesPatch] = ()  # applied on head, each as a commit of its own
    trusted: bool = False  # the requester vouches for the patches, and for commits that were made of patches before


def request_comparison(lab: Lab, request: ComparisonRequest) -> int:
    """Record that a comparison is wanted; its number.

    The same question about the same kernels is the same comparison. Raises RequestError.
    """
    tree = known_tree(lab, request.tree)
    base_commit, head_commit = (
        resolve_commit(lab, tree, request.base),
        resolve_commit(lab, tree, request.head),
    )
    try:
        if request.patches:
            head_commit = lab.git.apply_series(head_commit, request.patches)[-1]
        for commit in (base_commit, head_commit):
            lab.git.keep(commit)
    except GitError as error:
        raise RequestError(str(error)) from None
    if base_commit == head_commit:
        raise RequestError(
            f"{request.base} and {request.head} are the same commit {base_commit[:12]}; there is nothing to compare"
        )
    with lab.transaction("request comparison") as tx:
        sides = [
            trust_in(tx.variants, tree, lab.git.facts(commit), vouched=request.trusted)
            for commit in (base_commit, head_commit)
        ]
        boxes = pick_testboxes(
            lab, request.testboxes or tree.testboxes, least(sides), asked=bool(request.testboxes)
        )
        parts = resolve_parts(
            lab, tx.specs, request.job_files or tree.job_files, boxes, request.overrides
        )
        identity = json.dumps(
            [
                tree.id,
                base_commit,
                head_commit,
                tree.kconfig,
                tree.compiler,
                sorted(parts),
                request.boots,
                *(["vouched"] if request.trusted else []),
            ]
        )
        key = f"asked:{hashlib.sha256(identity.encode()).hexdigest()}"
        there = tx.comparisons.of_request(key)
        if there is not None and there.status not in ("failed", "cancelled"):
            return there.id
        if there is not None:
            key += f":after-{there.id}"
        return tx.comparisons.add(
            NewComparison(
                kind="asked",
                tree=tree.id,
                arms=base_and_head(
                    variant_of(lab, tx, tree, base_commit, "request", sides[0]).id,
                    variant_of(
                        lab,
                        tx,
                        tree,
                        head_commit,
                        "patch" if request.patches else "request",
                        sides[1],
                    ).id,
                ),
                boots=request.boots or DEFAULT_BOOTS,
                parts=parts,
                request_key=key,
            )
        )


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
                    variant_of(lab, tx, tree, change.old_commit).id,
                    variant_of(lab, tx, tree, change.new_commit).id,
                ),
                boots=lab.policies.watch_boots,
                parts=resolve_parts(lab, tx.specs, tree.job_files, tree.testboxes, {}),
            )
        )
