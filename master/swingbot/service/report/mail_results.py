"""Mail the results of tables and bisections to their requesters, where they want a mail.

A mail and the record that it was written are one transaction, so a crash loses none and repeats
none. `mail.dry_run` does not apply: the operator set the token's address, and its holder requested
the mail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Final

from swingbot.core.mail.encoding import message_id
from swingbot.core.model import ids
from swingbot.core.model.comparison_row import without_aliases
from swingbot.core.model.conclusion import NamedCulprit
from swingbot.core.model.records import Bisection, Comparison
from swingbot.core.moderation.filing import Filing
from swingbot.core.report.claim import Row, claims_of
from swingbot.core.report.mails.result import Result, ResultKernel, result_mail
from swingbot.core.text.numbers import change, sure
from swingbot.service.ports import LabSettings
from swingbot.service.ports.bisections import Bisections
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.reports import Reports
from swingbot.service.ports.variants import Variants
from swingbot.service.store_mail import WrittenMail, store_mail

_NAMED: Final = 6  # changes of each kind


def mail_results(
    settings: LabSettings,
    now: Callable[[], datetime],
    reports: Reports,
    comparisons: Comparisons,
    variants: Variants,
    bisections: Bisections,
) -> None:
    """Write the mails about all that is over and has none yet."""
    for wanted in reports.wanted_results():
        kind, number = ids.read(wanted.id)
        if kind == "bisection":
            result = _of_bisection(settings, bisections, number)
        else:
            result = _of_table(settings, comparisons, variants, number)
        to = settings.recipients if wanted.address is None else (wanted.address,)
        store_mail(
            settings,
            now,
            reports,
            WrittenMail(
                number=reports.reserve(),
                result=wanted.number,
                kind="result",
                revision=1,
                message_id=message_id(f"result{wanted.number}", "result", 1, settings.domain),
                mail=result_mail(result),
                filing=Filing.unmoderated(to),
            ),
        )


def _of_table(
    settings: LabSettings, comparisons: Comparisons, variants: Variants, number: int
) -> Result:
    table = comparisons.get(number)
    assert table is not None
    by_arm: dict[int, list[Row]] = {}
    for row in without_aliases(comparisons.rows(number)):
        if row.headline and row.against == table.against[0]:
            by_arm.setdefault(row.arm, []).append(row.to_json())
    id = ids.of_table(table.kind, number)
    kernels = [variants.get(arm.variant) for arm in table.arms]
    done = table.status == "done"
    return Result(
        id=id,
        status=table.status,
        page=f"{settings.web_url}/{ids.read(id)[0]}/{id}",
        contact=settings.contact,
        headline=next(claims_of([*chain(*by_arm.values())], 1), "") if done else "",
        claims=list(_claims_of_arms(table, by_arm)) if done else (),
        reason=table.reason or "",
        kernels=[
            ResultKernel(name=arm.name, commit=kernel.commit, subject=kernel.subject)
            for arm, kernel in zip(table.arms, kernels, strict=True)
        ],
        private=table.private_to is not None,
    )


def _claims_of_arms(table: Comparison, by_arm: Mapping[int, Sequence[Row]]) -> Iterator[str]:
    """Yield what the rows of each kernel claim, with its name if there are several."""
    for number, arm in enumerate(table.arms):
        for claim in _claims(by_arm.get(number, ())):
            yield f"{arm.name}: {claim}" if len(table.arms) > 2 else claim


def _claims(rows: Sequence[Row]) -> Iterator[str]:
    yield from claims_of(rows, _NAMED, intervals=True)
    doubts = sum(row["verdict"] in ("unclear", "invalid") for row in rows)
    if doubts:
        yield f"not clear in {doubts} of {len(rows)} tests"


def _of_bisection(settings: LabSettings, bisections: Bisections, number: int) -> Result:
    id, asked, status = (
        ids.show("bisection", number),
        bisections.get(number),
        bisections.status(number),
    )
    assert status is not None
    named = [] if status in ("failed", "cancelled") else bisections.conclusion(number).culprits
    subjects = {one.variant.commit: one.variant.subject for one in bisections.points(number)}
    claims = [
        f"{culprit.commit[:12]} {subjects.get(culprit.commit, '')}".rstrip()
        + f", {sure(culprit.probability)}"
        + ("" if asked is None else f": {_change(asked, culprit)}")
        for culprit in named
    ]
    return Result(
        id=id,
        status=status,
        page=f"{settings.web_url}/bisection/{id}",
        contact=settings.contact,
        headline=claims[0] if len(claims) == 1 else "",
        claims=claims,
        reason=bisections.life_of(number).reason or "",
    )


def _change(asked: Bisection, culprit: NamedCulprit) -> str:
    pct = culprit.change_pct
    size = "" if pct is None else f" {change(pct, asked.terms.better)}"
    return f"{asked.metric}{size} on {asked.testbox}"
