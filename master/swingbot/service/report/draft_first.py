"""Draft the first mail about each incident whose culprit was measured against its parent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from swingbot.core.mail.encoding import message_id
from swingbot.core.model import ids
from swingbot.core.model.comparison_row import ComparisonRow, row_at
from swingbot.core.model.records import Bisection, BootRecord, Comparison, Variant
from swingbot.core.plan.boot_series import series_of
from swingbot.core.plan.metric_rules import metric_of
from swingbot.core.proof.gates import GateRow, decided, fit_to_leave
from swingbot.core.report.mails.first import mail
from swingbot.core.report.parts.machine import machine_line
from swingbot.core.report.report_facts import BisectionSummary as BisectionFacts
from swingbot.core.report.report_facts import Commit, ConfigDiffers, ReportFacts
from swingbot.service.faults import Faults
from swingbot.service.incident.attribute import seen_elsewhere
from swingbot.service.kernel.compare import config_change
from swingbot.service.ports import Catalogue, Lab, LabSettings, Tools, Transaction
from swingbot.service.ports.bisections import Bisections
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.builds import KernelBuilds
from swingbot.service.prove.report_evidence import (
    clues_of,
    gates_of,
    merged,
    not_checked,
    told_gates,
)
from swingbot.service.report.address import restricted_on
from swingbot.service.report.find_posting import posting_of
from swingbot.service.report.moderate import DraftedMail, file_report, suspicion_of
from swingbot.service.store_mail import WrittenMail, store_mail
from swingbot_jobs import codec
from swingbot_jobs.kernel_diff import asked_rows, config_lines, matters
from swingbot_jobs.language.program import Program

# The facts of the boots that matter most to a reader, by the worker's names, in the order printed.
_FACTS: Final = (
    "uname",
    "rootfs",
    "perf",
    "qemu",
    "cmdline",
    "thp_enabled",
    "clocksource",
)


def draft_reports(lab: Lab, faults: Faults) -> None:
    """Draft a report for each incident that is ready for one, each in its own transaction; queue or
    hold it according to the settings.
    """
    with lab.transaction("find incidents to report") as tx:
        ready = tx.incidents.to_report()
    for incident, attributed in ready:
        name = ids.show("incident", incident)
        with faults.of(f"report of {name}"), lab.transaction("draft report") as tx:
            comparison = tx.comparisons.get(attributed)
            assert comparison is not None
            if (incident, attributed) not in tx.incidents.to_report():
                continue  # a person was faster
            if not decided(tx.gates.of_incident(incident)):
                continue  # its gates are in progress, or open in this round
            _draft(lab.tools, lab.catalogue, lab.settings, lab.clock.now, tx, incident, comparison)


def _draft(
    tools: Tools,
    catalogue: Catalogue,
    settings: LabSettings,
    now: Callable[[], datetime],
    tx: Transaction,
    incident: int,
    comparison: Comparison,
) -> None:
    bisection = tx.bisections.get(tx.incidents.bisections(incident)[0])
    assert bisection is not None
    rows = tx.incidents.rows(incident, comparison.id)
    headline = row_at(rows, bisection.key)
    shown = headline is not None and (headline.changed or headline.spread_changed)
    if headline is None or headline.change_pct is None:
        # the culprit's boots reported no values, so a table is impossible; see the incident page
        return
    number, gates = tx.reports.reserve(), gates_of(tx.gates, incident)
    facts = _facts(
        tools,
        catalogue,
        settings,
        tx,
        number,
        _Finding(
            comparison=comparison, bisection=bisection, rows=rows, headline=headline, gates=gates
        ),
    )
    elsewhere = seen_elsewhere(tx, incident, comparison.tree)
    if elsewhere:
        facts = replace(facts, facts={"also in": elsewhere, **facts.facts})
    suspicion = suspicion_of(settings, facts.headline)
    if suspicion:
        facts = replace(facts, not_checked=(suspicion, *facts.not_checked))
    letter = mail(facts)
    tree = tx.trees.get(comparison.tree)
    unproven = fit_to_leave(gates, settings.proof_require)
    filing = file_report(
        tools,
        settings,
        tx.reports,
        DraftedMail(
            tree=facts.tree,
            commit=facts.culprit.sha,
            author=facts.culprit.author,
            base=tree.base_commit,
            headline=facts.headline,
            gates=facts.gates,
            shown=shown,
            unproven=unproven,
            restricted=restricted_on(
                catalogue.testboxes, settings.mail, tx.anchors, [facts.headline.testbox]
            ),
        ),
    )
    # a further revision only if all earlier ones were withdrawn
    revision = tx.reports.next_revision(incident, "first")
    store_mail(
        settings,
        now,
        tx.reports,
        WrittenMail(
            number=number,
            incident=incident,
            kind="first",
            revision=revision,
            message_id=message_id(
                ids.show("incident", incident), "first", revision, settings.domain
            ),
            mail=letter,
            filing=filing,
            facts=codec.plain(facts),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    """The subject of a first mail."""

    comparison: Comparison  # culprit and parent
    bisection: Bisection
    rows: Sequence[ComparisonRow]
    headline: ComparisonRow  # row of the bisected metric
    gates: Sequence[GateRow]


def _facts(
    tools: Tools,
    catalogue: Catalogue,
    settings: LabSettings,
    tx: Transaction,
    number: int,
    finding: _Finding,
) -> ReportFacts:
    comparison, bisection, headline = finding.comparison, finding.bisection, finding.headline
    culprit, parent, tree = (
        tx.variants.get(comparison.head),
        tx.variants.get(comparison.base),
        tx.trees.get(comparison.tree),
    )
    build = tx.builds.by_key([culprit.build_key])[culprit.build_key]
    testbox_facts = tx.boots.latest_facts(bisection.testbox, image=str(build.image_sha256))
    job = next(job for job in tx.specs.get(headline.spec) if job.name == bisection.unit_job)
    report, url = ids.show("report", number), settings.web_url
    series = series_of(
        catalogue.testboxes.known(bisection.testbox), ids.show("comparison", comparison.id)
    )
    boots = tx.boots.find(
        str(build.image_sha256), bisection.testbox, headline.spec, series, comparison.numbers
    )
    before = tx.boots.find(
        str(tx.builds.by_key([parent.build_key])[parent.build_key].image_sha256),
        bisection.testbox,
        headline.spec,
        series,
        comparison.numbers,
    )
    return ReportFacts(
        report=report,
        tree=tree.name,
        url=tree.url,
        branch=tree.branch,
        culprit=Commit(sha=culprit.commit, subject=culprit.subject, author=culprit.author),
        parent=parent.commit,
        base=bisection.good,
        head=bisection.bad,
        headline=_with_runs(tx.boots, report_row(catalogue.programs, headline), before, boots),
        rows=tuple(report_row(catalogue.programs, row) for row in _beside(headline, finding.rows)),
        bisection=_bisection(tx.bisections, bisection, culprit),
        kconfig=f"{culprit.kconfig}"
        + (f" (sha256 {build.config_sha256[:12]})" if build.config_sha256 else ""),
        config_differs=_config_differs(tools, catalogue, tx.builds, parent, culprit),
        compiler_version=build.compiler_version,
        machine=machine_line(catalogue.testboxes.known(bisection.testbox).model, testbox_facts),
        facts={
            name.replace("_", " "): str(testbox_facts[name])
            for name in _FACTS
            if testbox_facts.get(name) not in (None, "")
        },
        command=job.command,
        reproduce=_reproduce(report, url),
        not_checked=not_checked(finding.gates, headline),
        links={
            "page": f"{url}/report/{report}",
            "about this mail": f"{url}/docs/your-mail",
            "comparison": f"{url}/comparison/{ids.show('comparison', comparison.id)}",
            "bisection": f"{url}/bisection/{ids.show('bisection', bisection.id)}",
            "raw": f"{url}/raw/{ids.show('comparison', comparison.id)}/",
            "reproduce": f"{url}/report/{report}/reproduce.tar.gz",
            "table": f"{url}/comparison/{ids.show('comparison', comparison.id)}/lkp.txt",
        },
        reporter=settings.sender,
        contact=settings.contact,
        regzbot=settings.mail.regzbot,
        gates=told_gates(finding.gates),
        clues=clues_of(tx.comparisons, headline, finding.rows, finding.gates),
        posted=posting_of(tools, culprit.commit, culprit.subject, culprit.author),
        merged=merged(settings, tree),
        closes=f"{url}/report/{report}",
        boots={
            side: tuple(ids.show("boot", boot.id) for boot in of_side)
            for side, of_side in (("parent", before), ("commit", boots))
        },
    )


def _config_differs(
    tools: Tools, catalogue: Catalogue, builds: KernelBuilds, parent: Variant, culprit: Variant
) -> ConfigDiffers | None:
    stored = builds.stored([parent.build_key, culprit.build_key])
    sides = (stored.get(variant.build_key) for variant in (parent, culprit))
    rows = config_change(tools.kernels, *sides)
    differ = [row for row in rows or () if matters(row)]
    if not differ:
        return None
    # a configuration that the operator has deleted since asks for nothing
    asked = asked_rows(differ, catalogue.kconfigs.get(culprit.kconfig, ""))
    return ConfigDiffers(symbols=len(differ), asked=tuple(config_lines(asked, len(asked))))


def _bisection(bisections: Bisections, bisection: Bisection, culprit: Variant) -> BisectionFacts:
    conclusion = bisections.conclusion(bisection.id)
    return BisectionFacts(
        id=ids.show("bisection", bisection.id),
        candidates=len(conclusion.candidates),
        boots=conclusion.boots,
        kernels=conclusion.kernels,
        builds=conclusion.builds,
        probability=conclusion.naming(culprit.commit).probability,
    )


def _beside(headline: ComparisonRow, rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """Return the headline metrics, without the metric of which `headline` is an alias, since it is
    the same number.
    """
    return [
        row
        for row in rows
        if row.headline and (row.key == headline.key or row.key != headline.original)
    ]


def report_row(programs: Mapping[str, Program], row: ComparisonRow) -> ComparisonRow:
    """Return the row with a sentence about its metric."""
    return replace(row, sentence=_sentence(programs, row.metric))


def _with_runs(
    boots: Boots, row: ComparisonRow, before: Sequence[BootRecord], after: Sequence[BootRecord]
) -> ComparisonRow:
    """Return the row with the value of each run of both sides, for LKP's table."""
    key = (row.unit_job, row.metric)
    base, head = (
        tuple(value for boot in side for value in boots.values(boot.id).get(key, ()))
        for side in (before, after)
    )
    return replace(row, base=replace(row.base, values=base), head=replace(row.head, values=head))


def _sentence(programs: Mapping[str, Program], metric: str) -> str:
    """Return a sentence about the test and the metric."""
    program = programs[metric.partition(".")[0]]
    return f"The test: {program.describe}. The metric: {metric_of(programs, metric).describe}."


def _reproduce(report: str, web: str) -> tuple[str, ...]:
    """Return the commands that unpack and run the kit, which needs only QEMU and a shell
    (`pack_kit`).
    """
    return (
        f"curl -fsS {web}/report/{report}/reproduce.tar.gz | tar -xz",
        f"cd swingbot-{report} && ./reproduce.sh",
    )
