"""Request a bisection: plan it, estimate its cost, queue it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from swingbot.core.model import ids
from swingbot.core.model.records import Tree
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.text.nearest import meant_by
from swingbot.service.asked.asker import check_tree
from swingbot.service.asked.commits import (
    admit,
    asked_commits,
    off_branch,
    own_commits,
    unbundle,
)
from swingbot.service.asked.dry_run import rehearse
from swingbot.service.asked.requested import (
    Requested,
    asked_before,
    charge,
    note_vouched,
    vouched_by,
)
from swingbot.service.asked.result_mail import check_address, want_mail
from swingbot.service.bisect.plan import BisectionPlan, plan_of
from swingbot.service.bisect.request import BisectionRequest
from swingbot.service.bisect.start import ResolvedBisection, open_bisection
from swingbot.service.kernel.variants import on_testbox, resolve_commit, trust_in
from swingbot.service.limits import WEB_BISECTED_COMMITS
from swingbot.service.ports import (
    Catalogue,
    Git,
    GitError,
    Lab,
    LabSettings,
    QuarantinedGit,
    RequestError,
    Transaction,
)
from swingbot.service.ports.testboxes import Testboxes
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.ports.variants import Variants
from swingbot.service.watch.resolve_jobs import (
    pick_testboxes,
    refuse_lacking,
    refuse_long,
    resolve_parts,
)
from swingbot.service.watch.trees import tree_of
from swingbot_jobs import codec
from swingbot_jobs.contract.trust import Trust, accepted
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Program, find_metric


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRange:
    """The range of a request in its tree; `foreign` are its commits that the branch lacks."""

    tree: Tree
    good: str
    bad: str
    commits: Sequence[str]  # those after `good`, along first parents
    foreign: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedBisection:
    """A request whose commits are in a quarantine."""

    transaction: OpenTransaction
    git: QuarantinedGit
    catalogue: Catalogue
    settings: LabSettings
    request: BisectionRequest
    range: AskedRange

    def plan(self) -> BisectionPlan:
        """Return the plan and cost. Nothing is recorded. Raises RequestError."""
        commits = self.range.commits
        return rehearse(
            self.transaction,
            "plan bisection",
            lambda tx: plan_of(
                self.git,
                self.catalogue,
                self.settings,
                tx,
                _resolved(self.git, self.catalogue, self.settings, tx, self.request, self.range),
                commits,
            ),
        )

    def queue(self, testbox_seconds: float) -> Requested:
        """Record the bisection, and who asked for it over the web, charged with `testbox_seconds`.

        An identical request returns the existing bisection, which costs nothing more. Raises
        RequestError.
        """
        with self.transaction("start bisection") as tx:
            new = _resolved(self.git, self.catalogue, self.settings, tx, self.request, self.range)
            existing, key = asked_before(tx.bisections.of_request, new.key)
            number = (
                open_bisection(self.git, self.catalogue, tx, replace(new, key=key))
                if existing is None
                else existing.id
            )
            id, person = ids.show("bisection", number), self.request.asked_by
            existed = existing is not None
            if self.request.mail:
                want_mail(tx.reports, id, person)
            is_new = charge(tx.access, person, id, testbox_seconds, existed=existed)
            if is_new:
                vouched = new.foreign if new.voucher is not None else ()
                note_vouched(tx.access, person, id, len(vouched))
                admit(self.git)
            return Requested(id=id, number=number, new=is_new)


@contextmanager
def prepared(lab: Lab, request: BisectionRequest) -> Iterator[PreparedBisection]:
    """Resolve the commits of a request, once for its plan and the queue.

    What that leaves in the mirror is gone afterwards unless it is queued.

    Raises RequestError, NotYours.
    """
    with lab.tools.git.quarantine() as git:
        if request.mail:
            check_address(request.asked_by)
        unbundle(git, request.asked_by, request.sent)
        yield PreparedBisection(
            transaction=lab.transaction,
            git=git,
            catalogue=lab.catalogue,
            settings=lab.settings,
            request=request,
            range=_range_of(lab.transaction, git, request),
        )


def _range_of(transaction: OpenTransaction, git: Git, request: BisectionRequest) -> AskedRange:
    refs, person = (request.good, request.bad), request.asked_by
    tree = tree_of(transaction, git, request.tree, refs)
    foreign = False
    if person is None:
        commits = {ref: resolve_commit(git, tree, request.sent.names.get(ref, ref)) for ref in refs}
    else:
        check_tree(person, tree.name)
        commits, foreign = asked_commits(git, tree, refs, person, request.sent)
    good, bad = (commits[ref] for ref in refs)
    if good == bad:
        raise RequestError(
            f"{request.good} and {request.bad} are the same commit {good[:12]}; there is nothing"
            " to search"
        )
    if not git.is_ancestor(good, bad):
        good, bad = bad, good
    if not git.is_ancestor(good, bad):
        raise RequestError(
            f"{request.good} and {request.bad} are not on the same line of history: one must "
            "be an ancestor of the other"
        )
    try:
        along = git.first_parents(good, bad)
    except GitError as error:
        raise RequestError(str(error)) from None
    if person is not None and len(along) > WEB_BISECTED_COMMITS:
        raise RequestError(
            f"{request.good}..{request.bad} has {len(along)} commits along first parents; at most"
            f" {WEB_BISECTED_COMMITS} are accepted over the web. Narrow the range, or ask an"
            " operator to start the bisection"
        )
    return AskedRange(
        tree=tree,
        good=good,
        bad=bad,
        commits=along,
        foreign=off_branch(git, tree, [good, *along]) if foreign else (),
    )


def _resolved(
    git: QuarantinedGit,
    catalogue: Catalogue,
    settings: LabSettings,
    tx: Transaction,
    request: BisectionRequest,
    asked: AskedRange,
) -> ResolvedBisection:
    """Choose the testboxes and the unit job. Raises RequestError."""
    tree = asked.tree
    # all commits after one that was sent, or made from a patch, are of the same kind
    own = own_commits(git, tx.variants, tree, request.asked_by, [asked.bad])
    voucher = request.asked_by.token if own and request.asked_by is not None else None
    trust = _trust(git, tx.variants, asked, request, voucher)
    named = request.testbox
    testboxes = pick_testboxes(
        catalogue.testboxes,
        settings,
        [named] if named else _first_for(catalogue.testboxes, tree, trust),
        trust,
        asked=bool(named),
    )
    testboxes = _alike(catalogue.testboxes, tx.testboxes, testboxes)
    built = on_testbox(catalogue.kconfigs, tree, catalogue.testboxes.known(testboxes[0]))
    parts = resolve_parts(
        catalogue.programs,
        catalogue.testboxes,
        tx.specs,
        request.job_files or tree.job_files,
        testboxes,
        request.overrides,
        "untrusted" if request.overrides and request.asked_by is not None else trust,
    )
    for name, spec in parts:
        measured = tx.boots.seconds(name, spec)
        refuse_long(catalogue.testboxes, name, tx.specs.get(spec), measured)
        refuse_lacking(catalogue, built.kconfig, tx.specs.get(spec))
    if len({spec for _, spec in parts}) > 1:
        raise RequestError(
            f"the testboxes of {named!r} run the job with different parameters, so their "
            f"boots cannot be compared; name one of {', '.join(testboxes)}"
        )
    unit_jobs = tx.specs.get(parts[0][1])
    job = _unit_job_of(catalogue.programs, unit_jobs, request.metric, request.unit_job)
    identity = json.dumps(
        [
            *(tree.id, asked.good, asked.bad, built.kconfig, tree.compiler, *testboxes),
            *(codec.plain(job), request.metric),
            *vouched_by([voucher]),
        ]
    )
    return ResolvedBisection(
        tree=tree,
        origin="asked",
        good=asked.good,
        bad=asked.bad,
        testboxes=testboxes,
        job=job,
        metric=request.metric,
        key=f"asked:{hashlib.sha256(identity.encode()).hexdigest()}",
        vouched=request.trusted,
        foreign=asked.foreign,
        voucher=voucher,
    )


def _trust(
    git: Git,
    variants: Variants,
    asked: AskedRange,
    request: BisectionRequest,
    voucher: int | None,
) -> Trust:
    if asked.bad in asked.foreign:
        return "untrusted" if voucher is None else "trusted"
    return trust_in(variants, asked.tree, git.facts(asked.bad), vouched=request.trusted).level


def _first_for(testboxes: KnownTestboxes, tree: Tree, trust: Trust) -> list[str]:
    """Return the first testbox of the tree that may boot its kernels.

    If none may, return the first one, so that the refusal names it.
    """
    return [
        testbox
        for testbox in tree.testboxes
        if testbox in testboxes.present and accepted(trust, testboxes.present[testbox].accepts)
    ][:1] or list(tree.testboxes[:1])


def _alike(testboxes: KnownTestboxes, stored: Testboxes, names: list[str]) -> list[str]:
    """Return the active testboxes of a group; a single testbox is returned even if inactive.

    Raises RequestError if the group mixes repeatable and other testboxes, or configurations.
    """
    if len(names) == 1:
        return names
    states = stored.states()
    if len({testboxes.known(name).kconfig for name in names}) > 1:
        raise RequestError(
            f"the files of {', '.join(names)} name different kernel configurations (kconfig), so "
            "they cannot share a bisection; name one testbox"
        )
    if len({testboxes.known(name).repeatable for name in names}) > 1:
        raise RequestError(
            f"some of {', '.join(names)} are repeatable and some are not, so they cannot "
            "share a bisection; name one testbox"
        )
    return [name for name in names if states.get(name) == "active"] or names[:1]


def _unit_job_of(
    programs: Mapping[str, Program], unit_jobs: Sequence[UnitJob], metric: str, name: str | None
) -> UnitJob:
    """Return the one unit job that reports `metric`.

    Raises RequestError if there is none or more than one.
    """
    if find_metric(programs, metric) is None or not metric.isprintable():
        known = sorted({m for job in unit_jobs for m in programs[job.program].metrics})
        raise RequestError(
            f"metric {metric!r} does not exist; {meant_by(metric, known)}these jobs report"
            f" {', '.join(known)}"
        )
    fitting = [
        job
        for job in unit_jobs
        if name in (None, job.name) and (metric.startswith(("perf-stat.", f"{job.program}.")))
    ]
    if not fitting:
        raise RequestError(
            f"none of the unit jobs reports {metric!r}; the unit jobs are "
            f"{', '.join(job.name for job in unit_jobs)}"
        )
    if len(fitting) > 1:
        raise RequestError(
            f"{len(fitting)} unit jobs report {metric!r}: "
            f"{', '.join(job.name for job in fitting)}; choose one with --unit-job"
        )
    return fitting[0]
