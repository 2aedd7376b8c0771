"""Add boots or rows to an existing table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from swingbot.core.access.roles import Person
from swingbot.core.limits import TABLE_BOOTS, TABLE_ROWS
from swingbot.core.model.records import Arm, Comparison, NewComparison
from swingbot.core.model.statuses import REQUESTED
from swingbot.core.stats.looks import Look
from swingbot.core.table.layout import KERNEL, row_name
from swingbot.core.table.references import condition
from swingbot.service.access import note_extension
from swingbot.service.asked.commits import admit
from swingbot.service.asked.dry_run import rehearse
from swingbot.service.asked.requested import AlreadyDone
from swingbot.service.kernel.variants import in_layout, trust_in, variant_of
from swingbot.service.ports import Catalogue, Git, Lab, RequestError, Transaction
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.trees import Trees
from swingbot.service.ports.variants import Variants
from swingbot.service.table.cost import TableCost, cost_of, priced, widest_family
from swingbot.service.table.detectable_effects import PlannedTable, detectable_effects
from swingbot.service.table.extender import check_extender
from swingbot.service.table.find_existing import table_with
from swingbot.service.table.kernels import NamedKernel, kernels_named
from swingbot_jobs.contract.kconfig import Kconfigs


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionRequest:
    """Boots to add to each row of table `id`, and rows to add to it.

    `asked_by` is who asks over the web, and pays; None: an operator. `from_boots` are the boots of
    each row that the request was decided for; a table with others is not extended.
    """

    id: str
    boots: int
    from_boots: int | None = None
    rows: Sequence[NamedKernel] = ()
    vouched: bool = False
    asked_by: Person | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """An extension as it would be queued."""

    boots: int  # of each row, including earlier ones
    added: Sequence[Arm]
    rows: int  # including the added ones
    look: Look
    cost: TableCost  # of the additional boots

    def to_json(self, id: str) -> dict[str, Any]:
        return {
            "id": id,
            "boots_each": self.boots,
            "rows": self.rows,
            "added": [arm.name for arm in self.added],
            "look": self.look.number,
            "looks_stated": self.look.stated,
            "cost": self.cost.to_json(),
        }


def plan_extension(lab: Lab, request: ExtensionRequest) -> Extension:
    """Return the plan and cost of an extension. Nothing is recorded.

    Raises NotFound, RequestError, AlreadyDone, NotYours.
    """
    with lab.tools.git.quarantine() as git:
        return rehearse(
            lab.transaction,
            "plan extension",
            lambda tx: _planned(git, lab.catalogue, tx, request),
        )


def extend(lab: Lab, request: ExtensionRequest) -> Extension:
    """Order the additional boots, and add rows for the named kernels.

    A new row is booted together with the others in the new blocks only: it is not compared with
    boots of another day. Raises NotFound, RequestError, AlreadyDone, NotYours.
    """
    with lab.tools.git.quarantine() as git, lab.transaction("extend") as tx:
        number = table_with(tx.comparisons, request.id).id
        tx.comparisons.lock(number)
        planned, person = _planned(git, lab.catalogue, tx, request), request.asked_by
        admit(git)
        tx.comparisons.reopen(number, planned.boots, planned.added)
        if person is not None:
            note_extension(tx.access, person, request.id, planned.cost.testbox_seconds)
        return planned


def _planned(
    git: Git,
    catalogue: Catalogue,
    tx: Transaction,
    request: ExtensionRequest,
) -> Extension:
    if request.asked_by is not None:
        check_extender(tx.access, tx.comparisons, tx.trees, request.id, request.asked_by)
    comparison = _extendable(tx.comparisons, request.id)
    _check_boots(comparison, request)
    total = comparison.boots + request.boots
    if not request.boots >= 1 or total > TABLE_BOOTS:
        raise RequestError(
            f"it has {comparison.boots} boots per row; at most {TABLE_BOOTS} are allowed,"
            f" so give 1 to {TABLE_BOOTS - comparison.boots} more"
        )
    added = _arms(
        git, catalogue.kconfigs, tx.trees, tx.variants, comparison, request.rows, request.vouched
    )
    look = Look(
        number=comparison.looks + (comparison.status == "done"), stated=comparison.looks_stated
    )
    arms = [*comparison.arms, *added]
    blocks = _blocks(comparison, arms, request.boots)
    cost = cost_of(
        git,
        catalogue.testboxes,
        tx.specs,
        tx.builds,
        tx.boots,
        blocks,
        [tx.variants.get(arm.variant) for arm in arms],
    )
    effects = detectable_effects(
        catalogue,
        tx.specs,
        tx.noise,
        blocks.parts,
        PlannedTable(
            boots=total,
            pairs=widest_family(blocks),
            share=look.share,
            min_effect_pct=comparison.min_effect_pct,
        ),
    )
    return Extension(
        boots=total,
        added=added,
        rows=len(arms),
        look=look,
        cost=priced(cost, effects),
    )


def _check_boots(comparison: Comparison, request: ExtensionRequest) -> None:
    """Raise AlreadyDone for boots that were added already, RequestError if others were."""
    before = request.from_boots
    if before is None or comparison.boots == before:
        return
    done = comparison.boots >= before + request.boots
    raise (AlreadyDone if done else RequestError)(
        f"{request.id} has {comparison.boots} boots per row by now, not {before}: it was extended"
        " meanwhile; look at it again"
    )


def _blocks(comparison: Comparison, arms: Sequence[Arm], boots: int) -> NewComparison:
    """Return the additional boots as a table of their own."""
    return NewComparison(
        kind=comparison.kind,
        tree=comparison.tree,
        arms=arms,
        against=comparison.against,
        boots=boots,
        first_k=comparison.first_k + comparison.boots,
        purpose=comparison.purpose,
        parts=comparison.parts,
    )


def _extendable(comparisons: Comparisons, id: str) -> Comparison:
    comparison = table_with(comparisons, id)
    own = (comparison.request_key or "").startswith("fix:")
    if comparison.kind not in REQUESTED or own:
        raise RequestError(
            f"{id} belongs to the service, which extends it as needed;"
            " `swingbot compare` requests your own"
        )
    return comparison


def _arms(
    git: Git,
    kconfigs: Kconfigs,
    trees: Trees,
    variants: Variants,
    comparison: Comparison,
    rows: Sequence[NamedKernel],
    vouched: bool,
) -> list[Arm]:
    """Return a row for each named kernel under each condition of the table."""
    tree = trees.get(comparison.tree)
    base = variants.get(comparison.base).commit
    arms: list[Arm] = []
    for kernel in (k for row in rows for k in kernels_named(git, tree, base, row)):
        git.keep(kernel.facts.commit)
        trust = trust_in(variants, tree, kernel.facts, vouched=vouched)
        for like in _conditions(comparison):
            of = variants.get(like.variant)
            built = replace(tree, kconfig=of.kconfig, compiler=of.compiler)
            variant = variant_of(
                git,
                kconfigs,
                variants,
                built,
                kernel.facts.commit,
                kernel.origin,
                trust,
            )
            variant = in_layout(kconfigs, trees, variants, variant, of.layout, kernel.origin)
            arms.append(_like(like, kernel.name, variant.id, comparison))
    names = [arm.name for arm in (*comparison.arms, *arms)]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise RequestError(f"a row named {twice[0]!r} already exists; choose another name")
    if len(names) > TABLE_ROWS:
        raise RequestError(
            f"the table would have {len(names)} rows; at most {TABLE_ROWS} are allowed"
        )
    return arms


def _conditions(comparison: Comparison) -> list[Arm]:
    """Return the first arm for each combination of the axes other than the kernel."""
    arms: dict[frozenset[tuple[str, str]], Arm] = {}
    for arm in comparison.arms:
        arms.setdefault(condition(arm.axes), arm)
    return list(arms.values())


def _like(like: Arm, kernel: str, variant: int, comparison: Comparison) -> Arm:
    axes = {**like.axes, KERNEL: kernel}
    varied = [
        label
        for axis, label in like.axes.items()
        if axis != KERNEL and len({arm.axes.get(axis) for arm in comparison.arms}) > 1
    ]
    return Arm(
        name=row_name(varied, kernel),
        variant=variant,
        axes=axes,
        settings=like.settings,
        specs=like.specs,
        from_block=comparison.boots,
    )
