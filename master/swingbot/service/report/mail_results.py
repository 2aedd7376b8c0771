"""Mail the results of tables and bisections to their requesters, where they want a mail.

What is over is what `wait` waits for: a bisection together with the searches of the branches that
its culprits merged. A mail and the record that it was written are one transaction, so a crash loses
none and repeats none. `mail.dry_run` does not apply: the operator set the token's address, and its
holder requested the mail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Final

from swingbot.core.bisect.tell.explain_text import of_merge
from swingbot.core.mail.encoding import message_id
from swingbot.core.model import ids
from swingbot.core.model.comparison_row import without_aliases
from swingbot.core.model.conclusion import NamedCulprit
from swingbot.core.model.records import Bisection, Comparison
from swingbot.core.model.statuses import BisectionStatus
from swingbot.core.moderation.filing import Filing
from swingbot.core.report.claim import Row, claims_of
from swingbot.core.report.mails.result import Result, ResultKernel, result_mail
from swingbot.core.text.numbers import change, sure
from swingbot.service.bisect.enter_merges import NAMED, is_open
from swingbot.service.faults import Faults
from swingbot.service.ports import Lab, LabSettings, Transaction
from swingbot.service.ports.bisections import Bisections
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.reports import Reports, WantedResult
from swingbot.service.ports.variants import Variants
from swingbot.service.store_mail import WrittenMail, store_mail

_NAMED: Final = 6  # changes of each kind


def mail_results(lab: Lab, faults: Faults) -> None:
    """Write the mails about all that is over and has none yet, each in its own transaction."""
    with lab.transaction("find results to mail") as tx:
        ended = tx.reports.wanted_results()
    for wanted in ended:
        with faults.of(f"mail about {wanted.id}"), lab.transaction("mail result") as tx:
            result = _result(lab.settings, tx, wanted.id)
            if result is not None:
                _write(lab.settings, lab.clock.now, tx.reports, wanted, result)


def _result(settings: LabSettings, tx: Transaction, id: str) -> Result | None:
    """Return what `id`, which has ended, found; None while branches that it merged are searched."""
    kind, number = ids.read(id)
    if kind != "bisection":
        return _of_table(settings, tx.comparisons, tx.variants, number)
    return (
        None if is_open(tx.bisections, number) else _of_bisection(settings, tx.bisections, number)
    )


def _write(
    settings: LabSettings,
    now: Callable[[], datetime],
    reports: Reports,
    wanted: WantedResult,
    result: Result,
) -> None:
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
    id, search = ids.show("bisection", number), _searched(bisections, number)
    last = list(_last_named(search))
    return Result(
        id=id,
        status=search.status,
        page=f"{settings.web_url}/bisection/{id}",
        contact=settings.contact,
        headline=last[0] if len(last) == 1 else "",
        claims=list(_claims_of_search(search)),
        reason=search.reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _SearchOver:
    """A bisection that is over: `named` maps each culprit to its claim, in order; `below` has the
    searches of the branches that each of them merged.
    """

    id: str
    status: BisectionStatus
    reason: str
    named: Mapping[str, str]
    below: Mapping[str, Sequence[_SearchOver]]


def _searched(bisections: Bisections, number: int) -> _SearchOver:
    asked, status = bisections.get(number), bisections.status(number)
    assert asked is not None and status is not None
    named = [] if status in ("failed", "cancelled") else bisections.conclusion(number).culprits
    subjects = {one.variant.commit: one.variant.subject for one in bisections.points(number)}
    below: dict[str, list[_SearchOver]] = {}
    for branch, merge in bisections.branches_of(number):
        below.setdefault(merge, []).append(_searched(bisections, branch.id))
    return _SearchOver(
        id=ids.show("bisection", number),
        status=status,
        reason=bisections.life_of(number).reason or "",
        named={
            culprit.commit: f"{culprit.commit[:12]} {subjects.get(culprit.commit, '')}".rstrip()
            + f", {sure(culprit.probability)}: {_change(asked, culprit)}"
            for culprit in named
        },
        below=below,
    )


def _claims_of_search(search: _SearchOver) -> Iterator[str]:
    """Yield what was named, each merge with what the searches of its branches came to."""
    for commit, claim in search.named.items():
        yield claim
        for branch in search.below.get(commit, ()):
            within = ""
            if branch.status in NAMED:
                within = f"in the branch merged by {commit[:12]} ({branch.id}): "
            else:
                yield of_merge(commit, branch.id, branch.status, None, branch.reason)
            yield from (f"{within}{one}" for one in _claims_of_search(branch))


def _last_named(search: _SearchOver) -> Iterator[str]:
    """Yield the claims about the commits that are named in the end: of a merge, those named in its
    branches if there are any.
    """
    for commit, claim in search.named.items():
        inside = [
            one
            for branch in search.below.get(commit, ())
            if branch.status in NAMED
            for one in _last_named(branch)
        ]
        yield from inside or [claim]


def _change(asked: Bisection, culprit: NamedCulprit) -> str:
    pct = culprit.change_pct
    size = "" if pct is None else f" {change(pct, asked.terms.better)}"
    return f"{asked.metric}{size} on {asked.testbox}"
