"""Lay out, estimate and queue a table of kernels: a comparison is one with two rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from swingbot.core.limits import LAYOUTS, TABLE_BOOTS
from swingbot.core.model import ids
from swingbot.core.model.records import UNTRUSTED, Arm, KernelTrust, NewComparison, Tree, Variant
from swingbot.core.model.statuses import Reference
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.settings import with_settings
from swingbot.core.stats.looks import Look
from swingbot.core.table.layout import BadLayout, LayoutRow, lay_out
from swingbot.core.table.references import RULES, references_of
from swingbot.service.asked.commits import admit, own_commits, unbundle
from swingbot.service.asked.dry_run import rehearse
from swingbot.service.asked.requested import (
    Requested,
    asked_before,
    charge,
    note_vouched,
    vouched_by,
)
from swingbot.service.asked.result_mail import check_address, want_mail
from swingbot.service.check_compiler import check_compiler
from swingbot.service.kernel.foresee_builds import foresee_builds
from swingbot.service.kernel.variants import by_configuration, in_layout, trust_in, variant_of
from swingbot.service.ports import (
    Catalogue,
    Git,
    Lab,
    LabSettings,
    QuarantinedGit,
    RequestError,
    Transaction,
)
from swingbot.service.ports.access import Access
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.specs import Specs
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.ports.variants import Variants
from swingbot.service.table.columns import with_monitors
from swingbot.service.table.cost import TableCost, cost_of, priced, widest_family
from swingbot.service.table.detectable_effects import PlannedTable, detectable_effects
from swingbot.service.table.kernels import TableKernel, kernels_of
from swingbot.service.table.notes import notes_on
from swingbot.service.table.policy import off_branch, restricted
from swingbot.service.table.request import ALONE, TableRequest
from swingbot.service.visible import NotLimited
from swingbot.service.watch.resolve_jobs import (
    pick_testboxes,
    refuse_lacking,
    refuse_long,
    resolve_parts,
)
from swingbot.service.watch.trees import check_min_effect, tree_of
from swingbot_jobs.contract.kconfig import Kconfigs, NoKconfig, joined
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
                    "layout": variant.layout,
                    "axes": dict(arm.axes),
                    "settings": dict(arm.settings),
                }
                for arm, variant in zip(self.arms, self.variants, strict=True)
            ],
            "notes": list(self.notes),
            "cost": self.cost.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlannedRows:
    """The rows of a request before anything is recorded."""

    tree: Tree
    kernels: Mapping[str, TableKernel]
    rows: Sequence[LayoutRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTable:
    """A request whose patches are applied in a quarantine."""

    transaction: OpenTransaction
    git: QuarantinedGit
    catalogue: Catalogue
    settings: LabSettings
    request: TableRequest
    rows: _PlannedRows

    def plan(self) -> TablePlan:
        """Return the plan and cost. Nothing is recorded. Raises RequestError."""
        return rehearse(
            self.transaction,
            "plan table",
            lambda tx: _plan(self.git, self.catalogue, self.settings, tx, self.request, self.rows),
        )

    def queue(self, testbox_seconds: float) -> Requested:
        """Record the table, and who asked for it over the web, charged with `testbox_seconds`.

        An identical request for the same kernels returns the existing table, which costs nothing
        more. Raises RequestError.
        """
        git = self.git
        for kernel in self.rows.kernels.values():
            git.keep(kernel.facts.commit)
        with self.transaction("request table") as tx:
            new, variants = _laid_out(
                git, self.catalogue, self.settings, tx, self.request, self.rows
            )
            assert new.request_key is not None
            existing, key = asked_before(tx.comparisons.of_request, new.request_key)
            if existing is None:
                foresee_builds(git, tx.builds, variants)
                try:
                    kind, number = new.kind, tx.comparisons.add(replace(new, request_key=key))
                except NotLimited as error:
                    raise RequestError(str(error), key="private-to") from None
            else:
                kind, number = existing.kind, existing.id
            id, person = ids.of_table(kind, number), self.request.asked_by
            existed = existing is not None
            if self.request.mail:
                want_mail(tx.reports, id, person)
            is_new = charge(tx.access, person, id, testbox_seconds, existed=existed)
            if is_new:
                vouched = {one.commit for one in variants if one.voucher is not None}
                note_vouched(tx.access, person, id, len(vouched))
                admit(git)
            return Requested(id=id, number=number, new=is_new)


@contextmanager
def prepared(lab: Lab, request: TableRequest) -> Iterator[PreparedTable]:
    """Resolve the kernels of a request and apply its patches, once for its plan and the queue.

    What that leaves in the mirror is gone afterwards unless it is queued.

    Raises RequestError, NotYours.
    """
    with lab.tools.git.quarantine() as git:
        if request.mail:
            check_address(request.asked_by)
        unbundle(git, request.asked_by, request.sent)
        request = restricted(lab.transaction, git, request)
        rows = _rows_of(lab.transaction, git, request)
        yield PreparedTable(
            transaction=lab.transaction,
            git=git,
            catalogue=lab.catalogue,
            settings=lab.settings,
            request=request,
            rows=rows,
        )


def _plan(
    git: QuarantinedGit,
    catalogue: Catalogue,
    settings: LabSettings,
    tx: Transaction,
    request: TableRequest,
    rows: _PlannedRows,
) -> TablePlan:
    new, variants = _laid_out(git, catalogue, settings, tx, request, rows)
    effects = detectable_effects(
        catalogue,
        tx.specs,
        tx.noise,
        new.parts,
        PlannedTable(
            boots=new.boots,
            pairs=widest_family(new),
            share=Look(stated=new.looks_stated).share,
            min_effect_pct=new.min_effect_pct or rows.tree.min_effect_pct,
        ),
    )
    return TablePlan(
        tree=rows.tree.name,
        arms=new.arms,
        variants=variants,
        about={kernel.name: kernel.about for kernel in rows.kernels.values() if kernel.about},
        against=tuple(new.against),
        boots=new.boots,
        cost=priced(
            cost_of(
                git,
                catalogue.testboxes,
                tx.specs,
                tx.builds,
                tx.boots,
                new,
                variants,
            ),
            effects,
        ),
        notes=notes_on(
            tx.testboxes, request.kernels, request.axes, [name for name, _ in new.parts]
        ),
    )


@contextmanager
def _about(key: str) -> Iterator[None]:
    """Note in a RequestError which option of the request it is about."""
    try:
        yield
    except RequestError as error:
        error.key = error.key or key
        raise


def _rows_of(transaction: OpenTransaction, git: Git, request: TableRequest) -> _PlannedRows:
    if not 1 <= request.boots <= TABLE_BOOTS:
        raise RequestError(
            f"boots per row must be between 1 and {TABLE_BOOTS}, got {request.boots}", key="boots"
        )
    check_min_effect(request.min_effect_pct)
    with _about("tree"):
        tree = tree_of(transaction, git, request.tree, request.kernels.refs)
    kernels = kernels_of(git, tree, request.kernels, request.most_rows)
    if len(kernels) > 1 and len({kernel.facts.commit for kernel in kernels}) == 1:
        raise RequestError(
            f"{' and '.join(kernel.name for kernel in kernels)} are the same commit"
            f" {kernels[0].facts.commit[:12]}; there is nothing to compare"
        )
    try:
        rows = lay_out([kernel.name for kernel in kernels], request.axes, request.exclude)
    except BadLayout as error:
        raise RequestError(str(error), key=error.key) from None
    if len(rows) > request.most_rows:
        raise RequestError(
            f"that makes {len(rows)} rows; at most {request.most_rows} are allowed in this table"
        )
    return _PlannedRows(tree=tree, kernels={kernel.name: kernel for kernel in kernels}, rows=rows)


def _laid_out(
    git: QuarantinedGit,
    catalogue: Catalogue,
    settings: LabSettings,
    tx: Transaction,
    request: TableRequest,
    rows: _PlannedRows,
) -> tuple[NewComparison, list[Variant]]:
    trusts = _trusts(git, tx.variants, request, rows)
    trust = least(one.level for one in trusts.values())
    parts = _parts(catalogue, settings, tx.specs, tx.boots, request, rows.tree, trust)
    tree = _configured(catalogue, rows, [name for name, _ in parts])
    builds = [_built(catalogue.kconfigs, rows.tree, tree, row) for row in rows.rows]
    with _about("job"):
        for spec in dict.fromkeys(spec for _, spec in parts):
            unit_jobs = tx.specs.get(spec)
            for kconfig in dict.fromkeys(built.kconfig for built in builds):
                refuse_lacking(catalogue, kconfig, unit_jobs)
    variants, arms = [], []
    for row, built in zip(rows.rows, builds, strict=True):
        kernel = rows.kernels[row.kernel]
        with _about("compiler"):
            check_compiler(tx.compilers, built.compiler)
        variant = variant_of(
            git,
            catalogue.kconfigs,
            tx.variants,
            built,
            kernel.facts.commit,
            kernel.origin,
            trusts[row.kernel],
        )
        variant = in_layout(
            catalogue.kconfigs, tx.trees, tx.variants, variant, _layout(row), kernel.origin
        )
        variants.append(variant)
        checked = _checked(request, trusts[row.kernel].level)
        arms.append(_arm(catalogue.testboxes, tx.specs, row, variant, parts, checked))
    against = tuple(request.against) or _fitting(request, rows)
    _check_against(against, arms)
    new = NewComparison(
        kind=request.kind,
        tree=rows.tree.id,
        arms=arms,
        against=against,
        columns=tuple(request.columns),
        boots=request.boots,
        parts=parts,
        looks_stated=request.looks,
        min_effect_pct=request.min_effect_pct,
        private_to=_readers(tx.access, request),
    )
    return replace(new, request_key=_key(new, variants, request)), variants


def _readers(access: Access, request: TableRequest) -> list[str] | None:
    """Return the names of those who may read the table. Raises RequestError for an unknown one."""
    if request.private_to is None:
        return None
    person = [] if request.asked_by is None else [request.asked_by.who]
    others = {name for name in request.private_to if name != ALONE}
    if unknown := sorted(others - access.holders()):
        raise RequestError(
            f"{unknown[0][:80]!r} has no token and cannot read the table",
            key="private-to",
        )
    return sorted({*person, *others})


def _trusts(
    git: QuarantinedGit, variants: Variants, request: TableRequest, rows: _PlannedRows
) -> dict[str, KernelTrust]:
    """Return how far each kernel is trusted, by name. Raises RequestError."""
    person = request.asked_by
    commits = {name: kernel.facts.commit for name, kernel in rows.kernels.items()}
    own = own_commits(git, variants, rows.tree, person, list(commits.values()))
    foreign = off_branch(git, rows.tree, request, rows.kernels.values())
    trusts = {}
    for name, kernel in rows.kernels.items():
        if person is not None and commits[name] in own:
            trusts[name] = KernelTrust("trusted", person.token)
        elif commits[name] in foreign:
            trusts[name] = UNTRUSTED
        else:
            trusts[name] = trust_in(variants, rows.tree, kernel.facts, vouched=request.vouched)
    return trusts


def _checked(request: TableRequest, kernel: Trust) -> Trust:
    """How settings are checked: those of a person over the web as strictly as for a patch."""
    return kernel if request.asked_by is None else "untrusted"


def _parts(
    catalogue: Catalogue,
    settings: LabSettings,
    specs: Specs,
    boots: Boots,
    request: TableRequest,
    tree: Tree,
    trust: Trust,
) -> list[tuple[str, str]]:
    """Return (testbox, spec) for each testbox."""
    named = request.testboxes
    job_files = request.job_files or tree.job_files
    with _about("testbox"):
        testboxes = pick_testboxes(
            catalogue.testboxes, settings, named or tree.testboxes, trust, asked=bool(named)
        )
    with _about("job"):
        parts = resolve_parts(
            catalogue.programs,
            catalogue.testboxes,
            specs,
            job_files,
            testboxes,
            request.overrides,
            _checked(request, trust) if request.overrides else trust,
        )
    with _about("with"):
        parts = [
            (name, with_monitors(catalogue.programs, specs, spec, request.columns))
            for name, spec in parts
        ]
    for name, spec in parts:
        refuse_long(catalogue.testboxes, name, specs.get(spec), boots.seconds(name, spec))
    return parts


def _configured(catalogue: Catalogue, rows: _PlannedRows, testboxes: Sequence[str]) -> Tree:
    """Return the tree with the one configuration of all testboxes, or as it is if each row names
    its own. Raises RequestError.
    """
    tree = rows.tree
    if all(row.values.get("kconfig") for row in rows.rows):
        return tree
    with _about("testbox"):
        groups = by_configuration(catalogue.kconfigs, tree, catalogue.testboxes, testboxes)
        if len(groups) > 1:
            listed = "; ".join(f"{', '.join(names)}: {one.kconfig}" for one, names in groups)
            raise RequestError(
                f"these testboxes boot kernels of different configurations ({listed}), which no"
                " table compares; request one table for each configuration, or name with --kconfig"
                " those that all of them are to boot"
            )
        return groups[0][0]


def _built(kconfigs: Kconfigs, asked: Tree, tree: Tree, row: LayoutRow) -> Tree:
    """Return the tree with the compiler, the configuration and the fragments of a row.

    `asked` has the tree's own configuration, whose fragments come on top of that of a row; `tree`
    has that of the testboxes. Raises RequestError.
    """
    with _about("kconfig"):
        try:
            own = row.values.get("kconfig")
            kconfig = kconfigs.on(own, asked.kconfig) if own else tree.kconfig
        except NoKconfig as error:
            raise RequestError(str(error)) from None
    try:
        for fragment in filter(None, row.values.get("fragment", "").split("+")):
            kconfig = joined(kconfig, fragment)
        kconfigs.text(kconfig)
    except NoKconfig as error:
        raise RequestError(str(error), key="fragment") from None
    return replace(tree, kconfig=kconfig, compiler=row.values.get("compiler") or tree.compiler)


def _layout(row: LayoutRow) -> int:
    """Return the number of the layout of a row. Raises RequestError."""
    text = row.values.get("layout") or "0"
    digits = text.isascii() and text.isdigit() and len(text) < 9
    if not digits or int(text) > LAYOUTS:
        raise RequestError(
            f"{row.name}: layouts are numbered from 0, the usual one, to {LAYOUTS}", key="layout"
        )
    return int(text)


def _arm(
    testboxes: KnownTestboxes,
    specs: Specs,
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
    own = {}
    try:
        for testbox, spec in parts if settings else ():
            jobs = with_settings(specs.get(spec), cmdline, sysctl)
            testboxes.known(testbox).check_settings(jobs, trust)
            own[spec] = specs.add(jobs)
    except ValueError as error:
        raise RequestError(f"{row.name}: {error}", key="cmdline" if cmdline else "sysctl") from None
    return Arm(name=row.name, variant=variant.id, axes=dict(row.axes), settings=settings, specs=own)


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


def _fitting(request: TableRequest, rows: _PlannedRows) -> tuple[Reference, ...]:
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
            [
                *(variant.commit, variant.kconfig, variant.compiler, dict(arm.settings)),
                *([variant.layout] if variant.layout else []),
            ]
            for arm, variant in zip(new.arms, variants, strict=True)
        ],
        sorted(new.parts),
        [rule if rule in RULES else names.index(rule) for rule in new.against],
        list(new.columns),
        new.boots,
        new.looks_stated,
        request.vouched,
        *([new.min_effect_pct] if new.min_effect_pct is not None else []),
        *([{"private_to": list(new.private_to)}] if new.private_to is not None else []),
        *vouched_by(variant.voucher for variant in variants),
    ]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return f"table:{digest}"
