"""Lay out, estimate and queue an experiment: N kernels, one table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from swingbot.core.model.records import Arm, JobFile, NewComparison, Tree, Variant
from swingbot.core.model.statuses import ReferenceRule
from swingbot.core.plan.settings import with_settings
from swingbot.core.table.layout import Axis, BadLayout, LayoutRow, lay_out
from swingbot.core.table.references import references
from swingbot.service.check_compiler import check_compiler
from swingbot.service.kernel.variants import trust_in, variant_of
from swingbot.service.ports import Lab, RequestError, Transaction
from swingbot.service.table.cost import ExperimentCost, cost_of
from swingbot.service.table.dry_run import rehearse
from swingbot.service.table.find_existing import asked_before
from swingbot.service.table.kernels import ExperimentKernel, KernelRequest, kernels_of
from swingbot.service.watch.resolve_jobs import pick_testboxes, resolve_parts
from swingbot.service.watch.trees import tree_of
from swingbot_jobs.contract.kconfig import NoKconfig, joined
from swingbot_jobs.contract.trust import Trust, least
from swingbot_jobs.language.program import find_metric

DEFAULT_BOOTS: Final = 5  # per row
MOST_BOOTS: Final = 1000
# Columns that a table can show besides the metrics given by name, and the monitor that
# provides each, unless every boot has it anyway.
BESIDE: Final = ("locks", "buddyinfo", "size", "profile")
MONITORS: Final = {"locks": "lock-contention", "profile": "perf-profile"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRequest:
    """A requested experiment; without job files or testboxes, those of the tree are used."""

    kernels: KernelRequest
    tree: str | None = None  # None: the only tree with the commits
    axes: Sequence[Axis] = ()
    exclude: Sequence[Mapping[str, str]] = ()
    against: Sequence[ReferenceRule] = ()  # (): chosen to fit the kernels
    beside: Sequence[str] = ()
    job_files: Sequence[JobFile] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)
    testboxes: Sequence[str] = ()
    boots: int = DEFAULT_BOOTS  # per row
    looks: int = 1  # how often the table may be judged, counting extensions
    trusted: bool = False  # the requester vouches for the patches


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """An experiment as it would be queued."""

    tree: str
    arms: Sequence[Arm]
    variants: Sequence[Variant]
    about: Mapping[str, str]  # row -> the subject behind its name
    against: tuple[ReferenceRule, ...]
    boots: int
    cost: ExperimentCost


def plan_experiment(lab: Lab, request: ExperimentRequest) -> Planned:
    """Return the plan and cost of `request`. Nothing is recorded. Raises RequestError."""
    return rehearse(lab, "plan experiment", lambda tx: _laid_out(lab, tx, request)[0])


def request_experiment(lab: Lab, request: ExperimentRequest) -> int:
    """Queue an experiment and return its number.

    An identical request returns the existing experiment. Raises RequestError.
    """
    with lab.transaction("request experiment") as tx:
        planned, new = _laid_out(lab, tx, request)
        for variant in planned.variants:
            lab.tools.git.keep(variant.commit)
        number, new = asked_before(tx, new)
        return tx.comparisons.add(new) if number is None else number


def _laid_out(
    lab: Lab, tx: Transaction, request: ExperimentRequest
) -> tuple[Planned, NewComparison]:
    if not 1 <= request.boots <= MOST_BOOTS:
        raise RequestError(f"boots per row must be between 1 and {MOST_BOOTS}, got {request.boots}")
    tree = tree_of(lab.transaction, lab.tools.git, request.tree, request.kernels.refs)
    kernels = kernels_of(lab, tree, request.kernels)
    try:
        rows = lay_out([kernel.name for kernel in kernels], request.axes, request.exclude)
    except BadLayout as error:
        raise RequestError(str(error)) from None
    levels = {
        kernel.name: trust_in(tx.variants, tree, kernel.facts, vouched=request.trusted)
        for kernel in kernels
    }
    trust = least(list(levels.values()))
    testboxes = pick_testboxes(
        lab.catalogue.testboxes,
        lab.settings,
        request.testboxes or tree.testboxes,
        trust,
        asked=bool(request.testboxes),
    )
    parts = [
        (testbox, _watched(lab, tx, spec, request.beside))
        for testbox, spec in resolve_parts(
            lab.catalogue.programs,
            lab.catalogue.testboxes,
            tx.specs,
            request.job_files or tree.job_files,
            testboxes,
            request.overrides,
            trust,
        )
    ]
    by_name = {kernel.name: kernel for kernel in kernels}
    variants, arms = [], []
    for row in rows:
        variant = _variant(lab, tx, tree, by_name[row.kernel], row, levels[row.kernel])
        variants.append(variant)
        arms.append(_arm(lab, tx, row, variant, parts, levels[row.kernel]))
    against = tuple(request.against) or _fitting(request, kernels, rows)
    _check_against(against, arms)
    new = NewComparison(
        kind="experiment",
        tree=tree.id,
        arms=arms,
        against=against,
        beside=tuple(request.beside),
        boots=request.boots,
        parts=parts,
        looks_stated=request.looks,
        request_key=_key(tree, variants, arms, parts, against, request),
    )
    cost = cost_of(lab, tx, new, variants)
    planned = Planned(
        tree=tree.name,
        arms=arms,
        variants=variants,
        about={kernel.name: kernel.about for kernel in kernels if kernel.about},
        against=against,
        boots=request.boots,
        cost=cost,
    )
    return planned, new


def _watched(lab: Lab, tx: Transaction, spec: str, beside: Sequence[str]) -> str:
    """Return the spec with the monitors that the additional columns of a table need."""
    monitors = [MONITORS[name] for name in beside if name in MONITORS]
    for name in beside:
        known = name in BESIDE or find_metric(lab.catalogue.programs, name) is not None
        if not known:
            raise RequestError(
                f"--with {name}: choose one of {', '.join(BESIDE)}, or give the full name of "
                "a metric,"
                " such as perf-stat.instructions"
            )
    jobs = tx.specs.get(spec)
    watched = [
        replace(job, monitors=tuple(dict.fromkeys((*job.monitors, *monitors)))) for job in jobs
    ]
    return spec if watched == jobs else tx.specs.add(watched)


def _variant(
    lab: Lab, tx: Transaction, tree: Tree, kernel: ExperimentKernel, row: LayoutRow, level: Trust
) -> Variant:
    """Return the kernel of a row: a commit with the row's compiler and fragments."""
    kconfig = tree.kconfig
    try:
        for fragment in filter(None, row.values.get("fragment", "").split("+")):
            kconfig = joined(kconfig, fragment)
        lab.catalogue.kconfigs.text(kconfig)
    except NoKconfig as error:
        raise RequestError(str(error)) from None
    compiler = row.values.get("compiler") or tree.compiler
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
        raise RequestError(f"{row.name}: {error}") from None
    return Arm(
        name=row.name, variant=variant.id, axes=dict(row.axes), settings=settings, specs=specs
    )


def _sysctls(row: LayoutRow) -> dict[str, str]:
    """Parse `vm.swappiness=10 vm.stat_interval=5` into values by name. Raises RequestError."""
    sysctls = {}
    for pair in row.values.get("sysctl", "").split():
        name, sign, value = pair.partition("=")
        if not sign:
            raise RequestError(f"{row.name}: sysctl {pair!r} must have the form KEY=VALUE")
        sysctls[name] = value
    return sysctls


def _fitting(
    request: ExperimentRequest, kernels: Sequence[ExperimentKernel], rows: Sequence[LayoutRow]
) -> tuple[ReferenceRule, ...]:
    """Choose the default reference of a row: successive commits build on each other."""
    if request.kernels.range is not None or request.kernels.series is not None:
        return ("above",)
    if len(kernels) > 1 and len(rows) > len(kernels):
        return ("pair",)
    return ("first",)


def _check_against(against: Sequence[ReferenceRule], arms: Sequence[Arm]) -> None:
    for rule in against:
        if not references(rule, [arm.axes for arm in arms]):
            raise RequestError(
                f"--against {rule} has no effect: no row has a base under the same conditions"
            )


def _key(
    tree: Tree,
    variants: Sequence[Variant],
    arms: Sequence[Arm],
    parts: Sequence[tuple[str, str]],
    against: Sequence[str],
    request: ExperimentRequest,
) -> str:
    identity = [
        tree.id,
        [
            [arm.name, variant.commit, variant.kconfig, variant.compiler, dict(arm.settings)]
            for arm, variant in zip(arms, variants, strict=True)
        ],
        sorted(parts),
        list(against),
        list(request.beside),
        request.boots,
        request.trusted,
        *(["looks", request.looks] if request.looks > 1 else []),
    ]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return f"experiment:{digest}"
