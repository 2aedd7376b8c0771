"""Choose the two kernels that a gate of proof compares, or decide the gate without boots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from swingbot.core.limits import SERIES_COMMITS
from swingbot.core.model.comparison_row import ComparisonRow, row_at
from swingbot.core.model.records import Bisection, KernelTrust, Proven, Tree, Variant
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.boot_series import series_for
from swingbot.core.proof import elsewhere
from swingbot.core.proof.gates import GateResult
from swingbot.core.proof.series import series_end
from swingbot.core.proof.share import Effect, effect_of
from swingbot.core.stats.fact_differences import against, explanation, facts_for
from swingbot.core.table.rows import fact_differences
from swingbot.service.kernel.compare import files_of
from swingbot.service.kernel.images import all_images_of
from swingbot.service.kernel.variants import built_as, in_layout, variant_of, with_fragment
from swingbot.service.ports import (
    CannotRevert,
    Catalogue,
    Git,
    GitError,
    Tools,
    Transaction,
)
from swingbot.service.ports.bisections import Bisections
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.builds import KernelBuilds
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.incidents import Incidents
from swingbot.service.ports.kernels import KernelRecords, NoRecord
from swingbot.service.ports.specs import Specs
from swingbot.service.ports.trees import Trees
from swingbot.service.ports.variants import Variants
from swingbot.service.prove.trace import BOOTS as TRACED_BOOTS
from swingbot.service.prove.trace import trace_order
from swingbot.service.result.boots import booted_arm
from swingbot_jobs.contract.kconfig import Kconfigs, NoKconfig
from swingbot_jobs.contract.unit_job import UnitJob

OTHER_LAYOUT: Final = 1
ALIGNED: Final = "align64"  # the fragment that aligns functions to 64 bytes
Pair = tuple[Variant, Variant]  # base, head


@dataclass(frozen=True, slots=True, kw_only=True)
class GateKernels:
    """Two kernels that a gate compares, and the unit job.

    `boots`: boots per side; None: as many as needed for an answer.
    """

    base: Variant
    head: Variant
    job: UnitJob
    boots: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCulprit:
    """A culprit with the result of its comparison with its parent."""

    incident: Proven
    tree: Tree  # with the configuration of the culprit
    parent: Variant
    culprit: Variant
    bisection: Bisection
    rows: list[ComparisonRow]
    headline: ComparisonRow | None  # row of the bisected metric
    job: UnitJob | None  # unit job of that metric

    @property
    def own(self) -> Effect | None:
        """Return the commit's effect from fresh boots; None if they do not show one."""
        return (
            effect_of(self.headline)
            if self.headline is not None and self.headline.changed
            else None
        )


def case_of(
    trees: Trees,
    variants: Variants,
    specs: Specs,
    bisections: Bisections,
    comparisons: Comparisons,
    incidents: Incidents,
    incident: Proven,
) -> MeasuredCulprit:
    bisection = bisections.get(incidents.bisections(incident.id)[0])
    assert bisection is not None
    rows = comparisons.rows(incident.comparison.id)
    headline = row_at(rows, bisection.key)
    culprit = variants.get(incident.comparison.head)
    return MeasuredCulprit(
        incident=incident,
        tree=built_as(trees.get(incident.tree), culprit),
        parent=variants.get(incident.comparison.base),
        culprit=culprit,
        bisection=bisection,
        rows=rows,
        headline=headline,
        job=next((job for job in specs.get(headline.spec) if job.name == bisection.unit_job), None)
        if headline
        else None,
    )


def without_effect(case: MeasuredCulprit, gate: str) -> GateResult:
    """Return the result of `gate` for a culprit without an effect of its own.

    A gate measures a share of the level's change, which a change of the spread does not have.
    """
    if case.headline is not None and case.headline.spread_changed:
        shown = "; fresh boots of commit and parent show it" if gate == "reproduced" else ""
        return GateResult(
            status="not run", reason=f"the change is of the spread between boots{shown}"
        )
    return GateResult(
        status="fail" if gate == "reproduced" else "not run",
        reason="fresh boots of commit and parent do not show the change",
    )


def of_gate(
    tools: Tools, catalogue: Catalogue, tx: Transaction, case: MeasuredCulprit, gate: str
) -> GateKernels | GateResult:
    """Return the kernels to measure for `gate`, or its result if no boots are needed."""
    if gate == "code":
        return _code(tools.kernels, tx.builds, case)
    if gate == "facts":
        return _facts(catalogue.testboxes, tx, case)
    if gate == "elsewhere":
        return _elsewhere(catalogue.testboxes, tx.specs, tx.builds, tx.boots, case)
    if case.own is None or case.job is None:
        return without_effect(case, gate)
    if case.bisection.testbox not in catalogue.testboxes.present:
        return _removed(case.bisection.testbox)
    if case.tree.kconfig not in catalogue.kconfigs:
        return GateResult(status="not run", reason=f"configuration {case.tree.kconfig} was removed")
    try:
        kernels = _measured(tools, catalogue.kconfigs, tx, case, case.job, gate)
        return (
            kernels
            if isinstance(kernels, GateResult | GateKernels)
            else GateKernels(base=kernels[0], head=kernels[1], job=case.job)
        )
    except (GitError, NoKconfig) as error:
        return GateResult(status="not run", reason=str(error))


def _measured(
    tools: Tools,
    kconfigs: Kconfigs,
    tx: Transaction,
    case: MeasuredCulprit,
    job: UnitJob,
    gate: str,
) -> Pair | GateKernels | GateResult:
    if gate == "reproduced":
        first, second = (
            in_layout(kconfigs, tx.trees, tx.variants, variant, OTHER_LAYOUT)
            for variant in (case.parent, case.culprit)
        )
        return first, second
    if gate == "layout":
        first, second = (
            with_fragment(kconfigs, tx.trees, tx.variants, variant, ALIGNED)
            for variant in (case.parent, case.culprit)
        )
        return first, second
    if gate == "executed":
        order = trace_order(
            tools.kernels,
            kconfigs,
            tx.trees,
            tx.variants,
            tx.builds,
            (case.parent, case.culprit),
            job,
        )
        return (
            order
            if isinstance(order, GateResult)
            else GateKernels(base=order.base, head=order.head, job=order.job, boots=TRACED_BOOTS)
        )
    tip = case.tree.tip_commit
    if tip is None or not tools.git.is_ancestor(case.culprit.commit, tip):
        return GateResult(status="not run", reason="the commit is no longer on the branch")
    at_tip = {"tip": _tip, "series": _series, "revert": _revert}[gate]
    return at_tip(tools.git, kconfigs, tx.variants, case, tip)


def _removed(testbox: str) -> GateResult:
    return GateResult(status="not run", reason=f"testbox {testbox} was removed")


def _tip(
    git: Git, kconfigs: Kconfigs, variants: Variants, case: MeasuredCulprit, tip: str
) -> Pair | GateResult:
    if tip == case.culprit.commit:
        return GateResult(status="pass", reason="the commit is the tip")
    return case.parent, variant_of(git, kconfigs, variants, case.tree, tip)


def _series(
    git: Git, kconfigs: Kconfigs, variants: Variants, case: MeasuredCulprit, tip: str
) -> Pair | GateResult:
    end = series_end(git.messages_from(case.culprit.commit, tip, SERIES_COMMITS))
    if end.commit is None:
        return GateResult(status="not run", reason=end.reason)
    if end.commit == case.culprit.commit:
        return GateResult(status="pass", reason="the commit is the last of its series")
    return case.parent, variant_of(git, kconfigs, variants, case.tree, end.commit)


def _revert(
    git: Git, kconfigs: Kconfigs, variants: Variants, case: MeasuredCulprit, tip: str
) -> Pair | GateResult:
    if tip == case.culprit.commit:
        return GateResult(
            status="pass", reason="the commit is the tip: reverting it gives its parent"
        )
    try:
        without = git.without(tip, case.culprit.commit)
    except CannotRevert as error:
        return GateResult(status="not run", reason=str(error))
    return variant_of(git, kconfigs, variants, case.tree, tip), variant_of(
        git,
        kconfigs,
        variants,
        case.tree,
        without,
        "request",
        trust=KernelTrust(case.tree.trust),
    )


def _code(kernels: KernelRecords, builds: KernelBuilds, case: MeasuredCulprit) -> GateResult:
    stored = builds.stored([case.parent.build_key, case.culprit.build_key])
    sides = [stored.get(variant.build_key) for variant in (case.parent, case.culprit)]
    if sides[0] is None or sides[1] is None or "failed" in (sides[0]["status"], sides[1]["status"]):
        return GateResult(status="not run", reason="commit and parent are not both built")
    if sides[0]["image_sha256"] == sides[1]["image_sha256"]:
        return GateResult(
            status="fail", reason="the images of commit and parent are byte-identical"
        )
    try:
        return kernels.code(files_of(sides[0]), files_of(sides[1]))
    except NoRecord as error:
        return GateResult(status="not run", reason=str(error))


def _facts(testboxes: KnownTestboxes, tx: Transaction, case: MeasuredCulprit) -> GateResult:
    """Check the facts of the boots behind the headline row."""
    comparison, testbox = (
        case.incident.comparison,
        testboxes.present.get(case.bisection.testbox),
    )
    if testbox is None:
        return _removed(case.bisection.testbox)
    images = all_images_of(tx.builds, [case.parent, case.culprit])
    if case.headline is None or case.job is None or images is None:
        return GateResult(status="not run", reason="one side has no boots to compare")
    series, spec = series_for(testbox, comparison), case.headline.spec
    arms = [
        booted_arm(tx.specs, tx.boots, image, testbox.name, spec, series, comparison.numbers)
        for image in images
    ]
    sheets = [sum(bool(boot.facts) for boot in arm.boots) for arm in arms]
    if not all(sheets):
        return GateResult(status="not run", reason="the boots of one side recorded no facts")
    differing = facts_for(
        fact_differences(arms[0], arms[1], paired=testbox.repeatable),
        case.job.demand,
        case.job.compare_fact,
    )
    detail = {"differ": [difference.to_json() for difference in differing]}
    if (why := against(differing)) is not None:
        return GateResult(status="fail", reason=why, detail=detail)
    reason = f"of {sheets[0]}+{sheets[1]} boots"
    if explained := explanation(differing):
        reason += f"; caused by the kernel itself: {explained}"
    return GateResult(status="pass", reason=reason, detail=detail)


def _elsewhere(
    testboxes: KnownTestboxes,
    specs: Specs,
    builds: KernelBuilds,
    boots: Boots,
    case: MeasuredCulprit,
) -> GateResult:
    if case.headline is not None and case.headline.spread_changed:
        return without_effect(case, "elsewhere")
    if case.headline is None:
        return GateResult(
            status="not run", reason="the incident has no effect to look for on other testboxes"
        )
    named = {"unit_job": case.headline.unit_job, "metric": case.headline.metric}
    program = case.job.program if case.job is not None else None
    ran = [
        testbox
        for testbox, spec in case.incident.comparison.parts
        if testbox != case.bisection.testbox
        and any(job.program == program for job in specs.get(spec))
    ]
    bisected = _place(testboxes, builds, boots, case, case.bisection.testbox, named)
    return elsewhere.gate_result(
        bisected,
        [_place(testboxes, builds, boots, case, testbox, named) for testbox in dict.fromkeys(ran)],
    )


def _place(
    testboxes: KnownTestboxes,
    builds: KernelBuilds,
    boots: Boots,
    case: MeasuredCulprit,
    testbox: str,
    named: Mapping[str, str],
) -> elsewhere.TestboxResult:
    """Return the result of one testbox.

    Unit jobs are resolved per testbox; if the name differs there, the only unit job with the metric
    is used.
    """
    rows = [row for row in case.rows if row.testbox == testbox and row.metric == named["metric"]]
    row = next(
        (row for row in rows if row.unit_job == named["unit_job"]),
        rows[0] if len(rows) == 1 else None,
    )
    definition = testboxes.present.get(testbox)
    build = builds.by_key([case.culprit.build_key]).get(case.culprit.build_key)
    noted = boots.latest_facts(testbox, image=str(build.image_sha256)) if build is not None else {}
    known = (
        {
            "model": definition.model,
            "CPUs": str(definition.nr_cpu),
            "MiB": str(definition.memory_mb),
        }
        if definition is not None
        else {}
    )
    known |= {"CPU": str(noted["cpu_model"])[:60]} if noted.get("cpu_model") else {}
    return elsewhere.TestboxResult(testbox=testbox, row=row, facts=known)
