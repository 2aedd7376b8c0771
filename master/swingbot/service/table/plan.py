"""Lay out, estimate and queue a table of kernels: a comparison is one with two rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from swingbot.core.limits import TABLE_BOOTS
from swingbot.core.model import ids
from swingbot.core.model.records import Arm, NewComparison, Tree, Variant
from swingbot.core.model.statuses import Reference
from swingbot.core.plan.settings import with_settings
from swingbot.core.table.layout import BadLayout, LayoutRow, lay_out
from swingbot.core.table.references import RULES, references_of
from swingbot.service.check_compiler import check_compiler
from swingbot.service.kernel.foresee_builds import foresee_builds
from swingbot.service.kernel.variants import trust_in, variant_of
from swingbot.service.ports import GitError, Lab, RequestError, Transaction
from swingbot.service.table.columns import with_monitors
from swingbot.service.table.cost import TableCost, cost_of
from swingbot.service.table.dry_run import rehearse
from swingbot.service.table.find_existing import asked_before
from swingbot.service.table.kernels import TableKernel, kernels_of
from swingbot.service.table.notes import notes_on
from swingbot.service.table.policy import restricted
from swingbot.service.table.request import TableRequest
from swingbot.service.watch.resolve_jobs import pick_testboxes, resolve_parts
from swingbot.service.watch.trees import tree_of
from swingbot_jobs.contract.kconfig import NoKconfig, joined
from swingbot_jobs.contract.trust import Trust, least


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """A table as it would be queued."""

    tree: str
    arms: Sequence[Arm]
    variants: Sequence[Variant]
    about: Mapping[str, str]  # kernel -> the subject behind its name
    against: tuple[Reference, ...]
    boots: int
    cost: TableCost
    notes: Sequence[str]  # sentences on what the rows do not show

    def to_json(self) -> dict[str, Any]:
        return {
            "tree": self.tree,
            "against": list(self.against),
            "boots_each": self.boots,
            "rows": [
                {
                    "name": arm.name,
                    "commit": variant.commit,
                    "subject": variant.subject,
                    "kconfig": variant.kconfig,
                    "compiler": variant.compiler,
                    "axes": dict(arm.axes),
                    "settings": dict(arm.settings),
                }
                for arm, variant in zip(self.arms, self.variants, strict=True)
            ],
            "notes": list(self.notes),
            "cost": self.cost.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """A queued table. `new` is False if the same request already existed."""

    id: str
    number: int
    new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The rows of a request before anything is recorded."""

    tree: Tree
    kernels: Mapping[str, TableKernel]
    rows: Sequence[LayoutRow]


def plan_table(lab: Lab, request: TableRequest) -> TablePlan:
    """Return the plan and cost of `request`. Nothing is recorded. Raises RequestError."""
    request = restricted(lab.transaction, lab.tools.git, request)
    rows = _rows_of(lab, request)

    def plan(tx: Transaction) -> TablePlan:
        new, variants = _laid_out(lab, tx, request, rows)
        return TablePlan(
            tree=rows.tree.name,
            arms=new.arms,
            variants=variants,
            about={kernel.name: kernel.about for kernel in rows.kernels.values() if kernel.about},
            against=tuple(new.against),
            boots=new.boots,
            cost=cost_of(lab, tx, new, variants),
            notes=notes_on(
                tx.testboxes, request.kernels, request.axes, [name for name, _ in new.parts]
            ),
        )

    return rehearse(lab, "plan table", plan)


def request_table(lab: Lab, request: TableRequest) -> Requested:
    """Queue a table.

    An identical request for the same kernels returns the existing table. Raises RequestError.
    """
    request = restricted(lab.transaction, lab.tools.git, request)
    rows = _rows_of(lab, request)
    try:
        for kernel in rows.kernels.values():
            lab.tools.git.keep(kernel.facts.commit)
    except GitError as error:
        raise RequestError(str(error)) from None
    with lab.transaction("request table") as tx:
        new, variants = _laid_out(lab, tx, request, rows)
        existing, new = asked_before(tx, new)
        if existing is not None:
            id = ids.of_table(existing.kind, existing.id)
            return Requested(id=id, number=existing.id, new=False)
        foresee_builds(lab.tools.git, tx.builds, variants)
        number = tx.comparisons.add(new)
        return Requested(id=ids.of_table(new.kind, number), number=number, new=True)


@contextmanager
def _about(key: str) -> Iterator[None]:
    """Note in a RequestError which option of the request it is about."""
    try:
        yield
    except RequestError as error:
        error.key = error.key or key
        raise


def _rows_of(lab: Lab, request: TableRequest) -> _Rows:
    if not 1 <= request.boots <= TABLE_BOOTS:
        raise RequestError(
            f"boots per row must be between 1 and {TABLE_BOOTS}, got {request.boots}", key="boots"
        )
    with _about("tree"):
        tree = tree_of(lab.transaction, lab.tools.git, request.tree, request.kernels.refs)
    kernels = kernels_of(lab.tools.git, tree, request.kernels, request.most_rows)
    if len(kernels) > 1 and len({kernel.facts.commit for kernel in kernels}) == 1:
        raise RequestError(
            f"{' and '.join(kernel.name for kernel in kernels)} are the same commit"
            f" {kernels[0].facts.commit[:12]}; there is nothing to compare"
        )
    try:
        rows = lay_out([kernel.name for kernel in kernels], request.axes, request.exclude)
    except BadLayout as error:
        raise RequestError(str(error), key=error.key) from None
    return _Rows(tree=tree, kernels={kernel.name: kernel for kernel in kernels}, rows=rows)


def _laid_out(
    lab: Lab, tx: Transaction, request: TableRequest, rows: _Rows
) -> tuple[NewComparison, list[Variant]]:
    levels = {
        name: trust_in(tx.variants, rows.tree, kernel.facts, vouched=request.vouched)
        for name, kernel in rows.kernels.items()
    }
    parts = _parts(lab, tx, request, rows.tree, least(list(levels.values())))
    variants, arms = [], []
    for row in rows.rows:
        level = levels[row.kernel]
        variant = _variant(lab, tx, rows.tree, rows.kernels[row.kernel], row, level)
        variants.append(variant)
        arms.append(_arm(lab, tx, row, variant, parts, level))
    against = tuple(request.against) or _fitting(request, rows)
    _check_against(against, arms)
    new = NewComparison(
        kind=request.kind,
        tree=rows.tree.id,
        arms=arms,
        against=against,
        beside=tuple(request.columns),
        boots=request.boots,
        parts=parts,
        looks_stated=request.looks,
    )
    return replace(new, request_key=_key(new, variants, request)), variants


def _parts(
    lab: Lab, tx: Transaction, request: TableRequest, tree: Tree, trust: Trust
) -> list[tuple[str, str]]:
    """Return (testbox, spec) for each testbox."""
    named = request.testboxes
    job_files = request.job_files or tree.job_files
    with _about("testbox"):
        testboxes = pick_testboxes(
            lab.catalogue.testboxes, lab.settings, named or tree.testboxes, trust, asked=bool(named)
        )
    with _about("job"):
        parts = resolve_parts(
            lab.catalogue.programs,
            lab.catalogue.testboxes,
            tx.specs,
            job_files,
            testboxes,
            request.overrides,
            trust,
        )
    with _about("with"):
        return [
            (name, with_monitors(lab.catalogue.programs, tx.specs, spec, request.columns))
            for name, spec in parts
        ]


def _variant(
    lab: Lab, tx: Transaction, tree: Tree, kernel: TableKernel, row: LayoutRow, level: Trust
) -> Variant:
    """Return the kernel of a row: a commit with the row's compiler and fragments."""
    kconfig = tree.kconfig
    try:
        for fragment in filter(None, row.values.get("fragment", "").split("+")):
            kconfig = joined(kconfig, fragment)
        lab.catalogue.kconfigs.text(kconfig)
    except NoKconfig as error:
        raise RequestError(str(error), key="fragment") from None
    compiler = row.values.get("compiler") or tree.compiler
    with _about("compiler"):
        check_compiler(tx.compilers, compiler)
    built = replace(tree, kconfig=kconfig, compiler=compiler)
    return variant_of(
        lab.tools.git,
        lab.catalogue.kconfigs,
        tx.variants,
        built,
        kernel.facts.commit,
        kernel.origin,
        level,
    )


def _arm(
    lab: Lab,
    tx: Transaction,
    row: LayoutRow,
    variant: Variant,
    parts: Sequence[tuple[str, str]],
    trust: Trust,
) -> Arm:
    """Return a row with its boot settings, and each part with these settings applied.

    Raises RequestError.
    """
    cmdline, sysctl = row.values.get("cmdline", ""), _sysctls(row)
    settings: dict[str, Any] = {"cmdline": cmdline} if cmdline else {}
    if sysctl:
        settings["sysctl"] = sysctl
    specs = {}
    try:
        for testbox, spec in parts if settings else ():
            jobs = with_settings(tx.specs.get(spec), cmdline, sysctl)
            lab.catalogue.testboxes.known(testbox).check_settings(jobs, trust)
            specs[spec] = tx.specs.add(jobs)
    except ValueError as error:
        raise RequestError(f"{row.name}: {error}", key="cmdline" if cmdline else "sysctl") from None
    return Arm(
        name=row.name, variant=variant.id, axes=dict(row.axes), settings=settings, specs=specs
    )


def _sysctls(row: LayoutRow) -> dict[str, str]:
    """Parse `vm.swappiness=10 vm.stat_interval=5` into values by name. Raises RequestError."""
    sysctls = {}
    for pair in row.values.get("sysctl", "").split():
        name, sign, value = pair.partition("=")
        if not sign:
            raise RequestError(
                f"{row.name}: sysctl {pair!r} must have the form KEY=VALUE", key="sysctl"
            )
        sysctls[name] = value
    return sysctls


def _fitting(request: TableRequest, rows: _Rows) -> tuple[Reference, ...]:
    """Choose the default reference of a row: successive commits build on each other."""
    if request.kernels.consecutive:
        return ("above",)
    if len(rows.kernels) > 1 and len(rows.rows) > len(rows.kernels):
        return ("pair",)
    return ("first",)


def _check_against(against: Sequence[Reference], arms: Sequence[Arm]) -> None:
    for reference in against:
        if references_of(reference, arms):
            continue
        if reference in RULES:
            raise RequestError(
                f"against {reference} has no effect: no row has a base under the same conditions",
                key="against",
            )
        names = ", ".join(arm.name for arm in arms[:20])
        raise RequestError(
            f"there is no row {reference!r} to compare with: give one of {', '.join(RULES)}, or a"
            f" row: {names}",
            key="against",
        )


def _key(new: NewComparison, variants: Sequence[Variant], request: TableRequest) -> str:
    """Return what makes two requests the same: kernels and settings, whatever they are called."""
    names = [arm.name for arm in new.arms]
    identity = [
        new.tree,
        [
            [variant.commit, variant.kconfig, variant.compiler, dict(arm.settings)]
            for arm, variant in zip(new.arms, variants, strict=True)
        ],
        sorted(new.parts),
        [rule if rule in RULES else names.index(rule) for rule in new.against],
        list(new.beside),
        new.boots,
        new.looks_stated,
        request.vouched,
    ]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return f"table:{digest}"
